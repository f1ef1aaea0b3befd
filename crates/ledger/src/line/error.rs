//! Why a line cannot be used.

use crate::limits::MAX_LINE;

/// Why a line cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Longer than [`MAX_LINE`].
    #[error("the line is longer than {MAX_LINE} bytes")]
    TooLong,
    /// Written by a newer version of the format.
    #[error("the line is of version {0} of the format")]
    Newer(u64),
    /// Malformed.
    #[error("the line is malformed: {0}")]
    Malformed(String),
}

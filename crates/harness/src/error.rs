//! Why something was not measured.

use std::path::{Path, PathBuf};

/// What the live engine says while another process emulates.
pub const ANOTHER_EMULATION: &str = "another emulation is running";

/// Why something was not measured. What was measured before is kept.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Somebody pressed Ctrl-C.
    #[error("interrupted; what was measured is kept, and the same command goes on from there")]
    Interrupted,
    /// The machine lacks something; others may be measured all the same.
    #[error("{what} is not available: {needs}")]
    Unavailable {
        /// What cannot be done.
        what: String,
        /// What it needs, and how to get it.
        needs: String,
    },
    /// The user's plan or command asks for what does not exist or cannot be.
    #[error("{0}")]
    Plan(String),
    /// A file cannot be read or written; full disks come as this.
    #[error("{}: {error}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// The other side of a measurement ended or refused.
    #[error("{peer}: {reason}")]
    Peer {
        /// Name of the program or address.
        peer: String,
        /// What happened.
        reason: String,
    },
    /// Something that should not have happened.
    #[error("{0}")]
    Failed(String),
}

impl LabError {
    /// A file that cannot be read or written.
    pub fn file(path: &Path, error: std::io::Error) -> Self {
        Self::File { path: path.to_path_buf(), error }
    }

    /// Something that should not have happened, in its own words.
    pub fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// Whether it is only a matter of waiting: somebody else emulates a link on this machine.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Unavailable { needs, .. } if needs.starts_with(ANOTHER_EMULATION))
    }

    /// What the machine lacks.
    pub fn unavailable(what: impl Into<String>, needs: impl Into<String>) -> Self {
        Self::Unavailable { what: what.into(), needs: needs.into() }
    }
}

/// For programs whose errors are words.
impl From<LabError> for String {
    fn from(error: LabError) -> Self {
        error.to_string()
    }
}

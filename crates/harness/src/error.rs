//! Errors of measurements.

use std::path::{Path, PathBuf};

/// Message of the live engine while another process emulates a link.
pub const ANOTHER_EMULATION: &str = "another emulation is running";

/// Why something was not measured. Earlier results are kept.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The user pressed Ctrl-C.
    #[error(
        "interrupted; the measurements so far are kept, and the same command continues from there"
    )]
    Interrupted,
    /// The machine lacks something; other measurements may still work.
    #[error("{what} is not available: {needs}")]
    Unavailable {
        /// What cannot be measured.
        what: String,
        /// What is needed, and how to get it.
        needs: String,
    },
    /// The user's plan or command is wrong or impossible.
    #[error("{0}")]
    Plan(String),
    /// A file cannot be read or written, for example because the disk is full.
    #[error("{}: {error}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Error of the operating system.
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
    /// A fault in the lab itself.
    #[error("{0}")]
    Failed(String),
}

impl LabError {
    /// Error about a file that cannot be read or written.
    pub fn file(path: &Path, error: std::io::Error) -> Self {
        Self::File { path: path.to_path_buf(), error }
    }

    /// Error about a fault in the lab itself, with its own message.
    pub fn failed(error: impl std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }

    /// Whether waiting may help: another process emulates a link on this machine.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Unavailable { needs, .. } if needs.starts_with(ANOTHER_EMULATION))
    }

    /// Error about something that the machine lacks.
    pub fn unavailable(what: impl Into<String>, needs: impl Into<String>) -> Self {
        Self::Unavailable { what: what.into(), needs: needs.into() }
    }
}

/// For programs whose errors are strings.
impl From<LabError> for String {
    fn from(error: LabError) -> Self {
        error.to_string()
    }
}

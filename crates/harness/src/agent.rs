//! Helper processes: a program that measures starts itself as `PROGRAM agent NAME ARGUMENT`, which people do not call.

use std::path::{Path, PathBuf};

use crate::error::LabError;

/// A helper process.
pub struct Agent {
    /// Name on the command line.
    pub name: &'static str,
    /// Does its work; the argument is JSON. Results go to standard output.
    pub run: fn(&str) -> Result<(), LabError>,
}

/// The programs that a measurement starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// `outlast`, which is measured.
    pub service: PathBuf,
    /// The one that understands `agent NAME ARGUMENT`.
    pub agent: PathBuf,
}

impl Programs {
    /// With the service that lies beside the program of the agents, as builds and archives have it.
    pub fn beside(agent: &Path) -> Self {
        Self { service: agent.with_file_name("outlast"), agent: agent.to_path_buf() }
    }
}

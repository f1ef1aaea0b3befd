//! Helper processes: a measuring program starts itself as `PROGRAM agent NAME ARGUMENT`. Users do not call it.

use std::path::{Path, PathBuf};

use crate::error::LabError;

/// A helper process.
pub struct Agent {
    /// Name on the command line.
    pub name: &'static str,
    /// Does its work; the argument is JSON. Results go to standard output.
    pub run: fn(&str) -> Result<(), LabError>,
}

/// Programs that a measurement starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Programs {
    /// `outlast`, the program that is measured.
    pub service: PathBuf,
    /// The program that understands `agent NAME ARGUMENT`.
    pub agent: PathBuf,
}

impl Programs {
    /// Programs with the service next to the program with the agents, as in builds and archives.
    pub fn beside(agent: &Path) -> Self {
        Self { service: agent.with_file_name("outlast"), agent: agent.to_path_buf() }
    }
}

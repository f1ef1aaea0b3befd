//! The lab's own helper processes: `outlast lab agent NAME ARGUMENT`, which people do not call.

use crate::error::LabError;

/// A helper process.
pub struct Agent {
    /// Name on the command line.
    pub name: &'static str,
    /// Does its work; the argument is JSON. Results go to standard output.
    pub run: fn(&str) -> Result<(), LabError>,
}

/// Every one.
pub static AGENTS: &[Agent] = &[
    crate::client::AGENT,
    crate::live::ENDS_AGENT,
    crate::live::EXEC_AGENT,
    crate::pinned::AGENT,
    crate::quic::AGENT,
    crate::siege::AGENT,
    crate::tls::rounds::AGENT,
];

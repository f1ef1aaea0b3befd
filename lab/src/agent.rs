//! The lab's own helper processes: `outlast-lab agent NAME ARGUMENT`, which people do not call.

pub use outlast_harness::agent::{Agent, Programs};

/// Every one.
pub static AGENTS: &[Agent] = &[
    crate::client::AGENT,
    crate::live::ENDS_AGENT,
    crate::live::EXEC_AGENT,
    crate::pinned::AGENT,
    crate::quic::AGENT,
    crate::siege::AGENT,
    crate::tls::AGENT,
];

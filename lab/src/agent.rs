//! The lab's own helper processes: `outlast-lab agent NAME ARGUMENT`, started by the lab itself.

pub use outlast_harness::agent::{Agent, Programs};

/// All agents.
pub static AGENTS: &[Agent] = &[
    crate::client::AGENT,
    crate::live::ENDS_AGENT,
    crate::live::EXEC_AGENT,
    crate::pinned::AGENT,
    crate::quic::AGENT,
    crate::siege::AGENT,
    crate::tls::AGENT,
];

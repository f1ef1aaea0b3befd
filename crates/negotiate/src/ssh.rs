//! Negotiation in SSH: what a client offers in its `SSH_MSG_KEXINIT`, what a policy answers, and the
//! outcome.
//!
//! In SSH both sides send lists, and the client's order decides (RFC 4253, section 7.1). What a mode means there is
//! in `docs/decisions/0040-modes-in-ssh.md`. The transport is elsewhere; nothing here knows its types.

pub mod audit;
mod crowd;
mod decide;
mod diff;
mod explain;
mod offer;
mod rules;

pub use crowd::{CROWD, SshClient};
pub use decide::{
    SshChosen, SshDirection, SshRefusal, decide_ssh, decide_ssh_late, decide_ssh_server,
    is_certificate, with_plain_host_keys,
};
pub use diff::changes;
pub use explain::{SshExplanation, SshReason, explain_ssh};
pub use offer::{MAX_IDENTIFICATION, MAX_LIST, MAX_NAMES, SshOffer, is_name};
pub use rules::{SshLists, SshNothingLeft, SshRules, served, server_lists};

//! The ledger: who connected how, who could do better, and what another policy would break.
//!
//! A listener reports each connection through [`Observe`], as [`Handshake`] or [`SshHandshake`], and [`End`].

pub mod dry_run;
mod event;
pub mod export;
pub mod known;
pub mod known_ssh;
pub mod limits;
pub mod line;
pub mod plot;
pub mod read;
pub mod report;
pub mod segments;
pub mod tally;
pub mod verdict;
mod writer;

pub use event::{
    End, Handshake, Observe, Observers, Outcome, Outgoing, Served, SshHandshake, SshOutcome,
    SshServed,
};
pub use line::Line;
pub use writer::{Ledger, Options};

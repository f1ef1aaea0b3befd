//! Negotiation: security policies as dated rows, clients' offers, and the decision between them.
//!
//! [`catalogue::POLICIES`] has the policies; [`offer::Offer`] is the contents of a ClientHello; [`decide::decide`]
//! says what a client gets under a policy. The doors carry out its decision, the ledger replays it over recorded
//! offers, and the tests compare it with what real clients get; [`explain`] puts it into sentences. [`ssh`] has the
//! same for SSH. Nothing here reads a socket, a file or a clock.

pub mod catalogue;
pub mod crowd;
pub mod decide;
pub mod diff;
pub mod explain;
pub mod failing;
mod fare;
pub mod ja4;
pub mod names;
pub mod offer;
pub mod policy;
mod row;
pub mod ssh;

pub use decide::{Choice, Decision, Refusal, decide};
pub use offer::{Offer, Transport};
pub use policy::{Mode, Rules, SecurityPolicy};

//! Approvals: a key can have a rule that it signs only what several named principals have approved.
//!
//! The rule is part of the key's record ([`rule`]), so that no path to the key leads around it: [`super::sign`] asks
//! [`take`] before each signature. A request ([`request`]) holds the exact messages to be signed and the files that they stand
//! for. Approvers judge its digest ([`statement`]). Each message of an approved request is signed once.

mod files;
mod request;
mod rule;
mod statement;

pub use files::{File, NewFile};
pub use request::{Request, approval_arn, request_approval, request_arn};
pub use rule::{Approver, Rule};
pub use statement::Statement;

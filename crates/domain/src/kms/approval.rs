//! Approvals: a key can have a rule that it signs only what several named principals have approved.
//!
//! The rule is part of the key's record ([`rule`]), so that no path to the key leads around it: [`super::sign`] asks
//! [`take`] before each signature. A request ([`request`]) holds the exact messages to be signed and the files that they stand
//! for, or a change of the rule itself. Approvers judge its digest ([`statement`]), and may have to sign that
//! ([`decide`]). Each message of an approved request is signed once, and a change is made once. A request may be for several keys
//! that sign the same files together: the rule of each must be satisfied before one of them signs.

mod change;
mod decide;
mod files;
mod request;
pub(super) mod rule;
mod statement;
mod take;

pub use change::{Changed, NewApprover, NewRule, change_rule};
pub use decide::{NewApproval, approve, deny};
pub use files::{File, NewFile, is_deceptive};
pub use request::{
    Approval, Denial, FORGET_ENDED, KeyVerdict, Request, State, Subject, Verdict, Wanted,
    approval_arn, judge, request_approval, request_arn, requests, rule_of, shown,
};
pub use rule::{Approver, Rule};
pub use statement::{StatedFile, Statement, approval_message};
pub(super) use take::take;

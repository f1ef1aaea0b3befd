//! The rule of a key: who must approve what it signs.

use serde::{Deserialize, Serialize};

/// How many of whom must approve what a key signs, and for how long an approval counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Number of approvers that a request needs.
    pub required: usize,
    /// The approvers, in order of their ARNs.
    pub approvers: Vec<Approver>,
    /// How long a request can be approved and used, in minutes.
    pub valid_minutes: i64,
    /// Whether the approval of whoever made the request counts.
    #[serde(default)]
    pub requester_may_approve: bool,
}

/// A principal who may approve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approver {
    /// ARN of a user or role; a role stands for all its sessions, together.
    pub principal: String,
    /// Unique id of the user or role that had this ARN when the rule was made.
    pub id: String,
    /// DER `SubjectPublicKeyInfo` in hexadecimal of the key that must have signed this principal's approvals, if one must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
}

//! The rule of a key: who must approve what it signs.

use outlast_crypto::digests;
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
    /// Whether the approval of the principal who made the request counts.
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

impl Rule {
    /// The approver with this unique id.
    pub(super) fn approver(&self, id: &str) -> Option<&Approver> {
        self.approvers.iter().find(|approver| approver.id == id)
    }

    /// The line of a statement that says what the rule would be.
    pub(super) fn line(&self) -> String {
        let approvers: Vec<_> = self
            .approvers
            .iter()
            .map(|one| match &one.public_key {
                Some(key) => format!("{} with the key {key}", one.principal),
                None => one.principal.clone(),
            })
            .collect();
        let requester = if self.requester_may_approve { "counts" } else { "does not count" };
        format!(
            "set the rule: {} of {}; {} minutes; the requester {requester}",
            self.required,
            approvers.join(", "),
            self.valid_minutes
        )
    }
}

/// Identifies a change of a rule, in hexadecimal; `None` removes it.
pub(super) fn change_id(rule: Option<&Rule>) -> String {
    let text = serde_json::to_vec(&rule).unwrap_or_default();
    hex::encode(digests::sha256(&[b"rule ", text.as_slice()].concat()))
}

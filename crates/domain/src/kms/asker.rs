//! The caller that wants to use a key.

use super::EncryptionContext;
use crate::identity::{Caller, PolicyCache};
use crate::policy::ConditionKeys;

/// The caller, and what the decision depends on.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// Condition keys of the request.
    pub conditions: &'a ConditionKeys,
    /// Cache of parsed policies.
    pub policies: &'a PolicyCache,
    /// `GrantTokens`.
    pub tokens: &'a [String],
    /// Encryption context, if the operation has one.
    pub context: Option<&'a EncryptionContext>,
}

//! The caller that wants to use a key.

use super::EncryptionContext;
use crate::identity::{Caller, PolicyCache};
use crate::policy::ConditionKeys;

/// Who asks, and with what.
#[derive(Clone, Copy)]
pub struct Access<'a> {
    /// The caller.
    pub caller: &'a Caller,
    /// What is known of the request.
    pub conditions: &'a ConditionKeys,
    /// Parsed policies.
    pub policies: &'a PolicyCache,
    /// `GrantTokens`.
    pub tokens: &'a [String],
    /// Encryption context, if the operation has one.
    pub context: Option<&'a EncryptionContext>,
}

//! Tags of a resource.

use std::collections::BTreeMap;

use super::TransferError;
use crate::limits;

/// Tags by key.
pub type Tags = BTreeMap<String, String>;

/// Checks the number of tags of a resource.
pub(super) fn check(tags: &Tags) -> Result<(), TransferError> {
    if tags.len() > limits::MAX_TAGS {
        let limit = limits::MAX_TAGS;
        return Err(TransferError::invalid(format!("A resource has at most {limit} tags")));
    }
    Ok(())
}

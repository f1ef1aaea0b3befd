//! How long a database is waited for, and what is said when it did not do.

use std::time::Duration;

use crate::StoreError;

/// Longest that making a connection may take.
pub(super) const CONNECT: Duration = Duration::from_secs(4);
/// Longest that the client waits for an answer; longer than the limits that the database itself keeps.
pub(super) const ANSWER: Duration = Duration::from_secs(20);

pub(super) fn unavailable(what: &str) -> StoreError {
    StoreError::Unavailable(what.to_owned())
}

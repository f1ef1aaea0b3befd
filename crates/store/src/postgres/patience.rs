//! Time limits on the database, and the error when it exceeds them.

use std::time::Duration;

use crate::StoreError;

/// Longest time to make a connection.
pub(super) const CONNECT: Duration = Duration::from_secs(4);
/// Longest time that the client waits for an answer; longer than the database's own limits.
pub(super) const ANSWER: Duration = Duration::from_secs(20);

pub(super) fn unavailable(what: &str) -> StoreError {
    StoreError::Unavailable(what.to_owned())
}

//! When a key was last used.

use serde::{Deserialize, Serialize};

use super::KmsError;
use super::record::Key;
use crate::Fault;
use crate::identity::{Permit, action};
use crate::work::Work;

const MS_PER_DAY: i64 = 86_400_000;

/// The last successful cryptographic operation with a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastUse {
    /// Operation, as in `Sign`.
    pub operation: String,
    /// Milliseconds since 1970.
    pub at_ms: i64,
    /// Id of its audit event.
    pub event_id: String,
    /// Id of the request.
    pub request_id: String,
}

/// Writes the last use of a key. Reads nothing, so that simultaneous uses do not conflict.
pub fn record_use(work: &mut Work<'_>, key: &Key, last: &LastUse) -> Result<(), Fault> {
    work.put(&record_key(key), last)
}

/// The last use of a key since its creation.
pub fn last_use(
    work: &mut Work<'_>,
    key: &Key,
    permit: &Permit<action::kms::GetKeyLastUsage>,
) -> Result<Option<LastUse>, KmsError> {
    permit.opens(&key.arn())?;
    Ok(work.get(&record_key(key))?)
}

/// Whole days since the last use of a key, or since its creation.
pub(super) fn unused_days(work: &mut Work<'_>, key: &Key) -> Result<i64, Fault> {
    let last = work.get::<LastUse>(&record_key(key))?;
    let since_ms = last.map_or(key.created_ms(), |last| last.at_ms);
    Ok((work.now_ms() - since_ms).max(0).div_euclid(MS_PER_DAY))
}

pub(super) fn forget(work: &mut Work<'_>, key: &Key) {
    work.delete(&record_key(key));
}

fn record_key(key: &Key) -> String {
    format!("kms/last-use/{}/{}/{}", key.scope().account, key.scope().region, key.id())
}

//! The epoch of an authority's OCSP responses: it changes whenever a response may have changed.

use serde::Serialize;

use crate::Fault;
use crate::arn::Scope;
use crate::work::Work;

/// The current epoch, read past any cache. It changes with each revocation and each change of the authority.
pub fn epoch(work: &Work<'_>, record_key: &str) -> Result<Option<u64>, Fault> {
    Ok(work.store().read_fresh(record_key)?.map(|record| record.version))
}

#[derive(Serialize)]
struct Epoch {
    changed_ms: i64,
}

/// Starts a new epoch of an authority. Reads nothing.
pub(super) fn put(work: &mut Work<'_>, scope: &Scope, id: &str) -> Result<(), Fault> {
    let epoch = Epoch { changed_ms: work.now_ms() };
    work.put(&record_key(scope, id), &epoch)
}

pub(super) fn record_key(scope: &Scope, id: &str) -> String {
    format!("{EPOCHS}{}/{}/{id}", scope.account, scope.region)
}

/// Prefix of the records with the epochs.
pub const EPOCHS: &str = "ca/ocsp-epoch/";

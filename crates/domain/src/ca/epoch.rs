//! The epoch of an authority's answers by OCSP: it changes whenever an answer may have changed.

use serde::Serialize;

use crate::Fault;
use crate::arn::Scope;
use crate::work::Work;

/// Changes with each revocation and each change of the authority that it is of; as of now, and no older.
pub fn epoch(work: &Work<'_>, record_key: &str) -> Result<Option<u64>, Fault> {
    Ok(work.store().read_fresh(record_key)?.map(|record| record.version))
}

#[derive(Serialize)]
struct Epoch {
    changed_ms: i64,
}

/// Begins a new epoch of an authority. Nothing is read for it.
pub(super) fn put(work: &mut Work<'_>, scope: &Scope, id: &str) -> Result<(), Fault> {
    let epoch = Epoch { changed_ms: work.now_ms() };
    work.put(&record_key(scope, id), &epoch)
}

pub(super) fn record_key(scope: &Scope, id: &str) -> String {
    format!("{EPOCHS}{}/{}/{id}", scope.account, scope.region)
}

/// Below are the records that say that answers may have changed.
pub const EPOCHS: &str = "ca/ocsp-epoch/";

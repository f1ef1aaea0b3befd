//! The chains of certificates: each certificate that an authority had is stored once with its chain, and the
//! certificates that it issued refer to it.

use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use lru::LruCache;
use outlast_pki::certificate::Certificate;
use serde::{Deserialize, Serialize};

use crate::arn::Scope;
use crate::work::Work;
use crate::{Fault, limits};

#[derive(Serialize, Deserialize)]
struct Record {
    /// PEM: the authority's certificate first, the root last.
    pem: String,
}

/// Parsed certificates, by the id of the chain. The id is a digest, so it has the same meaning everywhere.
static READ: LazyLock<Mutex<LruCache<String, Arc<Certificate>>>> = LazyLock::new(|| {
    let capacity = NonZeroUsize::new(limits::MAX_READ_CERTIFICATES).unwrap_or(NonZeroUsize::MIN);
    Mutex::new(LruCache::new(capacity))
});

/// The first certificate of the chain with this id, whose PEM text is `pem`. Parsing it takes longer than any other
/// part of issuing, except the signature.
pub(super) fn first(id: &str, pem: &str) -> Option<Arc<Certificate>> {
    if let Some(known) = READ.lock().unwrap_or_else(PoisonError::into_inner).get(id) {
        return Some(known.clone());
    }
    let certificate = Arc::new(Certificate::parse_one(pem.as_bytes()).ok()?);
    READ.lock().unwrap_or_else(PoisonError::into_inner).put(id.to_owned(), certificate.clone());
    Some(certificate)
}

/// Stores a chain, and returns its id.
pub(super) fn keep(
    work: &mut Work<'_>,
    scope: &Scope,
    authority: &str,
    pem: String,
) -> Result<String, Fault> {
    let id = hex::encode(&outlast_crypto::digests::sha256(pem.as_bytes())[..16]);
    work.put(&record_key(scope, authority, &id), &Record { pem })?;
    Ok(id)
}

/// Reads the chain with this id.
pub(super) fn read(
    work: &mut Work<'_>,
    scope: &Scope,
    authority: &str,
    id: &str,
) -> Result<String, Fault> {
    let record_key = record_key(scope, authority, id);
    work.get::<Record>(&record_key)?.map(|record| record.pem).ok_or(Fault::Damaged(record_key))
}

fn record_key(scope: &Scope, authority: &str, id: &str) -> String {
    format!("ca/chain/{}/{}/{authority}/{id}", scope.account, scope.region)
}

//! The chains that go with certificates: kept once for each certificate that an authority had, and named by what
//! it has issued.

use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::arn::Scope;
use crate::work::Work;

#[derive(Serialize, Deserialize)]
struct Record {
    /// PEM: the authority's certificate first, the root last.
    pem: String,
}

/// Keeps a chain, and gives its id.
pub(super) fn keep(
    work: &mut Work<'_>,
    scope: &Scope,
    authority: &str,
    pem: String,
) -> Result<String, Fault> {
    let id = hex::encode(&outlast_crypto::digests::sha256(pem.as_bytes())[..16]);
    work.put(&place(scope, authority, &id), &Record { pem })?;
    Ok(id)
}

/// The chain with this id.
pub(super) fn read(
    work: &mut Work<'_>,
    scope: &Scope,
    authority: &str,
    id: &str,
) -> Result<String, Fault> {
    let place = place(scope, authority, id);
    work.get::<Record>(&place)?.map(|record| record.pem).ok_or(Fault::Damaged(place))
}

fn place(scope: &Scope, authority: &str, id: &str) -> String {
    format!("ca/chain/{}/{}/{authority}/{id}", scope.account, scope.region)
}

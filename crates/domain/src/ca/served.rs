//! What an authority makes besides certificates: CRLs and OCSP responses, and the index to find them by.

use std::collections::BTreeSet;

use outlast_pki::certificate::Certificate;
use serde::{Deserialize, Serialize};

use super::authority::{Authority, Record, Status, authority_by_id};
use super::revocation::parts;
use super::{crl, epoch, ocsp, responder};
use crate::Fault;
use crate::arn::Scope;
use crate::work::{Swept, Work};

impl Authority {
    /// Writes the authority with this status; CRLs and the responder become due as the status requires.
    pub(super) fn save(&mut self, work: &mut Work<'_>, status: Status) -> Result<(), Fault> {
        self.store(work, status)?;
        follow(work, self)
    }
}

/// To be called when an authority is saved: CRLs and the responder become due as its status and configuration
/// require.
fn follow(work: &mut Work<'_>, authority: &Authority) -> Result<(), Fault> {
    let working = authority.certificate().is_some() && authority.status() != Status::Deleted;
    let revocation = authority.revocation();
    let crl = crl::follow(work, authority, revocation.crl.as_ref().filter(|_| working))?;
    let ocsp = ocsp::follow(work, authority, working && revocation.ocsp.is_some())?;
    let scope = authority.scope();
    // Roles Anywhere looks for the issuer of a certificate, whether that has CRLs or not.
    if let Some(certificate) = authority.certificate()
        && (crl || ocsp || working)
    {
        let record_key = served_record_key(authority.id());
        let before = work.get::<Served>(&record_key)?;
        let served = Served {
            account: scope.account.clone(),
            region: scope.region.clone(),
            named_by: ocsp::index(work, scope, authority.id(), certificate)?,
            index_only: !crl && !ocsp && before.is_none_or(|before| before.index_only),
        };
        work.put(&record_key, &served)?;
    }
    if crl || ocsp {
        epoch::put(work, scope, authority.id())?;
    }
    Ok(())
}

/// Removes everything that was made for an authority that is erased. Only the entry of its key in the index stays,
/// without an end: Roles Anywhere refuses what the authority has issued, under whichever of its certificates.
pub(super) fn forget(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
    certificate: Option<&Certificate>,
    swept: &mut Swept,
) -> Result<(), Fault> {
    crl::forget(work, scope, id);
    responder::forget(work, scope, id, swept)?;
    work.delete(&epoch::record_key(scope, id));
    if let Some(served) = work.get::<Served>(&served_record_key(id))? {
        served.named_by.iter().for_each(|record_key| work.delete(record_key));
        work.delete(&served_record_key(id));
    }
    certificate.map_or(Ok(()), |own| ocsp::index_erased(work, scope, id, own))
}

/// Record keys of authorities with a certificate that are not in the index: earlier versions have added only those with
/// CRLs or OCSP. Records that cannot be read are left out.
pub fn unindexed(work: &Work<'_>) -> Result<Vec<String>, Fault> {
    let mut indexed = BTreeSet::new();
    let mut after = String::new();
    loop {
        let page = work.store().scan(SERVED, &after, PAGE)?;
        let Some((last, _)) = page.last() else { break };
        after.clone_from(last);
        indexed.extend(page.into_iter().map(|(record_key, _)| record_key));
    }
    let mut missing = Vec::new();
    let mut next = Some(String::new());
    while let Some(after) = next {
        let has_certificate = |record: &Record, _| record.has_certificate();
        let found = work.due::<Record>(AUTHORITIES, &after, PAGE, has_certificate)?;
        let is_missing = |record_key: &String| {
            let id = record_key.rsplit('/').next().unwrap_or_default();
            !indexed.contains(&served_record_key(id))
        };
        missing.extend(found.record_keys.into_iter().filter(is_missing));
        next = found.next;
    }
    Ok(missing)
}

/// Adds the authority with this record key to the index, unless it is gone or was added in the meantime. One that waits to
/// be erased is added, too; one whose certificate cannot be read is not, for no path leads through it.
pub fn index(work: &mut Work<'_>, record_key: &str) -> Result<(), Fault> {
    let damaged = || Fault::Damaged(record_key.to_owned());
    let (scope, id, _) = parts(record_key, AUTHORITIES).ok_or_else(damaged)?;
    let certificate = work.get::<Record>(record_key)?.and_then(|record| record.certificate());
    let Some(certificate) = certificate else { return Ok(()) };
    if work.exists(&served_record_key(id))? {
        return Ok(());
    }
    let named_by = ocsp::index(work, &scope, id, &certificate)?;
    let Scope { account, region } = scope;
    let served = Served { account, region, named_by, index_only: true };
    work.put(&served_record_key(id), &served)
}

/// Records that one read returns.
const PAGE: usize = 1000;
/// Prefix of the records of authorities.
const AUTHORITIES: &str = "ca/authority/";

/// The certificate (DER) of an authority that has CRLs or OCSP, by its id alone.
pub fn authority_certificate(work: &mut Work<'_>, id: &str) -> Result<Option<Vec<u8>>, Fault> {
    let served = work.get::<Served>(&served_record_key(id))?.filter(|served| !served.index_only);
    let Some(served) = served else { return Ok(None) };
    let authority = authority_by_id(work, &served.scope(), id)?;
    Ok(authority
        .filter(|found| found.status() != Status::Deleted)
        .and_then(|found| found.certificate().map(|certificate| certificate.der().to_vec())))
}

/// Account and Region of an authority whose id is in a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Served {
    account: String,
    region: String,
    /// Record keys of the index by OCSP identifiers.
    named_by: Vec<String>,
    /// It has never had CRLs or OCSP, so that nothing of it is served.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    index_only: bool,
}

impl Served {
    fn scope(&self) -> Scope {
        Scope { account: self.account.clone(), region: self.region.clone() }
    }
}

fn served_record_key(id: &str) -> String {
    format!("{SERVED}{id}")
}

/// Prefix of the records of [`Served`].
const SERVED: &str = "ca/served/";

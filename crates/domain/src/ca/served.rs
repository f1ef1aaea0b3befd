//! What an authority makes besides certificates: CRLs and OCSP responses, and the index to find them by.

use serde::{Deserialize, Serialize};

use super::authority::{Authority, Status, authority_by_id};
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
    if crl || ocsp || working {
        let record_key = served_record_key(authority.id());
        let before = work.get::<Served>(&record_key)?;
        let served = Served {
            account: scope.account.clone(),
            region: scope.region.clone(),
            named_by: ocsp::index(work, authority)?,
            index_only: !crl && !ocsp && before.is_none_or(|before| before.index_only),
        };
        work.put(&record_key, &served)?;
    }
    if crl || ocsp {
        epoch::put(work, scope, authority.id())?;
    }
    Ok(())
}

/// Removes everything that was made for an authority that is erased.
pub(super) fn forget(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
    swept: &mut Swept,
) -> Result<(), Fault> {
    crl::forget(work, scope, id);
    responder::forget(work, scope, id, swept)?;
    work.delete(&epoch::record_key(scope, id));
    if let Some(served) = work.get::<Served>(&served_record_key(id))? {
        served.named_by.iter().for_each(|record_key| work.delete(record_key));
        work.delete(&served_record_key(id));
    }
    Ok(())
}

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
    format!("ca/served/{id}")
}

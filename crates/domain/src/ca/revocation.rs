//! Revocation: what an authority's configuration says, and the certificates that are revoked.

use outlast_pki::certificate::Certificate;
use serde::{Deserialize, Serialize};

use super::authority::{Authority, Status};
use super::{CaError, crl, ocsp, responder};
use crate::Fault;
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::work::{Swept, Work};

/// `RevocationConfiguration`: what is on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    /// `CrlConfiguration`, if it is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crl: Option<Crl>,
    /// `OcspConfiguration`, if it is enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ocsp: Option<Ocsp>,
}

/// `CrlConfiguration` of an authority that has CRLs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Crl {
    /// `ExpirationInDays`: how long a CRL is valid.
    pub expiration_days: i64,
    /// `CustomCname`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_cname: Option<String>,
    /// `S3BucketName`: where CRLs are put besides being served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// `S3ObjectAcl`; kept for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acl: Option<String>,
    /// `CrlDistributionPointExtensionConfiguration.OmitExtension`
    #[serde(default)]
    pub omit_extension: bool,
    /// `CrlType`: `PARTITIONED` rather than `COMPLETE`.
    #[serde(default)]
    pub partitioned: bool,
    /// `CustomPath`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_path: Option<String>,
    /// What the URLs in certificates begin with, as of the time when CRLs were configured: `http://host/path`
    /// without a slash at the end.
    pub base_url: String,
}

/// `OcspConfiguration` of an authority that answers by OCSP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ocsp {
    /// `OcspCustomCname`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_cname: Option<String>,
    /// The URL in certificates, as of the time when OCSP was configured.
    pub url: String,
}

/// The reasons for which a certificate can be revoked, AWS's spelling.
pub const REASONS: &[&str] = &[
    "UNSPECIFIED",
    "KEY_COMPROMISE",
    "CERTIFICATE_AUTHORITY_COMPROMISE",
    "AFFILIATION_CHANGED",
    "SUPERSEDED",
    "CESSATION_OF_OPERATION",
    "PRIVILEGE_WITHDRAWN",
    "A_A_COMPROMISE",
];

/// A certificate that was revoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// `RevocationReason`, AWS's spelling.
    pub reason: String,
    /// Milliseconds since 1970.
    pub revoked_ms: i64,
    /// End of the certificate's validity, seconds since 1970: it leaves the CRL some time later.
    pub not_after: i64,
}

/// The permits to revoke a certificate.
#[derive(Clone, Copy)]
pub struct RevokeAt<'a> {
    /// At its authority.
    pub authority: &'a Permit<action::acm_pca::RevokeCertificate>,
    /// At the authority of the certificate that was issued together with it, if one was.
    pub partner: Option<&'a Permit<action::acm_pca::RevokeCertificate>>,
}

/// Revokes a certificate by its serial number, in hexadecimal with or without colons; and with it the one that was
/// issued together with it.
pub fn revoke(
    work: &mut Work<'_>,
    authority: &Authority,
    serial: &str,
    reason: &str,
    at: RevokeAt<'_>,
) -> Result<(), CaError> {
    at.authority.opens(&authority.arn())?;
    match authority.status() {
        Status::Active | Status::Disabled | Status::Expired => {}
        Status::PendingCertificate | Status::Deleted => {
            return Err(authority.state_error("cannot revoke certificates"));
        }
    }
    let serial = canonical_serial(serial).ok_or_else(|| {
        CaError::InvalidRequest("The serial number is not valid: give it in hexadecimal.".into())
    })?;
    if authority.certificate().is_some_and(|own| hex::encode(own.serial()) == serial) {
        return Err(CaError::InvalidRequest(
            "A certificate authority cannot revoke its own certificate.".into(),
        ));
    }
    if !revoke_one(work, authority, &serial, reason)? {
        return Err(CaError::AlreadyProcessed("The certificate is revoked already.".into()));
    }
    if let Some((partner, serial)) = super::paired(work, authority, &serial)? {
        Permit::required(at.partner, &partner.arn())?;
        revoke_one(work, &partner, &serial, reason)?;
    }
    Ok(())
}

/// Revokes a certificate, if it is not revoked already.
fn revoke_one(
    work: &mut Work<'_>,
    authority: &Authority,
    serial: &str,
    reason: &str,
) -> Result<bool, CaError> {
    let issued = super::issue::by_serial(work, authority, serial)?.ok_or_else(|| {
        CaError::NotFound(format!(
            "Could not find a certificate with serial number {serial} issued by {}",
            authority.arn()
        ))
    })?;
    let place = revoked_place(authority.scope(), authority.id(), serial);
    if work.exists(&place)? {
        return Ok(false);
    }
    let certificate = Certificate::parse_one(issued.certificate.as_bytes())
        .map_err(|_| Fault::Damaged(place.clone()))?;
    let revoked = Revoked {
        reason: reason.to_owned(),
        revoked_ms: work.now_ms(),
        not_after: certificate.not_after(),
    };
    work.put(&place, &revoked)?;
    // Both are written without being read: revocations of one authority do not meet each other here.
    if authority.revocation().crl.is_some() {
        crl::mark_revoked(work, authority, &hex::decode(serial).unwrap_or_default())?;
    }
    ocsp::put_epoch(work, authority.scope(), authority.id())?;
    Ok(true)
}

/// Follows an authority that is being saved: what must be made or no longer be made because of its state and its
/// configuration is due from now on.
pub(super) fn follow(work: &mut Work<'_>, authority: &Authority) -> Result<(), Fault> {
    let working = authority.certificate().is_some() && authority.status() != Status::Deleted;
    let revocation = authority.revocation();
    let crl = crl::follow(work, authority, revocation.crl.as_ref().filter(|_| working))?;
    let ocsp = ocsp::follow(work, authority, working && revocation.ocsp.is_some())?;
    if crl || ocsp {
        let scope = authority.scope();
        let served = Served {
            account: scope.account.clone(),
            region: scope.region.clone(),
            named_by: ocsp::index(work, authority)?,
        };
        work.put(&served_place(authority.id()), &served)?;
        ocsp::put_epoch(work, scope, authority.id())?;
    }
    Ok(())
}

/// Forgets all that was made for an authority that is erased.
pub(super) fn forget(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
    swept: &mut Swept,
) -> Result<(), Fault> {
    crl::forget(work, scope, id);
    responder::forget(work, scope, id, swept)?;
    work.delete(&ocsp::epoch_place(scope, id));
    if let Some(served) = work.get::<Served>(&served_place(id))? {
        served.named_by.iter().for_each(|place| work.delete(place));
        work.delete(&served_place(id));
    }
    Ok(())
}

/// The certificate (DER) of an authority that has CRLs or OCSP, by its id alone.
pub fn authority_certificate(work: &mut Work<'_>, id: &str) -> Result<Option<Vec<u8>>, Fault> {
    let Some(served) = work.get::<Served>(&served_place(id))? else { return Ok(None) };
    let authority = authority_by_id(work, &served.scope(), id)?;
    Ok(authority
        .filter(|found| found.status() != Status::Deleted)
        .and_then(|found| found.certificate().map(|certificate| certificate.der().to_vec())))
}

/// The authority with this id, if there is one.
pub(super) fn authority_by_id(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
) -> Result<Option<Authority>, Fault> {
    let arn = scope.arn("acm-pca", &format!("certificate-authority/{id}"));
    match super::find(work, scope, &arn) {
        Ok(authority) => Ok(Some(authority)),
        Err(CaError::Fault(fault)) => Err(fault),
        Err(_) => Ok(None),
    }
}

/// Account, region and id at the end of a place, and what follows.
pub(super) fn parts<'a>(place: &'a str, prefix: &str) -> Option<(Scope, &'a str, &'a str)> {
    let mut parts = place.strip_prefix(prefix)?.splitn(4, '/');
    let scope = Scope { account: parts.next()?.into(), region: parts.next()?.into() };
    Some((scope, parts.next()?, parts.next().unwrap_or_default()))
}

/// Where an authority lives whose id is in a URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Served {
    account: String,
    region: String,
    /// Where it is found by what OCSP calls it.
    named_by: Vec<String>,
}

impl Served {
    pub(super) fn scope(&self) -> Scope {
        Scope { account: self.account.clone(), region: self.region.clone() }
    }
}

/// Whether, when and why a certificate was revoked; `serial` in lower-case hexadecimal.
pub fn revoked(
    work: &mut Work<'_>,
    authority: &Authority,
    serial: &str,
) -> Result<Option<Revoked>, CaError> {
    Ok(work.get(&revoked_place(authority.scope(), authority.id(), serial))?)
}

/// Lower-case hexadecimal without colons and leading zeros, as issued certificates are filed.
pub fn canonical_serial(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    let digits = digits.to_ascii_lowercase();
    let digits = digits.trim_start_matches("0x").trim_start_matches("00");
    let even = if digits.len() % 2 == 1 { format!("0{digits}") } else { digits.to_owned() };
    let valid = (1..=40).contains(&even.len()) && even.bytes().all(|byte| byte.is_ascii_hexdigit());
    valid.then_some(even)
}

pub(super) fn revoked_prefix(scope: &Scope, id: &str) -> String {
    format!("ca/revoked/{}/{}/{id}/", scope.account, scope.region)
}

pub(super) fn revoked_place(scope: &Scope, id: &str, serial: &str) -> String {
    format!("{}{serial}", revoked_prefix(scope, id))
}

fn served_place(id: &str) -> String {
    format!("ca/served/{id}")
}

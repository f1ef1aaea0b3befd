//! Revocation: what an authority's configuration says, and the certificates that are revoked.

use outlast_pki::certificate::Certificate;
use serde::{Deserialize, Serialize};

use super::CaError;
use super::authority::{Authority, Status};
use crate::arn::Scope;
use crate::identity::Allowed;
use crate::work::Work;

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

/// When an authority's CRLs must be made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CrlDue {
    /// Milliseconds since 1970.
    pub(super) due_ms: i64,
}

/// Revokes a certificate by its serial number, in hexadecimal with or without colons; and with it the one that was
/// issued together with it.
pub fn revoke(
    work: &mut Work<'_>,
    authority: &Authority,
    serial: &str,
    reason: &str,
    _: &Allowed,
) -> Result<(), CaError> {
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
        .map_err(|_| crate::Fault::Damaged(place.clone()))?;
    let revoked = Revoked {
        reason: reason.to_owned(),
        revoked_ms: work.now_ms(),
        not_after: certificate.not_after(),
    };
    work.put(&place, &revoked)?;
    if authority.revocation().crl.is_some() {
        // Written without being read: revocations of one authority do not meet each other here.
        let due = CrlDue { due_ms: work.now_ms() };
        work.put(&crl_due_place(authority.scope(), authority.id()), &due)?;
    }
    Ok(true)
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

fn revoked_place(scope: &Scope, id: &str, serial: &str) -> String {
    format!("{}{serial}", revoked_prefix(scope, id))
}

pub(super) fn crl_due_place(scope: &Scope, id: &str) -> String {
    format!("ca/crl-due/{}/{}/{id}", scope.account, scope.region)
}

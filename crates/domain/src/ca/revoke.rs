//! Revokes certificates.

use outlast_pki::certificate::Certificate;

use super::authority::{Authority, Status};
use super::issued::by_serial;
use super::revocation::{Revoked, canonical_serial, revoked_record_key};
use super::{CaError, crl, epoch, told};
use crate::identity::{Permit, action};
use crate::work::Work;
use crate::{Fault, events};

/// The permits to revoke a certificate, and its partner.
#[derive(Clone, Copy)]
pub struct RevokeAt<'a> {
    /// At its authority.
    pub authority: &'a Permit<action::acm_pca::RevokeCertificate>,
    /// At the authority of the partner certificate, if there is one.
    pub partner: Option<&'a Permit<action::acm_pca::RevokeCertificate>>,
}

/// Revokes a certificate by its serial number, in hexadecimal with or without colons; and its partner, if it was
/// issued as one of a pair.
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
        return Err(CaError::AlreadyProcessed("The certificate is already revoked.".into()));
    }
    if let Some((partner, serial)) = super::paired(work, authority, &serial)? {
        Permit::required(at.partner, &partner.arn())?;
        revoke_one(work, &partner, &serial, reason)?;
    }
    Ok(())
}

/// Revokes a certificate, unless it is revoked already.
fn revoke_one(
    work: &mut Work<'_>,
    authority: &Authority,
    serial: &str,
    reason: &str,
) -> Result<bool, CaError> {
    let issued = by_serial(work, authority, serial)?.ok_or_else(|| {
        CaError::NotFound(format!(
            "Could not find a certificate with serial number {serial} issued by {}",
            authority.arn()
        ))
    })?;
    let record_key = revoked_record_key(authority.scope(), authority.id(), serial);
    if work.exists(&record_key)? {
        return Ok(false);
    }
    let certificate = Certificate::parse_one(issued.certificate.as_bytes())
        .map_err(|_| Fault::Damaged(record_key.clone()))?;
    let revoked = Revoked {
        reason: reason.to_owned(),
        revoked_ms: work.now_ms(),
        not_after: certificate.not_after(),
    };
    work.put(&record_key, &revoked)?;
    // Both are written without being read, so that revocations by one authority do not conflict here.
    if authority.revocation().crl.is_some() {
        crl::mark_revoked(work, authority, &hex::decode(serial).unwrap_or_default())?;
    }
    epoch::put(work, authority.scope(), authority.id())?;
    let (arn, certificate) = (authority.arn(), format!("{}/certificate/{serial}", authority.arn()));
    told::tell_success(work, &events::CERTIFICATE_REVOCATION, &arn, Some(certificate))?;
    Ok(true)
}

//! Revokes certificates at their private CA, and notes what a CA has revoked by itself.

use super::certificate::{Certificate, Revoked, by_serial, due_record_key};
use super::{AcmError, told};
use crate::Fault;
use crate::ca::{self, Authority, CaError, RevokeAt};
use crate::identity::{Permit, action};
use crate::work::Work;

/// Reasons for a revocation: Certificate Manager's name and Private CA's.
pub const REASONS: &[(&str, &str)] = &[
    ("UNSPECIFIED", "UNSPECIFIED"),
    ("KEY_COMPROMISE", "KEY_COMPROMISE"),
    ("CA_COMPROMISE", "CERTIFICATE_AUTHORITY_COMPROMISE"),
    ("AFFILIATION_CHANGED", "AFFILIATION_CHANGED"),
    // AWS has both spellings.
    ("SUPERSEDED", "SUPERSEDED"),
    ("SUPERCEDED", "SUPERSEDED"),
    ("CESSATION_OF_OPERATION", "CESSATION_OF_OPERATION"),
    ("PRIVILEGE_WITHDRAWN", "PRIVILEGE_WITHDRAWN"),
    ("A_A_COMPROMISE", "A_A_COMPROMISE"),
];

/// Revokes a certificate at its private CA. `reason` is in Certificate Manager's spelling.
pub fn revoke(
    work: &mut Work<'_>,
    mut certificate: Certificate,
    authority: &Authority,
    reason: &str,
    permit: &Permit<action::acm::RevokeCertificate>,
    at: RevokeAt<'_>,
) -> Result<(), AcmError> {
    permit.opens(&certificate.arn())?;
    let Some((_, name)) = REASONS.iter().find(|(name, _)| *name == reason) else {
        return Err(AcmError::Validation(format!(
            "A private CA cannot revoke for the reason {reason}: certificates cannot be put on hold."
        )));
    };
    if !certificate.record.is_issued() {
        return Err(AcmError::Conflict(format!(
            "The certificate {} has not been issued.",
            certificate.arn()
        )));
    }
    if certificate.record.revoked.is_some() {
        return Err(AcmError::Conflict(format!(
            "The certificate {} is already revoked.",
            certificate.arn()
        )));
    }
    let serial = certificate.record.details.serial.clone();
    match ca::revoke(work, authority, &serial, name, at) {
        // Private CA revoked it before, and it was not noted here.
        Ok(()) | Err(CaError::AlreadyProcessed(_)) => {}
        Err(CaError::Fault(fault)) => return Err(fault.into()),
        Err(error) => return Err(AcmError::Conflict(error.to_string())),
    }
    mark_revoked(work, &mut certificate, reason)?;
    Ok(())
}

fn mark_revoked(
    work: &mut Work<'_>,
    certificate: &mut Certificate,
    reason: &str,
) -> Result<(), Fault> {
    let at_ms = work.now_ms();
    certificate.record.revoked = Some(Revoked { at_ms, reason: reason.to_owned() });
    // A revoked certificate is not renewed.
    work.delete(&due_record_key(&certificate.scope, &certificate.record.id));
    told::tell_revoked(work, certificate)?;
    certificate.save(work)
}

/// Notes that a private CA has revoked a certificate; does nothing if Certificate Manager does not have it. `reason`
/// is in Private CA's spelling, `serial` in lower-case hexadecimal.
pub fn note_revocation(
    work: &mut Work<'_>,
    authority: &Authority,
    serial: &str,
    reason: &str,
) -> Result<(), AcmError> {
    let Some(mut certificate) = by_serial(work, authority, serial)? else { return Ok(()) };
    if certificate.record.revoked.is_some() {
        return Ok(());
    }
    let name =
        REASONS.iter().find(|(_, known)| *known == reason).map_or("UNSPECIFIED", |row| row.0);
    Ok(mark_revoked(work, &mut certificate, name)?)
}

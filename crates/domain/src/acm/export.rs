//! Exports a certificate with its key, encrypted under a passphrase.

use outlast_crypto::keys::Form;
use outlast_crypto::{Secret, encrypted};
use outlast_pki::pem;

use super::AcmError;
use super::certificate::{self, Certificate, Origin, Text};
use super::details::{Details, requestable};
use crate::identity::{Permit, action};
use crate::work::Work;
use crate::{Fault, limits};

/// A certificate with its encrypted key.
pub struct Exported {
    /// Certificate and chain.
    pub text: Text,
    /// PKCS #8 `EncryptedPrivateKeyInfo` in PEM.
    pub private_key: String,
    /// The private key of its partner, in the same form.
    pub paired_private_key: Option<String>,
}

/// Exports a requested certificate.
///
/// ML-DSA keys have the form with both seed and expanded key (RFC 9881, section 6): AWS's Roles Anywhere helper reads
/// no other, and every reader of another form reads this one, too.
pub fn export(
    work: &mut Work<'_>,
    mut certificate: Certificate,
    passphrase: &Secret,
    permit: &Permit<action::acm::ExportCertificate>,
) -> Result<Exported, AcmError> {
    permit.opens(&certificate.arn())?;
    check_passphrase(passphrase)?;
    let refuse = |why: &str| {
        Err(AcmError::Validation(format!(
            "Certificate {} cannot be exported: {why}.",
            certificate.arn()
        )))
    };
    match certificate.record.origin {
        Origin::Managed => {}
        Origin::Imported => return refuse("it was imported"),
        Origin::Acme => return refuse("the ACME client holds its private key"),
    }
    certificate.check_issued(work.now_ms())?;
    if !certificate.record.exportable {
        return refuse("it was requested with the option Export DISABLED");
    }
    let record = &certificate.record;
    let record_keys = certificate.material_record_keys();
    let record_key = record_keys.0.ok_or_else(|| Fault::Damaged(certificate.arn()))?;
    let private_key = key_pem(work, &record_key, &record.details, passphrase)?;
    let paired_private_key = match (record_keys.1, &record.paired) {
        (Some(record_key), Some(paired)) => {
            Some(key_pem(work, &record_key, &paired.details, passphrase)?)
        }
        _ => None,
    };
    let text = certificate::text(work, &certificate.scope, &certificate.record.id)?;
    if !certificate.record.exported {
        certificate.record.exported = true;
        certificate.save(work)?;
    }
    Ok(Exported { text, private_key, paired_private_key })
}

/// Encrypts a private key under the passphrase.
fn key_pem(
    work: &mut Work<'_>,
    record_key: &str,
    details: &Details,
    passphrase: &Secret,
) -> Result<String, AcmError> {
    let damaged = || Fault::Damaged(record_key.to_owned());
    let stored = work.secret(record_key)?.ok_or_else(damaged)?;
    let spec = requestable(&details.key_algorithm).ok_or_else(damaged)?;
    let key = spec.to_form(&stored, Form::Both).or_else(|_| spec.to_pkcs8(&stored))?;
    Ok(pem::encrypted_private_key(&encrypted::encrypt_pbkdf2(&key, passphrase)?))
}

/// AWS allows any ASCII character except `#`, `$` and `%`.
fn check_passphrase(passphrase: &Secret) -> Result<(), AcmError> {
    let bytes = passphrase.expose();
    if !limits::EXPORT_PASSPHRASE.contains(&bytes.len()) {
        return Err(AcmError::Validation(format!(
            "The passphrase must have {} to {} bytes.",
            limits::EXPORT_PASSPHRASE.start(),
            limits::EXPORT_PASSPHRASE.end()
        )));
    }
    if !bytes.iter().all(|byte| byte.is_ascii() && !matches!(byte, b'#' | b'$' | b'%')) {
        return Err(AcmError::Validation(
            "The passphrase can have any ASCII character except #, $, or %.".into(),
        ));
    }
    Ok(())
}

//! Imports a certificate with its key and chain.

use outlast_crypto::Secret;
use outlast_pki::certificate::Certificate as X509;
use outlast_pki::key_forms::PrivateKey;
use outlast_pki::{object, pem};
use serde::{Deserialize, Serialize};

use super::certificate::{self, Certificate, Origin, Record, Text, imported_record_key};
use super::details::{Details, requestable};
use super::tags::{Tags, check_tags};
use super::{AcmError, told};
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::work::Work;
use crate::{ids, limits, quotas};

/// The parts of an import. There is no `Debug`: one of them is a private key.
pub struct Import<'a> {
    /// PEM.
    pub certificate: &'a [u8],
    /// PEM: PKCS #8, PKCS #1 or SEC 1, not encrypted.
    pub private_key: &'a [u8],
    /// PEM, nearest issuer first.
    pub chain: Option<&'a [u8]>,
    /// The certificate to be replaced.
    pub replaces: Option<Certificate>,
    /// Tags of a new certificate.
    pub tags: Tags,
}

/// Imports a certificate, and returns its ARN.
pub fn import(
    work: &mut Work<'_>,
    scope: &Scope,
    new: Import<'_>,
    permit: &Permit<action::acm::ImportCertificate>,
) -> Result<String, AcmError> {
    permit.opens(
        &new.replaces.as_ref().map_or_else(|| scope.arn("acm", "certificate/*"), Certificate::arn),
    )?;
    check_tags(&new.tags)?;
    let x509 = one_certificate(new.certificate)?;
    let key = private_key(new.private_key)?;
    check_pair(work, &x509, &key)?;
    let chain = match new.chain {
        None | Some([]) => Vec::new(),
        Some(bytes) => chain(bytes, &x509, work.now())?,
    };
    if chain.is_empty() && !x509.signed_by(&x509) {
        return Err(AcmError::Validation(
            "Provided certificate is not a valid self signed. Please provide either a valid self-signed certificate \
             or certificate chain."
                .into(),
        ));
    }
    let details = Details::of(&x509);
    let material = ids::hex::<8>()?;
    let now_ms = work.now_ms();
    if new.replaces.is_none() {
        let parts = [scope.account.as_str(), &scope.region];
        work.admit::<AcmError>(&quotas::IMPORTED_CERTIFICATES, &parts)?;
    }
    let action = if new.replaces.is_some() { "REIMPORT" } else { "IMPORT" };
    let record = match new.replaces {
        None => Record {
            id: ids::uuid()?,
            origin: Origin::Imported,
            domain: domain(&details),
            authority: None,
            material: Some(material),
            details,
            public: None,
            paired: None,
            created_ms: now_ms,
            issued_ms: None,
            imported_ms: Some(now_ms),
            exportable: false,
            exported: false,
            transparency: true,
            revoked: None,
            renewal: None,
            acme: None,
            tags: new.tags,
        },
        Some(old) => {
            check_replacement(&old, &details, &new.tags)?;
            old.release(work);
            Record {
                domain: domain(&details),
                material: Some(material),
                details,
                imported_ms: Some(now_ms),
                ..old.record
            }
        }
    };
    let certificate = Certificate { scope: scope.clone(), record };
    if let Some(record_key) = certificate.material_record_keys().0 {
        work.put_secret(&record_key, &key.stored)?;
    }
    let text = Text {
        certificate: pem::certificate(x509.der()),
        chain: (!chain.is_empty()).then(|| pem::chain(chain.iter().map(Vec::as_slice))),
        paired: None,
    };
    certificate::file(work, &certificate, &text)?;
    work.put(&imported_record_key(scope, &certificate.record.id), &Counted {})?;
    told::tell_available(work, &certificate, action)?;
    Ok(certificate.arn())
}

/// Marks a certificate as counted against the quota of imports.
#[derive(Serialize, Deserialize)]
struct Counted {}

/// The first DNS name, or else the common name.
fn domain(details: &Details) -> Option<String> {
    details.dns_names.first().or(details.common_name.as_ref()).cloned()
}

fn one_certificate(bytes: &[u8]) -> Result<X509, AcmError> {
    let refuse = |text: &str| AcmError::Validation(text.to_owned());
    if !object::is_pem(bytes) {
        return Err(refuse("The certificate must be PEM-encoded."));
    }
    let found = pem::read_certificates(bytes).map_err(|error| {
        AcmError::Validation(format!("The certificate cannot be read: {error}"))
    })?;
    let [der] = found.as_slice() else {
        return Err(refuse(
            "The certificate field contains more than one certificate. You can specify only one certificate in this \
             field.",
        ));
    };
    X509::parse(der).map_err(|error| AcmError::Validation(error.to_string()))
}

/// A private key with its public key.
struct ImportedKey {
    /// The private key in its stored form.
    stored: Secret,
    public_key: Vec<u8>,
}

fn private_key(bytes: &[u8]) -> Result<ImportedKey, AcmError> {
    let refuse = |text: &str| AcmError::Validation(text.to_owned());
    if !object::is_pem(bytes) {
        return Err(refuse("The private key must be PEM-encoded."));
    }
    // The error must not quote the input: it is a private key.
    let objects = object::read(bytes).map_err(|_| refuse("The private key cannot be read."))?;
    let [object] = objects.as_slice() else {
        return Err(refuse("The private key field must contain one private key and nothing else."));
    };
    match object.kind {
        object::Kind::EncryptedPrivateKey | object::Kind::LegacyEncryptedKey => {
            return Err(refuse("The private key must not be encrypted."));
        }
        kind if !kind.is_bare_private_key() => {
            return Err(refuse("The private key field does not contain a private key."));
        }
        _ => {}
    }
    let key = PrivateKey::read(object).map_err(|error| {
        AcmError::Validation(format!("The private key is not supported: {error}"))
    })?;
    let supported = requestable(key.spec.pca_name.unwrap_or_default());
    let spec = supported.ok_or_else(|| {
        AcmError::Validation(format!("{} keys are not supported.", key.spec.name))
    })?;
    let pkcs8 = key.to_pkcs8().map_err(|error| AcmError::Validation(error.to_string()))?;
    let imported = spec.import(pkcs8.expose())?;
    Ok(ImportedKey { stored: imported.stored, public_key: key.public_key })
}

fn check_pair(work: &Work<'_>, x509: &X509, key: &ImportedKey) -> Result<(), AcmError> {
    let refuse = |text: String| Err(AcmError::Validation(text));
    if x509.issuer().is_empty() {
        return refuse("The issuer of the certificate must not be empty.".into());
    }
    let now = work.now();
    if x509.not_before() > now || x509.not_after() < now {
        return refuse(format!(
            "The certificate is not valid now: it is valid from {} to {}.",
            outlast_pki::time::rfc3339(x509.not_before()),
            outlast_pki::time::rfc3339(x509.not_after())
        ));
    }
    if x509.public_key().ok().as_ref() != Some(&key.public_key) {
        return refuse("The private key does not match the certificate's public key.".into());
    }
    Ok(())
}

/// The certificates of a chain, each of which has signed the one before.
fn chain(bytes: &[u8], x509: &X509, now: i64) -> Result<Vec<Vec<u8>>, AcmError> {
    if !object::is_pem(bytes) {
        return Err(AcmError::Validation("The certificate chain must be PEM-encoded.".into()));
    }
    let chain = pem::read_certificates(bytes).map_err(|error| {
        AcmError::Validation(format!("The certificate chain cannot be read: {error}"))
    })?;
    if chain.len() > limits::MAX_CHAIN {
        return Err(AcmError::LimitExceeded(format!(
            "The certificate chain can have {} certificates at most.",
            limits::MAX_CHAIN
        )));
    }
    let mut below = x509.clone();
    for (index, der) in chain.iter().enumerate() {
        let issuer = X509::parse(der).map_err(|error| AcmError::Validation(error.to_string()))?;
        let valid = (issuer.not_before()..=issuer.not_after()).contains(&now);
        if !issuer.may_issue() || !valid || !below.signed_by(&issuer) {
            return Err(AcmError::Validation(format!(
                "Unable to validate certificate chain. The certificate chain must start with the immediate signing \
                 certificate, followed by any intermediaries in order. The index within the chain of the invalid \
                 certificate is: {index}"
            )));
        }
        below = issuer;
    }
    Ok(chain)
}

/// Properties that must stay the same when a certificate replaces another (AWS: "Reimporting a certificate").
fn check_replacement(old: &Certificate, new: &Details, tags: &Tags) -> Result<(), AcmError> {
    let refuse = |text: &str| Err(AcmError::Validation(text.to_owned()));
    let before = &old.record.details;
    if old.record.origin != Origin::Imported {
        return refuse(
            "Only a certificate that was imported can be replaced by importing another.",
        );
    }
    if !tags.is_empty() {
        return Err(AcmError::InvalidParameter(
            "You cannot apply tags when reimporting a certificate.".into(),
        ));
    }
    if before.key_algorithm != new.key_algorithm {
        return refuse(
            "The type and size of the key cannot be changed when reimporting a certificate.",
        );
    }
    if !before.dns_names.is_empty() && new.dns_names.is_empty() {
        return refuse("Not all domain names can be removed when reimporting a certificate.");
    }
    if !before.key_usages.iter().all(|usage| new.key_usages.contains(usage)) {
        return refuse("A key usage cannot be removed when reimporting a certificate.");
    }
    let kept = |purpose: &(String, String)| new.extended_key_usages.contains(purpose);
    if !before.extended_key_usages.iter().all(kept) {
        return refuse("An extended key usage cannot be removed when reimporting a certificate.");
    }
    Ok(())
}

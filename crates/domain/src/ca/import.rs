//! Installs an authority's certificate, which makes the authority active.

use outlast_pki::certificate::Certificate;
use outlast_pki::pem;

use super::CaError;
use super::authority::{Authority, Kind, Status};
use crate::identity::{Permit, action};
use crate::keyring::KeyRing;
use crate::limits;
use crate::work::Work;

/// Installs the certificate (PEM or DER) and chain (PEM, nearest issuer first) of an authority.
pub fn import_certificate(
    work: &mut Work<'_>,
    ring: &KeyRing,
    mut authority: Authority,
    certificate: &[u8],
    chain: Option<&[u8]>,
    permit: &Permit<action::acm_pca::ImportCertificateAuthorityCertificate>,
) -> Result<(), CaError> {
    permit.opens(&authority.arn())?;
    let malformed = |error: outlast_pki::PkiError| CaError::MalformedCertificate(error.to_string());
    let invalid = |text: &str| Err(CaError::InvalidRequest(text.to_owned()));
    match authority.status() {
        Status::PendingCertificate | Status::Active | Status::Disabled | Status::Expired => {}
        Status::Deleted => return Err(authority.state_error("is deleted")),
    }
    let certificate = Certificate::parse_one(certificate).map_err(malformed)?;
    let key = authority.load_key(work, ring)?;
    let same_key = certificate.public_key().ok().as_deref() == key.public_key();
    if !same_key || certificate.subject() != &authority.subject().to_name()? {
        return Err(CaError::CertificateMismatch(
            "The certificate does not match the certificate authority's request: its public key or its subject differs."
                .into(),
        ));
    }
    let is_ca = certificate.basic_constraints().is_some_and(|constraints| constraints.ca)
        && certificate.key_usage().is_some_and(|(_, usage)| usage.key_cert_sign());
    if !is_ca {
        return Err(CaError::MalformedCertificate(
            "The certificate is not a CA's: it needs basicConstraints with CA:TRUE and keyUsage \
             with keyCertSign."
                .into(),
        ));
    }
    if certificate.not_after() <= work.now() {
        return invalid("The certificate has expired.");
    }
    let issuers = match chain {
        None | Some([]) => Vec::new(),
        Some(bytes) => pem::read_certificates(bytes).map_err(malformed)?,
    };
    match authority.kind() {
        Kind::Root if !issuers.is_empty() => {
            return invalid("A root CA's certificate is imported without a chain.");
        }
        Kind::Root if !certificate.signed_by(&certificate) => {
            return Err(CaError::MalformedCertificate(
                "A root CA's certificate must be signed by its own key.".into(),
            ));
        }
        Kind::Subordinate if issuers.is_empty() => {
            return invalid("A subordinate CA's certificate is imported with its chain.");
        }
        _ => {}
    }
    if issuers.len() > limits::MAX_CHAIN {
        return invalid("The chain is too long.");
    }
    let mut below = certificate.clone();
    for (index, der) in issuers.iter().enumerate() {
        let issuer = Certificate::parse(der).map_err(malformed)?;
        let room = issuer.path_len().is_none_or(|limit| limit > index);
        let valid = (issuer.not_before()..=issuer.not_after()).contains(&work.now());
        if !issuer.may_issue() || !room || !valid {
            return Err(CaError::MalformedCertificate(format!(
                "\"{}\" in the chain may not issue this certificate: it is not a CA, its path length is used up, or it \
                 is not valid now.",
                issuer.subject()
            )));
        }
        if !below.signed_by(&issuer) {
            return Err(CaError::MalformedCertificate(format!(
                "The chain is not in order: \"{}\" is not signed by \"{}\".",
                below.subject(),
                issuer.subject()
            )));
        }
        below = issuer;
    }
    if !below.signed_by(&below) {
        return Err(CaError::MalformedCertificate(
            "The chain does not end with a root certificate.".into(),
        ));
    }
    authority.set_certificate(work, &certificate, &issuers)?;
    let status = match authority.status() {
        Status::Disabled => Status::Disabled,
        _ => Status::Active,
    };
    authority.save(work, status)?;
    Ok(())
}

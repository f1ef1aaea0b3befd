//! Requests a certificate from a private CA: Certificate Manager makes the key and keeps it.

use std::collections::BTreeMap;

use outlast_crypto::keys::KeySpec;
use outlast_pki::general_name::GeneralName;

use super::certificate::{Certificate, Origin, Record};
use super::details::{Details, requestable};
use super::leaf::{Issuers, default_key};
use super::tags::check_tags;
use super::{AcmError, TokenUse, obtain, refused_by_authority, told};
use crate::arn::Scope;
use crate::ca::{self, Authority};
use crate::identity::{Permit, action};
use crate::keyring::KeyRing;
use crate::work::Work;
use crate::{ids, limits};

/// The request.
pub struct NewCertificate<'a> {
    /// The CAs that issue.
    pub issuers: Issuers<'a>,
    /// `DomainName`
    pub domain: String,
    /// `SubjectAlternativeNames`
    pub names: Vec<String>,
    /// `KeyAlgorithm`, if given.
    pub key_algorithm: Option<&'a str>,
    /// `Options.Export`
    pub exportable: bool,
    /// `Options.CertificateTransparencyLoggingPreference`
    pub transparency: bool,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Idempotency token.
    pub token: Option<&'a str>,
    /// Digest of the whole request; it tells two uses of a token apart.
    pub request_digest: String,
}

/// The partner of an authority, if its tag names one: then each request makes two certificates.
pub fn partner(work: &mut Work<'_>, authority: &Authority) -> Result<Option<Authority>, AcmError> {
    if !authority.tags().contains_key(ca::PARTNER_TAG) {
        return Ok(None);
    }
    ca::partner(work, authority).map(Some).map_err(refused_by_authority)
}

/// Has a certificate issued, and returns its ARN.
pub fn request(
    work: &mut Work<'_>,
    ring: &KeyRing,
    scope: &Scope,
    new: NewCertificate<'_>,
    permit: &Permit<action::acm::RequestCertificate>,
) -> Result<String, AcmError> {
    permit.opens(&scope.arn("acm", "certificate/*"))?;
    let token = new.token.map(|token| TokenUse::new(scope, "request", token, &new.request_digest));
    if let Some(token) = &token
        && let Some(arn) = token.earlier(work, AcmError::InvalidParameter)?
    {
        return Ok(arn);
    }
    let names = all_names(&new.domain, &new.names)?;
    check_tags(&new.tags)?;
    let specs = key_specs(&new.issuers, new.key_algorithm)?;
    let leaves = new
        .issuers
        .certify(work, ring, specs, &names, &scope.account)
        .map_err(refused_by_authority)?;
    let record = Record {
        id: ids::uuid()?,
        origin: Origin::Managed,
        domain: Some(new.domain),
        authority: Some(new.issuers.authority.0.arn()),
        material: None,
        details: Details::of(&leaves.own.certificate),
        public: None,
        paired: None,
        created_ms: work.now_ms(),
        issued_ms: Some(work.now_ms()),
        imported_ms: None,
        exportable: new.exportable,
        exported: false,
        transparency: new.transparency,
        revoked: None,
        renewal: None,
        acme: None,
        tags: new.tags,
    };
    let mut certificate = Certificate { scope: scope.clone(), record };
    certificate.take(work, leaves, &new.issuers)?;
    obtain::schedule(work, &certificate)?;
    told::tell_available(work, &certificate, "ISSUANCE")?;
    let arn = certificate.arn();
    if let Some(token) = token {
        token.remember(work, &arn)?;
    }
    Ok(arn)
}

/// `DomainName` and the other names, each once, whatever its case.
pub(super) fn all_names(domain: &str, others: &[String]) -> Result<Vec<String>, AcmError> {
    if domain.len() > limits::MAX_COMMON_NAME {
        return Err(AcmError::InvalidParameter(format!(
            "The first domain name can be no longer than {} characters.",
            limits::MAX_COMMON_NAME
        )));
    }
    let mut names = vec![domain.to_owned()];
    for name in others {
        if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            names.push(name.clone());
        }
    }
    if names.len() > limits::MAX_CERTIFICATE_NAMES {
        return Err(AcmError::LimitExceeded(format!(
            "A certificate has at most {} domain names.",
            limits::MAX_CERTIFICATE_NAMES
        )));
    }
    for name in &names {
        GeneralName::DnsName(name.clone())
            .check()
            .map_err(|error| AcmError::InvalidParameter(error.to_string()))?;
    }
    Ok(names)
}

/// The key types of the certificate and of its partner.
fn key_specs(
    issuers: &Issuers<'_>,
    asked: Option<&str>,
) -> Result<(&'static KeySpec, Option<&'static KeySpec>), AcmError> {
    let find = |name: &str| {
        requestable(name).ok_or_else(|| {
            AcmError::InvalidParameter(format!(
                "Certificates with {name} keys cannot be requested."
            ))
        })
    };
    let own = find(asked.unwrap_or_else(|| default_key(issuers.authority.0)))?;
    let paired = issuers.partner.map(|(partner, _)| find(default_key(partner))).transpose()?;
    Ok((own, paired))
}

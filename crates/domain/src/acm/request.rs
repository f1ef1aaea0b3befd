//! Requesting a certificate from a private CA: Certificate Manager makes the key and keeps it.

use std::collections::BTreeMap;

use outlast_crypto::Secret;
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::{Family, Message};
use outlast_pki::certificate::Certificate as X509;
use outlast_pki::extensions::subject_alternative_names;
use outlast_pki::general_name::GeneralName;
use outlast_pki::{csr, name};

use super::certificate::{self, Certificate, Origin, Record, Text};
use super::details::{Details, requestable};
use super::tags::check_tags;
use super::{AcmError, TokenUse, refused_by_authority, renew};
use crate::arn::Scope;
use crate::ca::{Authority, CaError, Validity, ValidityType};
use crate::identity::Allowed;
use crate::keyring::KeyRing;
use crate::work::Work;
use crate::{Fault, ids, limits};

/// What is asked for.
pub struct NewCertificate<'a> {
    /// Who issues it.
    pub authority: &'a Authority,
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
    /// Digest of the whole request, to tell apart two uses of a token.
    pub request_digest: String,
}

/// Has a certificate issued, and gives its ARN. `at_authority` is for issuing there.
pub fn request(
    work: &mut Work<'_>,
    ring: &KeyRing,
    scope: &Scope,
    new: NewCertificate<'_>,
    _: &Allowed,
    at_authority: &Allowed,
) -> Result<String, AcmError> {
    let token = new.token.map(|token| TokenUse::new(scope, "request", token, &new.request_digest));
    if let Some(token) = &token
        && let Some(arn) = token.earlier(work, AcmError::InvalidParameter)?
    {
        return Ok(arn);
    }
    let names = all_names(&new.domain, &new.names)?;
    check_tags(&new.tags)?;
    let spec = key_spec(new.authority, new.key_algorithm)?;
    let leaf = leaf(work, ring, new.authority, spec, &names, at_authority)
        .map_err(refused_by_authority)?;
    let record = Record {
        id: ids::uuid()?,
        origin: Origin::Managed,
        domain: Some(new.domain),
        authority: Some(new.authority.arn()),
        material: Some(ids::hex::<8>()?),
        details: Details::of(&leaf.certificate),
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
    let certificate = Certificate { scope: scope.clone(), record };
    if let Some(place) = certificate.material_place() {
        work.put_secret(&place, &leaf.stored)?;
    }
    certificate::file(work, &certificate, &leaf.text)?;
    renew::schedule(work, &certificate)?;
    let arn = certificate.arn();
    if let Some(token) = token {
        token.remember(work, &arn)?;
    }
    Ok(arn)
}

/// `DomainName` and the others, each once whatever its case.
fn all_names(domain: &str, others: &[String]) -> Result<Vec<String>, AcmError> {
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

/// The type of key that is asked for. When it is not said, AWS's default goes with classical CAs; from a post-quantum
/// CA comes a post-quantum certificate.
fn key_spec(authority: &Authority, asked: Option<&str>) -> Result<&'static KeySpec, AcmError> {
    let name = asked.unwrap_or_else(|| match authority.algorithm().family {
        Family::Rsa | Family::Ec => "RSA_2048",
        Family::MlDsa => authority.spec().pca_name.unwrap_or("ML_DSA_65"),
        _ => "ML_DSA_65",
    });
    requestable(name).ok_or_else(|| {
        AcmError::InvalidParameter(format!("Certificates with {name} keys cannot be requested."))
    })
}

/// A new key with its certificate.
pub(super) struct Leaf {
    /// The key in its stored form.
    pub(super) stored: Secret,
    pub(super) certificate: X509,
    pub(super) text: Text,
}

/// Makes a key and has the authority certify it for these names.
pub(super) fn leaf(
    work: &mut Work<'_>,
    ring: &KeyRing,
    authority: &Authority,
    spec: &KeySpec,
    names: &[String],
    allowed: &Allowed,
) -> Result<Leaf, CaError> {
    let stored = spec.generate()?;
    let request = request_for(spec, &stored, names)?;
    let end = certificate::end(work, authority, None);
    let validity = Validity { value: end, kind: ValidityType::Absolute };
    let issued = certificate::issue(work, ring, authority, &request, (None, validity), allowed)?;
    let (certificate, text) = certificate::read(authority, issued)?;
    Ok(Leaf { stored, certificate, text })
}

/// A certificate request in DER for these names, signed with its own key.
fn request_for(spec: &KeySpec, stored: &Secret, names: &[String]) -> Result<Vec<u8>, Fault> {
    let unusable = || Fault::Encoding(format!("{} keys sign no requests", spec.name));
    let key = spec.load(stored)?;
    let algorithm =
        *spec.signing.iter().find(|algorithm| algorithm.oid.is_some()).ok_or_else(unusable)?;
    let public_key = key.public_key().ok_or_else(unusable)?;
    let common_name = names.first().map(String::as_str).unwrap_or_default();
    let subject = name::common_name(common_name)?;
    let alternatives: Vec<_> = names.iter().cloned().map(GeneralName::DnsName).collect();
    let extension = subject_alternative_names(&alternatives, false)?;
    let unsigned = csr::Unsigned::new(subject, public_key, vec![extension])?;
    let signature = key.sign(algorithm, Message::Raw(&unsigned.to_be_signed))?;
    Ok(unsigned.assemble(algorithm, &signature)?)
}

//! Paired certificates: a classical one and a post-quantum one for the same names, issued by two authorities in one
//! step, and revoked in one.
//!
//! Beyond AWS. An authority names its partner with the tag [`PARTNER_TAG`].

use outlast_crypto::signatures::Family;
use outlast_pki::csr::CertificateRequest;
use outlast_pki::public_key;
use outlast_pki::templates::{Kind as TemplateKind, SUBJECT_ALT_NAME};

use super::authority::{Authority, Status, find};
use super::issue::{NewCertificate, Requester, check_ready, make, read_request, token};
use super::issued::by_serial;
use super::{CaError, Passthrough, canonical_serial, earlier_result, remember};
use crate::arn::current;
use crate::identity::{Permit, action};
use crate::keyring::KeyRing;
use crate::work::Work;

/// The tag of an authority whose value is the ARN of its partner.
pub const PARTNER_TAG: &str = "outlast:paired-certificate-authority";

/// The ARNs of two certificates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The certificate of the authority that was asked.
    pub certificate: String,
    /// The certificate of its partner.
    pub paired: String,
}

/// The partner that an authority's tag names: in its own account and region, and of the other kind.
pub fn partner(work: &mut Work<'_>, authority: &Authority) -> Result<Authority, CaError> {
    let Some(arn) = authority.tags().get(PARTNER_TAG) else {
        return Err(CaError::InvalidArgs(format!(
            "The certificate authority {} has no partner: set its tag {PARTNER_TAG} to the partner's ARN.",
            authority.arn()
        )));
    };
    let partner = find(work, authority.scope(), &current(arn))?;
    if partner.scope() != authority.scope() {
        return Err(CaError::InvalidArgs(
            "The partner of a certificate authority must be in its account and region.".into(),
        ));
    }
    if is_quantum_safe(partner.spec().signing.first().map(|row| row.family))
        == is_quantum_safe(authority.spec().signing.first().map(|row| row.family))
    {
        return Err(CaError::InvalidArgs(
            "Of a certificate authority and its partner, one must be classical and the other post-quantum.".into(),
        ));
    }
    Ok(partner)
}

type MayIssue = Permit<action::acm_pca::IssueCertificate>;

/// Issues both certificates, or none. The partner issues for `request`, a second request for the same names, from the
/// same template and for the same period, with its own algorithm.
pub fn issue_pair(
    work: &mut Work<'_>,
    ring: &KeyRing,
    (authority, partner): (&Authority, &Authority),
    new: NewCertificate<'_>,
    request: &[u8],
    requester: Requester<'_>,
    (permit, at_partner): (&MayIssue, &MayIssue),
) -> Result<Pair, CaError> {
    permit.opens(&authority.arn())?;
    at_partner.opens(&partner.arn())?;
    if new.template.kind != TemplateKind::EndEntity {
        return Err(CaError::InvalidArgs(
            "Paired certificates are for end entities: use an end-entity template.".into(),
        ));
    }
    check_ready(authority, &new)?;
    if partner.status() != Status::Active {
        return Err(partner.state_error("cannot issue the paired certificate"));
    }
    let token = token(authority, &new, requester);
    if let Some(token) = &token
        && let Some(certificate) = earlier_result(work, token, &new.request_digest)?
    {
        let serial = certificate.rsplit('/').next().unwrap_or_default();
        let issued = by_serial(work, authority, serial)?;
        let paired = issued.and_then(|issued| issued.paired_with).unwrap_or_default();
        return Ok(Pair { certificate, paired });
    }
    let second = NewCertificate {
        request,
        algorithm: partner.algorithm(),
        template: new.template,
        passthrough: Passthrough {
            subject: new.passthrough.subject.clone(),
            extensions: new.passthrough.extensions.clone(),
        },
        named: new.named.clone(),
        validity: new.validity,
        not_before: new.not_before,
        token: None,
        request_digest: String::new(),
    };
    check_ready(partner, &second)?;
    let requests =
        (read_request(work, authority, new.request)?, read_request(work, partner, request)?);
    check_same(&requests.0, &requests.1)?;
    check_kind(authority, &requests.0)?;
    check_kind(partner, &requests.1)?;
    let made = make(work, ring, authority, &new, requests.0)?;
    let paired = make(work, ring, partner, &second, requests.1)?;
    let pair = Pair { certificate: made.arn(authority), paired: paired.arn(partner) };
    made.save(work, authority, &new, requester, Some(pair.paired.clone()))?;
    paired.save(work, partner, &second, requester, Some(pair.certificate.clone()))?;
    if let Some(token) = token {
        remember(work, &token, &new.request_digest, &pair.certificate)?;
    }
    Ok(pair)
}

/// The authority and serial number of the other certificate of the pair, if there is one and its authority still
/// exists.
pub fn paired(
    work: &mut Work<'_>,
    authority: &Authority,
    serial: &str,
) -> Result<Option<(Authority, String)>, CaError> {
    let Some(serial) = canonical_serial(serial) else { return Ok(None) };
    let Some(arn) = by_serial(work, authority, &serial)?.and_then(|issued| issued.paired_with)
    else {
        return Ok(None);
    };
    let Some((owner, serial)) = arn.split_once("/certificate/") else { return Ok(None) };
    match find(work, authority.scope(), owner) {
        Ok(partner) => Ok(Some((partner, serial.to_owned()))),
        Err(CaError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Both requests must be for the same names.
fn check_same(one: &CertificateRequest, other: &CertificateRequest) -> Result<(), CaError> {
    let names = |request: &CertificateRequest| {
        let found = request.extensions.iter().find(|found| found.extn_id == SUBJECT_ALT_NAME);
        found.map(|found| found.extn_value.as_bytes().to_vec())
    };
    if one.subject != other.subject || names(one) != names(other) {
        return Err(CaError::MalformedCsr(
            "the two requests are not for the same names: subject and subject alternative name must be equal".into(),
        ));
    }
    Ok(())
}

/// A classical authority certifies classical keys, a post-quantum one post-quantum keys.
fn check_kind(authority: &Authority, request: &CertificateRequest) -> Result<(), CaError> {
    let kind = public_key::Kind::of(&request.public_key)
        .map_err(|error| CaError::MalformedCsr(error.to_string()))?;
    let of_authority = is_quantum_safe(authority.spec().signing.first().map(|row| row.family));
    // ML-KEM keys do not sign: they have no family.
    if is_quantum_safe(kind.family) == of_authority {
        return Ok(());
    }
    Err(CaError::MalformedCsr(format!(
        "of the pair, {} certifies {} keys, but this request has a key of type {}",
        authority.arn(),
        if of_authority { "post-quantum" } else { "classical" },
        kind.name
    )))
}

fn is_quantum_safe(family: Option<Family>) -> bool {
    !matches!(family, Some(Family::Rsa | Family::Ec | Family::Ed25519))
}

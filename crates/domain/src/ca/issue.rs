//! Issuing certificates, and reading those that were issued.

use outlast_crypto::random;
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_pki::certificate::{Certificate, Content, SERIAL_LEN};
use outlast_pki::csr::CertificateRequest;
use outlast_pki::pem;
use outlast_pki::templates::{Kind as TemplateKind, Requested, SUBJECT_ALT_NAME, Template};
use serde::{Deserialize, Serialize};

use super::authority::{Authority, Kind, Status};
use super::{CaError, Subject, Validity, earlier_result, remember, token_place};
use crate::arn::Scope;
use crate::identity::Allowed;
use crate::keyring::KeyRing;
use crate::work::Work;
use crate::{Fault, limits};

/// What a new certificate shall be.
pub struct NewCertificate<'a> {
    /// Certificate request, PEM or DER.
    pub request: &'a [u8],
    /// Algorithm to sign with; must fit the authority's key.
    pub algorithm: &'static SignatureAlgorithm,
    /// Template.
    pub template: &'static Template,
    /// What `ApiPassthrough` asks for.
    pub passthrough: Passthrough,
    /// End of validity.
    pub validity: Validity,
    /// Beginning of validity; an hour ago when absent.
    pub not_before: Option<Validity>,
    /// Idempotency token.
    pub token: Option<&'a str>,
    /// Digest of the whole request, to tell apart two uses of a token.
    pub request_digest: String,
}

/// `ApiPassthrough`: what the caller puts into the certificate, where the template lets it.
#[derive(Debug, Clone, Default)]
pub struct Passthrough {
    /// Subject, instead of the request's.
    pub subject: Option<Subject>,
    /// Extensions, each there once.
    pub extensions: Vec<Extension>,
}

/// A certificate that was issued.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Issued {
    /// PEM.
    pub certificate: String,
    /// Issuer first, root last; PEM. Absent for a root; filled in when the record is read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// Where [`super::chain`] has it, unless the record itself does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chain_id: Option<String>,
    /// Template's name.
    pub template: String,
    /// Milliseconds since 1970.
    pub issued_ms: i64,
    /// The account that asked for it, if it is not the authority's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// The service that asked for it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// ARN of the certificate that was issued with it, by the authority's partner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paired_with: Option<String>,
}

/// Issues a certificate and gives its ARN.
pub fn issue(
    work: &mut Work<'_>,
    ring: &KeyRing,
    authority: &Authority,
    new: NewCertificate<'_>,
    _: &Allowed,
) -> Result<String, CaError> {
    let template = new.template;
    let own_root = authority.kind() == Kind::Root && template.kind == TemplateKind::Root;
    let ready = match authority.status() {
        Status::Active => true,
        // A root signs its own certificate before it has one.
        Status::PendingCertificate | Status::Expired => own_root,
        Status::Disabled | Status::Deleted => false,
    };
    if !ready {
        return Err(authority.state_error("cannot issue this certificate"));
    }
    if !authority.spec().signing.contains(&new.algorithm) {
        return Err(CaError::InvalidArgs(format!(
            "the signing algorithm {} does not fit the certificate authority's key ({})",
            new.algorithm.pca_name.unwrap_or_default(),
            authority.spec().pca_name.unwrap_or_default()
        )));
    }
    let token = new
        .token
        .map(|token| token_place(authority.scope(), &format!("issue/{}", authority.id()), token));
    if let Some(token) = &token
        && let Some(arn) = earlier_result(work, token, &new.request_digest)?
    {
        return Ok(arn);
    }
    let request = CertificateRequest::parse_and_verify(new.request)
        .map_err(|error| CaError::MalformedCsr(error.to_string()))?;
    let key = authority.load_key(work, ring)?;
    let own_key = key.public_key().ok_or_else(|| Fault::Damaged(authority.arn()))?;
    check_template(authority, template, request.public_key == own_key)?;
    let (not_before, not_after) = period(work, authority, &new, own_root)?;
    let named = !request.subject.is_empty()
        || request.extensions.iter().any(|extension| extension.extn_id == SUBJECT_ALT_NAME);
    if !named || (request.subject.is_empty() && template.kind != TemplateKind::EndEntity) {
        return Err(CaError::MalformedCsr("the request names no subject".into()));
    }
    let issuer = if own_root { None } else { authority.certificate() };
    let issuer_key_id = match issuer {
        Some(certificate) => Some(match certificate.subject_key_identifier() {
            Some(id) => id,
            None => outlast_pki::certificate::key_identifier(own_key).map_err(Fault::from)?,
        }),
        None => None,
    };
    let mut extensions = template
        .extensions(&Requested {
            public_key: &request.public_key,
            issuer_key_id: issuer_key_id.as_deref(),
            csr: &request.extensions,
            api: &[],
            authority: &[],
        })
        .map_err(|error| CaError::MalformedCsr(error.to_string()))?;
    if request.subject.is_empty() {
        // RFC 5280, section 4.2.1.6: without a subject the alternative name is critical.
        for extension in &mut extensions {
            extension.critical |= extension.extn_id == SUBJECT_ALT_NAME;
        }
    }
    let serial = random::bytes::<SERIAL_LEN>()?;
    let unsigned = Content {
        serial,
        issuer: issuer.map_or_else(|| request.subject.clone(), |found| found.subject().clone()),
        subject: request.subject,
        public_key: request.public_key,
        not_before,
        not_after,
        extensions,
    }
    .prepare(new.algorithm, own_key)
    .map_err(Fault::from)?;
    let signature = key.sign(new.algorithm, Message::Raw(&unsigned.to_be_signed))?;
    let der = unsigned.assemble(&signature).map_err(Fault::from)?;
    let certificate = Certificate::parse(&der).map_err(Fault::from)?;
    let serial = hex::encode(certificate.serial());
    let issued = Issued {
        certificate: pem::certificate(&der),
        chain: if own_root { None } else { authority.chain_pem() },
        template: template.name.to_owned(),
        issued_ms: work.now_ms(),
        account: None,
        service: None,
        paired_with: None,
        chain_id: None,
    };
    work.put(&place(authority, &serial), &issued)?;
    let arn = format!("{}/certificate/{serial}", authority.arn());
    if let Some(token) = token {
        remember(work, &token, &new.request_digest, &arn)?;
    }
    Ok(arn)
}

/// The certificate with this ARN.
pub fn certificate(
    work: &mut Work<'_>,
    authority: &Authority,
    arn: &str,
    _: &Allowed,
) -> Result<Issued, CaError> {
    let invalid = || CaError::InvalidArn(format!("{arn} is not the ARN of a certificate"));
    let (owner, serial) = arn.split_once("/certificate/").ok_or_else(invalid)?;
    if serial.is_empty() || serial.len() > 40 || !serial.bytes().all(|b| b.is_ascii_hexdigit()) {
        return Err(invalid());
    }
    let missing = || CaError::NotFound(format!("Could not find Certificate with Arn {arn}"));
    if owner != authority.arn() {
        return Err(missing());
    }
    by_serial(work, authority, serial)?.ok_or_else(missing)
}

/// The certificate with this serial number, in lower-case hexadecimal.
pub(super) fn by_serial(
    work: &mut Work<'_>,
    authority: &Authority,
    serial: &str,
) -> Result<Option<Issued>, CaError> {
    Ok(work.get(&place(authority, serial))?)
}

/// Whether the authority may issue from this template at all.
fn check_template(
    authority: &Authority,
    template: &Template,
    for_own_key: bool,
) -> Result<(), CaError> {
    let refuse = |reason: &str| {
        Err(CaError::InvalidArgs(format!("The template {} {reason}", template.name)))
    };
    match template.kind {
        TemplateKind::Root if authority.kind() != Kind::Root => {
            refuse("is for root CAs, and this certificate authority is a subordinate.")
        }
        TemplateKind::Root if !for_own_key => {
            refuse("is for the certificate authority's own certificate request.")
        }
        TemplateKind::Subordinate(_) if for_own_key => {
            refuse("is not for the certificate authority's own key.")
        }
        TemplateKind::Subordinate(len) => {
            let limit = authority
                .certificate()
                .and_then(Certificate::basic_constraints)
                .and_then(|constraints| constraints.path_len_constraint);
            match limit {
                Some(limit) if len >= limit => refuse(&format!(
                    "does not fit below a certificate authority whose path length is {limit}."
                )),
                _ => Ok(()),
            }
        }
        TemplateKind::Root | TemplateKind::EndEntity => Ok(()),
    }
}

/// The certificate's period: inside the authority's own.
fn period(
    work: &Work<'_>,
    authority: &Authority,
    new: &NewCertificate<'_>,
    own_root: bool,
) -> Result<(i64, i64), CaError> {
    let now = work.now();
    let not_before = match &new.not_before {
        Some(start) => start.resolve(now)?,
        None => now - limits::BACKDATE_SECONDS,
    };
    let not_after = new.validity.resolve(now)?;
    if not_after <= not_before || not_after <= now {
        return Err(CaError::Validation(
            "The certificate's validity ends before it begins, or has ended already.".into(),
        ));
    }
    if !own_root
        && let Some(certificate) = authority.certificate()
        && not_after > certificate.not_after()
    {
        return Err(CaError::Validation(format!(
            "The certificate validity specified exceeds the certificate authority validity, which \
             ends at {}.",
            outlast_pki::time::rfc3339(certificate.not_after())
        )));
    }
    let short_lived = authority.usage_mode() == "SHORT_LIVED_CERTIFICATE" && !own_root;
    if short_lived && not_after - now > limits::SHORT_LIVED_SECONDS {
        return Err(CaError::Validation(
            "A certificate authority for short-lived certificates issues for 7 days at most."
                .into(),
        ));
    }
    Ok((not_before, not_after))
}

/// Below this are the certificates that an authority has issued, by serial number.
pub(super) fn issued_prefix(scope: &Scope, authority: &str) -> String {
    format!("ca/certificate/{}/{}/{authority}/", scope.account, scope.region)
}

fn place(authority: &Authority, serial: &str) -> String {
    format!("{}{serial}", issued_prefix(authority.scope(), authority.id()))
}

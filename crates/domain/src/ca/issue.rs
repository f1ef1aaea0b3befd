//! Issues certificates, and reads issued ones.

use outlast_crypto::random;
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_pki::certificate::{Certificate, Content, Extension, SERIAL_LEN};
use outlast_pki::csr::{CertificateRequest, Received};
use outlast_pki::extensions::subject_alternative_names;
use outlast_pki::general_name::GeneralName;
use outlast_pki::name::Name;
use outlast_pki::templates::{Kind as TemplateKind, Requested, SUBJECT_ALT_NAME, Template};
use outlast_pki::validate::names::same as same_name;
use outlast_pki::{lint, pem};

use super::authority::{Authority, Kind, Status};
use super::issued::{Issued, by_serial, record_key};
use super::{
    CaError, Subject, Validity, crl, earlier_result, names, ocsp, remember, token_record_key, told,
};
use crate::identity::{Permit, action};
use crate::keyring::KeyRing;
use crate::work::Work;
use crate::{Fault, events, limits, quotas};

/// Properties of a new certificate.
pub struct NewCertificate<'a> {
    /// Certificate request, PEM or DER.
    pub request: &'a [u8],
    /// Algorithm to sign with; must match the authority's key.
    pub algorithm: &'static SignatureAlgorithm,
    /// Template.
    pub template: &'static Template,
    /// `ApiPassthrough` of the request.
    pub passthrough: Passthrough,
    /// The names, where the request does not decide them: then only its public key is used.
    pub named: Option<Named>,
    /// End of validity.
    pub validity: Validity,
    /// Start of validity; by default an hour ago.
    pub not_before: Option<Validity>,
    /// Idempotency token.
    pub token: Option<&'a str>,
    /// Digest of the whole request; it tells two uses of a token apart.
    pub request_digest: String,
}

/// The names of a certificate, whatever request and template say.
#[derive(Debug, Clone)]
pub struct Named {
    /// Subject.
    pub subject: Name,
    /// Subject alternative names.
    pub alternative: Vec<GeneralName>,
}

/// `ApiPassthrough`: what the caller may set in the certificate, as far as the template allows it.
#[derive(Debug, Clone, Default)]
pub struct Passthrough {
    /// Subject, instead of the request's.
    pub subject: Option<Subject>,
    /// Extensions, each at most once.
    pub extensions: Vec<Extension>,
}

/// Who requests a certificate, if not the authority's own account.
#[derive(Debug, Clone, Copy, Default)]
pub struct Requester<'a> {
    /// The account; `None` for the authority's.
    pub account: Option<&'a str>,
    /// The service that requests it without a caller, such as [`super::permission::CERTIFICATE_MANAGER`].
    pub service: Option<&'a str>,
}

/// Issues a certificate for the authority's own account, and returns its ARN.
pub fn issue(
    work: &mut Work<'_>,
    ring: &KeyRing,
    authority: &Authority,
    new: NewCertificate<'_>,
    permit: &Permit<action::acm_pca::IssueCertificate>,
) -> Result<String, CaError> {
    issue_for(work, ring, authority, new, Requester::default(), permit)
}

/// Issues a certificate and returns its ARN.
pub fn issue_for(
    work: &mut Work<'_>,
    ring: &KeyRing,
    authority: &Authority,
    new: NewCertificate<'_>,
    requester: Requester<'_>,
    permit: &Permit<action::acm_pca::IssueCertificate>,
) -> Result<String, CaError> {
    permit.opens(&authority.arn())?;
    check_ready(authority, &new)?;
    let token = token(authority, &new, requester);
    if let Some(token) = &token
        && let Some(arn) = earlier_result(work, token, &new.request_digest)?
    {
        return Ok(arn);
    }
    let request = read_request(work, authority, new.request)?;
    let made = make(work, ring, authority, &new, request)?;
    let arn = made.arn(authority);
    made.save(work, authority, &new, requester, None)?;
    if let Some(token) = token {
        remember(work, &token, &new.request_digest, &arn)?;
    }
    Ok(arn)
}

/// Record key of the use of the request's token. Accounts do not see each other's.
pub(super) fn token(
    authority: &Authority,
    new: &NewCertificate<'_>,
    requester: Requester<'_>,
) -> Option<String> {
    let mut operation = format!("issue/{}", authority.id());
    if let Some(account) = requester.account {
        operation += &format!("/{account}");
    }
    new.token.map(|token| token_record_key(authority.scope(), &operation, token))
}

/// Whether the request is for a root's own certificate.
fn is_own_root(authority: &Authority, template: &Template) -> bool {
    authority.kind() == Kind::Root && template.kind == TemplateKind::Root
}

/// Checks that the authority can issue such a certificate now.
pub(super) fn check_ready(authority: &Authority, new: &NewCertificate<'_>) -> Result<(), CaError> {
    let ready = match authority.status() {
        Status::Active => true,
        // A root signs its own certificate before it has one.
        Status::PendingCertificate | Status::Expired => is_own_root(authority, new.template),
        Status::Disabled | Status::Deleted => false,
    };
    if !ready {
        return Err(CaError::InvalidState(format!(
            "The certificate authority {} is not in a valid state for issuing certificates.",
            authority.arn()
        )));
    }
    if !authority.spec().signing.contains(&new.algorithm) {
        return Err(CaError::InvalidArgs(format!(
            "the signing algorithm {} does not fit the certificate authority's key ({})",
            new.algorithm.pca_name.unwrap_or_default(),
            authority.spec().pca_name.unwrap_or_default()
        )));
    }
    let given = &new.passthrough;
    if !new.template.takes_api() && (given.subject.is_some() || !given.extensions.is_empty()) {
        return Err(CaError::InvalidArgs(format!(
            "ApiPassthrough needs a template whose name ends with _APIPassthrough or _APICSRPassthrough; {} takes \
             nothing from it.",
            new.template.name
        )));
    }
    Ok(())
}

/// Parses a request and verifies that its signer has the private key.
pub(super) fn read_request(
    work: &mut Work<'_>,
    authority: &Authority,
    bytes: &[u8],
) -> Result<CertificateRequest, CaError> {
    let malformed = |error: outlast_pki::PkiError| CaError::MalformedCsr(error.to_string());
    let statement = match Received::read(bytes).map_err(malformed)? {
        Received::Verified(request) => return Ok(*request),
        Received::Statement(statement) => statement,
    };
    // RFC 9883, section 4: the certificate that the statement names must be valid. Here it must be one of this
    // authority, which knows whether it is revoked.
    let refuse =
        |text: &str| Err(CaError::MalformedCsr(format!("the statement of possession {text}")));
    let possession = statement.possession();
    let serial = hex::encode(&possession.serial);
    if authority.certificate().is_none_or(|own| *own.subject() != possession.issuer) {
        return refuse("names a certificate of another issuer");
    }
    let Some(issued) = by_serial(work, authority, &serial)? else {
        return refuse("names a certificate that this certificate authority has not issued");
    };
    if super::revoked(work, authority, &serial)?.is_some() {
        return refuse("names a certificate that is revoked");
    }
    let signer = Certificate::parse_one(issued.certificate.as_bytes())
        .map_err(|_| Fault::Damaged(record_key(authority, &serial)))?;
    if !(signer.not_before()..=signer.not_after()).contains(&work.now()) {
        return refuse("names a certificate that is not valid now");
    }
    statement.verify_with(&signer).map_err(malformed)
}

/// A certificate that is signed and not stored yet.
pub(super) struct Made {
    serial: String,
    der: Vec<u8>,
    own_root: bool,
}

impl Made {
    /// Its ARN.
    pub(super) fn arn(&self, authority: &Authority) -> String {
        format!("{}/certificate/{}", authority.arn(), self.serial)
    }

    /// Stores it.
    pub(super) fn save(
        self,
        work: &mut Work<'_>,
        authority: &Authority,
        new: &NewCertificate<'_>,
        requester: Requester<'_>,
        paired_with: Option<String>,
    ) -> Result<(), Fault> {
        let chain_id = authority.chain_id().filter(|_| !self.own_root);
        let chain = if self.own_root || chain_id.is_some() { None } else { authority.chain_pem() };
        let issued = Issued {
            certificate: pem::certificate(&self.der),
            chain,
            chain_id: chain_id.map(str::to_owned),
            template: new.template.name.to_owned(),
            issued_ms: work.now_ms(),
            account: requester.account.map(str::to_owned),
            service: requester.service.map(str::to_owned),
            paired_with,
        };
        let (authority_arn, arn) = (authority.arn(), self.arn(authority));
        told::tell_success(work, &events::CERTIFICATE_ISSUED, &authority_arn, Some(arn))?;
        work.create(&record_key(authority, &self.serial), &issued)
    }
}

/// Builds and signs a certificate.
pub(super) fn make(
    work: &mut Work<'_>,
    ring: &KeyRing,
    authority: &Authority,
    new: &NewCertificate<'_>,
    mut request: CertificateRequest,
) -> Result<Made, CaError> {
    let template = new.template;
    let scope = authority.scope();
    let parts = [scope.account.as_str(), &scope.region, authority.id()];
    work.admit::<CaError>(&quotas::CERTIFICATES_PER_PRIVATE_CA, &parts)?;
    let own_root = is_own_root(authority, template);
    let key = authority.load_key(work, ring)?;
    let own_key = key.public_key().ok_or_else(|| Fault::Damaged(authority.arn()))?;
    check_template(authority, template, request.public_key == own_key)?;
    let (not_before, not_after) = period(work, authority, new, own_root)?;
    check_possession(&request, &new.passthrough)?;
    if let Some(named) = &new.named {
        request.subject = named.subject.clone();
        request.extensions =
            vec![subject_alternative_names(&named.alternative, false).map_err(Fault::from)?];
    }
    let subject = match &new.passthrough.subject {
        Some(subject) => subject.to_name()?,
        None => request.subject,
    };
    let issuer = if own_root { None } else { authority.certificate() };
    if issuer.is_some_and(|issuer| same_name(issuer.subject(), &subject)) {
        // RFC 5280, sections 6.1.4 and 6.3.3: a certificate with its issuer's name counts as the issuer's own. It
        // would not count for path lengths, and could sign CRLs.
        return Err(CaError::InvalidArgs(
            "The certificate's subject is that of the certificate authority itself.".into(),
        ));
    }
    let issuer_key_id = match issuer {
        Some(certificate) => Some(match certificate.subject_key_identifier() {
            Some(id) => id,
            None => outlast_pki::certificate::key_identifier(own_key).map_err(Fault::from)?,
        }),
        None => None,
    };
    let mut serial = random::bytes::<SERIAL_LEN>()?;
    // RFC 5280, section 4.1.2.2: positive, and of fixed length.
    serial[0] = (serial[0] & 0x7f) | 0x40;
    let revocation = if own_root { Vec::new() } else { revocation(authority, &serial)? };
    let mut extensions = template
        .extensions(&Requested {
            public_key: &request.public_key,
            issuer_key_id: issuer_key_id.as_deref(),
            csr: &request.extensions,
            api: &new.passthrough.extensions,
            authority: &revocation,
        })
        .map_err(|error| CaError::MalformedCsr(error.to_string()))?;
    let alternative = extensions.iter_mut().find(|found| found.extn_id == SUBJECT_ALT_NAME);
    let ca = template.kind != TemplateKind::EndEntity;
    match alternative {
        _ if !subject.is_empty() => {}
        // RFC 5280, section 4.2.1.6: without a subject the alternative name is critical.
        Some(extension) if !ca => extension.critical = true,
        _ => return Err(CaError::MalformedCsr("the request names no subject".into())),
    }
    let unsigned = Content {
        serial,
        issuer: issuer.map_or_else(|| subject.clone(), |found| found.subject().clone()),
        subject,
        public_key: request.public_key,
        not_before,
        not_after,
        extensions,
    }
    .prepare(new.algorithm, own_key)
    .map_err(Fault::from)?;
    check_profile(&unsigned.to_be_signed, new)?;
    if !own_root {
        names::check(authority, &unsigned.to_be_signed)?;
    }
    let signature = key.sign(new.algorithm, Message::Raw(&unsigned.to_be_signed))?;
    let der = unsigned.assemble(&signature).map_err(Fault::from)?;
    Ok(Made { serial: hex::encode(serial), der, own_root })
}

/// RFC 9883, section 4: a statement that another certificate vouches for the key holds for that certificate's names
/// only. The request was compared with them when it was read; names from elsewhere would not have been.
fn check_possession(request: &CertificateRequest, given: &Passthrough) -> Result<(), CaError> {
    let names = given.subject.is_some()
        || given.extensions.iter().any(|extension| extension.extn_id == SUBJECT_ALT_NAME);
    if request.possession.is_some() && names {
        return Err(CaError::InvalidArgs(
            "ApiPassthrough cannot name the subject of a request with a statement of possession: the names must be \
             those of the certificate in the statement."
                .into(),
        ));
    }
    Ok(())
}

/// Refuses a certificate that would break a rule of its profile, before it is signed.
fn check_profile(to_be_signed: &[u8], new: &NewCertificate<'_>) -> Result<(), CaError> {
    let findings = lint::to_be_signed(to_be_signed).map_err(Fault::from)?;
    let Some(finding) = lint::first_error(&findings) else { return Ok(()) };
    let message = format!("the certificate would violate {finding}");
    let given = &new.passthrough;
    if given.subject.is_some() || !given.extensions.is_empty() {
        return Err(CaError::InvalidArgs(message));
    }
    Err(CaError::MalformedCsr(message))
}

/// The CRL distribution point for the certificate with this serial number, by the authority's configuration.
fn revocation(authority: &Authority, serial: &[u8]) -> Result<Vec<Extension>, CaError> {
    let mut extensions = Vec::new();
    extensions.extend(crl::distribution_point(authority, serial)?);
    extensions.extend(ocsp::access(authority)?);
    Ok(extensions)
}

/// Checks that the authority may issue from this template.
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
        TemplateKind::Subordinate(len) => match authority.path_len()? {
            Some(limit) if usize::from(len) >= limit => refuse(&format!(
                "does not fit below a certificate authority whose path length is {limit}."
            )),
            _ => Ok(()),
        },
        TemplateKind::Root | TemplateKind::EndEntity => Ok(()),
    }
}

/// The certificate's validity, within the authority's own.
fn period(
    work: &Work<'_>,
    authority: &Authority,
    new: &NewCertificate<'_>,
    own_root: bool,
) -> Result<(i64, i64), CaError> {
    let now = work.now();
    let above = authority.certificate().filter(|_| !own_root);
    let not_before = match (&new.not_before, above) {
        (Some(start), _) => start.resolve(now)?,
        (None, Some(above)) => (now - limits::BACKDATE_SECONDS).max(above.not_before()),
        (None, None) => now - limits::BACKDATE_SECONDS,
    };
    let not_after = new.validity.resolve(now)?;
    if not_after <= not_before || not_after <= now {
        return Err(CaError::Validation(
            "The certificate's validity ends before it begins, or has already ended.".into(),
        ));
    }
    if let Some(certificate) = above
        && not_before < certificate.not_before()
    {
        return Err(CaError::Validation(format!(
            "The certificate's validity begins before the certificate authority's, which begins at {}.",
            outlast_pki::time::rfc3339(certificate.not_before())
        )));
    }
    if let Some(certificate) = above
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

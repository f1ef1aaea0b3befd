//! Certificates whose requests name no CA. The operator's default authority takes the place of Amazon's public one: it
//! issues when the names are proved in DNS, and again for each renewal.
//!
//! `net` looks the records up ([`crate::acme::Queue`]); what it finds comes back to [`looked`], and the certificate is
//! issued in the transaction of the last proof.

use std::collections::BTreeMap;

use super::certificate::{self, Certificate, Origin, Record, RenewalSummary, Status};
use super::details::{Details, requestable};
use super::leaf::default_key;
use super::obtain::{self, Failed};
use super::proof::{Ended, Method, NameStatus, Public};
use super::request::all_names;
use super::tags::check_tags;
use super::{AcmError, TokenUse, told};
use crate::acme::queue;
use crate::arn::Scope;
use crate::ca::CaError;
use crate::identity::{Permit, action};
use crate::keyring::KeyRing;
use crate::work::Work;
use crate::{Fault, ids, limits};

/// `FailureReason` of a renewal whose names the operator no longer approves.
pub(super) const DENIED: &str = "DOMAIN_VALIDATION_DENIED";

/// The request.
pub struct NewPublicCertificate<'a> {
    /// ARN of the CA that is to issue.
    pub authority: &'a str,
    /// `DomainName`
    pub domain: String,
    /// `SubjectAlternativeNames`
    pub names: Vec<String>,
    /// `KeyAlgorithm`, if given.
    pub key_algorithm: Option<&'a str>,
    /// `ValidationMethod`
    pub method: Method,
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

/// Requests a certificate, and returns its ARN. It is issued at once if the operator has approved all names.
pub fn request(
    work: &mut Work<'_>,
    ring: &KeyRing,
    scope: &Scope,
    new: NewPublicCertificate<'_>,
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
    let authority = obtain::usable(work, scope, new.authority).map_err(refused)?;
    let key_algorithm = new.key_algorithm.unwrap_or_else(|| default_key(&authority));
    if requestable(key_algorithm).is_none() {
        return Err(AcmError::InvalidParameter(format!(
            "Certificates with {key_algorithm} keys cannot be requested."
        )));
    }
    let mut public = Public::new(work, &scope.account, new.method, &names)?;
    public.approve(&work.settings().public_certificates, &scope.account);
    let is_proved = public.is_proved();
    if new.method == Method::Email && !is_proved {
        return Err(AcmError::InvalidParameter(
            "Validation by e-mail is not offered: outlast sends none. Request ValidationMethod DNS, or have the operator \
             approve the domain names."
                .into(),
        ));
    }
    let record = Record {
        id: ids::uuid()?,
        origin: Origin::Managed,
        domain: Some(new.domain),
        authority: Some(authority.arn()),
        material: None,
        details: Details::requested(names, key_algorithm),
        public: Some(public),
        paired: None,
        created_ms: work.now_ms(),
        issued_ms: None,
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
    if is_proved {
        obtain::attempt(work, ring, &mut certificate).map_err(refused)?;
    } else {
        let most = limits::MAX_PENDING_LOOKUPS;
        if queue::pending_certificates(work, scope, most)? >= most {
            return Err(AcmError::LimitExceeded(format!(
                "At most {most} DNS records are looked up for the certificates of an account in a Region."
            )));
        }
        begin_lookups(work, &certificate)?;
        certificate.save(work)?;
    }
    let arn = certificate.arn();
    if let Some(token) = token {
        token.remember(work, &arn)?;
    }
    Ok(arn)
}

/// A refusal by the default authority, which the caller has not named.
fn refused(failed: Failed) -> AcmError {
    match failed {
        Failed::Authority(CaError::Fault(fault)) => fault.into(),
        Failed::Authority(error @ CaError::LimitExceeded(_)) => {
            AcmError::LimitExceeded(format!("{}: {error}", super::failure_reason(&error)))
        }
        failed => AcmError::InvalidParameter(format!("{}: {failed}", failed.reason())),
    }
}

/// Looks up the records of the names that are not proved.
fn begin_lookups(work: &mut Work<'_>, certificate: &Certificate) -> Result<(), Fault> {
    let Some(public) = &certificate.record.public else { return Ok(()) };
    for number in public.lookups().into_iter().filter(|number| public.wanted(*number).is_some()) {
        queue::begin_certificate(work, &certificate.scope, &certificate.record.id, number)?;
    }
    Ok(())
}

/// Whether a certificate can be renewed.
pub(super) enum Ready {
    /// Its names need no proof, or are proved.
    Now,
    /// When its names are proved: they are being looked up.
    Later,
    /// Not any more: its names can no longer be proved.
    Never,
}

/// Begins to prove the names of a certificate again, or continues; one whose request named a CA needs no proofs. As for
/// a request, the proofs must be complete within 72 hours; then all names are proved again. The caller saves the
/// certificate.
pub(super) fn begin_renewal(
    work: &mut Work<'_>,
    certificate: &mut Certificate,
) -> Result<Ready, Fault> {
    let (settings, now_ms) = (work.settings(), work.now_ms());
    let Certificate { scope, record } = certificate;
    let Some(public) = &mut record.public else { return Ok(Ready::Now) };
    let is_under_way = record.renewal.as_ref().is_some_and(|renewal| renewal.validating);
    if !is_under_way || public.is_late(now_ms) {
        public.begin(now_ms);
    }
    public.approve(&settings.public_certificates, &scope.account);
    if public.is_proved() {
        return Ok(Ready::Now);
    }
    if public.method == Method::Email {
        public.fail();
        return Ok(Ready::Never);
    }
    if !is_under_way {
        record.renewal = Some(RenewalSummary {
            succeeded: false,
            validating: true,
            reason: None,
            updated_ms: now_ms,
        });
    }
    begin_lookups(work, certificate)?;
    Ok(Ready::Later)
}

/// Name and value of the CNAME record that is to be looked up for a name of a certificate; `None` if nobody waits for
/// it.
pub(crate) fn wanted(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
    number: usize,
) -> Result<Option<(String, String)>, Fault> {
    let found = certificate::by_id(work, scope, id)?.filter(|found| waits(found, work.now_ms()));
    Ok(found.and_then(|found| found.record.public?.wanted(number)))
}

/// Whether a certificate waits for proofs: to be issued or to be renewed.
fn waits(certificate: &Certificate, now_ms: i64) -> bool {
    let record = &certificate.record;
    match record.status(now_ms) {
        Status::PendingValidation => true,
        // Its end is yet to be noted.
        Status::ValidationTimedOut => record.public.as_ref().is_some_and(|p| p.ended.is_none()),
        Status::Issued => record.renewal.as_ref().is_some_and(|renewal| renewal.validating),
        Status::Expired | Status::Failed | Status::Revoked => false,
    }
}

/// What followed from a look-up.
pub(crate) struct Looked {
    /// ARN of the certificate.
    pub arn: String,
    /// The event to log.
    pub event: Option<&'static str>,
    /// When to look the record up again, milliseconds since 1970.
    pub again_ms: Option<i64>,
}

/// Records the result of a look-up; `None` if nobody waits for it. The last proof has the certificate issued or
/// renewed.
pub(crate) fn looked(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
    number: usize,
    is_found: bool,
) -> Result<Option<Looked>, Fault> {
    let (settings, now_ms) = (work.settings(), work.now_ms());
    let found = certificate::by_id(work, scope, id)?.filter(|found| waits(found, now_ms));
    let Some(mut certificate) = found else { return Ok(None) };
    let arn = certificate.arn();
    let is_renewal = certificate.record.is_issued();
    let Some(public) = &mut certificate.record.public else { return Ok(None) };
    let done = |event| Ok(Some(Looked { arn: arn.clone(), event, again_ms: None }));
    let is_late = public.is_late(now_ms);
    if is_late && !is_renewal {
        public.fail();
        public.ended = Some(Ended::TimedOut);
        certificate.save(work)?;
        return done(Some("CertificateValidationTimedOut"));
    }
    if is_late {
        // What was found so long ago proves nothing any more; see `begin_renewal`.
        public.begin(now_ms);
    }
    // The operator may have approved names since.
    public.approve(&settings.public_certificates, &scope.account);
    if is_found {
        public.found(number);
    }
    let is_missing = public.wanted(number).is_some();
    let again_ms = is_missing.then(|| now_ms + queue::pause_ms(public.under_way_ms(now_ms)));
    let is_proved = public.is_proved();
    if is_late {
        begin_lookups(work, &certificate)?;
    }
    if !is_proved {
        if is_late || !is_missing {
            certificate.save(work)?;
        }
        return Ok(Some(Looked { arn, event: None, again_ms }));
    }
    // An unsealed CA key is not kept in memory: it is next needed in hours or days.
    match obtain::attempt(work, &KeyRing::default(), &mut certificate) {
        Ok(()) if is_renewal => return done(Some("RenewCertificate")),
        Ok(()) => return done(Some("CertificateIssued")),
        Err(Failed::Authority(CaError::Fault(fault))) => return Err(fault),
        Err(failed) => {
            let reason = failed.reason().to_owned();
            if is_renewal {
                // The names are proved again when the renewal is tried again.
                told::tell_not_renewed(work, &certificate, &reason)?;
                certificate.record.renewal = Some(RenewalSummary {
                    succeeded: false,
                    validating: false,
                    reason: Some(reason),
                    updated_ms: now_ms,
                });
            } else if let Some(public) = &mut certificate.record.public {
                public.ended = Some(Ended::Failed { reason });
            }
            certificate.save(work)?;
        }
    }
    done((!is_renewal).then_some("CertificateRequestFailed"))
}

/// `ValidationStatus` of each name, at a time in milliseconds since 1970: in the last renewal, or before the certificate
/// was issued.
pub fn statuses(record: &Record, of_renewal: bool, now_ms: i64) -> Vec<NameStatus> {
    let is_over = record.status(now_ms) == Status::ValidationTimedOut;
    let names = record.public.iter().flat_map(|public| &public.names);
    let status = |status| match status {
        _ if record.is_issued() && !of_renewal => NameStatus::Proved,
        NameStatus::Pending if is_over => NameStatus::Failed,
        status => status,
    };
    names.map(|name| status(name.status)).collect()
}

//! The OCSP responder of an authority: a key of its own, and a certificate that the authority issues for it.
//!
//! It is made when OCSP is enabled, replaced before it expires, and removed when OCSP is disabled. Its key never
//! leaves the service.

use outlast_crypto::keys::{Key, KeySpec};
use outlast_crypto::random;
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_pki::certificate::{Certificate, Content, SERIAL_LEN};
use outlast_pki::extensions::ocsp_no_check;
use outlast_pki::templates::{Requested, Template};
use outlast_pki::{lint, pem};
use serde::{Deserialize, Serialize};

use super::authority::{Authority, Status, authority_by_id};
use super::crl::issuer_key_id;
use super::revocation::parts;
use super::{CaError, epoch, names};
use crate::arn::Scope;
use crate::keyring::KeyRing;
use crate::work::{Swept, Work};
use crate::{Fault, ids, limits};

/// A responder as stored, without its key.
#[derive(Serialize, Deserialize)]
struct Record {
    /// PEM.
    certificate: String,
    /// Private CA's name of the type of its key.
    key_algorithm: String,
    /// Private CA's name of the algorithm that it signs with.
    signing_algorithm: String,
    /// Id of its key.
    key_id: String,
}

/// When an authority's responder needs attention.
#[derive(Serialize, Deserialize)]
struct Due {
    /// Milliseconds since 1970.
    due_ms: i64,
}

/// A responder that is ready to sign.
pub(super) struct Responder {
    certificate: Certificate,
    spec: &'static KeySpec,
    algorithm: &'static SignatureAlgorithm,
    key_record_key: String,
}

impl Responder {
    pub(super) fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    pub(super) fn algorithm(&self) -> &'static SignatureAlgorithm {
        self.algorithm
    }

    pub(super) fn load_key(
        &self,
        work: &mut Work<'_>,
        ring: &KeyRing,
    ) -> Result<std::sync::Arc<dyn Key>, Fault> {
        ring.load(work, &self.key_record_key, self.spec)
    }
}

/// The responder of an authority; `None` if there is none yet, or it has expired.
pub(super) fn current(
    work: &mut Work<'_>,
    authority: &Authority,
) -> Result<Option<Responder>, Fault> {
    let record_key = record_key(authority.scope(), authority.id());
    let Some(record) = work.get::<Record>(&record_key)? else { return Ok(None) };
    let damaged = || Fault::Damaged(record_key.clone());
    let certificate =
        Certificate::parse_one(record.certificate.as_bytes()).map_err(|_| damaged())?;
    if certificate.not_after() <= work.now() {
        return Ok(None);
    }
    Ok(Some(Responder {
        certificate,
        spec: KeySpec::by_pca_name(&record.key_algorithm).ok_or_else(damaged)?,
        algorithm: SignatureAlgorithm::by_pca_name(&record.signing_algorithm)
            .ok_or_else(damaged)?,
        key_record_key: key_record_key(authority.scope(), authority.id(), &record.key_id),
    }))
}

/// Has a responder made or removed, as `wanted` says: whether there is one, or was until now.
pub(super) fn follow(
    work: &mut Work<'_>,
    authority: &Authority,
    wanted: bool,
) -> Result<bool, Fault> {
    let record_key = due_record_key(authority.scope(), authority.id());
    let had = work.exists(&record_key)?;
    if had != wanted {
        // When OCSP is disabled, the responder is removed, and this record with it.
        work.put(&record_key, &Due { due_ms: work.now_ms() })?;
    }
    Ok(had || wanted)
}

/// Record keys of up to `limit` responders that need attention, after one of them, and where to go on.
pub fn due(work: &Work<'_>, after: &str, limit: usize) -> Result<crate::work::Due, Fault> {
    work.due("ca/responder-due/", after, limit, |due: &Due, now_ms| due.due_ms <= now_ms)
}

/// Makes, replaces or removes a responder. Returns the reason if the authority cannot have one; that is checked again
/// after [`limits::RESPONDER_RETRY_MS`].
pub fn renew(
    work: &mut Work<'_>,
    ring: &KeyRing,
    due_at: &str,
    swept: &mut Swept,
) -> Result<Option<String>, Fault> {
    if work.get::<Due>(due_at)?.is_none_or(|due| due.due_ms > work.now_ms()) {
        return Ok(None);
    }
    let (scope, id, _) =
        parts(due_at, "ca/responder-due/").ok_or_else(|| Fault::Damaged(due_at.to_owned()))?;
    let found = authority_by_id(work, &scope, id)?;
    let answers = |authority: &&Authority| {
        matches!(authority.status(), Status::Active | Status::Disabled)
            && authority.revocation().ocsp.is_some()
    };
    forget_key(work, &scope, id, swept)?;
    let Some(authority) = found.as_ref().filter(answers) else {
        work.delete(&record_key(&scope, id));
        work.delete(due_at);
        return Ok(None);
    };
    let not_after = match make(work, ring, authority)? {
        Ok(not_after) => not_after,
        Err(reason) => {
            work.delete(&record_key(&scope, id));
            work.put(due_at, &Due { due_ms: work.now_ms() + limits::RESPONDER_RETRY_MS })?;
            epoch::put(work, &scope, id)?;
            return Ok(Some(reason));
        }
    };
    swept.done(&scope, authority.arn(), "IssueOCSPResponderCertificate");
    // A third of its lifetime is left, enough for other servers to be down for a while.
    let due_ms = work.now_ms() + (not_after - work.now()).max(0) * 1000 / 3 * 2;
    work.put(due_at, &Due { due_ms })?;
    // Cached responses contain the certificate of the previous responder.
    epoch::put(work, &scope, id)?;
    Ok(None)
}

/// Makes a responder, and returns the end of its validity; or the reason why its certificate would be invalid.
fn make(
    work: &mut Work<'_>,
    ring: &KeyRing,
    authority: &Authority,
) -> Result<Result<i64, String>, Fault> {
    let missing = || Fault::Damaged(authority.arn());
    let issuer = authority.certificate().ok_or_else(missing)?;
    let (spec, algorithm) = kind(authority).ok_or_else(missing)?;
    let stored = spec.generate()?;
    let key = spec.load(&stored)?;
    let public_key = key.public_key().ok_or_else(missing)?;
    let template = Template::by_arn("arn:aws:acm-pca:::template/OCSPSigningCertificate/V1")
        .ok_or_else(missing)?;
    let mut extensions = template.extensions(&Requested {
        public_key,
        issuer_key_id: Some(&issuer_key_id(issuer)?),
        ..Requested::default()
    })?;
    extensions.push(ocsp_no_check()?);
    let not_after = (work.now() + limits::RESPONDER_SECONDS).min(issuer.not_after());
    let issuer_key = authority.load_key(work, ring)?;
    let unsigned = Content {
        serial: random::bytes::<SERIAL_LEN>()?,
        issuer: issuer.subject().clone(),
        // Below the authority's own name, so that the name satisfies the name constraints that the authority's does.
        subject: outlast_pki::name::below(issuer.subject(), "OCSP responder")?,
        public_key: public_key.to_vec(),
        not_before: (work.now() - limits::BACKDATE_SECONDS).max(issuer.not_before()),
        not_after,
        extensions,
    }
    .prepare(authority.algorithm(), issuer_key.public_key().ok_or_else(missing)?)?;
    let findings = lint::to_be_signed(&unsigned.to_be_signed)?;
    if let Some(finding) = lint::first_error(&findings) {
        return Ok(Err(format!("its certificate would violate {finding}")));
    }
    match names::check(authority, &unsigned.to_be_signed) {
        Ok(()) => {}
        Err(CaError::Fault(fault)) => return Err(fault),
        Err(reason) => return Ok(Err(reason.to_string())),
    }
    let signature = issuer_key.sign(authority.algorithm(), Message::Raw(&unsigned.to_be_signed))?;
    let der = unsigned.assemble(&signature)?;
    let record = Record {
        certificate: pem::certificate(&der),
        key_algorithm: spec.pca_name.unwrap_or_default().to_owned(),
        signing_algorithm: algorithm.pca_name.unwrap_or_default().to_owned(),
        key_id: ids::uuid()?,
    };
    let (scope, id) = (authority.scope(), authority.id());
    work.put_secret(&key_record_key(scope, id, &record.key_id), &stored)?;
    work.put(&record_key(scope, id), &record)?;
    Ok(Ok(not_after))
}

/// The responder's algorithm: the authority's, unless its signatures take too long to wait for.
fn kind(authority: &Authority) -> Option<(&'static KeySpec, &'static SignatureAlgorithm)> {
    if !authority.algorithm().slow {
        return Some((authority.spec(), authority.algorithm()));
    }
    Some((KeySpec::by_pca_name("ML_DSA_65")?, SignatureAlgorithm::by_pca_name("ML_DSA_65")?))
}

/// Erases the key of the present responder, if there is one.
fn forget_key(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
    swept: &mut Swept,
) -> Result<(), Fault> {
    if let Some(record) = work.get::<Record>(&record_key(scope, id))? {
        let key = key_record_key(scope, id, &record.key_id);
        work.delete(&key);
        swept.erased.push(key);
    }
    Ok(())
}

/// Removes the responder of an authority that is erased.
pub(super) fn forget(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
    swept: &mut Swept,
) -> Result<(), Fault> {
    forget_key(work, scope, id, swept)?;
    work.delete(&record_key(scope, id));
    work.delete(&due_record_key(scope, id));
    Ok(())
}

// The certificate sorts before the key: the check of a store relies on it.
fn record_key(scope: &Scope, id: &str) -> String {
    format!("ca/responder-certificate/{}/{}/{id}", scope.account, scope.region)
}

fn key_record_key(scope: &Scope, id: &str, key_id: &str) -> String {
    format!("ca/responder-key/{}/{}/{id}/{key_id}", scope.account, scope.region)
}

fn due_record_key(scope: &Scope, id: &str) -> String {
    format!("ca/responder-due/{}/{}/{id}", scope.account, scope.region)
}

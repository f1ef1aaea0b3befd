//! OCSP: finds the authority of a request, and makes the response.
//!
//! A delegated responder ([`super::responder`]) signs the responses. A cached response may be sent again only if its
//! [`epoch`] is still the same: it changes with each revocation and each change of the authority.

use outlast_crypto::digests::Digest;
use outlast_crypto::signatures::Message;
use outlast_pki::certificate::{Certificate, Extension};
use outlast_pki::crl::Reason;
use outlast_pki::crl::reason::UNSPECIFIED;
use outlast_pki::extensions;
use outlast_pki::ocsp::cert_id::{hashes, issuer_key_hash};
use outlast_pki::ocsp::{CertId, Content, Failure, Request, Single, Status as Said};
use serde::{Deserialize, Serialize};

use super::authority::{Authority, Status, arn, authority_by_id};
pub use super::epoch::{EPOCHS, epoch};
use super::issued::{by_serial, revoked};
use super::{CaError, responder};
use crate::Fault;
use crate::arn::Scope;
use crate::keyring::KeyRing;
use crate::settings::Settings;
use crate::work::{Swept, Work};

/// The value of [`super::Ocsp::url`] for this `OcspCustomCname`. `None` if there is no name and the server has no
/// listener for plain HTTP.
pub fn url(settings: &Settings, custom_cname: Option<&str>) -> Option<String> {
    match custom_cname {
        Some(name) => Some(format!("http://{name}")),
        None => Some(format!("{}/ocsp", settings.revocation_url.as_ref()?)),
    }
}

/// The extension with the authority's OCSP URL for certificates, by its configuration.
pub fn access(authority: &Authority) -> Result<Option<Extension>, CaError> {
    let Some(ocsp) = &authority.revocation().ocsp else { return Ok(None) };
    let extension =
        extensions::authority_information_access(&[&ocsp.url], &[]).map_err(Fault::from)?;
    Ok(Some(extension))
}

/// A signed response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The response in DER.
    pub der: Vec<u8>,
    /// Seconds since 1970.
    pub this_update: i64,
    /// Seconds since 1970.
    pub next_update: i64,
    /// Record key of the epoch.
    pub epoch_record_key: String,
    /// The epoch when the response was made.
    pub epoch: Option<u64>,
    /// The status of each certificate.
    pub statuses: Vec<Said>,
    /// The authority.
    pub authority: (Scope, String),
    /// Whether it answers this request only: [`Terms::admit`] was asked.
    pub is_once: bool,
}

impl Answer {
    /// Whether it may be cached: it has no nonce, and every certificate in it is issued.
    pub fn is_lasting(&self) -> bool {
        !self.statuses.contains(&Said::Unknown)
    }
}

/// Settings of the responses.
pub struct Terms<'a> {
    /// Validity of a response.
    pub validity_seconds: i64,
    /// Whether the authority may sign a response that cannot be cached, or that anybody could request in ever new
    /// ways. The caller that says yes covers the signature in the audit log in another way than by [`Swept::done`].
    pub admit: &'a dyn Fn(&Authority) -> bool,
}

/// Answers a request, or returns why not. What is written and noted must be durable before the response is sent.
pub fn answer(
    work: &mut Work<'_>,
    ring: &KeyRing,
    request: &Request,
    terms: &Terms<'_>,
    swept: &mut Swept,
) -> Result<Result<Answer, Failure>, Fault> {
    let Some(authority) = authority_of(work, &request.ids)? else {
        return Ok(Err(Failure::Unauthorized));
    };
    // Read first: every change from here on gives another epoch.
    let epoch_record_key = super::epoch::record_key(authority.scope(), authority.id());
    let epoch = epoch(work, &epoch_record_key)?;
    let now = work.now();
    let Some(responder) = responder::current(work, &authority)? else {
        return Ok(Err(Failure::TryLater));
    };
    let statuses = statuses(work, &authority, &request.ids)?;
    let unknown = statuses.contains(&Said::Unknown);
    let absorbed = request.nonce.is_none() && request.ids.len() == 1 && !unknown;
    if !absorbed && !(terms.admit)(&authority) {
        // RFC 5019, section 2.2.3: a responder without a record of the certificate may answer with an unsigned error.
        return Ok(Err(if unknown { Failure::Unauthorized } else { Failure::TryLater }));
    }
    let next_update = (now + terms.validity_seconds).min(responder.certificate().not_after());
    let responses = request
        .ids
        .iter()
        .zip(&statuses)
        .map(|(id, status)| Single {
            id: id.clone(),
            status: *status,
            this_update: now,
            next_update: Some(next_update),
        })
        .collect();
    let unsigned = Content {
        responder_key: &responder.certificate().public_key()?,
        produced_at: now,
        responses,
        nonce: request.nonce.clone(),
    }
    .prepare(responder.algorithm())?;
    let key = responder.load_key(work, ring)?;
    let signature = key.sign(responder.algorithm(), Message::Raw(&unsigned.to_be_signed))?;
    let der = unsigned.assemble(&signature, &[responder.certificate().der().to_vec()])?;
    if absorbed {
        swept.done(authority.scope(), authority.arn(), "GenerateOCSPResponse");
    }
    Ok(Ok(Answer {
        der,
        this_update: now,
        next_update,
        epoch_record_key,
        epoch,
        statuses,
        authority: (authority.scope().clone(), authority.arn()),
        is_once: !absorbed,
    }))
}

/// Whether a cached response is still current, and the epoch as of now.
pub fn recheck(
    work: &mut Work<'_>,
    ids: &[CertId],
    said: &[Said],
    record_key: &str,
) -> Result<Option<Option<u64>>, Fault> {
    let epoch = epoch(work, record_key)?;
    let Some(authority) = authority_of(work, ids)? else { return Ok(None) };
    let same = statuses(work, &authority, ids)? == said;
    Ok(same.then_some(epoch))
}

/// The authority of all these certificates, if it answers OCSP requests.
fn authority_of(work: &mut Work<'_>, ids: &[CertId]) -> Result<Option<Authority>, Fault> {
    let Some(first) = ids.first() else { return Ok(None) };
    let Some(hash) = first.hash() else { return Ok(None) };
    let record_key = issuer_record_key(hash.name, first.issuer_key_hash());
    let Some(issuer) = work.get::<Issuer>(&record_key)? else { return Ok(None) };
    let scope = Scope { account: issuer.account, region: issuer.region };
    let Some(authority) = authority_by_id(work, &scope, &issuer.authority)? else {
        return Ok(None);
    };
    let answers = matches!(authority.status(), Status::Active | Status::Disabled)
        && authority.revocation().ocsp.is_some();
    let Some(certificate) = authority.certificate().filter(|_| answers) else { return Ok(None) };
    let key = certificate.public_key()?;
    // The issuer's name is compared, too. Usually there is one certificate, or all have one hash.
    let all = ids.iter().all(|id| id.is_of(certificate.subject(), &key));
    Ok(all.then_some(authority))
}

/// RFC 6960, section 2.2: "good" only if the authority has issued it. The option to answer "revoked" for certificates
/// that were never issued is not used.
fn statuses(
    work: &mut Work<'_>,
    authority: &Authority,
    ids: &[CertId],
) -> Result<Vec<Said>, Fault> {
    let status = |work: &mut Work<'_>, id: &CertId| {
        let serial = hex::encode(id.serial());
        if let Some(revoked) = revoked(work, authority, &serial)? {
            let at = revoked.revoked_ms.div_euclid(1000);
            let reason = Reason::by_aws_name(&revoked.reason).unwrap_or(UNSPECIFIED);
            return Ok(Said::Revoked { at, reason });
        }
        let issued = by_serial(work, authority, &serial)?.is_some();
        Ok::<_, CaError>(if issued { Said::Good } else { Said::Unknown })
    };
    let mut out = Vec::with_capacity(ids.len());
    for id in ids {
        out.push(status(work, id).map_err(|error| match error {
            CaError::Fault(fault) => fault,
            other => Fault::Encoding(other.to_string()),
        })?);
    }
    Ok(out)
}

/// The issuer in a request.
#[derive(Serialize, Deserialize)]
struct Issuer {
    account: String,
    region: String,
    authority: String,
}

/// Adds an authority with this certificate to the index by the identifiers in requests, and returns the record keys.
pub(super) fn index(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
    certificate: &Certificate,
) -> Result<Vec<String>, Fault> {
    let record_keys = index_record_keys(certificate)?;
    for record_key in &record_keys {
        work.put(record_key, &Issuer::new(scope, id))?;
    }
    Ok(record_keys)
}

/// Keeps the entry by which [`arn_by_key_of`] recognises the issuer, for an authority that is erased.
pub(super) fn index_erased(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
    certificate: &Certificate,
) -> Result<(), Fault> {
    match index_record_keys(certificate)?.last() {
        Some(record_key) => work.put(record_key, &Issuer::new(scope, id)),
        None => Ok(()),
    }
}

/// The ARN of the authority with the key of this certificate, even if it is deleted or erased. A key belongs to one
/// authority only, because authorities make their keys themselves.
pub(crate) fn arn_by_key_of(
    work: &mut Work<'_>,
    certificate: &Certificate,
) -> Result<Option<String>, Fault> {
    let record_keys = index_record_keys(certificate)?;
    let Some(record_key) = record_keys.last() else { return Ok(None) };
    let Some(issuer) = work.get::<Issuer>(record_key)? else { return Ok(None) };
    let scope = Scope { account: issuer.account, region: issuer.region };
    Ok(Some(arn(&scope, &issuer.authority)))
}

/// Record keys of an issuer in the index, one for each of [`hashes`].
fn index_record_keys(certificate: &Certificate) -> Result<Vec<String>, Fault> {
    let key = certificate.public_key()?;
    let of =
        |hash: &'static Digest| Ok(issuer_record_key(hash.name, &issuer_key_hash(hash, &key)?));
    hashes().map(of).collect()
}

impl Issuer {
    fn new(scope: &Scope, id: &str) -> Self {
        let Scope { account, region } = scope.clone();
        Self { account, region, authority: id.to_owned() }
    }
}

/// Starts or stops OCSP, as `wanted` says. Returns whether the authority answers, or did until now.
pub(super) fn follow(
    work: &mut Work<'_>,
    authority: &Authority,
    wanted: bool,
) -> Result<bool, Fault> {
    responder::follow(work, authority, wanted)
}

fn issuer_record_key(hash: &str, key_hash: &[u8]) -> String {
    format!("ca/ocsp-issuer/{hash}/{}", hex::encode(key_hash))
}

//! OCSP: which authority a question is for, and what is answered.
//!
//! Answers are signed by a delegated responder ([`super::responder`]). Who keeps an answer for later compares
//! [`epoch`] before it is given again: it changes with each revocation and each change of the authority.

use outlast_crypto::signatures::Message;
use outlast_pki::certificate::Extension;
use outlast_pki::crl::Reason;
use outlast_pki::crl::reason::UNSPECIFIED;
use outlast_pki::extensions;
use outlast_pki::ocsp::cert_id::{hashes, issuer_key_hash};
use outlast_pki::ocsp::{CertId, Content, Failure, Request, Single, Status as Said};
use serde::{Deserialize, Serialize};

use super::authority::{Authority, Status, authority_by_id};
pub use super::epoch::{EPOCHS, epoch};
use super::issued::{by_serial, revoked};
use super::{CaError, responder};
use crate::Fault;
use crate::arn::Scope;
use crate::keyring::KeyRing;
use crate::settings::Settings;
use crate::work::{Swept, Work};

/// What [`super::Ocsp::url`] shall be for this `OcspCustomCname`. `None` without a name if the server has no
/// listener for plain HTTP.
pub fn url(settings: &Settings, custom_cname: Option<&str>) -> Option<String> {
    match custom_cname {
        Some(name) => Some(format!("http://{name}")),
        None => Some(format!("{}/ocsp", settings.revocation_url.as_ref()?)),
    }
}

/// The extension that says in certificates where the authority answers, as it is configured.
pub fn access(authority: &Authority) -> Result<Option<Extension>, CaError> {
    let Some(ocsp) = &authority.revocation().ocsp else { return Ok(None) };
    let extension =
        extensions::authority_information_access(&[&ocsp.url], &[]).map_err(Fault::from)?;
    Ok(Some(extension))
}

/// An answer that was signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The response in DER.
    pub der: Vec<u8>,
    /// Seconds since 1970.
    pub this_update: i64,
    /// Seconds since 1970.
    pub next_update: i64,
    /// Where [`epoch`] is to be asked of.
    pub epoch_record_key: String,
    /// What it was when the answer was made.
    pub epoch: Option<u64>,
    /// What was said of each certificate.
    pub statuses: Vec<Said>,
    /// The authority.
    pub authority: (Scope, String),
    /// Whether it is for this question alone: [`Terms::admit`] was asked.
    pub is_once: bool,
}

impl Answer {
    /// Whether it may be given again: it has no nonce, and no certificate in it that may still be issued.
    pub fn is_lasting(&self) -> bool {
        !self.statuses.contains(&Said::Unknown)
    }
}

/// How answers are made.
pub struct Terms<'a> {
    /// How long they are valid.
    pub validity_seconds: i64,
    /// Whether an authority may sign one that cannot be given again, or that anybody could ask for in ever new ways. Who
    /// says yes has the signature covered by the audit log in another way than by [`Swept::done`].
    pub admit: &'a dyn Fn(&Authority) -> bool,
}

/// Answers a request, or says why not. What is written and noted must be durable before the answer is sent.
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
    // Asked first: whatever changes from here on makes it another one.
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
        // RFC 5019, section 2.2.3: a responder without a record of the certificate may say so without a signature.
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

/// Whether an answer that was made before is still what would be answered, and the epoch as of now.
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

/// The authority that all of these certificates are of, if it answers.
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
    // The names of the issuer are compared, too. Mostly there is one certificate, or all have one hash.
    let all = ids.iter().all(|id| id.is_of(certificate.subject(), &key));
    Ok(all.then_some(authority))
}

/// RFC 6960, section 2.2: good only if the authority has issued it. "Revoked" for what was never issued is an
/// option that is not used.
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

/// Whose key a question means.
#[derive(Serialize, Deserialize)]
struct Issuer {
    account: String,
    region: String,
    authority: String,
}

/// Files an authority under what questions call it, and gives the places.
pub(super) fn index(work: &mut Work<'_>, authority: &Authority) -> Result<Vec<String>, Fault> {
    let Some(certificate) = authority.certificate() else { return Ok(Vec::new()) };
    let key = certificate.public_key()?;
    let mut record_keys = Vec::new();
    for hash in hashes() {
        let record_key = issuer_record_key(hash.name, &issuer_key_hash(hash, &key)?);
        let issuer = Issuer {
            account: authority.scope().account.clone(),
            region: authority.scope().region.clone(),
            authority: authority.id().to_owned(),
        };
        work.put(&record_key, &issuer)?;
        record_keys.push(record_key);
    }
    Ok(record_keys)
}

/// Begins or ends answering, as `wanted` says. Whether the authority answers, or did until now.
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

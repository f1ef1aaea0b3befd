//! Validation attempts. The server that holds the lease of one makes it; if that server dies, another takes over.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outlast_crypto::digests;

use super::authorization::{self, Look};
use super::challenge::ChallengeKind;
use super::queue::{Task, What};
use super::{
    AccountStatus, AuthorizationStatus, Kind, StoredProblem, endpoint_by_id, find_account,
    find_authorization, validation,
};
use crate::acm::public;
use crate::arn::Scope;
use crate::work::{Done, Work};
use crate::{Fault, limits};

/// The target of an attempt, and what must be found there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// `http://host/.well-known/acme-challenge/token` must answer with `content`.
    Http {
        /// Host name.
        host: String,
        /// Token.
        token: String,
        /// Key authorization.
        content: String,
    },
    /// The TLS server of a host must have a certificate with this `acmeIdentifier`.
    TlsAlpn {
        /// Host name.
        host: String,
        /// SHA-256 of the key authorization.
        digest: [u8; 32],
    },
    /// A TXT record must have this value.
    Txt {
        /// Its name.
        name: String,
        /// SHA-256 of the key authorization in base64url.
        value: String,
    },
    /// A CNAME record must point here.
    Cname {
        /// Its name.
        name: String,
        /// Where it must point.
        value: String,
    },
}

/// An attempt that this server has to make.
#[derive(Debug, Clone)]
pub struct Job {
    /// Record key of the task.
    pub record_key: String,
    /// Target.
    pub target: Target,
    lease: u64,
}

/// Result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The target has what is required.
    Found,
    /// It has nothing, or something else, with the type of problem. `again` says that this may change soon.
    Missing {
        /// Type of problem.
        kind: &'static Kind,
        /// Text for people.
        detail: String,
        /// Whether to try again.
        again: bool,
    },
}

/// Takes a task on, if it is still due; drops one that is no longer needed.
pub fn claim(work: &mut Work<'_>, record_key: &str) -> Result<Option<Job>, Fault> {
    let Some(mut task) = work.get::<Task>(record_key)? else { return Ok(None) };
    if task.due_ms > work.now_ms() {
        return Ok(None);
    }
    let Some(target) = target(work, &task.what)? else {
        work.delete(record_key);
        return Ok(None);
    };
    task.due_ms = work.now_ms() + limits::ACME_LEASE_MS;
    task.attempts += 1;
    task.lease += 1;
    work.put(record_key, &task)?;
    Ok(Some(Job { record_key: record_key.to_owned(), target, lease: task.lease }))
}

fn target(work: &mut Work<'_>, what: &What) -> Result<Option<Target>, Fault> {
    match what {
        What::Challenge { endpoint, account, authorization, kind } => {
            let Some(owner) = endpoint_by_id(work, endpoint)? else { return Ok(None) };
            // The account was deactivated or revoked, so nobody waits for the result.
            let holder = find_account(work, &owner, account)?
                .filter(|holder| holder.status() == AccountStatus::Valid);
            let Some(holder) = holder else { return Ok(None) };
            let found = find_authorization(work, endpoint, account, authorization)?
                .filter(|found| found.status() == AuthorizationStatus::Pending);
            let Some(found) = found else { return Ok(None) };
            let Some(challenge) = found.challenge(*kind) else { return Ok(None) };
            // RFC 8555, section 8.1.
            let content = format!("{}.{}", challenge.token, holder.key().thumbprint);
            let digest = digests::sha256(content.as_bytes());
            let host = found.name().base().to_owned();
            Ok(Some(match kind {
                ChallengeKind::Http01 => {
                    Target::Http { host, token: challenge.token.clone(), content }
                }
                ChallengeKind::TlsAlpn01 => Target::TlsAlpn { host, digest },
                ChallengeKind::Dns01 => Target::Txt {
                    name: format!("_acme-challenge.{host}"),
                    value: URL_SAFE_NO_PAD.encode(digest),
                },
            }))
        }
        What::Domain { endpoint, validation } => {
            let Some(owner) = endpoint_by_id(work, endpoint)? else { return Ok(None) };
            let found = validation::by_id(work, &owner, validation)?;
            Ok(found.map(|found| {
                let (name, value) = validation::record_of(&found);
                Target::Cname { name, value }
            }))
        }
        What::Certificate { account, region, id, number } => {
            let scope = Scope { account: account.clone(), region: region.clone() };
            let wanted = public::wanted(work, &scope, id, *number)?;
            Ok(wanted.map(|(name, value)| Target::Cname { name, value }))
        }
    }
}

/// Records the result of an attempt. Returns the event to log.
pub fn complete(work: &mut Work<'_>, job: &Job, outcome: Outcome) -> Result<Option<Done>, Fault> {
    let Some(mut task) = work.get::<Task>(&job.record_key)?.filter(|task| task.lease == job.lease)
    else {
        // Another server has taken over, or the result is no longer needed.
        return Ok(None);
    };
    let now_ms = work.now_ms();
    let (event, arn, again_ms) = match &task.what {
        What::Challenge { endpoint, account, authorization, kind } => {
            let Some(owner) = endpoint_by_id(work, endpoint)? else {
                work.delete(&job.record_key);
                return Ok(None);
            };
            let Some(found) = find_authorization(work, endpoint, account, authorization)? else {
                work.delete(&job.record_key);
                return Ok(None);
            };
            let mut again_ms = None;
            let look = match outcome {
                Outcome::Found => Look::Met,
                Outcome::Missing { kind, detail, again } => {
                    let problem = StoredProblem { kind: kind.name.to_owned(), detail };
                    if again && task.attempts < limits::MAX_ACME_ATTEMPTS {
                        // 3 and 6 seconds.
                        again_ms = Some(now_ms + 1500 * (1 << task.attempts));
                        Look::NotYet(problem)
                    } else {
                        Look::Failed(problem)
                    }
                }
            };
            let event = authorization::looked(work, found, *kind, look)?;
            (event.map(|event| (event, owner.scope().clone())), owner.arn(), again_ms)
        }
        What::Domain { endpoint, validation } => {
            let owner = endpoint_by_id(work, endpoint)?;
            let found = match &owner {
                Some(owner) => validation::by_id(work, owner, validation)?,
                None => None,
            };
            let (Some(owner), Some(found)) = (owner, found) else {
                work.delete(&job.record_key);
                return Ok(None);
            };
            let arn = found.arn();
            let result = match outcome {
                Outcome::Found => Ok(()),
                Outcome::Missing { detail, .. } => Err(detail),
            };
            let (event, again_ms) = validation::looked(work, found, result)?;
            (event.map(|event| (event, owner.scope().clone())), arn, again_ms)
        }
        What::Certificate { account, region, id, number } => {
            let scope = Scope { account: account.clone(), region: region.clone() };
            let is_found = outcome == Outcome::Found;
            let Some(seen) = public::looked(work, &scope, id, *number, is_found)? else {
                work.delete(&job.record_key);
                return Ok(None);
            };
            (seen.event.map(|event| (event, scope)), seen.arn, seen.again_ms)
        }
    };
    match again_ms {
        Some(due_ms) => {
            task.due_ms = due_ms;
            work.put(&job.record_key, &task)?;
        }
        None => work.delete(&job.record_key),
    }
    Ok(event.map(|(event, scope)| Done { scope, arn, event }))
}

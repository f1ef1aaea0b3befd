//! Authorizations and their challenges (RFC 8555, sections 7.1.4 and 8; RFC 8737).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outlast_crypto::random;
use serde::{Deserialize, Serialize};

use super::challenge::{CHALLENGES, Challenge, ChallengeKind, ChallengeStatus};
use super::order::{Order, OrderStatus, find_order};
use super::{Account, AcmeError, DnsName, Kind, StoredProblem, Validation, is_id, new_id, queue};
use crate::work::Work;
use crate::{Fault, limits};

/// Status of an authorization.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AuthorizationStatus {
    /// `pending`
    Pending,
    /// `valid`
    Valid,
    /// `invalid`
    Invalid,
    /// `deactivated`
    Deactivated,
    /// `expired`
    Expired,
}

impl AuthorizationStatus {
    /// Name in ACME.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Deactivated => "deactivated",
            Self::Expired => "expired",
        }
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    id: String,
    order: String,
    name: DnsName,
    status: AuthorizationStatus,
    expires_ms: i64,
    challenges: Vec<Challenge>,
    /// Whether a domain validation approved it; the validation must still exist when a certificate is issued.
    pre_approved: bool,
}

/// An authorization: of one account, for one name, in one order.
#[derive(Debug, Clone)]
pub struct Authorization {
    endpoint: String,
    account: String,
    record: Record,
}

impl Authorization {
    /// Id.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Id of the account.
    pub fn account(&self) -> &str {
        &self.account
    }

    /// The name.
    pub fn name(&self) -> &DnsName {
        &self.record.name
    }

    /// Status.
    pub fn status(&self) -> AuthorizationStatus {
        self.record.status
    }

    /// When it expires, milliseconds since 1970.
    pub fn expires_ms(&self) -> i64 {
        self.record.expires_ms
    }

    /// Whether a domain validation approved it.
    pub fn is_pre_approved(&self) -> bool {
        self.record.pre_approved
    }

    /// Its challenges.
    pub fn challenges(&self) -> &[Challenge] {
        &self.record.challenges
    }

    /// The challenge of this kind.
    pub fn challenge(&self, kind: ChallengeKind) -> Option<&Challenge> {
        self.record.challenges.iter().find(|challenge| challenge.kind == kind)
    }

    fn save(&self, work: &mut Work<'_>) -> Result<(), Fault> {
        work.put(&record_key(&self.endpoint, &self.account, self.id()), &self.record)
    }
}

/// Makes the authorization for a name of an order: valid at once if a domain validation covers the name.
pub(super) fn create(
    work: &mut Work<'_>,
    order: &Order,
    name: &DnsName,
    covering: Option<&Validation>,
) -> Result<String, Fault> {
    let mut challenges = Vec::new();
    for (_, kind, proves_wildcards) in CHALLENGES {
        // A domain validation appears as a DNS challenge that was met.
        let wanted = match covering {
            Some(_) => *kind == ChallengeKind::Dns01,
            None => *proves_wildcards || !name.is_wildcard(),
        };
        if wanted {
            challenges.push(Challenge {
                kind: *kind,
                // RFC 8555, section 8: at least 128 bits of entropy.
                token: URL_SAFE_NO_PAD.encode(random::bytes::<32>()?),
                status: match covering {
                    Some(_) => ChallengeStatus::Valid,
                    None => ChallengeStatus::Pending,
                },
                validated_ms: covering.map(Validation::updated_ms),
                error: None,
            });
        }
    }
    let record = Record {
        id: new_id()?,
        order: order.id().to_owned(),
        name: name.clone(),
        status: match covering {
            Some(_) => AuthorizationStatus::Valid,
            None => AuthorizationStatus::Pending,
        },
        expires_ms: order.expires_ms(),
        challenges,
        pre_approved: covering.is_some(),
    };
    let authorization =
        Authorization { endpoint: order.endpoint.clone(), account: order.account.clone(), record };
    let at = record_key(&authorization.endpoint, &authorization.account, authorization.id());
    work.create(&at, &authorization.record)?;
    Ok(authorization.record.id)
}

/// Finds an authorization of an account. An authorization past its end reads as expired.
pub fn find_authorization(
    work: &mut Work<'_>,
    endpoint: &str,
    account: &str,
    id: &str,
) -> Result<Option<Authorization>, Fault> {
    if !is_id(endpoint) || !is_id(account) || !is_id(id) {
        return Ok(None);
    }
    let Some(mut record) = work.get::<Record>(&record_key(endpoint, account, id))? else {
        return Ok(None);
    };
    let open = matches!(record.status, AuthorizationStatus::Pending | AuthorizationStatus::Valid);
    if open && record.expires_ms <= work.now_ms() {
        record.status = AuthorizationStatus::Expired;
    }
    Ok(Some(Authorization { endpoint: endpoint.to_owned(), account: account.to_owned(), record }))
}

/// Notes that the client is ready for validation. A challenge that was validated already stays as it is.
pub fn respond(
    work: &mut Work<'_>,
    account: &Account,
    authorization: &mut Authorization,
    kind: ChallengeKind,
) -> Result<(), AcmeError> {
    if authorization.record.status != AuthorizationStatus::Pending {
        return Ok(());
    }
    let Some(challenge) =
        authorization.record.challenges.iter_mut().find(|challenge| challenge.kind == kind)
    else {
        return Err(AcmeError::not_found("challenge"));
    };
    if challenge.status != ChallengeStatus::Pending {
        return Ok(());
    }
    let endpoint = account.endpoint().id();
    let most = limits::MAX_ACME_PENDING_CHALLENGES;
    if queue::pending_challenges(work, endpoint, account.id(), most)? >= most {
        return Err(AcmeError::new(
            Kind::RATE_LIMITED,
            format!("The account already has {most} challenges waiting for validation."),
        ));
    }
    challenge.status = ChallengeStatus::Processing;
    authorization.save(work)?;
    let now_ms = work.now_ms();
    Ok(queue::begin_challenge(work, endpoint, account.id(), authorization.id(), kind, now_ms)?)
}

/// Deactivates the authorization on behalf of its holder; an open order that needs it fails.
pub fn deactivate_authorization(
    work: &mut Work<'_>,
    authorization: &mut Authorization,
) -> Result<(), AcmeError> {
    if !matches!(
        authorization.record.status,
        AuthorizationStatus::Pending | AuthorizationStatus::Valid
    ) {
        return Err(AcmeError::malformed(
            "Only a pending or valid authorization can be deactivated.",
        ));
    }
    authorization.record.status = AuthorizationStatus::Deactivated;
    authorization.save(work)?;
    let problem = StoredProblem {
        kind: Kind::UNAUTHORIZED.name.to_owned(),
        detail: format!("The authorization for {} was deactivated.", authorization.record.name),
    };
    Ok(carry_over(
        work,
        &authorization.endpoint,
        &authorization.account,
        &authorization.record.order,
        Some(&problem),
    )?)
}

/// The result of a validation attempt.
pub(super) enum Look {
    /// The target has what the challenge requires.
    Met,
    /// Not there yet; the next attempt may find it.
    NotYet(StoredProblem),
    /// The challenge has failed.
    Failed(StoredProblem),
}

/// Records the result of an attempt to validate a challenge. Returns the event to log.
pub(super) fn looked(
    work: &mut Work<'_>,
    mut authorization: Authorization,
    kind: ChallengeKind,
    look: Look,
) -> Result<Option<&'static str>, Fault> {
    let now_ms = work.now_ms();
    let is_pending = authorization.record.status == AuthorizationStatus::Pending;
    let challenge = authorization
        .record
        .challenges
        .iter_mut()
        .find(|one| one.kind == kind && one.status == ChallengeStatus::Processing);
    // In the meantime it may have been deactivated, or met by another challenge.
    let (true, Some(challenge)) = (is_pending, challenge) else { return Ok(None) };
    let (status, failed, event) = match look {
        Look::NotYet(problem) => {
            challenge.error = Some(problem);
            authorization.save(work)?;
            return Ok(None);
        }
        Look::Met => {
            challenge.status = ChallengeStatus::Valid;
            challenge.validated_ms = Some(now_ms);
            challenge.error = None;
            (AuthorizationStatus::Valid, None, "AcmeChallengeSucceeded")
        }
        Look::Failed(problem) => {
            challenge.status = ChallengeStatus::Invalid;
            challenge.error = Some(problem.clone());
            (AuthorizationStatus::Invalid, Some(problem), "AcmeChallengeFailed")
        }
    };
    authorization.record.status = status;
    authorization.save(work)?;
    carry_over(
        work,
        &authorization.endpoint,
        &authorization.account,
        &authorization.record.order,
        failed.as_ref(),
    )?;
    Ok(Some(event))
}

/// Updates the order of an authorization that has changed.
fn carry_over(
    work: &mut Work<'_>,
    endpoint: &str,
    account: &str,
    id: &str,
    failed: Option<&StoredProblem>,
) -> Result<(), Fault> {
    let Some(mut order) = find_order(work, endpoint, account, id)? else { return Ok(()) };
    if order.record.status != OrderStatus::Pending && failed.is_none() {
        return Ok(());
    }
    if !order.is_open() {
        return Ok(());
    }
    match failed {
        Some(problem) => {
            order.record.status = OrderStatus::Invalid;
            order.record.error = Some(problem.clone());
        }
        None => {
            for authorization in &order.record.authorizations {
                let found = find_authorization(work, endpoint, account, authorization)?;
                if found.is_none_or(|found| found.status() != AuthorizationStatus::Valid) {
                    return Ok(());
                }
            }
            order.record.status = OrderStatus::Ready;
        }
    }
    order.save(work)
}

/// Whether an account holds a valid authorization for each of these names.
pub(super) fn holds_all(
    work: &Work<'_>,
    endpoint: &str,
    account: &str,
    names: &[DnsName],
) -> Result<bool, Fault> {
    /// Authorizations that are searched, at most.
    const MOST: usize = 10_000;
    let now_ms = work.now_ms();
    let found = work.scan::<Record>(&record_key(endpoint, account, ""), "", MOST)?;
    let holds = |name: &DnsName| {
        found.iter().any(|(_, record)| {
            record.name == *name
                && record.status == AuthorizationStatus::Valid
                && record.expires_ms > now_ms
        })
    };
    Ok(!names.is_empty() && names.iter().all(holds))
}

pub(super) fn record_key(endpoint: &str, account: &str, id: &str) -> String {
    format!("acme/authorization/{endpoint}/{account}/{id}")
}

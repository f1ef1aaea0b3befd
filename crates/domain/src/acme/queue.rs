//! Queues of validation attempts that wait for their time.

use serde::{Deserialize, Serialize};

use super::challenge::ChallengeKind;
use crate::Fault;
use crate::arn::Scope;
use crate::work::{Due, Work};

/// Tasks with different waiting times have queues of their own, so that finding urgent ones stays quick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Challenges, whose clients wait.
    Challenges,
    /// Domain validations, which are repeated every day.
    Domains,
    /// Names of certificates whose requests name no CA.
    Certificates,
}

/// Record keys of the owners of a task: its endpoint, and for a challenge its account; for a certificate its account, and
/// its Region. The second begins with the first.
pub fn owners(record_key: &str) -> (&str, &str) {
    let nth = |count| {
        record_key.match_indices('/').nth(count).map_or(record_key, |(at, _)| &record_key[..at])
    };
    (nth(2), nth(3))
}

impl Queue {
    /// All queues.
    pub const ALL: &[Self] = &[Self::Challenges, Self::Domains, Self::Certificates];

    const fn prefix(self) -> &'static str {
        match self {
            Self::Challenges => "acme/challenge-task/",
            Self::Domains => "acme/domain-task/",
            Self::Certificates => "acm/validation-task/",
        }
    }
}

/// What a task validates.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum What {
    Challenge { endpoint: String, account: String, authorization: String, kind: ChallengeKind },
    Domain { endpoint: String, validation: String },
    Certificate { account: String, region: String, id: String, number: usize },
}

/// A validation attempt that some server has to make.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Task {
    pub what: What,
    /// When the attempt is due, milliseconds since 1970; while a server makes it, when its lease ends.
    pub due_ms: i64,
    pub attempts: u32,
    /// Counts the leases, so that a server whose lease has ended is recognised.
    pub lease: u64,
}

pub(super) fn begin_challenge(
    work: &mut Work<'_>,
    endpoint: &str,
    account: &str,
    authorization: &str,
    kind: ChallengeKind,
    due_ms: i64,
) -> Result<(), Fault> {
    let prefix = Queue::Challenges.prefix();
    let record_key = format!("{prefix}{endpoint}/{account}/{authorization}-{}", kind.name());
    let what = What::Challenge {
        endpoint: endpoint.to_owned(),
        account: account.to_owned(),
        authorization: authorization.to_owned(),
        kind,
    };
    work.put(&record_key, &Task { what, due_ms, attempts: 0, lease: 0 })
}

/// How many challenges of an account wait for validation, counted up to `most`.
pub(super) fn pending_challenges(
    work: &Work<'_>,
    endpoint: &str,
    account: &str,
    most: usize,
) -> Result<usize, Fault> {
    let prefix = format!("{}{endpoint}/{account}/", Queue::Challenges.prefix());
    Ok(work.store().scan(&prefix, "", most)?.len())
}

pub(super) fn begin_domain(
    work: &mut Work<'_>,
    endpoint: &str,
    validation: &str,
    due_ms: i64,
) -> Result<(), Fault> {
    let what = What::Domain { endpoint: endpoint.to_owned(), validation: validation.to_owned() };
    let task = Task { what, due_ms, attempts: 0, lease: 0 };
    work.put(&domain_record_key(endpoint, validation), &task)
}

pub(super) fn end_domain(work: &mut Work<'_>, endpoint: &str, validation: &str) {
    work.delete(&domain_record_key(endpoint, validation));
}

fn domain_record_key(endpoint: &str, validation: &str) -> String {
    format!("{}{endpoint}/{validation}", Queue::Domains.prefix())
}

/// Queues the look-up of the CNAME record of a certificate's name, given by its number, unless it is queued already.
pub(crate) fn begin_certificate(
    work: &mut Work<'_>,
    scope: &Scope,
    id: &str,
    number: usize,
) -> Result<(), Fault> {
    let record_key = certificate_record_key(scope, id, number);
    if work.exists(&record_key)? {
        return Ok(());
    }
    let Scope { account, region } = scope.clone();
    let what = What::Certificate { account, region, id: id.to_owned(), number };
    let due_ms = work.now_ms();
    work.put(&record_key, &Task { what, due_ms, attempts: 0, lease: 0 })
}

/// How many names of certificates are looked up for an account in a Region, counted up to `most`.
pub(crate) fn pending_certificates(
    work: &Work<'_>,
    scope: &Scope,
    most: usize,
) -> Result<usize, Fault> {
    let prefix = format!("{}{}/{}/", Queue::Certificates.prefix(), scope.account, scope.region);
    Ok(work.store().scan(&prefix, "", most)?.len())
}

pub(crate) fn end_certificate(work: &mut Work<'_>, scope: &Scope, id: &str, number: usize) {
    work.delete(&certificate_record_key(scope, id, number));
}

fn certificate_record_key(scope: &Scope, id: &str, number: usize) -> String {
    let prefix = Queue::Certificates.prefix();
    format!("{prefix}{}/{}/{id}/{number}", scope.account, scope.region)
}

/// Interval between look-ups of a record that is not there: from a few seconds up to ten minutes.
const RETRY_MS: std::ops::RangeInclusive<i64> = 5_000..=600_000;

/// Pause before a record is looked up again that has not been found for so long, in milliseconds.
pub(crate) fn pause_ms(failing_ms: i64) -> i64 {
    (failing_ms / 4).clamp(*RETRY_MS.start(), *RETRY_MS.end())
}

/// Tasks that are due, among the next `limit` after a record key.
pub fn due_tasks(work: &Work<'_>, queue: Queue, after: &str, limit: usize) -> Result<Due, Fault> {
    work.due(queue.prefix(), after, limit, |task: &Task, now_ms| task.due_ms <= now_ms)
}

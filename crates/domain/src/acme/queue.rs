//! Queues of validation attempts that wait for their time.

use serde::{Deserialize, Serialize};

use super::challenge::ChallengeKind;
use crate::Fault;
use crate::work::{Due, Work};

/// Tasks with different waiting times have queues of their own, so that finding urgent ones stays quick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queue {
    /// Challenges, whose clients wait.
    Challenges,
    /// Domain validations, which are repeated every day.
    Domains,
}

/// Record keys of the owners of a task: its endpoint, and for a challenge its account. The second begins with the
/// first.
pub fn owners(record_key: &str) -> (&str, &str) {
    let nth = |count| {
        record_key.match_indices('/').nth(count).map_or(record_key, |(at, _)| &record_key[..at])
    };
    (nth(2), nth(3))
}

impl Queue {
    /// All queues.
    pub const ALL: &[Self] = &[Self::Challenges, Self::Domains];

    const fn prefix(self) -> &'static str {
        match self {
            Self::Challenges => "acme/challenge-task/",
            Self::Domains => "acme/domain-task/",
        }
    }
}

/// What a task validates.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum What {
    Challenge { endpoint: String, account: String, authorization: String, kind: ChallengeKind },
    Domain { endpoint: String, validation: String },
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

/// Tasks that are due, among the next `limit` after a record key.
pub fn due_tasks(work: &Work<'_>, queue: Queue, after: &str, limit: usize) -> Result<Due, Fault> {
    work.due(queue.prefix(), after, limit, |task: &Task, now_ms| task.due_ms <= now_ms)
}

//! Jobs under way: taking one under a lease, keeping it, results and the end.

use super::access::{self, Refused};
use super::config::{self, Connector};
use super::held::{Held, held};
use super::job::{Failure, FailureCode, FileOutcome, Finish, Job};
use super::lease::Leases;
use super::record::{self, FileResult, JOBS, JobKey, JobRecord, TASKS, Unended, Used};
use super::report::{self, Report};
use crate::identity::PolicyCache;
use crate::transfer::TransferError;
use crate::work::{Due, Sweep, Work};
use crate::{Fault, ids, limits};

/// How often a job is begun: a server may end while it runs, and a file or a remote server that ends servers must not do so
/// again and again.
const ATTEMPTS: u32 = 5;

/// Notes read in one step of the search for jobs of a connector that is deleted.
const PAGE: usize = 100;

/// Result of an attempt to take a job.
#[derive(Debug)]
pub enum Claim {
    /// It was taken.
    Taken(Box<Job>),
    /// The connector has no connection for it, neither for any other; or it was not to be begun.
    Full,
    /// Somebody has it, or it is gone.
    Nothing,
    /// It has ended without being begun.
    Ended(Vec<Report>),
}

/// The jobs that have not ended, up to `limit` after a record key, in the order of connectors and requests.
pub fn unended(work: &Work<'_>, after: &str, limit: usize) -> Result<Due, Fault> {
    work.due(TASKS, after, limit, |_: &Unended, _| true)
}

/// A text that the keys of a connector's jobs begin with, given the key of one of them.
pub fn connector_part(record_key: &str) -> &str {
    record_key.rsplit_once('/').map_or(record_key, |(connector, _)| connector)
}

/// Account and id of the job with such a key.
pub fn account_and_job(record_key: &str) -> Option<(&str, &str)> {
    let rest = record_key.strip_prefix(TASKS)?;
    Some((rest.split_once('/')?.0, rest.rsplit_once('/')?.1))
}

/// The first key that no job of this account has.
pub fn behind(account: &str) -> String {
    // `0` follows the slash.
    format!("{TASKS}{account}0")
}

/// Takes a job, if nobody has it and the connector has a connection for it. One whose time or attempts are over ends; without
/// `may_begin` nothing else happens.
pub fn claim(work: &mut Work<'_>, record_key: &str, may_begin: bool) -> Result<Claim, Fault> {
    let damaged = || Fault::Damaged(record_key.to_owned());
    let key = JobKey::read(record_key, TASKS).ok_or_else(damaged)?;
    if !work.exists(record_key)? {
        return Ok(Claim::Nothing);
    }
    let Some(connector) = config::look_up(work, &key.scope, &key.connector)? else {
        // It was deleted.
        work.delete(&key.task());
        work.delete(&key.job());
        return Ok(Claim::Nothing);
    };
    let mut leases = Leases::load(work, &key.scope, &key.connector)?;
    if leases.has(&key.id) {
        return Ok(Claim::Nothing);
    }
    let mut job = record::load(work, &key)?.ok_or_else(damaged)?;
    if let Some(failure) = hopeless(&job, work.now_ms()) {
        return Ok(Claim::Ended(end(work, &key, &connector, job, &Err(failure))?));
    }
    let free = leases.free(connector.max_connections());
    if free == 0 || !may_begin {
        return Ok(Claim::Full);
    }
    let connections = job.order.connections().min(free);
    let lease = ids::uuid()?;
    leases.set(&key.id, &lease, connections, work.now_ms());
    leases.save(work, &key.scope, &key.connector)?;
    job.began_ms = job.began_ms.or(Some(work.now_ms()));
    job.attempts += 1;
    job.used = Some(Used::of(&connector));
    work.put(&key.job(), &job)?;
    Ok(Claim::Taken(Box::new(Job {
        task: job.order.task(&key),
        connector_arn: connector.arn(),
        scope: key.scope,
        connector_id: key.connector,
        id: key.id,
        connections,
        lease,
    })))
}

/// Why a job is not begun, or not once more.
fn hopeless(job: &JobRecord, now_ms: i64) -> Option<Failure> {
    let over = |since_ms: i64| since_ms.saturating_add(limits::CONNECTOR_JOB_MS) <= now_ms;
    let hours = limits::CONNECTOR_JOB_MS / 3_600_000;
    match job.began_ms {
        None if over(job.requested_ms) => Some(Failure::new(
            FailureCode::Timeout,
            format!("The request waited for {hours} hours without a connection of the connector"),
        )),
        Some(began_ms) if over(began_ms) => {
            Some(Failure::new(FailureCode::Timeout, format!("The request took {hours} hours")))
        }
        Some(_) if !job.order.is_repeatable() => Some(Failure::new(
            FailureCode::Internal,
            "The service was interrupted while it did this, and does not know whether it is done: look at the remote server",
        )),
        Some(_) if job.attempts >= ATTEMPTS => Some(Failure::new(
            FailureCode::Internal,
            format!("The request was begun {ATTEMPTS} times and interrupted each time"),
        )),
        _ => None,
    }
}

/// What is told of the jobs of a connector that have begun when it is deleted, whether or not somebody has a lease on them now:
/// those whose server has died wait for the next one.
pub(super) fn deleted(work: &mut Work<'_>, connector: &Connector) -> Result<Vec<Report>, Fault> {
    let failure = Failure::new(
        FailureCode::Internal,
        "The connector was deleted while this ran; it may have been done: look at the remote server",
    );
    // A job that somebody begins from now on makes the transaction fail, because it writes this record.
    Leases::load(work, connector.scope(), connector.id())?;
    let mut reports = Vec::new();
    for key in unended_of(work, connector)? {
        if !has_begun(work, &key)? {
            continue;
        }
        match record::load(work, &key) {
            Ok(Some(job)) => {
                reports.extend(end(work, &key, connector, job, &Err(failure.clone()))?);
                // Nobody can ask for the results any more.
                work.delete(&key.job());
            }
            // What cannot be read must not keep a connector from being deleted.
            Ok(None) | Err(Fault::Damaged(_) | Fault::Forged(_)) => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(reports)
}

/// The jobs of a connector that have not ended.
fn unended_of(work: &Work<'_>, connector: &Connector) -> Result<Vec<JobKey>, Fault> {
    let scope = connector.scope();
    let prefix = format!("{TASKS}{}/{}/{}/", scope.account, scope.region, connector.id());
    let mut keys = Vec::new();
    let mut after = Some(String::new());
    while let Some(from) = after {
        let due = work.due(&prefix, &from, PAGE, |_: &Unended, _| true)?;
        after = due.next;
        // Their keys say all that is needed.
        let found = due.record_keys.iter().chain(&due.damaged);
        keys.extend(found.filter_map(|record_key| JobKey::read(record_key, TASKS)));
    }
    Ok(keys)
}

/// Whether a job has begun; not if it cannot be read. It takes no part in conflict detection, because many may wait.
fn has_begun(work: &Work<'_>, key: &JobKey) -> Result<bool, Fault> {
    match work.scan::<JobRecord>(&key.job(), "", 1) {
        Ok(found) => Ok(found.iter().any(|(_, job)| job.began_ms.is_some())),
        Err(Fault::Damaged(_) | Fault::Forged(_)) => Ok(false),
        Err(fault) => Err(fault),
    }
}

/// Keeps the lease of a job. `false` if it is lost, the job has run for too long, or it could not begin now with the access
/// role that it has: the next holder begins it with the connector's role, or ends it.
pub fn renew(work: &mut Work<'_>, policies: &PolicyCache, job: &Job) -> Result<bool, Fault> {
    let Some(Held { key, mut leases, connector, job: record }) = held(work, job)? else {
        return Ok(false);
    };
    let now_ms = work.now_ms();
    let is_over = |began_ms: i64| began_ms.saturating_add(limits::CONNECTOR_JOB_MS) <= now_ms;
    let is_other_role = |used: &Used| used.access_role != connector.access_role();
    if record.began_ms.is_some_and(is_over) || record.used.as_ref().is_some_and(is_other_role) {
        return Ok(false);
    }
    match access::assume(work, policies, connector, &key.id) {
        Ok(_) => {}
        Err(Refused::Fault(fault)) => return Err(fault),
        Err(Refused::Lost | Refused::Failure(_)) => return Ok(false),
    }
    leases.set(&key.id, &job.lease, job.connections, now_ms);
    leases.save(work, &key.scope, &key.connector)?;
    Ok(true)
}

/// Records what came of a file; `None` if the lease is lost. A second result of a file changes nothing.
pub fn file_ended(
    work: &mut Work<'_>,
    job: &Job,
    outcome: &FileOutcome,
) -> Result<Option<Vec<Report>>, Fault> {
    let Some(Held { key, connector, job: mut record, .. }) = held(work, job)? else {
        return Ok(None);
    };
    let Some(file) = record.order.files_mut().get_mut(outcome.index) else {
        return Err(Fault::Damaged(key.job()));
    };
    if file.result.is_some() {
        return Ok(Some(Vec::new()));
    }
    file.result = Some(FileResult::of(&outcome.result));
    work.put(&key.job(), &record)?;
    let report =
        report::of_file(&connector, &key, &record, outcome.index, outcome.began_ms, work.now_ms());
    let report = report.ok_or_else(|| Fault::Damaged(key.job()))?;
    report.tell(work)?;
    Ok(Some(vec![report]))
}

/// Records the end of a job; `None` if the lease is lost.
pub fn ended(
    work: &mut Work<'_>,
    job: &Job,
    result: &Result<Finish, Failure>,
) -> Result<Option<Vec<Report>>, Fault> {
    let Some(Held { key, connector, job: record, .. }) = held(work, job)? else { return Ok(None) };
    Ok(Some(end(work, &key, &connector, record, result)?))
}

/// Ends a job: files without a result get one.
fn end(
    work: &mut Work<'_>,
    key: &JobKey,
    connector: &Connector,
    mut job: JobRecord,
    result: &Result<Finish, Failure>,
) -> Result<Vec<Report>, Fault> {
    let now_ms = work.now_ms();
    let since_ms = job.began_ms.unwrap_or(now_ms);
    let mut reports = Vec::new();
    let missing =
        Failure::new(FailureCode::Internal, "The transfer ended without a result of this file");
    let failure = result.as_ref().err().unwrap_or(&missing);
    let open: Vec<_> = {
        let files = job.order.files_mut().iter_mut().enumerate();
        files
            .filter(|(_, file)| file.result.is_none())
            .map(|(index, file)| {
                file.result = Some(FileResult::of(&Err(failure.clone())));
                index
            })
            .collect()
    };
    for index in open {
        reports.extend(report::of_file(connector, key, &job, index, since_ms, now_ms));
    }
    reports.extend(report::of_job(connector, key, &job, result, since_ms, now_ms));
    for report in &reports {
        report.tell(work)?;
    }
    job.ended_ms = Some(now_ms);
    work.put(&key.job(), &job)?;
    work.delete(&key.task());
    let mut leases = Leases::load(work, &key.scope, &key.connector)?;
    if leases.has(&key.id) {
        leases.remove(&key.id);
        leases.save(work, &key.scope, &key.connector)?;
    }
    Ok(reports)
}

/// Forgets jobs whose results are kept no longer.
pub const FORGET: Sweep = Sweep {
    find: |work, after, limit| work.due(JOBS, after, limit, is_old),
    handle: |work, record_key, _| {
        let damaged = || Fault::Damaged(record_key.to_owned());
        let key = JobKey::read(record_key, JOBS).ok_or_else(damaged)?;
        let now_ms = work.now_ms();
        let Some(job) = record::load(work, &key)?.filter(|job| is_old(job, now_ms)) else {
            return Ok(());
        };
        // One that has not ended yet ends first, unless nobody can begin it any more.
        if job.ended_ms.is_some() || config::look_up(work, &key.scope, &key.connector)?.is_none() {
            work.delete(&key.task());
            work.delete(record_key);
        }
        Ok(())
    },
};

fn is_old(job: &JobRecord, now_ms: i64) -> bool {
    job.requested_ms.saturating_add(limits::CONNECTOR_RESULTS_MS) <= now_ms
}

impl From<TransferError> for Failure {
    /// The failure of a job that this service cannot prepare.
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::Fault(_) => {
                Self::new(FailureCode::Internal, "The service has failed; see its log")
            }
            other => Self::new(FailureCode::Connection, other.to_string()),
        }
    }
}

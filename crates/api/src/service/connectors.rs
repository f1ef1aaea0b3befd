//! Jobs of SFTP connectors: taking those that are due, what a connection needs, and the results.
//!
//! All of this may wait for the disk; a runner calls it away from its network threads.

mod record;
mod secret;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_domain::change::Contended;
use outlast_domain::transfer::Account;
use outlast_domain::transfer::connector::{
    self, Claim, Connector, Endpoint, Failure, FailureCode, FileOutcome, Finish, Job, Refused,
    Report,
};
use outlast_domain::work::Work;
use outlast_domain::{Fault, ids};
use outlast_store::StoreError;
use outlast_store::driver::{Attempt, drive_and_wait};

use super::Service;
use crate::outside::ConnectionFailure;

/// Jobs read in one step of the search: more than one connector can have under way.
const PAGE: usize = 16;

/// Jobs that one search ends, whose time is over: each is a commit, and those that can begin must not wait for all.
const ENDED: usize = 100;

/// What a runner of jobs has room for.
#[derive(Debug, Clone, Default)]
pub struct Room {
    /// Jobs that it can take.
    pub jobs: usize,
    /// Jobs of one account that it runs at most.
    pub per_account: usize,
    /// Account and id of those that it runs. It takes none of them a second time, whatever their leases say.
    pub running: BTreeSet<(String, String)>,
}

impl Room {
    /// For so many jobs of any account, without one that runs.
    pub fn of(jobs: usize) -> Self {
        Self { jobs, per_account: jobs, running: BTreeSet::new() }
    }

    fn is_running(&self, account: &str, id: &str) -> bool {
        self.running.contains(&(account.to_owned(), id.to_owned()))
    }

    fn has_more(&self, account: &str, taken: &[Job]) -> bool {
        let running = self.running.iter().filter(|(of, _)| of == account).count();
        let taken = taken.iter().filter(|job| job.scope.account == account).count();
        running + taken < self.per_account
    }
}

/// Where the last search for jobs ended, so that connectors take turns.
#[derive(Default)]
pub(super) struct State {
    after: Mutex<String>,
}

impl Service {
    /// Takes jobs that are due, as many as there is room for, each under a lease of
    /// [`outlast_domain::limits::CONNECTOR_LEASE_MS`] from the time that `clock` tells then. When a lease is over, any server may
    /// take the job again, five times at most. Connectors take turns; the jobs of one begin in the order of their requests.
    ///
    /// # Errors
    /// The store cannot be read. A job that is damaged does not hold up the others.
    pub fn connector_jobs(&self, clock: &dyn Fn() -> i64, room: &Room) -> Result<Vec<Job>, Fault> {
        let mut jobs = Vec::new();
        let begin = self.connectors.after.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (mut full, mut ended) = (BTreeSet::new(), 0);
        // Up to the end, and then from the start to where it began.
        for (from, until) in [(begin.as_str(), None), ("", Some(begin.as_str()))] {
            let mut after = Some(from.to_owned());
            while let Some(from) = after {
                let is_over = until.is_some_and(|until| from.as_str() >= until);
                if is_over || jobs.len() >= room.jobs || ended >= ENDED {
                    break;
                }
                let due = connector::unended(&self.work(clock()), &from, PAGE)?;
                for record_key in &due.damaged {
                    tracing::warn!(record_key, "a job of a connector cannot be read");
                }
                after = due.next;
                for record_key in &due.record_keys {
                    let part = connector::connector_part(record_key);
                    let Some((account, id)) = connector::account_and_job(record_key) else {
                        continue;
                    };
                    if full.contains(part) || room.is_running(account, id) {
                        continue;
                    }
                    if jobs.len() >= room.jobs || ended >= ENDED {
                        break;
                    }
                    if !room.has_more(account, &jobs) {
                        // However many wait there, the next account is not kept waiting.
                        after = Some(connector::behind(account));
                        break;
                    }
                    match self.connector_claim(record_key, clock(), true) {
                        Ok(Claim::Taken(job)) => {
                            let mut last = self
                                .connectors
                                .after
                                .lock()
                                .unwrap_or_else(PoisonError::into_inner);
                            *last = past(part);
                            jobs.push(*job);
                        }
                        Ok(Claim::Full) => {
                            full.insert(part.to_owned());
                            // The others of this connector need not be read.
                            after = after.map(|next| next.max(past(part)));
                        }
                        Ok(Claim::Ended(_)) => ended += 1,
                        Ok(Claim::Nothing) => {}
                        // Another server was quicker.
                        Err(Fault::Store(StoreError::Conflict)) => {}
                        Err(fault) => {
                            tracing::warn!(record_key, %fault, "a job of a connector cannot be begun");
                        }
                    }
                }
            }
        }
        Ok(jobs)
    }

    /// Ends jobs whose time is over, also while there is no room for others; how many. There may be more after a hundred.
    ///
    /// # Errors
    /// The store cannot be read. A job that is damaged does not hold up the others.
    pub fn connector_overdue(&self, clock: &dyn Fn() -> i64, room: &Room) -> Result<usize, Fault> {
        let mut ended = 0;
        let mut after = Some(String::new());
        while let Some(from) = after {
            let due = connector::unended(&self.work(clock()), &from, PAGE)?;
            after = due.next;
            let mut passed = None;
            for record_key in &due.record_keys {
                let part = connector::connector_part(record_key);
                let (account, id) = connector::account_and_job(record_key).unwrap_or_default();
                if passed == Some(part) || room.is_running(account, id) {
                    continue;
                }
                if ended >= ENDED {
                    return Ok(ended);
                }
                match self.connector_claim(record_key, clock(), false) {
                    Ok(Claim::Ended(_)) => ended += 1,
                    // Those that came later still have time.
                    Ok(Claim::Full) => {
                        passed = Some(part);
                        after = after.map(|next| next.max(past(part)));
                    }
                    Ok(Claim::Nothing | Claim::Taken(_))
                    | Err(Fault::Store(StoreError::Conflict)) => {}
                    Err(fault) => {
                        tracing::warn!(record_key, %fault, "a job of a connector cannot be ended");
                    }
                }
            }
        }
        Ok(ended)
    }

    fn connector_claim(
        &self,
        record_key: &str,
        now_ms: i64,
        may_begin: bool,
    ) -> Result<Claim, Fault> {
        self.connector_commit(now_ms, |work| {
            let claim = connector::claim(work, record_key, may_begin)?;
            let events = match &claim {
                Claim::Ended(reports) => events(reports, now_ms)?,
                _ => Vec::new(),
            };
            Ok((claim, events))
        })
    }

    /// Keeps the lease of a job for another [`outlast_domain::limits::CONNECTOR_LEASE_MS`]. `false` if it is lost: the job must
    /// stop, because another server has it, its time is over, its connector was deleted or has another access role, or the role
    /// is gone or trusts the service no more.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn connector_renew(&self, job: &Job, now_ms: i64) -> Result<bool, Fault> {
        self.connector_commit(now_ms, |work| {
            Ok((connector::renew(work, self.policies(), job)?, Vec::new()))
        })
    }

    /// What a job needs: where to connect to and as whom, and the rights of the access role on buckets. The secret was read as
    /// that role, which is in the audit trail before this returns.
    ///
    /// # Errors
    /// A failure is the result of the job: end it with that. After any other error the job must stop without a result, and
    /// the server with the next lease does it.
    pub fn connector_open(
        &self,
        job: &Job,
        now_ms: i64,
    ) -> Result<(Endpoint, Arc<Account>), Refused> {
        let begin = |work: &mut Work<'_>| connector::session_of(work, self.policies(), job);
        self.connector_secret(now_ms, &begin).and_then(|(session, credentials)| {
            let most = connector::connections(job);
            let endpoint = connector::endpoint(&session.connector, credentials, most)
                .map_err(Failure::from)?;
            Ok((endpoint, session.account()?))
        })
    }

    /// Records what came of one file. It is on disk when this returns, with its events. `false` if the lease is lost: nothing was
    /// recorded, and the job must stop.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn connector_file(
        &self,
        job: &Job,
        file: &FileOutcome,
        now_ms: i64,
    ) -> Result<bool, Fault> {
        self.connector_commit(now_ms, |work| {
            recorded(connector::file_ended(work, job, file)?, now_ms)
        })
    }

    /// Records the end of a job; files without a result get the failure as theirs. `false` if the lease is lost: nothing was
    /// recorded.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn connector_ended(
        &self,
        job: &Job,
        result: &Result<Finish, Failure>,
        now_ms: i64,
    ) -> Result<bool, Fault> {
        self.connector_commit(now_ms, |work| recorded(connector::ended(work, job, result)?, now_ms))
    }

    /// The endpoint for a test of a connector.
    pub(super) fn connection_test(
        &self,
        connector: &Connector,
        now_ms: i64,
    ) -> Result<Endpoint, ConnectionFailure> {
        let begin = |work: &mut Work<'_>| {
            connector::assume(work, self.policies(), connector.clone(), "test")
        };
        let opened = self.connector_secret(now_ms, &begin).and_then(|(session, credentials)| {
            Ok(connector::endpoint(&session.connector, credentials, 1).map_err(Failure::from)?)
        });
        opened.map_err(|refused| ConnectionFailure {
            message: failure(refused, &connector.arn()).message,
            host_key: None,
        })
    }

    /// Commits what is written with its audit events, and waits; repeats it after each conflict.
    fn connector_commit<T>(
        &self,
        now_ms: i64,
        mut what: impl FnMut(&mut Work<'_>) -> Result<(T, Vec<Vec<u8>>), Fault>,
    ) -> Result<T, Fault> {
        let prepare = || {
            let mut work = self.work(now_ms);
            match what(&mut work) {
                Ok((value, _)) if !work.writes_anything() => Attempt::Done(Ok(value)),
                Ok((value, events)) => Attempt::Commit(work.into_transaction(events), value),
                Err(fault) if fault.is_conflict() => Attempt::Again,
                Err(fault) => Attempt::Done(Err(fault)),
            }
        };
        let finish = |value, outcome: Result<(), StoreError>| Ok(outcome.map(|()| value)?);
        drive_and_wait(self.store.as_ref(), prepare, finish)
            .unwrap_or_else(|| Err(StoreError::Conflict.into()))
    }
}

/// Whether something was recorded, and its audit events.
fn recorded(reports: Option<Vec<Report>>, now_ms: i64) -> Result<(bool, Vec<Vec<u8>>), Fault> {
    match reports {
        None => Ok((false, Vec::new())),
        Some(reports) => Ok((true, events(&reports, now_ms)?)),
    }
}

pub(super) fn events(reports: &[Report], now_ms: i64) -> Result<Vec<Vec<u8>>, Fault> {
    reports
        .iter()
        .map(|report| Ok(record::event(report, &ids::event_id(now_ms)?, now_ms)))
        .collect()
}

/// After all jobs of a connector: `0` follows the slash that ends its name.
fn past(part: &str) -> String {
    format!("{part}0")
}

/// Why a connection cannot be tested; what the service is to blame for is in its log.
fn failure(refused: Refused, connector: &str) -> Failure {
    match refused {
        Refused::Failure(failure) => failure,
        // A test has no lease.
        Refused::Lost => Failure::new(FailureCode::Internal, refused.to_string()),
        Refused::Fault(fault) => {
            tracing::error!(connector, %fault, "the secret of a connector could not be read");
            Failure::new(FailureCode::Internal, "The service has failed; its log has the reason")
        }
    }
}

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

/// Where the last search for jobs ended, so that connectors take turns.
#[derive(Default)]
pub(super) struct State {
    after: Mutex<String>,
}

impl Service {
    /// Takes up to `free` jobs that are due, each under a lease of [`outlast_domain::limits::CONNECTOR_LEASE_MS`]. When a lease
    /// is over, any server may take the job again. Connectors take turns; the jobs of one begin in the order of their requests.
    ///
    /// # Errors
    /// The store cannot be read. A job that is damaged does not hold up the others.
    pub fn connector_jobs(&self, now_ms: i64, free: usize) -> Result<Vec<Job>, Fault> {
        let mut jobs = Vec::new();
        let begin = self.connectors.after.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut full = BTreeSet::new();
        // Up to the end, and then from the start to where it began.
        for (from, until) in [(begin.as_str(), None), ("", Some(begin.as_str()))] {
            let mut after = Some(from.to_owned());
            while let Some(from) = after {
                if jobs.len() >= free || until.is_some_and(|until| from.as_str() >= until) {
                    break;
                }
                let due = connector::unended(&self.work(now_ms), &from, PAGE)?;
                for record_key in &due.damaged {
                    tracing::warn!(record_key, "a job of a connector cannot be read");
                }
                after = due.next;
                for record_key in &due.record_keys {
                    let part = connector::connector_part(record_key);
                    if full.contains(part) {
                        continue;
                    }
                    if jobs.len() >= free {
                        break;
                    }
                    match self.connector_claim(record_key, now_ms) {
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
                        Ok(Claim::Nothing | Claim::Ended(_)) => {}
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

    fn connector_claim(&self, record_key: &str, now_ms: i64) -> Result<Claim, Fault> {
        self.connector_commit(now_ms, |work| {
            let claim = connector::claim(work, record_key)?;
            let events = match &claim {
                Claim::Ended(reports) => events(reports, now_ms)?,
                _ => Vec::new(),
            };
            Ok((claim, events))
        })
    }

    /// Keeps the lease of a job for another [`outlast_domain::limits::CONNECTOR_LEASE_MS`]. `false` if it is lost: the job must
    /// stop, because another server has it, its time is over or its connector was deleted.
    ///
    /// # Errors
    /// The store cannot be read or written.
    pub fn connector_renew(&self, job: &Job, now_ms: i64) -> Result<bool, Fault> {
        self.connector_commit(now_ms, |work| Ok((connector::renew(work, job)?, Vec::new())))
    }

    /// What a job needs: where to connect to and as whom, and the rights of the access role on buckets. The secret was read as
    /// that role, which is in the audit trail before this returns. An error is the result of the job: end it with that.
    ///
    /// # Errors
    /// Why the job cannot be done.
    pub fn connector_open(
        &self,
        job: &Job,
        now_ms: i64,
    ) -> Result<(Endpoint, Arc<Account>), Failure> {
        let begin = |work: &mut Work<'_>| connector::session_of(work, self.policies(), job);
        let opened = self.connector_secret(now_ms, &begin).and_then(|(session, credentials)| {
            let most = connector::connections(job);
            let endpoint = connector::endpoint(&session.connector, credentials, most)
                .map_err(Failure::from)?;
            Ok((endpoint, session.account()?))
        });
        opened.map_err(|refused| failure(refused, &job.connector_arn))
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

fn events(reports: &[Report], now_ms: i64) -> Result<Vec<Vec<u8>>, Fault> {
    reports
        .iter()
        .map(|report| Ok(record::event(report, &ids::event_id(now_ms)?, now_ms)))
        .collect()
}

/// After all jobs of a connector: `0` follows the slash that ends its name.
fn past(part: &str) -> String {
    format!("{part}0")
}

/// The result of a job that cannot begin; what the service is to blame for is in its log.
fn failure(refused: Refused, connector: &str) -> Failure {
    match refused {
        Refused::Failure(failure) => failure,
        Refused::Fault(fault) => {
            tracing::error!(connector, %fault, "the secret of a connector could not be read");
            Failure::new(FailureCode::Internal, "The service has failed; its log has the reason")
        }
    }
}

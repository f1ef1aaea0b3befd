//! Validation attempts: handed out under a lease, with a record of each outcome.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_domain::Fault;
use outlast_domain::acme::{self, Job, Outcome, Queue};
use outlast_store::StoreError;

use crate::ops::ACM;
use crate::service::Service;

/// Tasks read in one step of the search.
const PAGE: usize = 500;

fn locked(lane: &Mutex<Lane>) -> MutexGuard<'_, Lane> {
    lane.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many attempts a server may run at once, and those that it is running.
#[derive(Debug, Default)]
pub struct Lane {
    /// Attempts that may be started now.
    pub room: usize,
    /// Concurrent validations for one endpoint, or of the certificates of one account.
    pub of_endpoint: usize,
    /// Concurrent validations for one account of an endpoint, or of the certificates of an account in a Region.
    pub of_account: usize,
    /// Attempts under way, by [`acme::owners`].
    busy: HashMap<String, usize>,
    /// Record key of the task that was started last: the search goes on after it, so that every task gets its turn.
    /// Only fairness depends on it.
    after: String,
}

impl Lane {
    /// A lane for so many attempts, a quarter of them for one endpoint and an eighth for one account.
    pub fn new(size: usize) -> Self {
        let (of_endpoint, of_account) = ((size / 4).max(1), (size / 8).max(1));
        Self { room: size, of_endpoint, of_account, ..Self::default() }
    }

    fn under_way(&self, owner: &str) -> usize {
        self.busy.get(owner).copied().unwrap_or(0)
    }

    /// Whether the owners of a task may have another attempt now.
    fn takes(&self, record_key: &str) -> bool {
        let (endpoint, account) = acme::owners(record_key);
        self.room > 0
            && self.under_way(endpoint) < self.of_endpoint
            && (account == record_key || self.under_way(account) < self.of_account)
    }

    fn begun(&mut self, record_key: &str) {
        self.room -= 1;
        self.after = record_key.to_owned();
        let (endpoint, account) = acme::owners(record_key);
        for owner in BTreeSet::from([endpoint, account]) {
            *self.busy.entry(owner.to_owned()).or_default() += 1;
        }
    }

    /// Notes that an attempt has ended.
    pub fn ended(&mut self, record_key: &str) {
        self.room += 1;
        let (endpoint, account) = acme::owners(record_key);
        for owner in BTreeSet::from([endpoint, account]) {
            let left = self.under_way(owner).saturating_sub(1);
            if left == 0 {
                self.busy.remove(owner);
            } else {
                self.busy.insert(owner.to_owned(), left);
            }
        }
    }
}

impl Service {
    /// Takes on the tasks that are due, as far as the lane has room. The lease keeps other servers on the same store
    /// from taking them, until it runs out.
    ///
    /// # Errors
    /// The store cannot be read, and nothing was taken on. A task that is damaged does not hold up the
    /// others.
    pub fn acme_jobs(
        &self,
        queue: Queue,
        now_ms: i64,
        lane: &Mutex<Lane>,
    ) -> Result<Vec<Job>, Fault> {
        let mut jobs = Vec::new();
        let start = locked(lane).after.clone();
        // To the end of the list, and then from its beginning to where the search began.
        let done =
            self.take(queue, now_ms, lane, &start, None, &mut jobs).and_then(|()| {
                match start.is_empty() {
                    true => Ok(()),
                    false => self.take(queue, now_ms, lane, "", Some(&start), &mut jobs),
                }
            });
        match done {
            Err(fault) if jobs.is_empty() => return Err(fault),
            Err(fault) => tracing::error!(%fault, "some ACME validation tasks cannot be read"),
            Ok(()) => {}
        }
        Ok(jobs)
    }

    fn take(
        &self,
        queue: Queue,
        now_ms: i64,
        lane: &Mutex<Lane>,
        after: &str,
        until: Option<&str>,
        jobs: &mut Vec<Job>,
    ) -> Result<(), Fault> {
        let mut after = Some(after.to_owned());
        while let Some(from) = after {
            let due = acme::due_tasks(&self.work(now_ms), queue, &from, PAGE)?;
            for record_key in &due.damaged {
                tracing::warn!(record_key, "an ACME validation task cannot be read");
            }
            for record_key in &due.record_keys {
                if until.is_some_and(|until| record_key.as_str() > until) || locked(lane).room == 0
                {
                    return Ok(());
                }
                if !locked(lane).takes(record_key) {
                    continue;
                }
                match self.claim(now_ms, record_key) {
                    Ok(Some(job)) => {
                        locked(lane).begun(record_key);
                        jobs.push(job);
                    }
                    // The task is finished, or another server took it first.
                    Ok(None) | Err(Fault::Store(StoreError::Conflict)) => {}
                    Err(fault) => {
                        tracing::warn!(record_key, %fault, "an ACME validation task cannot be started");
                    }
                }
            }
            after = due.next;
        }
        Ok(())
    }

    fn claim(&self, now_ms: i64, record_key: &str) -> Result<Option<Job>, Fault> {
        let mut work = self.work(now_ms);
        let job = acme::claim(&mut work, record_key)?;
        if work.writes_anything() {
            self.store().commit_and_wait(work.into_transaction(Vec::new()))?;
        }
        Ok(job)
    }

    /// Records the outcome of an attempt.
    pub fn acme_outcome(&self, job: &Job, outcome: &Outcome, now_ms: i64) -> Result<(), Fault> {
        self.do_at_last(&ACM, now_ms, |work, swept| {
            swept.done.extend(acme::complete(work, job, outcome.clone())?);
            Ok(())
        })?;
        Ok(())
    }
}

//! Looks at targets of validations: handed out under a lease, and their outcomes noted with a record.

use outlast_domain::acme::{self, Job, Outcome, Queue};
use outlast_domain::{Fault, ids};
use outlast_store::StoreError;

use crate::audit::service_event;
use crate::ops::ACM;
use crate::service::Service;

/// Tasks that are looked through in a step.
const PAGE: usize = 500;
/// How often something is tried when others change the same records.
const ATTEMPTS: u32 = 16;

impl Service {
    /// Takes up to `limit` looks on that are due. Another server that shares the store does not get them, unless
    /// this one takes too long.
    pub fn acme_jobs(&self, queue: Queue, now_ms: i64, limit: usize) -> Result<Vec<Job>, Fault> {
        let mut jobs = Vec::new();
        let mut after = Some(String::new());
        while let Some(from) = after {
            let due = acme::due_tasks(&self.work(now_ms), queue, &from, PAGE)?;
            for place in &due.damaged {
                tracing::warn!(place, "a task of ACME cannot be read");
            }
            for place in &due.places {
                if jobs.len() == limit {
                    return Ok(jobs);
                }
                let mut work = self.work(now_ms);
                let job = acme::claim(&mut work, place)?;
                if !work.writes_anything() {
                    continue;
                }
                match self.store().commit_and_wait(work.into_transaction(Vec::new())) {
                    Ok(()) => jobs.extend(job),
                    // Another server was quicker.
                    Err(StoreError::Conflict) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            after = due.next;
        }
        Ok(jobs)
    }

    /// Notes what was found.
    pub fn acme_outcome(&self, job: &Job, outcome: &Outcome, now_ms: i64) -> Result<(), Fault> {
        for _ in 0..ATTEMPTS {
            let mut work = self.work(now_ms);
            let done = acme::complete(&mut work, job, outcome.clone())?;
            if !work.writes_anything() {
                return Ok(());
            }
            let events = match done {
                Some(done) => {
                    vec![service_event(now_ms, &ids::uuid()?, ACM.event_source, &done)]
                }
                None => Vec::new(),
            };
            match self.store().commit_and_wait(work.into_transaction(events)) {
                Ok(()) => return Ok(()),
                Err(StoreError::Conflict) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(StoreError::Conflict.into())
    }
}

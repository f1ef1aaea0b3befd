//! Workflows: the steps that are due, and their outcomes. Each is committed together with its audit events.
//!
//! The events have the names and the form of Transfer Family's log of workflows (Transfer Family User Guide, "CloudWatch logging
//! for a workflow") as additional data.

use std::sync::{Mutex, PoisonError};

use outlast_domain::change::Contended;
use outlast_domain::identity::session::Issued;
use outlast_domain::transfer::{
    self, Content, Event, FileLocation, Happened, Job, Outcome, Placed, Rights, StepError,
    WorkflowStep,
};
use outlast_domain::work::{Done, Work};
use outlast_domain::{Fault, ids, limits};
use outlast_store::StoreError;
use outlast_store::driver::{Attempt, drive_and_wait};
use serde_json::{Value, json};

use super::Service;
use crate::audit::service_event_with;
use crate::ops::{STS, TRANSFER};

/// Records that one step of the search reads.
const PAGE: usize = 100;

/// Where the last search for steps ended, so that executions take turns.
#[derive(Default)]
pub(super) struct State {
    after: Mutex<String>,
}

impl Service {
    /// Takes on up to `room` steps that are due, of accounts that `may_take` accepts. The search begins behind the one that was taken
    /// last.
    ///
    /// # Errors
    /// The store cannot be read. An execution that is damaged does not hold up the others.
    pub fn workflow_jobs(
        &self,
        now_ms: i64,
        room: usize,
        may_take: &dyn Fn(&str, usize) -> bool,
    ) -> Result<Vec<Job>, Fault> {
        let mut jobs: Vec<Job> = Vec::new();
        let last = || self.workflows.after.lock().unwrap_or_else(PoisonError::into_inner);
        let begin = last().clone();
        // Up to the end, and then from the start to where it began.
        for (from, until) in [(begin.as_str(), None), ("", Some(begin.as_str()))] {
            self.take_from(now_ms, (from, until), room, may_take, &mut jobs)?;
        }
        Ok(jobs)
    }

    fn take_from(
        &self,
        now_ms: i64,
        (from, until): (&str, Option<&str>),
        room: usize,
        may_take: &dyn Fn(&str, usize) -> bool,
        jobs: &mut Vec<Job>,
    ) -> Result<(), Fault> {
        let is_past = |record_key: &str| until.is_some_and(|until| record_key > until);
        let mut after = Some(from.to_owned());
        while let Some(from) = after.filter(|from| !is_past(from)) {
            let due = transfer::due(&self.work(now_ms), &from, PAGE)?;
            for record_key in &due.damaged {
                tracing::warn!(record_key, "an execution of a workflow cannot be read");
            }
            after = due.next;
            for record_key in &due.record_keys {
                if jobs.len() >= room || is_past(record_key) {
                    return Ok(());
                }
                let account = Job::account(record_key).unwrap_or_default();
                let same = |job: &&Job| job.execution.scope().account == account;
                if !may_take(account, jobs.iter().filter(same).count()) {
                    // However many wait there, the next account is not kept waiting.
                    after = Some(Job::behind(account));
                    break;
                }
                let claim =
                    |work: &mut Work<'_>| transfer::claim(work, self.policies(), record_key);
                match self.place(now_ms, claim) {
                    Ok(job) => {
                        record_key.clone_into(
                            &mut self
                                .workflows
                                .after
                                .lock()
                                .unwrap_or_else(PoisonError::into_inner),
                        );
                        jobs.extend(job);
                    }
                    Err(fault) => {
                        tracing::warn!(record_key, %fault, "a step of a workflow cannot be begun");
                    }
                }
            }
        }
        Ok(())
    }

    /// Records what the file of a step is, before anything is done with it; false if its lease does not hold any more.
    pub fn workflow_pin(&self, job: &Job, content: &Content, now_ms: i64) -> Result<bool, Fault> {
        Ok(self.do_at_last(&TRANSFER, now_ms, |work, _| transfer::pin(work, job, content))?.value)
    }

    /// What the execution role allows a step now. Ask when the step begins to use files: it may have waited since it was taken.
    ///
    /// # Errors
    /// The store cannot be read; or, inside, the role is gone or does not trust the service, so that the step fails.
    pub fn workflow_rights(
        &self,
        job: &Job,
        now_ms: i64,
    ) -> Result<Result<Rights, StepError>, Fault> {
        let did = self.do_at_last(&TRANSFER, now_ms, |work, _| job.rights(work, self.policies()));
        Ok(did?.value)
    }

    /// Prolongs the lease of a step; false if it does not hold any more, so that the outcome will not count and the step must stop.
    pub fn workflow_renew(&self, job: &Job, now_ms: i64) -> Result<bool, Fault> {
        Ok(self.do_at_last(&TRANSFER, now_ms, |work, _| transfer::renew(work, job))?.value)
    }

    /// Records that a function was called: its answer is awaited.
    pub fn workflow_called(&self, job: &Job, now_ms: i64) -> Result<(), Fault> {
        self.do_at_last(&TRANSFER, now_ms, |work, _| transfer::called(work, job)).map(drop)
    }

    /// Records the outcome of a step, and takes on the next one.
    pub fn workflow_outcome(
        &self,
        job: &Job,
        outcome: &Outcome,
        now_ms: i64,
    ) -> Result<Option<Job>, Fault> {
        if let Outcome::Failed(error) = outcome {
            let (workflow, execution) = (job.execution.workflow_arn(), job.execution.id());
            let (step, cause, reason) = (job.step.what.name(), error.cause.name(), &error.message);
            tracing::warn!(
                workflow,
                execution,
                step,
                cause,
                reason,
                "a step of a workflow has failed"
            );
        }
        self.place(now_ms, |work| transfer::complete(work, self.policies(), job, outcome))
    }

    /// Temporary credentials of the execution role, for the program of a function.
    ///
    /// # Errors
    /// Why there are none, for the log.
    pub fn workflow_credentials(&self, job: &Job, now_ms: i64) -> Result<Issued, String> {
        let did = self.do_at_last(&STS, now_ms, |work, swept| {
            let issued = job.credentials(work, self.policies())?;
            if issued.is_ok() {
                let execution = &job.execution;
                swept.done(execution.scope(), execution.role().to_owned(), "AssumeRole");
            }
            Ok(issued)
        });
        match did {
            Ok(did) => did.value,
            Err(fault) => Err(fault.to_string()),
        }
    }

    /// Commits what an execution has come to, with its events; the next step, if there is one.
    fn place(
        &self,
        now_ms: i64,
        mut what: impl FnMut(&mut Work<'_>) -> Result<Placed, Fault>,
    ) -> Result<Option<Job>, Fault> {
        let prepare = || {
            let mut work = self.work(now_ms);
            let placed = what(&mut work).and_then(|placed| {
                let events = placed.happened.iter().map(|happened| event(happened, now_ms));
                Ok((events.collect::<Result<Vec<_>, _>>()?, placed.job))
            });
            match placed {
                Ok((_, job)) if !work.writes_anything() => Attempt::Done(Ok(job)),
                Ok((events, job)) => Attempt::Commit(work.into_transaction(events), job),
                Err(fault) if fault.is_conflict() => Attempt::Again,
                Err(fault) => Attempt::Done(Err(fault)),
            }
        };
        let finish = |job, outcome: Result<(), StoreError>| Ok(outcome.map(|()| job)?);
        let done = drive_and_wait(self.store.as_ref(), prepare, finish);
        done.unwrap_or_else(|| Err(StoreError::Conflict.into()))
    }
}

/// The audit event of what has happened to an execution.
pub(super) fn event(happened: &Happened, now_ms: i64) -> Result<Vec<u8>, Fault> {
    let Happened { what, execution } = happened;
    let details = match what {
        Event::Started | Event::Throttled => {
            json!({ "input": { "initialFileLocation": location(execution.original()) } })
        }
        Event::StepCompleted { step, file } => {
            with_step(json!({ "output": { "fileLocation": location(file) } }), step)
        }
        Event::StepErrored { step, error } => {
            let told =
                json!({ "errorType": error.cause.name(), "errorMessage": cut(&error.message) });
            with_step(told, step)
        }
        Event::Completed | Event::Errored => json!({}),
    };
    let told = json!({
        "type": what.name(),
        "details": details,
        "workflowId": execution.workflow(),
        "executionId": execution.id(),
        "executionRole": execution.role(),
        "transferDetails": {
            "serverId": execution.server(),
            "username": execution.user(),
            "sessionId": execution.session(),
        },
    });
    let (scope, arn) = (execution.scope().clone(), execution.workflow_arn());
    let done = Done { scope, arn, event: what.name() };
    let source = TRANSFER.model.event_source;
    Ok(service_event_with(now_ms, &ids::event_id(now_ms)?, source, &done, Some(told)))
}

fn with_step(mut told: Value, step: &WorkflowStep) -> Value {
    told["stepType"] = step.what.name().into();
    told["stepName"] = step.name.as_deref().into();
    told
}

fn location(of: &FileLocation) -> Value {
    json!({ "backingStore": "S3", "bucket": of.bucket, "key": cut(&of.key) })
}

/// The beginning of a text that a user may have chosen.
fn cut(text: &str) -> String {
    text.chars().take(limits::SFTP_PATH_QUOTED).collect()
}

//! An execution under way: its step, the lease of the server that carries it out, and the answer of a function.
//!
//! A step whose lease has ended is carried out again, by any server: nothing is lost if one is killed. So that nothing is done
//! twice either, a copy that is already there, tags that are already set and a file that is already gone count as done
//! ([`Job::is_again`]). A function is called again with another token.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use outlast_crypto::{digests, hmac};
use serde::{Deserialize, Serialize};

use super::{
    Cause, Content, EXECUTIONS, Event, Execution, FileLocation, Happened, Record, Status,
    StepError, StepResult,
};
use crate::arn::{Arn, Scope};
use crate::identity::session::{
    AssumeError, Issued, NewSession, assume, authorize_workflow, without_credentials,
};
use crate::identity::{Entry, IdentityError, PolicyCache, Role};
use crate::transfer::rights::Rights;
use crate::transfer::workflow::{Deed, Step, destination};
use crate::transfer::{SERVICE_PRINCIPAL, TransferError, WORKFLOW};
use crate::work::{Due, Work};
use crate::{Fault, ids, limits};

/// Prefix of the records that say when an execution goes on.
const TASKS: &str = "transfer/execution-task/";

/// When an execution goes on, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Task {
    /// Milliseconds since 1970: now, the end of a lease, or the end of the time that a function has.
    due_ms: i64,
}

/// The step that is carried out, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Running {
    /// Id of the lease; none while a function's answer is awaited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease: Option<String>,
    /// The function that was called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    callback: Option<Callback>,
    /// How often the step was begun before.
    #[serde(default)]
    tries: u32,
}

/// What a function may answer, and until when.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Callback {
    /// SHA-256 of the token in hexadecimal.
    token_sha256: String,
    /// Milliseconds since 1970.
    until_ms: i64,
    /// Whether the call has ended without an error.
    was_called: bool,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    succeeded: Option<bool>,
}

fn task_key(scope: &Scope, record: &Record) -> String {
    format!("{TASKS}{}/{}/{}/{}", scope.account, scope.region, record.workflow, record.id)
}

/// Makes the record by which a new execution is found.
pub(super) fn begin(work: &mut Work<'_>, scope: &Scope, record: &Record) -> Result<(), Fault> {
    work.create(&task_key(scope, record), &Task { due_ms: work.now_ms() })
}

/// A step that is to be carried out.
pub struct Job {
    /// The execution as it is.
    pub execution: Execution,
    /// The step.
    pub step: Step,
    /// The file that it uses.
    pub source: FileLocation,
    /// What the file must be; not known before [`pin`] for the first step that uses it.
    pub content: OnceLock<Content>,
    /// The copy, if it makes one.
    pub copy: Option<FileLocation>,
    /// Whether the step may have been carried out before, by a server that did not record it.
    pub is_again: bool,
    /// How often it was begun before.
    pub tries: u32,
    /// The token by which a function answers.
    pub token: String,
    lease: String,
}

/// Result of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It has succeeded.
    Done,
    /// It has made a copy with this content.
    Copied(Content),
    /// It has failed.
    Failed(StepError),
}

/// What [`claim`] and [`complete`] have made of an execution.
#[derive(Default)]
pub struct Placed {
    /// The next step, if there is one.
    pub job: Option<Job>,
    /// What has happened.
    pub happened: Vec<Happened>,
}

/// Executions that are due, among up to `limit` after the key `after`.
pub fn due(work: &Work<'_>, after: &str, limit: usize) -> Result<Due, Fault> {
    work.due(TASKS, after, limit, |task: &Task, now_ms| task.due_ms <= now_ms)
}

impl Job {
    /// Account in the record key of an execution that is due.
    pub fn account(record_key: &str) -> Option<&str> {
        record_key.strip_prefix(TASKS)?.split('/').next()
    }

    /// A key behind those of all executions of an account.
    pub fn behind(account: &str) -> String {
        // Keys are ASCII.
        format!("{TASKS}{account}/\u{7f}")
    }

    /// Seconds that a function has to answer.
    pub fn timeout_seconds(&self) -> u32 {
        match &self.step.what {
            Deed::Custom { timeout_seconds, .. } => {
                timeout_seconds.unwrap_or(limits::CUSTOM_STEP_SECONDS)
            }
            _ => 0,
        }
    }

    /// What the execution role allows now: a step may have waited since it was taken.
    ///
    /// # Errors
    /// The role is gone, or does not trust the service any more.
    pub fn rights(
        &self,
        work: &mut Work<'_>,
        policies: &PolicyCache,
    ) -> Result<Result<Rights, StepError>, Fault> {
        rights(work, policies, &self.execution.scope, &self.execution.record)
    }

    /// Temporary credentials of the execution role, for the program of a function.
    ///
    /// # Errors
    /// Why there are none.
    pub fn credentials(
        &self,
        work: &mut Work<'_>,
        policies: &PolicyCache,
    ) -> Result<Result<Issued, String>, Fault> {
        let record = &self.execution.record;
        let (role, may) = match assumable(work, policies, &self.execution.scope, record)? {
            Ok(found) => found,
            Err(error) => return Ok(Err(error.message)),
        };
        let new = NewSession {
            name: record.id.clone(),
            seconds: i64::from(self.timeout_seconds()).max(limits::FUNCTION_SESSION_SECONDS),
            policy: None,
            tags: BTreeMap::new(),
            transitive: Default::default(),
            started_by: None,
            source_identity: None,
            managed: Vec::new(),
            certificate: None,
        };
        match assume(work, &role, new, &may) {
            Ok(issued) => Ok(Ok(issued)),
            Err(AssumeError::Fault(fault)) => Err(fault),
            Err(error) => Ok(Err(error.to_string())),
        }
    }
}

type Assumable = (Role, crate::identity::session::MayAssume);

/// The execution role, and the permit to begin a session of it for the workflow.
fn assumable(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    scope: &Scope,
    record: &Record,
) -> Result<Result<Assumable, StepError>, Fault> {
    let denied = |text: String| Ok(Err(StepError::new(Cause::PermissionDenied, text)));
    let arn = Arn::principal(&record.role).filter(|arn| arn.account() == scope.account);
    let Some(name) = arn.as_ref().and_then(|arn| arn.of("iam", "role/")) else {
        return denied(format!("{} is not a role of account {}", record.role, scope.account));
    };
    let role = match Role::find(work, &scope.account, name) {
        Ok(role) => role,
        Err(IdentityError::Fault(fault)) => return Err(fault),
        Err(_) => return denied(format!("there is no role {}", record.role)),
    };
    let source = WORKFLOW.arn(scope, &record.workflow);
    match authorize_workflow(policies, &role, SERVICE_PRINCIPAL, &source, work.now_ms())? {
        Some(may) => Ok(Ok((role, may))),
        None => denied(format!(
            "the trust policy of the role {} does not allow {SERVICE_PRINCIPAL} to assume it",
            record.role
        )),
    }
}

/// What the execution role allows.
fn rights(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    scope: &Scope,
    record: &Record,
) -> Result<Result<Rights, StepError>, Fault> {
    let (role, may) = match assumable(work, policies, scope, record)? {
        Ok(found) => found,
        Err(error) => return Ok(Err(error)),
    };
    let caller = without_credentials(policies, &role, &record.id, None, &may, work.now_ms())?;
    Ok(Ok(Rights::of_workflow(caller, &scope.region)))
}

/// Takes an execution that is due under a lease, which keeps other servers from it; no job if there is nothing to do.
pub fn claim(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    task_record_key: &str,
) -> Result<Placed, Fault> {
    let now_ms = work.now_ms();
    let mut placed = Placed::default();
    let is_due = work.get::<Task>(task_record_key)?.is_some_and(|task| task.due_ms <= now_ms);
    let Some((scope, mut record)) =
        is_due.then(|| load(work, task_record_key)).transpose()?.flatten()
    else {
        return Ok(placed);
    };
    let mut begun = 0;
    if let Some(Running { callback, tries, .. }) = record.running.take() {
        match callback {
            Some(Callback { succeeded: Some(true), .. }) => {
                ended(&scope, &mut record, &Outcome::Done, None, &mut placed);
            }
            Some(Callback { succeeded: Some(false), .. }) => {
                let error =
                    StepError::new(Cause::CustomStepFailed, "the function has answered FAILURE");
                ended(&scope, &mut record, &Outcome::Failed(error), None, &mut placed);
            }
            Some(Callback { until_ms, was_called: true, .. }) if until_ms <= now_ms => {
                let text = "the function did not call SendWorkflowStepState in time";
                let error = StepError::new(Cause::Timeout, text);
                ended(&scope, &mut record, &Outcome::Failed(error), None, &mut placed);
            }
            // The server that carried it out is gone, or could not.
            _ => begun = tries.saturating_add(1),
        }
    }
    place(work, policies, scope, record, begun, placed)
}

fn load(work: &mut Work<'_>, task_record_key: &str) -> Result<Option<(Scope, Record)>, Fault> {
    let damaged = || Fault::Damaged(task_record_key.to_owned());
    let rest = task_record_key.strip_prefix(TASKS).ok_or_else(damaged)?;
    let mut parts = rest.split('/').map(str::to_owned);
    let (account, region) = parts.next().zip(parts.next()).ok_or_else(damaged)?;
    let found = work.get::<Record>(&format!("{EXECUTIONS}{rest}"))?;
    if found.is_none() {
        work.delete(task_record_key);
    }
    Ok(found.map(|record| (Scope { account, region }, record)))
}

/// The steps that are carried out now, and the results of those that are over.
fn under_way(record: &mut Record) -> (&[Step], &mut Vec<StepResult>) {
    match record.status {
        Status::HandlingException => (&record.on_exception, &mut record.exception_results),
        _ => (&record.steps, &mut record.results),
    }
}

fn next_step(record: &mut Record) -> Option<Step> {
    let (steps, results) = under_way(record);
    steps.get(results.len()).cloned()
}

/// Records the end of the step that is carried out.
fn ended(
    scope: &Scope,
    record: &mut Record,
    outcome: &Outcome,
    copy: Option<&FileLocation>,
    placed: &mut Placed,
) {
    let Some(step) = next_step(record) else { return };
    let tags = match (&step.what, outcome) {
        (Deed::Tag(tags), Outcome::Done) => tags.clone(),
        _ => Vec::new(),
    };
    let error = match outcome {
        Outcome::Done | Outcome::Copied(_) => None,
        Outcome::Failed(error) => Some(error.clone()),
    };
    let (_, results) = under_way(record);
    results.push(StepResult { kind: step.what.name().to_owned(), tags, error: error.clone() });
    // "the processed file from the custom step is not passed": only a copy is another file.
    if step.uses_original() {
        record.file = record.original.clone();
        record.content.clone_from(&record.original_content);
    }
    if let Some(copy) = copy.filter(|_| error.is_none()) {
        record.file = copy.clone();
        record.content = match outcome {
            Outcome::Copied(content) => Some(content.clone()),
            _ => None,
        };
        if record.file == record.original {
            record.original_content.clone_from(&record.content);
        }
    }
    let what = match error {
        None => Event::StepCompleted { step, file: record.file.clone() },
        Some(error) => {
            record.status = match record.status {
                Status::InProgress if !record.on_exception.is_empty() => Status::HandlingException,
                _ => Status::Exception,
            };
            Event::StepErrored { step, error }
        }
    };
    let execution = Execution { scope: scope.clone(), record: record.clone() };
    placed.happened.push(Happened { what, execution });
}

/// Takes the next step under a lease, or ends the execution.
fn place(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    scope: Scope,
    mut record: Record,
    mut tries: u32,
    mut placed: Placed,
) -> Result<Placed, Fault> {
    let now_ms = work.now_ms();
    let task = task_key(&scope, &record);
    let record_key = super::record_key(&scope, &record.workflow, &record.id);
    while matches!(record.status, Status::InProgress | Status::HandlingException) {
        let Some(step) = next_step(&mut record) else { break };
        match prepare(work, policies, &scope, &record, &step)? {
            Err(error) => ended(&scope, &mut record, &Outcome::Failed(error), None, &mut placed),
            Ok((source, copy)) => {
                let lease = ids::uuid()?;
                let is_custom = matches!(step.what, Deed::Custom { .. });
                let known = match step.uses_original() {
                    true => record.original_content.clone(),
                    false => record.content.clone(),
                };
                let token = if is_custom { ids::hex::<32>()? } else { String::new() };
                let mut job = Job {
                    execution: Execution { scope: scope.clone(), record: record.clone() },
                    step,
                    source,
                    content: known.map(OnceLock::from).unwrap_or_default(),
                    copy,
                    is_again: tries > 0,
                    tries,
                    token,
                    lease: lease.clone(),
                };
                let callback = is_custom.then(|| Callback {
                    token_sha256: digest(&job.token),
                    until_ms: now_ms + i64::from(job.timeout_seconds()) * 1000,
                    was_called: false,
                    succeeded: None,
                });
                record.running = Some(Running { lease: Some(lease), callback, tries });
                job.execution.record.running.clone_from(&record.running);
                work.put(&record_key, &record)?;
                work.put(&task, &Task { due_ms: now_ms + limits::EXECUTION_LEASE_MS })?;
                placed.job = Some(job);
                return Ok(placed);
            }
        }
        tries = 0;
    }
    let what = match record.status {
        Status::InProgress => {
            record.status = Status::Completed;
            Event::Completed
        }
        _ => {
            record.status = Status::Exception;
            Event::Errored
        }
    };
    record.ended_ms = Some(now_ms);
    record.running = None;
    work.delete(&task);
    // What is kept for those who look must not take the place of what is to be done.
    let stored = work.store().count(&super::record_key(&scope, &record.workflow, ""))?;
    match stored > limits::EXECUTIONS_PER_WORKFLOW / 2 {
        true => work.delete(&record_key),
        false => work.put(&record_key, &record)?,
    }
    placed.happened.push(Happened { what, execution: Execution { scope, record } });
    Ok(placed)
}

fn digest(token: &str) -> String {
    hex::encode(digests::sha256(token.as_bytes()))
}

/// What a step uses, and what it makes.
type Prepared = (FileLocation, Option<FileLocation>);

fn prepare(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    scope: &Scope,
    record: &Record,
    step: &Step,
) -> Result<Result<Prepared, StepError>, Fault> {
    if !record.is_exact {
        let text = "the name of the file is not UTF-8: rename it and upload it again";
        return Ok(Err(StepError::new(Cause::BadRequest, text)));
    }
    let source = if step.uses_original() { &record.original } else { &record.file };
    let copy = match &step.what {
        Deed::Copy { bucket, key, .. } => {
            match destination(key, &source.key, &record.user, record.begun_ms) {
                Ok(key) => Some(FileLocation { bucket: bucket.clone(), key }),
                Err(text) => return Ok(Err(StepError::new(Cause::BadRequest, text))),
            }
        }
        _ => None,
    };
    let rights = match rights(work, policies, scope, record)? {
        Ok(rights) => rights,
        Err(error) => return Ok(Err(error)),
    };
    if let Deed::Custom { target, .. } = &step.what
        && let Err(denied) = rights.invoke(target, work.now_ms())
    {
        return Ok(Err(StepError::new(Cause::PermissionDenied, denied.to_string())));
    }
    Ok(Ok((source.clone(), copy)))
}

/// The execution of a job, if its lease still holds.
fn held(work: &mut Work<'_>, job: &Job) -> Result<Option<Record>, Fault> {
    let Execution { scope, record } = &job.execution;
    let found = work.get::<Record>(&super::record_key(scope, &record.workflow, &record.id))?;
    Ok(found.filter(|found| {
        let running = found.running.as_ref();
        running.is_some_and(|running| running.lease.as_deref() == Some(&job.lease))
    }))
}

/// Records what the file of a job is, before anything is done with it: the step, if it is carried out again, and later steps concern
/// this content. False if the lease does not hold any more.
pub fn pin(work: &mut Work<'_>, job: &Job, content: &Content) -> Result<bool, Fault> {
    let Some(mut record) = held(work, job)? else { return Ok(false) };
    if job.source == record.original {
        record.original_content.get_or_insert_with(|| content.clone());
    }
    if job.source == record.file {
        record.content.get_or_insert_with(|| content.clone());
    }
    let record_key = super::record_key(&job.execution.scope, &record.workflow, &record.id);
    work.put(&record_key, &record)?;
    Ok(true)
}

/// Whether the function of a job has answered: then the step ends, whatever its program still does.
fn is_answered(work: &mut Work<'_>, job: &Job) -> Result<bool, Fault> {
    if !matches!(job.step.what, Deed::Custom { .. }) {
        return Ok(false);
    }
    let Execution { scope, record } = &job.execution;
    let found = work.get::<Record>(&super::record_key(scope, &record.workflow, &record.id))?;
    // An execution that is gone has ended.
    let Some(found) = found else { return Ok(true) };
    let ended = |record: &Record| record.results.len() + record.exception_results.len();
    let callback = found.running.as_ref().and_then(|running| running.callback.as_ref());
    let is_answer = |callback: &Callback| {
        callback.succeeded.is_some() && callback.token_sha256 == digest(&job.token)
    };
    Ok(ended(&found) > ended(record) || callback.is_some_and(is_answer))
}

/// Prolongs the lease of a job; false if it does not hold any more. A function that has answered is left alone: nobody begins its
/// step again.
pub fn renew(work: &mut Work<'_>, job: &Job) -> Result<bool, Fault> {
    let Some(record) = held(work, job)? else { return is_answered(work, job) };
    let due_ms = work.now_ms() + limits::EXECUTION_LEASE_MS;
    work.put(&task_key(&job.execution.scope, &record), &Task { due_ms })?;
    Ok(true)
}

/// Records that a function was called without an error: its answer is awaited.
pub fn called(work: &mut Work<'_>, job: &Job) -> Result<(), Fault> {
    let Some(mut record) = held(work, job)? else { return Ok(()) };
    let Some(Running { lease, callback: Some(callback), .. }) = &mut record.running else {
        return Ok(());
    };
    *lease = None;
    callback.was_called = true;
    let due_ms = callback.until_ms;
    let scope = &job.execution.scope;
    work.put(&super::record_key(scope, &record.workflow, &record.id), &record)?;
    work.put(&task_key(scope, &record), &Task { due_ms })
}

/// Records the outcome of a job, if its lease still holds, and takes the next step.
pub fn complete(
    work: &mut Work<'_>,
    policies: &PolicyCache,
    job: &Job,
    outcome: &Outcome,
) -> Result<Placed, Fault> {
    let mut placed = Placed::default();
    let Some(mut record) = held(work, job)? else { return Ok(placed) };
    let scope = job.execution.scope.clone();
    record.running = None;
    ended(&scope, &mut record, outcome, job.copy.as_ref(), &mut placed);
    place(work, policies, scope, record, 0, placed)
}

/// What a function has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// `SUCCESS`
    Success,
    /// `FAILURE`
    Failure,
}

/// Takes the answer of a function. A token counts once, and until the time of the step is over. Code
/// that calls this has checked the permission to answer.
///
/// # Errors
/// No step awaits an answer with this token.
pub fn answer(
    work: &mut Work<'_>,
    execution: Execution,
    token: &str,
    answered: Answered,
) -> Result<(), TransferError> {
    let Execution { scope, mut record } = execution;
    let now_ms = work.now_ms();
    let awaited = record.running.as_mut().and_then(|running| running.callback.as_mut());
    let awaited = awaited.filter(|callback| {
        let is_same = hmac::equal(digest(token).as_bytes(), callback.token_sha256.as_bytes());
        is_same && callback.succeeded.is_none() && now_ms < callback.until_ms
    });
    let Some(callback) = awaited else {
        return Err(TransferError::invalid(
            "No step of this execution awaits an answer with this token: it has ended, or its time is over",
        ));
    };
    callback.succeeded = Some(answered == Answered::Success);
    if let Some(running) = &mut record.running {
        running.lease = None;
    }
    work.put(&super::record_key(&scope, &record.workflow, &record.id), &record)?;
    Ok(work.put(&task_key(&scope, &record), &Task { due_ms: now_ms })?)
}

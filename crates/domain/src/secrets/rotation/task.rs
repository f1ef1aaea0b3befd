//! A rotation under way: its step, its attempts, and the lease of the server that makes the call.

use serde::{Deserialize, Serialize};

use super::{TASKS, schedule::Window, task_record_key};
use crate::arn::Scope;
use crate::events::{self, Kind};
use crate::secrets::change::insert_pending;
use crate::secrets::replica::end_rotation;
use crate::secrets::secret::{Secret, load, parts};
use crate::secrets::{CURRENT, PENDING, SecretError};
use crate::work::{Done, Due, Work};
use crate::{Fault, ids, limits};

/// AWS's steps, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Step {
    /// Makes the new value, with the label AWSPENDING.
    #[serde(rename = "createSecret")]
    Create,
    /// Gives it to the database or service.
    #[serde(rename = "setSecret")]
    Set,
    /// Tries it.
    #[serde(rename = "testSecret")]
    Test,
    /// Moves AWSCURRENT to it.
    #[serde(rename = "finishSecret")]
    Finish,
}

impl Step {
    /// AWS's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Create => "createSecret",
            Self::Set => "setSecret",
            Self::Test => "testSecret",
            Self::Finish => "finishSecret",
        }
    }

    fn next(self) -> Option<Self> {
        match self {
            Self::Create => Some(Self::Set),
            Self::Set => Some(Self::Test),
            Self::Test => Some(Self::Finish),
            Self::Finish => None,
        }
    }
}

/// What is due of a secret's rotation, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Task {
    /// When to go on, milliseconds since 1970: the end of a lease, the next attempt, or the next window.
    due_ms: i64,
    /// The rotation under way; `None` while the next window is awaited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    running: Option<Running>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Running {
    version_id: String,
    /// `RotationToken`
    token: String,
    step: Step,
    /// Only the test of the function ("RotateImmediately").
    #[serde(default)]
    only_test: bool,
    /// Attempts at this step that failed.
    #[serde(default)]
    failed: u32,
    /// Id of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lease: Option<String>,
}

/// A call of a rotation function that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Account and Region.
    pub scope: Scope,
    /// Name of the secret.
    pub name: String,
    /// ARN of the secret: `SecretId` of the event.
    pub secret_arn: String,
    /// `RotationLambdaARN`
    pub function: String,
    /// `Step` of the event.
    pub step: Step,
    /// `ClientRequestToken` of the event.
    pub version_id: String,
    /// `RotationToken` of the event.
    pub token: String,
    lease: String,
}

/// A call that was taken on, and what belongs into the audit trail.
#[derive(Debug)]
pub struct Claimed {
    /// The call.
    pub call: Call,
    /// The beginning of a rotation.
    pub event: Option<Done>,
}

/// Result of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The function has answered without an error.
    Done,
    /// It failed, for this reason.
    Failed(String),
}

/// Tasks that are due, among up to `limit` after the key `after`.
pub fn due(work: &Work<'_>, after: &str, limit: usize) -> Result<Due, Fault> {
    work.due(TASKS, after, limit, |task: &Task, now_ms| task.due_ms <= now_ms)
}

/// Begins a rotation now; does not save the secret. With `immediately` false only the test step runs, as AWS does to check
/// the configuration.
///
/// AWS's functions refuse a `ClientRequestToken` that is not a version with the label AWSPENDING, so that the version is
/// there, without a value, before the function is called ("the AWSPENDING staging label might be attached to an empty
/// secret version", RotateSecret). For a test it shows the current value, so that a function that logs in with it succeeds.
pub(super) fn begin(
    work: &mut Work<'_>,
    secret: &mut Secret,
    version_id: String,
    immediately: bool,
) -> Result<(), Fault> {
    let is_there = |id: &str| secret.record.versions.contains_key(id);
    let version_id = match (immediately, super::left(secret)) {
        (false, Some(left)) => left.clone(),
        (false, None) if is_there(&version_id) => ids::uuid()?,
        _ => version_id,
    };
    if !is_there(&version_id) {
        let current = secret.staged(CURRENT).map(|(id, _)| id.clone());
        insert_pending(work, secret, &version_id, current.filter(|_| !immediately));
    }
    let running = Running {
        version_id,
        token: ids::uuid()?,
        step: if immediately { Step::Create } else { Step::Test },
        only_test: !immediately,
        failed: 0,
        lease: None,
    };
    let task = Task { due_ms: work.now_ms(), running: Some(running) };
    work.put(&task_record_key(secret), &task)
}

/// Removes the version of a test, and waits for the next window.
fn tested(work: &mut Work<'_>, secret: &mut Secret) -> Result<(), Fault> {
    super::end_test(secret);
    secret.save_unchanged(work)?;
    wait(work, secret)
}

/// Waits for the next window.
pub(super) fn wait(work: &mut Work<'_>, secret: &Secret) -> Result<(), Fault> {
    let next_ms = secret.record.rotation.as_ref().and_then(|rotation| rotation.next_ms);
    match next_ms {
        Some(due_ms) => work.put(&task_record_key(secret), &Task { due_ms, running: None }),
        None => super::forget(work, secret),
    }
}

/// The version that a rotation is making, if one has begun and not ended.
pub(super) fn under_way(work: &mut Work<'_>, secret: &Secret) -> Result<Option<String>, Fault> {
    let task = work.get::<Task>(&task_record_key(secret))?;
    let running = task.and_then(|task| task.running).filter(|running| !running.only_test);
    Ok(running.map(|running| running.version_id))
}

pub(super) fn has_token(work: &mut Work<'_>, secret: &Secret, token: &str) -> Result<bool, Fault> {
    let task = work.get::<Task>(&task_record_key(secret))?;
    let running = task.and_then(|task| task.running);
    Ok(running.is_some_and(|running| {
        outlast_crypto::hmac::equal(running.token.as_bytes(), token.as_bytes())
    }))
}

/// Takes a task that is due under a lease, which keeps other servers from it; `None` if it is no longer due. `lease_ms`
/// is how long a call of a function may take.
pub fn claim(
    work: &mut Work<'_>,
    record_key: &str,
    lease_ms: &dyn Fn(&str) -> i64,
) -> Result<Option<Claimed>, SecretError> {
    let now_ms = work.now_ms();
    let Some(mut task) = work.get::<Task>(record_key)?.filter(|task| task.due_ms <= now_ms) else {
        return Ok(None);
    };
    let (scope, name) =
        parts(record_key, TASKS).ok_or_else(|| Fault::Damaged(record_key.into()))?;
    let secret = load(work, &scope, name)?.filter(|secret| secret.erase_ms().is_none());
    let Some(mut secret) = secret.filter(|secret| secret.rotation().is_some_and(|on| on.enabled))
    else {
        work.delete(record_key);
        return Ok(None);
    };
    let missed = |window: Window| now_ms >= window.end_ms;
    if task.running.is_none() {
        let rotation = secret.rotation().cloned();
        let window = rotation.as_ref().and_then(|rotation| rotation.rules.window(task.due_ms));
        if window.is_some_and(missed) {
            // The server was down for the whole window: AWS rotates in windows only.
            super::schedule(work, &mut secret)?;
            secret.save_unchanged(work)?;
            return Ok(None);
        }
        // A version that an earlier rotation left is tried again.
        let left = secret.staged(PENDING).filter(|(_, version)| version.stages.len() == 1);
        let version_id = match left {
            Some((id, _)) => id.clone(),
            None => ids::uuid()?,
        };
        begin(work, &mut secret, version_id, true)?;
        secret.save_unchanged(work)?;
        task = work.get::<Task>(record_key)?.ok_or_else(|| Fault::Damaged(record_key.into()))?;
    }
    let lease = ids::uuid()?;
    let function = secret.rotation().map(|rotation| rotation.function.clone()).unwrap_or_default();
    let Some(running) = &mut task.running else { return Ok(None) };
    let begins = running.lease.is_none() && running.failed == 0;
    let kind = match running.step {
        Step::Create if begins => Some(&events::ROTATION_STARTED),
        Step::Test if begins && running.only_test => Some(&events::ROTATION_TEST_STARTED),
        _ => None,
    };
    running.lease = Some(lease.clone());
    task.due_ms = now_ms + lease_ms(&function);
    let call = Call {
        secret_arn: secret.arn(),
        function,
        step: running.step,
        version_id: running.version_id.clone(),
        token: running.token.clone(),
        name: name.to_owned(),
        scope,
        lease,
    };
    work.put(record_key, &task)?;
    let event = kind.map(|kind| told(work, &secret, kind, None)).transpose()?;
    Ok(Some(Claimed { call, event }))
}

/// Records the outcome of a call, if its lease still holds: the next step, another attempt, or the end. Returns what
/// belongs into the audit trail.
pub fn complete(
    work: &mut Work<'_>,
    call: &Call,
    outcome: &Outcome,
) -> Result<Option<Done>, SecretError> {
    let record_key = format!("{TASKS}{}/{}/{}", call.scope.account, call.scope.region, call.name);
    let Some(mut task) = work.get::<Task>(&record_key)? else { return Ok(None) };
    let Some(running) =
        task.running.as_mut().filter(|running| running.lease.as_deref() == Some(&call.lease))
    else {
        return Ok(None);
    };
    let Some(mut secret) = load(work, &call.scope, &call.name)? else {
        work.delete(&record_key);
        return Ok(None);
    };
    running.lease = None;
    let mut outcome = outcome.clone();
    let is_last = running.step == Step::Finish;
    if outcome == Outcome::Done && is_last {
        // "The finishSecret step moves AWSCURRENT": a function that says it has and has not did not rotate.
        let moved = secret.staged(CURRENT).is_some_and(|(id, _)| *id == running.version_id);
        if !moved {
            outcome = Outcome::Failed(format!(
                "finishSecret has not moved AWSCURRENT to version {}",
                running.version_id
            ));
        }
    }
    // AWS's words. What the function said stays in the server's log: it may quote a value.
    let error = format!("Error when executing {} during {} step", call.function, call.step.name());
    match outcome {
        Outcome::Done if running.only_test => {
            tested(work, &mut secret)?;
            Ok(Some(told(work, &secret, &events::ROTATION_TEST_SUCCEEDED, None)?))
        }
        Outcome::Done => match running.step.next() {
            Some(step) => {
                running.step = step;
                running.failed = 0;
                task.due_ms = work.now_ms();
                work.put(&record_key, &task)?;
                Ok(None)
            }
            None => {
                let now_ms = work.now_ms();
                secret.record.rotated_ms = Some(now_ms);
                if let Some(version) = secret.record.versions.get_mut(&call.version_id) {
                    version.stages.remove(PENDING);
                }
                super::schedule(work, &mut secret)?;
                secret.save(work)?;
                end_rotation(work, &secret)?;
                Ok(Some(told(work, &secret, &events::ROTATION_SUCCEEDED, None)?))
            }
        },
        Outcome::Failed(_) if running.only_test => {
            tested(work, &mut secret)?;
            Ok(Some(told(work, &secret, &events::ROTATION_TEST_FAILED, Some(error))?))
        }
        Outcome::Failed(_) if running.failed + 1 < limits::ROTATION_ATTEMPTS => {
            running.failed += 1;
            // 2, 8, 32, 128 seconds.
            task.due_ms = work.now_ms() + 500 * 4_i64.pow(running.failed.min(6));
            work.put(&record_key, &task)?;
            Ok(None)
        }
        Outcome::Failed(_) => {
            // The next window tries again, with the version that is pending.
            super::schedule(work, &mut secret)?;
            secret.save_unchanged(work)?;
            Ok(Some(told(work, &secret, &events::ROTATION_FAILED, Some(error))?))
        }
    }
}

/// Tells a beginning or an end; returns what belongs into the audit trail.
fn told(
    work: &mut Work<'_>,
    secret: &Secret,
    kind: &'static Kind,
    error: Option<String>,
) -> Result<Done, Fault> {
    secret.tell(work, kind, error)?;
    Ok(Done { scope: secret.scope().clone(), arn: secret.arn(), event: kind.trail() })
}

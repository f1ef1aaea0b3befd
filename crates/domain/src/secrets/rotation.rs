//! Rotation: its configuration, when it is due, and how far one has come.
//!
//! A rotation calls a function four times, once for each of AWS's steps ("Lambda rotation functions" of the user guide).
//! The function is outside: this module says which call is due ([`claim`]) and records its outcome ([`complete`]). The
//! step under way is a record of its own, so that another server goes on where one has stopped.

pub mod schedule;
mod task;

pub use schedule::{Rotation, Rules, Window};
pub use task::{Call, Claimed, Outcome, Step, claim, complete, due};

use super::secret::{PREFIX, Secret, Version};
use super::{CURRENT, PENDING, SecretError};
use crate::Fault;
use crate::identity::{Permit, action};
use crate::work::Work;

/// What a request to rotate asks for.
pub struct Start {
    /// New `RotationLambdaARN`, unless the secret's is to be kept.
    pub function: Option<String>,
    /// New rules, unless the secret's are to be kept.
    pub rules: Option<Rules>,
    /// `ClientRequestToken`: id of the version that the rotation makes.
    pub version_id: String,
    /// Whether it begins now; otherwise only its function is tested, and the schedule decides.
    pub immediately: bool,
}

/// Turns rotation on, or changes it, and begins one.
pub fn start(
    work: &mut Work<'_>,
    secret: &mut Secret,
    start: Start,
    permit: &Permit<action::secretsmanager::RotateSecret>,
) -> Result<(), SecretError> {
    permit.opens(&secret.arn())?;
    secret.require_kept()?;
    secret.require_primary()?;
    end_test(secret);
    let before = secret.record.rotation.take();
    let function = start.function.filter(|function| !function.is_empty());
    let Some(function) = function.or_else(|| before.as_ref().map(|before| before.function.clone()))
    else {
        return Err(SecretError::InvalidRequest(
            "You tried to enable rotation on a secret that doesn't already have a Lambda function ARN configured and you \
             didn't include such an ARN as a parameter in this call."
                .into(),
        ));
    };
    if !secret.record.versions.values().any(Version::has_value) {
        return Err(SecretError::InvalidRequest(
            "You can't rotate a secret without a value: put one first.".into(),
        ));
    }
    let under_way = task::under_way(work, secret)?;
    // A pending value may be in force already at the database: another one would lose it. A pending version without a
    // value stands in nobody's way.
    let left = left(secret).filter(|_| start.immediately);
    if under_way.as_ref().or(left).is_some_and(|version_id| *version_id != start.version_id) {
        return Err(SecretError::InvalidRequest(
            "A previous rotation isn't complete. That rotation will be reattempted.".into(),
        ));
    }
    let rules = start.rules.or_else(|| before.map(|before| before.rules)).unwrap_or_default();
    let next_ms = rules.next(work.now_ms())?;
    secret.record.rotation = Some(Rotation { function, rules, enabled: true, next_ms });
    // A repeated request does not begin the same rotation again.
    if under_way.is_none() {
        task::begin(work, secret, start.version_id, start.immediately)?;
    }
    Ok(secret.save(work)?)
}

/// The pending version that an earlier rotation left, if it has a value.
fn left(secret: &Secret) -> Option<&String> {
    let pending = secret.staged(PENDING);
    let left =
        pending.filter(|(_, version)| version.has_value() && !version.stages.contains(CURRENT));
    left.map(|(id, _)| id)
}

/// Removes the version of a test, if one is under way; does not save the secret.
pub(super) fn end_test(secret: &mut Secret) {
    secret.record.versions.retain(|_, version| version.shows.is_none());
}

/// Turns rotation off and ends the one under way. Returns the version that it had begun, whose label stays.
pub fn cancel(
    work: &mut Work<'_>,
    secret: &mut Secret,
    permit: &Permit<action::secretsmanager::CancelRotateSecret>,
) -> Result<Option<String>, SecretError> {
    permit.opens(&secret.arn())?;
    secret.require_kept()?;
    secret.require_primary()?;
    if let Some(rotation) = &mut secret.record.rotation {
        rotation.enabled = false;
        rotation.next_ms = None;
    }
    forget(work, secret)?;
    end_test(secret);
    secret.save(work)?;
    Ok(secret.staged(PENDING).map(|(id, _)| id.clone()))
}

/// Forgets what is due: the secret does not rotate until [`schedule`].
pub(super) fn forget(work: &mut Work<'_>, secret: &Secret) -> Result<(), Fault> {
    let record_key = task_record_key(secret);
    if work.exists(&record_key)? {
        work.delete(&record_key);
    }
    Ok(())
}

/// Notes when the next rotation is due, if rotation is on.
pub(super) fn schedule(work: &mut Work<'_>, secret: &mut Secret) -> Result<(), SecretError> {
    let now_ms = work.now_ms();
    let Some(rotation) = secret.record.rotation.as_mut().filter(|rotation| rotation.enabled) else {
        return Ok(());
    };
    rotation.next_ms = rotation.rules.next(now_ms)?;
    Ok(task::wait(work, secret)?)
}

/// Checks a rotation token that a function sends: during a rotation it must be that rotation's.
pub fn check_token(work: &mut Work<'_>, secret: &Secret, token: &str) -> Result<(), SecretError> {
    if task::has_token(work, secret, token)? {
        return Ok(());
    }
    Err(SecretError::InvalidRequest(
        "The RotationToken is not that of a rotation under way.".into(),
    ))
}

fn task_record_key(secret: &Secret) -> String {
    super::secret::record_key(secret.scope(), secret.name()).replacen(PREFIX, TASKS, 1)
}

/// Prefix of the records of what is due.
const TASKS: &str = "secrets/rotation/";

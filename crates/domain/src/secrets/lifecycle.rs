//! Deletion of secrets: scheduled, forced, cancelled, carried out.

use super::secret::{PREFIX, Record, Secret, parts};
use super::{SecretError, list, policy, rotation};
use crate::identity::{Permit, action};
use crate::work::{Sweep, Swept, Work};
use crate::{Fault, events};

/// Days in which a deleted secret can be restored.
pub const RECOVERY_DAYS: std::ops::RangeInclusive<i64> = 7..=30;

const DAY_MS: i64 = 86_400_000;

/// Schedules the deletion of a secret. Its value cannot be read meanwhile, and it can be restored.
pub fn delete(
    work: &mut Work<'_>,
    secret: &mut Secret,
    days: i64,
    permit: &Permit<action::secretsmanager::DeleteSecret>,
) -> Result<(), SecretError> {
    permit.opens(&secret.arn())?;
    if !RECOVERY_DAYS.contains(&days) {
        return Err(SecretError::InvalidParameter(
            "The RecoveryWindowInDays value must be between 7 and 30 days (inclusive).".into(),
        ));
    }
    secret.require_kept()?;
    require_alone(secret)?;
    secret.record.erase_ms = Some(work.now_ms() + days * DAY_MS);
    rotation::end_test(secret);
    rotation::forget(work, secret)?;
    Ok(secret.save(work)?)
}

/// Outcome of a forced deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forced {
    /// Record keys of values that no longer exist.
    pub erased: usize,
}

/// Erases a secret at once, with all its values.
pub fn force_delete(
    work: &mut Work<'_>,
    secret: &Secret,
    permit: &Permit<action::secretsmanager::DeleteSecret>,
) -> Result<Forced, SecretError> {
    permit.opens(&secret.arn())?;
    require_alone(secret)?;
    Ok(Forced { erased: erase(work, secret)? })
}

/// Cancels a scheduled deletion. A secret that is not deleted stays as it is.
pub fn restore(
    work: &mut Work<'_>,
    secret: &mut Secret,
    permit: &Permit<action::secretsmanager::RestoreSecret>,
) -> Result<(), SecretError> {
    permit.opens(&secret.arn())?;
    if secret.record.erase_ms.take().is_none() {
        return Ok(());
    }
    rotation::schedule(work, secret)?;
    Ok(secret.save(work)?)
}

/// Refuses the deletion of a primary secret with replicas, and of a replica.
fn require_alone(secret: &Secret) -> Result<(), SecretError> {
    secret.require_primary()?;
    if secret.record.replicas.is_empty() {
        return Ok(());
    }
    let regions: Vec<_> = secret.record.replicas.keys().map(String::as_str).collect();
    Err(SecretError::InvalidRequest(format!(
        "You can't delete secret {} that still has replica regions [{}]",
        secret.name(),
        regions.join(", ")
    )))
}

/// Erases a secret with its values, policy and index entries; returns the number of values.
pub(super) fn erase(work: &mut Work<'_>, secret: &Secret) -> Result<usize, Fault> {
    let versions = secret.record.versions.values();
    let numbers: Vec<_> = versions.filter_map(|version| version.number).collect();
    for number in &numbers {
        work.delete(&secret.value_record_key(*number));
    }
    policy::erase(work, secret)?;
    rotation::forget(work, secret)?;
    list::forget_created(work, secret);
    work.delete(&super::secret::record_key(secret.scope(), secret.name()));
    Ok(numbers.len())
}

/// Erases secrets whose recovery window is over, in all accounts and Regions.
pub const ERASE_EXPIRED: Sweep = Sweep {
    find: |work, after, limit| {
        work.due(PREFIX, after, limit, |record: &Record, now_ms| is_over(record, now_ms))
    },
    handle: erase_expired,
};

fn is_over(record: &Record, now_ms: i64) -> bool {
    record.erase_ms.is_some_and(|erase_ms| erase_ms <= now_ms)
}

fn erase_expired(work: &mut Work<'_>, record_key: &str, swept: &mut Swept) -> Result<(), Fault> {
    let (scope, _) =
        parts(record_key, PREFIX).ok_or_else(|| Fault::Damaged(record_key.to_owned()))?;
    // Read as part of the work, so that a restoration in between wins.
    let now_ms = work.now_ms();
    let Some(record) = work.get::<Record>(record_key)?.filter(|record| is_over(record, now_ms))
    else {
        return Ok(());
    };
    let secret = Secret::new(scope, record);
    erase(work, &secret)?;
    secret.tell(work, &events::SECRET_DELETED, None)?;
    swept.done(secret.scope(), secret.arn(), "EndSecretVersionDelete");
    Ok(())
}

//! States of keys: enabled, disabled, pending deletion, erased.

use super::record::{Deletion, Key, KeyState, Record, record_key, scope_of};
use super::{KmsError, alias, grant, import, region, usage};
use crate::events::{self, Fact, Told};
use crate::identity::{Permit, action};
use crate::work::{Due, Sweep, Swept, Work};
use crate::{Fault, limits, tsa};

/// Enables a key.
pub fn enable(
    work: &mut Work<'_>,
    key: Key,
    permit: &Permit<action::kms::EnableKey>,
) -> Result<Key, KmsError> {
    permit.opens(&key.arn())?;
    set_enabled(work, key, true)
}

/// Disables a key.
pub fn disable(
    work: &mut Work<'_>,
    key: Key,
    permit: &Permit<action::kms::DisableKey>,
) -> Result<Key, KmsError> {
    permit.opens(&key.arn())?;
    set_enabled(work, key, false)
}

fn set_enabled(work: &mut Work<'_>, mut key: Key, enabled: bool) -> Result<Key, KmsError> {
    if !matches!(key.state(), KeyState::Enabled | KeyState::Disabled) {
        return Err(key.wrong_state());
    }
    key.record.enabled = enabled;
    key.save(work)?;
    Ok(key)
}

/// Schedules the deletion of a key and its material. A primary key with replicas waits for them.
pub fn schedule_deletion(
    work: &mut Work<'_>,
    mut key: Key,
    window_days: i64,
    permit: &Permit<action::kms::ScheduleKeyDeletion>,
) -> Result<Key, KmsError> {
    permit.opens(&key.arn())?;
    if !limits::DELETION_WINDOW_DAYS.contains(&window_days) {
        return Err(KmsError::Validation(
            "PendingWindowInDays must be between 7 and 30, inclusive.".into(),
        ));
    }
    key.require_kept()?;
    let has_replicas = key.regions().is_some_and(|regions| !regions.replicas.is_empty());
    if has_replicas && !key.is_replica() {
        key.record.after_replicas_days = Some(window_days);
    } else {
        let at_ms = work.now_ms() + window_days * 86_400_000;
        key.record.deletion = Some(Deletion { at_ms, window_days });
    }
    key.save(work)?;
    tell_deletion(work, &key)?;
    Ok(key)
}

/// Cancels a scheduled deletion. The key is disabled afterwards, as on AWS.
pub fn cancel_deletion(
    work: &mut Work<'_>,
    mut key: Key,
    permit: &Permit<action::kms::CancelKeyDeletion>,
) -> Result<Key, KmsError> {
    permit.opens(&key.arn())?;
    if key.require_kept().is_ok() {
        return Err(KmsError::InvalidState(format!("{} is not pending deletion.", key.arn())));
    }
    key.record.deletion = None;
    key.record.after_replicas_days = None;
    key.record.enabled = false;
    key.save(work)?;
    Ok(key)
}

/// Erases keys whose waiting period is over, with all their records, and expired imported material, in all accounts
/// and Regions.
pub const ERASE_EXPIRED: Sweep = Sweep {
    find: |work, after, limit| {
        work.due("kms/key/", after, limit, |record: &Record, now_ms| {
            is_over(record, now_ms) || has_expired_material(record, now_ms)
        })
    },
    handle: erase_expired,
};

/// Tells each day which keys are going to be erased, in all accounts and Regions.
pub const TELL_DELETIONS: Sweep = Sweep { find: find_deletions, handle: tell_again };

fn find_deletions(work: &Work<'_>, after: &str, limit: usize) -> Result<Due, Fault> {
    if !events::is_wanted(work, &[&events::KEY_PENDING_DELETION]) {
        return Ok(Due::default());
    }
    work.due("kms/key/", after, limit, |record: &Record, _| record.deletion.is_some())
}

fn tell_again(work: &mut Work<'_>, record_key: &str, _: &mut Swept) -> Result<(), Fault> {
    let Some(record) = work.get::<Record>(record_key)? else { return Ok(()) };
    let scope = scope_of(record_key).ok_or_else(|| Fault::Damaged(record_key.to_owned()))?;
    let key = Key::new(&scope, record, work.now_ms())?;
    tell_deletion(work, &key)
}

/// Tells that a key is going to be erased, once a day.
pub(super) fn tell_deletion(work: &mut Work<'_>, key: &Key) -> Result<(), Fault> {
    let now_ms = work.now_ms();
    let Some(deletion) = key.deletion().filter(|deletion| deletion.at_ms > now_ms) else {
        return Ok(());
    };
    let kind = &events::KEY_PENDING_DELETION;
    if !events::is_news(work, kind, &key.arn(), events::day(now_ms))? {
        return Ok(());
    }
    let facts = [
        (Fact::KeyId, key.id().into()),
        (Fact::Ends, Told::Time(deletion.at_ms)),
        (Fact::DaysLeft, events::days_left(now_ms, deletion.at_ms).into()),
    ];
    events::tell(work, kind, key.scope(), vec![key.arn()], facts)
}

fn erase_expired(work: &mut Work<'_>, record_key: &str, swept: &mut Swept) -> Result<(), Fault> {
    // Read as part of the work, so that a cancellation in between wins. This is also how the keys of a set that are
    // erased at once see each other.
    let Some(record) = work.get::<Record>(record_key)? else { return Ok(()) };
    let scope = scope_of(record_key).ok_or_else(|| Fault::Damaged(record_key.to_owned()))?;
    let key = Key::new(&scope, record, work.now_ms())?;
    if is_over(&key.record, work.now_ms()) {
        erase(work, &key, swept)?;
        key.tell(work, &events::KEY_DELETED)?;
        swept.done(&scope, key.arn(), "DeleteKey");
    } else if has_expired_material(&key.record, work.now_ms()) {
        import::erase_expired(work, key, swept)?;
    }
    Ok(())
}

fn is_over(record: &Record, now_ms: i64) -> bool {
    record.deletion.is_some_and(|deletion| deletion.at_ms <= now_ms)
}

fn has_expired_material(record: &Record, now_ms: i64) -> bool {
    record.materials.iter().any(|material| {
        material.import.as_ref().is_some_and(|import| import.present)
            && !material.is_present(now_ms)
    })
}

fn erase(work: &mut Work<'_>, key: &Key, swept: &mut Swept) -> Result<(), Fault> {
    alias::delete_all(work, key.scope(), key.id())?;
    grant::delete_all(work, key)?;
    import::close_all(work, key)?;
    usage::forget(work, key);
    tsa::forget(work, key);
    for material in key.materials() {
        let material = key.material_record_key(&material.id);
        work.delete(&material);
        swept.erased.push(material);
    }
    work.delete(&record_key(key.scope(), key.id()));
    if key.is_replica() {
        region::replica_is_gone(work, key)?;
    }
    Ok(())
}

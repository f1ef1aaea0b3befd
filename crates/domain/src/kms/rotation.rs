//! Rotation of key material; what old material encrypted can always be decrypted.

use super::record::{Key, Material, Origin, Record, Rotation, scope_of};
use super::{KmsError, region};
use crate::identity::{Permit, action};
use crate::work::{Page, Sweep, Swept, Work};
use crate::{Fault, events, ids, limits};

/// `AUTOMATIC`
const AUTOMATIC: &str = "AUTOMATIC";
/// `ON_DEMAND`
const ON_DEMAND: &str = "ON_DEMAND";
const DAY_MS: i64 = 86_400_000;

/// Which materials to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Those that rotations brought.
    Rotations,
    /// Also the first one, and those that wait for a rotation.
    All,
}

/// Enables automatic rotation, or changes its period.
pub fn enable_rotation(
    work: &mut Work<'_>,
    mut key: Key,
    period_days: i64,
    permit: &Permit<action::kms::EnableKeyRotation>,
) -> Result<(), KmsError> {
    permit.opens(&key.arn())?;
    if !limits::ROTATION_PERIOD_DAYS.contains(&period_days) {
        return Err(KmsError::Validation(
            "RotationPeriodInDays must be between 90 and 2560, inclusive.".into(),
        ));
    }
    require_rotatable(&key)?;
    if key.origin() == Origin::External {
        return Err(unsupported(&key, "has imported key material, which rotates on demand only"));
    }
    key.require_enabled()?;
    let next_ms = work.now_ms() + period_days * DAY_MS;
    key.record.rotation = Some(Rotation { period_days, next_ms });
    Ok(key.save(work)?)
}

/// Disables automatic rotation.
pub fn disable_rotation(
    work: &mut Work<'_>,
    mut key: Key,
    permit: &Permit<action::kms::DisableKeyRotation>,
) -> Result<(), KmsError> {
    permit.opens(&key.arn())?;
    require_rotatable(&key)?;
    if key.origin() == Origin::External {
        return Err(unsupported(&key, "has imported key material, which rotates on demand only"));
    }
    key.require_enabled()?;
    key.record.rotation = None;
    Ok(key.save(work)?)
}

/// Automatic rotation of a key, if it is enabled; a replica has its primary key's.
pub fn rotation_status(
    work: &mut Work<'_>,
    key: &Key,
    permit: &Permit<action::kms::GetKeyRotationStatus>,
) -> Result<Option<Rotation>, KmsError> {
    permit.opens(&key.arn())?;
    if !key.is_symmetric_encryption() {
        return Err(unsupported(key, "is not a symmetric encryption key"));
    }
    // "While a KMS key is pending deletion, its key rotation status is false."
    if key.require_kept().is_err() {
        return Ok(None);
    }
    match key.regions() {
        Some(regions) if key.is_replica() => {
            let primary = region::sibling(work, key, &regions.primary)?;
            Ok(primary.and_then(|primary| primary.rotation()))
        }
        _ => Ok(key.rotation()),
    }
}

/// Rotates now.
pub fn rotate_on_demand(
    work: &mut Work<'_>,
    mut key: Key,
    permit: &Permit<action::kms::RotateKeyOnDemand>,
) -> Result<(), KmsError> {
    permit.opens(&key.arn())?;
    require_rotatable(&key)?;
    key.require_enabled()?;
    let rotations =
        key.materials().iter().filter(|m| m.rotation_type.as_deref() == Some(ON_DEMAND));
    if rotations.count() >= limits::MAX_ON_DEMAND_ROTATIONS {
        return Err(KmsError::LimitExceeded(format!(
            "a key rotates on demand at most {} times",
            limits::MAX_ON_DEMAND_ROTATIONS
        )));
    }
    match key.origin() {
        Origin::Own => Ok(rotate(work, &mut key, ON_DEMAND)?),
        Origin::External => rotate_to_imported(work, &mut key),
    }
}

/// Materials of a key, newest first, after the marker of the previous page.
pub fn rotations(
    work: &Work<'_>,
    key: &Key,
    listed: Listed,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::kms::ListKeyRotations>,
) -> Result<Page<Material>, KmsError> {
    permit.opens(&key.arn())?;
    if !key.is_symmetric_encryption() {
        return Err(unsupported(key, "is not a symmetric encryption key"));
    }
    let now_ms = work.now_ms();
    let mut items: Vec<_> = key
        .materials()
        .iter()
        .rev()
        .filter(|material| listed == Listed::All || material.rotated_ms.is_some())
        .cloned()
        .map(|mut material| {
            let present = material.is_present(now_ms);
            if let Some(import) = &mut material.import {
                import.present = present;
            }
            material
        })
        .collect();
    if let Some(marker) = marker {
        let at = items.iter().position(|material| material.id == marker);
        let at = at.ok_or(KmsError::InvalidMarker)?;
        items.drain(..=at);
    }
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|material| material.id.clone());
    Ok(Page { items, next })
}

/// Rotates keys that are due, in all accounts and regions.
pub const ROTATE_DUE: Sweep = Sweep {
    find: |work, after, limit| work.due("kms/key/", after, limit, is_due),
    handle: rotate_due,
};

fn is_due(record: &Record, now_ms: i64) -> bool {
    record.enabled
        && record.deletion.is_none()
        && record.after_replicas_days.is_none()
        && record.rotation.is_some_and(|rotation| rotation.next_ms <= now_ms)
}

fn rotate_due(work: &mut Work<'_>, record_key: &str, swept: &mut Swept) -> Result<(), Fault> {
    // Read again as part of the work: it may have been rotated in the meantime.
    let Some(record) = work.get::<Record>(record_key)?.filter(|now| is_due(now, work.now_ms()))
    else {
        return Ok(());
    };
    let scope = scope_of(record_key).ok_or_else(|| Fault::Damaged(record_key.to_owned()))?;
    let mut key = Key::new(&scope, record, work.now_ms())?;
    if let Some(rotation) = &mut key.record.rotation {
        rotation.next_ms = work.now_ms() + rotation.period_days * DAY_MS;
    }
    rotate(work, &mut key, AUTOMATIC)?;
    swept.done(&scope, key.arn(), "RotateKey");
    Ok(())
}

fn rotate(work: &mut Work<'_>, key: &mut Key, kind: &str) -> Result<(), Fault> {
    let material = Material {
        rotated_ms: Some(work.now_ms()),
        rotation_type: Some(kind.to_owned()),
        ..Material::first(ids::hex::<32>()?)
    };
    work.put_secret(&key.material_record_key(&material.id), &key.spec().generate()?)?;
    material.id.clone_into(&mut key.record.material_id);
    key.record.materials.push(material);
    key.save(work)?;
    key.tell(work, &events::KEY_ROTATED)?;
    region::spread_materials(work, key)
}

/// Makes the waiting imported material current, if it was imported in every Region of the key.
fn rotate_to_imported(work: &mut Work<'_>, key: &mut Key) -> Result<(), KmsError> {
    let now_ms = work.now_ms();
    let waiting = key.materials().iter().find(|material| material.pending);
    let Some(id) = waiting.filter(|m| m.is_present(now_ms)).map(|m| m.id.clone()) else {
        return Err(KmsError::InvalidState(format!(
            "{} has no imported key material waiting for a rotation: import new key material first.",
            key.arn()
        )));
    };
    if let Some(region) = region_without(work, key, &id)? {
        return Err(KmsError::InvalidState(format!(
            "The new key material of {} is not imported in {region} yet.",
            key.arn()
        )));
    }
    for material in &mut key.record.materials {
        if material.id == id {
            material.pending = false;
            material.rotated_ms = Some(now_ms);
            material.rotation_type = Some(ON_DEMAND.to_owned());
        }
    }
    key.record.material_id = id;
    key.save(work)?;
    key.tell(work, &events::KEY_ROTATED)?;
    Ok(region::spread_materials(work, key)?)
}

/// The first Region of the key's set in which a material has not been imported.
fn region_without(work: &mut Work<'_>, key: &Key, id: &str) -> Result<Option<String>, Fault> {
    let Some(regions) = key.regions().cloned() else { return Ok(None) };
    for region in regions.replicas.into_iter().chain([regions.primary]) {
        let member = region::sibling(work, key, &region)?;
        // A key that is scheduled for deletion accepts no imports, and must not block the others.
        if member.as_ref().is_some_and(|member| member.require_kept().is_err()) {
            continue;
        }
        let material = member.as_ref().and_then(|member| member.material(id));
        if !material.is_some_and(|material| material.is_present(work.now_ms())) {
            return Ok(Some(region));
        }
    }
    Ok(None)
}

/// Whether a material that waits for its rotation must first be imported in some Region.
pub fn awaits_import(
    work: &mut Work<'_>,
    key: &Key,
    material: &Material,
    permit: &Permit<action::kms::ListKeyRotations>,
) -> Result<bool, KmsError> {
    permit.opens(&key.arn())?;
    Ok(material.pending && region_without(work, key, &material.id)?.is_some())
}

fn require_rotatable(key: &Key) -> Result<(), KmsError> {
    if !key.is_symmetric_encryption() {
        return Err(unsupported(key, "is not a symmetric encryption key"));
    }
    if key.is_replica() {
        return Err(unsupported(key, "is a replica key; its rotation is set on the primary key"));
    }
    Ok(())
}

fn unsupported(key: &Key, why: &str) -> KmsError {
    KmsError::UnsupportedOperation(format!("{} {why}.", key.arn()))
}

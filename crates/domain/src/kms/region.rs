//! Multi-Region keys: one key id and one material in several Regions.

use std::collections::BTreeMap;

use super::KmsError;
use super::key::check_tags;
use super::record::{Deletion, Key, KeyState, Origin, Record, Regions, record_key};
use crate::arn::{Scope, is_region};
use crate::identity::{Permit, action};
use crate::partition::Partition;
use crate::work::Work;
use crate::{Fault, quotas};

/// Properties that a replica does not share with its primary key.
pub struct NewReplica {
    /// Its region.
    pub region: String,
    /// Free text.
    pub description: String,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Key policy, already checked; absent for the default one.
    pub policy: Option<String>,
}

/// Makes a replica of a primary key in another Region.
pub fn replicate(
    work: &mut Work<'_>,
    key: &Key,
    new: NewReplica,
    permit: &Permit<action::kms::ReplicateKey>,
) -> Result<Key, KmsError> {
    permit.opens(&key.arn())?;
    let Some(regions) = key.regions() else {
        return Err(KmsError::UnsupportedOperation(format!(
            "{} is not a multi-Region key.",
            key.arn()
        )));
    };
    if key.is_replica() {
        return Err(KmsError::UnsupportedOperation(format!(
            "{} is a replica key; only the primary key, in {}, can be replicated.",
            key.arn(),
            regions.primary
        )));
    }
    match key.state() {
        KeyState::Enabled => {}
        KeyState::Disabled => return Err(KmsError::Disabled(key.arn())),
        KeyState::PendingImport if key.origin() == Origin::External => {}
        _ => return Err(key.wrong_state()),
    }
    if !is_region(&new.region) {
        return Err(KmsError::Validation("ReplicaRegion is not the name of a region.".into()));
    }
    let (here, there) = (Partition::of(&key.scope().region), Partition::of(&new.region));
    if here != there {
        return Err(KmsError::Validation(format!(
            "ReplicaRegion is in the partition {}, and the key in {}.",
            there.id, here.id
        )));
    }
    check_tags(&new.tags)?;
    let scope = Scope { account: key.account().to_owned(), region: new.region.clone() };
    if new.region == key.scope().region || work.exists(&record_key(&scope, key.id()))? {
        return Err(KmsError::AlreadyExists(format!(
            "A key with the id {} already exists in {}.",
            key.id(),
            new.region
        )));
    }
    work.admit::<KmsError>(&quotas::KMS_KEYS, &[&scope.account, &scope.region])?;
    let mut regions = regions.clone();
    regions.replicas.insert(new.region);
    let mut record = key.record.clone();
    record.description = new.description;
    record.tags = new.tags;
    record.principals = super::access::resolve(work, new.policy.as_deref())?;
    record.policy = new.policy;
    record.enabled = true;
    record.created_ms = work.now_ms();
    record.rotation = None;
    record.regions = Some(regions.clone());
    for material in &mut record.materials {
        // Imported material must be imported into each Region by its owner.
        if let Some(import) = &mut material.import {
            import.present = false;
        }
    }
    let replica = Key::new(&scope, record, work.now_ms())?;
    if key.origin() == Origin::Own {
        copy_materials(work, key, &replica)?;
    }
    replica.save(work)?;
    save_regions(work, key, &regions)?;
    Ok(replica)
}

/// Makes the replica in `region` the primary key, and the primary key a replica.
pub fn update_primary(
    work: &mut Work<'_>,
    key: &Key,
    region: &str,
    permit: &Permit<action::kms::UpdatePrimaryRegion>,
    at_replica: Option<&Permit<action::kms::UpdatePrimaryRegion>>,
) -> Result<(), KmsError> {
    permit.opens(&key.arn())?;
    let Some(regions) = key.regions() else {
        return Err(KmsError::UnsupportedOperation(format!(
            "{} is not a multi-Region key.",
            key.arn()
        )));
    };
    if key.is_replica() {
        return Err(KmsError::UnsupportedOperation(format!(
            "{} is a replica key; call UpdatePrimaryRegion in {}.",
            key.arn(),
            regions.primary
        )));
    }
    key.require_enabled()?;
    if region == key.scope().region {
        return Ok(());
    }
    let missing =
        || KmsError::NotFound(format!("There is no replica of {} in {region}.", key.id()));
    let Some(mut replica) = sibling(work, key, region)? else { return Err(missing()) };
    Permit::required(at_replica, &replica.arn())?;
    replica.require_enabled()?;
    let mut regions = regions.clone();
    regions.replicas.remove(region);
    regions.replicas.insert(key.scope().region.clone());
    region.clone_into(&mut regions.primary);
    // The primary key's rotation schedule moves with it.
    replica.record.rotation = key.record.rotation;
    replica.save(work)?;
    let mut former = key.clone();
    former.record.rotation = None;
    former.save(work)?;
    Ok(save_regions(work, &former, &regions)?)
}

/// The key of the set in `region`, if there is one: also for checking permissions on it.
pub fn member(work: &mut Work<'_>, key: &Key, region: &str) -> Result<Option<Key>, KmsError> {
    Ok(sibling(work, key, region)?)
}

/// A material that waited for its rotation is no longer wanted; its copies in the replicas are deleted, too.
pub(super) fn forget_waiting(work: &mut Work<'_>, key: &Key, id: &str) -> Result<(), Fault> {
    let Some(regions) = key.regions().filter(|_| !key.is_replica()) else { return Ok(()) };
    for region in &regions.replicas {
        let Some(mut replica) = sibling(work, key, region)? else { continue };
        work.delete(&replica.material_record_key(id));
        replica.record.materials.retain(|material| material.id != id);
        replica.save(work)?;
    }
    Ok(())
}

/// After a replica was erased: the other keys of the set drop it, and a primary key that waited for the last one
/// starts its own waiting period.
pub(super) fn replica_is_gone(work: &mut Work<'_>, gone: &Key) -> Result<(), Fault> {
    let Some(regions) = gone.regions() else { return Ok(()) };
    let mut regions = regions.clone();
    regions.replicas.remove(&gone.scope().region);
    save_regions(work, gone, &regions)?;
    let Some(mut primary) = sibling(work, gone, &regions.primary)? else { return Ok(()) };
    if regions.replicas.is_empty()
        && let Some(window_days) = primary.record.after_replicas_days.take()
    {
        let at_ms = work.now_ms() + window_days * 86_400_000;
        primary.record.deletion = Some(Deletion { at_ms, window_days });
        primary.save(work)?;
    }
    Ok(())
}

/// Copies the rule of approvals of a primary key to its replicas: they have the same material.
pub(super) fn spread_approval_rule(work: &mut Work<'_>, key: &Key) -> Result<(), Fault> {
    let Some(regions) = key.regions() else { return Ok(()) };
    for region in &regions.replicas {
        let Some(mut replica) = sibling(work, key, region)? else { continue };
        replica.record.approval_rule.clone_from(&key.record.approval_rule);
        replica.save(work)?;
    }
    Ok(())
}

/// Copies a key's materials to its replicas, and which one is current.
pub(super) fn spread_materials(work: &mut Work<'_>, key: &Key) -> Result<(), Fault> {
    let Some(regions) = key.regions() else { return Ok(()) };
    for region in &regions.replicas {
        let Some(mut replica) = sibling(work, key, region)? else { continue };
        key.record.material_id.clone_into(&mut replica.record.material_id);
        for material in &key.record.materials {
            match replica.record.materials.iter_mut().find(|known| known.id == material.id) {
                // Imports are separate in each Region; which material is current, and since when, is the same
                // everywhere.
                Some(known) => {
                    known.rotated_ms = material.rotated_ms;
                    known.rotation_type.clone_from(&material.rotation_type);
                    known.pending = material.pending;
                }
                None => {
                    let mut material = material.clone();
                    if let Some(import) = &mut material.import {
                        import.present = false;
                    }
                    replica.record.materials.push(material);
                }
            }
        }
        if key.origin() == Origin::Own {
            copy_materials(work, key, &replica)?;
        }
        replica.save(work)?;
    }
    Ok(())
}

fn copy_materials(work: &mut Work<'_>, from: &Key, to: &Key) -> Result<(), Fault> {
    for material in from.materials() {
        let record_key = to.material_record_key(&material.id);
        if !work.exists(&record_key)? {
            let source = from.material_record_key(&material.id);
            let secret = work.secret(&source)?.ok_or(Fault::Damaged(source))?;
            work.put_secret(&record_key, &secret)?;
        }
    }
    Ok(())
}

/// Writes the Regions into every existing key of the set.
fn save_regions(work: &mut Work<'_>, key: &Key, regions: &Regions) -> Result<(), Fault> {
    let names = regions.replicas.iter().chain([&regions.primary]);
    for region in names {
        if let Some(mut member) = sibling(work, key, region)? {
            member.record.regions = Some(regions.clone());
            member.save(work)?;
        }
    }
    Ok(())
}

/// The record of a key in another region of its set.
pub(super) fn sibling(work: &mut Work<'_>, key: &Key, region: &str) -> Result<Option<Key>, Fault> {
    let scope = Scope { account: key.account().to_owned(), region: region.to_owned() };
    let Some(record) = work.get::<Record>(&record_key(&scope, key.id()))? else { return Ok(None) };
    Key::new(&scope, record, work.now_ms()).map(Some)
}

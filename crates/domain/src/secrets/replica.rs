//! Replicas: copies of a secret in other Regions. A change of the primary secret and of its replicas is one
//! transaction.
//!
//! Source: "Replicate AWS Secrets Manager secrets across Regions" of the user guide.

use std::collections::{BTreeMap, BTreeSet};

use super::create::check_free;
use super::lifecycle::erase;
use super::secret::{Record, Replica, ReplicaStatus, Secret, Version, load};
use super::value::{self, Protected};
use super::{SecretError, list, policy};
use crate::arn::{Scope, is_region};
use crate::identity::{Permit, action};
use crate::work::Work;
use crate::{Fault, quotas};

/// A replica to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReplica {
    /// Region.
    pub region: String,
    /// `KmsKeyId` in that Region; `None` for `alias/aws/secretsmanager`.
    pub kms_key: Option<String>,
}

/// Registers replicas of the secret, or those that failed again. What they contain comes by [`sync`].
pub fn add_replicas(
    work: &mut Work<'_>,
    secret: &mut Secret,
    new: &[NewReplica],
    permit: &Permit<impl action::ReplicatesSecret>,
) -> Result<(), SecretError> {
    permit.opens(&secret.arn())?;
    secret.require_kept()?;
    secret.require_primary()?;
    let mut named = BTreeSet::new();
    for replica in new {
        let is_own = replica.region == secret.scope.region;
        if is_own || !is_region(&replica.region) {
            return Err(SecretError::InvalidParameter("Invalid replica region.".into()));
        }
        if !named.insert(&replica.region) {
            return Err(SecretError::InvalidParameter(format!(
                "AddReplicaRegions has the Region {} more than once.",
                replica.region
            )));
        }
        let there = secret.record.replicas.get(&replica.region);
        if there.is_some_and(|there| there.status != ReplicaStatus::Failed) {
            return Err(SecretError::InvalidParameter(format!(
                "The secret is replicated to {} already.",
                replica.region
            )));
        }
        let added = Replica {
            kms_key: replica.kms_key.clone(),
            status: ReplicaStatus::Failed,
            message: None,
        };
        secret.record.replicas.insert(replica.region.clone(), added);
    }
    secret.record.primary = Some(secret.scope.region.clone());
    Ok(secret.save(work)?)
}

/// What a replica needs to be in sync: the versions whose values it lacks.
#[derive(Debug, Clone)]
pub struct Replicated {
    /// Account and Region of the replica.
    pub scope: Scope,
    /// `KmsKeyId` there.
    pub kms_key: Option<String>,
    /// ARN of the replica.
    pub arn: String,
    /// Ids of the versions with labels that it lacks.
    pub lacks: Vec<String>,
}

/// Finds what a replica lacks, and checks that there is room for it: a secret of the same name that is there is overwritten
/// only if `overwrite` says so, and only when [`sync`] has the values.
pub fn prepare_replica(
    work: &mut Work<'_>,
    primary: &Secret,
    region: &str,
    overwrite: bool,
) -> Result<Replicated, SecretError> {
    let damaged = || Fault::Damaged(format!("the replica of {} in {region}", primary.arn()));
    let replica = primary.record.replicas.get(region).ok_or_else(damaged)?;
    let scope = in_region(primary, region);
    let arn = super::secret::arn(&scope, primary.name(), &primary.record.suffix);
    let there = load(work, &scope, primary.name())?;
    let is_ours = there.as_ref().is_some_and(|found| is_replica_of(found, primary));
    let is_alone = |found: &Secret| !found.is_replica() && found.record.replicas.is_empty();
    if !there.as_ref().is_none_or(|found| is_ours || (overwrite && is_alone(found))) {
        return Err(taken(primary, region));
    }
    if there.is_none() {
        // One that waits for its erasure keeps its name.
        check_free(work, &scope, primary.name()).map_err(|_| taken(primary, region))?;
        work.admit::<SecretError>(&quotas::SECRETS, &[&scope.account, &scope.region])?;
    }
    let has = there.filter(|_| is_ours).map(|found| found.record.versions).unwrap_or_default();
    let lacks = primary.record.versions.iter().filter(|(id, version)| {
        // A re-encrypted version has the same value.
        version.has_value() && !version.stages.is_empty() && !has.contains_key(*id)
    });
    let lacks = lacks.map(|(id, _)| id.clone()).collect();
    Ok(Replicated { scope, kms_key: replica.kms_key.clone(), arn, lacks })
}

fn taken(primary: &Secret, region: &str) -> SecretError {
    SecretError::InvalidRequest(format!(
        "Replication failed: Secret name {} already exists in region {region}.",
        primary.name()
    ))
}

fn is_replica_of(found: &Secret, primary: &Secret) -> bool {
    found.record.suffix == primary.record.suffix
        && found.record.primary.as_deref() == Some(primary.scope.region.as_str())
}

/// Brings a replica up to date with the values that it lacked, or notes why that failed. What needs no key follows
/// in any case: description, tags and policy.
pub fn sync(
    work: &mut Work<'_>,
    primary: &mut Secret,
    region: &str,
    outcome: Result<Vec<(String, Protected)>, String>,
    permit: &Permit<impl action::ChangesSecret>,
) -> Result<(), SecretError> {
    permit.opens(&primary.arn())?;
    let (status, message) = match outcome {
        Ok(values) => {
            copy(work, primary, region, values)?;
            (ReplicaStatus::InSync, None)
        }
        Err(why) => {
            let there = load(work, &in_region(primary, region), primary.name())?;
            if let Some(mut replica) = there.filter(|found| is_replica_of(found, primary)) {
                follow(work, primary, &mut replica)?;
            }
            (ReplicaStatus::Failed, Some(why))
        }
    };
    if let Some(replica) = primary.record.replicas.get_mut(region) {
        replica.status = status;
        replica.message = message;
    }
    Ok(primary.save_unchanged(work)?)
}

fn copy(
    work: &mut Work<'_>,
    primary: &Secret,
    region: &str,
    values: Vec<(String, Protected)>,
) -> Result<(), SecretError> {
    let scope = in_region(primary, region);
    let mut there = load(work, &scope, primary.name())?;
    // What `prepare_replica` allowed to be overwritten.
    if let Some(other) = there.take_if(|found| !is_replica_of(found, primary)) {
        erase(work, &other)?;
    }
    let is_new = there.is_none();
    let of = &primary.record;
    let kms_key = of.replicas.get(region).and_then(|replica| replica.kms_key.clone());
    let mut replica = there.unwrap_or_else(|| {
        let record = Record {
            created_ms: work.now_ms(),
            accessed_ms: None,
            versions: BTreeMap::new(),
            next_number: 0,
            rotation: None,
            replicas: BTreeMap::new(),
            ..of.clone()
        };
        Secret::new(scope, record)
    });
    replica.record.rotated_ms = of.rotated_ms;
    replica.record.kms_key = kms_key;
    let gone: Vec<_> = replica
        .record
        .versions
        .keys()
        .filter(|id| !of.versions.contains_key(*id))
        .cloned()
        .collect();
    for id in gone {
        let removed = replica.record.versions.remove(&id);
        if let Some(number) = removed.and_then(|version| version.number) {
            work.delete(&replica.value_record_key(number));
        }
    }
    for (id, protected) in values {
        let number = replica.record.next_number;
        replica.record.next_number += 1;
        value::write(work, &replica, number, &protected)?;
        let created_ms = of.versions.get(&id).map_or(work.now_ms(), |version| version.created_ms);
        let version =
            Version { key: protected.key, number: Some(number), ..Version::empty(created_ms) };
        replica.record.versions.insert(id, version);
    }
    follow_labels(primary, &mut replica);
    if is_new {
        list::note_created(work, &replica)?;
    }
    follow(work, primary, &mut replica)
}

/// Gives the replicas the labels and the time of a rotation that has ended. That needs no key, because the rotation's own
/// calls have brought the value.
pub(super) fn end_rotation(work: &mut Work<'_>, primary: &Secret) -> Result<(), Fault> {
    for region in primary.record.replicas.keys() {
        let there = load(work, &in_region(primary, region), primary.name())?;
        if let Some(mut replica) = there.filter(|found| is_replica_of(found, primary)) {
            replica.record.rotated_ms = primary.record.rotated_ms;
            follow_labels(primary, &mut replica);
            replica.save(work)?;
        }
    }
    Ok(())
}

fn follow_labels(primary: &Secret, replica: &mut Secret) {
    for (id, version) in &mut replica.record.versions {
        let of = primary.record.versions.get(id);
        version.stages = of.map(|version| version.stages.clone()).unwrap_or_default();
    }
}

/// Gives a replica what its primary secret has and no key protects, and saves it.
fn follow(work: &mut Work<'_>, primary: &Secret, replica: &mut Secret) -> Result<(), SecretError> {
    replica.record.description.clone_from(&primary.record.description);
    replica.record.tags.clone_from(&primary.record.tags);
    replica.save(work)?;
    Ok(policy::copy(work, primary, replica)?)
}

/// The primary secret's account in another Region.
fn in_region(primary: &Secret, region: &str) -> Scope {
    Scope { account: primary.scope.account.clone(), region: region.to_owned() }
}

/// Removes replicas, with their values.
pub fn remove_replicas(
    work: &mut Work<'_>,
    secret: &mut Secret,
    regions: &[String],
    permit: &Permit<action::secretsmanager::RemoveRegionsFromReplication>,
) -> Result<(), SecretError> {
    permit.opens(&secret.arn())?;
    secret.require_kept()?;
    secret.require_primary()?;
    for region in regions {
        if secret.record.replicas.remove(region).is_none() {
            return Err(SecretError::InvalidParameter(format!(
                "The secret is not replicated to {region}."
            )));
        }
        let scope = Scope { account: secret.scope.account.clone(), region: region.clone() };
        if let Some(replica) = load(work, &scope, secret.name())?
            && is_replica_of(&replica, secret)
        {
            erase(work, &replica)?;
        }
    }
    if secret.record.replicas.is_empty() {
        secret.record.primary = None;
    }
    Ok(secret.save(work)?)
}

/// Makes a secret of its own of a replica.
pub fn promote(
    work: &mut Work<'_>,
    replica: &mut Secret,
    permit: &Permit<action::secretsmanager::StopReplicationToReplica>,
) -> Result<(), SecretError> {
    permit.opens(&replica.arn())?;
    replica.require_kept()?;
    let Some(region) = replica.record.primary.clone().filter(|_| replica.is_replica()) else {
        return Err(SecretError::InvalidRequest(
            "The secret is not a replica. Call the operation in the replica's Region.".into(),
        ));
    };
    let scope = Scope { account: replica.scope.account.clone(), region };
    if let Some(mut primary) = load(work, &scope, replica.name())?
        && is_replica_of(replica, &primary)
    {
        primary.record.replicas.remove(&replica.scope.region);
        if primary.record.replicas.is_empty() {
            primary.record.primary = None;
        }
        primary.save(work)?;
    }
    replica.record.primary = None;
    Ok(replica.save(work)?)
}

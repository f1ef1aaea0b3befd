//! A secret as stored, and its properties.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::SecretError;
use super::rotation::schedule::Rotation;
use crate::Fault;
use crate::arn::Scope;
use crate::events::{self, Fact, Kind};
use crate::work::Work;

/// A secret as stored, without its values.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) name: String,
    /// The six characters that end its ARN.
    pub(super) suffix: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) description: Option<String>,
    /// `KmsKeyId` as the owner gave it; `None` for `alias/aws/secretsmanager`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kms_key: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) tags: BTreeMap<String, String>,
    pub(super) created_ms: i64,
    pub(super) changed_ms: i64,
    /// Day of the last retrieval: its beginning, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) accessed_ms: Option<i64>,
    /// When the secret is erased, if its deletion is scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) erase_ms: Option<i64>,
    /// By version id.
    #[serde(default)]
    pub(super) versions: BTreeMap<String, Version>,
    /// Number of the next version's value.
    #[serde(default)]
    pub(super) next_number: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rotation: Option<Rotation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rotated_ms: Option<i64>,
    /// Region of the primary secret, if it is or was replicated: its own if this is the primary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) primary: Option<String>,
    /// Replicas of a primary secret, by Region.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) replicas: BTreeMap<String, Replica>,
}

/// One version of a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Its staging labels.
    pub stages: BTreeSet<String>,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Day of the last retrieval: its beginning, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accessed_ms: Option<i64>,
    /// ARN of the KMS key that encrypts its data key; empty if it has no value of its own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub key: String,
    /// Number of its value, unique in the secret; `None` if it has no value of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) number: Option<u64>,
    /// Id of the version whose value it shows: only while a rotation function is tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) shows: Option<String>,
}

impl Version {
    /// A version without labels and without a value.
    pub(super) fn empty(created_ms: i64) -> Self {
        let (stages, key) = (BTreeSet::new(), String::new());
        Self { stages, created_ms, accessed_ms: None, key, number: None, shows: None }
    }

    /// Whether it has a value of its own.
    pub fn has_value(&self) -> bool {
        self.number.is_some()
    }

    /// Whether a rotation has made it and its function has not given it a value yet.
    pub fn awaits_value(&self) -> bool {
        self.number.is_none() && self.shows.is_none()
    }
}

/// Replication to one Region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replica {
    /// `KmsKeyId` as the owner gave it; `None` for `alias/aws/secretsmanager`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kms_key: Option<String>,
    /// Outcome of the last change.
    pub status: ReplicaStatus,
    /// What went wrong, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// `Status` of a replica. A change and its replicas are one transaction, so that no replica is ever in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReplicaStatus {
    /// It has what the primary secret has.
    InSync,
    /// The last change did not reach it.
    Failed,
}

impl ReplicaStatus {
    /// All of them.
    pub const ALL: &[Self] = &[Self::InSync, Self::Failed];

    /// AWS's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::InSync => "InSync",
            Self::Failed => "Failed",
        }
    }
}

/// A secret that was found.
#[derive(Debug, Clone)]
pub struct Secret {
    pub(super) scope: Scope,
    pub(super) record: Record,
    /// Made once, because every call asks for it several times. Neither name nor suffix ever changes.
    arn: Arc<str>,
}

impl Secret {
    pub(super) fn new(scope: Scope, record: Record) -> Self {
        let arn = arn(&scope, &record.name, &record.suffix).into();
        Self { scope, record, arn }
    }

    /// ARN.
    pub fn arn(&self) -> String {
        self.arn.as_ref().to_owned()
    }

    /// Account and Region.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// Free text, if the owner gave one.
    pub fn description(&self) -> Option<&str> {
        self.record.description.as_deref()
    }

    /// `KmsKeyId` as the owner gave it; `None` for `alias/aws/secretsmanager`.
    pub fn kms_key(&self) -> Option<&str> {
        self.record.kms_key.as_deref()
    }

    /// Tags, in order of key.
    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.record.tags
    }

    /// Milliseconds since 1970.
    pub fn created_ms(&self) -> i64 {
        self.record.created_ms
    }

    /// Last change of any kind, milliseconds since 1970.
    pub fn changed_ms(&self) -> i64 {
        self.record.changed_ms
    }

    /// Beginning of the day of the last retrieval, milliseconds since 1970.
    pub fn accessed_ms(&self) -> Option<i64> {
        self.record.accessed_ms
    }

    /// When it is erased, milliseconds since 1970, if its deletion is scheduled.
    pub fn erase_ms(&self) -> Option<i64> {
        self.record.erase_ms
    }

    /// Versions by id, deprecated ones included.
    pub fn versions(&self) -> &BTreeMap<String, Version> {
        &self.record.versions
    }

    /// Rotation, if it is or was configured.
    pub fn rotation(&self) -> Option<&Rotation> {
        self.record.rotation.as_ref()
    }

    /// Last completed rotation, milliseconds since 1970.
    pub fn rotated_ms(&self) -> Option<i64> {
        self.record.rotated_ms
    }

    /// Region of the primary secret, if it is replicated.
    pub fn primary_region(&self) -> Option<&str> {
        self.record.primary.as_deref()
    }

    /// Whether it is a replica of a secret in another Region.
    pub fn is_replica(&self) -> bool {
        self.primary_region().is_some_and(|region| region != self.scope.region)
    }

    /// Replicas by Region.
    pub fn replicas(&self) -> &BTreeMap<String, Replica> {
        &self.record.replicas
    }

    pub(super) fn require_kept(&self) -> Result<(), SecretError> {
        if self.record.erase_ms.is_none() {
            return Ok(());
        }
        Err(SecretError::InvalidRequest(
            "You can't perform this operation on the secret because it was marked for deletion."
                .into(),
        ))
    }

    pub(super) fn require_primary(&self) -> Result<(), SecretError> {
        match self.primary_region().filter(|_| self.is_replica()) {
            None => Ok(()),
            Some(region) => Err(SecretError::InvalidRequest(format!(
                "Operation not permitted on a replica secret. Call must be made in primary secret's region {region}."
            ))),
        }
    }

    /// Writes the record with the time of the change.
    /// Tells what has become of the secret, and why it failed, if it did.
    pub(super) fn tell(
        &self,
        work: &mut Work<'_>,
        kind: &'static Kind,
        error: Option<String>,
    ) -> Result<(), Fault> {
        let secret = (Fact::Secret, self.arn().into());
        let facts = [secret].into_iter().chain(error.map(|error| (Fact::Error, error.into())));
        events::tell(work, kind, &self.scope, vec![self.arn()], facts)
    }

    pub(super) fn save(&mut self, work: &mut Work<'_>) -> Result<(), Fault> {
        self.record.changed_ms = work.now_ms();
        self.save_unchanged(work)
    }

    /// Writes the record; its owner did not change anything.
    pub(super) fn save_unchanged(&self, work: &mut Work<'_>) -> Result<(), Fault> {
        work.put(&record_key(&self.scope, &self.record.name), &self.record)
    }

    pub(super) fn value_record_key(&self, number: u64) -> String {
        let Scope { account, region } = &self.scope;
        let Record { name, suffix, .. } = &self.record;
        format!("secrets/value/{account}/{region}/{suffix}/{number}/{name}")
    }
}

/// The ARN of the secret with this name and suffix.
pub(super) fn arn(scope: &Scope, name: &str, suffix: &str) -> String {
    scope.arn("secretsmanager", &format!("secret:{name}-{suffix}"))
}

/// Prefix of the secrets in `scope`.
pub(super) fn prefix(scope: &Scope) -> String {
    format!("{PREFIX}{}/{}/", scope.account, scope.region)
}

pub(super) fn record_key(scope: &Scope, name: &str) -> String {
    format!("{}{name}", prefix(scope))
}

/// Prefix of all secrets.
pub(super) const PREFIX: &str = "secrets/secret/";

/// Account, Region and name in the key of a record of a secret.
pub(super) fn parts<'a>(record_key: &'a str, prefix: &str) -> Option<(Scope, &'a str)> {
    let mut parts = record_key.strip_prefix(prefix)?.splitn(3, '/');
    let (account, region, name) = (parts.next()?, parts.next()?, parts.next()?);
    Some((Scope { account: account.to_owned(), region: region.to_owned() }, name))
}

/// The secret whose record has this key.
pub(super) fn load(
    work: &mut Work<'_>,
    scope: &Scope,
    name: &str,
) -> Result<Option<Secret>, Fault> {
    let record = work.get::<Record>(&record_key(scope, name))?;
    // After its date a secret is gone, even if no sweep has run.
    let record =
        record.filter(|record| record.erase_ms.is_none_or(|erase_ms| erase_ms > work.now_ms()));
    Ok(record.map(|record| Secret::new(scope.clone(), record)))
}

/// Beginning of the day of `now_ms`, in UTC.
pub(super) fn day(now_ms: i64) -> i64 {
    const DAY_MS: i64 = 86_400_000;
    now_ms.div_euclid(DAY_MS) * DAY_MS
}

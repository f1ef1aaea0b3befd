//! A key as stored, and its properties.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use outlast_crypto::keys::{KeySpec, KeyUsage};
use serde::{Deserialize, Serialize};

use super::KmsError;
use super::approval::rule::Rule;
use crate::Fault;
use crate::arn::Scope;
use crate::events::{self, Fact, Kind};
use crate::identity::unique::UniqueIds;
use crate::work::Work;

/// A key as stored, without its material.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    pub(super) spec: String,
    pub(super) usage: String,
    pub(super) description: String,
    pub(super) enabled: bool,
    pub(super) created_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) deletion: Option<Deletion>,
    /// Id of the current material; empty if there is none.
    pub(super) material_id: String,
    pub(super) tags: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) origin: Origin,
    /// Key policy; `None` for the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) policy: Option<String>,
    /// Unique ids of the principals that it names.
    #[serde(default, skip_serializing_if = "UniqueIds::is_empty")]
    pub(super) principals: UniqueIds,
    /// All materials, oldest first. Records of the first version have one, which is not listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) materials: Vec<Material>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rotation: Option<Rotation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) regions: Option<Regions>,
    /// Waiting period of a primary key whose replicas must be deleted first, in days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after_replicas_days: Option<i64>,
    /// Who must approve what it signs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) approval_rule: Option<Rule>,
    /// The service that made it for the account, such as `secretsmanager`; `None` for a customer's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) manager: Option<String>,
}

/// A scheduled deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// When the key and its material are erased, milliseconds since 1970.
    pub at_ms: i64,
    /// The requested waiting period, in days.
    pub window_days: i64,
}

/// Where the material comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// Made here: `AWS_KMS`.
    #[default]
    #[serde(rename = "AWS_KMS")]
    Own,
    /// Imported: `EXTERNAL`.
    #[serde(rename = "EXTERNAL")]
    External,
}

impl Origin {
    /// AWS's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "AWS_KMS",
            Self::External => "EXTERNAL",
        }
    }
}

/// One key material.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Material {
    /// 64 hexadecimal digits.
    pub id: String,
    /// When it became current by a rotation, milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotated_ms: Option<i64>,
    /// `AUTOMATIC` or `ON_DEMAND`, if a rotation brought it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation_type: Option<String>,
    /// Its import, if it was imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<Import>,
    /// Whether it waits for a rotation to become current.
    #[serde(default)]
    pub pending: bool,
}

/// The import of a material.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// Whether the material is present; it can be deleted and imported again.
    pub present: bool,
    /// When it expires, milliseconds since 1970; absent if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<i64>,
    /// Free text.
    #[serde(default)]
    pub description: String,
    /// Form of the imported material: raw, PKCS #8, and for ML-DSA and ML-KEM whether the seed is known.
    pub form: String,
}

impl Material {
    /// Whether it can be used at `now_ms`.
    pub fn is_present(&self, now_ms: i64) -> bool {
        self.import.as_ref().is_none_or(|import| {
            import.present && import.expires_ms.is_none_or(|expires| expires > now_ms)
        })
    }
}

/// Automatic rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rotation {
    /// Days between two rotations.
    pub period_days: i64,
    /// When the next is due, milliseconds since 1970.
    pub next_ms: i64,
}

/// The Regions of a multi-Region key; all keys of the set have the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Regions {
    /// Region of the primary key.
    pub primary: String,
    /// Regions of the replicas.
    pub replicas: BTreeSet<String>,
}

/// `KeyState`
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// Can be used.
    Enabled,
    /// Disabled by its owner.
    Disabled,
    /// Material must be imported first.
    PendingImport,
    /// Will be deleted when its waiting period is over.
    PendingDeletion,
    /// Will be deleted after its replicas are gone.
    PendingReplicaDeletion,
}

impl KeyState {
    /// AWS's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enabled => "Enabled",
            Self::Disabled => "Disabled",
            Self::PendingImport => "PendingImport",
            Self::PendingDeletion => "PendingDeletion",
            Self::PendingReplicaDeletion => "PendingReplicaDeletion",
        }
    }
}

/// A key that was found.
#[derive(Debug, Clone)]
pub struct Key {
    pub(super) scope: Scope,
    /// Made once, because every call asks for it several times.
    arn: Arc<str>,
    pub(super) record: Record,
    spec: &'static KeySpec,
    usage: KeyUsage,
    now_ms: i64,
    alias: Option<String>,
}

impl Key {
    pub(super) fn new(scope: &Scope, mut record: Record, now_ms: i64) -> Result<Self, Fault> {
        let damaged = || Fault::Damaged(record_key(scope, &record.id));
        let spec = KeySpec::by_name(&record.spec).ok_or_else(damaged)?;
        let usage = KeyUsage::by_name(&record.usage).ok_or_else(damaged)?;
        if record.materials.is_empty() && !record.material_id.is_empty() {
            record.materials.push(Material::first(record.material_id.clone()));
        }
        let arn = scope.arn("kms", &format!("key/{}", record.id)).into();
        Ok(Self { scope: scope.clone(), arn, spec, usage, record, now_ms, alias: None })
    }

    /// Notes the alias by which it was found.
    pub(super) fn by_alias(mut self, alias: &str) -> Self {
        self.alias = Some(alias.to_owned());
        self
    }

    /// The alias by which it was found, if any.
    pub fn alias(&self) -> Option<&str> {
        self.alias.as_deref()
    }

    /// Key id: a UUID, or `mrk-` and 32 hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Key ARN.
    pub fn arn(&self) -> String {
        self.arn.as_ref().to_owned()
    }

    /// Account that owns it.
    pub fn account(&self) -> &str {
        &self.scope.account
    }

    /// Account and Region.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Its type.
    pub fn spec(&self) -> &'static KeySpec {
        self.spec
    }

    /// Its usage.
    pub fn usage(&self) -> KeyUsage {
        self.usage
    }

    /// Where its material comes from.
    pub fn origin(&self) -> Origin {
        self.record.origin
    }

    /// Free text.
    pub fn description(&self) -> &str {
        &self.record.description
    }

    /// Milliseconds since 1970.
    pub fn created_ms(&self) -> i64 {
        self.record.created_ms
    }

    /// The scheduled deletion, if there is one.
    pub fn deletion(&self) -> Option<Deletion> {
        self.record.deletion
    }

    /// Waiting period that starts when the last replica is gone, in days.
    pub fn after_replicas_days(&self) -> Option<i64> {
        self.record.after_replicas_days
    }

    /// Tags, in order of key.
    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.record.tags
    }

    /// Id of the current key material: 64 hexadecimal digits; empty if there is none yet.
    pub fn material_id(&self) -> &str {
        &self.record.material_id
    }

    /// Every material, oldest first.
    pub fn materials(&self) -> &[Material] {
        &self.record.materials
    }

    /// A material by its id.
    pub fn material(&self, id: &str) -> Option<&Material> {
        self.record.materials.iter().find(|material| material.id == id)
    }

    /// Automatic rotation, if it is enabled.
    pub fn rotation(&self) -> Option<Rotation> {
        self.record.rotation
    }

    /// Who must approve what it signs, if anybody must.
    pub fn approval_rule(&self) -> Option<&Rule> {
        self.record.approval_rule.as_ref()
    }

    /// Regions, if it is a multi-Region key.
    pub fn regions(&self) -> Option<&Regions> {
        self.record.regions.as_ref()
    }

    /// Whether a service made it for the account (`KeyManager` `AWS`).
    pub fn is_managed(&self) -> bool {
        self.record.manager.is_some()
    }

    /// Whether it is a replica of a multi-Region key.
    pub fn is_replica(&self) -> bool {
        self.regions().is_some_and(|regions| regions.primary != self.scope.region)
    }

    /// Whether it encrypts with `SYMMETRIC_DEFAULT`.
    pub fn is_symmetric_encryption(&self) -> bool {
        self.spec.name == "SYMMETRIC_DEFAULT"
    }

    /// State.
    pub fn state(&self) -> KeyState {
        let record = &self.record;
        if record.deletion.is_some() {
            return KeyState::PendingDeletion;
        }
        if record.after_replicas_days.is_some() {
            return KeyState::PendingReplicaDeletion;
        }
        // A material that waits for its rotation is not in use yet.
        let all_here = record
            .materials
            .iter()
            .all(|material| material.pending || material.is_present(self.now_ms));
        if record.material_id.is_empty() || !all_here {
            KeyState::PendingImport
        } else if record.enabled {
            KeyState::Enabled
        } else {
            KeyState::Disabled
        }
    }

    /// Fails unless the key may be used in cryptographic operations.
    pub(super) fn require_enabled(&self) -> Result<(), KmsError> {
        match self.state() {
            KeyState::Enabled => Ok(()),
            KeyState::Disabled => Err(KmsError::Disabled(self.arn())),
            _ => Err(self.wrong_state()),
        }
    }

    /// Fails if the key is scheduled for deletion.
    pub(super) fn require_kept(&self) -> Result<(), KmsError> {
        match self.state() {
            KeyState::PendingDeletion | KeyState::PendingReplicaDeletion => Err(self.wrong_state()),
            _ => Ok(()),
        }
    }

    /// The error for an operation that the key's state does not allow.
    pub(super) fn wrong_state(&self) -> KmsError {
        let state = match self.state() {
            KeyState::Enabled => "enabled",
            KeyState::Disabled => "disabled",
            KeyState::PendingImport => "pending import",
            KeyState::PendingDeletion => "pending deletion",
            KeyState::PendingReplicaDeletion => "pending replica deletion",
        };
        KmsError::InvalidState(format!("{} is {state}.", self.arn()))
    }

    /// Record key of the material with this id.
    pub(super) fn material_record_key(&self, material_id: &str) -> String {
        material_record_key(&self.scope, &self.record.id, material_id)
    }

    /// Tells what has become of the key.
    pub(super) fn tell(&self, work: &mut Work<'_>, kind: &'static Kind) -> Result<(), Fault> {
        let id = (Fact::KeyId, self.id().into());
        events::tell(work, kind, &self.scope, vec![self.arn()], [id])
    }

    pub(super) fn save(&self, work: &mut Work<'_>) -> Result<(), Fault> {
        work.put(&record_key(&self.scope, &self.record.id), &self.record)
    }
}

impl Material {
    /// The first material of a key.
    pub(super) fn first(id: String) -> Self {
        Self { id, rotated_ms: None, rotation_type: None, import: None, pending: false }
    }
}

pub(super) fn prefix(scope: &Scope) -> String {
    format!("kms/key/{}/{}/", scope.account, scope.region)
}

pub(super) fn record_key(scope: &Scope, id: &str) -> String {
    format!("{}{id}", prefix(scope))
}

pub(super) fn material_record_key(scope: &Scope, id: &str, material_id: &str) -> String {
    format!("kms/material/{}/{}/{id}/{material_id}", scope.account, scope.region)
}

/// Account and Region in the record key of a key.
pub(super) fn scope_of(record_key: &str) -> Option<Scope> {
    let mut parts = record_key.strip_prefix("kms/key/")?.split('/');
    let (account, region) = (parts.next()?, parts.next()?);
    Some(Scope { account: account.to_owned(), region: region.to_owned() })
}

//! Keys: making, finding, listing, and their states.

use std::collections::BTreeMap;

use outlast_crypto::keys::{KeySpec, KeyUsage};
use serde::{Deserialize, Serialize};

use super::{KmsError, alias};
use crate::arn::{Arn, Scope};
use crate::identity::Allowed;
use crate::keyring::KeyRing;
use crate::work::{Page, Sweep, Work};
use crate::{Fault, ids, limits};

/// A key as stored, without its material.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    id: String,
    spec: String,
    usage: String,
    description: String,
    enabled: bool,
    created_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deletion: Option<Deletion>,
    material_id: String,
    tags: BTreeMap<String, String>,
}

/// A deletion that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deletion {
    /// When the key and its material go, milliseconds since 1970.
    pub at_ms: i64,
    /// The waiting period that was asked for, in days.
    pub window_days: i64,
}

/// `KeyState`, as far as Outlast's keys have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// Usable.
    Enabled,
    /// Switched off.
    Disabled,
    /// To be deleted.
    PendingDeletion,
}

impl KeyState {
    /// AWS's spelling.
    pub fn name(self) -> &'static str {
        match self {
            Self::Enabled => "Enabled",
            Self::Disabled => "Disabled",
            Self::PendingDeletion => "PendingDeletion",
        }
    }
}

/// A key that was found.
#[derive(Debug, Clone)]
pub struct Key {
    scope: Scope,
    record: Record,
    spec: &'static KeySpec,
    usage: KeyUsage,
}

/// What a new key shall be.
pub struct NewKey {
    /// Its type.
    pub spec: &'static KeySpec,
    /// Its use, one of the type's.
    pub usage: KeyUsage,
    /// Free text.
    pub description: String,
    /// Tags.
    pub tags: BTreeMap<String, String>,
}

impl Key {
    fn new(scope: &Scope, record: Record) -> Result<Self, Fault> {
        let damaged = || Fault::Damaged(place(scope, &record.id));
        let spec = KeySpec::by_name(&record.spec).ok_or_else(damaged)?;
        let usage = KeyUsage::by_name(&record.usage).ok_or_else(damaged)?;
        Ok(Self { scope: scope.clone(), spec, usage, record })
    }

    /// Key id, a UUID.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Key ARN.
    pub fn arn(&self) -> String {
        self.scope.arn("kms", &format!("key/{}", self.record.id))
    }

    /// Account that owns it.
    pub fn account(&self) -> &str {
        &self.scope.account
    }

    /// Where it lives.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Its type.
    pub fn spec(&self) -> &'static KeySpec {
        self.spec
    }

    /// Its use.
    pub fn usage(&self) -> KeyUsage {
        self.usage
    }

    /// Free text.
    pub fn description(&self) -> &str {
        &self.record.description
    }

    /// Milliseconds since 1970.
    pub fn created_ms(&self) -> i64 {
        self.record.created_ms
    }

    /// The deletion that is due, if there is one.
    pub fn deletion(&self) -> Option<Deletion> {
        self.record.deletion
    }

    /// Tags, in order of key.
    pub fn tags(&self) -> &BTreeMap<String, String> {
        &self.record.tags
    }

    /// Id of the current key material: 64 hexadecimal digits.
    pub fn material_id(&self) -> &str {
        &self.record.material_id
    }

    /// State.
    pub fn state(&self) -> KeyState {
        if self.record.deletion.is_some() {
            KeyState::PendingDeletion
        } else if self.record.enabled {
            KeyState::Enabled
        } else {
            KeyState::Disabled
        }
    }

    pub(super) fn material_place(&self) -> String {
        material_place(&self.scope, &self.record.id, &self.record.material_id)
    }

    /// Fails unless the key may be used in cryptographic operations.
    pub(super) fn require_enabled(&self) -> Result<(), KmsError> {
        match self.state() {
            KeyState::Enabled => Ok(()),
            KeyState::Disabled => Err(KmsError::Disabled(self.arn())),
            KeyState::PendingDeletion => Err(self.pending_deletion()),
        }
    }

    fn pending_deletion(&self) -> KmsError {
        KmsError::InvalidState(format!("{} is pending deletion.", self.arn()))
    }

    fn save(&self, work: &mut Work<'_>) -> Result<(), Fault> {
        work.put(&place(&self.scope, &self.record.id), &self.record)
    }
}

/// Makes a key and its material.
pub fn create(
    work: &mut Work<'_>,
    scope: &Scope,
    new: NewKey,
    _: &Allowed,
) -> Result<Key, KmsError> {
    check_tags(&new.tags)?;
    let record = Record {
        id: ids::uuid()?,
        spec: new.spec.name.to_owned(),
        usage: new.usage.name().to_owned(),
        description: new.description,
        enabled: true,
        created_ms: work.now_ms(),
        deletion: None,
        material_id: ids::hex::<32>()?,
        tags: new.tags,
    };
    let key = Key::new(scope, record)?;
    work.put_secret(&key.material_place(), &new.spec.generate()?)?;
    key.save(work)?;
    Ok(key)
}

/// Finds a key by id, ARN, alias name or alias ARN.
pub fn find(work: &mut Work<'_>, scope: &Scope, name: &str) -> Result<Key, KmsError> {
    let invalid = || KmsError::NotFound(format!("Invalid keyId '{name}'"));
    let resource = if name.starts_with("arn:") {
        let arn = Arn::parse(name)
            .filter(|arn| arn.service == "kms")
            .ok_or_else(|| KmsError::InvalidArn(format!("Invalid arn {name}")))?;
        if !arn.is_in(scope) {
            return Err(KmsError::NotFound(format!("Invalid arn {}", arn.region)));
        }
        arn.resource
    } else {
        name
    };
    if resource.starts_with("alias/") {
        let target = alias::target(work, scope, resource)?;
        return by_id(work, scope, &target);
    }
    let id = match resource.strip_prefix("key/") {
        Some(id) if resource.len() != name.len() => id,
        None if resource.len() == name.len() => resource,
        _ => return Err(invalid()),
    };
    if ids::uuid_bytes(id).is_none() {
        return Err(invalid());
    }
    by_id(work, scope, id)
}

pub(super) fn by_id(work: &mut Work<'_>, scope: &Scope, id: &str) -> Result<Key, KmsError> {
    let missing = || {
        let arn = scope.arn("kms", &format!("key/{id}"));
        KmsError::NotFound(format!("Key '{arn}' does not exist"))
    };
    let record = work.get::<Record>(&place(scope, id))?.ok_or_else(missing)?;
    let key = Key::new(scope, record)?;
    // Past its date a key is gone, whether the sweep has been by or not.
    if key.deletion().is_some_and(|deletion| deletion.at_ms <= work.now_ms()) {
        return Err(missing());
    }
    Ok(key)
}

/// Lists keys in order of id, beginning after the marker of the page before.
pub fn keys(
    work: &Work<'_>,
    scope: &Scope,
    marker: Option<&str>,
    limit: usize,
    _: &Allowed,
) -> Result<Page<Key>, KmsError> {
    let page = work.page::<Record>(&prefix(scope), marker, limit)?;
    let now_ms = work.now_ms();
    let keys = page
        .items
        .into_iter()
        .filter(|record| record.deletion.is_none_or(|deletion| deletion.at_ms > now_ms))
        .map(|record| Key::new(scope, record))
        .collect::<Result<_, _>>()?;
    Ok(Page { items: keys, next: page.next })
}

/// Switches a key on or off.
pub fn set_enabled(
    work: &mut Work<'_>,
    mut key: Key,
    enabled: bool,
    _: &Allowed,
) -> Result<Key, KmsError> {
    if key.state() == KeyState::PendingDeletion {
        return Err(key.pending_deletion());
    }
    key.record.enabled = enabled;
    key.save(work)?;
    Ok(key)
}

/// Schedules the deletion of a key and its material.
pub fn schedule_deletion(
    work: &mut Work<'_>,
    mut key: Key,
    window_days: i64,
    _: &Allowed,
) -> Result<Key, KmsError> {
    if !limits::DELETION_WINDOW_DAYS.contains(&window_days) {
        return Err(KmsError::Validation(
            "PendingWindowInDays must be between 7 and 30, inclusive.".into(),
        ));
    }
    if key.state() == KeyState::PendingDeletion {
        return Err(key.pending_deletion());
    }
    let at_ms = work.now_ms() + window_days * 86_400_000;
    key.record.deletion = Some(Deletion { at_ms, window_days });
    key.save(work)?;
    Ok(key)
}

/// Takes back a scheduled deletion. The key is disabled afterwards, as on AWS.
pub fn cancel_deletion(work: &mut Work<'_>, mut key: Key, _: &Allowed) -> Result<Key, KmsError> {
    if key.state() != KeyState::PendingDeletion {
        return Err(KmsError::InvalidState(format!("{} is not pending deletion.", key.arn())));
    }
    key.record.deletion = None;
    key.record.enabled = false;
    key.save(work)?;
    Ok(key)
}

/// Adds or replaces tags.
pub fn add_tags(
    work: &mut Work<'_>,
    mut key: Key,
    tags: BTreeMap<String, String>,
    _: &Allowed,
) -> Result<Key, KmsError> {
    if key.state() == KeyState::PendingDeletion {
        return Err(key.pending_deletion());
    }
    key.record.tags.extend(tags);
    check_tags(&key.record.tags)?;
    key.save(work)?;
    Ok(key)
}

/// Erases keys whose waiting period is over, with material and aliases, in all accounts and regions; looks
/// at up to `limit` keys after `after`.
pub fn erase_expired(
    work: &mut Work<'_>,
    ring: &KeyRing,
    after: &str,
    limit: usize,
) -> Result<Sweep, Fault> {
    let mut erased = Vec::new();
    let found = work.scan::<Record>("kms/key/", after, limit)?;
    let next = (found.len() == limit).then(|| found.last().map(|(key, _)| key.clone())).flatten();
    for (place, record) in found {
        if record.deletion.is_none_or(|deletion| deletion.at_ms > work.now_ms()) {
            continue;
        }
        let mut parts = place.trim_start_matches("kms/key/").split('/');
        let (Some(account), Some(region)) = (parts.next(), parts.next()) else { continue };
        let scope = Scope { account: account.to_owned(), region: region.to_owned() };
        let material = material_place(&scope, &record.id, &record.material_id);
        // Read again as part of the work, so that a cancellation in between wins.
        if work.get::<Record>(&place)?.and_then(|record| record.deletion) == record.deletion {
            alias::delete_all(work, &scope, &record.id)?;
            work.delete(&material);
            work.delete(&place);
            ring.forget(&material);
            erased.push((scope.clone(), scope.arn("kms", &format!("key/{}", record.id))));
        }
    }
    Ok(Sweep { next, erased })
}

fn check_tags(tags: &BTreeMap<String, String>) -> Result<(), KmsError> {
    if tags.len() > limits::MAX_TAGS {
        return Err(KmsError::Tag(format!("a key has at most {} tags", limits::MAX_TAGS)));
    }
    Ok(())
}

fn prefix(scope: &Scope) -> String {
    format!("kms/key/{}/{}/", scope.account, scope.region)
}

fn place(scope: &Scope, id: &str) -> String {
    format!("{}{id}", prefix(scope))
}

fn material_place(scope: &Scope, id: &str, material_id: &str) -> String {
    format!("kms/material/{}/{}/{id}/{material_id}", scope.account, scope.region)
}

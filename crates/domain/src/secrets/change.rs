//! Changes of a secret: values, description, key, labels, tags.

use std::collections::{BTreeMap, BTreeSet};

use super::create::check_tags;
use super::secret::{Secret, Version};
use super::value::{self, Protected, Selected};
use super::{PENDING, SecretError, stages};
use crate::identity::{Permit, action};
use crate::work::Work;
use crate::{limits, tags};

/// A new value.
pub struct NewValue {
    /// Id of the new version.
    pub version_id: String,
    /// The encrypted value.
    pub protected: Protected,
    /// Labels of the new version.
    pub stages: BTreeSet<String>,
}

/// Adds a version. Deprecated versions beyond the limit are dropped.
pub fn put_value(
    work: &mut Work<'_>,
    secret: &mut Secret,
    new: NewValue,
    permit: &Permit<impl action::WritesSecretValue>,
) -> Result<(), SecretError> {
    permit.opens(&secret.arn())?;
    secret.require_kept()?;
    secret.require_primary()?;
    // A version that a rotation has made gets its value by its function's request.
    let there = secret.record.versions.get(&new.version_id);
    if there.is_some_and(|version| !version.awaits_value()) {
        return Err(in_use(secret, &new.version_id));
    }
    insert(work, secret, new)?;
    secret.record.check_labels()?;
    Ok(secret.save(work)?)
}

/// The error of a `ClientRequestToken` that another value has already.
pub(super) fn in_use(secret: &Secret, version_id: &str) -> SecretError {
    SecretError::Exists(format!(
        "You can't use ClientRequestToken {version_id} because that value is already in use for a version of secret {}.",
        secret.arn()
    ))
}

/// Adds a version with its value; does not save the secret.
pub(super) fn insert(
    work: &mut Work<'_>,
    secret: &mut Secret,
    new: NewValue,
) -> Result<(), SecretError> {
    let there = secret.record.versions.remove(&new.version_id);
    prune(work, secret);
    if secret.record.versions.len() >= limits::MAX_SECRET_VERSIONS {
        return Err(SecretError::LimitExceeded(format!(
            "A secret has about {} versions, and those without staging labels are removed only when they are older than \
             a day. Put values less often.",
            limits::MAX_SECRET_VERSIONS
        )));
    }
    let number = secret.record.next_number;
    secret.record.next_number += 1;
    value::write(work, secret, number, &new.protected)?;
    let mut version = there.unwrap_or_else(|| Version::empty(work.now_ms()));
    version.key = new.protected.key;
    version.number = Some(number);
    secret.record.versions.insert(new.version_id.clone(), version);
    secret.record.attach(&new.version_id, &new.stages);
    Ok(())
}

/// Adds a version without a value of its own, with the label AWSPENDING; does not save the secret. It shows the value of
/// the version `shows`, if that is given.
pub(super) fn insert_pending(
    work: &mut Work<'_>,
    secret: &mut Secret,
    version_id: &str,
    shows: Option<String>,
) {
    prune(work, secret);
    let version = Version { shows, ..Version::empty(work.now_ms()) };
    secret.record.versions.insert(version_id.to_owned(), version);
    secret.record.attach(version_id, &BTreeSet::from([PENDING.to_owned()]));
}

/// Drops deprecated versions so that there is room for one more.
fn prune(work: &mut Work<'_>, secret: &mut Secret) {
    for id in secret.record.prunable(work.now_ms()) {
        let dropped = secret.record.versions.remove(&id);
        if let Some(number) = dropped.and_then(|version| version.number) {
            work.delete(&secret.value_record_key(number));
        }
    }
}

/// What becomes of the description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Description {
    /// It stays.
    Same,
    /// It is replaced.
    New(String),
}

/// Changes of a secret's properties.
pub struct Update {
    /// Description.
    pub description: Description,
    /// New `KmsKeyId`, and the values that have been encrypted under it, by version.
    pub key: Option<(String, Vec<(Selected, Protected)>)>,
}

/// Changes the description and the KMS key. The values of versions with labels move to the new key; those of
/// deprecated versions stay under their old one, as in AWS.
pub fn update(
    work: &mut Work<'_>,
    secret: &mut Secret,
    update: Update,
    permit: &Permit<action::secretsmanager::UpdateSecret>,
) -> Result<(), SecretError> {
    permit.opens(&secret.arn())?;
    secret.require_kept()?;
    secret.require_primary()?;
    if let Description::New(text) = update.description {
        secret.record.description = Some(text).filter(|text| !text.is_empty());
    }
    if let Some((key, values)) = update.key {
        for (selected, protected) in values {
            let Some(number) = selected.version.number else { continue };
            value::write(work, secret, number, &protected)?;
            if let Some(version) = secret.record.versions.get_mut(&selected.id) {
                version.key = protected.key;
            }
        }
        secret.record.kms_key = Some(key).filter(|key| !key.is_empty());
    }
    Ok(secret.save(work)?)
}

/// Removes a label from a version, attaches it to one, or moves it.
pub fn move_stage(
    work: &mut Work<'_>,
    secret: &mut Secret,
    stage: &str,
    (from, to): (Option<&str>, Option<&str>),
    permit: &Permit<action::secretsmanager::UpdateSecretVersionStage>,
) -> Result<(), SecretError> {
    permit.opens(&secret.arn())?;
    secret.require_kept()?;
    secret.require_primary()?;
    stages::move_label(&mut secret.record, stage, from, to)?;
    Ok(secret.save(work)?)
}

/// Adds or replaces tags.
pub fn add_tags(
    work: &mut Work<'_>,
    secret: &mut Secret,
    tags: BTreeMap<String, String>,
    permit: &Permit<action::secretsmanager::TagResource>,
) -> Result<(), SecretError> {
    permit.opens(&secret.arn())?;
    secret.require_kept()?;
    secret.require_primary()?;
    if let Some(clash) = tags::clash(&secret.record.tags, tags.keys()) {
        return Err(SecretError::InvalidParameter(tags::refusal(clash)));
    }
    secret.record.tags.extend(tags);
    check_tags(&secret.record.tags)?;
    Ok(secret.save(work)?)
}

/// Removes tags; ignores keys that the secret does not have.
pub fn remove_tags(
    work: &mut Work<'_>,
    secret: &mut Secret,
    names: &[String],
    permit: &Permit<action::secretsmanager::UntagResource>,
) -> Result<(), SecretError> {
    permit.opens(&secret.arn())?;
    secret.require_kept()?;
    secret.require_primary()?;
    secret.record.tags.retain(|name, _| !names.contains(name));
    Ok(secret.save(work)?)
}

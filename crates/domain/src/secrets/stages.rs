//! Staging labels: each label is attached to at most one version, and moves as a whole.
//!
//! Source: "What's in a Secrets Manager secret?" of the Secrets Manager user guide, and UpdateSecretVersionStage of
//! the API reference.

use std::collections::BTreeSet;

use super::SecretError;
use super::secret::{Record, Secret, Version};
use crate::limits;

/// Label of the version that GetSecretValue returns by default.
pub const CURRENT: &str = "AWSCURRENT";
/// Label of the version that a rotation is making.
pub const PENDING: &str = "AWSPENDING";
/// Label of the version that had [`CURRENT`] before.
pub const PREVIOUS: &str = "AWSPREVIOUS";

impl Record {
    /// The version that has a label.
    pub(super) fn staged(&self, stage: &str) -> Option<(&String, &Version)> {
        self.versions.iter().find(|(_, version)| version.stages.contains(stage))
    }

    /// Attaches labels to a version; they leave the versions that had them. The version that loses [`CURRENT`] gets
    /// [`PREVIOUS`].
    pub(super) fn attach(&mut self, version_id: &str, stages: &BTreeSet<String>) {
        let before = self.staged(CURRENT).map(|(id, _)| id.clone());
        for stage in stages {
            self.detach(stage);
            if let Some(version) = self.versions.get_mut(version_id) {
                version.stages.insert(stage.clone());
            }
        }
        let moved = before.filter(|before| stages.contains(CURRENT) && before != version_id);
        if let Some(before) = moved
            && !stages.contains(PREVIOUS)
        {
            self.detach(PREVIOUS);
            if let Some(version) = self.versions.get_mut(&before) {
                version.stages.insert(PREVIOUS.to_owned());
            }
        }
        self.forget_empty();
    }

    /// Forgets versions with neither a label nor a value: nobody can find them.
    fn forget_empty(&mut self) {
        self.versions.retain(|_, version| version.has_value() || !version.stages.is_empty());
    }

    /// Removes a label from the version that has it.
    pub(super) fn detach(&mut self, stage: &str) {
        for version in self.versions.values_mut() {
            version.stages.remove(stage);
        }
    }

    /// Labels of all versions together.
    pub(super) fn labels(&self) -> usize {
        self.versions.values().map(|version| version.stages.len()).sum()
    }

    /// Checks the quota of labels.
    pub(super) fn check_labels(&self) -> Result<(), SecretError> {
        if self.labels() <= limits::MAX_STAGING_LABELS {
            return Ok(());
        }
        Err(SecretError::LimitExceeded(format!(
            "A secret has at most {} staging labels on all its versions together. Remove some first.",
            limits::MAX_STAGING_LABELS
        )))
    }

    /// The versions to drop so that there is room for one more: the oldest without a label, if they are older than a
    /// day ("Secrets Manager doesn't delete versions that were created less than 24 hours ago").
    pub(super) fn prunable(&self, now_ms: i64) -> Vec<String> {
        let excess = (self.versions.len() + 1).saturating_sub(limits::MAX_SECRET_VERSIONS);
        let mut deprecated: Vec<_> = self
            .versions
            .iter()
            .filter(|(_, version)| {
                version.stages.is_empty() && version.created_ms + DAY_MS <= now_ms
            })
            .map(|(id, version)| (version.created_ms, id.clone()))
            .collect();
        deprecated.sort_unstable();
        deprecated.into_iter().take(excess).map(|(_, id)| id).collect()
    }
}

impl Secret {
    /// The version that has a label.
    pub fn staged(&self, stage: &str) -> Option<(&String, &Version)> {
        self.record.staged(stage)
    }
}

const DAY_MS: i64 = 86_400_000;

/// Removes a label from one version and attaches it to another; at least one is given.
pub(super) fn move_label(
    record: &mut Record,
    stage: &str,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<(), SecretError> {
    let invalid = |text: String| SecretError::InvalidParameter(text);
    let holder = record.staged(stage).map(|(id, _)| id.clone());
    if let Some(from) = from {
        if !record.versions.contains_key(from) {
            return Err(SecretError::NotFound(format!("Not a valid version: {from}")));
        }
        if holder.as_deref() != Some(from) {
            return Err(invalid(format!("Version stage {stage} not found in version {from}")));
        }
    }
    if let Some(to) = to
        && !record.versions.contains_key(to)
    {
        return Err(SecretError::NotFound(format!("Not a valid version: {to}")));
    }
    let is_empty = |id: &str| record.versions.get(id).is_some_and(|version| !version.has_value());
    match (&holder, from, to) {
        (_, _, Some(to)) if stage == CURRENT && is_empty(to) => {
            return Err(SecretError::InvalidRequest(format!(
                "Version {to} has no value yet, so that it can't be the current one. Put its value first."
            )));
        }
        (_, None, None) => {
            return Err(invalid("Give RemoveFromVersionId, MoveToVersionId or both.".into()));
        }
        (Some(holder), None, Some(to)) if holder != to => {
            return Err(invalid(format!(
                "The parameter RemoveFromVersionId can't be empty. Staging label {stage} is currently attached to \
                 version {holder}, so you must explicitly reference that version in RemoveFromVersionId."
            )));
        }
        (_, Some(_), None) if stage == CURRENT => {
            return Err(invalid(
                "You can only move staging label AWSCURRENT to a different secret version. It can\u{2019}t be \
                 completely removed."
                    .into(),
            ));
        }
        _ => {}
    }
    match to {
        Some(to) => record.attach(to, &BTreeSet::from([stage.to_owned()])),
        None => {
            record.detach(stage);
            record.forget_empty();
        }
    }
    record.check_labels()
}

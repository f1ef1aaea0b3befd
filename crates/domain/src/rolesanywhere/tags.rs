//! Tags of all kinds of resources, as rows.

use super::tag_set::{Tags, check};
use super::{
    CRL, Kind, PROFILE, RolesAnywhereError, SUBJECT, TRUST_ANCHOR, crl, profile, subject,
    trust_anchor,
};
use crate::arn::{Arn, Scope};
use crate::identity::{Permit, action};
use crate::tags;
use crate::work::Work;

/// Finds the resource with an ARN, and returns the ARN from its record and its tags.
pub type Find = fn(&mut Work<'_>, &Scope, &str) -> Result<(String, Tags), RolesAnywhereError>;

/// A kind of resource that has tags.
pub struct Taggable {
    /// The kind.
    pub kind: &'static Kind,
    /// Finds the resource with an ARN, and returns the ARN from its record and its tags.
    pub find: Find,
    /// Replaces the tags.
    set: fn(&mut Work<'_>, &Scope, &str, Tags) -> Result<(), RolesAnywhereError>,
}

/// All kinds.
pub static TAGGABLE: &[Taggable] = &[
    Taggable {
        kind: &TRUST_ANCHOR,
        find: |work, scope, arn| {
            let found = trust_anchor::find_trust_anchor(work, scope, arn)?;
            Ok((found.arn(), found.record.tags))
        },
        set: |work, scope, arn, tags| {
            let mut found = trust_anchor::find_trust_anchor(work, scope, arn)?;
            found.record.tags = tags;
            Ok(trust_anchor::save(work, &mut found)?)
        },
    },
    Taggable {
        kind: &PROFILE,
        find: |work, scope, arn| {
            let found = profile::find_profile(work, scope, arn)?;
            Ok((found.arn(), found.record.tags))
        },
        set: |work, scope, arn, tags| {
            let mut found = profile::find_profile(work, scope, arn)?;
            found.record.tags = tags;
            Ok(profile::save(work, &mut found)?)
        },
    },
    Taggable {
        kind: &CRL,
        find: |work, scope, arn| {
            let found = crl::find_crl(work, scope, arn)?;
            Ok((found.arn(), found.record.tags))
        },
        set: |work, scope, arn, tags| {
            let mut found = crl::find_crl(work, scope, arn)?;
            found.record.tags = tags;
            Ok(crl::save(work, &mut found)?)
        },
    },
    Taggable {
        kind: &SUBJECT,
        find: |work, scope, arn| {
            let found = subject::find_subject(work, scope, arn)?;
            Ok((found.arn(), found.record.tags))
        },
        set: |work, scope, arn, tags| {
            let mut found = subject::find_subject(work, scope, arn)?;
            found.record.tags = tags;
            Ok(subject::save(work, &mut found)?)
        },
    },
];

impl Taggable {
    /// The kind of the resource with this ARN.
    pub fn of(text: &str) -> Result<&'static Self, RolesAnywhereError> {
        let arn = Arn::parse(text);
        let found = TAGGABLE.iter().find(|row| {
            let prefix = format!("{}/", row.kind.noun);
            arn.as_ref().is_some_and(|arn| arn.of(super::SERVICE, &prefix).is_some())
        });
        found.ok_or_else(|| {
            let text: String = text.chars().take(256).collect();
            RolesAnywhereError::Validation(format!("{text} is not the ARN of a resource with tags"))
        })
    }
}

/// Adds or replaces tags.
pub fn add_tags(
    work: &mut Work<'_>,
    scope: &Scope,
    arn: &str,
    more: Tags,
    permit: &Permit<action::rolesanywhere::TagResource>,
) -> Result<(), RolesAnywhereError> {
    permit.opens(arn)?;
    let row = Taggable::of(arn)?;
    let (_, mut all) = (row.find)(work, scope, arn)?;
    if let Some(clash) = tags::clash(&all, more.keys()) {
        return Err(RolesAnywhereError::Validation(tags::refusal(clash)));
    }
    all.extend(more);
    check(&all)?;
    (row.set)(work, scope, arn, all)
}

/// Removes tags.
pub fn remove_tags(
    work: &mut Work<'_>,
    scope: &Scope,
    arn: &str,
    keys: &[String],
    permit: &Permit<action::rolesanywhere::UntagResource>,
) -> Result<(), RolesAnywhereError> {
    permit.opens(arn)?;
    let row = Taggable::of(arn)?;
    let (_, mut all) = (row.find)(work, scope, arn)?;
    all.retain(|key, _| !keys.contains(key));
    (row.set)(work, scope, arn, all)
}

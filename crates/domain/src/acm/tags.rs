//! Tags of all kinds of Certificate Manager's resources, as rows.

use std::collections::BTreeMap;

use super::{AcmError, certificate};
use crate::acme;
use crate::arn::{Arn, Scope};
use crate::identity::{Permit, action};
use crate::work::Work;
use crate::{limits, tags};

/// Tags by key.
pub type Tags = BTreeMap<String, String>;

/// Finds the resource with an ARN, and returns the ARN from its record and its tags.
pub type Find = fn(&mut Work<'_>, &Scope, &str) -> Result<(String, Tags), AcmError>;

/// A kind of resource that has tags.
pub struct Taggable {
    /// Prefix of the resource part of its ARNs; the longest match decides.
    pub prefix: &'static str,
    /// CloudTrail's name of the type.
    pub kind: &'static str,
    /// Finds the resource with an ARN, and returns the ARN from its record and its tags.
    pub find: Find,
    /// Replaces the tags.
    pub set_tags: fn(&mut Work<'_>, &Scope, &str, Tags) -> Result<(), AcmError>,
}

/// All kinds.
pub static TAGGABLE: &[Taggable] = &[
    Taggable {
        prefix: "certificate/",
        kind: "AWS::ACM::Certificate",
        find: |work, scope, arn| {
            let found = certificate::find(work, scope, arn)?;
            Ok((found.arn(), found.record.tags))
        },
        set_tags: |work, scope, arn, tags| {
            let mut found = certificate::find(work, scope, arn)?;
            found.record.tags = tags;
            Ok(found.save(work)?)
        },
    },
    // An endpoint, and the resources below it.
    Taggable {
        prefix: "acme-endpoint/",
        kind: "AWS::CertificateManager::AcmeEndpoint",
        find: acme::tags,
        set_tags: acme::set_tags,
    },
];

impl Taggable {
    /// The kind of the resource with this ARN.
    pub fn of(arn: &str) -> Result<&'static Self, AcmError> {
        let parsed = Arn::parse(arn);
        TAGGABLE
            .iter()
            .filter(|row| parsed.as_ref().is_some_and(|arn| arn.of("acm", row.prefix).is_some()))
            .max_by_key(|row| row.prefix.len())
            .ok_or_else(|| {
                AcmError::Validation(format!("{arn} is not the ARN of a resource that has tags."))
            })
    }
}

/// Adds or replaces tags.
pub fn add(
    work: &mut Work<'_>,
    scope: &Scope,
    arn: &str,
    more: Tags,
    permit: &Permit<impl action::AddsTags>,
) -> Result<(), AcmError> {
    permit.opens(arn)?;
    let row = Taggable::of(arn)?;
    let (_, mut tags) = (row.find)(work, scope, arn)?;
    if let Some(clash) = tags::clash(&tags, more.keys()) {
        return Err(AcmError::InvalidTag(tags::refusal(clash)));
    }
    tags.extend(more);
    check_tags(&tags)?;
    (row.set_tags)(work, scope, arn, tags)
}

/// Removes tags: each by its key, or only with the given value.
pub fn remove(
    work: &mut Work<'_>,
    scope: &Scope,
    arn: &str,
    which: &[(String, Option<String>)],
    permit: &Permit<impl action::RemovesTags>,
) -> Result<(), AcmError> {
    permit.opens(arn)?;
    let row = Taggable::of(arn)?;
    let (_, mut tags) = (row.find)(work, scope, arn)?;
    tags.retain(|key, value| {
        !which
            .iter()
            .any(|(name, wanted)| name == key && wanted.as_ref().is_none_or(|w| w == value))
    });
    (row.set_tags)(work, scope, arn, tags)
}

/// Checks the number of tags of a resource.
pub fn check_tags(tags: &Tags) -> Result<(), AcmError> {
    if tags.len() > limits::MAX_TAGS {
        let limit = limits::MAX_TAGS;
        return Err(AcmError::TooManyTags(format!("A resource has at most {limit} tags.")));
    }
    Ok(())
}

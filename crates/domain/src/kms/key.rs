//! Keys: making, finding, listing and describing them.

use std::collections::BTreeMap;

use outlast_crypto::keys::{KeySpec, KeyUsage};

use super::record::{Key, Material, Origin, Record, Regions, prefix, record_key};
use super::{KmsError, access, alias};
use crate::arn::{Arn, Scope};
use crate::identity::{Permit, action};
use crate::work::{Page, Work};
use crate::{ids, limits, quotas, tags};

/// Properties of a new key.
pub struct NewKey {
    /// Its type.
    pub spec: &'static KeySpec,
    /// Its usage, one of the type's.
    pub usage: KeyUsage,
    /// Free text.
    pub description: String,
    /// Tags.
    pub tags: BTreeMap<String, String>,
    /// Where its material comes from.
    pub origin: Origin,
    /// Whether it can be replicated to other Regions.
    pub multi_region: bool,
    /// Key policy, already checked; `None` for the default one.
    pub policy: Option<String>,
}

/// Makes a key, with its material unless that is to be imported.
pub fn create(
    work: &mut Work<'_>,
    scope: &Scope,
    new: NewKey,
    permit: &Permit<action::kms::CreateKey>,
) -> Result<Key, KmsError> {
    permit.opens(&scope.arn("kms", "key/*"))?;
    check_tags(&new.tags)?;
    work.admit::<KmsError>(&quotas::KMS_KEYS, &[&scope.account, &scope.region])?;
    let material_id = match new.origin {
        Origin::Own => ids::hex::<32>()?,
        Origin::External => String::new(),
    };
    let regions = new
        .multi_region
        .then(|| Regions { primary: scope.region.clone(), replicas: Default::default() });
    let record = Record {
        id: if new.multi_region { ids::multi_region()? } else { ids::uuid()? },
        spec: new.spec.name.to_owned(),
        usage: new.usage.name().to_owned(),
        description: new.description,
        enabled: true,
        created_ms: work.now_ms(),
        deletion: None,
        materials: match new.origin {
            Origin::Own => vec![Material::first(material_id.clone())],
            Origin::External => Vec::new(),
        },
        material_id,
        tags: new.tags,
        origin: new.origin,
        principals: access::resolve(work, new.policy.as_deref())?,
        policy: new.policy,
        rotation: None,
        regions,
        approval_rule: None,
        after_replicas_days: None,
        manager: None,
    };
    let key = Key::new(scope, record, work.now_ms())?;
    if new.origin == Origin::Own {
        work.put_secret(&key.material_record_key(key.material_id()), &new.spec.generate()?)?;
    }
    key.save(work)?;
    Ok(key)
}

/// Finds a key by id, ARN, alias name or alias ARN. An ARN may name another account's key.
pub fn find(work: &mut Work<'_>, scope: &Scope, name: &str) -> Result<Key, KmsError> {
    let invalid = || KmsError::NotFound(format!("Invalid keyId '{name}'"));
    let mut scope = scope.clone();
    let parsed;
    let resource = if name.starts_with("arn:") {
        parsed = Arn::parse(name)
            .filter(|arn| arn.service() == "kms" && !arn.account().is_empty())
            .ok_or_else(|| KmsError::InvalidArn(format!("Invalid arn {name}")))?;
        if parsed.region() != scope.region {
            return Err(KmsError::NotFound(format!("Invalid arn {}", parsed.region())));
        }
        parsed.account().clone_into(&mut scope.account);
        parsed.resource()
    } else {
        name
    };
    if resource.starts_with("alias/") {
        let target = alias::target(work, &scope, resource)?;
        return Ok(by_id(work, &scope, &target)?.by_alias(resource));
    }
    let id = match resource.strip_prefix("key/") {
        Some(id) if resource.len() != name.len() => id,
        None if resource.len() == name.len() => resource,
        _ => return Err(invalid()),
    };
    if ids::key_bytes(id).is_none() {
        return Err(invalid());
    }
    by_id(work, &scope, id)
}

pub(super) fn by_id(work: &mut Work<'_>, scope: &Scope, id: &str) -> Result<Key, KmsError> {
    let missing = || {
        let arn = scope.arn("kms", &format!("key/{id}"));
        KmsError::NotFound(format!("Key '{arn}' does not exist"))
    };
    let record = work.get::<Record>(&record_key(scope, id))?.ok_or_else(missing)?;
    let key = Key::new(scope, record, work.now_ms())?;
    // After its date a key is gone, even if no sweep has run.
    if key.deletion().is_some_and(|deletion| deletion.at_ms <= work.now_ms()) {
        return Err(missing());
    }
    Ok(key)
}

/// Lists keys in order of id, after the marker of the previous page.
pub fn keys(
    work: &Work<'_>,
    scope: &Scope,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::kms::ListKeys>,
) -> Result<Page<Key>, KmsError> {
    permit.opens(&scope.arn("kms", "key/*"))?;
    let page = work.page::<Record>(&prefix(scope), marker, limit)?;
    let now_ms = work.now_ms();
    let keys = page
        .items
        .into_iter()
        .filter(|record| record.deletion.is_none_or(|deletion| deletion.at_ms > now_ms))
        .map(|record| Key::new(scope, record, now_ms))
        .collect::<Result<_, _>>()?;
    Ok(Page { items: keys, next: page.next })
}

/// Replaces the description.
pub fn describe(
    work: &mut Work<'_>,
    mut key: Key,
    description: String,
    permit: &Permit<action::kms::UpdateKeyDescription>,
) -> Result<(), KmsError> {
    permit.opens(&key.arn())?;
    key.require_kept()?;
    key.record.description = description;
    Ok(key.save(work)?)
}

/// Adds or replaces tags.
pub fn add_tags(
    work: &mut Work<'_>,
    mut key: Key,
    tags: BTreeMap<String, String>,
    permit: &Permit<action::kms::TagResource>,
) -> Result<Key, KmsError> {
    permit.opens(&key.arn())?;
    key.require_kept()?;
    if let Some(clash) = tags::clash(&key.record.tags, tags.keys()) {
        return Err(KmsError::Tag(tags::refusal(clash)));
    }
    key.record.tags.extend(tags);
    check_tags(&key.record.tags)?;
    key.save(work)?;
    Ok(key)
}

/// Removes tags; ignores keys that the resource does not have.
pub fn remove_tags(
    work: &mut Work<'_>,
    mut key: Key,
    names: &[String],
    permit: &Permit<action::kms::UntagResource>,
) -> Result<(), KmsError> {
    permit.opens(&key.arn())?;
    key.require_kept()?;
    key.record.tags.retain(|name, _| !names.contains(name));
    Ok(key.save(work)?)
}

pub(super) fn check_tags(tags: &BTreeMap<String, String>) -> Result<(), KmsError> {
    if tags.len() > limits::MAX_TAGS {
        return Err(KmsError::Tag(format!("a key has at most {} tags", limits::MAX_TAGS)));
    }
    Ok(())
}

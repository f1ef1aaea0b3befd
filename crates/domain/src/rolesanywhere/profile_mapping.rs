//! Changes of a profile's attribute mappings.

use super::RolesAnywhereError;
use super::mapping::{Mapping, canonical};
use super::profile::{self, Profile};
use crate::identity::{Permit, action};
use crate::limits;
use crate::work::Work;

/// Replaces the rules of a field.
pub fn put_mapping(
    work: &mut Work<'_>,
    mut profile: Profile,
    field: &str,
    specifiers: &[String],
    permit: &Permit<action::rolesanywhere::PutAttributeMapping>,
) -> Result<Profile, RolesAnywhereError> {
    permit.opens(&profile.arn())?;
    let mut rules = Vec::new();
    for specifier in specifiers {
        let rule = canonical(field, specifier).ok_or_else(|| {
            RolesAnywhereError::Validation(format!(
                "The specifier {specifier} is not supported for {field}"
            ))
        })?;
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    if rules.len() > limits::MAX_MAPPING_RULES {
        let text = format!("A certificate field has at most {} rules", limits::MAX_MAPPING_RULES);
        return Err(RolesAnywhereError::Validation(text));
    }
    let mappings = &mut profile.record.mappings;
    mappings.retain(|mapping| mapping.field != field);
    mappings.push(Mapping { field: field.to_owned(), rules });
    mappings.sort_by(|one, other| one.field.cmp(&other.field));
    profile::save(work, &mut profile)?;
    Ok(profile)
}

/// Removes rules of a field: those with these specifiers, or all of them.
pub fn delete_mapping(
    work: &mut Work<'_>,
    mut profile: Profile,
    field: &str,
    specifiers: Option<&[String]>,
    permit: &Permit<action::rolesanywhere::DeleteAttributeMapping>,
) -> Result<Profile, RolesAnywhereError> {
    permit.opens(&profile.arn())?;
    let mappings = &mut profile.record.mappings;
    for specifier in specifiers.unwrap_or_default() {
        let rule = canonical(field, specifier);
        let mapping = mappings.iter_mut().find(|mapping| mapping.field == field);
        let there = rule.and_then(|rule| {
            let rules = &mut mapping?.rules;
            let at = rules.iter().position(|known| *known == rule)?;
            Some(rules.remove(at))
        });
        if there.is_none() {
            let text = format!("There is no rule with the specifier {specifier} for {field}");
            return Err(RolesAnywhereError::Validation(text));
        }
    }
    mappings.retain(|mapping| {
        mapping.field != field || (specifiers.is_some() && !mapping.rules.is_empty())
    });
    profile::save(work, &mut profile)?;
    Ok(profile)
}

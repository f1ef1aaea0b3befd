//! Partitions in policies: a statement about a partition that cannot exist would never apply, and a `Deny` must not
//! fail silently.

use super::condition::{Wanted, holds_arn};
use super::pattern::Template;
use super::principal::Principal;
use super::{Policy, Statement};
use crate::arn::is_region;
use crate::partition::{PARTITIONS, Partition};

/// Checks a document that a caller wants to store.
pub(super) fn check(policy: &Policy) -> Result<(), String> {
    let of = |(number, statement): (usize, &Statement)| {
        statement_of(statement).map_err(|what| format!("Statement[{number}]{what}"))
    };
    policy.statements.iter().enumerate().try_for_each(of)
}

fn statement_of(statement: &Statement) -> Result<(), String> {
    let principals = statement.principals.iter().flat_map(|listed| &listed.items);
    if principals.into_iter().any(|one| matches!(one, Principal::Impossible(_))) {
        return Err(format!(".Principal: an ARN is in none of the partitions {}", ids()));
    }
    for template in statement.resources.iter().flat_map(|listed| &listed.items) {
        possible(template).map_err(|what| format!(".Resource: {what}"))?;
    }
    for condition in &statement.conditions {
        for wanted in &condition.wanted {
            let template = match wanted {
                Wanted::Arn(template) => template,
                Wanted::Text(template) if holds_arn(&condition.key) => template,
                _ => continue,
            };
            possible(template).map_err(|what| format!(".Condition.{}: {what}", condition.key))?;
        }
    }
    Ok(())
}

/// Checks that an ARN's pattern can match a partition that exists, and a Region of it.
fn possible(template: &Template) -> Result<(), String> {
    let Some([(partition, is_whole), (region, is_region_whole)]) = template.partition_and_region()
    else {
        return Ok(());
    };
    let fits = |row: &Partition| {
        if is_whole { row.id == partition } else { row.id.starts_with(&partition) }
    };
    if !PARTITIONS.iter().any(fits) {
        return Err(format!("{} is not one of the partitions {}", short(&partition), ids()));
    }
    if is_region_whole && is_region(&region) && !fits(Partition::of(&region)) {
        let right = Partition::of(&region).id;
        return Err(format!("{region} is a Region of the partition {right}"));
    }
    Ok(())
}

fn ids() -> String {
    let ids: Vec<_> = PARTITIONS.iter().map(|row| row.id).collect();
    ids.join(", ")
}

fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

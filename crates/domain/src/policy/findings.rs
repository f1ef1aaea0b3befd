//! Findings: valid parts of a document that do not do what its author means, such as conditions on keys that no
//! request has.
//!
//! AWS accepts such documents, and so do we: policies move between here and there. But a `Deny` that never applies is
//! reported when it is put.

use super::condition::Condition;
use super::keys::{KeyRow, PREFIXES, Set};
use super::pattern::Template;
use super::shown::short;
use super::{Effect, Policy, Statement};

/// Findings of one document at most.
const MAX_FINDINGS: usize = 50;

impl Policy {
    /// What the document's author should know, in sentences. Positions in lists count from 0.
    pub fn findings(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (index, statement) in self.statements.iter().enumerate() {
            let of_conditions = statement.conditions.iter().filter_map(|condition| {
                let record_key =
                    format!("Statement[{index}].Condition.{}", condition.operator.name());
                Some(format!("{record_key}: {}", judge(statement, condition)?))
            });
            found.extend(of_conditions);
            found.extend(variables(statement).map(|key| {
                format!(
                    "Statement[{index}]: the variable ${{{}}} never has a value, so the text that contains it matches \
                     nothing",
                    show(&key)
                )
            }));
        }
        found.truncate(MAX_FINDINGS);
        found
    }
}

/// The finding on a condition.
fn judge(statement: &Statement, condition: &Condition) -> Option<String> {
    let key = show(&condition.key);
    let (holds, why) = if let Some(why) = never(statement, &condition.key) {
        (condition.holds_without(), format!("no request has {key} ({why})"))
    } else {
        let row = KeyRow::find(&condition.key)?;
        let always = row.set == Set::Always;
        match condition.null().filter(|_| always) {
            Some(absent) => (!absent, format!("every request has {key}")),
            None if condition.can_match(row.kind) => return None,
            None => {
                let what =
                    format!("its values can never match {key}, whose type is {}", row.kind.name());
                (condition.operator.negated(), what)
            }
        }
    };
    Some(match (statement.effect, holds) {
        (Effect::Deny, false) => format!("this Deny never applies: {why}"),
        (Effect::Allow, false) => format!("this Allow never applies: {why}"),
        (Effect::Deny, true) => format!("the condition holds for every request: {why}"),
        (Effect::Allow, true) => {
            format!("the condition restricts nothing, because it holds for every request: {why}")
        }
    })
}

/// Why no request that matches the statement has a key; `None` if some have it.
fn never(statement: &Statement, key: &str) -> Option<&'static str> {
    let Some(row) = KeyRow::find(key) else {
        let prefix = key.split(':').next().unwrap_or_default();
        return Some(if PREFIXES.contains(&prefix) {
            "there is no such key; see docs/condition-keys.md"
        } else {
            "it is a key of a service that outlast does not have"
        });
    };
    if let Set::Never(why) = row.set {
        return Some(why);
    }
    let about = |service: &str| {
        statement.actions.negated
            || statement.actions.items.iter().any(|action| {
                let prefix = action.literal_prefix().to_ascii_lowercase();
                prefix.split_once(':').is_none_or(|(name, _)| name == service)
            })
    };
    let fits = row.services.is_empty() || row.services.iter().any(|service| about(service));
    (!fits).then_some("it does not apply to these actions")
}

/// Variables without a default that never have a value.
fn variables(statement: &Statement) -> impl Iterator<Item = String> {
    let resources = statement.resources.iter().flat_map(|listed| &listed.items);
    let values = statement.conditions.iter().flat_map(Condition::templates);
    resources
        .chain(values)
        .flat_map(Template::variables)
        .filter(|key| never(statement, key).is_some())
        .map(str::to_owned)
}

/// A key in AWS's spelling, or as it came.
fn show(key: &str) -> String {
    match KeyRow::find(key) {
        Some(row) if !row.name.contains('$') => row.name.to_owned(),
        _ => short(key),
    }
}

//! Common SSH clients that two policies treat differently.

use super::crowd::CROWD;
use super::decide::decide_ssh;
use super::explain::outcome_text;
use super::rules::{SshRules, served};
use crate::fare::Change;
use crate::row::SecurityPolicy;

/// The common SSH clients that are affected when a policy replaces another one, each in its own mode. Empty if either
/// has no part for SSH.
pub fn changes(from: &'static SecurityPolicy, to: &'static SecurityPolicy) -> Vec<Change> {
    if !from.has_ssh() || !to.has_ssh() {
        return Vec::new();
    }
    let rules = |policy| SshRules::new(policy, None, served).ok();
    let (before, after) = (rules(from), rules(to));
    let changed = CROWD.iter().filter_map(|client| {
        let outcome =
            |rules: Option<&SshRules>| rules.map(|rules| decide_ssh(rules, &client.offer));
        let text = |outcome: Option<_>| match outcome {
            Some(outcome) => outcome_text(outcome),
            None => "refused: no listener can have this policy".to_owned(),
        };
        let (old, new) = (outcome(before.as_ref()), outcome(after.as_ref()));
        let is_served =
            |outcome: Option<Result<_, _>>| outcome.is_some_and(|outcome| outcome.is_ok());
        let lost = is_served(old) && !is_served(new);
        let (before, after) = (text(old), text(new));
        (before != after).then_some(Change { client: client.name, before, after, lost })
    });
    changed.collect()
}

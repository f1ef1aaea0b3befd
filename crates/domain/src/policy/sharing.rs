//! What a resource's policy lets other accounts do, judged by its statements alone.
//!
//! Source: "Resource-based policies" of the Private CA user guide, which prescribes a form. Here a condition
//! restricts a statement only if it can hold for nobody but those that it names.

use super::condition::{Condition, Narrowing};
use super::principal::Principal;
use super::{Effect, Policy, Statement};

/// Condition keys, in lower case, that identify the caller, or for whom a service acts.
const WHO: &[&str] = &[
    "aws:principalaccount",
    "aws:principalarn",
    "aws:principalorgid",
    "aws:principalorgpaths",
    "aws:sourceaccount",
    "aws:sourcearn",
    "aws:sourceorgid",
    "aws:sourceorgpaths",
];

impl Policy {
    /// Whether an `Allow` is for everyone without a condition that identifies the caller.
    pub fn allows_everyone(&self) -> bool {
        self.statements.iter().any(Statement::allows_everyone)
    }

    /// Whether an `Allow` of `action` names principals outside of `account` without a `StringEquals` that limits
    /// `key`, given in lower case, to values that `fits` accepts.
    pub fn allows_others(
        &self,
        account: &str,
        action: &str,
        key: &str,
        fits: impl Fn(&str) -> bool,
    ) -> bool {
        self.statements.iter().any(|statement| {
            let is_bound = || {
                let mut of_key = statement.conditions.iter().filter(|found| found.key == key);
                of_key.any(|found| found.equals_one_of(&fits))
            };
            statement.effect == Effect::Allow
                && statement.has_action(action)
                && statement.speaks_beyond(account)
                && !is_bound()
        })
    }
}

impl Statement {
    /// Whether it allows anything to everyone.
    pub(super) fn allows_everyone(&self) -> bool {
        let is_everyone = |found: &Principal| matches!(found, Principal::Everyone);
        self.effect == Effect::Allow
            && self.principals.as_ref().is_some_and(|listed| listed.items.iter().any(is_everyone))
            && !self.conditions.iter().any(says_who)
    }

    fn has_action(&self, action: &str) -> bool {
        self.actions.negated || self.actions.items.iter().any(|item| item.could_be(action))
    }

    fn speaks_beyond(&self, account: &str) -> bool {
        self.principals.as_ref().is_none_or(|listed| {
            listed.negated || listed.items.iter().any(|found| found.account() != Some(account))
        })
    }
}

fn says_who(condition: &Condition) -> bool {
    WHO.contains(&condition.key.as_str()) && condition.narrows() == Narrowing::ToNamed
}

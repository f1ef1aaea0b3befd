//! The IAM JSON policy language: documents are parsed and checked once, and then evaluated.
//!
//! Source: "IAM JSON policy reference" of the IAM User Guide
//! (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies.html>); every page named in this module is
//! part of it. This module has no clock, and knows neither where a document is stored nor how a request becomes
//! condition keys.

mod condition;
mod decision;
mod findings;
mod json;
mod keys;
mod parse;
mod partition;
mod pattern;
mod principal;
mod question;
mod sharing;
mod shown;
mod steps;
mod value;

use std::collections::BTreeMap;

pub use decision::{Decision, decide};
pub use keys::{KEYS, KeyKind, KeyRow, Set};
pub use question::{Caller, ConditionKeys, Question};
pub use steps::{Steps, Stopped};

use condition::Condition;
use pattern::Template;
use principal::{Match, Principal};
use steps::Asked;

use crate::arn::spellings;

/// Bytes of a document (KMS quota "Key policy document size").
pub const MAX_DOCUMENT_BYTES: usize = 32_768;
/// Statements of a document. Ours.
pub const MAX_STATEMENTS: usize = 1000;

/// The kind of a document, which decides which elements it must and must not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The policy of a KMS key: principals, and `*` or key ARNs as resources.
    Key,
    /// A policy of a user or role: resources, and no principals.
    Identity,
    /// A role's trust policy, which says who may assume it: principals, and no resources.
    Trust,
    /// The policy of a certificate authority: principals, and ARNs of Private CA as resources.
    Authority,
    /// The policy of a secret: principals, and `*` or ARNs of Secrets Manager as resources.
    Secret,
}

/// The effect of a statement on the requests that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// They are allowed, unless something denies them.
    Allow,
    /// They are denied, whatever else allows them.
    Deny,
}

/// The result of evaluating one document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// No statement applies.
    None,
    /// An `Allow` applies, and no `Deny`.
    Allow {
        /// Whether the `Allow` matched only through the account of a caller who is not its root user
        /// (`arn:aws:iam::account:root` or the bare account id): then the caller's identity policies decide ("Key
        /// policies in AWS KMS").
        delegated: bool,
    },
    /// A `Deny` applies.
    Deny,
    /// The evaluation was stopped before its end: the document counts as if it denied.
    Stopped(Stopped),
}

/// Why a document is not a valid policy, and where. Positions in lists count from 0. Quotes at most 64 characters of
/// the document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(String);

/// A document that has been parsed and checked.
#[derive(Debug, Clone)]
pub struct Policy {
    kind: Kind,
    statements: Vec<Statement>,
}

impl Policy {
    /// Parses a document that a caller wants to store.
    ///
    /// ```
    /// use outlast_domain::policy::{Kind, Policy};
    ///
    /// let text = r#"{ "Version": "2012-10-17", "Statement": [
    ///     { "Effect": "Allow", "Action": "kms:Encrypt", "Resource": "*" } ] }"#;
    /// assert!(Policy::parse(text, Kind::Identity).is_ok());
    /// assert!(Policy::parse(&text.replace("Allow", "Permit"), Kind::Identity).is_err());
    /// ```
    pub fn parse(text: &str, kind: Kind) -> Result<Self, Malformed> {
        let policy = parse::document(text, kind)?;
        partition::check(&policy).map_err(Malformed)?;
        Ok(policy)
    }

    /// Parses a stored document. What earlier builds accepted keeps its meaning.
    pub fn parse_stored(text: &str, kind: Kind) -> Result<Self, Malformed> {
        parse::document(text, kind)
    }

    /// The kind that the document was parsed as.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// ARNs of the users, roles and sessions in the document.
    pub fn principals(&self) -> impl Iterator<Item = &str> {
        self.named().filter_map(|principal| match principal {
            Principal::Arn { name, .. } => Some(name.as_str()),
            _ => None,
        })
    }

    /// Names of the services in the document.
    pub fn services(&self) -> impl Iterator<Item = &str> {
        self.named().filter_map(|principal| match principal {
            Principal::Service(name) => Some(name.as_str()),
            _ => None,
        })
    }

    fn named(&self) -> impl Iterator<Item = &Principal> {
        let listed = self.statements.iter().filter_map(|statement| statement.principals.as_ref());
        listed.flat_map(|listed| &listed.items)
    }

    /// Binds the document to the principals with these unique ids, by ARN.
    pub fn bound(mut self, ids: &BTreeMap<String, String>) -> Self {
        let listed =
            self.statements.iter_mut().filter_map(|statement| statement.principals.as_mut());
        for principal in listed.flat_map(|listed| &mut listed.items) {
            if let Principal::Arn { name, id } = principal {
                *id = ids.get(name).cloned();
            }
        }
        self
    }

    /// Whether a condition uses this key, given in lower case.
    pub fn asks_for(&self, key: &str) -> bool {
        self.statements
            .iter()
            .flat_map(|statement| &statement.conditions)
            .any(|condition| condition.key == key)
    }

    /// Evaluates the document. A `Deny` wins, and an `Allow` for the caller wins over one for its account. An
    /// identity policy is about the principal that it belongs to, and never delegates.
    pub fn evaluate(&self, question: &Question<'_>) -> Grant {
        self.evaluate_within(&Steps::default(), question)
    }

    /// The same with the remaining steps of a decision over several documents.
    pub fn evaluate_within(&self, steps: &Steps, question: &Question<'_>) -> Grant {
        let asked = Asked { question, steps };
        let mut grant = Grant::None;
        for statement in &self.statements {
            let found = statement.principal(asked);
            let applies = found != Match::No && statement.applies(asked);
            // The result of a statement that was not evaluated to its end means nothing.
            if let Some(stopped) = steps.stopped() {
                return Grant::Stopped(stopped);
            }
            if !applies {
                continue;
            }
            // Such a document is refused today; an older one allows nothing by this statement.
            if self.kind == Kind::Authority && statement.allows_everyone() {
                continue;
            }
            match (statement.effect, grant) {
                (Effect::Deny, _) => return Grant::Deny,
                (Effect::Allow, Grant::Allow { delegated: false }) => {}
                (Effect::Allow, _) => {
                    grant = Grant::Allow { delegated: found == Match::Account };
                }
            }
        }
        grant
    }
}

/// A statement. Identity policies have no principals, trust policies no resources.
#[derive(Debug, Clone)]
struct Statement {
    effect: Effect,
    principals: Option<Selection<Principal>>,
    actions: Selection<Template>,
    resources: Option<Selection<Template>>,
    conditions: Vec<Condition>,
}

impl Statement {
    fn principal(&self, asked: Asked<'_>) -> Match {
        let caller = asked.question.caller;
        asked.steps.take(1 + self.principals.as_ref().map_or(0, |listed| listed.items.len()));
        match &self.principals {
            None => Match::Direct,
            Some(listed) if listed.negated => principal::outside(&listed.items, caller),
            Some(listed) => principal::within(&listed.items, caller),
        }
    }

    fn applies(&self, asked: Asked<'_>) -> bool {
        let question = asked.question;
        let chosen = |selection: &Selection<Template>, text| {
            let found = any(selection.items.iter().map(|item| item.matches(text, asked)));
            settle(found, selection.negated, self.effect)
        };
        chosen(&self.actions, question.action)
            && self.resources.as_ref().is_none_or(|listed| {
                let names = spellings(question.resource);
                let one = |item: &Template| any(names.iter().map(|arn| item.matches(arn, asked)));
                settle(any(listed.items.iter().map(one)), listed.negated, self.effect)
            })
            && self.conditions.iter().all(|condition| condition.holds(asked, self.effect))
    }
}

/// An element or its `Not` form: `Action` and `NotAction`, and so on.
#[derive(Debug, Clone)]
struct Selection<T> {
    negated: bool,
    items: Vec<T>,
}

/// Whether one of several patterns matched. `None` is a pattern with a variable that has no value: it matches
/// nothing, which is remembered if nothing else matched.
fn any(outcomes: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut found = Some(false);
    for outcome in outcomes {
        match outcome {
            Some(true) => return Some(true),
            Some(false) => {}
            None => found = None,
        }
    }
    found
}

/// Applies a `Not`. By "IAM policy elements: Variables and tags" a variable without a value invalidates the
/// statement: so "not equal to nothing" never allows. It does deny, to be on the safe side.
fn settle(found: Option<bool>, negated: bool, effect: Effect) -> bool {
    match found {
        Some(found) => found != negated,
        None => negated && effect == Effect::Deny,
    }
}

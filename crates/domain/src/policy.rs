//! The IAM JSON policy language: documents are read and checked once, then asked questions.
//!
//! Source: "IAM JSON policy reference" of the IAM User Guide
//! (<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies.html>), which is meant by every
//! page named in this module. It holds no clock, and knows neither where a document is kept nor how a
//! request becomes condition keys.

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

/// What a document is for: decides which elements it must and must not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The policy of a KMS key: principals, and `*` or key ARNs as resources.
    Key,
    /// A policy attached to a user or role: resources, and no principals.
    Identity,
    /// Who may assume a role: principals, and no resources.
    Trust,
    /// The policy of a certificate authority: principals, and ARNs of Private CA as resources.
    Authority,
}

/// What a statement says of the requests that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// They are allowed, unless something denies them.
    Allow,
    /// They are denied, whatever else allows them.
    Deny,
}

/// What one document says to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grant {
    /// No statement applies.
    None,
    /// Some `Allow` applies, and no `Deny`.
    Allow {
        /// It matched only through the account of a caller who is not its root user
        /// (`arn:aws:iam::account:root` or the bare account id), which hands the decision to the
        /// caller's identity policies ("Key policies in AWS KMS").
        delegated: bool,
    },
    /// Some `Deny` applies.
    Deny,
    /// The document was not read to its end: it may have denied, and is taken as if it did.
    Stopped(Stopped),
}

/// A document cannot be a policy: what is wrong and where. Positions in lists count from 0. No more than
/// 64 characters of the document are repeated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(String);

/// A document that has been read and checked.
#[derive(Debug, Clone)]
pub struct Policy {
    kind: Kind,
    statements: Vec<Statement>,
}

impl Policy {
    /// Reads a document that somebody wants to store.
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

    /// Reads a document that is stored: what earlier builds took still says what it says.
    pub fn parse_stored(text: &str, kind: Kind) -> Result<Self, Malformed> {
        parse::document(text, kind)
    }

    /// What the document was read as.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// ARNs of the users, roles and sessions that it names.
    pub fn principals(&self) -> impl Iterator<Item = &str> {
        self.named().filter_map(|principal| match principal {
            Principal::Arn { name, .. } => Some(name.as_str()),
            _ => None,
        })
    }

    /// Names of the services that it names.
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

    /// The same for those only who have these unique ids, by ARN.
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

    /// Whether a condition asks for this key, given in lower case.
    pub fn asks_for(&self, key: &str) -> bool {
        self.statements
            .iter()
            .flat_map(|statement| &statement.conditions)
            .any(|condition| condition.key == key)
    }

    /// What the document says. A `Deny` wins, and an `Allow` for the caller itself over one for its
    /// account. An identity policy speaks of whoever it is attached to, and never delegates.
    pub fn evaluate(&self, question: &Question<'_>) -> Grant {
        self.evaluate_within(&Steps::default(), question)
    }

    /// The same with the steps that are left of a decision over several documents.
    pub fn evaluate_within(&self, steps: &Steps, question: &Question<'_>) -> Grant {
        let asked = Asked { question, steps };
        let mut grant = Grant::None;
        for statement in &self.statements {
            let found = statement.principal(asked);
            let applies = found != Match::No && statement.applies(asked);
            // Whatever was found in a statement that was not read to its end means nothing.
            if let Some(stopped) = steps.stopped() {
                return Grant::Stopped(stopped);
            }
            if !applies {
                continue;
            }
            // Such a document is refused today; one from before allows nobody by it.
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

/// One statement. Who is meant is absent in identity policies, what is meant in trust policies.
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

/// Whether one of several patterns matched. `None` is a pattern with a variable that has no value: it
/// matches nothing, and is remembered if nothing else matched.
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

/// Applies a `Not`. "IAM policy elements: Variables and tags" has it that a variable without a value makes
/// the statement invalid: so "not equal to nothing" never allows. It does deny, to be on the safe side.
fn settle(found: Option<bool>, negated: bool, effect: Effect) -> bool {
    match found {
        Some(found) => found != negated,
        None => negated && effect == Effect::Deny,
    }
}

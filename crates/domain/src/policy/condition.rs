//! Conditions: the table of operators, and when a condition holds.
//!
//! Sources: "IAM JSON policy elements: Condition operators", "Conditions with multiple context keys or
//! values", "Single-valued vs. multivalued context keys".

use std::borrow::Cow;
use std::cmp::Ordering;

use ipnet::IpNet;

use super::pattern::{Syntax, Template};
use super::steps::Asked;
use super::{Effect, KeyKind, any, settle, value};
use crate::arn::spellings;

/// One operator applied to one key.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    /// Key in lower case.
    pub key: String,
    pub operator: Operator,
    /// Values of the document, at least one.
    pub wanted: Vec<Wanted>,
}

/// An operator of the table, with its prefix and suffix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operator {
    row: &'static Row,
    set: Set,
    if_exists: bool,
}

/// How several values of a request are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    /// No prefix: for keys with one value. If there are more, one must match; for a negated operator, none may.
    One,
    /// `ForAllValues:`
    All,
    /// `ForAnyValue:`
    Any,
}

/// A value of the document, parsed for its operator.
#[derive(Debug, Clone)]
pub(super) enum Wanted {
    Text(Template),
    Arn(Template),
    Number(f64, Compare),
    Date(i128, Compare),
    Bytes(Vec<u8>),
    Network(IpNet),
    Absent(bool),
}

type Compare = fn(Ordering) -> bool;

impl Condition {
    /// Whether the request meets the condition, for a statement with this effect.
    pub fn holds(&self, asked: Asked<'_>, effect: Effect) -> bool {
        let Operator { row, set, .. } = self.operator;
        let values = asked.values(&self.key);
        if matches!(row.test, Test::Null) && !values.is_empty() {
            return self.null() != Some(true);
        }
        if values.is_empty() {
            return self.holds_without();
        }
        let is_ambiguous =
            values.len() > 1 && TAG_KEYS.iter().any(|prefix| self.key.starts_with(prefix));
        let mut outcomes = values.iter().map(|value| {
            if asked.steps.are_spent() {
                return false;
            }
            let names =
                if holds_arn(&self.key) { spellings(value) } else { vec![Cow::Borrowed(*value)] };
            let one = |wanted: &Wanted| any(names.iter().map(|name| wanted.matches(name, asked)));
            let found = any(self.wanted.iter().map(one));
            settle(found, row.negated, effect)
        });
        if is_ambiguous {
            return match effect {
                Effect::Allow => outcomes.all(|outcome| outcome),
                Effect::Deny => outcomes.any(|outcome| outcome),
            };
        }
        match (set, row.negated) {
            (Set::All, _) | (Set::One, true) => outcomes.all(|outcome| outcome),
            (Set::Any, _) | (Set::One, false) => outcomes.any(|outcome| outcome),
        }
    }
}

/// Keys with one value each. One that has several comes from tags that differ only in case: all of them must allow,
/// and any of them denies.
const TAG_KEYS: &[&str] = &["aws:principaltag/", "aws:requesttag/", "aws:resourcetag/"];

/// How far a condition restricts its statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Narrowing {
    /// It holds only for requests whose value for the key is one that the document names.
    ToNamed,
    /// It may also hold for others.
    NotSurely,
}

impl Condition {
    /// Whether a request without the key meets it.
    pub fn holds_without(&self) -> bool {
        let Operator { row, set, if_exists } = self.operator;
        if matches!(row.test, Test::Null) {
            return self.null() != Some(false);
        }
        // "If the key that you specify in a policy condition is not present in the request context, the values do not
        // match"; so a negated operator does match.
        if_exists
            || match set {
                Set::One => row.negated,
                Set::All => true,
                Set::Any => false,
            }
    }

    /// What the operator `Null` requires; `None` for other operators, and if it requires both.
    pub fn null(&self) -> Option<bool> {
        let mut asked = self.wanted.iter().map(|wanted| match wanted {
            Wanted::Absent(absent) => Some(*absent),
            _ => None,
        });
        let first = asked.next()??;
        asked.all(|other| other == Some(first)).then_some(first)
    }

    /// Whether any value of this type can match one of the document's.
    pub fn can_match(&self, kind: KeyKind) -> bool {
        self.wanted.iter().any(|wanted| wanted.can_match(self.operator.row.test, kind))
    }

    /// The patterns among its values.
    pub fn templates(&self) -> impl Iterator<Item = &Template> {
        self.wanted.iter().filter_map(|wanted| match wanted {
            Wanted::Text(template) | Wanted::Arn(template) => Some(template),
            _ => None,
        })
    }

    /// How far the condition restricts its statement. A pattern restricts it if it leaves no account or organisation
    /// open.
    pub fn narrows(&self) -> Narrowing {
        let Operator { row, set, if_exists } = self.operator;
        let named = |wanted: &Wanted| match (row.test, wanted) {
            (Test::Text | Test::TextIgnoreCase, Wanted::Text(text)) => text.literal().is_some(),
            (Test::Like, Wanted::Text(text)) => {
                !text.has_variables() && text.literal_prefix().len() >= MIN_NAMED_PREFIX
            }
            (Test::Arn, Wanted::Arn(arn)) => arn.names_account(),
            _ => false,
        };
        // Without the key, IfExists, ForAllValues and negated operators hold.
        let needs_key = !if_exists && set != Set::All && !row.negated;
        if needs_key && self.wanted.iter().all(named) {
            Narrowing::ToNamed
        } else {
            Narrowing::NotSurely
        }
    }

    /// Whether it is `StringEquals` and `fits` accepts all its values.
    pub fn equals_one_of(&self, fits: impl Fn(&str) -> bool) -> bool {
        let Operator { row, set, if_exists } = self.operator;
        let plain = matches!(row.test, Test::Text) && !row.negated && set == Set::One && !if_exists;
        plain
            && self.wanted.iter().all(|wanted| match wanted {
                Wanted::Text(text) => text.literal().is_some_and(|text| fits(&text)),
                _ => false,
            })
    }
}

/// Characters that must precede the first wildcard so that an account or organisation is named: an account id has
/// twelve.
const MIN_NAMED_PREFIX: usize = 12;

impl Operator {
    /// Its name with prefix and suffix.
    pub fn name(&self) -> String {
        let set = match self.set {
            Set::One => "",
            Set::All => "ForAllValues:",
            Set::Any => "ForAnyValue:",
        };
        format!("{set}{}{}", self.row.name, if self.if_exists { "IfExists" } else { "" })
    }

    /// Whether it holds if values do not match.
    pub fn negated(&self) -> bool {
        self.row.negated
    }

    /// Finds `ForAnyValue:StringLikeIfExists` and the like.
    pub fn find(name: &str) -> Option<Self> {
        let (set, name) = match name.split_once(':') {
            None => (Set::One, name),
            Some(("ForAllValues", name)) => (Set::All, name),
            Some(("ForAnyValue", name)) => (Set::Any, name),
            Some(_) => return None,
        };
        let (name, if_exists) = match name.strip_suffix("IfExists") {
            None => (name, false),
            Some(name) => (name, true),
        };
        let row = OPERATORS.iter().find(|row| row.name == name)?;
        // "You can add IfExists to the end of any condition operator name except the Null condition."
        let alone = matches!(row.test, Test::Null) && (if_exists || set != Set::One);
        (!alone).then_some(Self { row, set, if_exists })
    }

    /// Parses a value of the document. `variables` says whether its version has variables.
    pub fn read(&self, text: &str, variables: bool) -> Result<Wanted, &'static str> {
        let template = |wildcards, ignore_case| {
            Template::parse(text, Syntax { wildcards, variables, ignore_case })
        };
        Ok(match self.row.test {
            Test::Text => Wanted::Text(template(false, false)?),
            Test::TextIgnoreCase => Wanted::Text(template(false, true)?),
            Test::Like => Wanted::Text(template(true, false)?),
            Test::Bool => {
                let wanted = template(false, true)?;
                if !wanted.has_variables() && truth(text).is_none() {
                    return Err(NOT_BOOL);
                }
                Wanted::Text(wanted)
            }
            Test::Arn => {
                let wanted = template(true, false)?;
                if !wanted.has_variables() && !wanted.is_arn(None) {
                    return Err("is not an ARN of six parts");
                }
                Wanted::Arn(wanted)
            }
            Test::Number(compare) => {
                Wanted::Number(value::number(text).ok_or("is not a number")?, compare)
            }
            Test::Date(compare) => Wanted::Date(
                value::instant(text).ok_or("is not a date such as 2030-01-01T00:00:00Z")?,
                compare,
            ),
            Test::Binary => Wanted::Bytes(value::bytes(text).ok_or("is not base64")?),
            Test::Address => Wanted::Network(
                value::network(text).ok_or("is not an address or range such as 192.0.2.0/24")?,
            ),
            Test::Null => Wanted::Absent(truth(text).ok_or(NOT_BOOL)?),
        })
    }
}

impl Wanted {
    /// Whether a value of the request matches; `None` if a variable has no value. A value that cannot be parsed
    /// matches nothing.
    fn matches(&self, text: &str, asked: Asked<'_>) -> Option<bool> {
        if !matches!(self, Self::Text(_) | Self::Arn(_)) && !asked.steps.take(1 + text.len()) {
            return Some(false);
        }
        let found = match self {
            Self::Text(template) => return template.matches(text, asked),
            Self::Arn(template) => return template.matches_arn(text, asked),
            Self::Number(wanted, compare) => value::number(text)
                .and_then(|number| number.partial_cmp(wanted))
                .is_some_and(compare),
            Self::Date(wanted, compare) => {
                value::instant(text).is_some_and(|instant| compare(instant.cmp(wanted)))
            }
            Self::Bytes(wanted) => value::bytes(text).is_some_and(|bytes| bytes == *wanted),
            Self::Network(network) => {
                value::address(text).is_some_and(|address| network.contains(&address))
            }
            Self::Absent(_) => false,
        };
        Some(found)
    }

    /// Whether a value of type `kind` can match. Text can have any value.
    fn can_match(&self, test: Test, kind: KeyKind) -> bool {
        match (test, self, kind) {
            (Test::Text, Self::Text(text), KeyKind::Bool) => {
                text.literal().is_none_or(|text| matches!(text.as_str(), "true" | "false"))
            }
            (Test::TextIgnoreCase, Self::Text(text), KeyKind::Bool) => {
                text.literal().is_none_or(|text| truth(&text).is_some())
            }
            // Text is compared with the address, and equals no range.
            (
                Test::Text | Test::TextIgnoreCase | Test::Like,
                Self::Text(text),
                KeyKind::Address,
            ) => text.literal().is_none_or(|text| !text.contains('/')),
            (Test::Number(_), _, _) => matches!(kind, KeyKind::Number | KeyKind::Text),
            (Test::Date(_), _, _) => {
                matches!(kind, KeyKind::Date | KeyKind::Number | KeyKind::Text)
            }
            (Test::Bool, _, _) => matches!(kind, KeyKind::Bool | KeyKind::Text),
            (Test::Address, _, _) => matches!(kind, KeyKind::Address | KeyKind::Text),
            (Test::Arn, _, _) => matches!(kind, KeyKind::Arn | KeyKind::Text),
            (Test::Binary, _, _) => kind == KeyKind::Text,
            (Test::Text | Test::TextIgnoreCase | Test::Like | Test::Null, _, _) => true,
        }
    }
}

/// Whether the values of a condition key are ARNs from this service: a policy may name those in other partitions.
/// Values from callers, such as an encryption context, are text.
pub(super) fn holds_arn(key: &str) -> bool {
    ARN_KEYS.contains(&key)
}

/// Keys, in lower case.
const ARN_KEYS: &[&str] = &[
    "acm-pca:templatearn",
    "acm:certificateauthority",
    "aws:principalarn",
    "aws:sourcearn",
    "kms:granteeprincipal",
    "kms:retiringprincipal",
];

fn truth(text: &str) -> Option<bool> {
    [true, false].into_iter().find(|value| text.eq_ignore_ascii_case(&value.to_string()))
}

const NOT_BOOL: &str = "is neither true nor false";

/// How values are parsed and compared.
#[derive(Debug, Clone, Copy)]
enum Test {
    Text,
    TextIgnoreCase,
    Like,
    Number(Compare),
    Date(Compare),
    Bool,
    Binary,
    Address,
    Arn,
    Null,
}

/// An operator.
#[derive(Debug)]
struct Row {
    name: &'static str,
    test: Test,
    negated: bool,
}

const fn row(name: &'static str, test: Test) -> Row {
    Row { name, test, negated: false }
}

const fn not(name: &'static str, test: Test) -> Row {
    Row { name, test, negated: true }
}

static OPERATORS: &[Row] = &[
    row("StringEquals", Test::Text),
    not("StringNotEquals", Test::Text),
    row("StringEqualsIgnoreCase", Test::TextIgnoreCase),
    not("StringNotEqualsIgnoreCase", Test::TextIgnoreCase),
    row("StringLike", Test::Like),
    not("StringNotLike", Test::Like),
    row("NumericEquals", Test::Number(Ordering::is_eq)),
    not("NumericNotEquals", Test::Number(Ordering::is_eq)),
    row("NumericLessThan", Test::Number(Ordering::is_lt)),
    row("NumericLessThanEquals", Test::Number(Ordering::is_le)),
    row("NumericGreaterThan", Test::Number(Ordering::is_gt)),
    row("NumericGreaterThanEquals", Test::Number(Ordering::is_ge)),
    row("DateEquals", Test::Date(Ordering::is_eq)),
    not("DateNotEquals", Test::Date(Ordering::is_eq)),
    row("DateLessThan", Test::Date(Ordering::is_lt)),
    row("DateLessThanEquals", Test::Date(Ordering::is_le)),
    row("DateGreaterThan", Test::Date(Ordering::is_gt)),
    row("DateGreaterThanEquals", Test::Date(Ordering::is_ge)),
    row("Bool", Test::Bool),
    row("BinaryEquals", Test::Binary),
    row("IpAddress", Test::Address),
    not("NotIpAddress", Test::Address),
    // "The ArnEquals and ArnLike condition operators behave identically."
    row("ArnEquals", Test::Arn),
    row("ArnLike", Test::Arn),
    not("ArnNotEquals", Test::Arn),
    not("ArnNotLike", Test::Arn),
    row("Null", Test::Null),
];

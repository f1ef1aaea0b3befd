//! Conditions: a table of operators, and when they hold.
//!
//! Sources: "IAM JSON policy elements: Condition operators", "Conditions with multiple context keys or
//! values", "Single-valued vs. multivalued context keys".

use std::cmp::Ordering;

use ipnet::IpNet;

use super::pattern::{Syntax, Template};
use super::{Effect, Question, any, settle, value};

/// One operator applied to one key.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    /// In lower case.
    pub key: String,
    pub operator: Operator,
    /// At least one.
    pub wanted: Vec<Wanted>,
}

/// An operator of the table, with its prefix and suffix.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operator {
    row: &'static Row,
    set: Set,
    if_exists: bool,
}

/// How the values of the request are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Set {
    /// No prefix: meant for keys with one value. With more, one must match, or for a negated operator none.
    One,
    /// `ForAllValues:`
    All,
    /// `ForAnyValue:`
    Any,
}

/// A value of the document, as its operator reads it.
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
    /// Whether the condition is met by the request, for a statement with this effect.
    pub fn holds(&self, question: &Question<'_>, effect: Effect) -> bool {
        let Operator { row, set, if_exists } = self.operator;
        let values = question.values(&self.key);
        if matches!(row.test, Test::Null) {
            let absent = values.is_empty();
            return self
                .wanted
                .iter()
                .any(|wanted| matches!(wanted, Wanted::Absent(a) if *a == absent));
        }
        if values.is_empty() {
            // "If the key that you specify in a policy condition is not present in the request context,
            // the values do not match", and a negated operator does.
            return if_exists
                || match set {
                    Set::One => row.negated,
                    Set::All => true,
                    Set::Any => false,
                };
        }
        let mut outcomes = values.iter().map(|value| {
            let found = any(self.wanted.iter().map(|wanted| wanted.matches(value, question)));
            settle(found, row.negated, effect)
        });
        match (set, row.negated) {
            (Set::All, _) | (Set::One, true) => outcomes.all(|outcome| outcome),
            (Set::Any, _) | (Set::One, false) => outcomes.any(|outcome| outcome),
        }
    }
}

impl Operator {
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

    /// Reads a value of the document. `variables` says that its version has them.
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
    /// Whether a value of the request matches; `None` if a variable has no value. What cannot be read
    /// matches nothing.
    fn matches(&self, text: &str, question: &Question<'_>) -> Option<bool> {
        let found = match self {
            Self::Text(template) => return template.matches(text, question),
            Self::Arn(template) => return template.matches_arn(text, question),
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
}

fn truth(text: &str) -> Option<bool> {
    [true, false].into_iter().find(|value| text.eq_ignore_ascii_case(&value.to_string()))
}

const NOT_BOOL: &str = "is neither true nor false";

/// How values are read and compared.
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

/// One operator.
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

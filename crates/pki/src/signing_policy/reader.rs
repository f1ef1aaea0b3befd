//! Reads the values of tables in TOML. Each error names its table, its key and its line.

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use crate::time::from_rfc3339;

/// Most values of one key.
pub const MAX_VALUES: usize = 256;

/// Why a policy cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FileError {
    /// What is wrong, and where.
    pub message: String,
    /// A word that is unknown.
    pub unknown: Option<String>,
    /// The words that are possible in its place.
    pub possible: Vec<&'static str>,
    /// What to do, if it is something else than to correct a word.
    pub hint: Option<String>,
    /// The value that is wrong, as far as there is one.
    at: Vec<Step>,
}

/// A step from a table or a list to a value in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Element(usize),
}

impl FileError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            unknown: None,
            possible: Vec::new(),
            hint: None,
            at: Vec::new(),
        }
    }

    pub(super) fn unknown(self, word: &str, possible: Vec<&'static str>) -> Self {
        Self { unknown: Some(word.to_owned()), possible, ..self }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// It is about the value to which these steps lead.
    pub(super) fn at(self, at: Vec<Step>) -> Self {
        Self { at, ..self }
    }

    /// Names the line of the value in the text of the policy.
    pub(super) fn in_text(self, text: &str) -> Self {
        match line_of(text, &self.at) {
            Some(line) => Self { message: format!("line {line}: {}", self.message), ..self },
            None => self,
        }
    }
}

/// The line, from 1, to which the steps lead: that of the last key or element that is there.
fn line_of(text: &str, at: &[Step]) -> Option<usize> {
    let mut steps = at.iter();
    let Some(Step::Key(first)) = steps.next() else { return None };
    let table = DeTable::parse(text).ok()?;
    let (mut position, mut value) = in_table(table.get_ref(), first)?;
    for step in steps {
        let found = match (step, value) {
            (Step::Key(key), DeValue::Table(table)) => in_table(table, key),
            (Step::Element(index), DeValue::Array(list)) => {
                list.get(*index).map(|found| (found.span().start, found.get_ref()))
            }
            _ => None,
        };
        let Some(found) = found else { break };
        (position, value) = found;
    }
    Some(text.get(..position)?.matches('\n').count() + 1)
}

/// Where the key is, and its value.
fn in_table<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> Option<(usize, &'t DeValue<'i>)> {
    let (found, value) = table.iter().find(|(found, _)| found.get_ref() == key)?;
    Some((found.span().start, Spanned::get_ref(value)))
}

/// A table that is being read.
pub(super) struct Reader<'a> {
    pub(super) table: &'a Table,
    /// For errors.
    pub(super) name: String,
    /// The steps to it.
    pub(super) at: Vec<Step>,
}

impl<'a> Reader<'a> {
    /// The whole policy.
    pub(super) fn of(table: &'a Table) -> Self {
        Self { table, name: "a policy".to_owned(), at: Vec::new() }
    }

    /// A table in this one.
    pub(super) fn below(&self, key: &str, table: &'a Table) -> Self {
        Self { table, name: format!("{}: {key}", self.name), at: self.to(key) }
    }

    /// The steps to a key.
    pub(super) fn to(&self, key: &str) -> Vec<Step> {
        self.at.iter().cloned().chain([Step::Key(key.to_owned())]).collect()
    }

    pub(super) fn wrong(&self, key: &str, reason: &str) -> FileError {
        FileError::new(format!("{}: {key}: {reason}", self.name)).at(self.to(key))
    }

    /// Like `wrong`, about one element of a list.
    pub(super) fn wrong_element(&self, key: &str, index: usize, reason: &str) -> FileError {
        let mut at = self.to(key);
        at.push(Step::Element(index));
        self.wrong(key, reason).at(at)
    }

    /// Refuses any other key.
    pub(super) fn known(&self, keys: &[&'static str]) -> Result<(), FileError> {
        match self.table.keys().find(|key| !keys.contains(&key.as_str())) {
            Some(key) => Err(FileError::new(format!("{} has no key {key}", self.name))
                .unknown(key, keys.to_vec())
                .at(self.to(key))),
            None => Ok(()),
        }
    }

    /// A text or a list of texts.
    pub(super) fn texts(&self, key: &str) -> Result<Vec<String>, FileError> {
        let wrong = || self.wrong(key, "it is a text, or a list of 1 to 256 texts");
        match self.table.get(key) {
            None => Ok(Vec::new()),
            Some(value) => texts(value).ok_or_else(wrong),
        }
    }

    pub(super) fn parsed<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Vec<T>, FileError> {
        let one = |(index, text): (usize, &String)| {
            parse(text).map_err(|reason| {
                self.wrong_element(key, index, &format!("\"{}\": {reason}", short(text)))
            })
        };
        self.texts(key)?.iter().enumerate().map(one).collect()
    }

    /// A number from 1 to `most`.
    pub(super) fn number(&self, key: &str, most: usize) -> Result<Option<usize>, FileError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let number = value.as_integer().and_then(|number| usize::try_from(number).ok());
        let number = number.filter(|number| (1..=most).contains(number));
        number.map(Some).ok_or_else(|| self.wrong(key, &format!("it is a number from 1 to {most}")))
    }

    pub(super) fn word<T: Copy>(
        &self,
        key: &str,
        words: &[(&'static str, T)],
    ) -> Result<Option<T>, FileError> {
        let Some(value) = self.table.get(key) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.wrong(key, "it is a text"))?;
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, meaning)) => Ok(Some(*meaning)),
            None => {
                let words = words.iter().map(|(word, _)| *word).collect();
                let reason = format!("\"{}\" is not known", short(text));
                Err(self.wrong(key, &reason).unknown(text, words))
            }
        }
    }

    /// A date, of which `whole` is the second that counts, or a time with its offset; as TOML's own type or as text.
    pub(super) fn date(&self, key: &str, whole: &str) -> Result<Option<i64>, FileError> {
        let text = match self.table.get(key) {
            None => return Ok(None),
            Some(Value::Datetime(date)) => date.to_string(),
            Some(Value::String(text)) => text.clone(),
            Some(_) => String::new(),
        };
        let text = if text.len() == 10 { text + whole } else { text };
        let wrong = || {
            self.wrong(
                key,
                "it is neither a date such as 2026-12-31 nor a time such as 2026-12-31T12:00:00Z",
            )
        };
        from_rfc3339(&text).map(Some).ok_or_else(wrong)
    }
}

/// A text, or a list of texts.
pub(super) fn texts(value: &Value) -> Option<Vec<String>> {
    let list = match value {
        Value::String(text) => return Some(vec![text.clone()]),
        Value::Array(list) if (1..=MAX_VALUES).contains(&list.len()) => list,
        _ => return None,
    };
    list.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

/// The beginning of a text, for messages.
pub(super) fn short(text: &str) -> String {
    text.chars().take(64).flat_map(char::escape_debug).collect()
}

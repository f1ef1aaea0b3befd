//! Reads TOML by rows of known keys; errors name line, key and the most similar known name.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::LabError;

/// Longest list in a plan.
const MAX_LIST: usize = 1000;

/// A key that a table may have.
pub(super) struct Field<T: 'static> {
    /// Its name.
    pub(super) name: &'static str,
    /// Its meaning, for people.
    pub(super) help: &'static str,
    /// Stores its value.
    pub(super) read: fn(&mut T, &Node<'_>) -> Result<(), LabError>,
}

/// A value with its position.
pub(super) struct Node<'a> {
    text: &'a str,
    name: &'a str,
    offset: usize,
    value: &'a DeValue<'a>,
}

/// Reads a document.
pub(super) fn document<T>(text: &str, fields: &[Field<T>], into: &mut T) -> Result<(), LabError> {
    let document = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| line_of(text, span.start));
        LabError::Plan(format!("line {line}: not TOML: {}", one_line(error.message())))
    })?;
    table(text, document.get_ref(), fields, into)
}

fn table<T>(
    text: &str,
    table: &DeTable<'_>,
    fields: &[Field<T>],
    into: &mut T,
) -> Result<(), LabError> {
    for key in table.keys() {
        let name: &str = key.get_ref();
        if !fields.iter().any(|field| field.name == name) {
            let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
            let line = line_of(text, key.span().start);
            return Err(LabError::Plan(format!("line {line}: {}", unknown("key", name, &known))));
        }
    }
    // In the order of the rows: some need what others have read.
    for field in fields {
        let given = table.iter().find(|(key, _)| AsRef::<str>::as_ref(key.get_ref()) == field.name);
        if let Some((_, value)) = given {
            (field.read)(into, &Node::new(text, field.name, value))?;
        }
    }
    Ok(())
}

/// The message about an unknown name.
pub(super) fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let name = one_line(name);
    let close = known
        .iter()
        .map(|row| {
            let likeness =
                strsim::normalized_damerau_levenshtein(&row.to_lowercase(), &name.to_lowercase());
            (likeness, row)
        })
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let hint = match close {
        Some((likeness, row)) if likeness >= 0.5 => format!("did you mean `{row}`? "),
        _ => String::new(),
    };
    format!("no {what} is named `{name}`; {hint}known: {}", known.join(", "))
}

/// At most 80 characters, without control characters: it goes to a terminal.
fn one_line(text: &str) -> String {
    let mut short: String =
        text.chars().map(|one| if one.is_control() { ' ' } else { one }).take(80).collect();
    if text.chars().count() > 80 {
        short.push_str("...");
    }
    short
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

impl<'a> Node<'a> {
    fn new(text: &'a str, name: &'a str, value: &'a Spanned<DeValue<'a>>) -> Self {
        Self { text, name, offset: value.span().start, value: value.get_ref() }
    }

    /// The error about this value.
    pub(super) fn problem(&self, what: impl std::fmt::Display) -> LabError {
        LabError::Plan(format!("line {}, `{}`: {what}", line_of(self.text, self.offset), self.name))
    }

    fn expected(&self, what: &str) -> LabError {
        let article = if self.value.type_str() == "integer" { "an" } else { "a" };
        let (article, found) = match self.value.type_str() {
            "array" => ("a", "list"),
            found => (article, found),
        };
        self.problem(format!("must be {what}, but is {article} {found}"))
    }

    /// A list of at least one item.
    pub(super) fn items(&self) -> Result<Vec<Node<'a>>, LabError> {
        let Some(list) = self.value.as_array() else {
            return Err(self.expected("a list, such as [1, 2]"));
        };
        if list.is_empty() {
            return Err(self.problem("must not be empty"));
        }
        if list.len() > MAX_LIST {
            return Err(self.problem(format!("has more than {MAX_LIST} entries")));
        }
        Ok(list.iter().map(|value| Self::new(self.text, self.name, value)).collect())
    }

    /// A list without repetitions.
    pub(super) fn list<V: PartialEq>(
        &self,
        read: impl Fn(&Self) -> Result<V, LabError>,
    ) -> Result<Vec<V>, LabError> {
        let mut values = Vec::new();
        for item in self.items()? {
            let value = read(&item)?;
            if values.contains(&value) {
                return Err(item.problem("contains the same value twice"));
            }
            values.push(value);
        }
        Ok(values)
    }

    /// A number in a range.
    pub(super) fn number(&self, low: f64, high: f64) -> Result<f64, LabError> {
        let number = match self.value {
            DeValue::Integer(digits) if digits.radix() == 10 => digits.as_str().parse().ok(),
            DeValue::Float(digits) => digits.as_str().parse().ok(),
            _ => None,
        };
        let Some(number) = number else { return Err(self.expected("a number")) };
        if !(low..=high).contains(&number) {
            return Err(self.problem(format!("{number} is not between {low} and {high}")));
        }
        Ok(number)
    }

    /// A whole number in a range.
    pub(super) fn whole(&self, low: u64, high: u64) -> Result<u64, LabError> {
        let DeValue::Integer(digits) = self.value else {
            return Err(self.expected("a whole number"));
        };
        match u64::from_str_radix(digits.as_str(), digits.radix()) {
            Ok(number) if (low..=high).contains(&number) => Ok(number),
            _ => Err(self.problem(format!("{digits} is not between {low} and {high}"))),
        }
    }

    /// The same for the smaller types.
    pub(super) fn small<V: TryFrom<u64>>(&self, low: u64, high: u64) -> Result<V, LabError> {
        V::try_from(self.whole(low, high)?)
            .map_err(|_| self.problem(format!("is not between {low} and {high}")))
    }

    /// A text of at least one character and at most 1000, without control characters.
    pub(super) fn text(&self) -> Result<&'a str, LabError> {
        let Some(text) = self.value.as_str() else { return Err(self.expected("a text")) };
        if text.is_empty() {
            return Err(self.problem("must not be empty"));
        }
        if text.len() > 1000 || text.chars().any(char::is_control) {
            return Err(self.problem("is too long or has control characters"));
        }
        Ok(text)
    }

    /// One of the known names, in any case; returns it in the table's spelling.
    pub(super) fn name(
        &self,
        what: &str,
        known: &[&'static str],
    ) -> Result<&'static str, LabError> {
        let text = self.text()?;
        known
            .iter()
            .find(|row| row.eq_ignore_ascii_case(text))
            .copied()
            .ok_or_else(|| self.problem(unknown(what, text, known)))
    }

    /// Whether it is true.
    pub(super) fn truth(&self) -> Result<bool, LabError> {
        self.value.as_bool().ok_or_else(|| self.expected("true or false"))
    }

    /// A table.
    pub(super) fn table<T>(&self, fields: &[Field<T>], into: &mut T) -> Result<(), LabError> {
        let Some(inner) = self.value.as_table() else {
            return Err(self.expected(&format!("a table, such as [{}]", self.name)));
        };
        table(self.text, inner, fields, into)
    }
}

//! What may be in a request: the rows that the generated tables are made of.

use std::sync::OnceLock;

use regex::Regex;

/// The structure without members.
pub static EMPTY: Shape = Shape::structure("Empty", &[]);

/// A value with its constraints.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// What it is.
    pub kind: Kind,
    /// Least length (characters, bytes, items) or number.
    pub min: Option<i64>,
    /// Greatest length or number.
    pub max: Option<i64>,
    /// The values that it may have, in the model's order; any if there are none.
    pub values: &'static [&'static str],
    /// What its whole text must match.
    pub pattern: Option<&'static Pattern>,
    /// Whether no error may repeat it.
    pub is_sensitive: bool,
}

/// What a value is.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A structure: its name and members.
    Structure(&'static str, &'static [Member]),
    /// A list of values of a shape.
    List(&'static Shape),
    /// Names with values: the shapes of both.
    Map(&'static Shape, &'static Shape),
    /// Text.
    String,
    /// A whole number.
    Integer,
    /// Yes or no.
    Boolean,
    /// Bytes.
    Blob,
    /// A point in time.
    Timestamp,
    /// A point in time that JSON has as text of RFC 3339.
    DateTime,
}

/// A member of a structure.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    /// AWS's name.
    pub name: &'static str,
    /// What it may be; none if it is refused.
    pub shape: Option<&'static Shape>,
    /// Whether it must be there.
    pub is_required: bool,
    /// Why it is refused, if it is.
    pub refused: Option<&'static str>,
    /// Where requests have it.
    pub binding: Binding,
}

/// Where a request has a member (Smithy, "HTTP bindings"): elsewhere than in its body in REST protocols only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binding {
    /// In the body.
    Payload,
    /// In the path, in place of this name in braces.
    Label(&'static str),
    /// In the query string under this name.
    Query(&'static str),
}

impl Member {
    const fn of(name: &'static str, shape: Option<&'static Shape>) -> Self {
        Self { name, shape, is_required: false, refused: None, binding: Binding::Payload }
    }

    /// One that may be missing.
    pub const fn optional(name: &'static str, shape: &'static Shape) -> Self {
        Self::of(name, Some(shape))
    }

    /// One that must be there.
    pub const fn required(name: &'static str, shape: &'static Shape) -> Self {
        Self { is_required: true, ..Self::of(name, Some(shape)) }
    }

    /// One that is refused, whatever its value.
    pub const fn refused(name: &'static str, why: &'static str) -> Self {
        Self { refused: Some(why), ..Self::of(name, None) }
    }
}

impl Member {
    /// In the path, in place of `label` in braces.
    #[must_use]
    pub const fn in_path(self, label: &'static str) -> Self {
        Self { binding: Binding::Label(label), ..self }
    }

    /// In the query string under `name`.
    #[must_use]
    pub const fn in_query(self, name: &'static str) -> Self {
        Self { binding: Binding::Query(name), ..self }
    }
}

impl Shape {
    const fn of(kind: Kind) -> Self {
        Self { kind, min: None, max: None, values: &[], pattern: None, is_sensitive: false }
    }

    /// A structure.
    pub const fn structure(name: &'static str, members: &'static [Member]) -> Self {
        Self::of(Kind::Structure(name, members))
    }

    /// A list.
    pub const fn list(of: &'static Shape) -> Self {
        Self::of(Kind::List(of))
    }

    /// A map.
    pub const fn map(key: &'static Shape, value: &'static Shape) -> Self {
        Self::of(Kind::Map(key, value))
    }

    /// Text.
    pub const fn string() -> Self {
        Self::of(Kind::String)
    }

    /// A number.
    pub const fn integer() -> Self {
        Self::of(Kind::Integer)
    }

    /// Yes or no.
    pub const fn boolean() -> Self {
        Self::of(Kind::Boolean)
    }

    /// Bytes.
    pub const fn blob() -> Self {
        Self::of(Kind::Blob)
    }

    /// A time.
    pub const fn timestamp() -> Self {
        Self::of(Kind::Timestamp)
    }

    /// A time that JSON has as text.
    pub const fn date_time() -> Self {
        Self::of(Kind::DateTime)
    }

    /// With a least length or number.
    #[must_use]
    pub const fn min(self, min: i64) -> Self {
        Self { min: Some(min), ..self }
    }

    /// With a greatest length or number.
    #[must_use]
    pub const fn max(self, max: i64) -> Self {
        Self { max: Some(max), ..self }
    }

    /// One of these.
    #[must_use]
    pub const fn one_of(self, values: &'static [&'static str]) -> Self {
        Self { values, ..self }
    }

    /// Like this.
    #[must_use]
    pub const fn pattern(self, pattern: &'static Pattern) -> Self {
        Self { pattern: Some(pattern), ..self }
    }

    /// Never to be repeated.
    #[must_use]
    pub const fn sensitive(self) -> Self {
        Self { is_sensitive: true, ..self }
    }

    /// The members of a structure; none if it is none.
    pub fn members(&self) -> &'static [Member] {
        match self.kind {
            Kind::Structure(_, members) => members,
            _ => &[],
        }
    }

    /// The names of its members.
    pub fn names(&self) -> Vec<&'static str> {
        self.members().iter().map(|member| member.name).collect()
    }
}

/// A regular expression of a model, which are Java's.
#[derive(Debug)]
pub struct Pattern {
    /// As the model has it.
    pub text: &'static str,
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Compiled when it is needed.
    pub const fn new(text: &'static str) -> Self {
        Self { text, compiled: OnceLock::new() }
    }

    /// The expression for a whole text; none if it is not one for Rust, which a test rules out.
    pub fn regex(&self) -> Option<&Regex> {
        self.compiled.get_or_init(|| Regex::new(&translated(self.text)).ok()).as_ref()
    }

    /// Whether a whole text is like it.
    pub fn matches(&self, text: &str) -> bool {
        self.regex().is_none_or(|regex| regex.is_match(text))
    }
}

/// Java's expression for Rust: `\w`, `\d` and `\s` are ASCII's there, and a match is of the whole text.
fn translated(java: &str) -> String {
    let mut out = String::from(r"\A(?:");
    let mut chars = java.chars();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let next = chars.next().unwrap_or_default();
                let inner = match next {
                    'w' => "0-9A-Za-z_",
                    'd' => "0-9",
                    's' => r"\t\n\x0B\f\r\x20",
                    other => {
                        out.push('\\');
                        out.push(other);
                        continue;
                    }
                };
                if in_class {
                    out.push_str(inner);
                    // After a class of characters a hyphen is no range.
                    if chars.clone().next() == Some('-') {
                        chars.next();
                        out.push_str(r"\-");
                    }
                } else {
                    out.push('[');
                    out.push_str(inner);
                    out.push(']');
                }
            }
            '[' if in_class => out.push_str(r"\["),
            '&' | '~' if in_class => {
                // Doubled they are operators in Rust.
                out.push('\\');
                out.push(c);
            }
            _ => {
                in_class = match c {
                    '[' => true,
                    ']' => false,
                    _ => in_class,
                };
                out.push(c);
            }
        }
    }
    out.push_str(r")\z");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_those_of_java() {
        for (pattern, good, bad) in [
            (r"^[\w+=,.@:/-]+$", "a_1+/-", "ä"),
            (r"[a-z0-9]{8}-[a-z0-9]{4}", "0123abcd-0123", "x0123abcd-0123"),
            (r"[\u0009\u000A\u000D\u0020-\u00FF]*", "ü\n", "\u{2020}"),
            (r"[\d]*", "12", "١"),
            (r"[a-zA-Z0-9'()+-.?:/= ]*", "(,-.)", "*"),
            (r"[\p{L}\p{Z}\p{N}_.:/=+\-@]+", "Ω 1", "!"),
        ] {
            let pattern: &'static Pattern = Box::leak(Box::new(Pattern::new(pattern)));
            assert!(pattern.regex().is_some(), "{}", pattern.text);
            assert!(pattern.matches(good), "{} {good}", pattern.text);
            assert!(!pattern.matches(bad), "{} {bad}", pattern.text);
        }
    }
}

//! The limits of a service's model, and AWS's message for a request that breaks them.
//!
//! All of them are checked before anything else, and one `ValidationException` names every violation: `2 validation
//! errors detected: Value '...' at 'keyId' failed to satisfy constraint: Member must have ...; Value null at ...`.
//! The value of a sensitive member is never repeated: `Value at 'plaintext' failed to satisfy constraint: ...`.

use std::fmt::{self, Display, Formatter};

use serde_json::{Map, Value};

use super::ApiError;
use super::validate::member_name;
use crate::aws::schema::{Kind, Shape};

/// Longest part of a value that an error repeats, in characters.
const MAX_SHOWN: usize = 256;

/// Checks a request that has been read against its schema.
pub fn check(value: &Value, shape: &'static Shape) -> Result<(), ApiError> {
    let mut found = Vec::new();
    inside(value, shape, &Path::Root, &mut found);
    let plural = match found.len() {
        0 => return Ok(()),
        1 => "",
        _ => "s",
    };
    Err(ApiError::validation(format!(
        "{} validation error{plural} detected: {}",
        found.len(),
        found.join("; ")
    )))
}

/// The path of a value. It is put into words only for an error, since every request is checked.
enum Path<'a> {
    Root,
    Member(&'a Path<'a>, &'static str),
    /// An item of a list, counted from 1.
    Item(&'a Path<'a>, usize),
}

impl Display for Path<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Member(Self::Root, name) => f.write_str(&member_name(name)),
            Self::Member(of, name) => write!(f, "{of}.{}", member_name(name)),
            Self::Item(of, index) => write!(f, "{of}.{index}.member"),
        }
    }
}

/// A member. A request has few members, so scanning them is quicker than hashing the names of all that it might have.
fn get<'a>(given: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    match given.len() {
        0..=8 => given.iter().find_map(|(known, value)| (known == name).then_some(value)),
        _ => given.get(name),
    }
}

fn inside(value: &Value, shape: &'static Shape, path: &Path<'_>, found: &mut Vec<String>) {
    match (shape.kind, value) {
        (Kind::Structure(_, members), Value::Object(given)) => {
            for member in members {
                let Some(shape) = member.shape else { continue };
                let path = Path::Member(path, member.name);
                match get(given, member.name) {
                    Some(value) => {
                        own(value, shape, &path, found);
                        inside(value, shape, &path, found);
                    }
                    None if member.is_required => {
                        let null = if shape.is_sensitive { "" } else { "null " };
                        found.push(format!(
                            "Value {null}at '{path}' failed to satisfy constraint: Member must not be null"
                        ));
                    }
                    None => {}
                }
            }
        }
        (Kind::List(of), Value::Array(items)) => {
            for (index, item) in items.iter().enumerate() {
                // AWS's errors name the items of a list of plain values together with the list.
                if !is_plain(of) {
                    let path = Path::Item(path, index + 1);
                    own(item, of, &path, found);
                    inside(item, of, &path, found);
                }
            }
        }
        _ => {}
    }
}

/// Whether values of this shape have no values inside.
fn is_plain(shape: &Shape) -> bool {
    !matches!(shape.kind, Kind::Structure(..) | Kind::List(_) | Kind::Map(..))
}

/// Checks the constraints of a value itself, and of the plain values in a list or map.
fn own(value: &Value, shape: &'static Shape, path: &Path<'_>, found: &mut Vec<String>) {
    let mut broken = violations(value, shape);
    match (shape.kind, value) {
        (Kind::List(of), Value::Array(items))
            if is_plain(of) && items.iter().any(|item| !violations(item, of).is_empty()) =>
        {
            broken.push(format!("Member must satisfy constraint: [{}]", all(of).join(", ")));
        }
        (Kind::Map(key, of), Value::Object(entries)) => {
            let is_wrong = |name: &String| !violations_of_text(name, key).is_empty();
            if entries.keys().any(is_wrong) {
                broken.push(format!("Map keys must satisfy constraint: [{}]", all(key).join(", ")));
            }
            if entries.values().any(|item| !violations(item, of).is_empty()) {
                broken.push(format!("Map value must satisfy constraint: [{}]", all(of).join(", ")));
            }
        }
        _ => {}
    }
    for constraint in broken {
        let shown = if shape.is_sensitive || has_sensitive(shape) {
            String::new()
        } else {
            format!("'{}' ", shown(value, shape))
        };
        found.push(format!("Value {shown}at '{path}' failed to satisfy constraint: {constraint}"));
    }
}

fn has_sensitive(shape: &Shape) -> bool {
    match shape.kind {
        Kind::List(of) => of.is_sensitive || has_sensitive(of),
        Kind::Map(key, of) => key.is_sensitive || of.is_sensitive || has_sensitive(of),
        Kind::Structure(_, members) => {
            members.iter().filter_map(|member| member.shape).any(|shape| shape.is_sensitive)
        }
        _ => false,
    }
}

/// The constraints that a value breaks.
fn violations(value: &Value, shape: &Shape) -> Vec<String> {
    let size = match (shape.kind, value) {
        (_, Value::String(text)) => return violations_of_text(text, shape),
        (Kind::List(_), Value::Array(items)) => i64::try_from(items.len()).ok(),
        (Kind::Map(..), Value::Object(entries)) => i64::try_from(entries.len()).ok(),
        (Kind::Integer, Value::Number(number)) => number.as_i64(),
        _ => None,
    };
    let mut broken = Vec::new();
    sized(size, shape, &mut broken);
    broken
}

/// The constraints that a text breaks.
fn violations_of_text(text: &str, shape: &Shape) -> Vec<String> {
    let mut broken = Vec::new();
    if shape.max.is_some() || shape.min.is_some() {
        let len = match shape.kind {
            Kind::String => text.chars().count(),
            Kind::Blob => decoded_len(text),
            _ => return broken,
        };
        sized(i64::try_from(len).ok(), shape, &mut broken);
    }
    if let Some(pattern) = shape.pattern
        && !pattern.matches(text)
    {
        broken.push(like(pattern.text));
    }
    if !shape.values.is_empty() && !shape.values.contains(&text) {
        broken.push(one_of(shape));
    }
    broken
}

/// Whether a size, if there is one, is within the limits.
fn sized(size: Option<i64>, shape: &Shape, broken: &mut Vec<String>) {
    let Some(size) = size else { return };
    if shape.max.is_some_and(|max| size > max) {
        broken.push(greatest(shape));
    }
    if shape.min.is_some_and(|min| size < min) {
        broken.push(least(shape));
    }
}

/// All constraints of a plain value, as AWS lists them for the items of a list.
fn all(shape: &Shape) -> Vec<String> {
    let mut out = Vec::new();
    if shape.max.is_some() {
        out.push(greatest(shape));
    }
    if shape.min.is_some() {
        out.push(least(shape));
    }
    if let Some(pattern) = shape.pattern {
        out.push(like(pattern.text));
    }
    if !shape.values.is_empty() {
        out.push(one_of(shape));
    }
    out
}

fn measure(shape: &Shape) -> &'static str {
    if matches!(shape.kind, Kind::Integer) { "value" } else { "length" }
}

fn greatest(shape: &Shape) -> String {
    format!(
        "Member must have {} less than or equal to {}",
        measure(shape),
        shape.max.unwrap_or_default()
    )
}

fn least(shape: &Shape) -> String {
    format!(
        "Member must have {} greater than or equal to {}",
        measure(shape),
        shape.min.unwrap_or_default()
    )
}

fn like(pattern: &str) -> String {
    format!("Member must satisfy regular expression pattern: {pattern}")
}

fn one_of(shape: &Shape) -> String {
    format!("Member must satisfy enum value set: [{}]", shape.values.join(", "))
}

fn decoded_len(base64: &str) -> usize {
    let padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count();
    (base64.len() / 4 * 3).saturating_sub(padding)
}

/// A value as AWS's errors repeat it, shortened.
fn shown(value: &Value, shape: &Shape) -> String {
    let text = match (shape.kind, value) {
        (Kind::Blob, Value::String(text)) => {
            let len = decoded_len(text);
            return format!("java.nio.HeapByteBuffer[pos=0 lim={len} cap={len}]");
        }
        (Kind::List(of), Value::Array(items)) if !matches!(of.kind, Kind::Structure(..)) => {
            let items: Vec<_> = items.iter().take(MAX_SHOWN).map(|item| shown(item, of)).collect();
            format!("[{}]", items.join(", "))
        }
        (Kind::Map(_, of), Value::Object(entries)) => {
            let one = |(name, item)| format!("{name}={}", shown(item, of));
            let entries: Vec<_> = entries.iter().take(MAX_SHOWN).map(one).collect();
            format!("{{{}}}", entries.join(", "))
        }
        (_, Value::String(text)) => text.clone(),
        (_, Value::Array(items)) if items.is_empty() => "[]".to_owned(),
        (_, Value::Array(items)) => format!("[{} items]", items.len()),
        (_, other) => other.to_string(),
    };
    text.chars().take(MAX_SHOWN).collect()
}

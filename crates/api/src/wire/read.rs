//! Reads a request by its schema: every member known, given once and of its type, at every depth.
//!
//! The result is JSON whatever the protocol was, with bytes in base64 and times in seconds, and has no members but
//! the schema's. Limits are checked afterwards ([`super::constraints`]).

use std::cell::Cell;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ciborium::tag::Required;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::ApiError;
use super::validate::{member_name, shorten};
use crate::aws::schema::{Binding, Kind, Member, Shape};

/// Reads a value of this shape. `null` counts as absent.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    shape: &'static Shape,
    /// Receives the reason of a refusal: the member's name, and why.
    refused: &'a Cell<Option<Refused>>,
    /// Whether bytes arrive as text: they do in JSON, and do not in CBOR.
    is_text: bool,
}

/// A member that the model has and the service refuses: its name, and why.
pub type Refused = (&'static str, &'static str);

impl<'a> Reader<'a> {
    /// A reader for values of `shape`; a refused member is noted in `refused`.
    pub fn new(shape: &'static Shape, refused: &'a Cell<Option<Refused>>) -> Self {
        Self { shape, refused, is_text: true }
    }

    fn of(self, shape: &'static Shape) -> Self {
        Self { shape, ..self }
    }
}

/// Begins the message about a member that the schema lacks; errors are recognised by it.
pub const UNKNOWN: &str = "unknown member ";

/// Finds the member of this name among those in the body.
fn in_body(members: &'static [Member], name: &str) -> Option<&'static Member> {
    find(members, name).filter(|member| member.binding == Binding::Payload)
}

fn find(members: &'static [Member], name: &str) -> Option<&'static Member> {
    members.iter().find(|member| member.name == name)
}

impl<'de> DeserializeSeed<'de> for Reader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(mut self, deserializer: D) -> Result<Value, D::Error> {
        self.is_text = deserializer.is_human_readable();
        match self.shape.kind {
            // CBOR marks times with a tag (Smithy RPC v2, "Timestamp serialization").
            Kind::Timestamp if !self.is_text => {
                let found: Option<Required<f64, 1>> =
                    serde::Deserialize::deserialize(deserializer)?;
                Ok(found.map_or(Value::Null, |seconds| number(seconds.0)))
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

fn number(seconds: f64) -> Value {
    Number::from_f64(seconds).map_or(Value::Null, Value::Number)
}

impl<'de> Visitor<'de> for Reader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.shape.kind {
            Kind::Structure(..) => "a structure",
            Kind::List(_) => "a list",
            Kind::Map(..) => "a map",
            Kind::String => "a string",
            Kind::Integer => "an integer",
            Kind::Boolean => "a boolean",
            Kind::Blob => "a blob",
            Kind::Timestamp | Kind::DateTime => "a timestamp",
        })
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        match self.shape.kind {
            Kind::Boolean => Ok(Value::Bool(value)),
            _ => Err(E::custom(Mistyped(&self))),
        }
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        match self.shape.kind {
            Kind::Integer | Kind::Timestamp => Ok(value.into()),
            _ => Err(E::custom(Mistyped(&self))),
        }
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        match i64::try_from(value) {
            Ok(value) => self.visit_i64(value),
            Err(_) => Err(E::custom(Mistyped(&self))),
        }
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        match self.shape.kind {
            Kind::Timestamp => Ok(number(value)),
            _ => Err(E::custom(Mistyped(&self))),
        }
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.visit_string(value.to_owned())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        match self.shape.kind {
            Kind::String => Ok(Value::String(value)),
            Kind::DateTime => outlast_pki::time::from_rfc3339(&value)
                .map(Value::from)
                .ok_or_else(|| E::custom("a timestamp is not in the format of RFC 3339")),
            Kind::Blob if self.is_text => match STANDARD.decode(value.as_bytes()) {
                Ok(_) => Ok(Value::String(value)),
                Err(_) => Err(E::custom("a blob is not base64")),
            },
            _ => Err(E::custom(Mistyped(&self))),
        }
    }

    fn visit_bytes<E: Error>(self, value: &[u8]) -> Result<Value, E> {
        match self.shape.kind {
            Kind::Blob => Ok(Value::String(STANDARD.encode(value))),
            _ => Err(E::custom(Mistyped(&self))),
        }
    }

    fn visit_byte_buf<E: Error>(self, value: Vec<u8>) -> Result<Value, E> {
        self.visit_bytes(&value)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let Kind::List(of) = self.shape.kind else {
            return Err(A::Error::custom(Mistyped(&self)));
        };
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.of(of))? {
            if item.is_null() {
                return Err(A::Error::custom("a list has null as an item"));
            }
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        // Room for the members of most requests: growing the map would hash every key again.
        let mut found = Map::with_capacity(entries.size_hint().unwrap_or(4).min(8));
        match self.shape.kind {
            Kind::Structure(_, members) => {
                let mut has_null = false;
                while let Some(name) = entries.next_key::<String>()? {
                    let Some(member) = in_body(members, &name) else {
                        return Err(A::Error::custom(format!("{UNKNOWN}{}", shorten(&name))));
                    };
                    let Some(shape) = member.shape else {
                        // The value is ignored, except that `null` counts as absent.
                        let value: Option<serde::de::IgnoredAny> = entries.next_value()?;
                        if value.is_some() {
                            self.refused.set(member.refused.map(|why| (member.name, why)));
                        }
                        continue;
                    };
                    let value = entries.next_value_seed(self.of(shape))?;
                    has_null |= value.is_null();
                    if found.insert(name, value).is_some() {
                        let name = member_name(member.name);
                        return Err(A::Error::custom(format!("the member '{name}' occurs twice")));
                    }
                }
                if has_null {
                    found.retain(|_, value| !value.is_null());
                }
            }
            Kind::Map(_, of) => {
                while let Some(name) = entries.next_key::<String>()? {
                    let value = entries.next_value_seed(self.of(of))?;
                    if value.is_null() || found.insert(name, value).is_some() {
                        return Err(A::Error::custom(
                            "a key of a map occurs twice, or has the value null",
                        ));
                    }
                }
            }
            _ => return Err(A::Error::custom(Mistyped(&self))),
        }
        Ok(Value::Object(found))
    }
}

/// "Expected ..." of a reader, without the value itself, which may be a plaintext.
struct Mistyped<'a, 'b>(&'a Reader<'b>);

impl fmt::Display for Mistyped<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member has the wrong type, expected ")?;
        self.0.expecting(f)
    }
}

/// Converts the members of a form, which are all text, to the schema's types.
pub fn from_text(
    value: Value,
    shape: &'static Shape,
    refused: &Cell<Option<Refused>>,
) -> Result<Value, ApiError> {
    let wrong = || ApiError::serialization("a member of the request has the wrong type");
    Ok(match (shape.kind, value) {
        (Kind::Structure(_, members), Value::Object(given)) => {
            let mut found = Map::new();
            for (name, value) in given {
                let member = find(members, &name).ok_or_else(|| unknown(&name))?;
                let Some(shape) = member.shape else {
                    refused.set(member.refused.map(|why| (member.name, why)));
                    continue;
                };
                found.insert(name, from_text(value, shape, refused)?);
            }
            Value::Object(found)
        }
        (Kind::List(of), Value::Array(items)) => Value::Array(
            items.into_iter().map(|item| from_text(item, of, refused)).collect::<Result<_, _>>()?,
        ),
        // A list without items arrives as an empty text.
        (Kind::List(_), Value::String(text)) if text.is_empty() => Value::Array(Vec::new()),
        (Kind::String, Value::String(text)) => Value::String(text),
        (Kind::Integer, Value::String(text)) => text.parse::<i64>().map_err(|_| wrong())?.into(),
        (Kind::Boolean, Value::String(text)) => text.parse::<bool>().map_err(|_| wrong())?.into(),
        (Kind::Blob, Value::String(text)) if STANDARD.decode(text.as_bytes()).is_ok() => {
            Value::String(text)
        }
        _ => return Err(wrong()),
    })
}

/// The error for a member that the schema lacks.
pub fn unknown(name: &str) -> ApiError {
    ApiError::serialization(format!(
        "the member '{}' is not known to this version of outlast; it is refused rather than ignored",
        member_name(&shorten(name))
    ))
}

/// The error for a member that the model has and the service refuses.
pub fn refusal(name: &str, why: &str, code: &'static str) -> ApiError {
    ApiError::new(code, format!("{name} is not supported: {why}"))
}

/// Writes times in an answer as text of RFC 3339 instead of seconds: `all` of them, as XML does, or those that JSON
/// writes so, too.
pub fn with_written_times(value: &mut Value, shape: &Shape, all: bool) {
    match (shape.kind, value) {
        (Kind::Structure(_, members), Value::Object(found)) => {
            for (name, value) in found {
                if let Some(shape) = find(members, name).and_then(|member| member.shape) {
                    with_written_times(value, shape, all);
                }
            }
        }
        (Kind::List(of), Value::Array(items)) => {
            for item in items {
                with_written_times(item, of, all);
            }
        }
        (kind @ (Kind::Timestamp | Kind::DateTime), value)
            if all || matches!(kind, Kind::DateTime) =>
        {
            // Fractions of a second are dropped.
            #[expect(
                clippy::cast_possible_truncation,
                reason = "times are in range where they are made"
            )]
            let whole = value.as_f64().map(|seconds| seconds.floor() as i64);
            if let Some(seconds) = whole {
                *value = Value::String(outlast_pki::time::rfc3339(seconds));
            }
        }
        _ => {}
    }
}

/// Reverses [`with_written_times`] for JSON: times that are text become seconds. A text that is no time stays.
pub fn with_read_times(value: &mut Value, shape: &Shape) {
    match (shape.kind, value) {
        (Kind::Structure(_, members), Value::Object(found)) => {
            for (name, value) in found {
                if let Some(shape) = find(members, name).and_then(|member| member.shape) {
                    with_read_times(value, shape);
                }
            }
        }
        (Kind::List(of), Value::Array(items)) => {
            items.iter_mut().for_each(|item| with_read_times(item, of));
        }
        (Kind::DateTime, value) => {
            let seconds = value.as_str().and_then(outlast_pki::time::from_rfc3339);
            if let Some(seconds) = seconds {
                *value = seconds.into();
            }
        }
        _ => {}
    }
}

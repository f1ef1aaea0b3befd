//! JSON with one meaning: parsers differ on members that occur twice, and an attacker could show each reader another
//! one.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// Parses a text without repeated members and with nothing but space after it. Nesting is limited by `serde_json`, to
/// 128 levels. The error names the place.
pub fn parse(bytes: &[u8]) -> Result<Value, String> {
    let parsed = serde_json::from_slice::<Strict>(bytes);
    parsed.map(|strict| strict.0).map_err(|error| error.to_string())
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value);
        number.map(Value::Number).ok_or_else(|| E::custom("a number is not finite"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut out = Vec::new();
        while let Some(Strict(value)) = list.next_element()? {
            out.push(value);
        }
        Ok(Value::Array(out))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut out = Map::new();
        while let Some(name) = members.next_key::<String>()? {
            if out.contains_key(&name) {
                let short: String = name.chars().take(64).flat_map(char::escape_debug).collect();
                return Err(A::Error::custom(format!("the member \"{short}\" occurs twice")));
            }
            let Strict(value) = members.next_value()?;
            out.insert(name, value);
        }
        Ok(Value::Object(out))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    #[test]
    fn only_one_reading_is_possible() {
        let text = r#" {"a": [1, -2, 1.5, null, true, "x"], "b": {"a": {}}} "#;
        let expected: Value = serde_json::from_str(text).unwrap();
        assert_eq!(parse(text.as_bytes()).unwrap(), expected);
        for (text, reason) in [
            (r#"{"a": 1, "a": 1}"#, "\"a\" occurs twice"),
            (r#"{"a": [{"b": 1, "\u0062": 2}]}"#, "\"b\" occurs twice"),
            ("{} {}", "trailing characters"),
            ("{}x", "trailing characters"),
            ("", "EOF"),
            ("{\"a\": 1e999}", "out of range"),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    }
}

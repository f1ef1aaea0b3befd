//! AWS's REST JSON protocol: finds the operation of a path, and reads the members that are not in the body.
//!
//! Source: Smithy, "AWS restJson1 protocol" and "HTTP bindings". [`super::protocol`] reads and writes bodies.
//! Bindings to headers are not supported: no model here has them, and `cargo xtask gen` refuses one that does.

use std::cell::Cell;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value};

use super::{ApiError, Payload, read};
use crate::aws::Http;
use crate::aws::schema::{Binding, Kind, Member, Shape};

/// Pairs of a query string at most.
const MAX_PAIRS: usize = 1000;
/// Characters that paths and query strings leave unencoded: RFC 3986, section 2.3.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The labels of a path that matches `uri`, with their names, still encoded; `None` if it does not match.
pub fn labels<'a>(uri: &'static str, path: &'a str) -> Option<Vec<(&'static str, &'a str)>> {
    let mut found = Vec::new();
    let (mut wanted, mut given) = (uri.split('/'), path.split('/'));
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(found),
            (Some(wanted), Some(given)) => match name(wanted) {
                // With an empty label it would be another path.
                Some(name) if !given.is_empty() => found.push((name, given)),
                None if wanted == given => {}
                _ => return None,
            },
            _ => return None,
        }
    }
}

/// The member's name in braces.
fn name(segment: &'static str) -> Option<&'static str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

/// Number of literal segments: where several operations match, the most specific one wins.
pub fn parts_given(uri: &'static str) -> usize {
    uri.split('/').filter(|segment| name(segment).is_none()).count()
}

/// Reads the members of a request that are in its path and query string, by the schema.
pub fn bound(
    http: &Http,
    shape: &'static Shape,
    payload: Payload<'_>,
) -> Result<Map<String, Value>, ApiError> {
    let mut found = Map::new();
    for (label, text) in labels(http.uri, payload.path).unwrap_or_default() {
        let text = percent_decode_str(text).decode_utf8();
        let text = text.map_err(|_| ApiError::serialization("the path is not UTF-8"))?;
        if let Some(member) = member(shape, Binding::Label(label)) {
            found.insert(member.name.to_owned(), Value::String(text.into_owned()));
        }
    }
    for (count, (name, text)) in form_urlencoded::parse(payload.query.as_bytes()).enumerate() {
        if count == MAX_PAIRS {
            return Err(ApiError::serialization("the query string has too many members"));
        }
        let is_it =
            |member: &&Member| matches!(member.binding, Binding::Query(known) if known == name);
        let Some(member) = shape.members().iter().find(is_it) else {
            return Err(read::unknown(&name));
        };
        let text = Value::String(text.into_owned());
        if member.shape.is_some_and(|shape| matches!(shape.kind, Kind::List(_))) {
            let list = found.entry(member.name).or_insert_with(|| Value::Array(Vec::new()));
            list.as_array_mut().into_iter().for_each(|list| list.push(text.clone()));
        } else if found.insert(member.name.to_owned(), text).is_some() {
            let name = super::validate::member_name(member.name);
            return Err(ApiError::serialization(format!("the member '{name}' occurs twice")));
        }
    }
    match read::from_text(Value::Object(found), shape, &Cell::new(None))? {
        Value::Object(found) => Ok(found),
        _ => Ok(Map::new()),
    }
}

fn member(shape: &'static Shape, binding: Binding) -> Option<&'static Member> {
    shape.members().iter().find(|member| member.binding == binding)
}

/// A request as it is sent, in its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Path, encoded.
    pub path: String,
    /// Query string, encoded, without the question mark.
    pub query: String,
    /// Members that go into the body.
    pub body: Map<String, Value>,
}

/// Distributes the members over path, query string and body. A label without a value is an error: the path would name
/// another operation.
pub fn write(
    http: &Http,
    shape: &'static Shape,
    mut members: Map<String, Value>,
) -> Result<Written, ApiError> {
    let encoded = |text: &str| utf8_percent_encode(text, ENCODED).to_string();
    let (mut path, mut query) = (http.uri.to_owned(), Vec::new());
    for member in shape.members() {
        match member.binding {
            Binding::Payload => {}
            Binding::Label(label) => {
                let value = members.remove(member.name).map(|value| text(&value));
                let value = value.filter(|value| !value.is_empty());
                let value = value.ok_or_else(|| super::validate::missing(member.name))?;
                path = path.replace(&format!("{{{label}}}"), &encoded(&value));
            }
            Binding::Query(name) => {
                let values = match members.remove(member.name) {
                    None => Vec::new(),
                    Some(Value::Array(items)) => items,
                    Some(value) => vec![value],
                };
                let pairs = values.iter().map(|value| format!("{name}={}", encoded(&text(value))));
                query.extend(pairs);
            }
        }
    }
    Ok(Written { path, query: query.join("&"), body: members })
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    static TEXT: Shape = Shape::string();
    static NUMBER: Shape = Shape::integer();
    static LIST: Shape = Shape::list(&TEXT);
    static SHAPE: Shape = Shape::structure(
        "Tried",
        &[
            Member::optional("label", &TEXT).in_path("l"),
            Member::optional("number", &NUMBER).in_query("n"),
            Member::optional("list", &LIST).in_query("t"),
            Member::optional("rest", &TEXT),
        ],
    );
    const HTTP: Http = Http { method: "GET", uri: "/a/{l}/b", status: 200 };

    proptest! {
        #[test]
        fn what_is_written_is_read(label in ".+", number: i64, list in vec(".*", 0..4), rest: String) {
            let mut members = Map::new();
            members.insert("label".into(), label.into());
            members.insert("number".into(), number.into());
            if !list.is_empty() {
                members.insert("list".into(), list.into());
            }
            let bound_members = members.clone();
            members.insert("rest".into(), rest.clone().into());
            let written = write(&HTTP, &SHAPE, members).unwrap();
            prop_assert!(written.path.is_ascii() && written.query.is_ascii());
            prop_assert_eq!(written.body.get("rest"), Some(&Value::String(rest)));
            prop_assert_eq!(written.body.len(), 1);
            let payload = Payload { path: &written.path, query: &written.query, body: b"" };
            prop_assert_eq!(bound(&HTTP, &SHAPE, payload).unwrap(), bound_members);
        }
    }

    #[test]
    fn a_path_fits_as_a_whole() {
        let uri = "/crl/{crlId}/enable";
        assert_eq!(labels(uri, "/crl/a%2Fb/enable"), Some(vec![("crlId", "a%2Fb")]));
        for other in ["/crl//enable", "/crl/a", "/crl/a/enable/", "/crl/a/b/enable", "crl/a/enable"]
        {
            assert_eq!(labels(uri, other), None, "{other}");
        }
        assert_eq!(labels("/crls", "/crls"), Some(Vec::new()));
        assert!(parts_given("/crl/all") > parts_given("/crl/{crlId}"));
    }
}

//! The query protocol of AWS's older services: requests are forms, answers are XML.
//!
//! Source: Smithy, "AWS query protocol". Members arrive as text, and the schema says which are numbers; results are
//! made as JSON first and written as XML here.

use std::borrow::Cow;

use quick_xml::Writer;
use quick_xml::events::{BytesEnd, BytesStart, BytesText, Event};
use serde_json::{Map, Value};

use super::ApiError;

/// Members of a request at most.
const MAX_MEMBERS: usize = 1000;
/// Deepest nesting of a member's name.
const MAX_DEPTH: usize = 8;

/// The `Action` of a request.
pub fn action(body: &[u8]) -> Option<Cow<'_, str>> {
    form_urlencoded::parse(body)
        .take(MAX_MEMBERS)
        .find_map(|(name, value)| (name == "Action").then_some(value))
}

/// The members of a request, except `Action` and `Version`: `A.B` is a structure, `A.member.1` a list.
pub fn members(body: &[u8]) -> Result<Value, ApiError> {
    let malformed = |text: &str| ApiError::new("MalformedQueryString", text.to_owned());
    let mut root = Node::default();
    for (count, (name, value)) in form_urlencoded::parse(body).enumerate() {
        if count == MAX_MEMBERS {
            return Err(malformed("the request has too many members"));
        }
        if name == "Action" || name == "Version" {
            continue;
        }
        let path: Vec<_> = name.split('.').collect();
        if path.len() > MAX_DEPTH || path.iter().any(|part| part.is_empty()) {
            return Err(malformed("the name of a member is not valid"));
        }
        if !root.insert(&path, value.into_owned()) {
            return Err(malformed("a member occurs twice, or an item of a list has no number"));
        }
    }
    Ok(root.into_value())
}

/// A member, in order of first mention.
#[derive(Default)]
struct Node {
    text: Option<String>,
    inner: Vec<(String, Node)>,
}

impl Node {
    /// Inserts a member at its path; `false` if it exists already, or an item of a list has no number.
    fn insert(&mut self, path: &[&str], text: String) -> bool {
        if let ["member", number, ..] = path
            && number.parse::<u32>().is_err()
        {
            return false;
        }
        let Some((first, rest)) = path.split_first() else {
            return self.inner.is_empty() && self.text.replace(text).is_none();
        };
        if self.text.is_some() {
            return false;
        }
        let at = self.inner.iter().position(|(name, _)| name == first);
        let at = at.unwrap_or_else(|| {
            self.inner.push(((*first).to_owned(), Self::default()));
            self.inner.len() - 1
        });
        self.inner.get_mut(at).is_some_and(|(_, node)| node.insert(rest, text))
    }

    fn into_value(mut self) -> Value {
        if let Some(text) = self.text {
            return Value::String(text);
        }
        if self.inner.len() == 1
            && let Some((name, list)) = self.inner.pop()
        {
            if name == "member" {
                let mut items = list.inner;
                items.sort_by_key(|(number, _)| number.parse().unwrap_or(u32::MAX));
                return Value::Array(
                    items.into_iter().map(|(_, node)| node.into_value()).collect(),
                );
            }
            self.inner.push((name, list));
        }
        let pairs = self.inner.into_iter().map(|(name, node)| (name, node.into_value()));
        Value::Object(pairs.collect::<Map<_, _>>())
    }
}

/// The XML document for an operation's result, which is given as JSON.
pub fn enclose(result: &[u8], operation: &str, namespace: &str, request_id: &str) -> Vec<u8> {
    let result: Value = serde_json::from_slice(result).unwrap_or_default();
    let root = format!("{operation}Response");
    document(&root, namespace, |writer| {
        element(writer, &format!("{operation}Result"), &result)?;
        let id = Value::String(request_id.to_owned());
        let metadata: Map<_, _> = [("RequestId".to_owned(), id)].into_iter().collect();
        element(writer, "ResponseMetadata", &Value::Object(metadata))
    })
}

/// The XML document for an error.
pub fn error(error: &ApiError, namespace: &str) -> Vec<u8> {
    let (code, status) = error_code(error);
    let kind = if status < 500 { "Sender" } else { "Receiver" };
    let value = serde_json::json!({ "Type": kind, "Code": code, "Message": error.message });
    document("ErrorResponse", namespace, |writer| element(writer, "Error", &value))
}

/// Adds the request's id to an error document, once the id is known.
pub fn identified(mut document: Vec<u8>, request_id: &str) -> Vec<u8> {
    const END: &[u8] = b"</ErrorResponse>";
    if document.ends_with(END) {
        document.truncate(document.len() - END.len());
        // An id is a UUID, so nothing needs to be escaped.
        document.extend_from_slice(format!("<RequestId>{request_id}</RequestId>").as_bytes());
        document.extend_from_slice(END);
    }
    document
}

/// The query services' own names for errors that have other names elsewhere, with their status.
pub fn error_code(error: &ApiError) -> (&'static str, u16) {
    match error.code {
        "UnrecognizedClientException" => ("InvalidClientTokenId", 403),
        "MissingAuthenticationTokenException" => ("MissingAuthenticationToken", 403),
        "InvalidSignatureException" => ("SignatureDoesNotMatch", 403),
        "IncompleteSignatureException" => ("IncompleteSignature", 400),
        "ExpiredTokenException" => ("ExpiredToken", 403),
        "AccessDeniedException" => ("AccessDenied", 403),
        "ValidationException" => ("ValidationError", 400),
        "SerializationException" => ("MalformedQueryString", 400),
        "MalformedPolicyDocumentException" => ("MalformedPolicyDocument", 400),
        other => (other, error.status),
    }
}

type Out = Writer<Vec<u8>>;

fn document(
    root: &str,
    namespace: &str,
    fill: impl FnOnce(&mut Out) -> std::io::Result<()>,
) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    let write = || {
        let mut start = BytesStart::new(root);
        start.push_attribute(("xmlns", namespace));
        writer.write_event(Event::Start(start))?;
        fill(&mut writer)?;
        writer.write_event(Event::End(BytesEnd::new(root)))
    };
    // Writing to a vector cannot fail.
    let _ = write();
    writer.into_inner()
}

fn element(writer: &mut Out, name: &str, value: &Value) -> std::io::Result<()> {
    writer.write_event(Event::Start(BytesStart::new(name)))?;
    match value {
        Value::Null => {}
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
                element(writer, name, value)?;
            }
        }
        Value::Array(items) => {
            for item in items {
                element(writer, "member", item)?;
            }
        }
        Value::String(text) => writer.write_event(Event::Text(BytesText::new(text)))?,
        other => writer.write_event(Event::Text(BytesText::new(&other.to_string())))?,
    }
    writer.write_event(Event::End(BytesEnd::new(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_nest() {
        let body = b"Action=AssumeRole&Version=2011-06-15&RoleArn=a%3Ab+c&Tags.member.1.Key=k\
                     &Tags.member.1.Value=v&Tags.member.2.Key=l&Tags.member.2.Value=w";
        assert_eq!(action(body).as_deref(), Some("AssumeRole"));
        let expected = json!({
            "RoleArn": "a:b c",
            "Tags": [{ "Key": "k", "Value": "v" }, { "Key": "l", "Value": "w" }],
        });
        assert_eq!(members(body).unwrap(), expected);
        for wrong in ["A=1&A=2", "A=1&A.B=2", "A.B=1&A=2", "A..B=1", "a.b.c.d.e.f.g.h.i=1"] {
            assert!(members(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let many = "A.member.1=1&".repeat(MAX_MEMBERS + 1);
        assert!(members(many.as_bytes()).is_err());
    }

    #[test]
    fn results_are_escaped() {
        let xml = enclose(br#"{"Arn":"a<b&c","N":3,"L":["x"]}"#, "Get", "urn:x", "id");
        let expected = "<GetResponse xmlns=\"urn:x\"><GetResult><Arn>a&lt;b&amp;c</Arn><N>3</N>\
                        <L><member>x</member></L></GetResult><ResponseMetadata>\
                        <RequestId>id</RequestId></ResponseMetadata></GetResponse>";
        assert_eq!(String::from_utf8(xml).unwrap(), expected);
    }
}

//! Reading inputs and writing outputs in each protocol.

use std::cell::Cell;
use std::marker::PhantomData;

use serde::de::DeserializeSeed;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::read::{self, Reader, Refused};
use super::validate::shorten;
use super::{ApiError, constraints, query, rest};
use crate::aws::Operation;
use crate::aws::schema::Shape;

/// A wire protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `awsJson1_1`: operation in `X-Amz-Target`, JSON body.
    Json11,
    /// `smithy.protocols#rpcv2Cbor`: operation in the path, CBOR body.
    RpcV2Cbor,
    /// `aws.protocols#awsQuery`: operation and members in a form, XML answers.
    Query,
    /// `aws.protocols#restJson1`: operation in method and path, members in path, query string and JSON body.
    RestJson1,
}

/// The parts of a request that an operation's members are read from.
#[derive(Debug, Clone, Copy, Default)]
pub struct Payload<'a> {
    /// Path, as sent.
    pub path: &'a str,
    /// Query string, as sent, without the question mark.
    pub query: &'a str,
    /// Body.
    pub body: &'a [u8],
}

impl<'a> From<&'a [u8]> for Payload<'a> {
    /// A request whose members are all in the body.
    fn from(body: &'a [u8]) -> Self {
        Self { path: "/", query: "", body }
    }
}

/// Deepest nesting of a CBOR body; `serde_json` limits JSON to 128 by itself.
const MAX_DEPTH: usize = 32;

impl Protocol {
    /// `Content-Type` of requests.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json11 => "application/x-amz-json-1.1",
            Self::RpcV2Cbor => "application/cbor",
            Self::Query => "application/x-www-form-urlencoded",
            Self::RestJson1 => "application/json",
        }
    }

    /// `Content-Type` of responses.
    pub fn response_type(self) -> &'static str {
        match self {
            Self::Query => "text/xml",
            other => other.content_type(),
        }
    }

    /// Code and status of an error: the older query services have names of their own for common errors.
    pub fn error_code(self, error: &ApiError) -> (&'static str, u16) {
        match self {
            Self::Query => query::error_code(error),
            _ => (error.code, error.status),
        }
    }

    /// Wraps the result of an operation as the protocol requires.
    pub fn enclose(self, body: Vec<u8>, operation: &str, namespace: &str, id: &str) -> Vec<u8> {
        match self {
            Self::Query => query::enclose(&body, operation, namespace, id),
            _ => body,
        }
    }

    /// Reads an operation's input by its schema and checks its constraints. An empty body is an empty structure.
    pub fn decode<O: Operation>(self, payload: Payload<'_>) -> Result<O::Input, ApiError> {
        let body = payload.body;
        let BySchema { mut value, refused, .. }: BySchema<O> = match self {
            Self::Json11 | Self::RestJson1 => {
                let body = if body.iter().all(u8::is_ascii_whitespace) { b"{}" } else { body };
                serde_json::from_slice(body).map_err(|error| {
                    let message = error.to_string();
                    // "... at line 1 column 5" is of no use when a program wrote the body.
                    let end = message.rfind(" at line ").unwrap_or(message.len());
                    explain(&message[..end])
                })?
            }
            Self::RpcV2Cbor => {
                // An empty map.
                let mut rest: &[u8] = if body.is_empty() { &[0xa0] } else { body };
                let value = ciborium::de::from_reader_with_recursion_limit(&mut rest, MAX_DEPTH)
                    .map_err(|error| match error {
                        ciborium::de::Error::Semantic(_, message) => explain(&message),
                        _ => ApiError::serialization("the body is not well-formed CBOR"),
                    })?;
                if !rest.is_empty() {
                    return Err(ApiError::serialization("bytes follow the CBOR body"));
                }
                value
            }
            Self::Query => {
                let refused = Cell::new(None);
                let value = read::from_text(query::members(body)?, O::INPUT, &refused)?;
                BySchema { value, refused: refused.get(), of: PhantomData }
            }
        };
        if !value.is_object() {
            return Err(ApiError::serialization("the body is not a structure"));
        }
        if let (Self::RestJson1, Value::Object(members)) = (self, &mut value) {
            members.extend(rest::bound(&O::HTTP, O::INPUT, payload)?);
        }
        constraints::check(&value, O::INPUT)?;
        if let Some((name, why)) = refused {
            return Err(read::refusal(name, why, O::SERVICE.refusal));
        }
        serde_json::from_value(value).map_err(|error| explain(&error.to_string()))
    }

    /// Writes an operation's output; some protocols write times as text.
    pub fn encode_output<T: Serialize>(
        self,
        value: &T,
        shape: &Shape,
    ) -> Result<Vec<u8>, ApiError> {
        if !matches!(self, Self::Query | Self::RestJson1) {
            return self.encode(value);
        }
        let mut value = serde_json::to_value(value).map_err(|error| unwritten(&error))?;
        read::with_written_times(&mut value, shape, self == Self::Query);
        self.encode(&value)
    }

    /// Writes a structure.
    pub fn encode<T: Serialize>(self, value: &T) -> Result<Vec<u8>, ApiError> {
        match self {
            Self::Json11 | Self::Query | Self::RestJson1 => {
                serde_json::to_vec(value).map_err(|error| unwritten(&error))
            }
            Self::RpcV2Cbor => {
                let mut out = Vec::new();
                ciborium::into_writer(value, &mut out).map_err(|error| unwritten(&error))?;
                Ok(out)
            }
        }
    }

    /// Writes an error. In CBOR its type is a full shape id in `namespace` (Smithy RPC v2, "Error responses"). In JSON and
    /// CBOR its text is in `member`: services spell it differently.
    pub fn encode_error(self, error: &ApiError, namespace: &str, member: &str) -> Vec<u8> {
        let mut told: Vec<_> = error.told().map(|message| (member, message)).into_iter().collect();
        if let Some(about) = &error.about {
            told.push(("Resource", about.resource.as_str()));
            told.push(("ResourceType", about.resource_type));
        }
        match self {
            Self::Json11 => body(Some(error.code), &told).to_string().into_bytes(),
            Self::Query => query::error(error, namespace),
            // REST JSON sends the type in a header.
            Self::RestJson1 => body(None, &told).to_string().into_bytes(),
            Self::RpcV2Cbor => {
                let shape = format!("{namespace}#{}", error.code);
                self.encode(&body(Some(&shape), &told)).unwrap_or_default()
            }
        }
    }
}

/// A request that is read by its schema.
struct BySchema<O> {
    value: Value,
    refused: Option<Refused>,
    of: PhantomData<fn() -> O>,
}

impl<'de, O: Operation> Deserialize<'de> for BySchema<O> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let refused = Cell::new(None);
        let value = Reader::new(O::INPUT, &refused).deserialize(deserializer)?;
        Ok(Self { value, refused: refused.get(), of: PhantomData })
    }
}

fn body(kind: Option<&str>, told: &[(&str, &str)]) -> Value {
    let members = kind.map(|kind| ("__type", kind)).into_iter().chain(told.iter().copied());
    members.map(|(name, text)| (name.to_owned(), Value::from(text))).collect()
}

fn unwritten(reason: &dyn std::fmt::Display) -> ApiError {
    ApiError::internal("InternalFailure", outlast_domain::Fault::Encoding(reason.to_string()))
}

/// Turns serde's words into AWS's error.
fn explain(message: &str) -> ApiError {
    if let Some(name) = message.strip_prefix(read::UNKNOWN) {
        return read::unknown(name);
    }
    // Our type requires the member and the model does not.
    let missing = message.strip_prefix("missing field `").and_then(|rest| rest.split('`').next());
    if let Some(name) = missing {
        return super::validate::missing(&shorten(name));
    }
    // serde quotes the unexpected value, which may be a plaintext.
    let message = match message.rfind(", expected ") {
        Some(at) => format!("a member has the wrong type{}", &message[at..]),
        None => message.to_owned(),
    };
    ApiError::serialization(format!("the body cannot be read: {message}"))
}

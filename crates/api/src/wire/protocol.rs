//! Reading inputs and writing outputs in the two protocols.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::validate::{member, shorten};
use super::{ApiError, query};

/// A wire protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `awsJson1_1`: operation in `X-Amz-Target`, JSON body.
    Json11,
    /// `smithy.protocols#rpcv2Cbor`: operation in the path, CBOR body.
    RpcV2Cbor,
    /// `aws.protocols#awsQuery`: operation and members in a form, XML answers.
    Query,
}

/// Deepest nesting of a CBOR body; `serde_json` has 128 built in.
const MAX_DEPTH: usize = 32;

impl Protocol {
    /// `Content-Type` of requests.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json11 => "application/x-amz-json-1.1",
            Self::RpcV2Cbor => "application/cbor",
            Self::Query => "application/x-www-form-urlencoded",
        }
    }

    /// `Content-Type` of responses.
    pub fn response_type(self) -> &'static str {
        match self {
            Self::Query => "text/xml",
            other => other.content_type(),
        }
    }

    /// Code and status of an error: the older query services have names of their own for what all share.
    pub fn error_code(self, error: &ApiError) -> (&'static str, u16) {
        match self {
            Self::Query => query::error_code(error),
            _ => (error.code, error.status),
        }
    }

    /// Puts the result of an operation into what the protocol has around it.
    pub fn enclose(self, body: Vec<u8>, operation: &str, namespace: &str, id: &str) -> Vec<u8> {
        match self {
            Self::Query => query::enclose(&body, operation, namespace, id),
            _ => body,
        }
    }

    /// Reads an operation's input. An empty body is an empty structure.
    pub fn decode<T: DeserializeOwned>(self, body: &[u8]) -> Result<T, ApiError> {
        match self {
            Self::Json11 => {
                let body = if body.iter().all(u8::is_ascii_whitespace) { b"{}" } else { body };
                // serde would read a structure from an array as well.
                if body.trim_ascii_start().first() != Some(&b'{') {
                    return Err(ApiError::serialization("the body is not a JSON object"));
                }
                serde_json::from_slice(body).map_err(|error| {
                    let message = error.to_string();
                    // "... at line 1 column 5" says nothing when the body came from a program.
                    let end = message.rfind(" at line ").unwrap_or(message.len());
                    explain(&message[..end])
                })
            }
            Self::RpcV2Cbor => {
                // An empty map.
                let mut rest: &[u8] = if body.is_empty() { &[0xa0] } else { body };
                // Major type 5 (RFC 8949, section 3.1).
                if rest.first().map(|byte| byte >> 5) != Some(5) {
                    return Err(ApiError::serialization("the body is not a CBOR map"));
                }
                let value = ciborium::de::from_reader_with_recursion_limit(&mut rest, MAX_DEPTH)
                    .map_err(|error| match error {
                        ciborium::de::Error::Semantic(_, message) => explain(&message),
                        _ => ApiError::serialization("the body is not well-formed CBOR"),
                    })?;
                if !rest.is_empty() {
                    return Err(ApiError::serialization("bytes follow the CBOR body"));
                }
                Ok(value)
            }
            Self::Query => serde_json::from_value(query::members(body)?)
                .map_err(|error| explain(&error.to_string())),
        }
    }

    /// Writes an operation's output.
    pub fn encode<T: Serialize>(self, value: &T) -> Result<Vec<u8>, ApiError> {
        let failed = |reason: String| {
            ApiError::internal("InternalFailure", outlast_domain::Fault::Encoding(reason))
        };
        match self {
            Self::Json11 | Self::Query => {
                serde_json::to_vec(value).map_err(|error| failed(error.to_string()))
            }
            Self::RpcV2Cbor => {
                let mut out = Vec::new();
                ciborium::into_writer(value, &mut out)
                    .map_err(|error| failed(error.to_string()))?;
                Ok(out)
            }
        }
    }

    /// Writes an error. In CBOR its type is a full shape id in `namespace` (Smithy RPC v2, "Error responses").
    pub fn encode_error(self, error: &ApiError, namespace: &str) -> Vec<u8> {
        match self {
            Self::Json11 => {
                json!({ "__type": error.code, "message": error.message }).to_string().into_bytes()
            }
            Self::Query => query::error(error, namespace),
            Self::RpcV2Cbor => {
                let shape = format!("{namespace}#{}", error.code);
                self.encode(&json!({ "__type": shape, "message": error.message }))
                    .unwrap_or_default()
            }
        }
    }
}

/// Turns serde's words into AWS's error.
fn explain(message: &str) -> ApiError {
    let quoted = |prefix: &str| {
        message
            .strip_prefix(prefix)
            .and_then(|rest| rest.split('`').next())
            .map(|name| member(&shorten(name)))
    };
    if let Some(field) = quoted("missing field `") {
        return ApiError::validation(format!(
            "1 validation error detected: Value null at '{field}' failed to satisfy constraint: \
             Member must not be null"
        ));
    }
    if let Some(field) = quoted("unknown field `") {
        return ApiError::serialization(format!(
            "the member '{field}' is not known to this version of outlast; it is refused rather \
             than ignored"
        ));
    }
    // serde quotes the value that it did not expect, which may be a plaintext.
    let message = match message.rfind(", expected ") {
        Some(at) => format!("a member has the wrong type{}", &message[at..]),
        None => message.to_owned(),
    };
    ApiError::serialization(format!("the body cannot be read: {message}"))
}

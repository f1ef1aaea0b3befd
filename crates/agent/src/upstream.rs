//! Secrets Manager as the agent asks it, and what its answers mean for secrets that are kept.
//!
//! An answer that refuses a secret ends what the agent keeps of it. Only if there is no answer, or one that says that
//! the service cannot answer now, may a kept value be served.

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue, Method, Request};
use outlast_api::wire::ApiError;
use outlast_api::wire::sigv4::{Credentials, Target, sign};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use zeroize::Zeroizing;

use crate::interface::{Answer, Ask};

/// Longest answer that is read, in bytes: 64 KiB of secret, each byte as six in JSON, and the rest.
pub const MAX_ANSWER: usize = 512 * 1024;
const SERVICE: &str = "secretsmanager";
/// Name of the agent in audit events.
pub const USER_AGENT: &str = concat!("outlast-agent/", env!("CARGO_PKG_VERSION"));

/// Where and as whom to ask.
pub struct Caller<'a> {
    /// Host and port.
    pub host: &'a str,
    /// Region.
    pub region: &'a str,
    /// Credentials.
    pub credentials: &'a Credentials,
}

/// A secret, as the agent answers it. There is no `Debug`.
pub struct SecretValue {
    /// Name.
    pub name: String,
    /// ARN.
    pub arn: String,
    /// Version.
    pub version_id: String,
    /// JSON for clients of AWS's agent.
    pub body: Zeroizing<Vec<u8>>,
}

/// Why there is no secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The service is away: what is kept may be served, within its limit.
    Away(Away),
    /// The service refused: what is kept of this scope must go.
    Refused {
        /// HTTP status.
        status: u16,
        /// AWS's name of the error.
        code: String,
        /// Text for people.
        message: String,
        /// What the refusal concerns.
        scope: Scope,
    },
}

/// How the service is away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Away {
    /// No answer in time.
    Timeout,
    /// No connection, or a broken one; the reason is for the log.
    Connection(String),
    /// An answer of the service that it cannot answer now, with its status, code and message.
    Answered(u16, String, String),
    /// There are no credentials, because the service that gives them is away.
    Credentials(String),
}

/// What a refusal concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The one version or stage that was asked for.
    Version,
    /// The secret.
    Secret,
    /// The role that was named, and so all secrets that were read with it.
    Role,
    /// The agent's own identity, and so all secrets.
    Everything,
}

/// Errors that say that the agent's identity is no longer valid.
const OF_IDENTITY: &[&str] = &[
    "ExpiredTokenException",
    "IncompleteSignatureException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "MissingAuthenticationTokenException",
    "UnrecognizedClientException",
];
/// Errors of clients that say no more than that the service has too much to do.
const OF_THE_MOMENT: &[&str] =
    &["ThrottlingException", "TooManyRequestsException", "LimitExceededException"];

/// The signed request for a secret. `now` is the time in seconds since 1970.
pub fn request(ask: &Ask, caller: &Caller<'_>, now: i64) -> Result<Request<Vec<u8>>, ApiError> {
    let invalid = || ApiError::validation("the request cannot be put together");
    let mut input = Map::new();
    input.insert("SecretId".into(), Value::from(ask.secret_id.as_str()));
    let version = ask.version_id.as_ref().map(|id| ("VersionId", id));
    let stage = ask.version_stage.as_ref().map(|stage| ("VersionStage", stage));
    for (name, value) in version.into_iter().chain(stage) {
        input.insert(name.into(), Value::from(value.as_str()));
    }
    let body = Value::Object(input).to_string().into_bytes();
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/x-amz-json-1.1"));
    headers.insert("x-amz-target", HeaderValue::from_static("secretsmanager.GetSecretValue"));
    let Caller { host, region, credentials } = caller;
    let target = Target { path: "/", host, body: &body, region, service: SERVICE };
    sign(&mut headers, &target, credentials, now)?;
    headers.insert("host", host.parse().map_err(|_| invalid())?);
    headers.insert("user-agent", HeaderValue::from_static(USER_AGENT));
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.headers_mut() = headers;
    Ok(request)
}

/// The members of an answer. The secret itself stays text that is never copied out.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(rename = "ARN", borrow, default)]
    arn: Cow<'a, str>,
    #[serde(rename = "Name", borrow, default)]
    name: Cow<'a, str>,
    #[serde(rename = "VersionId", borrow, default)]
    version_id: Cow<'a, str>,
    #[serde(rename = "SecretString", borrow)]
    string: Option<&'a RawValue>,
    #[serde(rename = "SecretBinary", borrow)]
    binary: Option<&'a RawValue>,
    #[serde(rename = "VersionStages", borrow)]
    stages: Option<&'a RawValue>,
    #[serde(rename = "CreatedDate", borrow)]
    created: Option<&'a RawValue>,
}

/// Reads an answer.
pub fn answer(status: u16, body: &[u8]) -> Result<SecretValue, Problem> {
    if status == 200 {
        return serde_json::from_slice::<Members<'_>>(body).map(|found| found.written()).map_err(
            // The error of serde may quote the text, which is a secret.
            |error| {
                let at = format!("line {}, column {}", error.line(), error.column());
                Problem::Away(Away::Connection(format!("the answer cannot be read at {at}")))
            },
        );
    }
    #[derive(Deserialize, Default)]
    struct Body {
        #[serde(rename = "__type", default)]
        kind: String,
        #[serde(alias = "Message", default)]
        message: String,
    }
    let error: Body = serde_json::from_slice(body).unwrap_or_default();
    let code = error.kind.rsplit('#').next().unwrap_or_default().to_owned();
    Err(judge(status, code, error.message))
}

/// What an error of the service means.
fn judge(status: u16, code: String, message: String) -> Problem {
    if status >= 500 || status == 429 || OF_THE_MOMENT.contains(&code.as_str()) {
        return Problem::Away(Away::Answered(status, code, message));
    }
    if code.is_empty() {
        // Not the service: a proxy, perhaps.
        return Problem::Away(Away::Connection(format!(
            "an answer with status {status} and no error"
        )));
    }
    let scope = match OF_IDENTITY.contains(&code.as_str()) {
        true => Scope::Everything,
        // A version that is gone leaves the others: `Problem::about` narrows it.
        false => Scope::Secret,
    };
    Problem::Refused { status, code, message, scope }
}

impl Problem {
    /// Narrows the scope to what was asked for: "not found" for a version says nothing about the secret.
    #[must_use]
    pub fn about(self, ask: &Ask) -> Self {
        match self {
            Self::Refused { status, code, message, scope: Scope::Secret }
                if code == "ResourceNotFoundException"
                    && (ask.version_id.is_some() || ask.version_stage.is_some()) =>
            {
                Self::Refused { status, code, message, scope: Scope::Version }
            }
            // The session that was refused is the role's, not the agent's own.
            Self::Refused { status, code, message, scope: Scope::Everything }
                if ask.role_arn.is_some() =>
            {
                Self::Refused { status, code, message, scope: Scope::Role }
            }
            other => other,
        }
    }

    /// The answer for a client of AWS's agent.
    pub fn answer(&self) -> Answer {
        match self {
            Self::Refused { status, code, message, .. } => Answer::error(*status, code, message),
            Self::Away(Away::Timeout) => Answer::error(504, "TimeoutError", "Timeout"),
            Self::Away(Away::Connection(_)) => {
                Answer::error(502, "ConnectionError", "Secrets Manager cannot be reached")
            }
            Self::Away(Away::Credentials(_)) => Answer::error(
                502,
                "ConnectionError",
                "the service that gives credentials cannot be reached",
            ),
            Self::Away(Away::Answered(status, code, message)) => {
                let code = if code.is_empty() { "InternalFailure" } else { code };
                Answer::error(*status, code, message)
            }
        }
    }

    /// A line for the log.
    pub fn reason(&self) -> String {
        match self {
            Self::Refused { code, message, .. } => format!("{code}: {message}"),
            Self::Away(Away::Timeout) => "no answer in time".to_owned(),
            Self::Away(Away::Connection(reason) | Away::Credentials(reason)) => reason.clone(),
            Self::Away(Away::Answered(status, code, message)) => {
                format!("status {status} {code} {message}")
            }
        }
    }
}

impl Members<'_> {
    /// The same members in the order and the spelling of AWS's agent: it writes the date as text.
    fn written(&self) -> SecretValue {
        let text = |value: &str| Value::from(value).to_string();
        let (string, binary) = (raw(self.string), raw(self.binary));
        let room = 512 + string.map_or(0, str::len) + binary.map_or(0, str::len);
        // Long enough from the start: a buffer that grows leaves copies behind.
        let stages = raw(self.stages).unwrap_or_default();
        let room =
            room + stages.len() + 2 * (self.arn.len() + self.name.len() + self.version_id.len());
        let mut out = Zeroizing::new(Vec::with_capacity(room));
        let mut push = |part: &str| out.extend_from_slice(part.as_bytes());
        push("{\"ARN\":");
        push(&text(&self.arn));
        push(",\"Name\":");
        push(&text(&self.name));
        push(",\"VersionId\":");
        push(&text(&self.version_id));
        for (name, value) in [("SecretString", string), ("SecretBinary", binary)] {
            if let Some(value) = value {
                push(&format!(",\"{name}\":"));
                push(value);
            }
        }
        if !stages.is_empty() {
            push(",\"VersionStages\":");
            push(stages);
        }
        push(",\"CreatedDate\":");
        match raw(self.created) {
            Some(created) if !created.starts_with('"') => push(&text(created)),
            Some(created) => push(created),
            None => push("null"),
        }
        push("}");
        SecretValue {
            name: self.name.clone().into_owned(),
            arn: self.arn.clone().into_owned(),
            version_id: self.version_id.clone().into_owned(),
            body: out,
        }
    }
}

/// The text of a member, unless it is absent.
fn raw(value: Option<&RawValue>) -> Option<&str> {
    value.map(RawValue::get).filter(|text| *text != "null")
}

//! Requests as AWS's Secrets Manager Agent understands them, and its answers: paths, headers, statuses and texts.
//!
//! Source: the documentation of AWS's agent, and its answers. Over the unix socket there is no token: the kernel says
//! who asks, and [`crate::callers`] decides.

use http::request::Parts;
use http::{HeaderName, Method};
use outlast_crypto::{Secret, hmac};
use percent_encoding::percent_decode_str;
use serde_json::json;
use zeroize::Zeroizing;

/// Longest name or ARN of a secret that is read, in bytes. AWS's longest ARN has 2048.
pub const MAX_SECRET_ID: usize = 2048;
/// Longest version id or stage. AWS's have 64 and 256.
const MAX_VERSION: usize = 256;
/// Longest ARN of a role that is read, in bytes: IAM's path has 512, its name 64.
const MAX_ROLE_ARN: usize = 640;

/// How requests are read.
pub struct Interface {
    /// Prefix of paths that name the secret: `/v1/`.
    pub path_prefix: String,
    /// Headers that may carry the token.
    pub token_headers: Vec<HeaderName>,
    /// The token.
    pub token: Secret,
}

/// What kind of listener a request came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// TCP: the caller must show the token.
    Tcp,
    /// Unix socket: the kernel names the caller.
    Unix,
}

/// A secret that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Ask {
    /// Name or ARN.
    pub secret_id: String,
    /// Version.
    pub version_id: Option<String>,
    /// Stage; `AWSCURRENT` is meant if neither is given.
    pub version_stage: Option<String>,
    /// ARN of the role with whose rights it is read; otherwise with the agent's own.
    pub role_arn: Option<String>,
}

/// What to do with a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Answer with this.
    Answer(Answer),
    /// Answer with this secret; if `refresh` is set, ask Secrets Manager whatever the cache has.
    Fetch {
        /// The secret.
        ask: Ask,
        /// `refreshNow`
        refresh: bool,
    },
}

/// An answer. Its body may be a secret.
#[derive(PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Whether the body is JSON; otherwise it is text.
    pub is_json: bool,
    /// Body.
    pub body: Zeroizing<Vec<u8>>,
}

/// Without the body.
impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answer({})", self.status)
    }
}

impl Answer {
    /// A line of text.
    pub fn text(status: u16, text: &str) -> Self {
        Self { status, is_json: false, body: Zeroizing::new(text.as_bytes().to_vec()) }
    }

    /// An error as AWS's Secrets Manager Agent writes it, whose member `message` has no capital.
    pub fn error(status: u16, code: &str, message: &str) -> Self {
        let value = match message {
            "" => json!({ "__type": code }),
            message => json!({ "__type": code, "message": message }),
        };
        Self { status, is_json: true, body: Zeroizing::new(value.to_string().into_bytes()) }
    }

    /// A secret.
    pub fn secret(body: Zeroizing<Vec<u8>>) -> Self {
        Self { status: 200, is_json: true, body }
    }
}

impl Interface {
    /// Reads a request. `is_over_limit` says that there are more connections than allowed; health checks are answered
    /// all the same.
    pub fn read(&self, door: Door, head: &Parts, is_over_limit: bool) -> Step {
        match self.step(door, head, is_over_limit) {
            Ok(step) => step,
            Err(answer) => Step::Answer(answer),
        }
    }

    fn step(&self, door: Door, head: &Parts, is_over_limit: bool) -> Result<Step, Answer> {
        let path = head.uri.path();
        let is_ping = path == "/ping";
        if is_over_limit && !is_ping {
            return Err(Answer::text(429, "Connection limit exceeded"));
        }
        if !is_ping {
            // A proxy would let others speak with this machine's rights.
            if head.headers.contains_key("x-forwarded-for") {
                return Err(Answer::text(400, "Forwarded"));
            }
            if door == Door::Tcp && !self.has_token(head) {
                return Err(Answer::text(403, "Bad Token"));
            }
        }
        if head.method != Method::GET {
            return Err(Answer::text(405, "Not allowed"));
        }
        if is_ping {
            return Ok(Step::Answer(Answer::text(200, "healthy")));
        }
        let query = head.uri.query().unwrap_or_default();
        if path == "/secretsmanager/get" {
            return fetch(door, None, query);
        }
        match path.strip_prefix(self.path_prefix.as_str()) {
            Some("") => Err(Answer::text(400, "missing secret ID")),
            Some(id) => {
                let id = percent_decode_str(id).decode_utf8();
                let id = id.map_err(|_| Answer::text(400, "invalid secret ID"))?;
                fetch(door, Some(&id), query)
            }
            None => Err(Answer::text(404, "Not found")),
        }
    }

    fn has_token(&self, head: &Parts) -> bool {
        // All are compared, so that the time does not tell which header was right.
        let mut found = false;
        for name in &self.token_headers {
            for value in head.headers.get_all(name) {
                found |= hmac::equal(value.as_bytes(), self.token.expose());
            }
        }
        found && !self.token.is_empty()
    }
}

fn fetch(door: Door, id: Option<&str>, query: &str) -> Result<Step, Answer> {
    let mut ask = Ask { secret_id: id.unwrap_or_default().to_owned(), ..Ask::default() };
    let mut refresh = false;
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "secretId" if id.is_none() => ask.secret_id = value.into_owned(),
            "versionId" => ask.version_id = Some(value.into_owned()),
            "versionStage" => ask.version_stage = Some(value.into_owned()),
            "roleArn" => ask.role_arn = Some(value.into_owned()),
            "refreshNow" => {
                refresh = match value.to_ascii_lowercase().as_str() {
                    "true" | "1" => true,
                    "false" | "0" => false,
                    _ => return Err(Answer::text(400, "invalid refreshNow value")),
                }
            }
            other => {
                let shown: String = other.chars().filter(|c| !c.is_control()).take(64).collect();
                return Err(Answer::text(400, &format!("unknown parameter: {shown}")));
            }
        }
    }
    if ask.secret_id.is_empty() {
        return Err(Answer::text(400, "missing parameter secretId"));
    }
    if let Some(arn) = &ask.role_arn {
        // The rules for callers name secrets, and the same name is another secret in another account.
        if door == Door::Unix {
            return Err(Answer::text(400, "roleArn is not served over the socket"));
        }
        if !is_role_arn(arn) {
            let text =
                "invalid roleArn format, expected arn:<partition>:iam::<account>:role/<name>";
            return Err(Answer::text(400, text));
        }
    }
    let long = |text: &Option<String>| text.as_ref().is_some_and(|text| text.len() > MAX_VERSION);
    if ask.secret_id.len() > MAX_SECRET_ID || long(&ask.version_id) || long(&ask.version_stage) {
        return Err(Answer::text(400, "a parameter is too long"));
    }
    Ok(Step::Fetch { ask, refresh })
}

/// Whether this is an ARN of a role, as AWS's agent checks it: `arn:PARTITION:iam::ACCOUNT:role/NAME`.
fn is_role_arn(text: &str) -> bool {
    let all = |part: &str, more: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    let ["arn", partition, "iam", "", account, resource] = parts.as_slice() else { return false };
    let name = resource.strip_prefix("role/").unwrap_or_default();
    text.len() <= MAX_ROLE_ARN
        && all(partition, "_-")
        && account.len() == 12
        && account.bytes().all(|byte| byte.is_ascii_digit())
        && all(name, "_+=,.@/-")
}

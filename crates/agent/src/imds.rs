//! Credentials as the instance metadata service of EC2 gives them, in its version 2: SDKs find them with
//! `AWS_EC2_METADATA_SERVICE_ENDPOINT` and need nothing else.
//!
//! Source: "Use the Instance Metadata Service" in the EC2 user guide. A request must show a token, which it gets by a
//! PUT; there is no version 1.

use std::collections::HashMap;

use http::request::Parts;
use http::{HeaderMap, Method};
use outlast_crypto::{digests, hmac, random};
use serde_json::json;
use zeroize::Zeroizing;

use crate::session::Session;

/// Header with the token's time to live.
pub const TTL_HEADER: &str = "x-aws-ec2-metadata-token-ttl-seconds";
const TOKEN_HEADER: &str = "x-aws-ec2-metadata-token";
const MAX_TTL_SECONDS: u64 = 21_600;
/// Tokens that are valid at the same time; for a further one, the one that ends first goes.
const MAX_TOKENS: usize = 1024;
const ROLES: &str = "/latest/meta-data/iam/security-credentials";

/// The service.
pub struct Imds {
    role: String,
    region: String,
    tokens: HashMap<[u8; 32], u64>,
}

/// What to answer.
#[derive(PartialEq, Eq)]
pub enum Step {
    /// A status and a text.
    Text(u16, String),
    /// A new token and its time to live in seconds.
    Token(String, u64),
    /// The credentials.
    Credentials,
}

/// Without the token.
impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(status, text) => write!(f, "{status} {text}"),
            Self::Token(..) => f.write_str("a token"),
            Self::Credentials => f.write_str("the credentials"),
        }
    }
}

impl Imds {
    /// Gives the credentials of a role, by its name.
    pub fn new(role_arn: &str, region: &str) -> Self {
        let role = role_arn.rsplit('/').next().unwrap_or(role_arn).to_owned();
        Self { role, region: region.to_owned(), tokens: HashMap::new() }
    }

    /// Reads a request. `now_ms` is the time of a clock that never goes back.
    pub fn read(&mut self, head: &Parts, now_ms: u64) -> Step {
        let text = |status, text: &str| Step::Text(status, text.to_owned());
        // A page whose host name resolves to this address must not get credentials.
        if !is_local(&head.headers) {
            return text(403, "only for this machine\n");
        }
        let path = head.uri.path();
        if path == "/latest/api/token" {
            if head.method != Method::PUT {
                return text(405, "only PUT\n");
            }
            if head.headers.contains_key("x-forwarded-for") {
                return text(403, "forwarded\n");
            }
            return self.token(&head.headers, now_ms);
        }
        if head.method != Method::GET {
            return text(405, "only GET\n");
        }
        if !self.is_valid(&head.headers, now_ms) {
            return text(401, "a token is needed: PUT /latest/api/token\n");
        }
        let rest = path.strip_prefix(ROLES);
        match rest {
            Some("" | "/") => Step::Text(200, self.role.clone()),
            Some(rest) if rest.strip_prefix('/') == Some(&self.role) => Step::Credentials,
            _ if path == "/latest/meta-data/placement/region" => {
                Step::Text(200, self.region.clone())
            }
            _ => text(404, "not found\n"),
        }
    }

    fn token(&mut self, headers: &HeaderMap, now_ms: u64) -> Step {
        let seconds = headers.get(TTL_HEADER).and_then(|value| value.to_str().ok()?.parse().ok());
        let Some(seconds @ 1..=MAX_TTL_SECONDS) = seconds else {
            return Step::Text(400, format!("{TTL_HEADER} must be 1 to {MAX_TTL_SECONDS}\n"));
        };
        let Ok(bytes) = random::bytes::<32>() else {
            return Step::Text(500, "no random numbers\n".to_owned());
        };
        let token = hex::encode(bytes);
        self.tokens.retain(|_, end| *end > now_ms);
        if self.tokens.len() >= MAX_TOKENS
            && let Some(first) =
                self.tokens.iter().min_by_key(|(_, end)| **end).map(|(key, _)| *key)
        {
            self.tokens.remove(&first);
        }
        self.tokens.insert(digests::sha256(token.as_bytes()), now_ms + seconds * 1000);
        Step::Token(token, seconds)
    }

    fn is_valid(&self, headers: &HeaderMap, now_ms: u64) -> bool {
        let Some(token) = headers.get(TOKEN_HEADER) else { return false };
        // By its digest: how long the search takes tells nothing about the token.
        let digest = digests::sha256(token.as_bytes());
        self.tokens
            .get_key_value(&digest)
            .is_some_and(|(known, end)| hmac::equal(known, &digest) && *end > now_ms)
    }
}

fn is_local(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get("host").and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    ["localhost", "127.0.0.1", "[::1]", "169.254.169.254"].contains(&name)
}

/// The credentials as the metadata service writes them. `now` is the time in seconds since 1970.
pub fn document(session: &Session, now: i64) -> Zeroizing<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let value = json!({
        "Code": "Success",
        "LastUpdated": outlast_pki::time::rfc3339(now),
        "Type": "AWS-HMAC",
        "AccessKeyId": session.access_key_id,
        "SecretAccessKey": text(session.secret.expose()),
        "Token": text(session.token.expose()),
        "Expiration": outlast_pki::time::rfc3339(session.expiration),
    });
    Zeroizing::new(value.to_string())
}

/// The same in the form of AWS's `credential_process`.
pub fn process_document(session: &Session) -> Zeroizing<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let value = json!({
        "Version": 1,
        "AccessKeyId": session.access_key_id,
        "SecretAccessKey": text(session.secret.expose()),
        "SessionToken": text(session.token.expose()),
        "Expiration": outlast_pki::time::rfc3339(session.expiration),
    });
    Zeroizing::new(value.to_string())
}

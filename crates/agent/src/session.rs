//! A session of IAM Roles Anywhere: temporary credentials for a machine that has a certificate.
//!
//! Source: "Signing process" in the user guide of IAM Roles Anywhere. It is Signature Version 4 with a certificate in
//! place of an access key: the serial number is the key id, and the private key signs the string to sign.

use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use outlast_crypto::{Secret, digests};
use serde::Deserialize;
use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::macros::format_description;

use crate::signer::{Identity, SignError};

const SERVICE: &str = "rolesanywhere";
const PATH: &str = "/sessions";
/// Longest answer that is read, in bytes.
pub const MAX_ANSWER: usize = 256 * 1024;

/// What session is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Trust anchor: whose certificates are trusted.
    pub trust_anchor_arn: String,
    /// Profile: which roles may be taken.
    pub profile_arn: String,
    /// Role.
    pub role_arn: String,
    /// Length of the session in seconds; the profile's if absent.
    pub duration_seconds: Option<u32>,
    /// Name of the session, if the profile accepts one.
    pub role_session_name: Option<String>,
}

/// Temporary credentials. There is no `Debug`.
pub struct Session {
    /// Access key id.
    pub access_key_id: String,
    /// Secret access key.
    pub secret: Secret,
    /// Session token.
    pub token: Secret,
    /// End, in seconds since 1970.
    pub expiration: i64,
}

/// Why there is no session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The private key did not sign.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// A value cannot be sent.
    #[error("the request for a session cannot be put together: {0}")]
    Request(&'static str),
    /// The service refused.
    #[error("{code}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// AWS's name of the error.
        code: String,
        /// Text for people.
        message: String,
    },
    /// The service cannot answer now.
    #[error("the service answered with status {0}")]
    Away(u16),
    /// The answer is not what the documentation says.
    #[error("the answer to CreateSession cannot be read: {0}")]
    Unreadable(&'static str),
}

/// The signed request. `now` is the time in seconds since 1970.
pub fn request(
    wanted: &Wanted,
    identity: &Identity,
    host: &str,
    region: &str,
    now: i64,
) -> Result<Request<Vec<u8>>, SessionError> {
    let mut input = Map::new();
    if let Some(seconds) = wanted.duration_seconds {
        input.insert("durationSeconds".into(), seconds.into());
    }
    if let Some(name) = &wanted.role_session_name {
        input.insert("roleSessionName".into(), Value::from(name.as_str()));
    }
    let body = Value::Object(input).to_string().into_bytes();
    let parameters = [
        ("profileArn", &wanted.profile_arn),
        ("roleArn", &wanted.role_arn),
        ("trustAnchorArn", &wanted.trust_anchor_arn),
    ];
    let pairs = parameters.map(|(name, value)| format!("{name}={}", encoded(value)));
    let query = pairs.join("&");
    let time = OffsetDateTime::from_unix_timestamp(now)
        .ok()
        .and_then(|time| {
            time.format(format_description!("[year][month][day]T[hour][minute][second]Z")).ok()
        })
        .ok_or(SessionError::Request("the time"))?;
    let date = time.get(..8).unwrap_or_default();
    let mut named: Vec<(&str, String)> = vec![
        ("content-type", "application/json".to_owned()),
        ("host", host.to_owned()),
        ("x-amz-date", time.clone()),
        ("x-amz-x509", identity.certificate_header()),
    ];
    if let Some(chain) = identity.chain_header() {
        named.push(("x-amz-x509-chain", chain));
    }
    let lines: String = named.iter().map(|(name, value)| format!("{name}:{value}\n")).collect();
    let names: Vec<&str> = named.iter().map(|(name, _)| *name).collect();
    let signed_headers = names.join(";");
    let hash = hex::encode(digests::sha256(&body));
    let canonical = format!("POST\n{PATH}\n{query}\n{lines}\n{signed_headers}\n{hash}");
    let scope = format!("{date}/{region}/{SERVICE}/aws4_request");
    let algorithm = identity.scheme().name;
    let canonical_hash = hex::encode(digests::sha256(canonical.as_bytes()));
    let to_sign = format!("{algorithm}\n{time}\n{scope}\n{canonical_hash}");
    let signature = identity.sign(to_sign.as_bytes())?;
    let authorization = format!(
        "{algorithm} Credential={}/{scope}, SignedHeaders={signed_headers}, Signature={}",
        identity.serial(),
        hex::encode(signature)
    );
    named.push(("authorization", authorization));
    let mut headers = HeaderMap::new();
    for (name, value) in &named {
        let value = HeaderValue::from_str(value).map_err(|_| SessionError::Request("a header"))?;
        let name = HeaderName::from_lowercase(name.as_bytes());
        headers.insert(name.map_err(|_| SessionError::Request("a header"))?, value);
    }
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.uri_mut() =
        format!("{PATH}?{query}").parse().map_err(|_| SessionError::Request("an ARN"))?;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Percent-encoding of Signature Version 4.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

/// Reads the answer. `error_type` is the header `x-amzn-errortype`.
pub fn answer(status: u16, error_type: Option<&str>, body: &[u8]) -> Result<Session, SessionError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        credential_set: Vec<Row>,
    }
    #[derive(Deserialize)]
    struct Row {
        credentials: Credentials,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Credentials {
        access_key_id: String,
        secret_access_key: String,
        session_token: String,
        expiration: String,
    }
    if !(200..300).contains(&status) {
        return Err(refusal(status, error_type, body));
    }
    let unreadable = SessionError::Unreadable;
    let answer: Answer =
        serde_json::from_slice(body).map_err(|_| unreadable("it is not the expected JSON"))?;
    let row = answer.credential_set.into_iter().next();
    let found = row.ok_or(unreadable("there are no credentials in it"))?.credentials;
    let expiration = outlast_pki::time::from_rfc3339(&found.expiration);
    Ok(Session {
        access_key_id: found.access_key_id,
        secret: Secret::new(found.secret_access_key.into_bytes()),
        token: Secret::new(found.session_token.into_bytes()),
        expiration: expiration.ok_or(unreadable("its expiration is not a time"))?,
    })
}

fn refusal(status: u16, error_type: Option<&str>, body: &[u8]) -> SessionError {
    #[derive(Deserialize, Default)]
    struct Body {
        #[serde(rename = "__type", default)]
        kind: String,
        #[serde(alias = "Message", default)]
        message: String,
    }
    let error: Body = serde_json::from_slice(body).unwrap_or_default();
    let kind =
        error_type.map_or(error.kind.as_str(), |kind| kind.split(':').next().unwrap_or(kind));
    let code = kind.rsplit('#').next().unwrap_or_default();
    if status >= 500 || status == 429 || code.is_empty() {
        return SessionError::Away(status);
    }
    SessionError::Refused { status, code: code.to_owned(), message: error.message }
}

//! `CreateSession` of Roles Anywhere, by hand: AWS's model does not have it.
//!
//! Source: "IAM Roles Anywhere CreateSession API" of the user guide, and what AWS's credential helper sends. "The request accepts
//! the following as URI parameters or as JSON in the request body": the three ARNs may be in either, but not in both.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::aws::rolesanywhere::SERVICE;
use crate::aws::rolesanywhere::schema::{
    CREATE_PROFILE_REQUEST_DURATION_SECONDS_INTEGER, INSTANCE_PROPERTY_MAP,
};
use crate::aws::schema::{EMPTY, Member, Shape};
use crate::aws::{Http, Operation, ServiceModel};
use crate::table::Row;
use crate::wire::{ApiError, Payload, Protocol, read, validate};

/// Longest ARN, as in the model.
const MAX_ARN: usize = 1011;

static ARN: Shape = Shape::string().min(1).max(1011);
static NAME: Shape = Shape::string().min(2).max(64);

static REQUEST: Shape = Shape::structure(
    "CreateSessionRequest",
    &[
        Member::optional("durationSeconds", &CREATE_PROFILE_REQUEST_DURATION_SECONDS_INTEGER),
        Member::optional("instanceProperties", &INSTANCE_PROPERTY_MAP),
        Member::optional("profileArn", &ARN),
        Member::optional("roleArn", &ARN),
        Member::optional("roleSessionName", &NAME),
        // "This parameter is no longer used."
        Member::optional("sessionName", &NAME),
        Member::optional("trustAnchorArn", &ARN),
    ],
);

/// The operation.
#[derive(Debug, Clone, Copy)]
pub struct CreateSession;

impl Operation for CreateSession {
    const NAME: &'static str = "CreateSession";
    const SERVICE: &'static ServiceModel = &SERVICE;
    const INPUT: &'static Shape = &REQUEST;
    const OUTPUT: &'static Shape = &EMPTY;
    const HTTP: Http = Http { method: "POST", uri: "/sessions", status: 201 };
    type Input = Request;
    type Output = Response;
}

/// The row that a route points to. It is in no list of operations, because it has no caller with an access key:
/// `service/session.rs` carries it out.
pub static CREATE_SESSION: Row = Row {
    name: CreateSession::NAME,
    read_only: false,
    slow: false,
    run: |_, _, _| {
        Err(ApiError::new("UnknownOperationException", "The operation is not known here."))
    },
    input: CreateSession::INPUT,
    output: CreateSession::OUTPUT,
    http: CreateSession::HTTP,
};

/// Request.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Request {
    /// Seconds, at most those of the profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<i64>,
    /// Properties of the instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance_properties: Option<BTreeMap<String, String>>,
    /// ARN of the profile.
    #[serde(default)]
    pub profile_arn: String,
    /// ARN of the role.
    #[serde(default)]
    pub role_arn: String,
    /// Name of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_session_name: Option<String>,
    /// Has no effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_name: Option<String>,
    /// ARN of the trust anchor.
    #[serde(default)]
    pub trust_anchor_arn: String,
}

impl Request {
    /// Reads a request.
    pub fn read(query: &str, body: &[u8]) -> Result<Self, ApiError> {
        let mut request = Protocol::RestJson1.decode::<CreateSession>(Payload::from(body))?;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let member = match name.as_ref() {
                "profileArn" => &mut request.profile_arn,
                "roleArn" => &mut request.role_arn,
                "trustAnchorArn" => &mut request.trust_anchor_arn,
                _ => return Err(read::unknown(&name)),
            };
            if !member.is_empty() {
                let text = format!("the member '{name}' comes twice");
                return Err(ApiError::serialization(text));
            }
            validate::length(&name, value.chars().count(), 1, MAX_ARN)?;
            *member = value.into_owned();
        }
        for (name, value) in [
            ("profileArn", &request.profile_arn),
            ("roleArn", &request.role_arn),
            ("trustAnchorArn", &request.trust_anchor_arn),
        ] {
            if value.is_empty() {
                return Err(validate::missing(name));
            }
        }
        Ok(request)
    }
}

/// Response. There is no `Debug`: it has a secret.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Response {
    /// The session.
    pub credential_set: Vec<CredentialResponse>,
    /// ARN of the subject.
    pub subject_arn: String,
}

/// A session.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CredentialResponse {
    /// Whom it makes the caller.
    pub assumed_role_user: AssumedRoleUser,
    /// What to sign with.
    pub credentials: Credentials,
    /// Share of what policies and tags may take: they are not packed here.
    pub packed_policy_size: i64,
    /// ARN of the role.
    pub role_arn: String,
    /// Source identity.
    pub source_identity: String,
}

/// A session as a principal.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssumedRoleUser {
    /// ARN.
    pub arn: String,
    /// Unique id.
    pub assumed_role_id: String,
}

/// Temporary credentials.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Credentials {
    /// `ASIA...`
    pub access_key_id: String,
    /// Secret access key.
    pub secret_access_key: String,
    /// Session token.
    pub session_token: String,
    /// When they end (RFC 3339).
    pub expiration: String,
}

impl Credentials {
    /// Of an issued session.
    pub fn new(issued: outlast_domain::identity::session::Issued) -> Self {
        let text =
            |secret: &outlast_crypto::Secret| String::from_utf8_lossy(secret.expose()).into_owned();
        Self {
            secret_access_key: text(&issued.secret),
            session_token: text(&issued.token),
            access_key_id: issued.access_key_id,
            expiration: outlast_pki::time::rfc3339(issued.expires_ms.div_euclid(1000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "arn:a";

    fn read(query: &str, body: &str) -> Result<(String, String, String), String> {
        let read = Request::read(query, body.as_bytes());
        read.map(|read| (read.profile_arn, read.role_arn, read.trust_anchor_arn))
            .map_err(|error| format!("{} {}", error.code, error.message))
    }

    #[test]
    fn arns_are_in_the_query_or_in_the_body() {
        let all = || Ok((A.to_owned(), A.to_owned(), A.to_owned()));
        let body = r#"{"profileArn":"arn:a","roleArn":"arn:a","trustAnchorArn":"arn:a"}"#;
        assert_eq!(read("", body), all());
        let query = "profileArn=arn%3Aa&roleArn=arn%3Aa&trustAnchorArn=arn%3Aa";
        assert_eq!(read(query, r#"{"durationSeconds":900}"#), all());
        assert_eq!(read(query, ""), all());
        for (query, body, part) in [
            (query, body, "comes twice"),
            ("profileArn=a&profileArn=a", "{}", "comes twice"),
            ("profileArn=", "{}", "length greater than or equal to 1"),
            ("profilearn=a", "{}", "'profilearn' is not known"),
            ("profileArn=a&roleArn=a", "{}", "'trustAnchorArn'"),
            ("", r#"{"durationSeconds":899}"#, "greater than or equal to 900"),
            ("", r#"{"durationSeconds":43201}"#, "less than or equal to 43200"),
            ("", r#"{"durationSeconds":"900"}"#, "wrong type"),
            ("", r#"{"other":1}"#, "'other' is not known"),
            ("", r#"{"roleArn":"a","roleArn":"b"}"#, "twice"),
            ("", "[]", "structure"),
            ("", r#"{"roleSessionName":"x"}"#, "greater than or equal to 2"),
        ] {
            let refused = read(query, body).unwrap_err();
            assert!(refused.contains(part), "{query} {body}: {refused}");
        }
    }
}

//! Sessions of roles, by AssumeRole of STS: a request may name a role with whose rights its secret is read (`roleArn`).

use std::collections::HashMap;

use http::{HeaderMap, HeaderValue, Method, Request};
use outlast_api::wire::ApiError;
use outlast_api::wire::sigv4::{Target, sign};
use outlast_crypto::Secret;
use quick_xml::Reader;
use quick_xml::events::Event;

use crate::session::Session;
use crate::upstream::{Away, Caller, Problem, Scope, USER_AGENT};

/// Name of the sessions.
const SESSION_NAME: &str = "outlast-agent";
/// A session is renewed when this much of it is left, in seconds.
const RENEW_SECONDS: i64 = 300;

/// The signed request for a session. `now` is the time in seconds since 1970.
pub fn request(arn: &str, caller: &Caller<'_>, now: i64) -> Result<Request<Vec<u8>>, ApiError> {
    let invalid = || ApiError::validation("the request cannot be put together");
    let body = form_urlencoded::Serializer::new(String::new())
        .append_pair("Action", "AssumeRole")
        .append_pair("Version", "2011-06-15")
        .append_pair("RoleArn", arn)
        .append_pair("RoleSessionName", SESSION_NAME)
        .finish()
        .into_bytes();
    let mut headers = HeaderMap::new();
    let form = HeaderValue::from_static("application/x-www-form-urlencoded");
    headers.insert("content-type", form);
    let Caller { host, region, credentials } = caller;
    let target = Target { path: "/", host, body: &body, region, service: "sts" };
    sign(&mut headers, &target, credentials, now)?;
    headers.insert("host", host.parse().map_err(|_| invalid())?);
    headers.insert("user-agent", HeaderValue::from_static(USER_AGENT));
    let mut request = Request::new(body);
    *request.method_mut() = Method::POST;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Reads the answer. A refusal concerns the role alone.
pub fn answer(status: u16, body: &[u8]) -> Result<Session, Problem> {
    let text = std::str::from_utf8(body).unwrap_or_default();
    if status == 200 {
        let unreadable = || {
            Problem::Away(Away::Connection("the answer to AssumeRole cannot be read".to_owned()))
        };
        let expiration = member(text, "Expiration").ok_or_else(unreadable)?;
        return Ok(Session {
            access_key_id: member(text, "AccessKeyId").ok_or_else(unreadable)?,
            secret: member(text, "SecretAccessKey").map(secret).ok_or_else(unreadable)?,
            token: member(text, "SessionToken").map(secret).ok_or_else(unreadable)?,
            expiration: outlast_pki::time::from_rfc3339(&expiration).ok_or_else(unreadable)?,
        });
    }
    let code = member(text, "Code").unwrap_or_default();
    let message = member(text, "Message").unwrap_or_default();
    if status >= 500 || status == 429 || code == "Throttling" {
        return Err(Problem::Away(Away::Answered(status, code, message)));
    }
    Err(Problem::Refused {
        status: 403,
        code: "AccessDeniedException".to_owned(),
        message: format!("The role cannot be assumed: {code}: {message}"),
        scope: Scope::Role,
    })
}

fn secret(text: String) -> Secret {
    Secret::new(text.into_bytes())
}

/// Text of the first element with this name. Its values here need no escapes.
fn member(text: &str, name: &str) -> Option<String> {
    let mut reader = Reader::from_str(text);
    let mut is_inside = false;
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => is_inside = start.local_name().as_ref() == name.as_bytes(),
            Event::Text(text) if is_inside => return text.decode().ok().map(Into::into),
            Event::End(_) => is_inside = false,
            Event::Eof => return None,
            _ => {}
        }
    }
}

/// The sessions of an agent, by role. There is no `Debug`.
pub struct Roles {
    sessions: HashMap<String, Session>,
    max: usize,
}

impl Roles {
    /// No sessions yet, and this many roles at most.
    pub fn new(max: usize) -> Self {
        Self { sessions: HashMap::new(), max }
    }

    /// The role's session, unless it must be renewed. `now` is in seconds since 1970.
    pub fn current(&self, arn: &str, now: i64) -> Option<&Session> {
        let session = self.sessions.get(arn);
        session.filter(|session| session.expiration.saturating_sub(now) > RENEW_SECONDS)
    }

    /// Whether there is room for this role; sessions that have ended make room.
    pub fn check(&mut self, arn: &str, now: i64) -> Result<(), Problem> {
        self.sessions.retain(|_, session| session.expiration > now);
        if self.sessions.contains_key(arn) || self.sessions.len() < self.max {
            return Ok(());
        }
        let max = self.max;
        Err(Problem::Refused {
            status: 400,
            code: "MaxRolesExceeded".to_owned(),
            message: format!("The maximum number of assumed roles ({max}) has been reached."),
            scope: Scope::Version,
        })
    }

    /// Keeps a session.
    pub fn keep(&mut self, arn: &str, session: Session) {
        self.sessions.insert(arn.to_owned(), session);
    }

    /// Forgets the role's session; returns whether there was one.
    pub fn forget(&mut self, arn: &str) -> bool {
        self.sessions.remove(arn).is_some()
    }
}

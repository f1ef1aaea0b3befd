//! Secrets Manager, asked with the agent's credentials: fixed ones, or sessions of Roles Anywhere.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, Request};
use outlast_agent::interface::Ask;
use outlast_agent::session::Session;
use outlast_agent::upstream::{self, Away, Problem, Scope, SecretValue};
use outlast_api::wire::sigv4::{self, Target};
use outlast_crypto::Secret;
use outlast_net::server::system_clock;

use crate::anywhere::{self, Link, LinkError, NoSession, Sessions};
use crate::failure::Failure;
use crate::profile::Reach;

/// Source of the agent's credentials.
pub(crate) enum Credentials {
    /// An access key.
    Fixed(sigv4::Credentials),
    /// Roles Anywhere.
    Anywhere {
        /// Certificate, key and role.
        options: Box<anywhere::Options>,
        /// Folder of relative paths.
        base: PathBuf,
        /// Its endpoint.
        endpoint_url: String,
    },
}

/// How to ask.
pub(crate) struct Settings {
    pub(crate) reach: Reach,
    pub(crate) credentials: Credentials,
    pub(crate) policy: Option<String>,
    pub(crate) mode: String,
    pub(crate) timeout: Duration,
}

/// The client.
pub(super) struct Upstream {
    link: Link,
    source: Source,
    timeout: Duration,
}

enum Source {
    Fixed(sigv4::Credentials),
    Anywhere(Box<Sessions>),
}

impl Upstream {
    /// Connects at the first question.
    pub(super) fn new(settings: Settings) -> Result<Self, Failure> {
        let Settings { reach, credentials, policy, mode, timeout } = settings;
        let link = |reach: &Reach| Link::new(reach, policy.as_deref(), Some(&mode));
        let source = match credentials {
            Credentials::Fixed(fixed) => Source::Fixed(fixed),
            Credentials::Anywhere { options, base, endpoint_url } => {
                let reach = Reach {
                    endpoint_url,
                    region: reach.region.clone(),
                    ca_bundle: reach.ca_bundle.clone(),
                    client: reach.client.clone(),
                };
                let (options, link) = (*options, link(&reach)?);
                Source::Anywhere(Box::new(Sessions::new(options, base, link)))
            }
        };
        Ok(Self { link: link(&reach)?, source, timeout })
    }

    /// Asks for a secret.
    pub(super) async fn get(&mut self, ask: &Ask) -> Result<SecretValue, Problem> {
        let outcome = self.attempt(ask).await;
        let is_of_identity =
            matches!(&outcome, Err(Problem::Refused { scope: Scope::Everything, .. }));
        if is_of_identity
            && let Source::Anywhere(sessions) = &mut self.source
            && sessions.forget()
        {
            // The session may have ended early: a new one decides.
            return self.attempt(ask).await.map_err(|problem| problem.about(ask));
        }
        outcome.map_err(|problem| problem.about(ask))
    }

    async fn attempt(&mut self, ask: &Ask) -> Result<SecretValue, Problem> {
        let now = system_clock().div_euclid(1000);
        let of_session;
        let credentials = match &mut self.source {
            Source::Fixed(fixed) => &*fixed,
            Source::Anywhere(sessions) => {
                of_session = self::of_session(sessions.current().await.map_err(no_session)?);
                &of_session
            }
        };
        let (host, region) = (self.link.authority(), self.link.region());
        let caller = upstream::Caller { host, region, credentials };
        let request = upstream::request(ask, &caller, now)
            .map_err(|error| Problem::Away(Away::Connection(error.message)))?;
        let response = self.send(request).await?;
        let (status, body) = (response.status().as_u16(), response.into_body());
        if body.len() > upstream::MAX_ANSWER {
            return Err(Problem::Away(Away::Connection("the answer is too long".to_owned())));
        }
        // Erased when this returns; there is one owner, so that nothing is copied.
        let body = zeroize::Zeroizing::new(Vec::from(body));
        upstream::answer(status, &body)
    }

    async fn send(
        &mut self,
        request: Request<Vec<u8>>,
    ) -> Result<http::Response<bytes::Bytes>, Problem> {
        let was_open = self.link.negotiated().is_some();
        let outcome = self.link.send(request, self.timeout).await;
        if !was_open && let Some(negotiated) = self.link.negotiated() {
            let group = negotiated.group.as_deref().unwrap_or("a resumed session");
            tracing::info!(
                group,
                post_quantum = negotiated.post_quantum,
                "connected to Secrets Manager"
            );
        }
        outcome.map_err(|error| match error {
            LinkError::Timeout => Problem::Away(Away::Timeout),
            LinkError::Client(error) => {
                let failure = self.link.failure(error);
                Problem::Away(Away::Connection(failure.message().to_owned()))
            }
        })
    }

    /// Asks STS who the agent is, as AWS's agent does at its start.
    pub(super) async fn validate(&mut self, may_be_away: bool) -> Result<(), Failure> {
        let outcome = self.identity().await;
        match outcome {
            Ok(()) => Ok(()),
            Err(NoSession::Away(reason)) if may_be_away => {
                tracing::warn!(reason, "the credentials could not be checked");
                Ok(())
            }
            Err(problem) => Err(Failure::from(problem)),
        }
    }

    async fn identity(&mut self) -> Result<(), NoSession> {
        let now = system_clock().div_euclid(1000);
        let away = |problem: Problem| NoSession::Away(problem.reason());
        let credentials = match &mut self.source {
            Source::Fixed(fixed) => &*fixed,
            // The session is the proof.
            Source::Anywhere(sessions) => return sessions.current().await.map(|_| ()),
        };
        // STS of AWS has a host of its own; Outlast has one for all.
        if self.link.authority().starts_with("secretsmanager.") {
            return Ok(());
        }
        let invalid = |_| NoSession::Failed(Failure::new("the request cannot be put together"));
        let body = b"Action=GetCallerIdentity&Version=2011-06-15".to_vec();
        let mut headers = HeaderMap::new();
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert("content-type", form);
        let (host, region) = (self.link.authority(), self.link.region());
        let target = Target { path: "/", host, body: &body, region, service: "sts" };
        sigv4::sign(&mut headers, &target, credentials, now)
            .map_err(|error| NoSession::Failed(Failure::new(error.message)))?;
        headers.insert("host", host.parse().map_err(invalid)?);
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.headers_mut() = headers;
        let response = self.send(request).await.map_err(away)?;
        match response.status().as_u16() {
            200 => Ok(()),
            status @ (429 | 500..) => Err(NoSession::Away(format!("STS answered with status {status}"))),
            status => Err(NoSession::Failed(
                Failure::new(format!("the credentials are refused: STS answered with status {status}"))
                    .hint("check the access key, the region and this machine's clock; validate_credentials = false leaves this out"),
            )),
        }
    }
}

/// Credentials for a session's calls.
fn of_session(session: &Session) -> sigv4::Credentials {
    let copy = |secret: &Secret| Secret::new(secret.expose().to_vec());
    sigv4::Credentials {
        access_key_id: session.access_key_id.clone(),
        secret: copy(&session.secret),
        token: Some(copy(&session.token)),
    }
}

fn no_session(problem: NoSession) -> Problem {
    match problem {
        NoSession::Away(reason) => Problem::Away(Away::Credentials(reason)),
        NoSession::Failed(failure) => Problem::Refused {
            status: 403,
            code: "AccessDeniedException".to_owned(),
            message: format!("Roles Anywhere gives no session: {}", failure.message()),
            scope: Scope::Everything,
        },
    }
}

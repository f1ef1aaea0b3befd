//! Secrets Manager, asked with the agent's credentials: fixed ones, or sessions of Roles Anywhere.

use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, Request};
use outlast_agent::interface::Ask;
use outlast_agent::role::{self, Roles};
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
    /// Endpoint of STS, if it is not where Secrets Manager's tells.
    pub(crate) sts_endpoint_url: Option<String>,
    pub(crate) credentials: Credentials,
    /// Roles at the same time.
    pub(crate) max_roles: usize,
    pub(crate) policy: Option<String>,
    pub(crate) mode: String,
    pub(crate) timeout: Duration,
}

/// The client.
pub(super) struct Upstream {
    link: Link,
    sts: Sts,
    source: Source,
    roles: Roles,
    timeout: Duration,
}

/// Where STS is.
enum Sts {
    /// Where Secrets Manager is: Outlast has one endpoint for all services.
    Here,
    /// Elsewhere.
    At(Box<Link>),
    /// Nobody knows.
    Unknown,
}

enum Source {
    Fixed(sigv4::Credentials),
    Anywhere(Box<Sessions>),
}

impl Upstream {
    /// Connects at the first question.
    pub(super) fn new(settings: Settings) -> Result<Self, Failure> {
        let Settings { reach, sts_endpoint_url, credentials, max_roles, policy, mode, timeout } =
            settings;
        let link = |reach: &Reach| Link::new(reach, policy.as_deref(), Some(&mode));
        let at = |endpoint_url: &str| Reach {
            endpoint_url: endpoint_url.to_owned(),
            region: reach.region.clone(),
            ca_bundle: reach.ca_bundle.clone(),
            client: reach.client.clone(),
        };
        let sts = match (sts_endpoint_url.as_deref(), sts_of(&reach.endpoint_url)) {
            (Some(url), _) => Sts::At(Box::new(link(&at(url))?)),
            (None, Some(Some(url))) => Sts::At(Box::new(link(&at(&url))?)),
            (None, Some(None)) => Sts::Unknown,
            (None, None) => Sts::Here,
        };
        let source = match credentials {
            Credentials::Fixed(fixed) => Source::Fixed(fixed),
            Credentials::Anywhere { options, base, endpoint_url } => {
                let (options, link) = (*options, link(&at(&endpoint_url))?);
                Source::Anywhere(Box::new(Sessions::new(options, base, link)))
            }
        };
        let roles = Roles::new(max_roles);
        Ok(Self { link: link(&reach)?, sts, source, roles, timeout })
    }

    /// Asks for a secret.
    pub(super) async fn get(&mut self, ask: &Ask) -> Result<SecretValue, Problem> {
        let outcome = self.attempt(ask).await;
        let is_of_identity =
            matches!(&outcome, Err(Problem::Refused { scope: Scope::Everything, .. }));
        let had_session = is_of_identity
            && match (&ask.role_arn, &mut self.source) {
                (Some(arn), _) => self.roles.forget(arn),
                (None, Source::Anywhere(sessions)) => sessions.forget(),
                (None, Source::Fixed(_)) => false,
            };
        if had_session {
            // The session may have ended early: a new one decides.
            return self.attempt(ask).await.map_err(|problem| problem.about(ask));
        }
        outcome.map_err(|problem| problem.about(ask))
    }

    async fn attempt(&mut self, ask: &Ask) -> Result<SecretValue, Problem> {
        let now = system_clock().div_euclid(1000);
        let of_session;
        let mut credentials = match &mut self.source {
            Source::Fixed(fixed) => &*fixed,
            Source::Anywhere(sessions) => {
                of_session = self::of_session(sessions.current().await.map_err(no_session)?);
                &of_session
            }
        };
        let of_role;
        if let Some(arn) = &ask.role_arn {
            if self.roles.current(arn, now).is_none() {
                self.roles.check(arn, now)?;
                let link = match &mut self.sts {
                    Sts::Here => &mut self.link,
                    Sts::At(link) => link,
                    Sts::Unknown => {
                        let reason = "sts_endpoint_url is not given".to_owned();
                        return Err(Problem::Away(Away::Credentials(reason)));
                    }
                };
                let (host, region) = (link.authority(), link.region());
                let caller = upstream::Caller { host, region, credentials };
                let request = role::request(arn, &caller, now)
                    .map_err(|error| Problem::Away(Away::Connection(error.message)))?;
                let response = send(link, "STS", request, self.timeout).await?;
                let (status, body) = (response.status().as_u16(), response.into_body());
                let session = role::answer(status, &whole(body)?)?;
                let end = outlast_pki::time::rfc3339(session.expiration);
                tracing::info!(role = arn, end, "STS gave a session");
                self.roles.keep(arn, session);
            }
            let missing = || Problem::Away(Away::Credentials("the session has ended".to_owned()));
            of_role = self::of_session(self.roles.current(arn, now).ok_or_else(missing)?);
            credentials = &of_role;
        }
        let (host, region) = (self.link.authority(), self.link.region());
        let caller = upstream::Caller { host, region, credentials };
        let request = upstream::request(ask, &caller, now)
            .map_err(|error| Problem::Away(Away::Connection(error.message)))?;
        let response = send(&mut self.link, "Secrets Manager", request, self.timeout).await?;
        let (status, body) = (response.status().as_u16(), response.into_body());
        upstream::answer(status, &whole(body)?)
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
        let link = match &mut self.sts {
            Sts::Here => &mut self.link,
            Sts::At(link) => link,
            Sts::Unknown => {
                tracing::warn!("the credentials are not checked: sts_endpoint_url is not given");
                return Ok(());
            }
        };
        let invalid = |_| NoSession::Failed(Failure::new("the request cannot be put together"));
        let body = b"Action=GetCallerIdentity&Version=2011-06-15".to_vec();
        let mut headers = HeaderMap::new();
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert("content-type", form);
        let (host, region) = (link.authority(), link.region());
        let target = Target { path: "/", host, body: &body, region, service: "sts" };
        sigv4::sign(&mut headers, &target, credentials, now)
            .map_err(|error| NoSession::Failed(Failure::new(error.message)))?;
        headers.insert("host", host.parse().map_err(invalid)?);
        headers.insert("user-agent", HeaderValue::from_static(upstream::USER_AGENT));
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.headers_mut() = headers;
        let response = send(link, "STS", request, self.timeout).await.map_err(away)?;
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

/// An answer's body, which may be a secret: erased when it is dropped. There is one owner, so that nothing is copied.
fn whole(body: bytes::Bytes) -> Result<zeroize::Zeroizing<Vec<u8>>, Problem> {
    if body.len() > upstream::MAX_ANSWER {
        return Err(Problem::Away(Away::Connection("the answer is too long".to_owned())));
    }
    Ok(zeroize::Zeroizing::new(Vec::from(body)))
}

async fn send(
    link: &mut Link,
    service: &'static str,
    request: Request<Vec<u8>>,
    timeout: Duration,
) -> Result<http::Response<bytes::Bytes>, Problem> {
    let was_open = link.negotiated().is_some();
    let outcome = link.send(request, timeout).await;
    if !was_open && let Some(negotiated) = link.negotiated() {
        let group = negotiated.group.as_deref().unwrap_or("a resumed session");
        tracing::info!(group, post_quantum = negotiated.post_quantum, "connected to {service}");
    }
    outcome.map_err(|error| match error {
        LinkError::Timeout => Problem::Away(Away::Timeout),
        LinkError::Client(error) => {
            let failure = link.failure(error);
            Problem::Away(Away::Connection(failure.message().to_owned()))
        }
    })
}

/// Where AWS's STS is, by the endpoint of its Secrets Manager: the same name with another service. The inner `None` is an
/// endpoint of a VPC, whose name says nothing about others; the outer one is not an endpoint of AWS.
fn sts_of(endpoint_url: &str) -> Option<Option<String>> {
    let rest = endpoint_url.strip_prefix("https://")?;
    for (service, sts) in [("secretsmanager.", "sts."), ("secretsmanager-fips.", "sts-fips.")] {
        if let Some(place) = rest.strip_prefix(service) {
            return Some(Some(format!("https://{sts}{place}")));
        }
    }
    let host = rest.split(['/', ':']).next().unwrap_or_default();
    host.ends_with(".vpce.amazonaws.com").then_some(None)
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

#[cfg(test)]
mod tests {
    use super::sts_of;

    #[test]
    fn sts_is_found_by_the_name_of_secrets_manager() {
        for (endpoint, expected) in [
            (
                "https://secretsmanager.eu-central-1.amazonaws.com",
                "https://sts.eu-central-1.amazonaws.com",
            ),
            (
                "https://secretsmanager.cn-north-1.amazonaws.com.cn",
                "https://sts.cn-north-1.amazonaws.com.cn",
            ),
            (
                "https://secretsmanager-fips.us-east-1.amazonaws.com",
                "https://sts-fips.us-east-1.amazonaws.com",
            ),
            ("https://secretsmanager.eu-west-1.api.aws:443", "https://sts.eu-west-1.api.aws:443"),
        ] {
            assert_eq!(sts_of(endpoint), Some(Some(expected.to_owned())));
        }
        let vpc = "https://vpce-1-2.secretsmanager.eu-central-1.vpce.amazonaws.com";
        assert_eq!(sts_of(vpc), Some(None));
        for own in [
            "https://outlast.example:8443",
            "https://127.0.0.1:1",
            "https://my.secretsmanager.example",
        ] {
            assert_eq!(sts_of(own), None, "{own}");
        }
    }
}

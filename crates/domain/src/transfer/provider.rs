//! Identity providers: who knows the users of a server, and what an answer of one outside is about.
//!
//! A provider that gets no password answers with the public keys of the user, and
//! with a role either way. So it must never be asked in the name of a user who has proved nothing: a login with an empty
//! password is refused before.

use std::fmt;
use std::net::IpAddr;

use outlast_crypto::{Secret, digests};
use serde::{Deserialize, Serialize};

use super::TransferError;
use super::authentication::Methods;
use super::home::Home;
use super::posix::Posix;
use crate::arn::{Arn, Scope};

/// Who knows the users of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Provider {
    /// `SERVICE_MANAGED`: this service.
    ServiceManaged,
    /// `API_GATEWAY`
    ApiGateway {
        /// `Url`
        url: String,
        /// `InvocationRole`, a canonical ARN.
        invocation_role: Option<String>,
        /// `SftpAuthenticationMethods`
        methods: Methods,
    },
    /// `AWS_LAMBDA`
    Lambda {
        /// `Function`, a canonical ARN.
        function: String,
        /// `SftpAuthenticationMethods`
        methods: Methods,
    },
}

impl Provider {
    /// AWS's names of those that are served.
    pub const NAMES: [&str; 3] = ["SERVICE_MANAGED", "API_GATEWAY", "AWS_LAMBDA"];

    /// AWS's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ServiceManaged => "SERVICE_MANAGED",
            Self::ApiGateway { .. } => "API_GATEWAY",
            Self::Lambda { .. } => "AWS_LAMBDA",
        }
    }

    /// Whether this service knows the users.
    pub fn is_service_managed(&self) -> bool {
        *self == Self::ServiceManaged
    }

    /// What users must prove: users of this service have public keys only.
    pub fn methods(&self) -> Methods {
        match self {
            Self::ServiceManaged => Methods::PublicKey,
            Self::ApiGateway { methods, .. } | Self::Lambda { methods, .. } => *methods,
        }
    }

    pub(super) fn invocation_role(&self) -> Option<&str> {
        match self {
            Self::ApiGateway { invocation_role, .. } => invocation_role.as_deref(),
            _ => None,
        }
    }

    /// Checks what a caller wants to store.
    pub(super) fn check(&self, scope: &Scope) -> Result<(), TransferError> {
        match self {
            Self::ServiceManaged => Ok(()),
            Self::ApiGateway { url, .. } if is_url(url) => Ok(()),
            Self::ApiGateway { .. } => Err(TransferError::invalid(
                "Url must be one of HTTPS without user information, query and fragment",
            )),
            Self::Lambda { function, .. } => {
                let arn = Arn::parse(function).filter(|arn| arn.is_in(scope));
                match arn.is_some_and(|arn| arn.of("lambda", "function:").is_some()) {
                    true => Ok(()),
                    false => Err(TransferError::invalid(
                        "Function must be the ARN of a function of the server's account and Region",
                    )),
                }
            }
        }
    }

    /// What to ask about a user; `None` if this service knows it. `user` is a valid name.
    pub(super) fn question(
        &self,
        server: &str,
        user: &str,
        password: Option<&Secret>,
        source_ip: IpAddr,
    ) -> Option<Question> {
        if self.is_service_managed() {
            return None;
        }
        Some(Question {
            provider: self.clone(),
            server: server.to_owned(),
            user: user.to_owned(),
            password: password.map(|password| Secret::new(password.expose().to_vec())),
            source_ip,
        })
    }
}

/// What to ask a provider outside. There is no `Debug`: a password is among it.
pub struct Question {
    /// The provider.
    pub provider: Provider,
    /// Id of the server.
    pub server: String,
    /// Name of the user.
    pub user: String,
    /// The password, if the user gave one.
    pub password: Option<Secret>,
    /// Address of the peer.
    pub source_ip: IpAddr,
}

/// What a provider says about a user whom it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The role.
    pub role: Arn,
    /// The home, checked.
    pub home: Home,
    /// The session policy.
    pub policy: Option<String>,
    /// The POSIX profile.
    pub posix: Option<Posix>,
    /// Lines of public keys.
    pub keys: Vec<String>,
}

/// What a provider has answered to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    asked: Asked,
    pub(super) said: Said,
}

/// What an answer is about: it says nothing about another user, and not that another password is right.
#[derive(Clone, PartialEq, Eq)]
struct Asked {
    /// Who was asked: it may not be the server's provider any more.
    provider: Provider,
    server: String,
    user: String,
    /// Digest of the password.
    password: Option<[u8; 32]>,
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Asked {
    fn new(provider: &Provider, server: &str, user: &str, password: Option<&Secret>) -> Self {
        let password = password.map(|password| digests::sha256(password.expose()));
        Self {
            provider: provider.clone(),
            server: server.to_owned(),
            user: user.to_owned(),
            password,
        }
    }
}

impl Question {
    /// The answer, which counts for this question only.
    pub fn answered(&self, said: Said) -> Answer {
        let password = self.password.as_ref();
        Answer { asked: Asked::new(&self.provider, &self.server, &self.user, password), said }
    }
}

impl Answer {
    /// Whether it is this provider's answer about this user with this password.
    pub(super) fn is_for(
        &self,
        provider: &Provider,
        server: &str,
        user: &str,
        password: Option<&Secret>,
    ) -> bool {
        self.asked == Asked::new(provider, server, user, password)
    }
}

/// Whether this is the beginning of a URL of HTTPS, to which a path and a query can be added.
fn is_url(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("https://") else { return false };
    let host = rest.split('/').next().unwrap_or_default();
    !host.is_empty()
        && !host.starts_with(':')
        && rest.bytes().all(|byte| byte.is_ascii_graphic() && !b"@?#\\<>\"".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_are_asked_over_https_or_are_functions_of_the_account() {
        let gateway = |url: &str| Provider::ApiGateway {
            url: url.into(),
            invocation_role: None,
            methods: Methods::Either,
        };
        let function = "arn:aws:lambda:eu-west-1:123456789012:function:idp";
        let lambda = Provider::Lambda { function: function.into(), methods: Methods::Either };
        let scope = Scope { account: "123456789012".into(), region: "eu-west-1".into() };
        for wrong in [
            "",
            "http://a.example",
            "https://",
            "https:///x",
            "https://u@a.example",
            "https://a.example?x",
            "https://a.example/#",
            "https://a b",
        ] {
            assert!(gateway(wrong).check(&scope).is_err(), "{wrong}");
        }
        gateway("https://a.example:8443/x").check(&scope).unwrap();
        lambda.check(&scope).unwrap();
        let elsewhere = Scope { account: "210987654321".into(), ..scope };
        assert!(lambda.check(&elsewhere).is_err());
    }
}

//! The beginning of a connection: what may be negotiated, whose key the server may have, and the login.

use std::sync::Arc;

use outlast_crypto::Secret;
use outlast_domain::transfer::connector::{Endpoint, Failure, FailureCode};
use outlast_negotiate::SecurityPolicy;
use outlast_negotiate::ssh::{SshRules, served};
use outlast_ssh::{
    Algorithms, ChannelId, ClientConfig, ClientEvent, Credential, Disagreement, HostKeyShown,
    Limits, Negotiation, PrivateKey, PublicKey, Request,
};

use super::link::{Link, Lost};
use crate::limits;

/// Type of RSA keys, whose signatures have names of their own.
const RSA: &str = "ssh-rsa";

/// Which host keys are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostKeys {
    /// Those of the types that the connector trusts: a server with several keys is to show one of them.
    Trusted,
    /// All that the policy allows, to learn which key a server has. None is accepted that is not trusted.
    Any,
}

/// Why there is no session, for metrics and ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// The connector's policy, secret or trusted keys cannot be used.
    Connector,
    /// The host has no address that connectors may connect to.
    Destination,
    /// Nobody takes the connection.
    Unreachable,
    /// There is no answer in time.
    Timeout,
    /// The server has no algorithm that the security policy allows.
    Policy,
    /// The server's key is not trusted.
    HostKey,
    /// The server refuses the login.
    Login,
    /// The server starts no SFTP.
    Sftp,
    /// The server, or the network, ended the connection.
    Closed,
}

impl Cause {
    /// All of them: name in metrics, and what the ledger says where no keys were exchanged.
    pub(super) const ALL: [(Self, &'static str, &'static str); 9] = [
        (
            Self::Connector,
            "connector",
            "the connector's policy, secret or trusted keys cannot be used",
        ),
        (
            Self::Destination,
            "destination",
            "the host has no address that connectors may connect to",
        ),
        (Self::Unreachable, "unreachable", "nobody takes the connection"),
        (Self::Timeout, "timeout", "the server does not answer in time"),
        (Self::Policy, "policy", "the server has no algorithm that the policy allows"),
        (Self::HostKey, "host_key", "the server's host key is not trusted"),
        (Self::Login, "login", "the server refused the login"),
        (Self::Sftp, "sftp", "the server has no SFTP"),
        (Self::Closed, "closed", "the connection ended before the keys were exchanged"),
    ];

    fn row(self) -> &'static (Self, &'static str, &'static str) {
        // Each has a row; a test says so.
        Self::ALL.iter().find(|(cause, ..)| *cause == self).unwrap_or(&Self::ALL[0])
    }

    /// Name in metrics.
    pub(super) fn name(self) -> &'static str {
        self.row().1
    }

    /// Reason in the ledger.
    pub(super) fn reason(self) -> &'static str {
        self.row().2
    }
}

/// Why there is no session.
pub(super) struct NoLogin {
    pub(super) failure: Failure,
    pub(super) cause: Cause,
    /// The key of the server that is not trusted.
    pub(super) host_key: Option<String>,
    /// Whether the server has no key of the types that are trusted.
    pub(super) has_other_key: bool,
}

impl NoLogin {
    pub(super) fn new(cause: Cause, failure: Failure) -> Self {
        Self { failure, cause, host_key: None, has_other_key: false }
    }
}

impl From<Lost> for NoLogin {
    fn from(lost: Lost) -> Self {
        let cause = match &lost {
            Lost::Silent => Cause::Timeout,
            Lost::Closed | Lost::Said(_) => Cause::Closed,
        };
        Self::new(cause, lost.into())
    }
}

fn failed(cause: Cause, message: impl Into<String>) -> NoLogin {
    NoLogin::new(cause, Failure::new(FailureCode::Connection, message))
}

fn refused() -> NoLogin {
    let advice =
        "the server refused the login: check Username, PrivateKey and Password of the secret";
    failed(Cause::Login, advice)
}

/// The rules by which a connector connects.
pub(super) fn rules(endpoint: &Endpoint) -> Result<SshRules, NoLogin> {
    let policy = SecurityPolicy::by_name(&endpoint.security_policy)
        .map_err(|error| failed(Cause::Connector, error.to_string()))?;
    SshRules::new(policy, None, served).map_err(|error| failed(Cause::Connector, error.to_string()))
}

/// What the connections of a connector may negotiate.
pub(super) fn config(
    endpoint: &Endpoint,
    rules: &SshRules,
    keys: HostKeys,
) -> Result<Arc<ClientConfig>, NoLogin> {
    let lists = rules.lists();
    let mut algorithms =
        Algorithms::of(&lists.key_exchanges, &lists.ciphers, &lists.macs, &lists.host_keys);
    let trusted = trusted(endpoint)?;
    if keys == HostKeys::Trusted && !trusted.is_empty() {
        algorithms.host_keys.retain(|name| {
            let key_type = if name.starts_with("rsa-") { RSA } else { name };
            trusted.iter().any(|key| key.key_type() == key_type)
        });
        if algorithms.host_keys.is_empty() {
            let text = format!(
                "Invalid trusted host keys: the security policy {} allows none of their types",
                rules.policy.name
            );
            return Err(failed(Cause::Connector, text));
        }
    }
    let limits = Limits { channels: 1, packet: limits::OUTBOUND_PACKET, ..Limits::default() };
    Ok(Arc::new(ClientConfig { algorithms, limits, ..ClientConfig::default() }))
}

fn trusted(endpoint: &Endpoint) -> Result<Vec<PublicKey>, NoLogin> {
    let keys = endpoint.trusted_host_keys.iter();
    keys.map(|line| PublicKey::from_openssh_line(line))
        .collect::<Result<_, _>>()
        .map_err(|error| failed(Cause::Connector, format!("Invalid trusted host keys: {error}")))
}

/// Exchanges keys, checks the server's, and logs in. Returns the server's key as a line.
pub(super) async fn authenticate(link: &mut Link, endpoint: &Endpoint) -> Result<String, NoLogin> {
    let mut tries = Tries::new(endpoint)?;
    let trusted = trusted(endpoint)?;
    let mut host_key = String::new();
    loop {
        match link.event().await? {
            ClientEvent::Negotiated(negotiation) => {
                link.report.negotiated(&negotiation);
                negotiated(endpoint, &negotiation, !trusted.is_empty())?;
            }
            ClientEvent::HostKey(shown) => {
                host_key = line(&shown);
                // Certificates are not asked for: the key itself is what is trusted.
                let is_trusted = trusted.iter().any(|key| key.blob() == shown.key.blob());
                link.ssh.answer(is_trusted);
                if !is_trusted {
                    let message = if trusted.is_empty() {
                        "Invalid trusted host keys: the connector has none; compare the server's host key with what its operator says, and add it to TrustedHostKeys"
                    } else {
                        "Invalid trusted host keys: the server has another host key"
                    };
                    let refused = failed(Cause::HostKey, message);
                    return Err(NoLogin { host_key: Some(host_key), ..refused });
                }
            }
            ClientEvent::Ready => {
                link.report.keyed();
                tries.next(link, endpoint, None)?;
            }
            ClientEvent::Refused { methods, .. } => tries.next(link, endpoint, Some(&methods))?,
            ClientEvent::Prompt(questions) => tries.respond(link, &questions)?,
            ClientEvent::Authenticated => return Ok(host_key),
            _ => {}
        }
    }
}

/// A host key as `TrustedHostKeys` has it.
fn line(shown: &HostKeyShown) -> String {
    shown.key.to_openssh_line()
}

fn negotiated(
    endpoint: &Endpoint,
    negotiation: &Negotiation,
    has_trusted: bool,
) -> Result<(), NoLogin> {
    match &negotiation.outcome {
        Ok(chosen) => {
            tracing::debug!(
                connector = endpoint.connector_arn,
                server = negotiation.peer_version,
                key_exchange = chosen.key_exchange,
                host_key = chosen.host_key,
                cipher = chosen.to_server.cipher,
                "a connector has negotiated"
            );
            Ok(())
        }
        Err(Disagreement::HostKey) if has_trusted => {
            let text = "Invalid trusted host keys: the server has no host key of their types";
            Err(NoLogin { has_other_key: true, ..failed(Cause::HostKey, text) })
        }
        Err(none) => {
            let what = match none {
                Disagreement::KeyExchange | Disagreement::Order => "key exchange method",
                Disagreement::HostKey => "host key algorithm",
                Disagreement::Cipher => "cipher",
                Disagreement::Mac => "MAC",
                Disagreement::Compression => "compression method",
            };
            let text = format!(
                "the server has no {what} that the security policy {} allows",
                endpoint.security_policy
            );
            Err(failed(Cause::Policy, text))
        }
    }
}

/// What is left to try, in this order: the key, the password, and the password as the answer to a question.
struct Tries {
    key: Option<Arc<PrivateKey>>,
    password: Option<Secret>,
    /// The password again, for `keyboard-interactive`.
    answer: Option<Secret>,
    asked: usize,
}

impl Tries {
    fn new(endpoint: &Endpoint) -> Result<Self, NoLogin> {
        let key = endpoint.private_key.as_ref().map(|text| {
            let text = std::str::from_utf8(text.expose()).map_err(|error| error.to_string())?;
            PrivateKey::from_pem(text).map(Arc::new).map_err(|error| error.to_string())
        });
        let key = key.transpose().map_err(|error| {
            let text = format!("the PrivateKey of the secret cannot be read: {error}");
            failed(Cause::Connector, text)
        })?;
        let copy =
            || endpoint.password.as_ref().map(|password| Secret::new(password.expose().to_vec()));
        if key.is_none() && endpoint.password.is_none() {
            let text = "Private key not found: the secret has neither PrivateKey nor Password";
            return Err(failed(Cause::Connector, text));
        }
        Ok(Self { key, password: copy(), answer: copy(), asked: 0 })
    }

    /// Tries the next credential, one of these methods if the server has named them.
    fn next(
        &mut self,
        link: &mut Link,
        endpoint: &Endpoint,
        methods: Option<&[String]>,
    ) -> Result<(), NoLogin> {
        let takes =
            |method: &str| methods.is_none_or(|methods| methods.iter().any(|one| one == method));
        let credential = if takes("publickey")
            && let Some(key) = self.key.take()
        {
            Credential::Key { key, certificate: None }
        } else if takes("password")
            && let Some(password) = self.password.take()
        {
            Credential::Password(password)
        } else if takes("keyboard-interactive") && self.answer.is_some() && self.asked == 0 {
            self.asked = 1;
            Credential::KeyboardInteractive
        } else {
            return Err(refused());
        };
        link.ssh.authenticate(&endpoint.user, credential);
        Ok(())
    }

    /// Answers one question that may not be shown, once, with the password. Servers end with a round without questions.
    fn respond(&mut self, link: &mut Link, questions: &[(String, bool)]) -> Result<(), NoLogin> {
        match questions {
            [] if self.asked < limits::OUTBOUND_PROMPTS => {
                self.asked += 1;
                link.ssh.respond(&[]);
                Ok(())
            }
            [(_, false)] => {
                let answer = self.answer.take().ok_or_else(refused)?;
                link.ssh.respond(&[answer]);
                Ok(())
            }
            _ => Err(failed(Cause::Login, "the server asks for more than a password")),
        }
    }
}

/// Opens the channel and starts SFTP in it.
pub(super) async fn start_sftp(link: &mut Link) -> Result<ChannelId, NoLogin> {
    let opened =
        link.ssh.open().ok_or_else(|| failed(Cause::Sftp, "the connection opens no channel"))?;
    loop {
        match link.event().await? {
            ClientEvent::Opened(channel) if channel == opened => {
                link.ssh.request(channel, &Request::Subsystem("sftp".to_owned()));
            }
            ClientEvent::OpenFailed { .. } | ClientEvent::Closed(_) => {
                return Err(failed(Cause::Sftp, "the server opens no channel"));
            }
            ClientEvent::Answered { accepted: true, .. } => return Ok(opened),
            ClientEvent::Answered { accepted: false, .. } => {
                return Err(failed(Cause::Sftp, "the server has no SFTP"));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_a_name_and_a_reason_of_its_own() {
        for (cause, name, reason) in Cause::ALL {
            assert_eq!((cause.name(), cause.reason()), (name, reason));
            let same = |other: &&(Cause, &str, &str)| other.1 == name || other.2 == reason;
            assert_eq!(Cause::ALL.iter().filter(same).count(), 1, "{name}");
        }
    }

    #[test]
    fn each_cause_is_documented() {
        let documentation = include_str!("../../../../docs/metrics.md");
        let names = Cause::ALL.map(|(_, name, _)| name);
        for name in names.iter().chain(&["session", "abandoned"]) {
            assert!(documentation.contains(&format!("`{name}`")), "{name}");
        }
    }
}

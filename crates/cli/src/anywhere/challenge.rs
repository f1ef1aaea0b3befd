//! The answers to ACME's challenges: at an HTTP or TLS port, or in DNS by a program of the operator.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use http::request::Parts;
use http::{Response, StatusCode};
use outlast_agent::acme;
use outlast_crypto::Secret;
use outlast_net::acme::TlsAnswers;
use outlast_net::local::{Answers, Local, Origin};
use outlast_net::server::system_clock;
use tokio::task::JoinSet;

use crate::child;
use crate::failure::Failure;
use crate::listeners::listen_at;

/// Where the answers to http-01 are (RFC 8555, section 8.3).
const PATH: &str = "/.well-known/acme-challenge/";
/// Connections of validators at the same time.
const CONNECTIONS: usize = 64;
/// Longest run of a hook: it may wait until all servers of a zone have a record.
const HOOK: Duration = Duration::from_secs(600);

/// How names are validated.
#[derive(Clone)]
pub(crate) enum Solver {
    /// http-01, at this address.
    Http(SocketAddr),
    /// tls-alpn-01, at this address.
    TlsAlpn(SocketAddr),
    /// dns-01, by this program.
    Dns(PathBuf),
}

/// An answer that is there to be found.
pub(super) enum Presented {
    /// The server ends with this.
    Serving { _tasks: JoinSet<()> },
    /// A record that the program must take away.
    Record { hook: PathBuf, name: String, value: String },
}

/// The answer to http-01, by its token.
struct Tokens(HashMap<String, String>);

impl Solver {
    /// Type of the challenge.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Http(_) => "http-01",
            Self::TlsAlpn(_) => "tls-alpn-01",
            Self::Dns(_) => "dns-01",
        }
    }

    /// What to check if the server does not find the answer.
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::Http(_) => {
                "the server must reach this machine under the name, at port 80 or where its settings say"
            }
            Self::TlsAlpn(_) => {
                "the server must reach this machine under the name, at port 443 or where its settings say, with no other TLS server between them"
            }
            Self::Dns(_) => {
                "the server must see the TXT record: `present` of the hook ends when all servers of the zone have it"
            }
        }
    }

    /// Answers the challenge for `name` from now on, until [`Presented::withdraw`].
    pub(super) async fn present(
        &self,
        name: &str,
        token: String,
        key_authorization: String,
    ) -> Result<Presented, Failure> {
        let mut tasks = JoinSet::new();
        match self {
            Self::Http(listen) => {
                let (listener, _) = listen_at(*listen, "--listen")?;
                let tokens = Tokens(HashMap::from([(token, key_authorization)]));
                tasks.spawn(Local::new(tokens.into(), CONNECTIONS).tcp(listener));
            }
            Self::TlsAlpn(listen) => {
                let (listener, _) = listen_at(*listen, "--listen")?;
                let now = system_clock().div_euclid(1000);
                let failed = |error: &dyn std::fmt::Display| Failure::new(error.to_string());
                let answer = acme::tls_answer(name, &key_authorization, now);
                let answer = answer.map_err(|error| failed(&error))?;
                let server = TlsAnswers::new(answer.certificate, &answer.private_key);
                tasks.spawn(server.map_err(|error| failed(&error))?.serve(listener));
            }
            Self::Dns(hook) => {
                let (name, value) = acme::dns_answer(name, &key_authorization);
                let record = Presented::Record { hook: hook.clone(), name, value };
                if let Err(failure) = record.call("present").await {
                    // It may have done half of it.
                    record.withdraw().await;
                    return Err(failure);
                }
                return Ok(record);
            }
        }
        Ok(Presented::Serving { _tasks: tasks })
    }
}

impl Presented {
    /// Takes the answer away.
    pub(super) async fn withdraw(self) {
        if let Err(failure) = self.call("cleanup").await {
            // The certificate does not depend on it.
            tracing::warn!(error = failure.message(), "a TXT record may be left behind");
        }
    }

    async fn call(&self, action: &'static str) -> Result<(), Failure> {
        let Self::Record { hook, name, value } = self else { return Ok(()) };
        let (hook, name, value) = (hook.clone(), name.clone(), value.clone());
        let running = move || run(&hook, action, &name, &value);
        let ended = tokio::task::spawn_blocking(running).await;
        ended.map_err(|error| Failure::new(format!("the hook did not end: {error}")))?
    }
}

/// Runs `PROGRAM present|cleanup NAME VALUE`, as lego does. It has this program's environment, in which the credentials for
/// the zone may be.
fn run(hook: &Path, action: &str, name: &str, value: &str) -> Result<(), Failure> {
    let wrong = |what: &dyn std::fmt::Display| {
        Failure::new(format!("the hook {} {action} {name} failed: {what}", hook.display())).hint(
            "it is called as PROGRAM present|cleanup NAME VALUE, and ends with 0 when the TXT record is there or gone",
        )
    };
    // stdout is for results: what the program says goes to the log.
    let log = std::io::stderr().as_fd().try_clone_to_owned().map_err(|error| wrong(&error))?;
    let mut command = Command::new(hook);
    command.args([action, name, value]).stdin(Stdio::null()).stdout(log);
    let mut child = command.spawn().map_err(|error| wrong(&error))?;
    match child::wait(&mut child, HOOK).map_err(|error| wrong(&error))? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(wrong(&status)),
        None => Err(wrong(&format!("it took longer than {} s", HOOK.as_secs()))),
    }
}

impl Answers for Tokens {
    type Caller = ();

    fn connected(&self, _: Origin) {}

    async fn answer(&self, (): &(), head: Parts, _: bool) -> Response<Secret> {
        let token = head.uri.path().strip_prefix(PATH);
        let found = token.and_then(|token| self.0.get(token));
        let mut response =
            Response::new(Secret::new(found.cloned().unwrap_or_default().into_bytes()));
        if found.is_none() {
            *response.status_mut() = StatusCode::NOT_FOUND;
        }
        response
    }
}

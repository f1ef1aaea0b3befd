//! `outlast credentials serve`: the metadata service of EC2, version 2, on localhost.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};
use outlast_agent::imds::{Imds, Step, TTL_HEADER, document};
use outlast_crypto::Secret;
use outlast_net::local::{Answers, Local, Origin};
use outlast_net::server::system_clock;

use super::Machine;
use crate::agent::now_ms;
use crate::anywhere::{NoSession, Sessions};
use crate::commands::proxy::Signals;
use crate::commands::server::start_log;
use crate::failure::Failure;
use crate::listeners::listen_at;
use crate::output;

/// Concurrent connections.
const CONNECTIONS: usize = 256;

/// Arguments of `serve`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    machine: Machine,
    /// Port on 127.0.0.1; 0 picks a free one.
    #[arg(long, default_value_t = 9911)]
    port: u16,
    /// What to log to stderr: error, warn, info, debug, or directives such as outlast=debug [default: info].
    #[arg(long, env = "OUTLAST_LOG")]
    log: Option<String>,
}

struct Service {
    imds: Mutex<Imds>,
    sessions: tokio::sync::Mutex<Sessions>,
}

/// Serves until SIGTERM or SIGINT.
pub(super) async fn run(arguments: &Arguments) -> Result<(), Failure> {
    start_log(arguments.log.as_deref().unwrap_or("info"))?;
    let mut signals = Signals::new()?;
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    let (listener, address) = listen_at(at, "--port")?;
    let mut sessions = arguments.machine.sessions()?;
    // A refusal is told at the start, not to the first program.
    if let Err(NoSession::Failed(failure)) = sessions.current().await {
        return Err(failure);
    }
    let role = arguments.machine.options.wanted()?.role_arn;
    let imds = Mutex::new(Imds::new(&role, &arguments.machine.reach()?.region));
    let service = Arc::new(Service { imds, sessions: tokio::sync::Mutex::new(sessions) });
    let serving = tokio::spawn(Local::new(service, CONNECTIONS).tcp(listener));
    output::line(&format!("listening on http://{address}"));
    output::line(&format!("export AWS_EC2_METADATA_SERVICE_ENDPOINT=http://{address}/"));
    while signals.next().await {}
    serving.abort();
    Ok(())
}

impl Answers for Service {
    type Caller = ();

    fn connected(&self, _: Origin) {}

    async fn answer(&self, (): &(), head: Parts, is_over_limit: bool) -> Response<Secret> {
        if is_over_limit {
            return text(429, "too many connections\n");
        }
        let step = self.imds.lock().unwrap_or_else(PoisonError::into_inner).read(&head, now_ms());
        match step {
            Step::Text(status, body) => text(status, &body),
            Step::Token(token, seconds) => {
                let mut response = text(200, &token);
                response.headers_mut().insert(TTL_HEADER, HeaderValue::from(seconds));
                response
            }
            Step::Credentials => match self.sessions.lock().await.current().await {
                Ok(session) => {
                    let now = system_clock().div_euclid(1000);
                    let mut response = text(200, &document(session, now));
                    let kind = HeaderValue::from_static("application/json");
                    response.headers_mut().insert("content-type", kind);
                    response
                }
                Err(problem) => {
                    let status = if matches!(problem, NoSession::Away(_)) { 503 } else { 500 };
                    let failure = Failure::from(problem);
                    tracing::error!(error = failure.message(), "there are no credentials");
                    text(status, "there are no credentials: see the log\n")
                }
            },
        }
    }
}

fn text(status: u16, text: &str) -> Response<Secret> {
    let mut response = Response::new(Secret::new(text.as_bytes().to_vec()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert("content-type", HeaderValue::from_static("text/plain"));
    response
}

//! Connections to SFTP servers outside: those of connectors.
//!
//! [`Outbound::connect`] resolves the host once and connects to an address that [`Destinations`] permit, negotiates by the
//! connector's security policy, checks the server's key, logs in and starts SFTP. A caller of the API does not
//! learn whether a host has no address or none that is permitted; the log tells them apart. Each connection is reported to the
//! ledger and to the metrics, as those of listeners are, and so is each that was not made.

mod destinations;
mod link;
mod login;
mod remote;
mod report;

use std::net::SocketAddr;
use std::sync::Arc;

use outlast_api::outside::ConnectionFailure;
use outlast_domain::transfer::connector::{ConnectionFacts, Endpoint, Failure, FailureCode};
use outlast_ledger::Observe;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

pub use destinations::{Destinations, NotADestination};
pub(crate) use remote::{Broken, Remote};

use crate::clock::Clock;
use crate::limits;
use crate::metrics::ConnectorCounts;
use link::Link;
use login::{Cause, HostKeys, NoLogin};
use report::Report;

/// Without a difference, since names of the operator's network are nothing that callers may find out.
const NO_DESTINATION: &str = "Unknown Host/Connection failed: the host has no address that connectors may connect to; the \
                              server's log has the reason";

/// Connects to servers outside.
pub struct Outbound {
    destinations: Destinations,
    clock: Clock,
    observer: Option<Arc<dyn Observe>>,
    counts: ConnectorCounts,
}

/// A connection that is being made: it is counted whatever comes of it, also if nobody waits for it any more.
struct Counted<'a> {
    counts: &'a ConnectorCounts,
    outcome: &'static str,
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.counts.add(self.outcome);
    }
}

impl Outbound {
    /// Connects to these destinations only. `observer` receives the reports of connections.
    pub fn new(
        destinations: Destinations,
        clock: Clock,
        observer: Option<Arc<dyn Observe>>,
        counts: ConnectorCounts,
    ) -> Self {
        Self { destinations, clock, observer, counts }
    }

    /// Connects, logs in and starts SFTP.
    ///
    /// # Errors
    /// Why there is no session.
    pub(crate) async fn connect(&self, endpoint: &Endpoint) -> Result<Remote, Failure> {
        self.session(endpoint, HostKeys::Trusted).await.map_err(|error| error.failure)
    }

    async fn session(&self, endpoint: &Endpoint, keys: HostKeys) -> Result<Remote, NoLogin> {
        let mut counted = Counted { counts: &self.counts, outcome: "abandoned" };
        let outcome = self.open(endpoint, keys).await;
        counted.outcome = match &outcome {
            Ok(_) => "session",
            Err(error) => error.cause.name(),
        };
        outcome
    }

    async fn open(&self, endpoint: &Endpoint, keys: HostKeys) -> Result<Remote, NoLogin> {
        let rules = login::rules(endpoint)?;
        let config = login::config(endpoint, &rules, keys)?;
        let mut report = Report::new(self.observer.clone(), self.clock, rules, endpoint);
        let stream = match self.stream(endpoint).await {
            Ok(stream) => stream,
            Err(error) => {
                report.failed(error.cause.reason());
                return Err(error);
            }
        };
        report.connected(stream.peer_addr().ok());
        let mut link = Link::new(config, stream, self.clock, report);
        let login = async {
            let seen = login::authenticate(&mut link, endpoint).await?;
            Ok::<_, NoLogin>((login::start_sftp(&mut link).await?, seen))
        };
        let login = match timeout(limits::OUTBOUND_LOGIN, login).await {
            Ok(outcome) => outcome,
            Err(_) => Err(late("the server did not let the connector in in time")),
        };
        let (channel, host_key) = login.inspect_err(|error| {
            link.report.failed(error.cause.reason());
        })?;
        match timeout(limits::OUTBOUND_LOGIN, Remote::start(link, channel, host_key)).await {
            Ok(Ok(remote)) => Ok(remote),
            Ok(Err(failure)) => Err(NoLogin::new(Cause::Sftp, failure)),
            Err(_) => Err(late("the server did not start SFTP in time")),
        }
    }

    /// Logs in and out again.
    ///
    /// # Errors
    /// Why there is no session, and the key of a server that is not trusted.
    pub async fn test(&self, endpoint: &Endpoint) -> Result<ConnectionFacts, ConnectionFailure> {
        let tested = timeout(limits::OUTBOUND_TEST, self.tested(endpoint)).await;
        tested.unwrap_or_else(|_| {
            let message = "Unknown Host/Connection failed: no answer in time".to_owned();
            Err(ConnectionFailure { message, host_key: None })
        })
    }

    async fn tested(&self, endpoint: &Endpoint) -> Result<ConnectionFacts, ConnectionFailure> {
        match self.session(endpoint, HostKeys::Trusted).await {
            Ok(remote) => {
                let host_key = remote.host_key().to_owned();
                remote.end().await;
                Ok(ConnectionFacts { host_key })
            }
            Err(error) => {
                let mut host_key = error.host_key;
                if error.has_other_key {
                    // The server has no key of the types that are trusted. Which one it has tells only a connection that takes any.
                    host_key = self
                        .session(endpoint, HostKeys::Any)
                        .await
                        .err()
                        .and_then(|error| error.host_key);
                }
                Err(ConnectionFailure { message: error.failure.message, host_key })
            }
        }
    }

    /// Connects to the first permitted address that answers.
    async fn stream(&self, endpoint: &Endpoint) -> Result<TcpStream, NoLogin> {
        let Endpoint { host, port, .. } = endpoint;
        let connecting = async {
            let found = lookup_host((host.as_str(), *port)).await.map_err(|error| {
                tracing::info!(connector = endpoint.connector_arn, host, %error, "the host of a connector has no address");
                nowhere()
            })?;
            let (permitted, refused): (Vec<SocketAddr>, Vec<SocketAddr>) =
                found.partition(|address| self.destinations.permit(host, *port, address.ip()));
            if permitted.is_empty() && refused.is_empty() {
                return Err(nowhere());
            }
            if permitted.is_empty() {
                let addresses: Vec<_> = refused.iter().take(limits::MAX_ADDRESSES).collect();
                tracing::warn!(
                    connector = endpoint.connector_arn,
                    host,
                    port,
                    ?addresses,
                    "a connector may not connect to its destination: see connectors.destinations in outlast.toml"
                );
                return Err(nowhere());
            }
            let mut last = None;
            for address in permitted.into_iter().take(limits::MAX_ADDRESSES) {
                match TcpStream::connect(address).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => last = Some(error),
                }
            }
            let why = last.map(|error| error.kind().to_string()).unwrap_or_default();
            let text = format!("Unknown Host/Connection failed: {why}");
            let failure = Failure::new(FailureCode::Connection, text);
            Err(NoLogin::new(Cause::Unreachable, failure))
        };
        let stream = match timeout(limits::OUTBOUND_CONNECT, connecting).await {
            Ok(outcome) => outcome?,
            Err(_) => return Err(late("Unknown Host/Connection failed: no answer in time")),
        };
        // Small requests must not wait for each other's acknowledgements; without it they are slow, not wrong.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

fn nowhere() -> NoLogin {
    NoLogin::new(Cause::Destination, Failure::new(FailureCode::Connection, NO_DESTINATION))
}

fn late(message: &str) -> NoLogin {
    NoLogin::new(Cause::Timeout, Failure::new(FailureCode::Timeout, message))
}

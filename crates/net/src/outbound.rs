//! Connections to SFTP servers outside: those of connectors.
//!
//! [`Outbound::connect`] resolves the host once and connects to an address that [`Destinations`] permit, negotiates by the
//! connector's security policy, checks the server's key, logs in and starts SFTP. A caller of the API does not
//! learn whether a host has no address or none that is permitted; the log tells them apart.

mod destinations;
mod link;
mod login;
mod remote;

use std::net::SocketAddr;

use outlast_api::outside::ConnectionFailure;
use outlast_domain::transfer::connector::{ConnectionFacts, Endpoint, Failure, FailureCode};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

pub use destinations::{Destinations, NotADestination};
pub(crate) use remote::{Broken, Remote};

use crate::clock::Clock;
use crate::limits;
use link::Link;
use login::{HostKeys, NoLogin};

/// Without a difference, since names of the operator's network are nothing that callers may find out.
const NO_DESTINATION: &str = "Unknown Host/Connection failed: the host has no address that connectors may connect to; the \
                              server's log has the reason";

/// Connects to servers outside.
pub struct Outbound {
    destinations: Destinations,
    clock: Clock,
}

impl Outbound {
    /// Connects to these destinations only.
    pub fn new(destinations: Destinations, clock: Clock) -> Self {
        Self { destinations, clock }
    }

    /// Connects, logs in and starts SFTP.
    ///
    /// # Errors
    /// Why there is no session.
    pub(crate) async fn connect(&self, endpoint: &Endpoint) -> Result<Remote, Failure> {
        self.session(endpoint, HostKeys::Trusted).await.map_err(|error| error.failure)
    }

    async fn session(&self, endpoint: &Endpoint, keys: HostKeys) -> Result<Remote, NoLogin> {
        let config = login::config(endpoint, keys)?;
        let stream = self.stream(endpoint).await?;
        let mut link = Link::new(config, stream, self.clock);
        let login = async {
            let seen = login::authenticate(&mut link, endpoint).await?;
            Ok::<_, NoLogin>((login::start_sftp(&mut link).await?, seen))
        };
        let (channel, host_key) = match timeout(limits::OUTBOUND_LOGIN, login).await {
            Ok(outcome) => outcome?,
            Err(_) => return Err(late("the server did not let the connector in in time")),
        };
        match timeout(limits::OUTBOUND_LOGIN, Remote::start(link, channel, host_key)).await {
            Ok(started) => Ok(started?),
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
                unreachable(NO_DESTINATION)
            })?;
            let (permitted, refused): (Vec<SocketAddr>, Vec<SocketAddr>) =
                found.partition(|address| self.destinations.permit(host, *port, address.ip()));
            if permitted.is_empty() && refused.is_empty() {
                return Err(unreachable(NO_DESTINATION));
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
                return Err(unreachable(NO_DESTINATION));
            }
            let mut last = None;
            for address in permitted.into_iter().take(limits::MAX_ADDRESSES) {
                match TcpStream::connect(address).await {
                    Ok(stream) => return Ok(stream),
                    Err(error) => last = Some(error),
                }
            }
            let why = last.map(|error| error.kind().to_string()).unwrap_or_default();
            Err(unreachable(format!("Unknown Host/Connection failed: {why}")))
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

fn unreachable(message: impl Into<String>) -> NoLogin {
    Failure::new(FailureCode::Connection, message).into()
}

fn late(message: &str) -> NoLogin {
    Failure::new(FailureCode::Timeout, message).into()
}

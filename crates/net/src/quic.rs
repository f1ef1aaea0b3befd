//! QUIC: the same door over UDP, and HTTP/3 behind it.
//!
//! [`tls`] does the handshake under the door's policy, [`load`] keeps strangers within limits, [`h3`] and [`server`]
//! speak HTTP/3. s2n-quic does the rest, from packets to streams.

mod frames;
mod h3;
mod keys;
mod load;
#[cfg(any(test, feature = "fuzzing"))]
pub mod scripted;
mod server;
mod tls;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use s2n_quic::provider::io::tokio::Builder as Socket;
use s2n_quic::provider::limits::Limits;

use crate::door::Door;
use crate::observed::Counts;
use crate::slots::Slot;
use crate::watch::Watch;
use crate::{Negotiated, limits};
use load::{Closing, Counting, Load, Strangers, Tokens};
use tls::Greeting;

/// ALPN name of HTTP/3.
pub const HTTP3: &str = "h3";

/// Limits of a QUIC listener; the default is for HTTP/3.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Concurrent handshakes above which clients get a Retry first.
    pub retry_above: usize,
    /// Concurrent handshakes; further clients get no answer.
    pub max_handshakes: usize,
    /// Established connections, at most; for a further one an inactive connection is closed.
    pub max_connections: usize,
    /// Connections of one peer: an IPv4 address, or the first 64 bits of an IPv6 address. It may use the same
    /// fraction of the handshakes.
    pub connections_by_peer: usize,
    /// Bidirectional streams that a peer may have open.
    pub streams: u64,
    /// Longest time without a packet.
    pub idle: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retry_above: limits::RETRY_ABOVE,
            max_handshakes: limits::MAX_HANDSHAKES,
            max_connections: limits::MAX_CONNECTIONS,
            connections_by_peer: limits::MAX_CONNECTIONS / limits::PEER_SHARE,
            streams: limits::MAX_STREAMS.into(),
            idle: limits::REQUEST_HEAD,
        }
    }
}

/// Accepts QUIC connections.
pub struct Listener {
    server: s2n_quic::Server,
    address: SocketAddr,
}

/// A connection after its handshake.
pub struct Accepted {
    /// The connection.
    pub connection: s2n_quic::Connection,
    /// Address of the client during the handshake.
    pub peer: SocketAddr,
    /// What was negotiated.
    pub negotiated: Negotiated,
    /// Reports the connection's end when dropped.
    pub watch: Watch,
    /// Its slot among the connections.
    pub slot: Slot,
}

impl Listener {
    /// Serves behind a door on a socket. The door must have ALPN names for QUIC.
    pub fn start(door: Arc<Door>, socket: UdpSocket, settings: Settings) -> io::Result<Self> {
        let address = socket.local_addr()?;
        socket.set_nonblocking(true)?;
        let load = Arc::new(Load::new(&settings, door.tally()));
        let socket = Socket::default()
            .with_rx_socket(socket)?
            // Room for a burst of first packets; the kernel may allow less.
            .with_recv_buffer_size(limits::QUIC_RECEIVE_BUFFER)?
            .build()?;
        let server = s2n_quic::Server::builder()
            .with_tls(tls::Provider::new(door, load.clone()))
            .map_err(io::Error::other)?
            .with_io(socket)
            .map_err(io::Error::other)?
            .with_limits(stream_limits(&settings).map_err(io::Error::other)?)
            .map_err(io::Error::other)?
            .with_endpoint_limits(Strangers::new(&settings, load.clone()))
            .map_err(io::Error::other)?
            .with_address_token(Tokens::new(load))
            .map_err(io::Error::other)?
            .with_event(Counting)
            .map_err(io::Error::other)?
            .with_connection_close_formatter(Closing)
            .map_err(io::Error::other)?
            .start()
            .map_err(io::Error::other)?;
        Ok(Self { server, address })
    }

    /// Local address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection that has completed its handshake; `None` if the socket is gone.
    pub async fn accept(&mut self) -> Option<Accepted> {
        loop {
            let mut connection = self.server.accept().await?;
            let greeting = connection.take_tls_context().and_then(|it| it.downcast().ok());
            // Both are present on every connection whose handshake was ours.
            let Some(greeting) = greeting else { continue };
            let counts = connection.query_event_context(|counts: &Arc<Counts>| counts.clone());
            let Greeting { mut watch, peer, negotiated, slot } = *greeting;
            watch.counted(counts.unwrap_or_default());
            return Some(Accepted { connection, peer, negotiated, watch, slot });
        }
    }
}

fn stream_limits(
    settings: &Settings,
) -> Result<Limits, impl std::error::Error + Send + Sync + use<>> {
    Limits::new()
        .with_max_handshake_duration(limits::HANDSHAKE)?
        .with_max_idle_timeout(settings.idle)?
        .with_data_window(limits::QUIC_WINDOW)?
        .with_bidirectional_local_data_window(limits::QUIC_STREAM_WINDOW)?
        .with_bidirectional_remote_data_window(limits::QUIC_STREAM_WINDOW)?
        .with_unidirectional_data_window(limits::MAX_HEAD as u64)?
        .with_max_send_buffer_size(limits::QUIC_SEND_BUFFER)?
        .with_max_open_remote_bidirectional_streams(settings.streams)?
        .with_max_open_remote_unidirectional_streams(limits::UNIDIRECTIONAL_STREAMS)
}

//! Shared by all connections of an attack: how they are opened, and the volume.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustls::ClientConfig;
use serde::{Deserialize, Serialize};
use tokio::io::{self, AsyncRead, AsyncReadExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::Mutex;
use tokio::time::{Interval, MissedTickBehavior};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::field::{Field, attackers_address, client_config, server_name};
use crate::error::LabError;
use crate::server::cpu_time;

/// Volume of an attack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Connections that were opened.
    pub connections: u64,
    /// Connections, or QUIC handshakes, that failed.
    pub refused: u64,
    /// Connections that the server ended.
    pub ended_by_server: u64,
    /// Requests that were started.
    pub requests: u64,
    /// Bytes that were sent, inside TLS.
    pub bytes: u64,
    /// CPU time of the attacking process, in milliseconds.
    pub cpu_ms: u64,
}

impl Volume {
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            connections: self.connections + other.connections,
            refused: self.refused + other.refused,
            ended_by_server: self.ended_by_server + other.ended_by_server,
            requests: self.requests + other.requests,
            bytes: self.bytes + other.bytes,
            cpu_ms: self.cpu_ms + other.cpu_ms,
        }
    }
}

/// State that all lives of an attack share.
pub(super) struct Attack {
    pub field: Field,
    http1: Arc<ClientConfig>,
    http2: Arc<ClientConfig>,
    pace: Mutex<Interval>,
    /// Number of lives so far.
    pub begun: AtomicU64,
    connections: AtomicU64,
    refused: AtomicU64,
    /// Lives that the server ended.
    pub ended: AtomicU64,
    requests: AtomicU64,
    bytes: AtomicU64,
}

impl Attack {
    /// For lives that begin at most so many times each second.
    pub fn new(field: Field, lives_per_second: u32) -> Result<Self, LabError> {
        let roots = match &field.proxy {
            Some(proxy) => proxy.roots()?,
            None => field.access.roots()?,
        };
        let period = Duration::from_secs(1) / lives_per_second.max(1);
        let mut pace = tokio::time::interval(period);
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            http1: client_config(&roots, &[b"http/1.1"])?,
            http2: client_config(&roots, &[b"h2"])?,
            field,
            pace: Mutex::new(pace),
            begun: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        })
    }

    /// Waits for its turn to open a connection.
    pub async fn turn(&self) {
        self.pace.lock().await.tick().await;
    }

    /// The volume so far.
    pub fn volume(&self) -> Volume {
        let told = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let cpu = cpu_time(std::process::id()).unwrap_or_default();
        Volume {
            connections: told(&self.connections),
            refused: told(&self.refused),
            ended_by_server: told(&self.ended),
            requests: told(&self.requests),
            bytes: told(&self.bytes),
            cpu_ms: u64::try_from(cpu.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Counts an opened connection.
    pub fn opened(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a refused connection.
    pub fn was_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts requests that were started, and their bytes.
    pub fn sent(&self, requests: u64, bytes: usize) {
        self.requests.fetch_add(requests, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Opens a TCP connection.
    pub async fn tcp(&self, to: SocketAddr) -> io::Result<TcpStream> {
        let open = async {
            let socket = if to.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            socket.bind(SocketAddr::new(attackers_address(to), 0))?;
            let stream = socket.connect(to).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        };
        self.count(open.await)
    }

    /// Opens a TLS connection for HTTP/1.1.
    pub async fn tls(&self) -> io::Result<TlsStream<TcpStream>> {
        self.handshake(self.http1.clone()).await
    }

    /// Opens a TLS connection for HTTP/2.
    pub async fn tls_http2(&self) -> io::Result<TlsStream<TcpStream>> {
        self.handshake(self.http2.clone()).await
    }

    /// The TLS configuration of the connections.
    pub fn config(&self) -> &Arc<ClientConfig> {
        &self.http1
    }

    async fn handshake(&self, config: Arc<ClientConfig>) -> io::Result<TlsStream<TcpStream>> {
        let to = self.field.proxy.as_ref().map_or(self.field.access.address, |proxy| proxy.address);
        let stream = self.tcp(to).await?;
        let name = server_name().map_err(io::Error::other)?;
        let shaken = TlsConnector::from(config).connect(name, stream).await;
        shaken.inspect_err(|_| self.was_refused())
    }

    fn count<T>(&self, outcome: io::Result<T>) -> io::Result<T> {
        match &outcome {
            Ok(_) => self.opened(),
            Err(_) => self.was_refused(),
        }
        outcome
    }
}

/// Reads and discards until the other side ends, which is an error.
pub(super) async fn drain(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut piece = [0; 4096];
    while stream.read(&mut piece).await? > 0 {}
    Err(io::ErrorKind::UnexpectedEof.into())
}

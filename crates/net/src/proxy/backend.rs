//! Backends of a listener: choosing one and connecting to it.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::body::Spare;
use super::pieces::{Transport, Wide};
use super::protocol::{self, Announcement, Version};
use super::{postgres, upstream_tls::UpstreamTls};
use crate::limits;

/// Address of a backend.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Address {
    /// Host name or address, and port.
    Tcp(String, u16),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A backend.
#[derive(Clone)]
pub struct Backend {
    /// Its address.
    pub address: Address,
    /// TLS settings for it, if it uses TLS.
    pub tls: Option<Arc<UpstreamTls>>,
}

/// How a backend is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Balance {
    /// One after the other.
    #[default]
    RoundRobin,
    /// The one with the fewest connections.
    LeastConnections,
}

/// All strategies and their names.
pub const BALANCES: &[(&str, Balance)] =
    &[("round-robin", Balance::RoundRobin), ("least-connections", Balance::LeastConnections)];

/// How connections to backends are made.
#[derive(Debug, Clone)]
pub struct Connecting {
    /// How a backend is chosen.
    pub balance: Balance,
    /// Time limit to connect, including TLS.
    pub timeout: Duration,
    /// Whether each connection begins with a PROXY protocol header.
    pub announce: Option<Version>,
    /// Whether PostgreSQL's request for TLS precedes TLS.
    pub postgres: bool,
}

impl Default for Connecting {
    fn default() -> Self {
        Self {
            balance: Balance::default(),
            timeout: limits::BACKEND_CONNECT,
            announce: None,
            postgres: false,
        }
    }
}

/// Why no backend is available.
#[derive(Debug, thiserror::Error)]
pub enum Unavailable {
    /// None is known to be healthy.
    #[error("no backend server is healthy")]
    NoneWell,
    /// None accepted in time; contains the last one's error.
    #[error("{address} did not accept in time")]
    TimedOut {
        /// The last backend tried.
        address: Address,
    },
    /// None accepted; contains the last one's error.
    #[error("{address}: {error}")]
    Refused {
        /// The last backend tried.
        address: Address,
        /// Its reason.
        error: io::Error,
    },
}

/// A backend and its state.
pub(crate) struct Target {
    pub(crate) backend: Backend,
    /// Result of the health checks, shared with connections that began under earlier settings.
    pub(crate) well: Arc<AtomicBool>,
    /// Open connections or requests.
    open: AtomicUsize,
    /// When it last failed to accept: for a while others are tried first.
    failed: Mutex<Option<Instant>>,
    /// Idle connections for the next request.
    pub(crate) spare: Spare,
}

/// Counts a connection to a backend until it is dropped.
pub(crate) struct Lease(pub(crate) Arc<Target>);

impl Lease {
    fn new(target: Arc<Target>) -> Self {
        target.open.fetch_add(1, Ordering::Relaxed);
        Self(target)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Target {
    fn rests(&self) -> bool {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some_and(|since| since.elapsed() < limits::BACKEND_REST)
    }

    fn remember(&self, failed: bool) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = failed.then(Instant::now);
    }
}

/// Backends of a listener.
pub(crate) struct Backends {
    pub(crate) targets: Vec<Arc<Target>>,
    pub(crate) connecting: Connecting,
    next: AtomicUsize,
}

impl Backends {
    /// Keeps the health of backends from earlier settings as long as they are `checked`.
    pub(crate) fn new(
        list: Vec<Backend>,
        connecting: Connecting,
        checked: bool,
        before: Option<&Self>,
    ) -> Self {
        let known = before.into_iter().flat_map(|before| &before.targets);
        let mut known: HashMap<Address, Arc<AtomicBool>> =
            known.map(|target| (target.backend.address.clone(), target.well.clone())).collect();
        for (address, well) in &known {
            // Nobody would ever report again that it is healthy.
            if !checked || list.iter().all(|backend| backend.address != *address) {
                well.store(true, Ordering::Relaxed);
            }
        }
        let well = || Arc::new(AtomicBool::new(true));
        let targets = list.into_iter().map(|backend| {
            Arc::new(Target {
                well: known.entry(backend.address.clone()).or_insert_with(well).clone(),
                open: AtomicUsize::new(0),
                failed: Mutex::default(),
                spare: Spare::default(),
                backend,
            })
        });
        Self { targets: targets.collect(), connecting, next: AtomicUsize::new(0) }
    }

    /// Healthy backends in the order in which to try them.
    pub(crate) fn order(&self) -> Vec<Arc<Target>> {
        let len = self.targets.len().max(1);
        let first = self.next.fetch_add(1, Ordering::Relaxed) % len;
        let (before, from) = self.targets.split_at(first.min(self.targets.len()));
        let mut order: Vec<_> = from.iter().chain(before).cloned().collect();
        order.retain(|target| target.well.load(Ordering::Relaxed));
        if self.connecting.balance == Balance::LeastConnections {
            order.sort_by_key(|target| target.open.load(Ordering::Relaxed));
        }
        order.sort_by_key(|target| target.rests());
        order
    }

    /// Connects to the first backend that accepts.
    pub(crate) async fn connect(
        &self,
        announcement: &Announcement,
    ) -> Result<(Box<dyn Transport>, Lease), Unavailable> {
        let mut last = Unavailable::NoneWell;
        for target in self.order() {
            let lease = Lease::new(target);
            match self.connect_to(&lease.0, announcement).await {
                Ok(stream) => return Ok((stream, lease)),
                Err(error) => {
                    tracing::warn!(%error, "a backend server did not accept a connection");
                    last = error;
                }
            }
        }
        Err(last)
    }

    /// Connects to this backend.
    pub(crate) async fn connect_to(
        &self,
        target: &Target,
        announcement: &Announcement,
    ) -> Result<Box<dyn Transport>, Unavailable> {
        let header = self.connecting.announce.map(|version| protocol::write(version, announcement));
        let address = || target.backend.address.clone();
        let opening = Box::pin(self.open(target, header));
        let outcome = match timeout(self.connecting.timeout, opening).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(Unavailable::Refused { address: address(), error }),
            Err(_) => Err(Unavailable::TimedOut { address: address() }),
        };
        target.remember(outcome.is_err());
        outcome
    }

    async fn open(
        &self,
        target: &Target,
        header: Option<Vec<u8>>,
    ) -> io::Result<Box<dyn Transport>> {
        let Backend { address, tls } = &target.backend;
        match address {
            Address::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                stream.set_nodelay(true)?;
                self.begin(stream, header, tls.as_deref()).await
            }
            Address::Unix(path) => {
                let stream = UnixStream::connect(path).await?;
                self.begin(stream, header, tls.as_deref()).await
            }
        }
    }

    /// Sends the header and PostgreSQL's request and starts TLS, as far as configured.
    async fn begin(
        &self,
        mut stream: impl Transport + 'static,
        header: Option<Vec<u8>>,
        tls: Option<&UpstreamTls>,
    ) -> io::Result<Box<dyn Transport>> {
        if let Some(header) = header {
            stream.write_all(&header).await?;
        }
        let Some(tls) = tls else { return Ok(Box::new(stream)) };
        if self.connecting.postgres {
            postgres::ask_for_tls(&mut stream).await?;
        }
        Ok(Box::new(tls.connect(Wide::new(stream)).await?))
    }

    /// A slot at this backend for one request.
    pub(crate) fn lease(&self, target: Arc<Target>) -> Lease {
        Lease::new(target)
    }
}

/// Name that a backend's certificate must contain.
pub fn server_name(host: &str) -> Result<ServerName<'static>, String> {
    ServerName::try_from(host.to_owned())
        .map_err(|_| format!("{host} is not a host name or address"))
}

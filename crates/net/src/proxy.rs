//! The door in front of any server: listeners that accept TLS like the service and forward the decrypted traffic.
//!
//! [`protocol`] is the PROXY protocol; the other modules are private.

mod backend;
mod body;
mod headers;
mod health;
mod http;
mod listener;
mod pieces;
mod postgres;
pub mod protocol;
mod pump;
mod route;
mod shown;
mod upstream_tls;

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use self::listener::Common;
use self::route::{Finish, Route};

pub use self::backend::{
    Address, BALANCES, Backend, Balance, Connecting, Unavailable, server_name,
};
pub use self::health::HealthCheck;
pub use self::route::{PROTOCOLS, Protocol, Settings};
pub use self::shown::{Tickets, server_certificate};
pub use self::upstream_tls::{Tell, UpstreamSettings, UpstreamTls};
pub use ipnet::IpNet;

/// Connections that wait to be accepted; the kernel may allow fewer.
const BACKLOG: u32 = 4096;

/// Why listeners cannot be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// Two of them have the same address.
    #[error("two listeners are at {0}")]
    Twice(SocketAddr),
    /// Two of them have the same name, so logs could not tell them apart and they would share ticket keys.
    #[error("two listeners are called {0}")]
    SameName(String),
    /// There is no backend.
    #[error("listener {0} has no backend server")]
    NoBackend(String),
    /// The address cannot be used for listening.
    #[error("{address}: {error}")]
    Listen {
        /// Requested address.
        address: SocketAddr,
        /// Error of the operating system.
        error: io::Error,
    },
}

/// Identifies a listener across configurations: its address, or its name if the system chooses the port.
type Key = (SocketAddr, Option<String>);

fn key(settings: &Settings) -> Key {
    (settings.listen, (settings.listen.port() == 0).then(|| settings.name.clone()))
}

/// A running listener.
struct Running {
    address: SocketAddr,
    route: Arc<RwLock<Arc<Route>>>,
    closing: watch::Sender<bool>,
    checks: Vec<AbortHandle>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.closing.send(true);
        self.checks.iter().for_each(AbortHandle::abort);
    }
}

/// Running listeners of this process.
pub struct Proxy {
    listeners: HashMap<Key, Running>,
    finish: watch::Sender<Finish>,
    open: mpsc::Sender<()>,
    /// Ends when nothing is open any more.
    all_closed: mpsc::Receiver<()>,
}

impl Proxy {
    /// Starts all listeners, or none.
    pub fn start(list: Vec<Settings>) -> Result<Self, ProxyError> {
        let (open, all_closed) = mpsc::channel(1);
        let (finish, _) = watch::channel(Finish::default());
        let mut proxy = Self { listeners: HashMap::new(), finish, open, all_closed };
        proxy.reload(list)?;
        Ok(proxy)
    }

    /// Applies other settings to new connections: adds, changes and closes listeners. Open connections keep their
    /// settings. If the new settings cannot be applied, nothing changes.
    pub fn reload(&mut self, list: Vec<Settings>) -> Result<(), ProxyError> {
        let mut seen = HashSet::new();
        let mut names = HashSet::new();
        let mut bound = HashMap::new();
        for settings in &list {
            if settings.backends.is_empty() {
                return Err(ProxyError::NoBackend(settings.name.clone()));
            }
            if !seen.insert(key(settings)) {
                return Err(ProxyError::Twice(settings.listen));
            }
            if !names.insert(settings.name.as_str()) {
                return Err(ProxyError::SameName(settings.name.clone()));
            }
            if !self.listeners.contains_key(&key(settings)) {
                let address = settings.listen;
                let listener =
                    bind(address).map_err(|error| ProxyError::Listen { address, error })?;
                bound.insert(key(settings), listener);
            }
        }
        drop(names);
        // From here on nothing can fail.
        self.listeners.retain(|key, _| seen.contains(key));
        for settings in list {
            let key = key(&settings);
            if let Some((listener, address)) = bound.remove(&key) {
                let running = self.open(settings, listener, address);
                self.listeners.insert(key, running);
            } else if let Some(running) = self.listeners.get_mut(&key) {
                running.replace(settings);
            }
        }
        Ok(())
    }

    fn open(&self, settings: Settings, listener: TcpListener, address: SocketAddr) -> Running {
        let route = Arc::new(Route::new(settings, None));
        let checks = check(&route);
        let route = Arc::new(RwLock::new(route));
        let (closing, closed) = watch::channel(false);
        let common = Common {
            route: route.clone(),
            finish: self.finish.subscribe(),
            open: self.open.clone(),
        };
        tokio::spawn(listener::accept(listener, common, closed));
        Running { address, route, closing, checks }
    }

    /// Names and addresses of the listeners, ordered by address.
    pub fn addresses(&self) -> Vec<(String, SocketAddr)> {
        let told = |running: &Running| {
            let route = running.route.read().unwrap_or_else(PoisonError::into_inner);
            (route.settings.name.clone(), running.address)
        };
        let mut all: Vec<_> = self.listeners.values().map(told).collect();
        all.sort_by_key(|(_, address)| *address);
        all
    }

    /// Accepts no new connections, lets open ones end by themselves during `grace`, and then cuts them off.
    pub async fn stop(self, grace: Duration) {
        let Self { listeners, finish, open, mut all_closed } = self;
        let _ = finish.send(Finish::Near);
        drop((listeners, open));
        if timeout(grace, all_closed.recv()).await.is_err() {
            let _ = finish.send(Finish::Now);
            let _ = timeout(crate::limits::LAST_WORDS, all_closed.recv()).await;
        }
    }
}

impl Running {
    fn replace(&mut self, settings: Settings) {
        let mut current = self.route.write().unwrap_or_else(PoisonError::into_inner);
        // They must not report anything after the new settings' checks.
        self.checks.drain(..).for_each(|check| check.abort());
        let route = Arc::new(Route::new(settings, Some(&current)));
        self.checks = check(&route);
        *current = route;
    }
}

/// Connects to every backend once and closes the connections again.
pub async fn probe(settings: &Settings) -> Result<(), Unavailable> {
    let mut connecting = settings.connecting.clone();
    connecting.postgres = settings.protocol == Protocol::Postgres;
    let backends = backend::Backends::new(settings.backends.clone(), connecting, false, None);
    let itself = protocol::Announcement::default();
    for target in &backends.targets {
        let mut stream = backends.connect_to(target, &itself).await?;
        let _ = stream.shutdown().await;
    }
    Ok(())
}

/// Starts health checks of the backends.
fn check(route: &Arc<Route>) -> Vec<AbortHandle> {
    let Some(health) = &route.settings.health else { return Vec::new() };
    let watch = |target: &Arc<backend::Target>| {
        let name = route.settings.name.clone();
        let watching = health::watch(route.backends.clone(), target.clone(), health.clone(), name);
        tokio::spawn(watching).abort_handle()
    };
    route.backends.targets.iter().map(watch).collect()
}

fn bind(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    // Inherited by each connection, so that a client that vanished is noticed.
    socket.set_keepalive(true)?;
    socket.bind(address)?;
    let listener = socket.listen(BACKLOG)?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

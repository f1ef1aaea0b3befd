//! Settings of a listener, and the parts of them that belong to each connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::backend::{Backend, Backends, Connecting};
use super::health::HealthCheck;
use super::postgres;
use super::protocol::Announcement;
use crate::activity::Activity;
use crate::door::Door;
use crate::metrics::Tally;
use crate::peer::Peer;
use crate::slots::{Number, Of, Slot, Slots};
use crate::watch::Watch;
use crate::{Negotiated, limits};

/// Protocol inside TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Arbitrary bytes.
    #[default]
    Tcp,
    /// HTTP/1.1 and HTTP/2.
    Http,
    /// PostgreSQL's protocol, which starts TLS in its own way.
    Postgres,
}

/// All protocols and their names.
pub const PROTOCOLS: &[(&str, Protocol)] =
    &[("tcp", Protocol::Tcp), ("http", Protocol::Http), ("postgres", Protocol::Postgres)];

impl Protocol {
    /// ALPN names in order of preference.
    pub fn alpn(self) -> &'static [&'static str] {
        match self {
            Self::Tcp => &[],
            Self::Http => crate::server::PROTOCOLS,
            Self::Postgres => &[postgres::ALPN],
        }
    }
}

/// Settings of a listener.
pub struct Settings {
    /// Name in logs and in the ledger.
    pub name: String,
    /// Address on which it listens.
    pub listen: SocketAddr,
    /// Protocol inside TLS.
    pub protocol: Protocol,
    /// TLS for clients; without it connections are not encrypted.
    pub door: Option<Arc<Door>>,
    /// The backends.
    pub backends: Vec<Backend>,
    /// How one is chosen and connected to.
    pub connecting: Connecting,
    /// Health checks, if any.
    pub health: Option<HealthCheck>,
    /// Proxies in front whose connections begin with a PROXY protocol header.
    pub proxies: Vec<IpNet>,
    /// Proxies in front whose `X-Forwarded-*` and `Forwarded` are trusted.
    pub trusted: Vec<IpNet>,
    /// Whether those fields are left as they are, because the listener is on the client's side.
    pub transparent: bool,
    /// Hosts that requests may name, without ports; `None` allows any.
    pub hosts: Option<Vec<String>>,
    /// Whether requests are forwarded with the negotiated parameters.
    pub tls_headers: bool,
    /// Longest time of a connection without a byte in either direction.
    pub idle: Duration,
    /// Longest time until a response over HTTP begins or continues.
    pub answer: Duration,
    /// Concurrent connections. For a further one over HTTP, a connection without an open request is closed; otherwise
    /// it waits for a slot, at most as long as a handshake may take. Over HTTP this also limits requests at the
    /// backends.
    pub max_connections: usize,
    /// Concurrent connections of one peer, which is an IPv4 address or the first 64 bits of an IPv6 address. By
    /// default an eighth, but at least [`limits::LEAST_PROXIED_BY_PEER`]. A client named in a PROXY protocol header
    /// is a peer of its own.
    pub connections_by_peer: Option<usize>,
}

impl Settings {
    /// Settings with the usual defaults.
    pub fn new(name: &str, listen: SocketAddr, backends: Vec<Backend>) -> Self {
        Self {
            name: name.to_owned(),
            listen,
            protocol: Protocol::default(),
            door: None,
            backends,
            connecting: Connecting::default(),
            health: None,
            proxies: Vec::new(),
            trusted: Vec::new(),
            transparent: false,
            hosts: None,
            tls_headers: false,
            idle: limits::PROXY_IDLE,
            answer: limits::BACKEND_ANSWER,
            max_connections: limits::MAX_PROXIED,
            connections_by_peer: None,
        }
    }

    /// Counters of limits that took effect.
    pub(crate) fn tally(&self) -> Tally {
        self.door.as_ref().map(|door| door.tally()).unwrap_or_default()
    }

    fn connections(&self) -> Number {
        let usual = (self.max_connections / limits::PEER_SHARE).max(limits::LEAST_PROXIED_BY_PEER);
        Number::of(self.max_connections, Some(self.connections_by_peer.unwrap_or(usual)))
    }

    /// For one client at least as many as it may have streams.
    fn requests(&self) -> Number {
        let least = limits::MAX_PROXY_STREAMS as usize;
        let Number { all, by_peer } = self.connections();
        Number::of(all.max(least), Some(by_peer.max(least)))
    }

    fn handshakes(&self) -> Number {
        Number::of_handshakes(limits::MAX_HANDSHAKES, self.connections())
    }
}

/// Settings in force, with their backends. A connection keeps those with which it began.
pub(crate) struct Route {
    pub(crate) settings: Settings,
    pub(crate) backends: Arc<Backends>,
    pub(super) connections: Arc<Slots>,
    requests: Arc<Slots>,
    pub(super) handshakes: Arc<Slots>,
}

impl Route {
    pub(crate) fn new(mut settings: Settings, before: Option<&Self>) -> Self {
        let list = std::mem::take(&mut settings.backends);
        let mut connecting = settings.connecting.clone();
        connecting.postgres = settings.protocol == Protocol::Postgres;
        let backends = Backends::new(
            list,
            connecting,
            settings.health.is_some(),
            before.map(|before| &*before.backends),
        );
        settings.max_connections = settings.max_connections.min(limits::MOST_CONNECTIONS);
        let slots = |of, number, before: Option<&Arc<Slots>>| match before {
            // Holders of a slot remain counted.
            Some(kept) => {
                kept.resize(number);
                kept.clone()
            }
            None => Slots::new(of, number, settings.tally()),
        };
        let connections = before.map(|before| &before.connections);
        let requests = before.map(|before| &before.requests);
        let handshakes = before.map(|before| &before.handshakes);
        let connections = slots(Of::Connections, settings.connections(), connections);
        let requests = slots(Of::Requests, settings.requests(), requests);
        let handshakes = slots(Of::Handshakes, settings.handshakes(), handshakes);
        Self { settings, backends: Arc::new(backends), connections, requests, handshakes }
    }

    /// A slot for a request of this peer among those at the backends; `None` if none becomes free in time.
    pub(crate) async fn slot(&self, peer: Option<Peer>, activity: &Arc<Activity>) -> Option<Slot> {
        let slot = self.requests.enter_in_turn(peer, activity, Duration::ZERO);
        timeout(self.settings.connecting.timeout, slot).await.ok()
    }

    /// Whether statements about clients from a proxy at this address are trusted.
    pub(crate) fn trusts(&self, peer: IpAddr) -> bool {
        contains(&self.settings.trusted, peer)
    }
}

pub(super) fn contains(nets: &[IpNet], address: IpAddr) -> bool {
    nets.iter().any(|net| net.contains(&address.to_canonical()))
}

/// Progress of the whole proxy's shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Finish {
    /// Running.
    #[default]
    Far,
    /// Open connections may finish; nothing new is begun.
    Near,
    /// Open connections are cut off.
    Now,
}

impl Finish {
    /// Waits until nothing new may be begun.
    pub(crate) async fn begins(finish: &mut watch::Receiver<Self>) {
        // If the sender is gone, that is the end too.
        let _ = finish.wait_for(|finish| *finish >= Self::Near).await;
    }

    /// Waits until open connections are cut off.
    pub(crate) async fn cuts(finish: &mut watch::Receiver<Self>) {
        let _ = finish.wait_for(|finish| *finish == Self::Now).await;
    }
}

/// A client's connection, for the code that serves it.
pub(crate) struct Front {
    pub(crate) route: Arc<Route>,
    pub(crate) finish: watch::Receiver<Finish>,
    /// Peer of the connection itself.
    pub(crate) direct: Option<SocketAddr>,
    /// Address of the client, if known.
    pub(crate) peer: Option<SocketAddr>,
    /// Peer whose limits apply; `None` for a proxy in front that has not named its client.
    pub(crate) of: Option<Peer>,
    /// Activity on it.
    pub(crate) activity: Arc<Activity>,
    /// Negotiated parameters; `None` without TLS.
    pub(crate) negotiated: Option<Negotiated>,
    /// What the backend is told, if anything.
    pub(crate) announcement: Announcement,
    pub(super) _watch: Option<Watch>,
    pub(super) _open: mpsc::Sender<()>,
}

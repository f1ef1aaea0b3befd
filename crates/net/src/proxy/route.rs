//! How a listener is set up, and what of it goes along with each connection.

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

/// What is spoken within TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Bytes.
    #[default]
    Tcp,
    /// HTTP/1.1 and HTTP/2.
    Http,
    /// PostgreSQL's protocol, whose TLS begins in its own way.
    Postgres,
}

/// Every protocol with its name.
pub const PROTOCOLS: &[(&str, Protocol)] =
    &[("tcp", Protocol::Tcp), ("http", Protocol::Http), ("postgres", Protocol::Postgres)];

impl Protocol {
    /// ALPN names, the preferred one first.
    pub fn alpn(self) -> &'static [&'static str] {
        match self {
            Self::Tcp => &[],
            Self::Http => crate::server::PROTOCOLS,
            Self::Postgres => &[postgres::ALPN],
        }
    }
}

/// How a listener is set up.
pub struct Settings {
    /// What logs and the ledger call it.
    pub name: String,
    /// Where it listens.
    pub listen: SocketAddr,
    /// What is spoken.
    pub protocol: Protocol,
    /// How connections come in; without one, they are not encrypted.
    pub door: Option<Arc<Door>>,
    /// The servers behind.
    pub backends: Vec<Backend>,
    /// How one of them is chosen and connected to.
    pub connecting: Connecting,
    /// Whether and how they are asked how they are.
    pub health: Option<HealthCheck>,
    /// Proxies in front whose connections begin with a PROXY protocol header.
    pub proxies: Vec<IpNet>,
    /// Proxies in front whose `X-Forwarded-*` and `Forwarded` are believed.
    pub trusted: Vec<IpNet>,
    /// Whether those fields are left alone altogether: the listener is on the client's side.
    pub transparent: bool,
    /// Hosts that requests may be for, without ports; none if for any.
    pub hosts: Option<Vec<String>>,
    /// Whether requests say what was negotiated.
    pub tls_headers: bool,
    /// How long a connection may be without a byte in either direction.
    pub idle: Duration,
    /// How long an answer over HTTP may take to begin, or to go on.
    pub answer: Duration,
    /// Concurrent connections. For a further one over HTTP, one without an open request is closed; otherwise it waits for its
    /// turn, for as long as a handshake may take. Over HTTP, also requests that servers behind are busy with.
    pub max_connections: usize,
    /// How many of them one peer may have, which is an IPv4 address or the first 64 bits of an IPv6 address: an eighth, or
    /// [`limits::LEAST_PROXIED_BY_PEER`], if it is not said. Whom a PROXY protocol header names is a peer of its own.
    pub connections_by_peer: Option<usize>,
}

impl Settings {
    /// With what is usual.
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

    /// Counts what limits on peers have ended.
    pub(crate) fn tally(&self) -> Tally {
        self.door.as_ref().map(|door| door.tally()).unwrap_or_default()
    }

    fn connections(&self) -> Number {
        let usual = (self.max_connections / limits::PEER_SHARE).max(limits::LEAST_PROXIED_BY_PEER);
        Number::of(self.max_connections, Some(self.connections_by_peer.unwrap_or(usual)))
    }

    /// Of one client as many as it may have streams, at least.
    fn requests(&self) -> Number {
        let least = limits::MAX_PROXY_STREAMS as usize;
        let Number { all, by_peer } = self.connections();
        Number::of(all.max(least), Some(by_peer.max(least)))
    }

    fn handshakes(&self) -> Number {
        Number::of_handshakes(limits::MAX_HANDSHAKES, self.connections())
    }
}

/// Settings in force, and the servers that go with them. A connection keeps those with which it began.
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
            // Holders of a slot go on counting.
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

    /// A place for one request of this peer among those that are at servers behind; none if none becomes free in time.
    pub(crate) async fn slot(&self, peer: Option<Peer>, activity: &Arc<Activity>) -> Option<Slot> {
        let slot = self.requests.enter_in_turn(peer, activity, Duration::ZERO);
        timeout(self.settings.connecting.timeout, slot).await.ok()
    }

    /// Whether what a proxy at this address says of clients is believed.
    pub(crate) fn trusts(&self, peer: IpAddr) -> bool {
        contains(&self.settings.trusted, peer)
    }
}

pub(super) fn contains(nets: &[IpNet], address: IpAddr) -> bool {
    nets.iter().any(|net| net.contains(&address.to_canonical()))
}

/// How far the end of the whole proxy has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Finish {
    /// It is not in sight.
    #[default]
    Far,
    /// What is open may come to its end; nothing new is begun.
    Near,
    /// What is open is cut off.
    Now,
}

impl Finish {
    /// Waits until no more may be begun.
    pub(crate) async fn begins(finish: &mut watch::Receiver<Self>) {
        // If whoever could say so is gone, that is the end, too.
        let _ = finish.wait_for(|finish| *finish >= Self::Near).await;
    }

    /// Waits until what is open is to be cut off.
    pub(crate) async fn cuts(finish: &mut watch::Receiver<Self>) {
        let _ = finish.wait_for(|finish| *finish == Self::Now).await;
    }
}

/// A client's connection, for what serves it.
pub(crate) struct Front {
    pub(crate) route: Arc<Route>,
    pub(crate) finish: watch::Receiver<Finish>,
    /// The peer of the connection itself.
    pub(crate) direct: Option<SocketAddr>,
    /// The client, as far as that is known.
    pub(crate) peer: Option<SocketAddr>,
    /// Whose limits it counts for; none for a proxy in front that has not said for whom it speaks.
    pub(crate) of: Option<Peer>,
    /// What goes on on it.
    pub(crate) activity: Arc<Activity>,
    /// What was negotiated; none without TLS.
    pub(crate) negotiated: Option<Negotiated>,
    /// What the backend learns, if anything.
    pub(crate) announcement: Announcement,
    pub(super) _watch: Option<Watch>,
    pub(super) _open: mpsc::Sender<()>,
}

//! One listener: from a connection that is accepted to the protocol that is spoken on it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use ipnet::IpNet;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::backend::{Backend, Backends, Connecting};
use super::health::HealthCheck;
use super::pieces::{Transport, Wide};
use super::protocol::{self, Announcement, TlsAnnouncement};
use super::pump::{Ended, pump};
use super::{http, postgres};
use crate::activity::Activity;
use crate::door::Door;
use crate::metrics::Tally;
use crate::observed::Observed;
use crate::peer::Peer;
use crate::places::{Number, Of, Place, Places};
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
    /// Connections at a time. For a further one over HTTP, one on which no request is open is closed; else it waits for its
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
    connections: Arc<Places>,
    requests: Arc<Places>,
    handshakes: Arc<Places>,
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
        let places = |of, number, before: Option<&Arc<Places>>| match before {
            // Who has a place in them counts on.
            Some(kept) => {
                kept.resize(number);
                kept.clone()
            }
            None => Places::new(of, number, settings.tally()),
        };
        let connections = before.map(|before| &before.connections);
        let requests = before.map(|before| &before.requests);
        let handshakes = before.map(|before| &before.handshakes);
        let connections = places(Of::Connections, settings.connections(), connections);
        let requests = places(Of::Requests, settings.requests(), requests);
        let handshakes = places(Of::Handshakes, settings.handshakes(), handshakes);
        Self { settings, backends: Arc::new(backends), connections, requests, handshakes }
    }

    /// A place for one request of this peer among those that are at servers behind; none if none becomes free in time.
    pub(crate) async fn place(
        &self,
        peer: Option<Peer>,
        activity: &Arc<Activity>,
    ) -> Option<Place> {
        let place = self.requests.enter_in_turn(peer, activity, Duration::ZERO);
        timeout(self.settings.connecting.timeout, place).await.ok()
    }

    /// Whether what a proxy at this address says of clients is believed.
    pub(crate) fn trusts(&self, peer: IpAddr) -> bool {
        contains(&self.settings.trusted, peer)
    }
}

fn contains(nets: &[IpNet], address: IpAddr) -> bool {
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
    /// Who is directly at the other end.
    pub(crate) direct: Option<SocketAddr>,
    /// The client, as far as that is known.
    pub(crate) peer: Option<SocketAddr>,
    /// Whose limits it counts for; none for a proxy in front that has not said for whom it speaks.
    pub(crate) of: Option<Peer>,
    /// What goes on on it.
    pub(crate) activity: Arc<Activity>,
    /// What was negotiated; none without TLS.
    pub(crate) negotiated: Option<Negotiated>,
    /// What the server behind is told, if it is.
    pub(crate) announcement: Announcement,
    _watch: Option<Watch>,
    _open: mpsc::Sender<()>,
}

/// What connections of a listener have in common.
#[derive(Clone)]
pub(crate) struct Common {
    /// The settings for the next connection.
    pub(crate) route: Arc<RwLock<Arc<Route>>>,
    /// When the proxy ends.
    pub(crate) finish: watch::Receiver<Finish>,
    /// Held by all that is open.
    pub(crate) open: mpsc::Sender<()>,
}

impl Common {
    pub(crate) fn route(&self) -> Arc<Route> {
        self.route.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Accepts connections until `closed` says so, or the proxy ends.
pub(crate) async fn accept(
    listener: TcpListener,
    common: Common,
    mut closed: watch::Receiver<bool>,
) {
    let mut finish = common.finish.clone();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = Finish::begins(&mut finish) => return,
            _ = closed.wait_for(|closed| *closed) => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, or the client went away: neither may end the listener.
                tracing::warn!(%error, "a connection could not be accepted");
                let route = common.route();
                route.handshakes.make_room();
                route.connections.make_room();
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (route, common) = (common.route(), common.clone());
        // What a proxy in front says of its clients is not known yet.
        let is_proxy = contains(&route.settings.proxies, peer.ip());
        let of = (!is_proxy).then(|| Peer::of(peer.ip()));
        let activity = Arc::new(Activity::new());
        let Ok(mut handshake) = route.handshakes.enter(of, &activity) else { continue };
        tokio::spawn(async move {
            let mut finish = common.finish.clone();
            // Boxed, and so gone when it is done: a handshake takes much more room than the connection after it.
            let (known, whose) = oneshot::channel();
            let arrival = Arrival { stream, direct: peer, of, activity, known };
            let entering = Box::pin(timeout(limits::HANDSHAKE, enter(&common, route, arrival)));
            let entered = tokio::select! {
                entered = entering => entered,
                () = made_room(&mut handshake, whose) => return,
                () = Finish::cuts(&mut finish) => return,
            };
            drop(handshake);
            match entered {
                Ok(Ok((stream, front, mut place))) => tokio::select! {
                    () = serve(stream, front) => {}
                    () = place.evicted() => {
                        tracing::debug!(%peer, "a connection made room for another one");
                    }
                    () = Finish::cuts(&mut finish) => {}
                },
                Ok(Err(error)) => tracing::debug!(%peer, %error, "a handshake failed"),
                Err(_) => tracing::debug!(%peer, "a handshake took too long"),
            }
            drop(common);
        });
    }
}

/// A stream of a client.
pub(crate) enum Client {
    Tls(Box<tokio_rustls::server::TlsStream<Observed<Wide<TcpStream>>>>),
    Plain(Wide<TcpStream>),
}

/// A connection that has just been accepted.
struct Arrival {
    stream: TcpStream,
    direct: SocketAddr,
    of: Option<Peer>,
    activity: Arc<Activity>,
    /// Told for whom a proxy in front speaks.
    known: oneshot::Sender<Peer>,
}

/// Ends when a handshake must make room for another one; counts it for its peer once that is known.
async fn made_room(handshake: &mut Place, whose: oneshot::Receiver<Peer>) {
    tokio::select! {
        () = handshake.evicted() => return,
        Ok(peer) = whose => handshake.belongs_to(peer),
    }
    handshake.evicted().await;
}

/// What comes before the protocol itself.
async fn enter(
    common: &Common,
    route: Arc<Route>,
    arrival: Arrival,
) -> io::Result<(Client, Front, Place)> {
    let Arrival { stream, direct, mut of, activity, known } = arrival;
    stream.set_nodelay(true)?;
    let mut addresses = Some((direct, stream.local_addr()?));
    let mut stream = Wide::new(stream);
    if contains(&route.settings.proxies, direct.ip()) {
        let header = timeout(limits::PROXY_HEADER, proxy_header(&mut stream)).await;
        let told = header.map_err(|_| io::ErrorKind::TimedOut)??;
        of = told.map(|(source, _)| Peer::of(source.ip()));
        if let Some(peer) = of {
            let _ = known.send(peer);
        }
        addresses = told.or(addresses);
    }
    let peer = addresses.map(|(source, _)| source);
    let is_postgres = route.settings.protocol == Protocol::Postgres;
    let mut announcement = Announcement { addresses, ..Announcement::default() };
    let (client, negotiated, watch) = match &route.settings.door {
        Some(door) => {
            let start = match is_postgres {
                true => Some(postgres::begin(&mut stream).await?),
                false => None,
            };
            let accepted = door.accept(stream, peer).await?;
            let mut stream = accepted.stream;
            let session = &mut stream.get_mut().1;
            session.set_buffer_limit(Some(2 * limits::PIECE));
            announcement.alpn = session.alpn_protocol().map(<[u8]>::to_vec);
            announcement.authority = session.server_name().map(str::to_owned);
            announcement.tls = Some(tls_announcement(&accepted.negotiated, session));
            let named = announcement.alpn.as_deref() == Some(postgres::ALPN.as_bytes());
            if start == Some(postgres::Start::Direct) && !named {
                let message =
                    "a client began TLS at once and does not say that it speaks PostgreSQL";
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            (Client::Tls(Box::new(stream)), Some(accepted.negotiated), Some(accepted.watch))
        }
        None => {
            if is_postgres {
                postgres::begin_plain(&mut stream).await?;
            }
            (Client::Plain(stream), None, None)
        }
    };
    // Whether a connection is of use can be seen from requests. Of other protocols only that is known that a client which
    // has said nothing for a while has nothing to lose.
    let is_http = route.settings.protocol == Protocol::Http;
    let spared = if is_http { Duration::ZERO } else { limits::PROXY_SILENT };
    let place = route.connections.enter_in_turn(of, &activity, spared).await;
    let front = Front {
        finish: common.finish.clone(),
        direct: Some(direct),
        peer,
        of,
        activity,
        negotiated,
        announcement,
        _watch: watch,
        _open: common.open.clone(),
        route,
    };
    Ok((client, front, place))
}

async fn proxy_header(
    stream: &mut Wide<TcpStream>,
) -> io::Result<Option<(SocketAddr, SocketAddr)>> {
    loop {
        match protocol::parse(stream.ahead()) {
            Ok(Some(header)) => {
                stream.skip(header.len);
                return Ok(header.addresses);
            }
            Ok(None) => stream.more().await?,
            Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
    }
}

fn tls_announcement(
    negotiated: &Negotiated,
    session: &rustls::ServerConnection,
) -> TlsAnnouncement {
    let certificate = session.peer_certificates().and_then(<[_]>::first);
    TlsAnnouncement {
        version: negotiated.version.clone(),
        cipher: negotiated.cipher_suite.clone(),
        group: negotiated.group.clone(),
        certificate: certificate.is_some(),
        common_name: certificate.and_then(|der| {
            let certificate = outlast_pki::certificate::Certificate::parse(der).ok()?;
            let attributes = outlast_pki::name::attributes(certificate.subject());
            let common_name = const_oid::db::rfc4519::CN;
            attributes.into_iter().find(|(oid, _)| *oid == common_name).map(|(_, text)| text)
        }),
    }
}

async fn serve(client: Client, front: Front) {
    let protocol = front.route.settings.protocol;
    match client {
        Client::Tls(stream) if protocol == Protocol::Http => {
            let is_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            http::serve(*stream, is_h2, Arc::new(front)).await;
        }
        Client::Plain(stream) if protocol == Protocol::Http => {
            http::serve(stream, false, Arc::new(front)).await;
        }
        Client::Tls(stream) => pass(stream, front).await,
        Client::Plain(stream) => pass(Box::new(stream), front).await,
    }
}

/// Bytes to a server and back.
async fn pass(mut client: Box<impl Transport>, mut front: Front) {
    let announcement = std::mem::take(&mut front.announcement);
    let connecting = Box::pin(front.route.backends.connect(&announcement)).await;
    let (mut server, _lease) = match connecting {
        Ok(connected) => connected,
        Err(error) => {
            let listener = &front.route.settings.name;
            tracing::warn!(listener, %error, "there is no server for a connection");
            if front.route.settings.protocol == Protocol::Postgres {
                let message = postgres::unavailable("the server behind this one cannot be reached");
                let telling = async {
                    client.write_all(&message).await?;
                    client.shutdown().await
                };
                let _ = timeout(limits::LAST_WORDS, telling).await;
            } else {
                client.reset();
            }
            return;
        }
    };
    drop(announcement);
    let idle = front.route.settings.idle;
    let mut in_use = None;
    let mut heard = || {
        in_use.get_or_insert_with(|| front.activity.begin());
    };
    match pump(&mut *client, &mut *server, idle, &mut heard).await {
        Ended::Well => {}
        Ended::Client(error) => tracing::debug!(peer = ?front.peer, %error, "a client broke off"),
        Ended::Server(error) => {
            tracing::debug!(peer = ?front.peer, %error, "a server behind broke off");
        }
        Ended::Idle => tracing::debug!(peer = ?front.peer, "an idle connection was closed"),
    }
}

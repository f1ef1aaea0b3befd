//! One listener: from a connection that is accepted to the protocol that is spoken on it.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use ipnet::IpNet;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::timeout;

use super::backend::{Backend, Backends, Connecting};
use super::health::HealthCheck;
use super::pieces::{Transport, Wide};
use super::protocol::{self, Announcement, TlsAnnouncement};
use super::pump::{Ended, pump};
use super::{http, postgres};
use crate::accept::Handshakes;
use crate::door::Door;
use crate::observed::Observed;
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
    /// Connections at a time; further ones wait for their turn, for as long as a handshake may take. Over HTTP, also
    /// requests that servers behind are busy with.
    pub max_connections: usize,
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
        }
    }
}

/// Settings in force, and the servers that go with them. A connection keeps those with which it began.
pub(crate) struct Route {
    pub(crate) settings: Settings,
    pub(crate) backends: Arc<Backends>,
    slots: Arc<Semaphore>,
    requests: Arc<Semaphore>,
}

/// So many permits, of the semaphore that was in force with `before` of them: what is held of it counts on.
fn permits(number: usize, before: Option<(&Arc<Semaphore>, usize)>) -> Arc<Semaphore> {
    let Some((kept, before)) = before else { return Arc::new(Semaphore::new(number)) };
    let kept = kept.clone();
    kept.add_permits(number.saturating_sub(before));
    let surplus = before.saturating_sub(number);
    let held = surplus - kept.forget_permits(surplus);
    if let (1.., Ok(held)) = (held, u32::try_from(held)) {
        // As they come back, before anyone else gets one.
        let kept = kept.clone();
        tokio::spawn(async move {
            if let Ok(permits) = kept.acquire_many(held).await {
                permits.forget();
            }
        });
    }
    kept
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
        let number = settings.max_connections;
        let was = before.map(|before| before.settings.max_connections);
        let slots = permits(number, before.map(|before| &before.slots).zip(was));
        // One client's requests at least.
        let least = |number: usize| number.max(limits::MAX_PROXY_STREAMS as usize);
        let before = before.map(|before| &before.requests).zip(was.map(least));
        let requests = permits(least(number), before);
        Self { settings, backends: Arc::new(backends), slots, requests }
    }

    /// A place for one request among those that are at servers behind; none if none becomes free in time.
    pub(crate) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        let place = self.requests.clone().acquire_owned();
        timeout(self.settings.connecting.timeout, place).await.ok()?.ok()
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
    /// What was negotiated; none without TLS.
    pub(crate) negotiated: Option<Negotiated>,
    /// What the server behind is told, if it is.
    pub(crate) announcement: Announcement,
    _watch: Option<Watch>,
    _slot: OwnedSemaphorePermit,
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
    let mut handshakes = Handshakes::default();
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
                handshakes.close_oldest();
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (closed, common) = (handshakes.begin(), common.clone());
        tokio::spawn(async move {
            let route = common.route();
            let mut finish = common.finish.clone();
            // Boxed, and so gone when it is done: a handshake takes much more room than the connection after it.
            let entering =
                Box::pin(timeout(limits::HANDSHAKE, enter(&common, route, stream, peer)));
            let entered = tokio::select! {
                entered = entering => entered,
                _ = closed => return,
                () = Finish::cuts(&mut finish) => return,
            };
            match entered {
                Ok(Ok((stream, front))) => tokio::select! {
                    () = serve(stream, front) => {}
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

/// What comes before the protocol itself.
async fn enter(
    common: &Common,
    route: Arc<Route>,
    stream: TcpStream,
    direct: SocketAddr,
) -> io::Result<(Client, Front)> {
    stream.set_nodelay(true)?;
    let mut addresses = Some((direct, stream.local_addr()?));
    let mut stream = Wide::new(stream);
    if contains(&route.settings.proxies, direct.ip()) {
        let header = timeout(limits::PROXY_HEADER, proxy_header(&mut stream)).await;
        addresses = header.map_err(|_| io::ErrorKind::TimedOut)??.or(addresses);
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
    let slot = route.slots.clone().acquire_owned().await.map_err(io::Error::other)?;
    let front = Front {
        finish: common.finish.clone(),
        direct: Some(direct),
        peer,
        negotiated,
        announcement,
        _watch: watch,
        _open: common.open.clone(),
        _slot: slot,
        route,
    };
    Ok((client, front))
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
    match pump(&mut *client, &mut *server, idle).await {
        Ended::Well => {}
        Ended::Client(error) => tracing::debug!(peer = ?front.peer, %error, "a client broke off"),
        Ended::Server(error) => {
            tracing::debug!(peer = ?front.peer, %error, "a server behind broke off");
        }
        Ended::Idle => tracing::debug!(peer = ?front.peer, "an idle connection was closed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn another_number_of_permits_counts_those_that_are_held() {
        let slots = permits(3, None);
        let held = slots.clone().acquire_many_owned(3).await.unwrap();
        let mut before = 3;
        // None is free whatever is said, until as many are back as are too many.
        for number in [2, 1, 3, 1] {
            assert!(Arc::ptr_eq(&permits(number, Some((&slots, before))), &slots));
            before = number;
            tokio::task::yield_now().await;
            assert_eq!(slots.available_permits(), 0, "{number}");
        }
        drop(held);
        tokio::task::yield_now().await;
        assert_eq!(slots.available_permits(), 1);
        permits(5, Some((&slots, 1)));
        assert_eq!(slots.available_permits(), 5);
    }
}

//! A listener: from accepting a connection to serving its protocol.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::pieces::{Transport, Wide};
use super::protocol::{self, Announcement, TlsAnnouncement};
use super::pump::{Ended, pump};
use super::route::{Finish, Front, Protocol, Route, contains};
use super::{http, postgres};
use crate::activity::Activity;
use crate::observed::Observed;
use crate::peer::Peer;
use crate::slots::Slot;
use crate::{Negotiated, limits};

/// Shared by all connections of a listener.
#[derive(Clone)]
pub(crate) struct Common {
    /// Settings for new connections.
    pub(crate) route: Arc<RwLock<Arc<Route>>>,
    /// Progress of the proxy's shutdown.
    pub(crate) finish: watch::Receiver<Finish>,
    /// Held by everything that is open.
    pub(crate) open: mpsc::Sender<()>,
}

impl Common {
    pub(crate) fn route(&self) -> Arc<Route> {
        self.route.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Accepts connections until `closed` is set or the proxy ends.
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
                // Out of file descriptors, or the client left: neither may end the listener.
                tracing::warn!(%error, "a connection could not be accepted");
                let route = common.route();
                route.handshakes.make_room();
                route.connections.make_room();
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let (route, common) = (common.route(), common.clone());
        // The proxy in front has not yet said which client it speaks for.
        let is_proxy = contains(&route.settings.proxies, peer.ip());
        let of = (!is_proxy).then(|| Peer::of(peer.ip()));
        let activity = Arc::new(Activity::new());
        let Ok(mut handshake) = route.handshakes.enter(of, &activity) else { continue };
        tokio::spawn(async move {
            let mut finish = common.finish.clone();
            // Boxed so that it is freed afterwards: a handshake needs much more memory than the connection.
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
                Ok(Ok((stream, front, mut slot))) => tokio::select! {
                    () = serve(stream, front) => {}
                    () = slot.evicted() => {
                        tracing::debug!(%peer, "a connection was closed to make room for another one");
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

/// Stream to a client.
pub(crate) enum Client {
    Tls(Box<tokio_rustls::server::TlsStream<Observed<Wide<TcpStream>>>>),
    Plain(Wide<TcpStream>),
}

/// A connection that was just accepted.
struct Arrival {
    stream: TcpStream,
    direct: SocketAddr,
    of: Option<Peer>,
    activity: Arc<Activity>,
    /// Receives the client for which a proxy in front speaks.
    known: oneshot::Sender<Peer>,
}

/// Ends when a handshake must make room for another one; counts it for its peer once that is known.
async fn made_room(handshake: &mut Slot, whose: oneshot::Receiver<Peer>) {
    tokio::select! {
        () = handshake.evicted() => return,
        Ok(peer) = whose => handshake.belongs_to(peer),
    }
    handshake.evicted().await;
}

/// Everything before the protocol itself.
async fn enter(
    common: &Common,
    route: Arc<Route>,
    arrival: Arrival,
) -> io::Result<(Client, Front, Slot)> {
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
                let message = "a client began TLS at once without the ALPN protocol postgresql";
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
    // With HTTP, requests show whether a connection is in use. With other protocols, a client that has sent nothing
    // for a while is assumed to have nothing to lose.
    let is_http = route.settings.protocol == Protocol::Http;
    let spared = if is_http { Duration::ZERO } else { limits::PROXY_SILENT };
    let slot = route.connections.enter_in_turn(of, &activity, spared).await;
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
    Ok((client, front, slot))
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

/// Copies bytes to a backend and back.
async fn pass(mut client: Box<impl Transport>, mut front: Front) {
    let announcement = std::mem::take(&mut front.announcement);
    let connecting = Box::pin(front.route.backends.connect(&announcement)).await;
    let (mut server, _lease) = match connecting {
        Ok(connected) => connected,
        Err(error) => {
            let listener = &front.route.settings.name;
            tracing::warn!(listener, %error, "there is no backend server for a connection");
            if front.route.settings.protocol == Protocol::Postgres {
                let message = postgres::unavailable("the backend server cannot be reached");
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
        Ended::Client(error) => {
            tracing::debug!(peer = front.peer.map(tracing::field::display), %error, "a client broke the connection");
        }
        Ended::Server(error) => {
            tracing::debug!(peer = front.peer.map(tracing::field::display), %error, "a backend server broke the connection");
        }
        Ended::Idle => tracing::debug!(
            peer = front.peer.map(tracing::field::display),
            "an idle connection was closed"
        ),
    }
}

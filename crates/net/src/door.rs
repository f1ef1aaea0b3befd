//! The server side of the handshake: every client that can do hybrid key exchange gets it.
//!
//! The door reads the ClientHello first. [`outlast_negotiate::decide()`] chooses the parameters, and rustls gets a
//! configuration that allows nothing else. If the client is asked for another key share, the door compares its second
//! ClientHello with the first before rustls sees it.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use outlast_ledger::{Observe, Outcome, Served};
use outlast_negotiate::decide::CertificateFacts;
use outlast_negotiate::{Choice, Decision, Offer, Refusal, Rules, Transport, decide};
use rustls::crypto::aws_lc_rs;
use rustls::server::{ProducesTickets, ServerSessionMemoryCache, StoresServerSessions};
use rustls::{Error, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::client_auth::{self, ClientAuth};
use crate::metrics::{Metrics, Tally};
use crate::observed::Observed;
use crate::watch::Watch;
use crate::{HandshakeKind, Negotiated, limits};
pub(crate) use configs::Current;
use configs::Kept;
use refusals::Refusals;
use report::Reporter;

mod configs;
mod refusals;
mod refuse;
mod report;
mod shown;

pub use report::Handshaking;
pub use shown::ServerCertificate;

/// Settings of a door.
#[derive(Default)]
pub struct Settings {
    /// Name of the listener in the ledger: `api`.
    pub listener: String,
    /// Policy and mode.
    pub rules: Rules,
    /// ALPN names in order of preference.
    pub protocols: Vec<Vec<u8>>,
    /// ALPN names over QUIC; empty if there is no QUIC.
    pub quic_protocols: Vec<Vec<u8>>,
    /// Makes and opens tickets; without it sessions are resumed only within this process.
    pub tickets: Option<Arc<dyn ProducesTickets>>,
    /// Observers of each connection: ledger and metrics.
    pub observer: Option<Arc<dyn Observe>>,
    /// Counters of connections that a limit on peers ended, over QUIC and through the proxy.
    pub metrics: Option<Arc<Metrics>>,
    /// Time from accept to the end of the handshake; `None` means [`limits::HANDSHAKE`].
    pub handshake_limit: Option<Duration>,
}

impl Settings {
    /// The default policy, with these ALPN names.
    pub fn with_protocols(protocols: &[&str]) -> Self {
        let protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Self { protocols, ..Self::default() }
    }
}

/// A connection that has completed its handshake.
pub struct Accepted<S> {
    /// The connection.
    pub stream: TlsStream<Observed<S>>,
    /// What was negotiated.
    pub negotiated: Negotiated,
    /// Reports the connection's end when dropped.
    pub watch: Watch,
}

/// Accepts TLS connections under a policy.
pub struct Door {
    settings: Settings,
    reporter: Arc<Reporter>,
    /// Sessions of TLS 1.2, which has no tickets here.
    sessions: Arc<dyn StoresServerSessions>,
    tickets: Arc<dyn ProducesTickets>,
    current: RwLock<Arc<Current>>,
    /// Held from reading `current` to writing it, because one of two concurrent replacements would otherwise be lost.
    replacing: Mutex<()>,
}

impl Door {
    /// A door with these certificates, in order of preference. With `clients` it asks clients for certificates.
    pub fn new(
        settings: Settings,
        certificates: Vec<ServerCertificate>,
        clients: Option<ClientAuth>,
    ) -> Result<Self, Error> {
        let sessions: Arc<dyn StoresServerSessions> =
            ServerSessionMemoryCache::new(limits::MAX_SESSIONS);
        let tickets = match &settings.tickets {
            Some(tickets) => tickets.clone(),
            None => aws_lc_rs::Ticketer::new()?,
        };
        let kept = Kept { settings: &settings, tickets: &tickets, sessions: &sessions };
        let current = Current::new(&kept, certificates, clients)?;
        let reporter = Arc::new(Reporter {
            listener: settings.listener.clone(),
            rules: settings.rules,
            observer: settings.observer.clone(),
            refusals: Refusals::default(),
        });
        let current = RwLock::new(Arc::new(current));
        Ok(Self { settings, reporter, sessions, tickets, current, replacing: Mutex::new(()) })
    }

    /// Replaces the settings for client certificates, for new connections: other roots, newer CRLs.
    pub fn replace_clients(&self, clients: &ClientAuth) -> Result<(), Error> {
        let replacing = self.replacing();
        let certificates = self.current().certificates.clone();
        self.replace(&replacing, certificates, Some(clients.clone()))
    }

    /// Replaces the certificates, for new connections.
    pub fn replace_certificates(&self, certificates: Vec<ServerCertificate>) -> Result<(), Error> {
        let replacing = self.replacing();
        let clients = self.current().clients.clone();
        self.replace(&replacing, certificates, clients)
    }

    fn replacing(&self) -> MutexGuard<'_, ()> {
        self.replacing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn replace(
        &self,
        _held: &MutexGuard<'_, ()>,
        certificates: Vec<ServerCertificate>,
        clients: Option<ClientAuth>,
    ) -> Result<(), Error> {
        let (settings, tickets, sessions) = (&self.settings, &self.tickets, &self.sessions);
        let current = Current::new(&Kept { settings, tickets, sessions }, certificates, clients)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(current);
        Ok(())
    }

    fn current(&self) -> Arc<Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Name of the listener in the ledger.
    pub fn listener(&self) -> &str {
        &self.settings.listener
    }

    /// Counter of connections that a limit on peers ended.
    pub(crate) fn tally(&self) -> Tally {
        Tally::new(self.settings.metrics.clone(), &self.settings.listener)
    }

    /// Policy and mode.
    pub fn rules(&self) -> &Rules {
        &self.settings.rules
    }

    /// Facts about the current certificates, in order of preference.
    pub fn facts(&self) -> Vec<CertificateFacts> {
        self.current().facts.clone()
    }

    /// Begins a handshake over a transport that is not a stream; the caller reports its progress.
    pub fn handshaking(&self, peer: Option<SocketAddr>) -> Handshaking {
        Handshaking::new(self.reporter.clone(), peer)
    }

    /// Decision for a client over QUIC, the rustls configuration that allows nothing else, and the certificates on
    /// which it is based.
    pub(crate) fn quic(
        &self,
        offer: &Offer,
    ) -> Result<(Choice, Arc<ServerConfig>, Arc<Current>), Refusal> {
        let current = self.current();
        match decide(&self.settings.rules, offer, &current.facts) {
            Decision::Serve(choice) => {
                let config = current.config(&choice, Transport::Quic).ok_or(Refusal::Version)?;
                Ok((choice, config, current))
            }
            Decision::Refuse(refusal) => Err(refusal),
        }
    }

    /// Does the handshake.
    pub async fn accept<S>(&self, stream: S, peer: Option<SocketAddr>) -> io::Result<Accepted<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut handshaking = self.handshaking(peer);
        let limit = self.settings.handshake_limit.unwrap_or(limits::HANDSHAKE);
        match timeout(limit, self.shake_hands(&mut handshaking, stream)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                handshaking.end(Outcome::Failed(TOO_LONG.into()));
                Err(io::Error::new(io::ErrorKind::TimedOut, TOO_LONG))
            }
        }
    }

    async fn shake_hands<S>(
        &self,
        handshaking: &mut Handshaking,
        stream: S,
    ) -> io::Result<Accepted<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut stream = Observed::new(stream);
        let counts = stream.counts();
        let hello = match stream.client_hello(|| handshaking.heard()).await {
            Ok(hello) => hello,
            Err(error) => {
                handshaking.end(Outcome::Failed(error.kind().to_string()));
                return Err(error);
            }
        };
        let parsed = hello.and_then(|hello| Ok((Offer::parse(&hello, Transport::Tcp)?, hello)));
        let (offer, hello) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => {
                handshaking.end(Outcome::Failed(error.to_string()));
                refuse::answer(&mut stream, error).await;
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        };
        let current = self.current();
        let decision = decide(&self.settings.rules, &offer, &current.facts);
        let early_data = offer.has_early_data();
        handshaking.offered(offer);
        let choice = match decision {
            Decision::Serve(choice) => choice,
            Decision::Refuse(refusal) => {
                handshaking.end(Outcome::Refused(refusal));
                refuse::refuse(&mut stream, refusal.alert()).await;
                return Err(io::Error::other(refusal));
            }
        };
        if choice.hello_retry {
            stream.expect_retry(hello, early_data, choice.group.code_point);
        }
        let config = current.config(&choice, Transport::Tcp).ok_or(io::ErrorKind::Unsupported)?;
        let stream = match TlsAcceptor::from(config).accept(stream).into_fallible().await {
            Ok(stream) => stream,
            Err((error, mut stream)) => {
                handshaking.end(Outcome::Failed(error.to_string()));
                match stream.refused() {
                    Some(error) => refuse::answer(&mut stream, error).await,
                    None => {
                        stream.release();
                        let _ = timeout(limits::LAST_WORDS, refuse::farewell(stream)).await;
                    }
                }
                return Err(error);
            }
        };
        let (observed, connection) = stream.get_ref();
        let mut negotiated = Negotiated::of(connection);
        negotiated.client_certificate =
            connection.peer_certificates().and_then(client_auth::described);
        let hello_retry = observed.has_retried()
            || negotiated.handshake == HandshakeKind::FullWithHelloRetryRequest;
        done(handshaking, &negotiated, &choice, &current, hello_retry)?;
        let watch = handshaking.watch(counts);
        Ok(Accepted { stream, negotiated, watch })
    }
}

const TOO_LONG: &str = "took too long";

/// Completes a handshake: compares it with the decision and reports it.
pub(crate) fn done(
    handshaking: &mut Handshaking,
    negotiated: &Negotiated,
    choice: &Choice,
    current: &Current,
    hello_retry: bool,
) -> io::Result<()> {
    let served = served(negotiated, choice, current, hello_retry);
    if let Err(difference) = as_decided(&served, choice) {
        tracing::error!(difference, "a handshake did not end as decided");
        handshaking.end(Outcome::Failed(format!("not as decided: {difference}")));
        return Err(io::Error::other("the handshake did not end as decided"));
    }
    handshaking.end(Outcome::Served(served));
    Ok(())
}

fn served(
    negotiated: &Negotiated,
    choice: &Choice,
    current: &Current,
    hello_retry: bool,
) -> Served {
    let resumed = negotiated.handshake == HandshakeKind::Resumed;
    Served {
        version: negotiated.version.clone(),
        suite: negotiated.cipher_suite.clone(),
        group: negotiated.group.clone(),
        post_quantum: negotiated.post_quantum,
        hello_retry,
        resumed,
        scheme: (!resumed).then(|| choice.scheme.name.to_owned()),
        certificate: current.facts.get(choice.certificate).map(|facts| facts.kind.clone()),
        client: negotiated.client_certificate.as_ref().map(|shown| shown.subject.clone()),
    }
}

/// Guards the whole design: rustls must have done what was decided. The error names the difference.
fn as_decided(served: &Served, choice: &Choice) -> Result<(), &'static str> {
    // A resumed session of TLS 1.2 has no key exchange.
    let exchanges = !(served.resumed && served.group.is_none());
    if served.version != choice.version.name() {
        Err("the version")
    } else if exchanges && served.group.as_deref() != Some(choice.group.name) {
        Err("the group")
    } else if served.suite != choice.suite.name {
        Err("the cipher suite")
    } else if served.hello_retry != choice.hello_retry {
        Err("the HelloRetryRequest")
    } else {
        Ok(())
    }
}

//! The server side of the handshake: every client that can do hybrid key exchange gets it.
//!
//! The ClientHello is read first, [`outlast_negotiate::decide()`] says what the client gets, and rustls is given a
//! configuration in which nothing else can be chosen. If the client is asked for another share, its second ClientHello is
//! held against the first before rustls sees it.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
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
use crate::observed::Observed;
use crate::watch::Watch;
use crate::{HandshakeKind, Negotiated, limits};
use configs::{Current, Kept};
use report::Reporter;

mod configs;
mod refuse;
mod report;
mod shown;

pub use report::Handshaking;
pub use shown::ServerCertificate;
pub(crate) use shown::chain_schemes;

/// How a door is set up.
#[derive(Default)]
pub struct Settings {
    /// What the ledger calls the listener: `api`.
    pub listener: String,
    /// What may be negotiated.
    pub rules: Rules,
    /// ALPN names, the preferred one first.
    pub protocols: Vec<Vec<u8>>,
    /// The same for QUIC; without any, nothing is configured for it.
    pub quic_protocols: Vec<Vec<u8>>,
    /// Makes and opens tickets; without it sessions are resumed only within this process.
    pub tickets: Option<Arc<dyn ProducesTickets>>,
    /// Whom to tell of each connection.
    pub observer: Option<Arc<dyn Observe>>,
    /// From accept to the end of the handshake, if not [`limits::HANDSHAKE`].
    pub handshake_limit: Option<Duration>,
}

impl Settings {
    /// The default policy, with these ALPN names.
    pub fn with_protocols(protocols: &[&str]) -> Self {
        let protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Self { protocols, ..Self::default() }
    }
}

/// A connection whose handshake is done.
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
    /// Sessions of TLS 1.2 clients without tickets.
    sessions: Arc<dyn StoresServerSessions>,
    tickets: Arc<dyn ProducesTickets>,
    current: RwLock<Arc<Current>>,
}

/// What is replaced as a whole while connections are open.
pub(crate) struct Current {
    certificates: Vec<ServerCertificate>,
    pub(crate) facts: Vec<CertificateFacts>,
    clients: Option<ClientAuth>,
    configs: HashMap<(Version, u16, usize), Arc<ServerConfig>>,
    /// By group and certificate.
    quic: HashMap<(u16, usize), Arc<ServerConfig>>,
}

#[derive(Debug)]
struct Always(Arc<CertifiedKey>);

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

impl Door {
    /// A door with these certificates, the preferred one first, which asks clients for theirs if `clients` says how.
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
        let mut door = Self {
            settings,
            sessions,
            tickets,
            current: RwLock::new(Arc::new(Current {
                certificates: Vec::new(),
                facts: Vec::new(),
                clients: None,
                configs: HashMap::new(),
                quic: HashMap::new(),
            })),
        };
        let current = door.configure(certificates, clients)?;
        door.current = RwLock::new(Arc::new(current));
        Ok(door)
    }

    /// Asks clients for certificates in another way from the next connection on: other roots, newer CRLs.
    pub fn replace_clients(&self, clients: &ClientAuth) -> Result<(), Error> {
        let certificates = self.current().certificates.clone();
        self.replace(certificates, Some(clients.clone()))
    }

    /// Uses other certificates from the next connection on.
    pub fn replace_certificates(&self, certificates: Vec<ServerCertificate>) -> Result<(), Error> {
        let clients = self.current().clients.clone();
        self.replace(certificates, clients)
    }

    fn replace(
        &self,
        certificates: Vec<ServerCertificate>,
        clients: Option<ClientAuth>,
    ) -> Result<(), Error> {
        let (settings, tickets, sessions) = (&self.settings, &self.tickets, &self.sessions);
        let current = Current::new(&Kept { settings, tickets, sessions }, certificates, clients)?;
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(current);
        Ok(())
    }

    pub(crate) fn current(&self) -> Arc<Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn observer(&self) -> Option<Arc<dyn Observe>> {
        self.settings.observer.clone()
    }

    /// What may be negotiated.
    pub fn rules(&self) -> &Rules {
        &self.settings.rules
    }

    /// What is known of the certificates that it has now, the preferred one first.
    pub fn facts(&self) -> Vec<CertificateFacts> {
        self.current().facts.clone()
    }

    /// Begins a handshake over a transport that is not a stream: the caller says how it went on.
    pub fn handshaking(&self, peer: Option<SocketAddr>) -> Handshaking {
        Handshaking::new(self.reporter.clone(), peer)
    }

    /// What a client gets over QUIC, and rustls' configuration in which it gets that and nothing else.
    pub fn quic(&self, offer: &Offer) -> Result<(Choice, Arc<ServerConfig>), Refusal> {
        let current = self.current();
        match decide(&self.settings.rules, offer, &current.facts) {
            Decision::Serve(choice) => {
                let config = current.config(&choice, Transport::Quic).ok_or(Refusal::Version)?;
                Ok((choice, config))
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
        let served = served(&negotiated, &choice, &current, hello_retry);
        if let Err(difference) = as_decided(&served, &choice) {
            tracing::error!(difference, "a handshake did not end as was decided");
            handshaking.end(Outcome::Failed(format!("not as was decided: {difference}")));
            return Err(io::Error::other("the handshake did not end as was decided"));
        }
        handshaking.end(Outcome::Served(served));
        let watch = handshaking.watch(counts);
        Ok(Accepted { stream, negotiated, watch })
    }

    pub(crate) fn report(
        &self,
        connection: u64,
        peer: Option<SocketAddr>,
        begun: Instant,
        offer: &Option<Offer>,
        outcome: Outcome,
    ) {
        let Some(observer) = &self.settings.observer else { return };
        observer.handshake(&Handshake {
            connection,
            time_ms: system_clock(),
            listener: self.settings.listener.clone(),
            peer,
            policy: self.settings.rules.policy.name.to_owned(),
            mode: self.settings.rules.mode.name().to_owned(),
            ja4: offer.as_ref().map(ja4::ja4),
            offer: offer.clone(),
            outcome,
            micros: u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        });
    }

    fn configure(
        &self,
        certificates: Vec<ServerCertificate>,
        clients: Option<ClientAuth>,
    ) -> Result<Current, Error> {
        let rules = &self.settings.rules;
        let mut configs = HashMap::new();
        let mut quic = HashMap::new();
        for (index, certificate) in certificates.iter().enumerate() {
            for version in rules.versions() {
                for group in rules.groups() {
                    if version == Version::Tls12 && group.strength.is_post_quantum() {
                        continue;
                    }
                    let provider = decided(rules, version, group);
                    let builder = ServerConfig::builder_with_provider(provider.clone())
                        .with_protocol_versions(&[version.rustls()])?;
                    let builder = match &clients {
                        Some(clients) => {
                            builder.with_client_cert_verifier(clients.verifier(provider)?)
                        }
                        None => builder.with_no_client_auth(),
                    };
                    let resolver = Arc::new(Always(certificate.key.clone()));
                    let mut config = builder.with_cert_resolver(resolver);
                    // The policy's order counts; the client's must not undo it.
                    config.ignore_client_order = true;
                    config.alpn_protocols = self.settings.protocols.clone();
                    if clients.is_some() {
                        // A resumed session carries the client's certificate of the first handshake, and nobody
                        // looks whether it has expired or been revoked since.
                        config.session_storage = Arc::new(NoServerSessionStorage {});
                        config.send_tls13_tickets = 0;
                    } else {
                        // Common to all configurations, so that a session resumes whichever it meets.
                        config.ticketer = self.tickets.clone();
                        config.session_storage = self.sessions.clone();
                    }
                    if version == Version::Tls13 && !self.settings.quic_protocols.is_empty() {
                        let mut config = config.clone();
                        config.alpn_protocols = self.settings.quic_protocols.clone();
                        quic.insert((group.code_point, index), Arc::new(config));
                    }
                    configs.insert((version, group.code_point, index), Arc::new(config));
                }
            }
        }
        let facts = certificates.iter().map(ServerCertificate::facts).collect();
        Ok(Current { certificates, facts, clients, configs, quic })
    }
}

impl Current {
    fn config(&self, choice: &Choice) -> Option<Arc<ServerConfig>> {
        self.configs.get(&(choice.version, choice.group.code_point, choice.certificate)).cloned()
    }

    pub(crate) fn quic_config(&self, choice: &Choice) -> Option<Arc<ServerConfig>> {
        self.quic.get(&(choice.group.code_point, choice.certificate)).cloned()
    }
}

pub(crate) fn served(negotiated: &Negotiated, choice: &Choice, current: &Current) -> Served {
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

/// RFC 8446, section 6.2.
pub(crate) const DECODE_ERROR: u8 = 50;

/// Sends an alert, and waits for the client to read it.
async fn refuse(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), alert: u8) {
    let record = [21, 3, 3, 0, 2, 2, alert];
    let telling = async {
        if stream.write_all(&record).await.is_ok() {
            farewell(stream).await;
        }
    };
    let _ = timeout(limits::LAST_WORDS, telling).await;
}

/// Ends a connection so that the client reads the alert: what it has sent meanwhile is read, or the system would reset the
/// connection and the alert be lost. A client of TLS 1.3 sends its first request together with its certificate.
async fn farewell(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let _ = stream.shutdown().await;
    let mut buffer = [0; 4096];
    let mut left = limits::MAX_HEAD;
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        left = left.saturating_sub(read);
        if left == 0 {
            return;
        }
    }
}

//! The server side of the handshake: every client that can do hybrid key exchange gets it.
//!
//! The ClientHello is read first, [`outlast_negotiate::decide()`] says what the client gets, and rustls is given a
//! configuration in which nothing else can be chosen.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

use outlast_crypto::schemes::{Kind, SCHEMES, Scheme};
use outlast_crypto::versions::Version;
use outlast_ledger::{Handshake, Observe, Outcome, Served};
use outlast_negotiate::decide::CertificateFacts;
use outlast_negotiate::{Choice, Decision, Offer, Rules, Transport, decide, ja4};
use rustls::crypto::aws_lc_rs;
use rustls::server::{
    ClientHello, NoServerSessionStorage, ProducesTickets, ResolvesServerCert,
    ServerSessionMemoryCache, StoresServerSessions,
};
use rustls::sign::CertifiedKey;
use rustls::{Error, ServerConfig, SignatureScheme};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::client_auth::{self, ClientAuth};
use crate::observed::Observed;
use crate::policy::decided;
use crate::server::system_clock;
use crate::watch::{Watch, next_connection};
use crate::{HandshakeKind, Negotiated, limits};

/// How a door is set up.
#[derive(Default)]
pub struct Settings {
    /// What the ledger calls the listener: `api`.
    pub listener: String,
    /// What may be negotiated.
    pub rules: Rules,
    /// ALPN names, the preferred one first.
    pub protocols: Vec<Vec<u8>>,
    /// Makes and opens tickets; without it sessions are resumed only within this process.
    pub tickets: Option<Arc<dyn ProducesTickets>>,
    /// Whom to tell of each connection.
    pub observer: Option<Arc<dyn Observe>>,
}

impl Settings {
    /// The default policy, with these ALPN names.
    pub fn with_protocols(protocols: &[&str]) -> Self {
        let protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        Self { protocols, ..Self::default() }
    }
}

/// A certificate that the door may show.
#[derive(Clone)]
pub struct ServerCertificate {
    /// What the ledger calls it: `ecdsa-p256`.
    pub kind: String,
    /// The chain and its key.
    pub key: Arc<CertifiedKey>,
}

impl ServerCertificate {
    fn facts(&self) -> CertificateFacts {
        let can_sign = |scheme: &&Scheme| {
            self.key.key.choose_scheme(&[SignatureScheme::from(scheme.code_point)]).is_some()
        };
        let rows: Vec<_> = SCHEMES.iter().filter(can_sign).collect();
        let ml_dsa = rows.iter().filter(|row| row.kind == Kind::MlDsa);
        CertificateFacts {
            kind: self.kind.clone(),
            chain: ml_dsa.map(|row| row.code_point).collect(),
            schemes: rows.iter().map(|row| row.code_point).collect(),
        }
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
    /// Sessions of TLS 1.2 clients without tickets.
    sessions: Arc<dyn StoresServerSessions>,
    tickets: Arc<dyn ProducesTickets>,
    current: RwLock<Arc<Current>>,
}

/// What is replaced as a whole while connections are open.
struct Current {
    certificates: Vec<ServerCertificate>,
    facts: Vec<CertificateFacts>,
    clients: Option<ClientAuth>,
    configs: HashMap<(Version, u16, usize), Arc<ServerConfig>>,
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
        let sessions = ServerSessionMemoryCache::new(limits::MAX_SESSIONS);
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
            })),
        };
        let current = door.configure(certificates, clients)?;
        door.current = RwLock::new(Arc::new(current));
        Ok(door)
    }

    /// Asks clients for certificates in another way from the next connection on: other roots, newer CRLs.
    pub fn replace_clients(&self, clients: &ClientAuth) -> Result<(), Error> {
        let certificates = self.current().certificates.clone();
        self.replace(self.configure(certificates, Some(clients.clone()))?);
        Ok(())
    }

    /// Uses other certificates from the next connection on.
    pub fn replace_certificates(&self, certificates: Vec<ServerCertificate>) -> Result<(), Error> {
        let clients = self.current().clients.clone();
        self.replace(self.configure(certificates, clients)?);
        Ok(())
    }

    fn replace(&self, current: Current) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(current);
    }

    fn current(&self) -> Arc<Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What may be negotiated.
    pub fn rules(&self) -> &Rules {
        &self.settings.rules
    }

    /// Does the handshake.
    pub async fn accept<S>(&self, stream: S, peer: Option<SocketAddr>) -> io::Result<Accepted<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let begun = Instant::now();
        let connection = next_connection();
        let mut stream = Observed::new(stream);
        let counts = stream.counts();
        let hello = stream.client_hello().await?;
        let offer = hello.and_then(|hello| Offer::parse(&hello, Transport::Tcp)).ok();
        let current = self.current();
        let rules = &self.settings.rules;
        let decision = offer.as_ref().map(|offer| decide(rules, offer, &current.facts));
        let report = |outcome| self.report(connection, peer, begun, &offer, outcome);
        let choice = match decision {
            Some(Decision::Serve(choice)) => choice,
            Some(Decision::Refuse(refusal)) => {
                report(Outcome::Refused(refusal));
                refuse(&mut stream, refusal.alert()).await;
                return Err(io::Error::other(refusal));
            }
            None => {
                report(Outcome::Failed("no ClientHello that can be read".into()));
                refuse(&mut stream, DECODE_ERROR).await;
                return Err(io::Error::other("no ClientHello that can be read"));
            }
        };
        let config = current.config(&choice).ok_or(io::ErrorKind::Unsupported)?;
        let stream = match TlsAcceptor::from(config).accept(stream).into_fallible().await {
            Ok(stream) => stream,
            Err((error, stream)) => {
                report(Outcome::Failed(error.to_string()));
                let _ = timeout(limits::LAST_WORDS, farewell(stream)).await;
                return Err(error);
            }
        };
        let mut negotiated = Negotiated::of(stream.get_ref().1);
        negotiated.client_certificate =
            stream.get_ref().1.peer_certificates().and_then(client_auth::described);
        report(Outcome::Served(served(&negotiated, &choice, &current)));
        let watch = Watch::new(connection, self.settings.observer.clone(), counts);
        Ok(Accepted { stream, negotiated, watch })
    }

    fn report(
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
                    configs.insert((version, group.code_point, index), Arc::new(config));
                }
            }
        }
        let facts = certificates.iter().map(ServerCertificate::facts).collect();
        Ok(Current { certificates, facts, clients, configs })
    }
}

impl Current {
    fn config(&self, choice: &Choice) -> Option<Arc<ServerConfig>> {
        self.configs.get(&(choice.version, choice.group.code_point, choice.certificate)).cloned()
    }
}

fn served(negotiated: &Negotiated, choice: &Choice, current: &Current) -> Served {
    let resumed = negotiated.handshake == HandshakeKind::Resumed;
    Served {
        version: negotiated.version.clone(),
        suite: negotiated.cipher_suite.clone(),
        group: negotiated.group.clone(),
        post_quantum: negotiated.post_quantum,
        hello_retry: choice.hello_retry,
        resumed,
        scheme: (!resumed).then(|| choice.scheme.name.to_owned()),
        certificate: current.facts.get(choice.certificate).map(|facts| facts.kind.clone()),
        client: negotiated.client_certificate.as_ref().map(|shown| shown.subject.clone()),
    }
}

/// RFC 8446, section 6.2.
const DECODE_ERROR: u8 = 50;

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

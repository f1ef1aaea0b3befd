//! Configurations for QUIC whose handshakes always have the same sizes, in any process.
//!
//! A trace of times and lengths does not depend on the value of random bytes, but on their encoding: ECDSA's
//! signatures are sometimes a byte or two shorter. The keys here sign again until a signature has its full length, as
//! for the certificates of the chains.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::{ClientSessionStore, ResolvesClientCert, Resumption};
use rustls::client::{Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, ServerConnection, Version};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{ClientConfig, NamedGroup, ServerConfig, SignatureAlgorithm, SignatureScheme};

use crate::error::LabError;
use crate::subject::{Kind, Subject};
use crate::tls;

/// Name in the certificates.
pub(super) const SERVER_NAME: &str = "localhost";
/// ALPN name; QUIC requires one (RFC 9001, section 8.1). It is the echo endpoint's, so that live runs send the same.
pub(super) const PROTOCOL: &[u8] = outlast_net::echo::PROTOCOL.as_bytes();

/// A signature of ECDSA has its full length once in four tries.
const TRIES: usize = 200;
/// More tickets than a client keeps.
const MAX_TICKETS: usize = 16;

/// The two ends of a connection.
#[derive(Clone)]
pub(super) struct Ends {
    pub(super) server: Arc<ServerConfig>,
    pub(super) client: Arc<ClientConfig>,
    /// Tickets for the client to resume with, if it is to resume.
    pub(super) tickets: Option<Arc<Tickets>>,
}

/// Both ends for a subject.
pub(super) fn ends(subject: &Subject) -> Result<Ends, LabError> {
    // Signatures of the literature's algorithms vary widely in length: they are left as they are.
    let len = if subject.authentication.legacy { 0 } else { subject.authentication.signature_len };
    let mut server = tls::server_config(subject)?;
    server.alpn_protocols = vec![PROTOCOL.to_vec()];
    server.cert_resolver = Arc::new(ServerCertificate { inner: server.cert_resolver.clone(), len });
    let mut client = tls::client_config(subject)?;
    client.alpn_protocols = vec![PROTOCOL.to_vec()];
    client.enable_early_data = false;
    if client.client_auth_cert_resolver.has_certs() {
        let inner = client.client_auth_cert_resolver.clone();
        client.client_auth_cert_resolver = Arc::new(ClientCertificate { inner, len });
    }
    let tickets = (subject.kind == Kind::Resumed).then(Arc::<Tickets>::default);
    client.resumption = match &tickets {
        Some(tickets) => Resumption::store(tickets.clone()),
        None => client.resumption,
    };
    Ok(Ends { server: Arc::new(server), client: Arc::new(client), tickets })
}

/// The same ends for one thread, which has the tickets to itself.
pub(super) fn with_own_tickets(ends: &Ends) -> Ends {
    if ends.tickets.is_none() {
        return ends.clone();
    }
    let tickets = Arc::<Tickets>::default();
    let mut client = ClientConfig::clone(&ends.client);
    client.resumption = Resumption::store(tickets.clone());
    Ends { server: ends.server.clone(), client: Arc::new(client), tickets: Some(tickets) }
}

#[derive(Debug)]
struct ServerCertificate {
    inner: Arc<dyn ResolvesServerCert>,
    len: usize,
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.inner.resolve(hello).map(|key| steady(&key, self.len))
    }
}

#[derive(Debug)]
struct ClientCertificate {
    inner: Arc<dyn ResolvesClientCert>,
    len: usize,
}

impl ResolvesClientCert for ClientCertificate {
    fn resolve(&self, roots: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        self.inner.resolve(roots, schemes).map(|key| steady(&key, self.len))
    }

    fn has_certs(&self) -> bool {
        self.inner.has_certs()
    }
}

fn steady(certified: &CertifiedKey, len: usize) -> Arc<CertifiedKey> {
    let key = Arc::new(SteadyKey { inner: certified.key.clone(), len });
    Arc::new(CertifiedKey { cert: certified.cert.clone(), key, ocsp: certified.ocsp.clone() })
}

#[derive(Debug)]
struct SteadyKey {
    inner: Arc<dyn SigningKey>,
    len: usize,
}

impl SigningKey for SteadyKey {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        let inner = self.inner.choose_scheme(offered)?;
        Some(Box::new(SteadySigner { inner, len: self.len }))
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.inner.algorithm()
    }
}

#[derive(Debug)]
struct SteadySigner {
    inner: Box<dyn Signer>,
    len: usize,
}

impl Signer for SteadySigner {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let mut signature = self.inner.sign(message)?;
        for _ in 0..TRIES {
            if signature.len() >= self.len {
                break;
            }
            signature = self.inner.sign(message)?;
        }
        Ok(signature)
    }

    fn scheme(&self) -> SignatureScheme {
        self.inner.scheme()
    }
}

/// A client's tickets, with a way to see whether any are left.
#[derive(Default)]
pub(super) struct Tickets(Mutex<VecDeque<Tls13ClientSessionValue>>);

impl Tickets {
    /// Whether the next connection has nothing to resume.
    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// A full handshake in memory, which gives tickets. s2n-quic's own TLS provider for rustls stops when the handshake
/// is complete, before rustls writes any; the echo endpoint's provider sends them.
pub(super) fn refill(ends: &Ends) -> Result<(), LabError> {
    let name = ServerName::try_from(SERVER_NAME).map_err(LabError::failed)?;
    let mut client = ClientConnection::new(ends.client.clone(), Version::V1, name, Vec::new())
        .map_err(LabError::failed)?;
    let mut server = ServerConnection::new(ends.server.clone(), Version::V1, Vec::new())
        .map_err(LabError::failed)?;
    loop {
        let mut quiet = true;
        // Each write has data of one epoch, and must be read separately.
        loop {
            let mut bytes = Vec::new();
            let keys = client.write_hs(&mut bytes);
            if keys.is_none() && bytes.is_empty() {
                break;
            }
            quiet = false;
            server.read_hs(&bytes).map_err(LabError::failed)?;
        }
        loop {
            let mut bytes = Vec::new();
            let keys = server.write_hs(&mut bytes);
            if keys.is_none() && bytes.is_empty() {
                break;
            }
            quiet = false;
            client.read_hs(&bytes).map_err(LabError::failed)?;
        }
        if quiet {
            break;
        }
    }
    match &ends.tickets {
        Some(tickets) if tickets.is_empty() => Err(LabError::failed("the server gives no tickets")),
        _ => Ok(()),
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tickets")
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut tickets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tickets.push_back(ticket);
        if tickets.len() > MAX_TICKETS {
            tickets.pop_front();
        }
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_back()
    }
}

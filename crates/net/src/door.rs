//! The server side of the handshake: every client that can do hybrid key exchange gets it.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{
    Acceptor, ClientHello, NoServerSessionStorage, ResolvesServerCert, ServerSessionMemoryCache,
};
use rustls::sign::CertifiedKey;
use rustls::{NamedGroup, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::client_auth::{self, ClientAuth};
use crate::policy::Policy;
use crate::{Negotiated, limits};

/// Accepts TLS connections under a policy.
pub struct Door {
    policy: Policy,
    configs: RwLock<Configs>,
    certificate: Arc<CurrentCertificate>,
    protocols: Vec<Vec<u8>>,
}

/// What is offered to a client, which the groups that it names decide.
struct Configs {
    /// For clients that named a hybrid group.
    upgrade: Arc<ServerConfig>,
    /// For all others.
    classical: Arc<ServerConfig>,
}

/// The certificate in use; it can be replaced while connections are open.
#[derive(Debug)]
struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

impl Door {
    /// A door with this policy and certificate. `protocols` are ALPN names, the preferred one first.
    pub fn new(
        policy: Policy,
        certificate: Arc<CertifiedKey>,
        protocols: &[&str],
    ) -> Result<Self, rustls::Error> {
        Self::with_clients(policy, certificate, protocols, None)
    }

    /// A door that asks clients for certificates as well.
    pub fn with_clients(
        policy: Policy,
        certificate: Arc<CertifiedKey>,
        protocols: &[&str],
        clients: Option<&ClientAuth>,
    ) -> Result<Self, rustls::Error> {
        let certificate = Arc::new(CurrentCertificate(RwLock::new(certificate)));
        let protocols: Vec<_> = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let configs = Configs::new(&policy, &certificate, &protocols, clients)?;
        Ok(Self { policy, configs: RwLock::new(configs), certificate, protocols })
    }

    /// Asks clients for certificates in another way from the next connection on: other roots, newer CRLs.
    pub fn replace_clients(&self, clients: &ClientAuth) -> Result<(), rustls::Error> {
        let configs =
            Configs::new(&self.policy, &self.certificate, &self.protocols, Some(clients))?;
        *self.configs.write().unwrap_or_else(PoisonError::into_inner) = configs;
        Ok(())
    }

    /// Uses another certificate from the next connection on.
    pub fn replace_certificate(&self, certificate: Arc<CertifiedKey>) {
        *self.certificate.0.write().unwrap_or_else(PoisonError::into_inner) = certificate;
    }

    /// Does the handshake.
    pub async fn accept<S>(&self, stream: S) -> std::io::Result<(TlsStream<S>, Negotiated)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let start = LazyConfigAcceptor::new(Acceptor::default(), stream).await?;
        let offered = start.client_hello().named_groups().unwrap_or_default().to_vec();
        let config = self.config(&offered);
        let stream = match start.into_stream(config).into_fallible().await {
            Ok(stream) => stream,
            Err((error, stream)) => {
                let _ = timeout(limits::LAST_WORDS, farewell(stream)).await;
                return Err(error);
            }
        };
        let mut negotiated = Negotiated::of(stream.get_ref().1);
        negotiated.client_certificate =
            stream.get_ref().1.peer_certificates().and_then(client_auth::described);
        Ok((stream, negotiated))
    }

    fn config(&self, offered: &[NamedGroup]) -> Arc<ServerConfig> {
        let configs = self.configs.read().unwrap_or_else(PoisonError::into_inner);
        if self.policy.upgrades(offered) {
            configs.upgrade.clone()
        } else {
            configs.classical.clone()
        }
    }
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

impl Configs {
    fn new(
        policy: &Policy,
        certificate: &Arc<CurrentCertificate>,
        protocols: &[Vec<u8>],
        clients: Option<&ClientAuth>,
    ) -> Result<Self, rustls::Error> {
        // Sessions and tickets are common, so that a session resumes whichever configuration it meets.
        let tickets = aws_lc_rs::Ticketer::new()?;
        let sessions = ServerSessionMemoryCache::new(limits::MAX_SESSIONS);
        let configure = |provider: Arc<CryptoProvider>| -> Result<_, rustls::Error> {
            let builder = ServerConfig::builder_with_provider(provider.clone())
                .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?;
            let builder = match clients {
                Some(clients) => builder.with_client_cert_verifier(clients.verifier(provider)?),
                None => builder.with_no_client_auth(),
            };
            let mut config = builder.with_cert_resolver(certificate.clone());
            // AES-256 comes first in the provider's list; the client's order must not undo that.
            config.ignore_client_order = true;
            config.alpn_protocols = protocols.to_vec();
            if clients.is_some() {
                // A resumed session carries the client's certificate of the first handshake, and nobody looks
                // whether it has expired or been revoked since.
                config.session_storage = Arc::new(NoServerSessionStorage {});
                config.send_tls13_tickets = 0;
            } else {
                config.ticketer = tickets.clone();
                config.session_storage = sessions.clone();
            }
            Ok(Arc::new(config))
        };
        Ok(Self {
            upgrade: configure(policy.upgrade_provider())?,
            classical: configure(policy.provider())?,
        })
    }
}

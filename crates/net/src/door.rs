//! The server side of the handshake: every client that can do hybrid key exchange gets it.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::server::{Acceptor, ClientHello, ResolvesServerCert, ServerSessionMemoryCache};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, crypto::aws_lc_rs};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

use crate::policy::Policy;
use crate::{Negotiated, limits};

/// Accepts TLS connections under a policy.
pub struct Door {
    policy: Policy,
    /// For clients that named a hybrid group.
    upgrade: Arc<ServerConfig>,
    /// For all others.
    classical: Arc<ServerConfig>,
    certificate: Arc<CurrentCertificate>,
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
        let certificate = Arc::new(CurrentCertificate(RwLock::new(certificate)));
        // Sessions and tickets are common, so that a session resumes whichever configuration it meets.
        let tickets = aws_lc_rs::Ticketer::new()?;
        let sessions = ServerSessionMemoryCache::new(limits::MAX_SESSIONS);
        let configure = |provider| -> Result<_, rustls::Error> {
            let mut config = ServerConfig::builder_with_provider(provider)
                .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
                .with_no_client_auth()
                .with_cert_resolver(certificate.clone());
            // AES-256 comes first in the provider's list; the client's order must not undo that.
            config.ignore_client_order = true;
            config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
            config.ticketer = tickets.clone();
            config.session_storage = sessions.clone();
            Ok(Arc::new(config))
        };
        Ok(Self {
            upgrade: configure(policy.upgrade_provider())?,
            classical: configure(policy.provider())?,
            policy,
            certificate,
        })
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
        let config = if self.policy.upgrades(&offered) { &self.upgrade } else { &self.classical };
        let stream = start.into_stream(config.clone()).await?;
        let negotiated = Negotiated::of(stream.get_ref().1);
        Ok((stream, negotiated))
    }
}

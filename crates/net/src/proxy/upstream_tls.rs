//! TLS to a backend: the offer, the trusted roots, and the negotiated parameters.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use outlast_crypto::versions::Version;
use outlast_negotiate::Rules;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::pieces::{Transport, Wide};
use crate::Negotiated;
use crate::client::{ClientError, ClientIdentity};
use crate::policy::Policy;

/// Called with the negotiated parameters when they change.
pub type Tell = Box<dyn Fn(&Negotiated) + Send + Sync>;

/// Settings of a TLS connection to a backend.
pub struct UpstreamSettings<'a> {
    /// Policy and mode of the offer.
    pub rules: Rules,
    /// Trusted CAs, DER.
    pub roots: &'a [Vec<u8>],
    /// Certificate for a backend that asks for one.
    pub identity: Option<&'a ClientIdentity>,
    /// Name in the backend's certificate, sent as SNI.
    pub name: ServerName<'static>,
    /// ALPN names.
    pub protocols: Vec<Vec<u8>>,
    /// Called with the negotiated parameters.
    pub tell: Option<Tell>,
}

/// TLS connections to a backend.
pub struct UpstreamTls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    tell: Option<Tell>,
    last: Mutex<Option<Negotiated>>,
}

impl UpstreamTls {
    /// Checks that all settings can be used.
    pub fn new(settings: UpstreamSettings<'_>) -> Result<Self, ClientError> {
        let mut store = RootCertStore::empty();
        let mut unusable = None;
        for der in settings.roots {
            if let Err(error) = store.add(CertificateDer::from(der.clone())) {
                unusable = Some(error);
            }
        }
        // A system's list may contain an unusable certificate among many; a list without any usable one is a mistake.
        if store.is_empty() {
            let reason = unusable.map_or("there is none".to_owned(), |error| error.to_string());
            return Err(ClientError::Trust(reason));
        }
        let versions: Vec<_> = settings.rules.versions().map(Version::rustls).collect();
        let builder = ClientConfig::builder_with_provider(Policy::of(&settings.rules).provider())
            .with_protocol_versions(&versions)
            .map_err(|error| ClientError::Trust(error.to_string()))?
            .with_root_certificates(store);
        let mut config = match settings.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let chain = identity.chain.iter().cloned().map(CertificateDer::from).collect();
                let key = PrivatePkcs8KeyDer::from(identity.key.expose().to_vec());
                builder
                    .with_client_auth_cert(chain, PrivateKeyDer::from(key))
                    .map_err(|error| ClientError::Identity(error.to_string()))?
            }
        };
        config.alpn_protocols = settings.protocols;
        Ok(Self {
            config: Arc::new(config),
            name: settings.name,
            tell: settings.tell,
            last: Mutex::default(),
        })
    }

    /// Does the handshake.
    pub(crate) async fn connect<S: Transport>(
        &self,
        stream: Wide<S>,
    ) -> io::Result<TlsStream<Wide<S>>> {
        let connector = TlsConnector::from(self.config.clone());
        let stream = connector.connect(self.name.clone(), stream).await?;
        self.told(Negotiated::of(stream.get_ref().1));
        Ok(stream)
    }

    fn told(&self, negotiated: Negotiated) {
        let Some(tell) = &self.tell else { return };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |last: &Negotiated| {
            (&last.version, &last.cipher_suite) == (&negotiated.version, &negotiated.cipher_suite)
                && last.group == negotiated.group
        };
        if !last.as_ref().is_some_and(known) {
            tell(&negotiated);
            *last = Some(negotiated);
        }
    }
}

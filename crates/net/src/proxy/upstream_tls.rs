//! TLS with the server behind: what is offered, whom to believe, and what came of it.

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

/// Told of what was negotiated, when it is not what was negotiated before.
pub type Tell = Box<dyn Fn(&Negotiated) + Send + Sync>;

/// What is needed to make one.
pub struct UpstreamSettings<'a> {
    /// What is offered.
    pub rules: Rules,
    /// CAs to believe, DER.
    pub roots: &'a [Vec<u8>],
    /// What is shown to a server that asks for a certificate.
    pub identity: Option<&'a ClientIdentity>,
    /// The name in the server's certificate, which is asked for by SNI.
    pub name: ServerName<'static>,
    /// ALPN names.
    pub protocols: Vec<Vec<u8>>,
    /// Whom to tell.
    pub tell: Option<Tell>,
}

/// How TLS is spoken with a server behind.
pub struct UpstreamTls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    tell: Option<Tell>,
    last: Mutex<Option<Negotiated>>,
}

impl UpstreamTls {
    /// Checks that all of it can be used.
    pub fn new(settings: UpstreamSettings<'_>) -> Result<Self, ClientError> {
        let mut store = RootCertStore::empty();
        let mut unusable = None;
        for der in settings.roots {
            if let Err(error) = store.add(CertificateDer::from(der.clone())) {
                unusable = Some(error);
            }
        }
        // A system's list may have a strange one among many; a list without any good one is a mistake.
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

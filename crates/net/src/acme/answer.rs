//! The other side of tls-alpn-01 (RFC 8737): a machine that enrols shows its certificate to validators.

use std::sync::Arc;

use outlast_crypto::Secret;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{Error, ServerConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::tls::ALPN;
use crate::limits;

/// A TLS server for validators.
pub struct TlsAnswers(TlsAcceptor);

impl TlsAnswers {
    /// Shows this certificate in DER; the key is in PKCS #8.
    pub fn new(certificate: Vec<u8>, private_key: &Secret) -> Result<Self, Error> {
        let der = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(private_key.expose()));
        // Not by the provider, which would keep a copy of the key without erasing it.
        let key = aws_lc_rs::sign::any_supported_type(&der)?;
        // Without rustls' own check of the certificate, because it does not know the extension.
        let shown = CertifiedKey::new(vec![CertificateDer::from(certificate)], key);
        // Any validator must be able to connect, so the groups are rustls' own and not a policy's.
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(shown)));
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Answers until the future is dropped.
    pub async fn serve(self, listener: TcpListener) {
        let slots = Arc::new(Semaphore::new(limits::VALIDATORS));
        loop {
            let Ok((stream, peer)) = listener.accept().await else {
                tokio::time::sleep(limits::STOPPING).await;
                continue;
            };
            let Ok(slot) = slots.clone().try_acquire_owned() else { continue };
            let acceptor = self.0.clone();
            tokio::spawn(async move {
                if timeout(limits::HANDSHAKE, handshake(&acceptor, stream)).await.is_err() {
                    tracing::debug!(%peer, "a validator did not complete its handshake");
                }
                drop(slot);
            });
        }
    }
}

/// RFC 8737, section 3: nothing is sent after the handshake.
async fn handshake(acceptor: &TlsAcceptor, stream: TcpStream) {
    use tokio::io::AsyncWriteExt as _;
    match acceptor.accept(stream).await {
        Ok(mut stream) => {
            let _ = stream.shutdown().await;
        }
        Err(error) => tracing::debug!(%error, "a validator's handshake failed"),
    }
}

//! The certificates of a door, facts about them, and keys that sign with one scheme only.

use std::sync::Arc;

use outlast_crypto::schemes::{SCHEMES, Scheme};
use outlast_negotiate::decide::CertificateFacts;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::{CertifiedKey, Signer, SigningKey};
use rustls::{SignatureAlgorithm as KeyAlgorithm, SignatureScheme};

use crate::chain::chain_schemes;

/// A certificate of the door.
#[derive(Clone)]
pub struct ServerCertificate {
    /// Name in the ledger: `ecdsa-p256`.
    pub kind: String,
    /// The chain and its key.
    pub key: Arc<CertifiedKey>,
}

impl ServerCertificate {
    /// Facts for a decision.
    pub fn facts(&self) -> CertificateFacts {
        let can_sign = |scheme: &&Scheme| {
            self.key.key.choose_scheme(&[SignatureScheme::from(scheme.code_point)]).is_some()
        };
        CertificateFacts {
            kind: self.kind.clone(),
            schemes: SCHEMES.iter().filter(can_sign).map(|row| row.code_point).collect(),
            chain: chain_schemes(self.key.cert.iter().map(AsRef::as_ref)),
        }
    }
}

/// Presents one certificate and signs with one scheme.
#[derive(Debug)]
pub(super) struct Always(Arc<CertifiedKey>);

impl Always {
    pub(super) fn new(certificate: &ServerCertificate, scheme: &Scheme) -> Self {
        let shown = &certificate.key;
        Self(Arc::new(CertifiedKey {
            cert: shown.cert.clone(),
            key: Arc::new(OneScheme {
                key: shown.key.clone(),
                scheme: SignatureScheme::from(scheme.code_point),
            }),
            ocsp: shown.ocsp.clone(),
        }))
    }
}

impl ResolvesServerCert for Always {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// A key that signs only with the chosen scheme, although it could use others too.
#[derive(Debug)]
struct OneScheme {
    key: Arc<dyn SigningKey>,
    scheme: SignatureScheme,
}

impl SigningKey for OneScheme {
    fn choose_scheme(&self, offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        offered.contains(&self.scheme).then(|| self.key.choose_scheme(&[self.scheme]))?
    }

    fn public_key(&self) -> Option<SubjectPublicKeyInfoDer<'_>> {
        self.key.public_key()
    }

    fn algorithm(&self) -> KeyAlgorithm {
        self.key.algorithm()
    }
}

//! What the lab asks of a signature algorithm: certificates and handshakes come to it through these two traits alone.
//!
//! Rows from `crypto` have one implementation for all, in [`super::tables`]. An algorithm of the literature brings its own:
//! its object identifiers may be private ones, its code point, too, as long as the three agree: what
//! [`KeyPair::signature_algorithm`] writes into certificates, what [`KeyPair::for_tls`] signs handshakes with, and what
//! [`Authenticator::verification`] knows.

use std::fmt::Debug;
use std::sync::Arc;

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::sign::SigningKey;
use spki::AlgorithmIdentifierOwned;

use crate::error::LabError;

/// A signature algorithm.
pub trait Authenticator: Sync + Send + Debug {
    /// A new key pair.
    fn generate(&self) -> Result<Box<dyn KeyPair>, LabError>;

    /// What a rustls peer verifies with: certificates by object identifiers, handshakes by code points. All that a usual
    /// client offers is in it, so that ClientHello has its usual size.
    fn verification(&self) -> WebPkiSupportedAlgorithms {
        rustls::crypto::aws_lc_rs::default_provider().signature_verification_algorithms
    }
}

/// A key pair, of an issuer or of a leaf.
pub trait KeyPair: Send + Sync {
    /// DER `SubjectPublicKeyInfo`.
    fn public_key(&self) -> &[u8];

    /// The `AlgorithmIdentifier` of its signatures in certificates.
    fn signature_algorithm(&self) -> Result<AlgorithmIdentifierOwned, LabError>;

    /// Signs a certificate's content; the signature has X.509's form.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, LabError>;

    /// For rustls: signs handshakes.
    fn for_tls(&self) -> Result<Arc<dyn SigningKey>, LabError>;

    /// The private key as PKCS #8 DER, for other programs; `None` if no other program knows it.
    fn pkcs8(&self) -> Option<Vec<u8>>;
}

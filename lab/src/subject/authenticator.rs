//! The lab's interface to signature algorithms: certificates and handshakes use these two traits only.
//!
//! Rows from `crypto` share one implementation, in [`super::tables`]. An algorithm from the literature brings its
//! own: its object identifiers and its code point may be private ones, as long as three agree: what
//! [`KeyPair::signature_algorithm`] writes into certificates, what [`KeyPair::for_tls`] signs handshakes with, and
//! what [`Authenticator::verification`] accepts.

use std::fmt::Debug;
use std::sync::Arc;

use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::sign::SigningKey;
use spki::AlgorithmIdentifierOwned;

use crate::error::LabError;

/// A signature algorithm.
pub trait Authenticator: Sync + Send + Debug {
    /// Makes a key pair.
    fn generate(&self) -> Result<Box<dyn KeyPair>, LabError>;

    /// The algorithms that a rustls peer verifies with: certificates by object identifiers, handshakes by code
    /// points. It includes everything that an ordinary client offers, so that ClientHello has its usual size.
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

    /// Signs a certificate's contents; the signature has X.509's form.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, LabError>;

    /// The key for rustls, which signs handshakes.
    fn for_tls(&self) -> Result<Arc<dyn SigningKey>, LabError>;

    /// The private key as PKCS #8 DER, for other programs; `None` if no other program supports it.
    fn pkcs8(&self) -> Option<Vec<u8>>;
}

//! Rows of what can be measured in handshakes.

use outlast_crypto::groups::Strength;
use rustls::crypto::SupportedKxGroup;

use super::authenticator::Authenticator;

/// A key exchange that can be measured.
#[derive(Debug)]
pub struct KeyExchange {
    /// IANA's name, or the literature's.
    pub name: &'static str,
    /// IANA's code point, or a private one.
    pub code_point: u16,
    /// Hybrid, post-quantum or classical.
    pub strength: Strength,
    /// Bytes of the client's share.
    pub client_share_len: usize,
    /// Bytes of the server's share.
    pub server_share_len: usize,
    /// Whether it is an algorithm from the literature that Outlast does not serve.
    pub legacy: bool,
    /// The implementation.
    pub group: &'static dyn SupportedKxGroup,
}

/// A signature algorithm for certificates and handshakes.
#[derive(Debug)]
pub struct Authentication {
    /// Usual name, such as `ML-DSA-65` or `ECDSA P-256`.
    pub name: &'static str,
    /// Code point of its signature scheme in TLS 1.3, or a private one.
    pub code_point: u16,
    /// Whether it resists a quantum computer.
    pub post_quantum: bool,
    /// Bytes of a public key, raw (not DER).
    pub public_key_len: usize,
    /// Length of a signature in bytes. If it is random, the longest (ECDSA's DER) or the usual one, and flights are
    /// counted as if each signature in CertificateVerify had it.
    pub signature_len: usize,
    /// Whether the cost of signing varies by itself, so that its mean is compared and not its 10th percentile
    /// (ML-DSA's rejection sampling).
    pub cost_varies: bool,
    /// Whether it is an algorithm from the literature that Outlast does not serve.
    pub legacy: bool,
    /// Makes keys and signatures, and verifies them.
    pub maker: &'static dyn Authenticator,
}

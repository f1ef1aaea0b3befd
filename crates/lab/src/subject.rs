//! What is measured: a key exchange with a signature chain and a kind of handshake.
//!
//! Whatever `crypto`'s tables have takes part, by itself; algorithms of the literature are further rows under the
//! feature `legacy`.

use outlast_crypto::groups::Strength;
use rustls::crypto::SupportedKxGroup;
use serde::{Deserialize, Serialize};

use crate::error::LabError;

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
    /// Whether it is an algorithm of the literature that Outlast does not serve.
    pub legacy: bool,
    /// The implementation.
    pub group: &'static dyn SupportedKxGroup,
}

/// A signature algorithm that certificates and handshakes can be signed with.
#[derive(Debug)]
pub struct Authentication {
    /// The field's name, such as `ML-DSA-65` or `ECDSA P-256`.
    pub name: &'static str,
    /// Code point of its signature scheme in TLS 1.3, or a private one.
    pub code_point: u16,
    /// Whether it resists a quantum computer.
    pub post_quantum: bool,
    /// Bytes of a public key, raw (not DER).
    pub public_key_len: usize,
    /// Bytes of a signature, at most.
    pub signature_len: usize,
    /// Whether it is an algorithm of the literature that Outlast does not serve.
    pub legacy: bool,
}

/// The kind of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The server shows its chain.
    Full,
    /// The same after a HelloRetryRequest: the client first sends a share of another group.
    HelloRetry,
    /// By a ticket, with key exchange (psk_dhe_ke).
    Resumed,
    /// Both show a chain.
    Mutual,
}

/// One configuration to be measured.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// The key exchange.
    pub key_exchange: &'static KeyExchange,
    /// The algorithm of all certificates.
    pub authentication: &'static Authentication,
    /// Certificates that the server sends, the leaf included; the root stays at home. 1 to 5.
    pub certificates: u8,
    /// The kind of handshake.
    pub kind: Kind,
}

/// Every key exchange: those of `crypto`'s table, then the literature's.
pub fn key_exchanges() -> &'static [KeyExchange] {
    &[]
}

/// Every signature algorithm of certificates that TLS 1.3 has a scheme for, then the literature's.
pub fn authentications() -> &'static [Authentication] {
    &[]
}

impl KeyExchange {
    /// The row with this name, in any case.
    pub fn by_name(name: &str) -> Result<&'static Self, LabError> {
        key_exchanges()
            .iter()
            .find(|row| row.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| LabError::Plan(format!("no key exchange is named {name}")))
    }
}

impl Authentication {
    /// The row with this name, in any case.
    pub fn by_name(name: &str) -> Result<&'static Self, LabError> {
        authentications()
            .iter()
            .find(|row| row.name.eq_ignore_ascii_case(name))
            .ok_or_else(|| LabError::Plan(format!("no signature algorithm is named {name}")))
    }
}

impl Subject {
    /// By names, with a full handshake.
    pub fn new(
        key_exchange: &str,
        authentication: &str,
        certificates: u8,
    ) -> Result<Self, LabError> {
        Ok(Self {
            key_exchange: KeyExchange::by_name(key_exchange)?,
            authentication: Authentication::by_name(authentication)?,
            certificates,
            kind: Kind::Full,
        })
    }

    /// The same with another kind of handshake.
    pub fn kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// A name for people, keys of points and legends.
    pub fn name(&self) -> String {
        let kind = match self.kind {
            Kind::Full => "",
            Kind::HelloRetry => ", HelloRetryRequest",
            Kind::Resumed => ", resumed",
            Kind::Mutual => ", mutual",
        };
        let chain =
            if self.certificates == 1 { String::new() } else { format!(" x{}", self.certificates) };
        format!("{} + {}{chain}{kind}", self.key_exchange.name, self.authentication.name)
    }
}

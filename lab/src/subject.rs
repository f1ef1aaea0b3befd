//! Subjects of measurements: a key exchange with a signature chain and a kind of handshake.
//!
//! Every row of `crypto`'s tables is included automatically ([`tables`]). Algorithms from the literature are further
//! rows under the feature `legacy`: `legacy::key_exchanges() -> Vec<KeyExchange>`, each with its own rustls object,
//! and `legacy::authentications() -> Vec<Authentication>`, each with its own [`Authenticator`].

pub mod authenticator;
pub mod rows;
pub mod tables;

use std::sync::LazyLock;

use outlast_crypto::groups::GROUPS;
use outlast_crypto::keys::KEY_SPECS;
use serde::{Deserialize, Serialize};

pub use self::authenticator::{Authenticator, KeyPair};
pub use self::rows::{Authentication, KeyExchange};
use crate::error::LabError;

/// The kind of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The server shows its chain.
    Full,
    /// The same after a HelloRetryRequest: the client first sends a share for another group.
    HelloRetry,
    /// Resumed by a ticket, with key exchange (psk_dhe_ke).
    Resumed,
    /// Both sides show a chain.
    Mutual,
}

/// A configuration to measure.
#[derive(Debug, Clone, Copy)]
pub struct Subject {
    /// The key exchange.
    pub key_exchange: &'static KeyExchange,
    /// The signature algorithm of all certificates.
    pub authentication: &'static Authentication,
    /// Number of certificates that the server sends, including the leaf, without the root. 1 to 5.
    pub certificates: u8,
    /// The kind of handshake.
    pub kind: Kind,
}

/// All key exchanges: those of `crypto`'s table, then the literature's.
pub fn key_exchanges() -> &'static [KeyExchange] {
    static ROWS: LazyLock<Vec<KeyExchange>> = LazyLock::new(|| {
        let rows = tables::key_exchanges(GROUPS);
        #[cfg(feature = "legacy")]
        let rows = rows.into_iter().chain(crate::legacy::key_exchanges()).collect();
        rows
    });
    &ROWS
}

/// All signature algorithms of certificates that TLS 1.3 has a scheme for, then the literature's.
pub fn authentications() -> &'static [Authentication] {
    static ROWS: LazyLock<Vec<Authentication>> = LazyLock::new(|| {
        let rows = tables::authentications(KEY_SPECS);
        #[cfg(feature = "legacy")]
        let rows = rows.into_iter().chain(crate::legacy::authentications()).collect();
        rows
    });
    &ROWS
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
    /// A subject by names, with a full handshake.
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

    /// Whether the cost of this handshake varies by itself: a signer may need several attempts.
    pub fn cost_varies(&self) -> bool {
        self.authentication.cost_varies && self.kind != Kind::Resumed
    }

    /// The same with another kind of handshake.
    pub fn kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// A name for people, for keys of points and legends.
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

/// A subject by its names, for storage and for helper processes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubjectNames {
    /// Name of the key exchange.
    pub key_exchange: String,
    /// Name of the signature algorithm.
    pub authentication: String,
    /// Number of certificates that are sent.
    pub certificates: u8,
    /// Kind of handshake.
    pub kind: Kind,
}

impl From<&Subject> for SubjectNames {
    fn from(subject: &Subject) -> Self {
        Self {
            key_exchange: subject.key_exchange.name.to_owned(),
            authentication: subject.authentication.name.to_owned(),
            certificates: subject.certificates,
            kind: subject.kind,
        }
    }
}

impl TryFrom<&SubjectNames> for Subject {
    type Error = LabError;

    fn try_from(names: &SubjectNames) -> Result<Self, LabError> {
        let subject = Self::new(&names.key_exchange, &names.authentication, names.certificates)?;
        Ok(subject.kind(names.kind))
    }
}

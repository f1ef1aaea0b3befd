//! Challenges: ways to prove a name (RFC 8555, section 8; RFC 8737).

use serde::{Deserialize, Serialize};

use super::StoredProblem;

/// A way to prove a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChallengeKind {
    /// `http-01`: RFC 8555, section 8.3.
    Http01,
    /// `dns-01`: RFC 8555, section 8.4.
    Dns01,
    /// `tls-alpn-01`: RFC 8737.
    TlsAlpn01,
}

/// All kinds with their names, and whether each proves wildcards (RFC 8555, section 7.1.3).
pub static CHALLENGES: &[(&str, ChallengeKind, bool)] = &[
    ("http-01", ChallengeKind::Http01, false),
    ("dns-01", ChallengeKind::Dns01, true),
    ("tls-alpn-01", ChallengeKind::TlsAlpn01, false),
];

impl ChallengeKind {
    /// Name in ACME.
    pub fn name(self) -> &'static str {
        CHALLENGES.iter().find(|row| row.1 == self).map_or("", |row| row.0)
    }

    /// The kind with this name.
    pub fn by_name(name: &str) -> Option<Self> {
        CHALLENGES.iter().find(|row| row.0 == name).map(|row| row.1)
    }
}

/// Status of a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChallengeStatus {
    /// `pending`: the client has not said that it is ready.
    Pending,
    /// `processing`: the server is validating it.
    Processing,
    /// `valid`
    Valid,
    /// `invalid`
    Invalid,
}

impl ChallengeStatus {
    /// Name in ACME.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Valid => "valid",
            Self::Invalid => "invalid",
        }
    }
}

/// A challenge.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Challenge {
    /// Kind.
    pub kind: ChallengeKind,
    /// Token, in base64url.
    pub token: String,
    /// Status.
    pub status: ChallengeStatus,
    /// When it was met, milliseconds since 1970.
    pub validated_ms: Option<i64>,
    /// Why the last attempt, or the challenge, has failed.
    pub error: Option<StoredProblem>,
}

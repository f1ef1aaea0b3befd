//! Why a timestamp does not count: a kind for programs, and words for people.

use crate::cms::verify::VerifyError;
use crate::path::PathError;
use crate::timestamp::TimestampError;

/// What is wrong with a timestamp or an evidence record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It cannot be read, is for other data, or breaks a rule of RFC 3161 or RFC 4998.
    Invalid,
    /// It is by no authority that is trusted.
    Untrusted,
    /// A signing policy does not accept its policy, or the algorithms of its authority.
    Unsuited,
    /// Its certificates have ended, and nothing proves that it existed before.
    Ended,
    /// Its authority was revoked.
    Revoked,
    /// Whether its authority was revoked must be known, and is not.
    RevocationUnknown,
}

/// All of them.
pub const FAULTS: &[Fault] = &[
    Fault::Invalid,
    Fault::Untrusted,
    Fault::Unsuited,
    Fault::Ended,
    Fault::Revoked,
    Fault::RevocationUnknown,
];

/// Why a timestamp does not count, or an evidence record proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Refusal {
    /// What is wrong.
    pub fault: Fault,
    /// The same in words.
    pub reason: String,
}

impl Fault {
    /// Name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Untrusted => "untrusted",
            Self::Unsuited => "unsuited",
            Self::Ended => "ended",
            Self::Revoked => "revoked",
            Self::RevocationUnknown => "revocation-unknown",
        }
    }

    fn of(error: &TimestampError) -> Self {
        match error {
            TimestampError::Policy(_) => Self::Unsuited,
            TimestampError::Message(VerifyError::Path(error)) => match error {
                PathError::UnknownIssuer { .. } => Self::Untrusted,
                PathError::Expired { .. } => Self::Ended,
                PathError::Revoked(_) => Self::Revoked,
                PathError::RevocationUnknown(_) => Self::RevocationUnknown,
                _ => Self::Invalid,
            },
            _ => Self::Invalid,
        }
    }
}

impl Refusal {
    pub(super) fn new(fault: Fault, reason: impl Into<String>) -> Self {
        Self { fault, reason: reason.into() }
    }

    /// Of something that is wrong in itself.
    pub fn invalid(reason: impl Into<String>) -> Self {
        Self::new(Fault::Invalid, reason)
    }

    pub(super) fn of(error: &TimestampError) -> Self {
        Self::new(Fault::of(error), error.to_string())
    }

    /// Whether the timestamp is simply not by this authority.
    pub(super) fn is_by_stranger(&self) -> bool {
        self.fault == Fault::Untrusted
    }
}

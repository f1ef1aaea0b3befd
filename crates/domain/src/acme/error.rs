//! Errors of ACME (RFC 8555, section 6.7): types as rows.

use serde::{Deserialize, Serialize};

use super::DnsName;
use crate::Fault;
use crate::acm::AcmError;
use crate::ca::CaError;
use crate::identity::Denied;

/// A type of problem.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// The type without its prefix `urn:ietf:params:acme:error:`.
    pub name: &'static str,
    /// HTTP status.
    pub status: u16,
}

macro_rules! kinds {
    ($($constant:ident = $name:literal $status:literal $doc:literal;)*) => {
        impl Kind {
            $(#[doc = $doc] pub const $constant: &'static Self = &Self { name: $name, status: $status };)*
        }
        /// All types.
        pub static KINDS: &[&Kind] = &[$(Kind::$constant),*];
    };
}

kinds! {
    ACCOUNT_DOES_NOT_EXIST = "accountDoesNotExist" 400 "The request names an account that does not exist.";
    ALREADY_REPLACED = "alreadyReplaced" 409 "The certificate named by `replaces` has already been replaced (RFC 9773).";
    ALREADY_REVOKED = "alreadyRevoked" 400 "The certificate is already revoked.";
    BAD_CSR = "badCSR" 400 "The certificate request is not acceptable.";
    BAD_NONCE = "badNonce" 400 "The nonce was not issued by this server, is too old, or was used before.";
    BAD_PUBLIC_KEY = "badPublicKey" 400 "The key is not acceptable.";
    BAD_REVOCATION_REASON = "badRevocationReason" 400 "The reason of the revocation is not acceptable.";
    BAD_SIGNATURE_ALGORITHM = "badSignatureAlgorithm" 400 "The JWS has an algorithm that is not supported.";
    COMPOUND = "compound" 403 "Several problems: see the subproblems.";
    CONNECTION = "connection" 400 "The target of a validation could not be reached.";
    DNS = "dns" 400 "A DNS query failed.";
    EXTERNAL_ACCOUNT_REQUIRED = "externalAccountRequired" 403 "The request has no external account binding.";
    INCORRECT_RESPONSE = "incorrectResponse" 403 "The target does not give the expected response to the challenge.";
    INVALID_CONTACT = "invalidContact" 400 "A contact is not valid.";
    MALFORMED = "malformed" 400 "The request is malformed.";
    ORDER_NOT_READY = "orderNotReady" 403 "The order cannot be finalized yet.";
    RATE_LIMITED = "rateLimited" 429 "A limit is reached.";
    REJECTED_IDENTIFIER = "rejectedIdentifier" 403 "No certificate is issued for this name.";
    SERVER_INTERNAL = "serverInternal" 500 "The server has an internal error.";
    TLS = "tls" 400 "The TLS connection to the target of a validation failed.";
    UNAUTHORIZED = "unauthorized" 403 "The account may not do this.";
    UNSUPPORTED_CONTACT = "unsupportedContact" 400 "A contact has a scheme that is not supported.";
    UNSUPPORTED_IDENTIFIER = "unsupportedIdentifier" 400 "The type of a name is not supported.";
}

impl Kind {
    /// The type with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        KINDS.iter().copied().find(|row| row.name == name)
    }
}

/// A problem with one of several names (RFC 8555, section 6.7.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subproblem {
    /// Type.
    pub kind: &'static Kind,
    /// Text for people.
    pub detail: String,
    /// The name.
    pub name: DnsName,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Type.
    pub kind: &'static Kind,
    /// Text for people.
    pub detail: String,
    /// Problems with single names.
    pub subproblems: Vec<Subproblem>,
    /// Status code, where it differs from the type's usual one.
    pub status: Option<u16>,
}

/// A problem as it is stored with an order or a challenge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredProblem {
    /// Name of the type.
    pub kind: String,
    /// Text for people.
    pub detail: String,
}

/// Why a step of the protocol fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AcmeError {
    /// The client's fault.
    #[error("{}: {}", .0.kind.name, .0.detail)]
    Problem(Box<Problem>),
    /// An internal failure.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl AcmeError {
    /// A problem without subproblems.
    pub fn new(kind: &'static Kind, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self::Problem(Box::new(Problem { kind, detail, subproblems: Vec::new(), status: None }))
    }

    /// The request is malformed.
    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(Kind::MALFORMED, detail)
    }

    /// The same with another HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        if let Self::Problem(problem) = &mut self {
            problem.status = Some(status);
        }
        self
    }

    /// No resource has this URL, or it belongs to another account.
    pub fn not_found(what: &str) -> Self {
        Self::malformed(format!("There is no such {what}.")).with_status(404)
    }

    /// Makes one problem of several: a single one stays as it is, others become subproblems.
    pub fn from_subproblems(mut found: Vec<Subproblem>) -> Option<Self> {
        let first = found.first()?;
        let same = found.iter().all(|other| other.kind == first.kind);
        let kind = if same { first.kind } else { Kind::COMPOUND };
        let detail = match found.len() {
            1 => first.detail.clone(),
            count => format!("There are problems with {count} names."),
        };
        found.truncate(crate::limits::MAX_ACME_IDENTIFIERS);
        Some(Self::Problem(Box::new(Problem { kind, detail, subproblems: found, status: None })))
    }
}

impl From<Denied> for AcmeError {
    fn from(error: Denied) -> Self {
        Self::new(Kind::UNAUTHORIZED, error.to_string())
    }
}

impl From<outlast_crypto::CryptoError> for AcmeError {
    fn from(error: outlast_crypto::CryptoError) -> Self {
        Self::Fault(error.into())
    }
}

impl From<CaError> for AcmeError {
    fn from(error: CaError) -> Self {
        match error {
            CaError::Fault(fault) => Self::Fault(fault),
            CaError::MalformedCsr(detail) => Self::new(Kind::BAD_CSR, detail),
            // A client cannot correct what the CA cannot do now, or not for this request.
            CaError::InvalidState(detail) => Self::new(Kind::SERVER_INTERNAL, detail),
            CaError::LimitExceeded(detail) => Self::new(Kind::RATE_LIMITED, detail),
            other => Self::new(Kind::UNAUTHORIZED, other.to_string()),
        }
    }
}

impl From<AcmError> for AcmeError {
    fn from(error: AcmError) -> Self {
        match error {
            AcmError::Fault(fault) => Self::Fault(fault),
            AcmError::InvalidState(detail) => Self::new(Kind::SERVER_INTERNAL, detail),
            AcmError::LimitExceeded(detail) | AcmError::ServiceQuotaExceeded(detail) => {
                Self::new(Kind::RATE_LIMITED, detail)
            }
            other => Self::new(Kind::UNAUTHORIZED, other.to_string()),
        }
    }
}

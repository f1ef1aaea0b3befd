//! Certificate Manager: certificates that renew themselves, and the ACME endpoints that hand them out.

pub mod account;

use crate::Fault;

/// Why Certificate Manager refuses. Each variant is one AWS error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcmError {
    /// `ResourceNotFoundException`
    #[error("{0}")]
    NotFound(String),
    /// `InvalidArnException`
    #[error("{0}")]
    InvalidArn(String),
    /// `InvalidArgsException`
    #[error("{0}")]
    InvalidArgs(String),
    /// `InvalidParameterException`
    #[error("{0}")]
    InvalidParameter(String),
    /// `InvalidStateException`
    #[error("{0}")]
    InvalidState(String),
    /// `InvalidDomainValidationOptionsException`
    #[error("{0}")]
    InvalidDomainValidationOptions(String),
    /// `InvalidTagException`
    #[error("{0}")]
    InvalidTag(String),
    /// `TooManyTagsException`
    #[error("{0}")]
    TooManyTags(String),
    /// `ConflictException`
    #[error("{0}")]
    Conflict(String),
    /// `ResourceInUseException`
    #[error("{0}")]
    ResourceInUse(String),
    /// `RequestInProgressException`
    #[error("{0}")]
    RequestInProgress(String),
    /// `LimitExceededException`
    #[error("{0}")]
    LimitExceeded(String),
    /// `ServiceQuotaExceededException`
    #[error("{0}")]
    ServiceQuotaExceeded(String),
    /// `AccessDeniedException`
    #[error("{0}")]
    AccessDenied(String),
    /// `ValidationException`
    #[error("{0}")]
    Validation(String),
    /// An internal failure.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<outlast_crypto::CryptoError> for AcmError {
    fn from(error: outlast_crypto::CryptoError) -> Self {
        Self::Fault(error.into())
    }
}

//! Certificate Manager: certificates that renew themselves, and the ACME endpoints that hand them out.

pub mod account;
pub mod certificate;
pub mod conditions;
pub mod details;
pub mod export;
pub mod import;
mod issued_for_acme;
mod leaf;
mod obtain;
pub mod proof;
pub mod public;
pub mod renew;
pub mod request;
pub mod revoke;
pub mod search;
pub mod tags;
mod told;

pub use issued_for_acme::{AcmeIssued, AcmeOrder, FORGET_ENDED, issue_for_acme, revoke_for_acme};
pub use leaf::{Issuers, default_key, private_template, template_arn};
pub(crate) use obtain::SERVICE_ROLE;
use serde::{Deserialize, Serialize};
pub use told::TELL;

use crate::arn::Scope;
use crate::ca::CaError;
use crate::quotas::Reached;
use crate::work::{Sweep, Work};
use crate::{Fault, limits};

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

impl From<Reached> for AcmError {
    fn from(reached: Reached) -> Self {
        Self::LimitExceeded(reached.to_string())
    }
}

impl From<outlast_crypto::CryptoError> for AcmError {
    fn from(error: outlast_crypto::CryptoError) -> Self {
        Self::Fault(error.into())
    }
}

/// Values that [`failure_reason`] and a renewal can return.
pub const FAILURE_REASONS: &[&str] = &[
    "DOMAIN_VALIDATION_DENIED",
    "PCA_ACCESS_DENIED",
    "PCA_INVALID_ARGS",
    "PCA_INVALID_ARN",
    "PCA_INVALID_DURATION",
    "PCA_INVALID_STATE",
    "PCA_REQUEST_FAILED",
    "PCA_RESOURCE_NOT_FOUND",
];

/// AWS's `FailureReason` for the error of a private CA.
pub fn failure_reason(error: &CaError) -> &'static str {
    match error {
        CaError::NotFound(_) => "PCA_RESOURCE_NOT_FOUND",
        CaError::InvalidArn(_) => "PCA_INVALID_ARN",
        CaError::InvalidState(_) => "PCA_INVALID_STATE",
        CaError::Validation(_) => "PCA_INVALID_DURATION",
        CaError::Denied(_) => "PCA_ACCESS_DENIED",
        CaError::LimitExceeded(_) => "PCA_LIMIT_EXCEEDED",
        CaError::InvalidArgs(_) | CaError::InvalidRequest(_) | CaError::MalformedCsr(_) => {
            "PCA_INVALID_ARGS"
        }
        _ => "PCA_REQUEST_FAILED",
    }
}

/// The refusal of a request by a private CA, with AWS's reason in front. A fault stays a fault.
pub fn refused_by_authority(error: CaError) -> AcmError {
    match error {
        CaError::Fault(fault) => AcmError::Fault(fault),
        CaError::Denied(denied) => AcmError::AccessDenied(denied.to_string()),
        CaError::NotFound(_) | CaError::InvalidArn(_) => AcmError::InvalidArn(error.to_string()),
        CaError::LimitExceeded(_) => {
            AcmError::LimitExceeded(format!("{}: {error}", failure_reason(&error)))
        }
        error => AcmError::InvalidParameter(format!("{}: {error}", failure_reason(&error))),
    }
}

/// An idempotency token that was used.
#[derive(Serialize, Deserialize)]
struct Token {
    /// Digest of the whole request.
    request: String,
    /// ARN of what the request made, if it made anything.
    arn: String,
    used_ms: i64,
}

impl Token {
    /// Whether it is too old to count.
    fn is_old(&self, now_ms: i64) -> bool {
        self.used_ms + limits::ACM_IDEMPOTENCY_SECONDS * 1000 < now_ms
    }
}

/// The use of a token in one operation of an account in a region.
pub(crate) struct TokenUse {
    record_key: String,
    request: String,
}

impl TokenUse {
    /// `request` is the digest of the whole request; it tells two uses of a token apart.
    pub(crate) fn new(scope: &Scope, operation: &str, token: &str, request: &str) -> Self {
        let digest = hex::encode(outlast_crypto::digests::sha256(token.as_bytes()));
        let record_key =
            format!("acm/token/{}/{}/{operation}/{digest}", scope.account, scope.region);
        Self { record_key, request: request.to_owned() }
    }

    /// The result of the same request with the same token, if it was made within the hour. Another request with the
    /// token is an error, which `conflict` builds.
    pub(crate) fn earlier(
        &self,
        work: &mut Work<'_>,
        conflict: fn(String) -> AcmError,
    ) -> Result<Option<String>, AcmError> {
        let now_ms = work.now_ms();
        match work.get::<Token>(&self.record_key)?.filter(|token| !token.is_old(now_ms)) {
            None => Ok(None),
            Some(token) if token.request == self.request => Ok(Some(token.arn)),
            Some(_) => Err(conflict(
                "The idempotency token was used with other parameters within the last hour; use another token."
                    .into(),
            )),
        }
    }

    /// Records the result of the request.
    pub(crate) fn remember(self, work: &mut Work<'_>, arn: &str) -> Result<(), Fault> {
        let used_ms = work.now_ms();
        work.put(&self.record_key, &Token { request: self.request, arn: arn.to_owned(), used_ms })
    }
}

/// Forgets idempotency tokens that are too old to count.
pub const FORGET_TOKENS: Sweep = Sweep {
    find: |work, after, limit| work.due("acm/token/", after, limit, Token::is_old),
    handle: |work, record_key, _| {
        // Read as part of the work, so that a token that is used again in the meantime stays.
        if work.get::<Token>(record_key)?.is_some_and(|token| token.is_old(work.now_ms())) {
            work.delete(record_key);
        }
        Ok(())
    },
};

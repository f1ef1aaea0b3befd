//! Private CA: certificate authorities and what they issue.

mod access;
mod authority;
mod chain;
pub mod crl;
mod epoch;
mod expiry;
mod import;
mod issue;
mod issued;
mod lifecycle;
mod names;
pub mod ocsp;
mod paired;
pub mod permission;
pub mod policy;
pub mod publish;
pub mod report;
pub mod responder;
mod revocation;
mod revoke;
mod served;
mod subject;
mod told;
mod validity;

pub use access::authorize;
pub use authority::{Authority, Kind, NewAuthority, Status, authorities, create, find};
pub use expiry::TELL;
pub use import::import_certificate;
pub use issue::{Named, NewCertificate, Passthrough, Requester, issue, issue_for};
pub(crate) use issued::issued;
pub use issued::{Issued, certificate, revoked};
pub use lifecycle::{ERASE_EXPIRED, Update, add_tags, delete, remove_tags, restore, set_status};
pub(crate) use ocsp::arn_by_key_of;
pub use paired::{PARTNER_TAG, Pair, issue_pair, paired, partner};
pub use revocation::{
    Crl, Ocsp, REASONS as REVOCATION_REASONS, Revocation, Revoked, canonical_serial,
};
pub use revoke::{RevokeAt, revoke};
pub use served::{authority_certificate, index, unindexed};
pub use subject::Subject;
pub use validity::{Validity, ValidityType};

use outlast_pki::templates::Template;
use serde::{Deserialize, Serialize};

use crate::arn::{Arn, Scope};
use crate::identity::Denied;
use crate::quotas::Reached;
use crate::work::{Sweep, Work};
use crate::{Fault, limits};

/// The ARN of a template, for policies to be evaluated with.
pub fn template_arn(template: &Template) -> String {
    format!("arn:aws:acm-pca:::template/{}/V1", template.name)
}

/// The template with this ARN, in any partition.
pub fn template_of(arn: &str) -> Option<&'static Template> {
    Template::by_arn(&Arn::parse(arn)?.to_string())
}

/// Why Private CA refuses. Each variant is one AWS error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CaError {
    /// `ResourceNotFoundException`
    #[error("{0}")]
    NotFound(String),
    /// `InvalidArnException`
    #[error("{0}")]
    InvalidArn(String),
    /// `InvalidArgsException`
    #[error("{0}")]
    InvalidArgs(String),
    /// `InvalidStateException`
    #[error("{0}")]
    InvalidState(String),
    /// `InvalidRequestException`
    #[error("{0}")]
    InvalidRequest(String),
    /// `MalformedCSRException`
    #[error("{0}")]
    MalformedCsr(String),
    /// `MalformedCertificateException`
    #[error("{0}")]
    MalformedCertificate(String),
    /// `CertificateMismatchException`
    #[error("{0}")]
    CertificateMismatch(String),
    /// `InvalidTagException`
    #[error("{0}")]
    InvalidTag(String),
    /// `TooManyTagsException`
    #[error("{0}")]
    TooManyTags(String),
    /// `RequestAlreadyProcessedException`
    #[error("{0}")]
    AlreadyProcessed(String),
    /// `RequestInProgressException`
    #[error("{0}")]
    InProgress(String),
    /// `PermissionAlreadyExistsException`
    #[error("{0}")]
    PermissionExists(String),
    /// `InvalidPolicyException`
    #[error("{0}")]
    InvalidPolicy(String),
    /// `LimitExceededException`
    #[error("{0}")]
    LimitExceeded(String),
    /// `LockoutPreventedException`
    #[error("{0}")]
    LockoutPrevented(String),
    /// `AccessDeniedException`
    #[error(transparent)]
    Denied(#[from] Denied),
    /// `ValidationException`
    #[error("{0}")]
    Validation(String),
    /// An internal failure.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<Reached> for CaError {
    fn from(reached: Reached) -> Self {
        Self::LimitExceeded(reached.to_string())
    }
}

impl From<outlast_crypto::CryptoError> for CaError {
    fn from(error: outlast_crypto::CryptoError) -> Self {
        Self::Fault(error.into())
    }
}

/// An idempotency token that was used.
#[derive(Serialize, Deserialize)]
struct Token {
    /// Digest of the whole request.
    request: String,
    /// ARN of what the request made.
    arn: String,
    used: i64,
}

impl Token {
    /// Whether it is too old to count.
    fn is_old(&self, now_ms: i64) -> bool {
        self.used + limits::IDEMPOTENCY_SECONDS < now_ms.div_euclid(1000)
    }
}

/// Record key of the use of a token.
fn token_record_key(scope: &Scope, operation: &str, token: &str) -> String {
    let digest = outlast_crypto::digests::sha256(token.as_bytes());
    format!("ca/token/{}/{}/{operation}/{}", scope.account, scope.region, hex::encode(digest))
}

/// The ARN that the same request made with the same token, if that was recently. Another request with the same token
/// is refused.
fn earlier_result(
    work: &mut Work<'_>,
    record_key: &str,
    request: &str,
) -> Result<Option<String>, CaError> {
    let Some(token) = work.get::<Token>(record_key)? else { return Ok(None) };
    if token.is_old(work.now_ms()) {
        return Ok(None);
    }
    if token.request != request {
        return Err(CaError::InvalidArgs(
            "The idempotency token was used with other parameters; use another token.".into(),
        ));
    }
    Ok(Some(token.arn))
}

/// Forgets idempotency tokens that are too old to count.
pub const FORGET_TOKENS: Sweep = Sweep {
    find: |work, after, limit| work.due("ca/token/", after, limit, Token::is_old),
    handle: |work, record_key, _| {
        // Read as part of the work, so that a token that is used again in the meantime stays.
        if work.get::<Token>(record_key)?.is_some_and(|token| token.is_old(work.now_ms())) {
            work.delete(record_key);
        }
        Ok(())
    },
};

fn remember(work: &mut Work<'_>, record_key: &str, request: &str, arn: &str) -> Result<(), Fault> {
    let token = Token { request: request.to_owned(), arn: arn.to_owned(), used: work.now() };
    work.put(record_key, &token)
}

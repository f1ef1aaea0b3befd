//! Failures that are nobody's request's fault.

use outlast_crypto::CryptoError;
use outlast_store::StoreError;

/// Something is wrong with the store or the library, not with what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record cannot be read: damaged, moved to another place, or sealed under another root key.
    #[error("the record {0} is damaged or sealed under another root key")]
    Damaged(String),
    /// The audit trail is not the one that was signed: somebody has changed the store.
    #[error("the audit trail was tampered with: {0}")]
    Audit(String),
    /// A record is not what this service has written last: changed, moved, put back, or made by somebody else.
    #[error(
        "the record {0} is not as this service wrote it: it was changed, moved, put back or added"
    )]
    Forged(String),
    /// What wraps the root keys cannot be used, as a token that is not there.
    #[error("the root key cannot be used: {0}")]
    RootKey(String),
    /// The clock is wrong, or may be: what is due by it is left as it is.
    #[error("the clock is wrong: {0}")]
    Clock(String),
    /// The cryptographic library failed.
    #[error(transparent)]
    Crypto(#[from] CryptoError),
    /// A permit for this action was shown where it does not open the resource: a mistake of this program.
    #[error("a permit for {0} was used on another resource")]
    Misused(&'static str),
    /// A certificate or name that was accepted before can no longer be encoded.
    #[error("an object cannot be encoded: {0}")]
    Encoding(String),
}

impl From<outlast_pki::PkiError> for Fault {
    fn from(error: outlast_pki::PkiError) -> Self {
        Self::Encoding(error.to_string())
    }
}

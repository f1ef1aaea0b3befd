//! Failures that no request is to blame for.

use outlast_crypto::CryptoError;
use outlast_store::StoreError;

/// Something is wrong with the store, the machine or this program, and not with the request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A record cannot be read: damaged, moved to another key, or sealed under another root key.
    #[error("the record {0} is damaged or sealed under another root key")]
    Damaged(String),
    /// The audit trail differs from what was signed: somebody has changed the store.
    #[error("the audit trail was tampered with: {0}")]
    Audit(String),
    /// A record is not as this service wrote it last: changed, moved, put back, or made by somebody else.
    #[error(
        "the record {0} is not as this service wrote it: it was changed, moved, put back or added"
    )]
    Forged(String),
    /// The key-encryption key of the root keys cannot be used, for instance because the token is not there.
    #[error("the root key cannot be used: {0}")]
    RootKey(String),
    /// The clock is wrong, or may be: nothing is done that is due by it.
    #[error("the clock is wrong: {0}")]
    Clock(String),
    /// The cryptographic library failed.
    #[error(transparent)]
    Crypto(#[from] CryptoError),
    /// A permit for this action was used for a resource that it does not open: a bug of this program.
    #[error("a permit for {0} was used on another resource")]
    Misused(&'static str),
    /// A certificate or name that was accepted earlier cannot be encoded any more.
    #[error("an object cannot be encoded: {0}")]
    Encoding(String),
}

impl From<outlast_pki::PkiError> for Fault {
    fn from(error: outlast_pki::PkiError) -> Self {
        Self::Encoding(error.to_string())
    }
}

//! KMS: keys, their states, aliases, tags, and what is done with them.

mod alias;
mod key;
mod operate;

pub use alias::{Alias, aliases, create_alias, delete_alias};
pub use key::{
    Deletion, Key, KeyState, NewKey, add_tags, cancel_deletion, create, erase_expired, find, keys,
    schedule_deletion, set_enabled,
};
pub use operate::{
    CiphertextRef, EncryptionContext, Plaintext, PlaintextRef, decrypt, decryption_key, encrypt,
    public_key, sign, verify,
};

use crate::Fault;

/// Why KMS refuses. Each variant is one AWS error; the text is AWS's where it is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KmsError {
    /// `NotFoundException`
    #[error("{0}")]
    NotFound(String),
    /// `InvalidArnException`
    #[error("{0}")]
    InvalidArn(String),
    /// `DisabledException`
    #[error("{0} is disabled.")]
    Disabled(String),
    /// `KMSInvalidStateException`
    #[error("{0}")]
    InvalidState(String),
    /// `InvalidKeyUsageException`
    #[error("{0}")]
    InvalidKeyUsage(String),
    /// `UnsupportedOperationException`
    #[error("{0}")]
    UnsupportedOperation(String),
    /// `KMSInvalidSignatureException`, whose message AWS leaves empty.
    #[error("")]
    InvalidSignature,
    /// `InvalidCiphertextException`, whose message AWS leaves empty.
    #[error("")]
    InvalidCiphertext,
    /// `IncorrectKeyException`
    #[error("The key ID in the request does not identify a CMK that can perform this operation.")]
    IncorrectKey,
    /// `ValidationException`
    #[error("{0}")]
    Validation(String),
    /// `AlreadyExistsException`
    #[error("{0}")]
    AlreadyExists(String),
    /// `InvalidAliasNameException`
    #[error("{0}")]
    InvalidAliasName(String),
    /// `LimitExceededException`
    #[error("{0}")]
    LimitExceeded(String),
    /// `TagException`
    #[error("{0}")]
    Tag(String),
    /// `KMSInternalException` and the like.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<outlast_crypto::CryptoError> for KmsError {
    fn from(error: outlast_crypto::CryptoError) -> Self {
        Self::Fault(error.into())
    }
}

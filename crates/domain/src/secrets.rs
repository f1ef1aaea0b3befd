//! Secrets Manager: secrets, their versions and staging labels, replicas and rotation.
//!
//! The value of each version is encrypted with a data key of its own, which a KMS key encrypts ([`value`]). Nothing
//! here decides when a rotation runs; [`rotation`] says what is due.

mod access;
mod change;
mod conditions;
mod create;
mod lifecycle;
mod list;
mod lookup;
pub mod password;
pub mod policy;
mod replica;
pub mod rotation;
mod secret;
mod stages;
mod value;

pub use access::{authorize, authorize_absent, authorize_new};
pub use change::{
    Description, NewValue, Update, add_tags, move_stage, put_value, remove_tags, update,
};
pub use create::{NewSecret, create};
pub use lifecycle::{ERASE_EXPIRED, Forced, RECOVERY_DAYS, delete, force_delete, restore};
pub use list::{Filter, FilterKey, ListedVersion, Order, SortBy, secrets, versions};
pub use lookup::{Named, find, is_name};
pub use replica::{
    NewReplica, Replicated, add_replicas, prepare_replica, promote, remove_replicas, sync,
};
pub use secret::{Replica, ReplicaStatus, Secret, Version};
pub use stages::{CURRENT, PENDING, PREVIOUS};
pub use value::{
    Protected, SecretValue, Selected, Selector, context, holder, key, open, protect, read, select,
};

use crate::Fault;
use crate::identity::Denied;
use crate::kms::KmsError;
use crate::quotas::Reached;

/// Why Secrets Manager refuses. Each variant is one AWS error; the text is AWS's where it is known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SecretError {
    /// `ResourceNotFoundException`
    #[error("{0}")]
    NotFound(String),
    /// `ResourceExistsException`
    #[error("{0}")]
    Exists(String),
    /// `InvalidRequestException`
    #[error("{0}")]
    InvalidRequest(String),
    /// `InvalidParameterException`
    #[error("{0}")]
    InvalidParameter(String),
    /// `ValidationException`
    #[error("{0}")]
    Validation(String),
    /// `LimitExceededException`
    #[error("{0}")]
    LimitExceeded(String),
    /// `EncryptionFailure`
    #[error("{0}")]
    Encryption(String),
    /// `DecryptionFailure`
    #[error("{0}")]
    Decryption(String),
    /// `MalformedPolicyDocumentException`
    #[error("{0}")]
    MalformedPolicy(String),
    /// `PublicPolicyException`
    #[error("{0}")]
    PublicPolicy(String),
    /// `AccessDeniedException`
    #[error(transparent)]
    Denied(#[from] Denied),
    /// `AccessDeniedException` because the caller may not use the KMS key.
    #[error("Access to KMS is not allowed")]
    KmsDenied,
    /// `InternalServiceError`
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl SecretError {
    /// The error of a KMS key that cannot encrypt.
    pub fn cannot_encrypt(error: KmsError) -> Self {
        Self::of_key(error, |why| {
            Self::Encryption(format!(
                "Secrets Manager can't encrypt the protected secret text using the provided KMS key: {why}"
            ))
        })
    }

    /// The error of a KMS key that cannot decrypt.
    pub fn cannot_decrypt(error: KmsError) -> Self {
        Self::of_key(error, |why| {
            Self::Decryption(format!(
                "Secrets Manager can't decrypt the protected secret text using the provided KMS key: {why}"
            ))
        })
    }

    fn of_key(error: KmsError, failure: impl FnOnce(String) -> Self) -> Self {
        match error {
            KmsError::Fault(fault) => Self::Fault(fault),
            KmsError::Denied(_) | KmsError::UnknownCiphertextKey => Self::KmsDenied,
            error => failure(error.to_string()),
        }
    }

    pub(crate) fn not_found() -> Self {
        Self::NotFound("Secrets Manager can't find the specified secret.".into())
    }
}

impl From<Reached> for SecretError {
    fn from(reached: Reached) -> Self {
        Self::LimitExceeded(reached.to_string())
    }
}

impl From<outlast_crypto::CryptoError> for SecretError {
    fn from(error: outlast_crypto::CryptoError) -> Self {
        Self::Fault(error.into())
    }
}

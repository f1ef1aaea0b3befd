//! KMS: keys, their states, aliases, tags, and the operations on them.

mod access;
mod alias;
pub mod approval;
mod asker;
mod grant;
mod import;
mod key;
mod lifecycle;
mod managed;
mod operate;
mod record;
mod region;
mod rotation;
mod usage;

pub use access::{authorize, authorize_retire, check_policy, put_policy, shown_policy};
pub use alias::{
    Alias, MayUpdate, after_prefix, aliases, check_new_name as check_new_alias_name, create_alias,
    delete_alias, update_alias,
};
pub use asker::Access;
pub use grant::{
    Constraints, GRANT_OPERATIONS, Grant, NewGrant, REFILE_GRANTS, by_token, create_grant,
    delete_grant, find_grant, grants, is_token_of, principal_of, retirable_grants, shown_grant,
};
pub use import::{
    FORGET_EXPIRED, ImportParameters, NewMaterial, delete_material, import_material,
    import_parameters,
};
pub use key::{NewKey, add_tags, create, describe, find, keys, remove_tags};
pub use lifecycle::{
    ERASE_EXPIRED, TELL_DELETIONS, cancel_deletion, disable, enable, schedule_deletion,
};
pub use managed::{Manager, SECRETS_MANAGER, managed_key};
pub use operate::{
    CiphertextRef, EncryptionContext, Plaintext, PlaintextRef, SignedMessage, decapsulate, decrypt,
    decryption_key, derive_shared_secret, encapsulate, encrypt, is_under, mac, public_key, sign,
    sign_approved, verify, verify_mac,
};
pub use record::{Deletion, Import, Key, KeyState, Material, Origin, Regions, Rotation};
pub use region::{NewReplica, member, replicate, update_primary};
pub use rotation::{
    Listed, ROTATE_DUE, awaits_import, disable_rotation, enable_rotation, rotate_on_demand,
    rotation_status, rotations,
};
pub use usage::{LastUse, last_use, record_use};

use crate::Fault;
use crate::identity::Denied;
use crate::quotas::Reached;

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
    /// `NotAuthorizedException`
    #[error("{0}")]
    NotAuthorized(String),
    /// `InvalidAliasNameException`
    #[error("{0}")]
    InvalidAliasName(String),
    /// `LimitExceededException`
    #[error("{0}")]
    LimitExceeded(String),
    /// `TagException`
    #[error("{0}")]
    Tag(String),
    /// `KMSInvalidMacException`, whose message AWS leaves empty.
    #[error("")]
    InvalidMac,
    /// `AccessDeniedException` of Decrypt.
    #[error(
        "The ciphertext refers to a customer master key that does not exist, does not exist in this \
         region, or you are not allowed to access."
    )]
    UnknownCiphertextKey,
    /// `AccessDeniedException`: approvals are missing, or do not count.
    #[error("{0}")]
    NotApproved(String),
    /// `DigestMismatchException` of ApproveSigning.
    #[error("RequestDigest is not the digest of the request: look at the request again.")]
    IncorrectDigest,
    /// `AccessDeniedException`
    #[error(transparent)]
    Denied(#[from] Denied),
    /// `MalformedPolicyDocumentException`
    #[error("{0}")]
    MalformedPolicy(String),
    /// `InvalidGrantTokenException`
    #[error("{0}")]
    InvalidGrantToken(String),
    /// `InvalidGrantIdException`
    #[error("{0}")]
    InvalidGrantId(String),
    /// `InvalidMarkerException`
    #[error("The marker was not issued by this service.")]
    InvalidMarker,
    /// `IncorrectKeyMaterialException`
    #[error("{0}")]
    IncorrectKeyMaterial(String),
    /// `InvalidImportTokenException`
    #[error("{0}")]
    InvalidImportToken(String),
    /// `ExpiredImportTokenException`
    #[error("{0}")]
    ExpiredImportToken(String),
    /// `KMSInternalException` and the like.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<Reached> for KmsError {
    fn from(reached: Reached) -> Self {
        Self::LimitExceeded(reached.to_string())
    }
}

impl From<outlast_crypto::CryptoError> for KmsError {
    fn from(error: outlast_crypto::CryptoError) -> Self {
        Self::Fault(error.into())
    }
}

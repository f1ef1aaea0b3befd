//! Private host keys. They are stored as OpenSSH's private key files, whatever form they came in.

use outlast_crypto::Secret;
use outlast_ssh::{KeyError, KeyKind, PrivateKey, PublicKey};

use super::TransferError;
use crate::Fault;

/// A private key with its public one.
pub(super) struct Material {
    /// The public key.
    pub public: PublicKey,
    /// OpenSSH's private key file.
    pub private: Secret,
}

/// Kinds of the keys that a server gets if it is created without one: post-quantum, classical, and one of those that FIPS
/// policies have.
pub(super) static GENERATED: &[KeyKind] =
    &[KeyKind::MlDsa44Ed25519, KeyKind::Ed25519, KeyKind::EcdsaP256];

impl Material {
    /// A new key.
    pub fn generate(kind: KeyKind) -> Result<Self, Fault> {
        let failed = |error: KeyError| Fault::Encoding(format!("a host key: {error}"));
        PrivateKey::generate(kind).and_then(|key| Self::of(&key)).map_err(failed)
    }

    /// Reads a private key that is not encrypted.
    pub fn parse(text: &str) -> Result<Self, TransferError> {
        let key = PrivateKey::from_pem(text).and_then(|key| Self::of(&key));
        key.map_err(|error| {
            TransferError::invalid(format!("Unsupported or invalid private host key: {error}"))
        })
    }

    fn of(key: &PrivateKey) -> Result<Self, KeyError> {
        Ok(Self { public: key.public_key().clone(), private: key.to_openssh_pem("")? })
    }
}

//! A loaded key, and the forms of key material.

use crate::signatures::algorithm::{Message, SignatureAlgorithm};
use crate::{CryptoError, Secret};

/// Key material that [`super::KeySpec::import`] has accepted.
pub struct Imported {
    /// Stored form, which [`super::KeySpec::load`] takes.
    pub stored: Secret,
    /// Form in which it was imported.
    pub form: Form,
}

/// A form of key material.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The bytes of a symmetric key.
    Raw,
    /// PKCS #8 with the one form that its type has.
    Pkcs8,
    /// PKCS #8 with only the seed (RFC 9881, RFC 9935).
    Seed,
    /// PKCS #8 with only the expanded key; its seed is not known.
    Expanded,
    /// PKCS #8 with the seed and the expanded key.
    Both,
}

impl Form {
    /// Lower-case name: `raw`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Pkcs8 => "pkcs8",
            Self::Seed => "seed",
            Self::Expanded => "expanded",
            Self::Both => "both",
        }
    }
}

/// A key that has been loaded for use. Operations that its type does not have fail with
/// [`CryptoError::UnsupportedAlgorithm`].
pub trait Key: Send + Sync {
    /// DER `SubjectPublicKeyInfo`; `None` for a symmetric key.
    fn public_key(&self) -> Option<&[u8]> {
        None
    }

    /// Signs. The signature is encoded as X.509 requires: a DER `ECDSA-Sig-Value` for ECDSA, raw bytes otherwise.
    fn sign(&self, _: &SignatureAlgorithm, _: Message<'_>) -> Result<Vec<u8>, CryptoError> {
        Err(CryptoError::UnsupportedAlgorithm)
    }

    /// Encrypts with the given KMS algorithm, which must be one of the row's `encryption`.
    fn encrypt(&self, _: &str, _aad: &[u8], _: &[u8]) -> Result<Vec<u8>, CryptoError> {
        Err(CryptoError::UnsupportedAlgorithm)
    }

    /// Reverses [`Key::encrypt`].
    fn decrypt(&self, _: &str, _aad: &[u8], _: &[u8]) -> Result<Secret, CryptoError> {
        Err(CryptoError::UnsupportedAlgorithm)
    }

    /// Message authentication code of a message with the given KMS algorithm.
    fn mac(&self, _: &str, _message: &[u8]) -> Result<Vec<u8>, CryptoError> {
        Err(CryptoError::UnsupportedAlgorithm)
    }

    /// Verifies a message authentication code in constant time; a difference is [`CryptoError::InvalidMac`].
    fn verify_mac(&self, _: &str, _message: &[u8], _mac: &[u8]) -> Result<(), CryptoError> {
        Err(CryptoError::UnsupportedAlgorithm)
    }

    /// ECDH with the public key in a DER `SubjectPublicKeyInfo`: the x coordinate, as long as the field (32, 48 or 66
    /// bytes). A point that is not on this key's curve is [`CryptoError::InvalidKey`].
    fn derive_shared_secret(&self, _peer_spki: &[u8]) -> Result<Secret, CryptoError> {
        Err(CryptoError::UnsupportedAlgorithm)
    }

    /// Generates a shared secret of 32 bytes and its ciphertext of 768, 1088 or 1568 bytes, from which
    /// [`Key::decapsulate`] recovers it.
    fn encapsulate(&self) -> Result<(Secret, Vec<u8>), CryptoError> {
        Err(CryptoError::UnsupportedAlgorithm)
    }

    /// Reverses [`Key::encapsulate`]. A wrong length is [`CryptoError::InvalidCiphertext`]; any other change gives
    /// another secret and no error (implicit rejection, FIPS 203, algorithm 18).
    fn decapsulate(&self, _ciphertext: &[u8]) -> Result<Secret, CryptoError> {
        Err(CryptoError::UnsupportedAlgorithm)
    }
}

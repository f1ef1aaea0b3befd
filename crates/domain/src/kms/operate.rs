//! Use of keys: signing, verifying, encrypting, decrypting.

use std::collections::BTreeMap;

use outlast_crypto::keys::KeyUsage;
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use outlast_crypto::{CryptoError, Secret};

use super::KmsError;
use super::key::{self, Key};
use crate::arn::Scope;
use crate::identity::Allowed;
use crate::keyring::KeyRing;
use crate::work::Work;
use crate::{Fault, ids};

/// Key-value pairs that are authenticated with a ciphertext.
pub type EncryptionContext = BTreeMap<String, String>;

/// The DER `SubjectPublicKeyInfo` of an asymmetric key.
pub fn public_key(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    _: &Allowed,
) -> Result<Vec<u8>, KmsError> {
    if key.spec().signing.is_empty() {
        return Err(KmsError::UnsupportedOperation(format!(
            "{} is a symmetric key and has no public key",
            key.arn()
        )));
    }
    key.require_enabled()?;
    let loaded = load(work, ring, key)?;
    let spki = loaded.public_key().ok_or_else(|| Fault::Damaged(key.material_place()))?;
    Ok(spki.to_vec())
}

/// Signs `message` with the KMS `SigningAlgorithm` `algorithm`.
pub fn sign(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    algorithm: &str,
    message: Message<'_>,
    _: &Allowed,
) -> Result<Vec<u8>, KmsError> {
    let row = signing_row(key, "Sign", algorithm, message)?;
    let loaded = load(work, ring, key)?;
    Ok(loaded.sign(row, message)?)
}

/// Verifies a signature; an invalid one is [`KmsError::InvalidSignature`].
pub fn verify(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    algorithm: &str,
    message: Message<'_>,
    signature: &[u8],
    _: &Allowed,
) -> Result<(), KmsError> {
    let row = signing_row(key, "Verify", algorithm, message)?;
    let loaded = load(work, ring, key)?;
    let spki = loaded.public_key().ok_or_else(|| Fault::Damaged(key.material_place()))?;
    row.verify(spki, message, signature).map_err(|error| match error {
        CryptoError::InvalidSignature => KmsError::InvalidSignature,
        other => other.into(),
    })
}

/// What is to be encrypted.
#[derive(Clone, Copy)]
pub struct PlaintextRef<'a> {
    /// KMS `EncryptionAlgorithm`.
    pub algorithm: &'a str,
    /// Authenticated with the ciphertext; for `SYMMETRIC_DEFAULT` only.
    pub context: &'a EncryptionContext,
    /// At most 4096 bytes, less for RSA.
    pub bytes: &'a [u8],
}

/// What is to be decrypted.
#[derive(Clone, Copy)]
pub struct CiphertextRef<'a> {
    /// KMS `EncryptionAlgorithm`.
    pub algorithm: &'a str,
    /// The context that it was encrypted with.
    pub context: &'a EncryptionContext,
    /// AWS's `CiphertextBlob`.
    pub blob: &'a [u8],
}

/// A decrypted text together with what had made it.
pub struct Plaintext {
    /// The bytes.
    pub bytes: Secret,
    /// Id of the key material that was used; `None` for RSA.
    pub material_id: Option<String>,
}

/// Encrypts for the operation named, and gives AWS's `CiphertextBlob`.
pub fn encrypt(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    operation: &str,
    plaintext: PlaintextRef<'_>,
    _: &Allowed,
) -> Result<Vec<u8>, KmsError> {
    let PlaintextRef { algorithm, context, bytes } = plaintext;
    require_encryption(key, operation, algorithm, context)?;
    let loaded = load(work, ring, key)?;
    if algorithm != SYMMETRIC {
        return loaded.encrypt(algorithm, &[], bytes).map_err(|error| match error {
            CryptoError::InvalidLength => KmsError::Validation(format!(
                "the plaintext is too long for {algorithm} with {}",
                key.spec().name
            )),
            other => other.into(),
        });
    }
    let header = header(key)?;
    let body = loaded.encrypt(algorithm, &associated_data(&header, context), bytes)?;
    Ok([header.as_slice(), &body].concat())
}

/// The key that a symmetric ciphertext says it is under.
pub fn decryption_key(work: &mut Work<'_>, scope: &Scope, blob: &[u8]) -> Result<Key, KmsError> {
    let id = blob.get(1..17).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    match (blob.first(), id) {
        (Some(&FORMAT), Some(id)) => {
            key::by_id(work, scope, &ids::uuid_text(id)).map_err(|error| match error {
                // A foreign ciphertext, or one whose key is gone, is not told apart from garbage.
                KmsError::NotFound(_) => KmsError::InvalidCiphertext,
                other => other,
            })
        }
        _ => Err(KmsError::InvalidCiphertext),
    }
}

/// Decrypts what [`encrypt`] made, with the same key, algorithm and context.
pub fn decrypt(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    ciphertext: CiphertextRef<'_>,
    _: &Allowed,
) -> Result<Plaintext, KmsError> {
    let CiphertextRef { algorithm, context, blob } = ciphertext;
    require_encryption(key, "Decrypt", algorithm, context)?;
    let loaded = load(work, ring, key)?;
    let open = |aad: &[u8], body: &[u8]| {
        loaded.decrypt(algorithm, aad, body).map_err(|error| match error {
            CryptoError::Library => KmsError::from(error),
            _ => KmsError::InvalidCiphertext,
        })
    };
    if algorithm != SYMMETRIC {
        return Ok(Plaintext { bytes: open(&[], blob)?, material_id: None });
    }
    let header = header(key)?;
    let body = blob.strip_prefix(header.as_slice()).ok_or(KmsError::InvalidCiphertext)?;
    let bytes = open(&associated_data(&header, context), body)?;
    Ok(Plaintext { bytes, material_id: Some(key.material_id().to_owned()) })
}

const SYMMETRIC: &str = "SYMMETRIC_DEFAULT";
/// First byte of a symmetric ciphertext: `1 ‖ key id (16) ‖ key material id (32) ‖ sealed message`.
const FORMAT: u8 = 1;

fn header(key: &Key) -> Result<Vec<u8>, KmsError> {
    let damaged = || Fault::Damaged(key.material_place());
    let id = ids::uuid_bytes(key.id()).ok_or_else(damaged)?;
    let material = hex::decode(key.material_id()).map_err(|_| damaged())?;
    Ok([&[FORMAT], id.as_slice(), &material].concat())
}

/// Header and context, each string with its length before it, so that no two contexts encode alike.
fn associated_data(header: &[u8], context: &EncryptionContext) -> Vec<u8> {
    let mut out = header.to_vec();
    for text in context.iter().flat_map(|(key, value)| [key, value]) {
        out.extend_from_slice(&(text.len() as u64).to_be_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    out
}

fn load(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
) -> Result<std::sync::Arc<dyn outlast_crypto::keys::Key>, KmsError> {
    Ok(ring.load(work, &key.material_place(), key.spec())?)
}

fn require_usage(key: &Key, wanted: KeyUsage, operation: &str) -> Result<(), KmsError> {
    if key.usage() != wanted {
        return Err(KmsError::InvalidKeyUsage(format!(
            "{} key usage is {} which is not valid for {operation}.",
            key.arn(),
            key.usage().name()
        )));
    }
    Ok(())
}

fn require_encryption(
    key: &Key,
    operation: &str,
    algorithm: &str,
    context: &EncryptionContext,
) -> Result<(), KmsError> {
    require_usage(key, KeyUsage::EncryptDecrypt, operation)?;
    if !key.spec().encryption.contains(&algorithm) {
        return Err(KmsError::InvalidKeyUsage(format!(
            "Algorithm {algorithm} is incompatible with key spec {}.",
            key.spec().name
        )));
    }
    if algorithm != SYMMETRIC && !context.is_empty() {
        return Err(KmsError::Validation(
            "an encryption context is valid only with SYMMETRIC_DEFAULT".into(),
        ));
    }
    key.require_enabled()
}

fn signing_row(
    key: &Key,
    operation: &str,
    algorithm: &str,
    message: Message<'_>,
) -> Result<&'static SignatureAlgorithm, KmsError> {
    require_usage(key, KeyUsage::SignVerify, operation)?;
    let row = key.spec().signing_algorithm(algorithm).ok_or_else(|| {
        KmsError::InvalidKeyUsage(format!(
            "Algorithm {algorithm} is incompatible with key spec {}.",
            key.spec().name
        ))
    })?;
    let is_ml_dsa = row.digest.is_none();
    match message {
        Message::Digest(_) if is_ml_dsa => {
            return Err(KmsError::Validation(format!(
                "MessageType DIGEST is not valid for {algorithm}; use RAW or EXTERNAL_MU"
            )));
        }
        Message::ExternalMu(_) if !is_ml_dsa => {
            return Err(KmsError::Validation(format!(
                "MessageType EXTERNAL_MU is not valid for {algorithm}"
            )));
        }
        Message::ExternalMu(mu) if mu.len() != outlast_crypto::keys::ml_dsa::MU_LEN => {
            return Err(KmsError::Validation(
                "Message must be 64 bytes long when MessageType is EXTERNAL_MU".into(),
            ));
        }
        Message::Digest(digest) if Some(digest.len()) != row.digest_len() => {
            return Err(KmsError::Validation(format!(
                "Digest is invalid length for algorithm {algorithm}."
            )));
        }
        _ => {}
    }
    key.require_enabled()?;
    Ok(row)
}

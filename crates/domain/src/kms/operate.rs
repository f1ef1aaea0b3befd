//! Cryptographic operations: sign, verify, encrypt, decrypt, agree.

use std::collections::BTreeMap;

use outlast_crypto::keys::KeyUsage;
use outlast_crypto::signatures::{Family, Message, SignatureAlgorithm};
use outlast_crypto::wrap::WrappingAlgorithm;
use outlast_crypto::{CryptoError, Secret};

use super::KmsError;
use super::record::Key;
use super::{approval, key};
use crate::arn::Scope;
use crate::identity::{Permit, action};
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
    permit: &Permit<action::kms::GetPublicKey>,
) -> Result<Vec<u8>, KmsError> {
    permit.opens(&key.arn())?;
    key.require_enabled()?;
    if key.spec().is_symmetric() {
        return Err(KmsError::UnsupportedOperation(format!(
            "{} is a symmetric key and has no public key",
            key.arn()
        )));
    }
    let loaded = load(work, ring, key, key.material_id())?;
    let spki = loaded.public_key().ok_or_else(|| Fault::Damaged(key.arn()))?;
    Ok(spki.to_vec())
}

/// Signs `message` with the KMS `SigningAlgorithm` `algorithm`. If the key has a rule of approvals, they must be there, and are
/// used up.
pub fn sign(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    algorithm: &str,
    message: Message<'_>,
    permit: &Permit<action::kms::Sign>,
) -> Result<Vec<u8>, KmsError> {
    sign_approved(work, ring, key, algorithm, message, permit).map(|signed| signed.signature)
}

/// A signature.
pub struct SignedMessage {
    /// The bytes.
    pub signature: Vec<u8>,
    /// Id of the request whose approvals were used, if the key has a rule of approvals.
    pub request: Option<String>,
}

/// The same as [`sign`]; says by which request it was approved.
pub fn sign_approved(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    algorithm: &str,
    message: Message<'_>,
    permit: &Permit<action::kms::Sign>,
) -> Result<SignedMessage, KmsError> {
    permit.opens(&key.arn())?;
    let row = signing_row(key, "Sign", algorithm, message)?;
    let request = approval::take(work, key, row, message, permit)?;
    let loaded = load(work, ring, key, key.material_id())?;
    Ok(SignedMessage { signature: loaded.sign(row, as_signed(row, message))?, request })
}

/// Verifies a signature; an invalid one is [`KmsError::InvalidSignature`].
pub fn verify(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    algorithm: &str,
    message: Message<'_>,
    signature: &[u8],
    permit: &Permit<action::kms::Verify>,
) -> Result<(), KmsError> {
    permit.opens(&key.arn())?;
    let row = signing_row(key, "Verify", algorithm, message)?;
    let loaded = load(work, ring, key, key.material_id())?;
    let spki = loaded.public_key().ok_or_else(|| Fault::Damaged(key.arn()))?;
    row.verify(spki, as_signed(row, message), signature).map_err(|error| match error {
        CryptoError::InvalidSignature => KmsError::InvalidSignature,
        other => other.into(),
    })
}

/// A plaintext to encrypt.
#[derive(Clone, Copy)]
pub struct PlaintextRef<'a> {
    /// KMS `EncryptionAlgorithm`.
    pub algorithm: &'a str,
    /// Authenticated with the ciphertext; for `SYMMETRIC_DEFAULT` only.
    pub context: &'a EncryptionContext,
    /// At most 4096 bytes, less for RSA.
    pub bytes: &'a [u8],
}

/// A ciphertext to decrypt.
#[derive(Clone, Copy)]
pub struct CiphertextRef<'a> {
    /// KMS `EncryptionAlgorithm`.
    pub algorithm: &'a str,
    /// The context that it was encrypted with.
    pub context: &'a EncryptionContext,
    /// AWS's `CiphertextBlob`.
    pub blob: &'a [u8],
}

/// A decrypted text, and the material that had encrypted it.
pub struct Plaintext {
    /// The bytes.
    pub bytes: Secret,
    /// Id of the key material that was used; `None` for RSA.
    pub material_id: Option<String>,
}

/// Encrypts for the operation `A`, and returns AWS's `CiphertextBlob`.
pub fn encrypt(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    operation: &str,
    plaintext: PlaintextRef<'_>,
    permit: &Permit<impl action::Encrypts>,
) -> Result<Vec<u8>, KmsError> {
    permit.opens(&key.arn())?;
    let PlaintextRef { algorithm, context, bytes } = plaintext;
    require_encryption(key, operation, algorithm, context)?;
    let loaded = load(work, ring, key, key.material_id())?;
    if algorithm != SYMMETRIC {
        return loaded.encrypt(algorithm, &[], bytes).map_err(|error| match error {
            CryptoError::InvalidLength => KmsError::Validation(format!(
                "Algorithm {algorithm} and key spec {} cannot encrypt data larger than {} bytes.",
                key.spec().name,
                longest_under_rsa(key, algorithm)
            )),
            other => other.into(),
        });
    }
    let header = header(key)?;
    let body = loaded.encrypt(algorithm, &associated_data(&header, context), bytes)?;
    Ok([header.as_slice(), &body].concat())
}

/// The key that a symmetric ciphertext names. If it is not found, the error is AWS's, whether the key never existed,
/// is gone, or is in another Region.
pub fn decryption_key(work: &mut Work<'_>, scope: &Scope, blob: &[u8]) -> Result<Key, KmsError> {
    let header = Header::parse(blob).ok_or(KmsError::InvalidCiphertext)?;
    let account = header.account.unwrap_or_else(|| scope.account.clone());
    let scope = Scope { account, region: scope.region.clone() };
    key::by_id(work, &scope, &header.key_id).map_err(|error| match error {
        KmsError::NotFound(_) => KmsError::UnknownCiphertextKey,
        other => other,
    })
}

/// Decrypts the result of [`encrypt`], with the same key, algorithm and context, for the operation `A`.
pub fn decrypt(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    operation: &str,
    ciphertext: CiphertextRef<'_>,
    permit: &Permit<impl action::Decrypts>,
) -> Result<Plaintext, KmsError> {
    permit.opens(&key.arn())?;
    let CiphertextRef { algorithm, context, blob } = ciphertext;
    require_encryption(key, operation, algorithm, context)?;
    let open = |loaded: &dyn outlast_crypto::keys::Key, aad: &[u8], body: &[u8]| {
        loaded.decrypt(algorithm, aad, body).map_err(|error| match error {
            CryptoError::Library => KmsError::from(error),
            _ => KmsError::InvalidCiphertext,
        })
    };
    if algorithm != SYMMETRIC {
        let loaded = load(work, ring, key, key.material_id())?;
        return Ok(Plaintext { bytes: open(loaded.as_ref(), &[], blob)?, material_id: None });
    }
    let header = Header::parse(blob).ok_or(KmsError::InvalidCiphertext)?;
    let own_account = header.account.as_deref().is_none_or(|account| account == key.account());
    if header.key_id != key.id() || !(own_account) {
        return Err(KmsError::IncorrectKey);
    }
    // Any material that the key ever had; another one means a forged ciphertext.
    if key.material(&header.material_id).is_none_or(|material| material.pending) {
        return Err(KmsError::InvalidCiphertext);
    }
    let loaded = load(work, ring, key, &header.material_id)?;
    let (aad, body) = blob.split_at(header.len);
    let bytes = open(loaded.as_ref(), &associated_data(aad, context), body)?;
    Ok(Plaintext { bytes, material_id: Some(header.material_id) })
}

/// The MAC of `message`.
pub fn mac(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    algorithm: &str,
    message: &[u8],
    permit: &Permit<action::kms::GenerateMac>,
) -> Result<Vec<u8>, KmsError> {
    permit.opens(&key.arn())?;
    require_mac(key, "GenerateMac", algorithm)?;
    Ok(load(work, ring, key, key.material_id())?.mac(algorithm, message)?)
}

/// Verifies a MAC; a wrong one is [`KmsError::InvalidMac`].
pub fn verify_mac(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    algorithm: &str,
    message: &[u8],
    mac: &[u8],
    permit: &Permit<action::kms::VerifyMac>,
) -> Result<(), KmsError> {
    permit.opens(&key.arn())?;
    require_mac(key, "VerifyMac", algorithm)?;
    let loaded = load(work, ring, key, key.material_id())?;
    loaded.verify_mac(algorithm, message, mac).map_err(|error| match error {
        CryptoError::InvalidMac => KmsError::InvalidMac,
        other => other.into(),
    })
}

/// The shared secret of the key and a public key, a DER `SubjectPublicKeyInfo` on the same curve: the x
/// coordinate (SEC 1, section 3.3.1).
pub fn derive_shared_secret(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    algorithm: &str,
    public_key: &[u8],
    permit: &Permit<action::kms::DeriveSharedSecret>,
) -> Result<Secret, KmsError> {
    permit.opens(&key.arn())?;
    require_usage(key, KeyUsage::KeyAgreement, "DeriveSharedSecret")?;
    require_algorithm(key, algorithm, key.spec().key_agreement)?;
    let loaded = load(work, ring, key, key.material_id())?;
    loaded.derive_shared_secret(public_key).map_err(|error| match error {
        CryptoError::Library => error.into(),
        _ => KmsError::Validation(format!(
            "PublicKey is not a DER SubjectPublicKeyInfo of a {} key",
            key.spec().name
        )),
    })
}

/// Makes a shared secret of 32 bytes and the ciphertext from which the key's holder recovers it.
pub fn encapsulate(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    algorithm: &str,
    permit: &Permit<action::kms::Encapsulate>,
) -> Result<(Secret, Vec<u8>), KmsError> {
    permit.opens(&key.arn())?;
    require_encapsulation(key, "Encapsulate", algorithm)?;
    Ok(load(work, ring, key, key.material_id())?.encapsulate()?)
}

/// Recovers the shared secret from a ciphertext. An invalid ciphertext of the right length gives 32 bytes that look
/// random (implicit rejection, FIPS 203, algorithm 18).
pub fn decapsulate(
    work: &mut Work<'_>,
    ring: &KeyRing,
    key: &Key,
    algorithm: &str,
    ciphertext: &[u8],
    permit: &Permit<action::kms::Decapsulate>,
) -> Result<Secret, KmsError> {
    permit.opens(&key.arn())?;
    require_encapsulation(key, "Decapsulate", algorithm)?;
    let loaded = load(work, ring, key, key.material_id())?;
    loaded.decapsulate(ciphertext).map_err(|error| match error {
        CryptoError::InvalidCiphertext | CryptoError::InvalidLength => KmsError::InvalidCiphertext,
        other => other.into(),
    })
}

const SYMMETRIC: &str = "SYMMETRIC_DEFAULT";
/// First byte of a ciphertext of the first version: `1 ‖ key id (16) ‖ key material id (32) ‖ sealed`.
const FORMAT_1: u8 = 1;
/// `2 ‖ account (5, big-endian) ‖ key id (16) ‖ key material id (32) ‖ sealed`
const FORMAT_2: u8 = 2;
/// The same for a multi-Region key, which has the same id everywhere.
const FORMAT_3: u8 = 3;

/// The header of a symmetric ciphertext, not verified yet.
struct Header {
    account: Option<String>,
    key_id: String,
    material_id: String,
    len: usize,
}

impl Header {
    fn parse(blob: &[u8]) -> Option<Self> {
        let (format, rest) = blob.split_first()?;
        let (account, rest, multi_region) = match *format {
            FORMAT_1 => (None, rest, false),
            FORMAT_2 | FORMAT_3 => {
                let (digits, rest) = rest.split_first_chunk::<5>()?;
                let number = digits.iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
                let account = format!("{number:012}");
                (Some(account).filter(|text| text.len() == 12), rest, *format == FORMAT_3)
            }
            _ => return None,
        };
        if *format != FORMAT_1 && account.is_none() {
            return None;
        }
        let (key_id, rest) = rest.split_first_chunk::<16>()?;
        let (material_id, rest) = rest.split_first_chunk::<32>()?;
        Some(Self {
            account,
            key_id: ids::key_text(*key_id, multi_region),
            material_id: hex::encode(material_id),
            len: blob.len() - rest.len(),
        })
    }
}

/// Whether a ciphertext names the key.
pub fn is_under(blob: &[u8], key: &Key) -> bool {
    Header::parse(blob).is_some_and(|header| {
        header.key_id == key.id()
            && header.account.as_deref().is_none_or(|account| account == key.account())
    })
}

fn header(key: &Key) -> Result<Vec<u8>, KmsError> {
    let damaged = || Fault::Damaged(key.arn());
    let (id, multi_region) = ids::key_bytes(key.id()).ok_or_else(damaged)?;
    let account: u64 = key.account().parse().map_err(|_| damaged())?;
    let material = hex::decode(key.material_id()).map_err(|_| damaged())?;
    let format = if multi_region { FORMAT_3 } else { FORMAT_2 };
    Ok([&[format], &account.to_be_bytes()[3..], id.as_slice(), &material].concat())
}

/// Header and context, each string preceded by its length, so that no two contexts have the same encoding.
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
    material_id: &str,
) -> Result<std::sync::Arc<dyn outlast_crypto::keys::Key>, KmsError> {
    Ok(ring.load(work, &key.material_record_key(material_id), key.spec())?)
}

/// Length of the longest plaintext in bytes: an RSA key encrypts it as it would wrap a key.
fn longest_under_rsa(key: &Key, algorithm: &str) -> usize {
    let bits = key.spec().name.strip_prefix("RSA_").and_then(|bits| bits.parse().ok());
    let row = WrappingAlgorithm::by_name(algorithm);
    row.zip(bits).and_then(|(row, bits)| row.max_material(bits)).unwrap_or_default()
}

fn require_algorithm(key: &Key, algorithm: &str, known: &[&str]) -> Result<(), KmsError> {
    if known.contains(&algorithm) {
        return Ok(());
    }
    Err(KmsError::InvalidKeyUsage(format!(
        "Algorithm {algorithm} is incompatible with key spec {}.",
        key.spec().name
    )))
}

fn require_mac(key: &Key, operation: &str, algorithm: &str) -> Result<(), KmsError> {
    require_usage(key, KeyUsage::GenerateVerifyMac, operation)?;
    require_algorithm(key, algorithm, key.spec().mac)
}

fn require_encapsulation(key: &Key, operation: &str, algorithm: &str) -> Result<(), KmsError> {
    require_usage(key, KeyUsage::EncapsulateDecapsulate, operation)?;
    require_algorithm(key, algorithm, key.spec().encapsulation)
}

/// Fails with `DisabledException` for a disabled key, whatever its usage.
fn require_usage(key: &Key, wanted: KeyUsage, operation: &str) -> Result<(), KmsError> {
    key.require_enabled()?;
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
    require_algorithm(key, algorithm, key.spec().encryption)?;
    if algorithm != SYMMETRIC && !context.is_empty() {
        return Err(KmsError::Validation(
            "an encryption context is valid only with SYMMETRIC_DEFAULT".into(),
        ));
    }
    Ok(())
}

/// Ed25519ph: KMS takes only a digest, and "still performs the SHA-512 prehash": the message is hashed twice.
fn is_prehashed(row: &SignatureAlgorithm) -> bool {
    row.family == Family::Ed25519 && row.digest.is_some()
}

/// The message in the form that the algorithm takes.
fn as_signed<'a>(row: &SignatureAlgorithm, message: Message<'a>) -> Message<'a> {
    match message {
        Message::Digest(digest) if is_prehashed(row) => Message::Raw(digest),
        other => other,
    }
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
    let is_ml_dsa = row.family == Family::MlDsa;
    match message {
        Message::Digest(_) if row.digest.is_none() => {
            return Err(KmsError::Validation(format!(
                "MessageType DIGEST is not valid for {algorithm}"
            )));
        }
        Message::Raw(_) if is_prehashed(row) => {
            return Err(KmsError::Validation(format!(
                "MessageType must be DIGEST for {algorithm}"
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
    Ok(row)
}

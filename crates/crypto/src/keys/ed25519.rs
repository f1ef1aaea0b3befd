//! Ed25519 by AWS-LC, and Ed25519ph (RFC 8032, section 5.1) by `ed25519-dalek`, because AWS-LC's safe interface lacks
//! the prehash variant.

use aws_lc_rs::encoding::{AsBigEndian, AsDer, Curve25519SeedBin, PublicKeyX509Der};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use const_oid::ObjectIdentifier;
use der::Decode;
use ed25519_dalek::{Signature, SigningKey, VerifyingKey};
use sha3::digest::{FixedOutput, HashMarker, Output, OutputSizeUser, Update, consts::U64};
use spki::SubjectPublicKeyInfoRef;
use zeroize::Zeroizing;

use super::key::{Form, Imported, Key};
use super::pkcs8;
use crate::digests::Digest;
use crate::signatures::algorithm::{Family, Message, SignatureAlgorithm};
use crate::{CryptoError, Secret};

/// id-Ed25519 (RFC 8410, section 3); public key 32 bytes, signature 64.
pub const OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");

pub(super) fn generate() -> Result<Secret, CryptoError> {
    Ok(Secret::new(Ed25519KeyPair::generate()?.to_pkcs8v1()?.as_ref().to_vec()))
}

pub(super) fn load(pkcs8: &Secret) -> Result<Box<dyn Key>, CryptoError> {
    let pair = Ed25519KeyPair::from_pkcs8(pkcs8.expose())?;
    let spki: PublicKeyX509Der<'_> = pair.public_key().as_der()?;
    let spki = spki.as_ref().to_vec();
    Ok(Box::new(Ed25519Key { pair, spki }))
}

pub(super) fn import(material: &[u8]) -> Result<Imported, CryptoError> {
    let info = pkcs8::parse_without_parameters(material, OID)?;
    let pair = Ed25519KeyPair::from_pkcs8(material)?;
    if !pkcs8::public_key_fits(&info, pair.public_key().as_ref()) {
        return Err(CryptoError::InvalidKey);
    }
    Ok(Imported { stored: Secret::new(pair.to_pkcs8v1()?.as_ref().to_vec()), form: Form::Pkcs8 })
}

/// Verifies Ed25519ph without a context; a key of small order verifies nothing.
pub(crate) fn verify_prehashed(
    _: &SignatureAlgorithm,
    spki: &[u8],
    message: Message<'_>,
    signature: &[u8],
) -> Result<bool, CryptoError> {
    let digest = prehash(message)?;
    let Some(key) = SubjectPublicKeyInfoRef::from_der(spki)
        .ok()
        .filter(|spki| spki.algorithm.oid == OID)
        .and_then(|spki| VerifyingKey::try_from(spki.subject_public_key.as_bytes()?).ok())
    else {
        return Ok(false);
    };
    let Ok(signature) = Signature::from_slice(signature) else { return Ok(false) };
    Ok(key.verify_prehashed_strict(digest, None, &signature).is_ok())
}

struct Ed25519Key {
    pair: Ed25519KeyPair,
    spki: Vec<u8>,
}

impl Key for Ed25519Key {
    fn public_key(&self) -> Option<&[u8]> {
        Some(&self.spki)
    }

    fn sign(
        &self,
        algorithm: &SignatureAlgorithm,
        message: Message<'_>,
    ) -> Result<Vec<u8>, CryptoError> {
        if algorithm.family != Family::Ed25519 {
            return Err(CryptoError::UnsupportedAlgorithm);
        }
        match (algorithm.digest, message) {
            (None, Message::Raw(message)) => Ok(self.pair.try_sign(message)?.as_ref().to_vec()),
            (None, _) => Err(CryptoError::UnsupportedAlgorithm),
            (Some(_), message) => self.sign_prehashed(prehash(message)?),
        }
    }
}

impl Ed25519Key {
    fn sign_prehashed(&self, digest: Finished) -> Result<Vec<u8>, CryptoError> {
        let seed: Curve25519SeedBin<'_> = self.pair.seed()?.as_be_bytes()?;
        let mut bytes = Zeroizing::new([0; 32]);
        bytes.copy_from_slice(seed.as_ref());
        let key = SigningKey::from_bytes(&bytes);
        let signature = key.sign_prehashed(digest, None).map_err(|_| CryptoError::Library)?;
        Ok(signature.to_bytes().to_vec())
    }
}

/// SHA-512 of the message, or the digest that the caller passed.
fn prehash(message: Message<'_>) -> Result<Finished, CryptoError> {
    let bytes = match message {
        Message::Raw(message) => {
            Digest::by_name("sha512").ok_or(CryptoError::Library)?.digest(message)
        }
        Message::Digest(digest) => digest.to_vec(),
        Message::ExternalMu(_) => return Err(CryptoError::UnsupportedAlgorithm),
    };
    bytes.try_into().map(Finished).map_err(|_| CryptoError::InvalidLength)
}

/// A finished SHA-512 digest in the type that `ed25519-dalek` takes; it cannot be updated.
struct Finished([u8; 64]);

impl Default for Finished {
    fn default() -> Self {
        Self([0; 64])
    }
}

impl Update for Finished {
    fn update(&mut self, _: &[u8]) {}
}

impl OutputSizeUser for Finished {
    type OutputSize = U64;
}

impl FixedOutput for Finished {
    fn finalize_into(self, out: &mut Output<Self>) {
        out.copy_from_slice(&self.0);
    }
}

impl HashMarker for Finished {}

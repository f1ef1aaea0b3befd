//! ECDSA and ECDH on the NIST curves, and ECDSA on secp256k1, by AWS-LC.

use aws_lc_rs::agreement::{
    self, ECDH_P256, ECDH_P384, ECDH_P521, ParsedPublicKey, ParsedPublicKeyFormat,
    UnparsedPublicKey,
};
use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P256K1_SHA256_ASN1_SIGNING,
    ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, KeyPair,
};
use der::Decode;
use spki::SubjectPublicKeyInfoRef;

use super::key::{Form, Imported, Key};
use super::pkcs8;
use crate::signatures::algorithm::{Family, Message, SignatureAlgorithm};
use crate::{CryptoError, Secret};

/// A curve with its one hash (FIPS 186-5 strengths, paired as KMS pairs them).
pub struct Curve {
    algorithm: &'static EcdsaSigningAlgorithm,
    digest: &'static str,
    agreement: Option<&'static agreement::Algorithm>,
}

/// NIST P-256 with SHA-256; shared secrets of 32 bytes.
pub static P256: Curve = Curve {
    algorithm: &ECDSA_P256_SHA256_ASN1_SIGNING,
    digest: "sha256",
    agreement: Some(&ECDH_P256),
};
/// NIST P-384 with SHA-384; shared secrets of 48 bytes.
pub static P384: Curve = Curve {
    algorithm: &ECDSA_P384_SHA384_ASN1_SIGNING,
    digest: "sha384",
    agreement: Some(&ECDH_P384),
};
/// NIST P-521 with SHA-512; shared secrets of 66 bytes.
pub static P521: Curve = Curve {
    algorithm: &ECDSA_P521_SHA512_ASN1_SIGNING,
    digest: "sha512",
    agreement: Some(&ECDH_P521),
};
/// secp256k1 (SEC 2) with SHA-256; KMS offers no key agreement on it.
pub static P256K1: Curve =
    Curve { algorithm: &ECDSA_P256K1_SHA256_ASN1_SIGNING, digest: "sha256", agreement: None };

impl Curve {
    pub(super) fn generate(&self) -> Result<Secret, CryptoError> {
        let pair = EcdsaKeyPair::generate(self.algorithm)?;
        Ok(Secret::new(pair.to_pkcs8v1()?.as_ref().to_vec()))
    }

    pub(super) fn load(&'static self, pkcs8: &Secret) -> Result<Box<dyn Key>, CryptoError> {
        let pair = EcdsaKeyPair::from_pkcs8(self.algorithm, pkcs8.expose())?;
        let spki: PublicKeyX509Der<'_> = pair.public_key().as_der()?;
        let spki = spki.as_ref().to_vec();
        let pkcs8 = Secret::new(pkcs8.expose().to_vec());
        Ok(Box::new(EcKey { curve: self, pair, spki, pkcs8 }))
    }

    /// AWS-LC checks the curve, that the public point is on it and that it belongs to the private key.
    pub(super) fn import(&'static self, material: &[u8]) -> Result<Imported, CryptoError> {
        pkcs8::parse(material, const_oid::db::rfc5912::ID_EC_PUBLIC_KEY)?;
        let pair = EcdsaKeyPair::from_pkcs8(self.algorithm, material)?;
        let stored = Secret::new(pair.to_pkcs8v1()?.as_ref().to_vec());
        Ok(Imported { stored, form: Form::Pkcs8 })
    }
}

struct EcKey {
    curve: &'static Curve,
    pair: EcdsaKeyPair,
    spki: Vec<u8>,
    pkcs8: Secret,
}

impl Key for EcKey {
    fn public_key(&self) -> Option<&[u8]> {
        Some(&self.spki)
    }

    fn sign(
        &self,
        algorithm: &SignatureAlgorithm,
        message: Message<'_>,
    ) -> Result<Vec<u8>, CryptoError> {
        if algorithm.family != Family::Ec || algorithm.digest != Some(self.curve.digest) {
            return Err(CryptoError::UnsupportedAlgorithm);
        }
        let signature = match message {
            Message::Raw(message) => self.pair.sign(&SystemRandom::new(), message)?,
            Message::Digest(digest) => self.pair.sign_digest(&algorithm.import_digest(digest)?)?,
            Message::ExternalMu(_) => return Err(CryptoError::UnsupportedAlgorithm),
        };
        Ok(signature.as_ref().to_vec())
    }

    fn derive_shared_secret(&self, peer_spki: &[u8]) -> Result<Secret, CryptoError> {
        let agreement = self.curve.agreement.ok_or(CryptoError::UnsupportedAlgorithm)?;
        let own = agreement::PrivateKey::from_private_key_der(agreement, self.pkcs8.expose())?;
        // AWS-LC also takes a raw point, and accepts bytes after the structure.
        SubjectPublicKeyInfoRef::from_der(peer_spki).map_err(|_| CryptoError::InvalidKey)?;
        let peer = ParsedPublicKey::try_from(UnparsedPublicKey::new(agreement, peer_spki))?;
        if peer.format() != ParsedPublicKeyFormat::X509 {
            return Err(CryptoError::InvalidKey);
        }
        agreement::agree(&own, peer, CryptoError::InvalidKey, |x| Ok(Secret::new(x.to_vec())))
    }
}

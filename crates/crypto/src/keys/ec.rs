//! ECDSA on the NIST curves, by AWS-LC.

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, KeyPair,
};

use super::Key;
use crate::signatures::{Family, Message, SignatureAlgorithm};
use crate::{CryptoError, Secret};

/// A curve with the one hash that goes with it (FIPS 186-5 strengths, as KMS pairs them).
pub struct Curve {
    algorithm: &'static EcdsaSigningAlgorithm,
    digest: &'static str,
}

/// NIST P-256 with SHA-256.
pub static P256: Curve = Curve { algorithm: &ECDSA_P256_SHA256_ASN1_SIGNING, digest: "sha256" };
/// NIST P-384 with SHA-384.
pub static P384: Curve = Curve { algorithm: &ECDSA_P384_SHA384_ASN1_SIGNING, digest: "sha384" };
/// NIST P-521 with SHA-512.
pub static P521: Curve = Curve { algorithm: &ECDSA_P521_SHA512_ASN1_SIGNING, digest: "sha512" };

impl Curve {
    pub(super) fn generate(&self) -> Result<Secret, CryptoError> {
        let pair = EcdsaKeyPair::generate(self.algorithm)?;
        Ok(Secret::new(pair.to_pkcs8v1()?.as_ref().to_vec()))
    }

    pub(super) fn load(&'static self, pkcs8: &Secret) -> Result<Box<dyn Key>, CryptoError> {
        let pair = EcdsaKeyPair::from_pkcs8(self.algorithm, pkcs8.expose())?;
        let spki: PublicKeyX509Der<'_> = pair.public_key().as_der()?;
        let spki = spki.as_ref().to_vec();
        Ok(Box::new(EcKey { pair, spki, digest: self.digest }))
    }
}

struct EcKey {
    pair: EcdsaKeyPair,
    spki: Vec<u8>,
    digest: &'static str,
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
        if algorithm.family != Family::Ec || algorithm.digest != Some(self.digest) {
            return Err(CryptoError::UnsupportedAlgorithm);
        }
        let signature = match message {
            Message::Raw(message) => self.pair.sign(&SystemRandom::new(), message)?,
            Message::Digest(digest) => self.pair.sign_digest(&algorithm.import_digest(digest)?)?,
            Message::ExternalMu(_) => return Err(CryptoError::UnsupportedAlgorithm),
        };
        Ok(signature.as_ref().to_vec())
    }
}

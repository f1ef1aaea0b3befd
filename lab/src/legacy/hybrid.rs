//! Hybrid signatures of the 2022 study: uint32 length ‖ classical ‖ post-quantum, and the same for public keys; both
//! signatures must be valid.

use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1,
    ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, EcdsaVerificationAlgorithm, KeyPair, UnparsedPublicKey,
};

use super::signature::{Algorithm, Secret, Signature};
use crate::error::LabError;

/// ECDSA with the hash of its level, and its sizes in bytes.
#[derive(Debug)]
struct Classical {
    prefix: &'static str,
    public_key_len: usize,
    /// Longest DER `ECDSA-Sig-Value` (RFC 3279, section 2.2.3).
    signature_len: usize,
    signing: &'static EcdsaSigningAlgorithm,
    verification: &'static EcdsaVerificationAlgorithm,
}

static CLASSICAL: &[Classical] = &[
    Classical {
        prefix: "p256",
        public_key_len: 65,
        signature_len: 72,
        signing: &ECDSA_P256_SHA256_ASN1_SIGNING,
        verification: &ECDSA_P256_SHA256_ASN1,
    },
    Classical {
        prefix: "p384",
        public_key_len: 97,
        signature_len: 104,
        signing: &ECDSA_P384_SHA384_ASN1_SIGNING,
        verification: &ECDSA_P384_SHA384_ASN1,
    },
    Classical {
        prefix: "p521",
        public_key_len: 133,
        signature_len: 139,
        signing: &ECDSA_P521_SHA512_ASN1_SIGNING,
        verification: &ECDSA_P521_SHA512_ASN1,
    },
];

/// The hybrid with the curve of its level.
pub fn of(post_quantum: &'static Signature) -> Option<Signature> {
    let curve = super::curve(post_quantum.level);
    let classical = CLASSICAL.iter().find(|row| row.prefix == curve.prefix)?;
    let name = format!("{}_{}", curve.prefix, post_quantum.name);
    Some(Signature {
        name: Box::leak(name.into_boxed_str()),
        public_key_len: 4 + classical.public_key_len + post_quantum.public_key_len,
        signature_len: 4 + classical.signature_len + post_quantum.signature_len,
        algorithm: Box::leak(Box::new(Hybrid { classical, post_quantum })),
        ..post_quantum.clone()
    })
}

#[derive(Debug)]
struct Hybrid {
    classical: &'static Classical,
    post_quantum: &'static Signature,
}

struct HybridSecret {
    classical: EcdsaKeyPair,
    post_quantum: Arc<dyn Secret>,
}

impl Algorithm for Hybrid {
    fn generate(&self) -> Result<(Vec<u8>, Arc<dyn Secret>), LabError> {
        let classical = EcdsaKeyPair::generate(self.classical.signing).map_err(LabError::failed)?;
        let (public, post_quantum) = self.post_quantum.algorithm.generate()?;
        let public = join(classical.public_key().as_ref(), &public);
        Ok((public, Arc::new(HybridSecret { classical, post_quantum })))
    }

    fn verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        let (Some((point, key)), Some((first, second))) = (split(public_key), split(signature))
        else {
            return false;
        };
        let classical = UnparsedPublicKey::new(self.classical.verification, point);
        classical.verify(message, first).is_ok()
            && self.post_quantum.algorithm.verify(key, message, second)
    }
}

impl Secret for HybridSecret {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, LabError> {
        let classical = self.classical.sign(&SystemRandom::new(), message);
        let classical = classical.map_err(LabError::failed)?;
        Ok(join(classical.as_ref(), &self.post_quantum.sign(message)?))
    }
}

fn join(classical: &[u8], post_quantum: &[u8]) -> Vec<u8> {
    let length = u32::try_from(classical.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes(), classical, post_quantum].concat()
}

fn split(joined: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = joined.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)
}

//! Signature algorithms from the literature.

use std::fmt::Debug;
use std::sync::Arc;

use fn_dsa::{KeyPairGenerator, SigningKey, VerifyingKey};
use pqcrypto_traits::sign::{DetachedSignature, PublicKey, SecretKey};

use super::kem::avx2;
use crate::error::LabError;

/// An algorithm with its sizes in bytes.
#[derive(Debug, Clone)]
pub struct Signature {
    /// Name in the literature, with the round of NIST's competition where rounds differ.
    pub name: &'static str,
    /// NIST's level of security.
    pub level: u8,
    /// Bytes of a public key.
    pub public_key_len: usize,
    /// Bytes of a secret key.
    pub secret_key_len: usize,
    /// Bytes of a signature, at most.
    pub signature_len: usize,
    /// Source of the implementation, and whether it uses AVX2.
    pub source: &'static str,
    /// The implementation.
    pub algorithm: &'static dyn Algorithm,
}

/// Operations of an algorithm.
pub trait Algorithm: Sync + Send + Debug {
    /// Makes a public key, and a signer with its secret key.
    fn generate(&self) -> Result<(Vec<u8>, Arc<dyn Secret>), LabError>;
    /// Whether a signature is valid.
    fn verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool;
}

/// A secret key.
pub trait Secret: Send + Sync {
    /// Signs a message.
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, LabError>;
}

const DILITHIUM_R2: &str = "PQClean of 2020-12 (pqcrypto-dilithium 0.3.3), AVX2";
const FALCON: &str = "PQClean of 2020-12 (pqcrypto-falcon 0.2.4), portable C";
const FN_DSA: &str = "fn-dsa 0.4, AVX2";

/// Levels that the submissions claim: those of Dilithium in round 2 are one below the names of its parameter sets.
pub(super) fn compiled() -> Vec<Signature> {
    vec![
        row("dilithium2_r2", 1, [1184, 2800, 2044], DILITHIUM_R2, &Dilithium2R2),
        row("dilithium3_r2", 2, [1472, 3504, 2701], DILITHIUM_R2, &Dilithium3R2),
        row("dilithium4_r2", 3, [1760, 3856, 3366], DILITHIUM_R2, &Dilithium4R2),
        row("dilithium2_r3", 2, [1312, 2528, 2420], "pqc_dilithium 0.1.1, Rust", &Dilithium2R3),
        row("dilithium3_r3", 3, [1952, 4000, 3293], "pqc_dilithium 0.2.0, Rust", &Dilithium3R3),
        row(
            "dilithium5_r3",
            5,
            [2592, 4864, 4595],
            "dilithium-raw 0.1.0, portable C",
            &Dilithium5R3,
        ),
        row("falcon512", 1, [897, 1281, 690], FALCON, &Falcon512),
        row("falcon1024", 5, [1793, 2305, 1330], FALCON, &Falcon1024),
        row(
            "fn_dsa_512_draft",
            1,
            [897, 1281, 666],
            FN_DSA,
            &FnDsa { log_degree: fn_dsa::FN_DSA_LOGN_512 },
        ),
        row(
            "fn_dsa_1024_draft",
            5,
            [1793, 2305, 1280],
            FN_DSA,
            &FnDsa { log_degree: fn_dsa::FN_DSA_LOGN_1024 },
        ),
    ]
}

fn row(
    name: &'static str,
    level: u8,
    [public_key_len, secret_key_len, signature_len]: [usize; 3],
    source: &'static str,
    algorithm: &'static dyn Algorithm,
) -> Signature {
    let source = if avx2() { source } else { source.trim_end_matches(", AVX2") };
    Signature { name, level, public_key_len, secret_key_len, signature_len, source, algorithm }
}

macro_rules! pqclean {
    ($type:ident, $secret:ident, $module:path) => {
        #[derive(Debug)]
        struct $type;

        struct $secret(Vec<u8>);

        impl Algorithm for $type {
            fn generate(&self) -> Result<(Vec<u8>, Arc<dyn Secret>), LabError> {
                use $module as library;
                let (public, secret) = library::keypair();
                Ok((public.as_bytes().to_vec(), Arc::new($secret(secret.as_bytes().to_vec()))))
            }

            fn verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
                use $module as library;
                let key = library::PublicKey::from_bytes(public_key);
                let signature = library::DetachedSignature::from_bytes(signature);
                let (Ok(key), Ok(signature)) = (key, signature) else { return false };
                library::verify_detached_signature(&signature, message, &key).is_ok()
            }
        }

        impl Secret for $secret {
            fn sign(&self, message: &[u8]) -> Result<Vec<u8>, LabError> {
                use $module as library;
                let key = library::SecretKey::from_bytes(&self.0);
                let key = key.map_err(|error| LabError::Failed(format!("{error:?}")))?;
                Ok(library::detached_sign(message, &key).as_bytes().to_vec())
            }
        }
    };
}

pqclean!(Dilithium2R2, Dilithium2R2Secret, pqcrypto_dilithium::dilithium2);
pqclean!(Dilithium3R2, Dilithium3R2Secret, pqcrypto_dilithium::dilithium3);
pqclean!(Dilithium4R2, Dilithium4R2Secret, pqcrypto_dilithium::dilithium4);
pqclean!(Falcon512, Falcon512Secret, pqcrypto_falcon::falcon512);
pqclean!(Falcon1024, Falcon1024Secret, pqcrypto_falcon::falcon1024);

macro_rules! rust_dilithium {
    ($type:ident, $module:ident) => {
        #[derive(Debug)]
        struct $type;

        impl Algorithm for $type {
            fn generate(&self) -> Result<(Vec<u8>, Arc<dyn Secret>), LabError> {
                let pair = $module::Keypair::generate();
                Ok((pair.public.to_vec(), Arc::new(pair)))
            }

            fn verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
                // The library reads a key without checking its length.
                public_key.len() == $module::PUBLICKEYBYTES
                    && $module::verify(signature, message, public_key).is_ok()
            }
        }

        impl Secret for $module::Keypair {
            fn sign(&self, message: &[u8]) -> Result<Vec<u8>, LabError> {
                Ok($module::Keypair::sign(self, message).to_vec())
            }
        }
    };
}

rust_dilithium!(Dilithium2R3, pqc_dilithium_mode2);
rust_dilithium!(Dilithium3R3, pqc_dilithium_mode3);

#[derive(Debug)]
struct Dilithium5R3;

impl Algorithm for Dilithium5R3 {
    fn generate(&self) -> Result<(Vec<u8>, Arc<dyn Secret>), LabError> {
        let mut coins = outlast_crypto::random::bytes().map_err(LabError::failed)?;
        let (public, secret) = dilithium_raw::dilithium5::generate_keypair(&mut coins);
        let bytes: &[u8] = public.as_ref();
        Ok((bytes.to_vec(), Arc::new(secret)))
    }

    fn verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        use dilithium_raw::dilithium5;
        use dilithium_raw::util::{ByteArray, ByteArrayVec};
        let key = <[u8; 2592]>::try_from(public_key);
        let bytes = <[u8; 4595]>::try_from(signature);
        let (Ok(key), Ok(bytes)) = (key, bytes) else { return false };
        let key = dilithium5::PublicKey::from(ByteArray::new(key));
        let signature = dilithium5::Signature::from(ByteArrayVec::new(bytes, 4595));
        dilithium5::verify(message, &signature, &key).is_ok()
    }
}

impl Secret for dilithium_raw::dilithium5::SecretKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, LabError> {
        let signature = dilithium_raw::dilithium5::sign(message, self);
        let bytes: &[u8] = signature.as_ref();
        Ok(bytes.to_vec())
    }
}

/// Falcon as NIST's draft has it, which may still change.
#[derive(Debug)]
struct FnDsa {
    log_degree: u32,
}

struct FnDsaSecret {
    log_degree: u32,
    key: Vec<u8>,
}

impl Algorithm for FnDsa {
    fn generate(&self) -> Result<(Vec<u8>, Arc<dyn Secret>), LabError> {
        let mut key = vec![0; fn_dsa::sign_key_size(self.log_degree)];
        let mut public = vec![0; fn_dsa::vrfy_key_size(self.log_degree)];
        let mut random = Random::default();
        fn_dsa::KeyPairGeneratorStandard::default().keygen(
            self.log_degree,
            &mut random,
            &mut key,
            &mut public,
        );
        random.worked()?;
        Ok((public, Arc::new(FnDsaSecret { log_degree: self.log_degree, key })))
    }

    fn verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        fn_dsa::VerifyingKeyStandard::decode(public_key).is_some_and(|key| {
            key.verify(signature, &fn_dsa::DOMAIN_NONE, &fn_dsa::HASH_ID_RAW, message)
        })
    }
}

impl Secret for FnDsaSecret {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, LabError> {
        let refused = || LabError::failed("fn-dsa refused its own key");
        let mut key = fn_dsa::SigningKeyStandard::decode(&self.key).ok_or_else(refused)?;
        let mut signature = vec![0; fn_dsa::signature_size(self.log_degree)];
        let mut random = Random::default();
        let (domain, hash) = (&fn_dsa::DOMAIN_NONE, &fn_dsa::HASH_ID_RAW);
        key.sign(&mut random, domain, hash, message, &mut signature).ok_or_else(refused)?;
        random.worked()?;
        Ok(signature)
    }
}

/// AWS-LC's randomness for a library that cannot handle its failure while it draws: the failure is reported
/// afterwards.
#[derive(Default)]
struct Random {
    failed: bool,
}

impl Random {
    fn worked(&self) -> Result<(), LabError> {
        if self.failed { Err(LabError::failed("no randomness")) } else { Ok(()) }
    }
}

impl fn_dsa::CryptoRng for Random {}

impl fn_dsa::RngCore for Random {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill_bytes(&mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn fill_bytes(&mut self, out: &mut [u8]) {
        self.failed |= outlast_crypto::random::fill(out).is_err();
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), fn_dsa::RngError> {
        self.fill_bytes(out);
        Ok(())
    }
}

//! Key encapsulation mechanisms from the literature.

use std::fmt::Debug;

use pqcrypto_traits::kem::{Ciphertext, PublicKey, SecretKey, SharedSecret};

use crate::error::LabError;

/// A mechanism with its sizes in bytes.
#[derive(Debug)]
pub struct Kem {
    /// Name in the literature, with the round of NIST's competition where rounds differ.
    pub name: &'static str,
    /// NIST's level of security.
    pub level: u8,
    /// Bytes of a public key.
    pub public_key_len: usize,
    /// Bytes of a secret key.
    pub secret_key_len: usize,
    /// Bytes of a ciphertext.
    pub ciphertext_len: usize,
    /// Source of the implementation, and whether it uses AVX2.
    pub source: &'static str,
    /// The implementation.
    pub mechanism: &'static dyn Mechanism,
}

/// Operations of a mechanism.
pub trait Mechanism: Sync + Send + Debug {
    /// Makes a public key and its secret key.
    fn generate(&self) -> Result<(Vec<u8>, Vec<u8>), LabError>;
    /// Makes a ciphertext and its shared secret.
    fn encapsulate(&self, public_key: &[u8]) -> Result<(Vec<u8>, Vec<u8>), LabError>;
    /// Recovers the shared secret from a ciphertext.
    fn decapsulate(&self, secret_key: &[u8], ciphertext: &[u8]) -> Result<Vec<u8>, LabError>;
}

const KYBER_R2: &str = "PQClean of 2020-12 (pqcrypto-kyber 0.6.7), AVX2";
const SABER: &str = "PQClean of 2020-12 (pqcrypto-saber 0.1.5), portable C";
const NTRU: &str = "PQClean of 2020-12 (pqcrypto-ntru 0.5.2), AVX2";
const KYBER_R3: &str = "libcrux-ml-kem 0.0.11, AVX2";

/// Levels that the submissions claim; for NTRU, liboqs's.
pub(super) fn compiled() -> Vec<Kem> {
    vec![
        row("kyber512_r2", 1, [800, 1632, 736], KYBER_R2, &Kyber512R2),
        row("kyber768_r2", 3, [1184, 2400, 1088], KYBER_R2, &Kyber768R2),
        row("kyber1024_r2", 5, [1568, 3168, 1568], KYBER_R2, &Kyber1024R2),
        row("kyber512_90s_r2", 1, [800, 1632, 736], KYBER_R2, &Kyber512NinetiesR2),
        row("kyber768_90s_r2", 3, [1184, 2400, 1088], KYBER_R2, &Kyber768NinetiesR2),
        row("kyber1024_90s_r2", 5, [1568, 3168, 1568], KYBER_R2, &Kyber1024NinetiesR2),
        row("kyber512_r3", 1, [800, 1632, 768], KYBER_R3, &Kyber512R3),
        row("kyber768_r3", 3, [1184, 2400, 1088], KYBER_R3, &Kyber768R3),
        row("kyber1024_r3", 5, [1568, 3168, 1568], KYBER_R3, &Kyber1024R3),
        row("lightsaber", 1, [672, 1568, 736], SABER, &LightSaber),
        row("saber", 3, [992, 2304, 1088], SABER, &Saber),
        row("firesaber", 5, [1312, 3040, 1472], SABER, &FireSaber),
        row("ntru_hps2048509", 1, [699, 935, 699], NTRU, &NtruHps2048509),
        row("ntru_hps2048677", 3, [930, 1234, 930], NTRU, &NtruHps2048677),
        row("ntru_hps4096821", 5, [1230, 1590, 1230], NTRU, &NtruHps4096821),
        row("ntru_hrss701", 3, [1138, 1450, 1138], NTRU, &NtruHrss701),
    ]
}

fn row(
    name: &'static str,
    level: u8,
    [public_key_len, secret_key_len, ciphertext_len]: [usize; 3],
    source: &'static str,
    mechanism: &'static dyn Mechanism,
) -> Kem {
    // The libraries choose their code at run time.
    let source = if avx2() { source } else { source.trim_end_matches(", AVX2") };
    Kem { name, level, public_key_len, secret_key_len, ciphertext_len, source, mechanism }
}

/// Whether the processor has AVX2, which the libraries check, too.
pub(super) fn avx2() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

fn refused(error: impl Debug) -> LabError {
    LabError::Failed(format!("a key or ciphertext was refused: {error:?}"))
}

macro_rules! pqclean {
    ($type:ident, $module:path) => {
        #[derive(Debug)]
        struct $type;

        impl Mechanism for $type {
            fn generate(&self) -> Result<(Vec<u8>, Vec<u8>), LabError> {
                use $module as library;
                let (public, secret) = library::keypair();
                Ok((public.as_bytes().to_vec(), secret.as_bytes().to_vec()))
            }

            fn encapsulate(&self, public_key: &[u8]) -> Result<(Vec<u8>, Vec<u8>), LabError> {
                use $module as library;
                let public = library::PublicKey::from_bytes(public_key).map_err(refused)?;
                let (secret, ciphertext) = library::encapsulate(&public);
                Ok((ciphertext.as_bytes().to_vec(), secret.as_bytes().to_vec()))
            }

            fn decapsulate(
                &self,
                secret_key: &[u8],
                ciphertext: &[u8],
            ) -> Result<Vec<u8>, LabError> {
                use $module as library;
                let secret = library::SecretKey::from_bytes(secret_key).map_err(refused)?;
                let ciphertext = library::Ciphertext::from_bytes(ciphertext).map_err(refused)?;
                Ok(library::decapsulate(&ciphertext, &secret).as_bytes().to_vec())
            }
        }
    };
}

pqclean!(Kyber512R2, pqcrypto_kyber::kyber512);
pqclean!(Kyber768R2, pqcrypto_kyber::kyber768);
pqclean!(Kyber1024R2, pqcrypto_kyber::kyber1024);
pqclean!(Kyber512NinetiesR2, pqcrypto_kyber::kyber51290s);
pqclean!(Kyber768NinetiesR2, pqcrypto_kyber::kyber76890s);
pqclean!(Kyber1024NinetiesR2, pqcrypto_kyber::kyber102490s);
pqclean!(LightSaber, pqcrypto_saber::lightsaber);
pqclean!(Saber, pqcrypto_saber::saber);
pqclean!(FireSaber, pqcrypto_saber::firesaber);
pqclean!(NtruHps2048509, pqcrypto_ntru::ntruhps2048509);
pqclean!(NtruHps2048677, pqcrypto_ntru::ntruhps2048677);
pqclean!(NtruHps4096821, pqcrypto_ntru::ntruhps4096821);
pqclean!(NtruHrss701, pqcrypto_ntru::ntruhrss701);

macro_rules! libcrux {
    ($type:ident, $module:path, $sizes:path, $public:ident, $secret:ident, $ciphertext:ident) => {
        #[derive(Debug)]
        struct $type;

        impl Mechanism for $type {
            fn generate(&self) -> Result<(Vec<u8>, Vec<u8>), LabError> {
                use $module as library;
                let coins = outlast_crypto::random::bytes().map_err(LabError::failed)?;
                let pair = library::generate_key_pair(coins);
                Ok((pair.pk().to_vec(), pair.sk().to_vec()))
            }

            fn encapsulate(&self, public_key: &[u8]) -> Result<(Vec<u8>, Vec<u8>), LabError> {
                use $module as library;
                use $sizes as sizes;
                let public = sizes::$public::try_from(public_key).map_err(refused)?;
                let coins = outlast_crypto::random::bytes().map_err(LabError::failed)?;
                let (ciphertext, secret) = library::encapsulate(&public, coins);
                Ok((ciphertext.as_ref().to_vec(), secret.to_vec()))
            }

            fn decapsulate(
                &self,
                secret_key: &[u8],
                ciphertext: &[u8],
            ) -> Result<Vec<u8>, LabError> {
                use $module as library;
                use $sizes as sizes;
                let secret = sizes::$secret::try_from(secret_key).map_err(refused)?;
                let ciphertext = sizes::$ciphertext::try_from(ciphertext).map_err(refused)?;
                Ok(library::decapsulate(&secret, &ciphertext).to_vec())
            }
        }
    };
}

libcrux!(
    Kyber512R3,
    libcrux_ml_kem::kyber512,
    libcrux_ml_kem::mlkem512,
    MlKem512PublicKey,
    MlKem512PrivateKey,
    MlKem512Ciphertext
);
libcrux!(
    Kyber768R3,
    libcrux_ml_kem::kyber768,
    libcrux_ml_kem::mlkem768,
    MlKem768PublicKey,
    MlKem768PrivateKey,
    MlKem768Ciphertext
);
libcrux!(
    Kyber1024R3,
    libcrux_ml_kem::kyber1024,
    libcrux_ml_kem::mlkem1024,
    MlKem1024PublicKey,
    MlKem1024PrivateKey,
    MlKem1024Ciphertext
);

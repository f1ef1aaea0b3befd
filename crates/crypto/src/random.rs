//! Random bytes from AWS-LC's generator.

use ml_dsa::signature::rand_core::{TryCryptoRng, TryRng};

use crate::{CryptoError, Secret};

/// Fills `out` with random bytes.
pub fn fill(out: &mut [u8]) -> Result<(), CryptoError> {
    aws_lc_rs::rand::fill(out).map_err(CryptoError::from)
}

/// Returns `N` random bytes that need not stay secret (identifiers, salts, serial numbers).
pub fn bytes<const N: usize>() -> Result<[u8; N], CryptoError> {
    let mut out = [0; N];
    fill(&mut out)?;
    Ok(out)
}

/// Returns `len` random bytes that must stay secret.
pub fn secret(len: usize) -> Result<Secret, CryptoError> {
    let mut out = vec![0; len];
    fill(&mut out)?;
    Ok(Secret::new(out))
}

/// AWS-LC's generator with the interface that the RustCrypto crates expect.
pub(crate) struct AwsLcRng;

impl TryRng for AwsLcRng {
    type Error = CryptoError;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        bytes().map(u32::from_le_bytes)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        bytes().map(u64::from_le_bytes)
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
        fill(out)
    }
}

impl TryCryptoRng for AwsLcRng {}

//! Randomness, from AWS-LC's generator.

use crate::{CryptoError, Secret};

/// Fills `out` with random bytes.
pub fn fill(out: &mut [u8]) -> Result<(), CryptoError> {
    aws_lc_rs::rand::fill(out).map_err(CryptoError::from)
}

/// `N` random bytes that need not stay secret (identifiers, salts, serial numbers).
pub fn bytes<const N: usize>() -> Result<[u8; N], CryptoError> {
    let mut out = [0; N];
    fill(&mut out)?;
    Ok(out)
}

/// `len` random bytes to be kept secret.
pub fn secret(len: usize) -> Result<Secret, CryptoError> {
    let mut out = vec![0; len];
    fill(&mut out)?;
    Ok(Secret::new(out))
}

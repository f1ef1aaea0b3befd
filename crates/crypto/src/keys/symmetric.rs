//! Symmetric keys: AES-256-GCM for `SYMMETRIC_DEFAULT`, bare bytes for HMAC.

use super::Key;
use crate::{CryptoError, Secret, aead, random};

/// `len` random bytes.
pub(super) fn generate(len: usize) -> Result<Secret, CryptoError> {
    random::secret(len)
}

pub(super) fn load(stored: &Secret) -> Result<Box<dyn Key>, CryptoError> {
    if !matches!(stored.len(), 32 | 48 | 64) {
        return Err(CryptoError::InvalidKey);
    }
    Ok(Box::new(Symmetric(Secret::new(stored.expose().to_vec()))))
}

struct Symmetric(Secret);

impl Key for Symmetric {
    fn encrypt(&self, _: &str, aad: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, CryptoError> {
        aead::seal(self.0.expose(), aad, plaintext)
    }

    fn decrypt(&self, _: &str, aad: &[u8], ciphertext: &[u8]) -> Result<Secret, CryptoError> {
        aead::open(self.0.expose(), aad, ciphertext)
    }
}

//! AES-256-GCM with a key derived for each message.
//!
//! One 256-bit master key can seal any number of messages: each message gets its own key, HKDF-SHA-256(master, salt),
//! so the limit of 2^32 random GCM nonces (NIST SP 800-38D, section 8.3) applies to each random 128-bit salt
//! separately and is never reached.
//!
//! Layout: `version (1) ‖ salt (16) ‖ nonce (12) ‖ ciphertext ‖ tag (16)`.

use aws_lc_rs::aead::{AES_256_GCM, Aad, Nonce, RandomizedNonceKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use zeroize::Zeroizing;

use crate::{CryptoError, Secret, random};

const VERSION: u8 = 1;
const SALT_LEN: usize = 16;
const NONCE_LEN: usize = 12;
const TAG_LEN: usize = 16;
const INFO: &[u8] = b"outlast aes-256-gcm v1";

/// Length of a master key in bytes.
pub const KEY_LEN: usize = 32;

/// Bytes that a sealed message has in addition to its plaintext.
pub const OVERHEAD: usize = 1 + SALT_LEN + NONCE_LEN + TAG_LEN;

/// Encrypts `plaintext` and authenticates it together with `associated_data`.
///
/// `key` must have [`KEY_LEN`] bytes.
pub fn seal(key: &[u8], associated_data: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, CryptoError> {
    let salt = random::bytes::<SALT_LEN>()?;
    let cipher = derived(key, &salt)?;
    let mut body = plaintext.to_vec();
    let nonce = cipher.seal_in_place_append_tag(Aad::from(associated_data), &mut body)?;
    let mut out = Vec::with_capacity(OVERHEAD + plaintext.len());
    out.push(VERSION);
    out.extend_from_slice(&salt);
    out.extend_from_slice(nonce.as_ref());
    out.extend_from_slice(&body);
    Ok(out)
}

/// Reverses [`seal`]. Any difference in key, associated data or bytes is [`CryptoError::InvalidCiphertext`].
pub fn open(key: &[u8], associated_data: &[u8], sealed: &[u8]) -> Result<Secret, CryptoError> {
    let (version, rest) = sealed.split_first().ok_or(CryptoError::InvalidCiphertext)?;
    if *version != VERSION || rest.len() < SALT_LEN + NONCE_LEN + TAG_LEN {
        return Err(CryptoError::InvalidCiphertext);
    }
    let (salt, rest) = rest.split_at(SALT_LEN);
    let (nonce, body) = rest.split_at(NONCE_LEN);
    let nonce =
        Nonce::try_assume_unique_for_key(nonce).map_err(|_| CryptoError::InvalidCiphertext)?;
    let cipher = derived(key, salt)?;
    let mut body = Zeroizing::new(body.to_vec());
    let plaintext = cipher
        .open_in_place(nonce, Aad::from(associated_data), &mut body)
        .map_err(|_| CryptoError::InvalidCiphertext)?;
    Ok(Secret::new(plaintext.to_vec()))
}

struct Len32;

impl KeyType for Len32 {
    fn len(&self) -> usize {
        KEY_LEN
    }
}

fn derived(key: &[u8], salt: &[u8]) -> Result<RandomizedNonceKey, CryptoError> {
    if key.len() != KEY_LEN {
        return Err(CryptoError::InvalidKey);
    }
    let mut derived = Zeroizing::new([0; KEY_LEN]);
    Salt::new(HKDF_SHA256, salt).extract(key).expand(&[INFO], Len32)?.fill(derived.as_mut())?;
    Ok(RandomizedNonceKey::new(&AES_256_GCM, derived.as_ref())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_what_was_sealed() {
        let key = [7; KEY_LEN];
        let sealed = seal(&key, b"record/1", b"secret").unwrap();
        assert_eq!(sealed.len(), 6 + OVERHEAD);
        assert_eq!(open(&key, b"record/1", &sealed).unwrap().expose(), b"secret");
        assert!(open(&key, b"record/2", &sealed).is_err());
        assert!(open(&[8; KEY_LEN], b"record/1", &sealed).is_err());
        for at in 0..sealed.len() {
            let mut bad = sealed.clone();
            bad[at] ^= 1;
            assert!(open(&key, b"record/1", &bad).is_err(), "byte {at}");
            assert!(open(&key, b"record/1", &sealed[..at]).is_err(), "cut at {at}");
        }
    }
}

//! HMAC-SHA-256 (FIPS 198-1), the basis of AWS Signature Version 4 and of authenticated records.

use aws_lc_rs::{constant_time, hmac};

/// HMAC-SHA-256 of `message` under `key`: 32 bytes.
pub fn sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message);
    let mut out = [0; 32];
    out.copy_from_slice(tag.as_ref());
    out
}

/// A key for many messages: the part of HMAC that depends only on the key is computed once.
pub struct Key(hmac::Key);

impl Key {
    /// Makes a key from these bytes.
    pub fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// HMAC-SHA-256 of the concatenated parts: 32 bytes.
    pub fn sign(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut context = hmac::Context::with_key(&self.0);
        for part in parts {
            context.update(part);
        }
        let mut out = [0; 32];
        out.copy_from_slice(context.sign().as_ref());
        out
    }
}

/// Compares in constant time.
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    constant_time::verify_slices_are_equal(a, b).is_ok()
}

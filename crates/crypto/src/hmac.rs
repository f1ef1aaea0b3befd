//! HMAC-SHA-256 (FIPS 198-1), which AWS Signature Version 4 and authenticated records are made of.

use aws_lc_rs::{constant_time, hmac};

/// HMAC-SHA-256 of `message` under `key`: 32 bytes.
pub fn sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message);
    let mut out = [0; 32];
    out.copy_from_slice(tag.as_ref());
    out
}

/// A key that is used many times: what depends on the key alone is computed once.
pub struct Key(hmac::Key);

impl Key {
    /// The key with these bytes.
    pub fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// HMAC-SHA-256 of the parts, one after the other: 32 bytes.
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

/// Compares without telling by its duration where the first difference is.
pub fn equal(a: &[u8], b: &[u8]) -> bool {
    constant_time::verify_slices_are_equal(a, b).is_ok()
}

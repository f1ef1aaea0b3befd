//! Signatures that were verified before. Files that one key signed share the certificates of their chain, and often the
//! evidence of revocation: a caller that verifies many files need not verify those signatures again for each.

use std::collections::HashSet;
use std::sync::{PoisonError, RwLock};

use outlast_crypto::digests::sha256;

/// Most signatures that are remembered; the set is emptied when it is full.
const MAX_SEEN: usize = 4096;

/// Right signatures of certificates, CRLs and OCSP responses, each by a SHA-256 digest of the issuer's key and of the
/// whole signed object: another key, or another object, is verified again. Wrong signatures are not remembered.
#[derive(Debug, Default)]
pub struct Seen(RwLock<HashSet<[u8; 32]>>);

impl Seen {
    /// Whether the signature was found right before.
    pub(crate) fn knows(seen: Option<&Self>, public_key: &[u8], object: &[u8]) -> bool {
        let Some(Self(known)) = seen else { return false };
        let digest = digest(public_key, object);
        known.read().unwrap_or_else(PoisonError::into_inner).contains(&digest)
    }

    /// Whether the key in the DER `SubjectPublicKeyInfo` signed the DER `object`. `verify` decides if it is not known.
    pub(crate) fn or_verify(
        seen: Option<&Self>,
        public_key: &[u8],
        object: &[u8],
        verify: impl FnOnce() -> bool,
    ) -> bool {
        let Some(Self(known)) = seen else { return verify() };
        let digest = digest(public_key, object);
        if known.read().unwrap_or_else(PoisonError::into_inner).contains(&digest) {
            return true;
        }
        let valid = verify();
        if valid {
            let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= MAX_SEEN {
                known.clear();
            }
            known.insert(digest);
        }
        valid
    }
}

fn digest(public_key: &[u8], object: &[u8]) -> [u8; 32] {
    // Of digests, because they have one length: a byte of the key cannot count as one of the object.
    sha256(&[sha256(public_key), sha256(object)].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_right_signature_by_the_same_key_on_the_same_object_is_known() {
        let seen = Seen::default();
        let asked = |key: &[u8], object: &[u8], valid: bool| {
            let mut verified = false;
            let known = Seen::knows(Some(&seen), key, object);
            let answer = Seen::or_verify(Some(&seen), key, object, || {
                verified = true;
                valid
            });
            assert_eq!(known, !verified);
            (answer, verified)
        };
        assert_eq!(asked(b"key", b"object", false), (false, true));
        assert_eq!(asked(b"key", b"object", true), (true, true));
        assert_eq!(asked(b"key", b"object", false), (true, false));
        assert_eq!(asked(b"key", b"objecT", false), (false, true));
        assert_eq!(asked(b"keyo", b"bject", false), (false, true));
        assert_eq!(asked(b"kez", b"object", false), (false, true));
    }

    #[test]
    fn it_does_not_grow_for_ever() {
        let seen = Seen::default();
        for number in 0..2 * MAX_SEEN {
            assert!(Seen::or_verify(Some(&seen), &number.to_be_bytes(), b"object", || true));
        }
        assert!(seen.0.read().unwrap_or_else(PoisonError::into_inner).len() <= MAX_SEEN);
    }
}

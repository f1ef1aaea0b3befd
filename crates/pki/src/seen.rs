//! Signatures that were verified before, and how many more may be verified for a message. Files that one key signed share the
//! certificates of their chain, and often the evidence of revocation: a caller that verifies many files need not verify those
//! signatures again for each.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use outlast_crypto::digests::sha256;

/// Most signatures that are verified for one message: those of its timestamps, of its evidence record, and of the certificates,
/// CRLs and OCSP responses of all of them. What was verified before does not count.
///
/// The parts have limits of their own, whose product would take minutes: 16 signers with 16 timestamps each, and 100 signatures
/// each time that a chain is validated. A signer with one timestamp takes about a dozen. 16 signers with four timestamps each, all
/// by different authorities with chains of three certificates and an OCSP response for each, take fewer than 1,000; an evidence
/// record of 128 timestamps like these about as many.
pub const MAX_MESSAGE_SIGNATURES: u32 = 2_000;

/// Most signatures that are remembered; the set is emptied when it is full.
const MAX_SEEN: usize = 4096;

/// Right signatures of certificates, CRLs and OCSP responses, each by a SHA-256 digest of the issuer's key and of the
/// whole signed object: another key, or another object, is verified again. Wrong signatures are not remembered.
#[derive(Debug, Default)]
pub struct Seen {
    known: Arc<RwLock<HashSet<[u8; 32]>>>,
    /// Signatures that the message has asked for so far; `None` if there is no limit.
    asked: Option<AtomicU32>,
}

impl Seen {
    /// The same memory for one message, for which at most [`MAX_MESSAGE_SIGNATURES`] signatures are verified.
    #[must_use]
    pub fn for_message(&self) -> Self {
        Self { known: Arc::clone(&self.known), asked: Some(AtomicU32::new(0)) }
    }

    /// Counts a signature that is about to be verified. If this is false, the message has reached its limit, and the signature
    /// must not be verified.
    pub(crate) fn count(seen: Option<&Self>) -> bool {
        let Some(asked) = seen.and_then(|seen| seen.asked.as_ref()) else { return true };
        asked.fetch_add(1, Ordering::Relaxed) < MAX_MESSAGE_SIGNATURES
    }

    /// Whether the limit of the message has kept a signature from being verified.
    pub(crate) fn is_used_up(seen: Option<&Self>) -> bool {
        seen.and_then(|seen| seen.asked.as_ref())
            .is_some_and(|asked| asked.load(Ordering::Relaxed) > MAX_MESSAGE_SIGNATURES)
    }

    /// Whether the key in the DER `SubjectPublicKeyInfo` signed the DER `object`. `verify` decides if it is not known. False also
    /// if the message has reached its limit: a caller for whom a wrong signature is no refusal asks [`Seen::is_used_up`].
    pub(crate) fn or_verify(
        seen: Option<&Self>,
        public_key: &[u8],
        object: &[u8],
        verify: impl FnOnce() -> bool,
    ) -> bool {
        let Some(Self { known, .. }) = seen else { return verify() };
        let digest = digest(public_key, object);
        if known.read().unwrap_or_else(PoisonError::into_inner).contains(&digest) {
            return true;
        }
        let valid = Self::count(seen) && verify();
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
            let answer = Seen::or_verify(Some(&seen), key, object, || {
                verified = true;
                valid
            });
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
        assert!(seen.known.read().unwrap_or_else(PoisonError::into_inner).len() <= MAX_SEEN);
        assert!(!Seen::is_used_up(Some(&seen)));
    }

    #[test]
    fn each_message_has_a_limit_of_its_own() {
        let all = Seen::default();
        let is_signed = |seen: &Seen, object: u32| {
            Seen::or_verify(Some(seen), b"key", &object.to_be_bytes(), || true)
        };
        let first = all.for_message();
        for object in 0..MAX_MESSAGE_SIGNATURES {
            assert!(is_signed(&first, object));
        }
        // What is known costs nothing.
        assert!(is_signed(&first, 0));
        assert!(!Seen::is_used_up(Some(&first)));
        assert!(!is_signed(&first, MAX_MESSAGE_SIGNATURES));
        assert!(Seen::is_used_up(Some(&first)));
        let second = all.for_message();
        assert!(is_signed(&second, MAX_MESSAGE_SIGNATURES));
        assert!(!Seen::is_used_up(Some(&second)));
    }
}

//! Detached signatures: signed files verify, changed ones do not, and nothing panics.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{Hierarchy, START, YEAR, hierarchy, issue};
use outlast_crypto::digests::{DIGESTS, Digest};
use outlast_crypto::keys::KEY_SPECS;
use outlast_crypto::signatures::Message;
use outlast_pki::cms::attributes::{NotAttributes, SignedAttributes};
use outlast_pki::cms::sign::{Request, Unsigned};
use outlast_pki::cms::verify::{SignedMessage, Time, TimeSource, Verifier, VerifyError};
use outlast_pki::path::PathError;
use outlast_pki::pem;
use proptest::prelude::*;

const FILE: &[u8] = b"the file to be signed";
const NOW: When = When::Claimed { now: START + 1000 };

/// The time at which the certificates must be valid.
#[derive(Clone, Copy)]
enum When {
    /// The signer's claim.
    Claimed {
        now: i64,
    },
    Trusted(i64),
}

impl When {
    fn verifier(self, roots: &[Vec<u8>]) -> Verifier<'_> {
        let (now, time) = match self {
            Self::Claimed { now } => (now, None),
            Self::Trusted(at) => (at, Some(Time { at, source: TimeSource::Verifier })),
        };
        Verifier { roots, now, time, ..Verifier::default() }
    }
}

fn sign(h: &Hierarchy, digest: &'static Digest, signing_time: i64) -> Vec<u8> {
    let chain = [h.subordinate.certificate.der().to_vec()];
    let message_digest = digest.digest(FILE);
    let unsigned = Unsigned::new(&[Request {
        message_digest: &message_digest,
        digest,
        algorithm: h.leaf.algorithm,
        signing_time,
        signer: &h.leaf.certificate,
        chain: &chain,
    }])
    .unwrap();
    assert!(unsigned.to_be_signed[0].len() < 256, "the attributes fit any service's limit");
    let signature =
        h.leaf.key.sign(h.leaf.algorithm, Message::Raw(&unsigned.to_be_signed[0])).unwrap();
    unsigned.assemble(&[signature]).unwrap()
}

fn verify(p7s: &[u8], file: &[u8], root: &[u8], at: When) -> Result<(), VerifyError> {
    let message = SignedMessage::parse(p7s)?;
    let digests: Vec<_> = message.digests()?.iter().map(|row| row.digest(file)).collect();
    message.verify(&digests, &at.verifier(&[root.to_vec()])).map(|_| ())
}

#[test]
fn every_signing_key_type_with_every_suitable_digest() {
    // The algorithms that a certificate can have.
    let specs = KEY_SPECS.iter().filter(|spec| spec.pca_name.is_some() && !spec.signing.is_empty());
    for spec in specs {
        let h = hierarchy(spec.name);
        let root = h.root.certificate.der();
        for digest in DIGESTS {
            let p7s = sign(&h, digest, START + 100);
            let outcome = verify(&p7s, FILE, root, NOW);
            if h.leaf.algorithm.cms_digests.contains(&digest.name) {
                assert_eq!(outcome, Ok(()), "{} {}", spec.name, digest.name);
            } else {
                assert!(
                    matches!(outcome, Err(VerifyError::UnsuitableDigest { .. })),
                    "{} {}: {outcome:?}",
                    spec.name,
                    digest.name
                );
            }
        }
    }
}

#[test]
fn the_attributes_of_an_ml_dsa_signature_take_183_bytes() {
    let h = hierarchy("ML_DSA_65");
    let digest = Digest::by_name("sha512").unwrap();
    let request = Request {
        message_digest: &[0; 64],
        digest,
        algorithm: h.leaf.algorithm,
        signing_time: START,
        signer: &h.leaf.certificate,
        chain: &[],
    };
    assert_eq!(Unsigned::new(&[request]).unwrap().to_be_signed[0].len(), 183);
}

/// What is to be signed says which file it stands for, before there is a message; every change of a byte makes it another file, or
/// nothing.
#[test]
fn signed_attributes_name_their_file() {
    let h = hierarchy("ML_DSA_65");
    let digest = Digest::by_name("sha512").unwrap();
    let message_digest = digest.digest(FILE);
    let request = Request {
        message_digest: &message_digest,
        digest,
        algorithm: h.leaf.algorithm,
        signing_time: START,
        signer: &h.leaf.certificate,
        chain: &[],
    };
    let message = Unsigned::new(&[request]).unwrap().to_be_signed.remove(0);
    let read = SignedAttributes::parse(&message).unwrap();
    assert_eq!((&read.message_digest, read.signing_time), (&message_digest, Some(START)));
    assert_eq!(read.digest.unwrap().name, "sha512");
    let end = message.len();
    for at in 0..end {
        let mut changed = message.clone();
        changed[at] ^= 1;
        if let Ok(other) = SignedAttributes::parse(&changed) {
            let same = other.message_digest == message_digest
                && other.signing_time == read.signing_time
                && other.digest.map(|row| row.oid) == Some(digest.oid);
            // The signature algorithm in CMSAlgorithmProtection is the signer's, and may be another.
            assert!(!same || at > 20, "byte {at} of {end}");
        }
        assert!(SignedAttributes::parse(&message[..at]).is_err());
    }
    // The same attributes in another order are BER, and not what is signed.
    let body = &message[3..];
    let first = usize::from(body[1]) + 2;
    let swapped = [&message[..3], &body[first..], &body[..first]].concat();
    assert!(matches!(SignedAttributes::parse(&swapped), Err(NotAttributes::Invalid(_))));
    let indefinite = [b"\x31\x80", body, b"\0\0"].concat();
    assert!(matches!(SignedAttributes::parse(&indefinite), Err(NotAttributes::Invalid(_))));
}

#[test]
fn each_change_is_refused_with_its_reason() {
    let h = hierarchy("ML_DSA_65");
    let other = hierarchy("ML_DSA_65");
    let sha512 = Digest::by_name("sha512").unwrap();
    let p7s = sign(&h, sha512, START + 100);
    let root = h.root.certificate.der();
    assert_eq!(verify(&p7s, FILE, root, NOW), Ok(()));
    assert_eq!(verify(pem::cms(&p7s).as_bytes(), FILE, root, NOW), Ok(()));
    assert_eq!(verify(&p7s, b"another file", root, NOW), Err(VerifyError::DigestMismatch));
    let mut bad = p7s.clone();
    *bad.last_mut().unwrap() ^= 1;
    assert_eq!(verify(&bad, FILE, root, NOW), Err(VerifyError::Signature));
    let path = |outcome: Result<(), VerifyError>| match outcome {
        Err(VerifyError::Path(error)) => error,
        other => panic!("{other:?}"),
    };
    // The other root has the same name and another key.
    let wrong = path(verify(&p7s, FILE, other.root.certificate.der(), NOW));
    assert_eq!(wrong, PathError::Signature);
    let stranger = issue("ML_DSA_65", "Stranger", "RootCACertificate", 10, None);
    let unknown = path(verify(&p7s, FILE, stranger.certificate.der(), NOW));
    assert!(matches!(unknown, PathError::UnknownIssuer { .. }), "{unknown}");
    for cut in [0, 1, 10, 100, p7s.len() / 2, p7s.len() - 1] {
        let outcome = verify(&p7s[..cut], FILE, root, NOW);
        assert!(matches!(outcome, Err(VerifyError::NotCms(_))), "cut at {cut}: {outcome:?}");
    }
    for rest in [&b"\n"[..], b"more", &[0, 0], &p7s] {
        let outcome = verify(&[&p7s, rest].concat(), FILE, root, NOW);
        assert_eq!(outcome, Err(VerifyError::TrailingData));
    }
    for garbage in [&b"hello"[..], b"-----BEGIN CMS-----\nAAAA\n-----END CMS-----\n", &[0x30, 0x80]]
    {
        assert!(matches!(verify(garbage, FILE, root, NOW), Err(VerifyError::NotCms(_))));
    }
    assert!(matches!(
        verify(&p7s, FILE, root, When::Claimed { now: START - 10_000 }),
        Err(VerifyError::FutureSigningTime(_))
    ));
}

#[test]
fn the_chain_is_validated_at_the_signing_time() {
    let h = hierarchy("ML_DSA_44");
    let root = h.root.certificate.der();
    let sha512 = Digest::by_name("sha512").unwrap();
    let late = When::Claimed { now: START + 20 * YEAR };
    assert_eq!(verify(&sign(&h, sha512, START + 100), FILE, root, late), Ok(()));
    let expired = verify(&sign(&h, sha512, START + 2 * YEAR), FILE, root, late);
    assert!(matches!(expired, Err(VerifyError::Path(PathError::Expired { .. }))), "{expired:?}");
    let early = verify(&sign(&h, sha512, START - 100), FILE, root, late);
    assert!(matches!(early, Err(VerifyError::Path(PathError::NotYetValid { .. }))), "{early:?}");
    let at = When::Trusted(START + 2 * YEAR);
    assert!(verify(&sign(&h, sha512, START + 100), FILE, root, at).is_err());
}

#[test]
fn trust_anchors_are_not_believed_blindly() {
    // A root of one year above CAs with a longer validity: its own end counts.
    let root = issue("ML_DSA_44", "Root", "RootCACertificate", 1, None);
    let subordinate =
        issue("ML_DSA_44", "Sub", "SubordinateCACertificate_PathLen0", 5, Some(&root));
    let leaf = issue("ML_DSA_44", "Leaf", "CodeSigningCertificate", 5, Some(&subordinate));
    let h = Hierarchy { root, subordinate, leaf };
    let sha512 = Digest::by_name("sha512").unwrap();
    let late = When::Claimed { now: START + 3 * YEAR };
    let (root, leaf) = (h.root.certificate.der(), h.leaf.certificate.der());
    assert_eq!(verify(&sign(&h, sha512, START + 100), FILE, root, late), Ok(()));
    let expired = verify(&sign(&h, sha512, START + 2 * YEAR), FILE, root, late);
    assert!(matches!(expired, Err(VerifyError::Path(PathError::Expired { .. }))), "{expired:?}");
    // A leaf in the trust store is not a root, alone or next to one.
    let p7s = sign(&h, sha512, START + 100);
    let alone = verify(&p7s, FILE, leaf, late);
    assert!(matches!(alone, Err(VerifyError::Path(PathError::TrustStore(_)))), "{alone:?}");
    let message = SignedMessage::parse(&p7s).unwrap();
    let digests = [sha512.digest(FILE)];
    let both = message.verify(&digests, &late.verifier(&[leaf.to_vec(), root.to_vec()]));
    assert!(both.is_ok(), "{:?}", both.err());
    // Nor is what the leaf's key signs accepted: its own signature under another name.
    let stranger = issue("ML_DSA_44", "Stranger", "CodeSigningCertificate", 1, Some(&h.leaf));
    let forged = Hierarchy { leaf: stranger, subordinate: take(&h.leaf), root: take(&h.root) };
    let p7s = sign(&forged, sha512, START + 100);
    let message = SignedMessage::parse(&p7s).unwrap();
    let outcome = message.verify(&digests, &late.verifier(&[leaf.to_vec(), root.to_vec()]));
    assert!(matches!(outcome, Err(VerifyError::Path(_))), "{outcome:?}");
}

#[test]
fn only_a_code_signing_leaf_may_sign_code() {
    let root = issue("ML_DSA_44", "Root", "RootCACertificate", 10, None);
    let subordinate =
        issue("ML_DSA_44", "Sub", "SubordinateCACertificate_PathLen0", 5, Some(&root));
    for row in
        ["EndEntityCertificate", "OCSPSigningCertificate", "SubordinateCACertificate_PathLen0"]
    {
        let leaf = issue("ML_DSA_44", "Leaf", row, 1, Some(&subordinate));
        let h = Hierarchy {
            root: issue("ML_DSA_44", "unused", "RootCACertificate", 1, None),
            subordinate: Party { ..take(&subordinate) },
            leaf,
        };
        let p7s = sign(&h, Digest::by_name("sha512").unwrap(), START + 100);
        let outcome = verify(&p7s, FILE, root.certificate.der(), NOW);
        assert!(
            matches!(outcome, Err(VerifyError::Path(PathError::Purpose(_)))),
            "{row}: {outcome:?}"
        );
    }
}

use common::Party;

/// A party with the same certificate; its key is not used.
fn take(party: &Party) -> Party {
    let fresh = issue("ML_DSA_44", "unused", "RootCACertificate", 1, None);
    Party { certificate: party.certificate.clone(), ..fresh }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// No bytes from outside make the parser panic, whether they look like CMS or not.
    #[test]
    fn damaged_messages_never_panic(at in 0usize..15_000, value in any::<u8>(), cut in 0usize..15_000) {
        use std::sync::LazyLock;
        static SIGNED: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(|| {
            let h = hierarchy("ML_DSA_65");
            let p7s = sign(&h, Digest::by_name("sha512").unwrap(), START + 100);
            (p7s, h.root.certificate.der().to_vec())
        });
        let (p7s, root) = &*SIGNED;
        let mut bad = p7s.clone();
        let at = at % bad.len();
        bad[at] = value;
        let _ = verify(&bad, FILE, root, NOW);
        let _ = verify(&bad[..cut.min(bad.len())], FILE, root, NOW);
    }

    #[test]
    fn random_bytes_are_not_cms(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(SignedMessage::parse(&bytes).is_err());
    }
}

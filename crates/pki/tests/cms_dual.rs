//! Dual signatures: neither signer can be removed, replaced or taken over from another message unseen.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use cms::content_info::ContentInfo;
use cms::signed_data::{SignedData, SignerInfo};
use der::asn1::{Any, SetOfVec};
use der::{Decode, Encode};
use outlast_crypto::digests::Digest;
use outlast_crypto::signatures::Message;
use outlast_pki::cms::sign::{Request, Unsigned};
use outlast_pki::cms::verify::{SignedMessage, Signer, Verifier, VerifyError};
use outlast_pki::path::PathError;

use crate::common::{Party, START, issue};

const FILE: &[u8] = b"the file to be signed";

/// Signers with their own CAs.
pub struct World {
    pub roots: Vec<Vec<u8>>,
    pub subordinates: Vec<Vec<u8>>,
    pub signers: Vec<Party>,
    /// The CAs of the signers.
    pub authorities: Vec<Party>,
}

pub fn world(specs: &[&str]) -> World {
    let mut out = World {
        roots: Vec::new(),
        subordinates: Vec::new(),
        signers: Vec::new(),
        authorities: Vec::new(),
    };
    for (index, spec) in specs.iter().enumerate() {
        let root = issue(spec, &format!("Root {index}"), "RootCACertificate", 10, None);
        let row = "SubordinateCACertificate_PathLen0";
        let sub = issue(spec, &format!("Sub {index}"), row, 5, Some(&root));
        let row = "CodeSigningCertificate";
        out.signers.push(issue(spec, &format!("Signer {index}"), row, 1, Some(&sub)));
        out.roots.push(root.certificate.der().to_vec());
        out.subordinates.push(sub.certificate.der().to_vec());
        out.authorities.push(sub);
    }
    out
}

impl World {
    /// A message by all signers, with these digests.
    pub fn sign(&self, digests: &[&str], time: i64) -> Vec<u8> {
        let rows: Vec<_> = digests.iter().map(|name| Digest::by_name(name).unwrap()).collect();
        let values: Vec<_> = rows.iter().map(|row| row.digest(FILE)).collect();
        let chains: Vec<_> = self.subordinates.iter().map(|der| vec![der.clone()]).collect();
        let requests: Vec<_> = (0..self.signers.len())
            .map(|index| Request {
                message_digest: &values[index],
                digest: rows[index],
                algorithm: self.signers[index].algorithm,
                signing_time: time,
                signer: &self.signers[index].certificate,
                chain: &chains[index],
            })
            .collect();
        let unsigned = Unsigned::new(&requests).unwrap();
        let signatures: Vec<_> = self
            .signers
            .iter()
            .zip(&unsigned.to_be_signed)
            .map(|(signer, bytes)| {
                assert!(bytes.len() < 512, "{} bytes to sign", bytes.len());
                signer.key.sign(signer.algorithm, Message::Raw(bytes)).unwrap()
            })
            .collect();
        unsigned.assemble(&signatures).unwrap()
    }

    pub fn verify(&self, p7s: &[u8]) -> Result<Vec<Signer>, VerifyError> {
        let message = SignedMessage::parse(p7s)?;
        let digests: Vec<_> = message.digests()?.iter().map(|row| row.digest(FILE)).collect();
        let verifier = Verifier { roots: &self.roots, now: START + 1000, ..Verifier::default() };
        message.verify(&digests, &verifier)
    }
}

/// The message after a change.
pub fn changed(p7s: &[u8], change: impl FnOnce(&mut SignedData)) -> Vec<u8> {
    let mut outer = ContentInfo::from_der(p7s).unwrap();
    let mut data: SignedData = outer.content.decode_as().unwrap();
    change(&mut data);
    outer.content = Any::encode_from(&data).unwrap();
    outer.to_der().unwrap()
}

pub fn signers(p7s: &[u8]) -> Vec<SignerInfo> {
    let outer = ContentInfo::from_der(p7s).unwrap();
    let data: SignedData = outer.content.decode_as().unwrap();
    data.signer_infos.0.into_vec()
}

pub fn with_signers(p7s: &[u8], signers: Vec<SignerInfo>) -> Vec<u8> {
    changed(p7s, |data| data.signer_infos.0 = SetOfVec::try_from(signers).unwrap())
}

fn is_missing(outcome: &Result<Vec<Signer>, VerifyError>) -> bool {
    matches!(outcome, Err(VerifyError::SignerMissing { .. }))
}

#[test]
fn no_signer_can_be_removed_unseen() {
    for (specs, digests) in [
        (&["ECC_NIST_P256", "ML_DSA_65"][..], &["sha256", "sha512"][..]),
        (&["ECC_NIST_P384", "ML_DSA_65"], &["sha384", "sha384"]),
        (&["RSA_2048", "ML_DSA_87"], &["sha256", "sha512"]),
        // The same algorithm twice, and three signers.
        (&["ML_DSA_44", "ML_DSA_44"], &["sha512", "sha512"]),
        (&["ML_DSA_44", "ECC_NIST_P256", "ML_DSA_65"], &["sha512", "sha256", "sha512"]),
    ] {
        let world = world(specs);
        let p7s = world.sign(digests, START + 100);
        let found = world.verify(&p7s).unwrap();
        assert_eq!(found.len(), specs.len(), "{specs:?}");
        assert!(found.iter().all(|signer| signer.chain.len() == 3));
        let all = signers(&p7s);
        for gone in 0..all.len() {
            let mut rest = all.clone();
            rest.remove(gone);
            let outcome = world.verify(&with_signers(&p7s, rest));
            assert!(is_missing(&outcome), "{specs:?} without {gone}: {:?}", outcome.err());
        }
        for broken in 0..all.len() {
            let mut changed = all.clone();
            let mut signature = changed[broken].signature.as_bytes().to_vec();
            *signature.last_mut().unwrap() ^= 1;
            changed[broken].signature = der::asn1::OctetString::new(signature).unwrap();
            let outcome = world.verify(&with_signers(&p7s, changed)).map(|_| ());
            assert_eq!(outcome, Err(VerifyError::Signature), "{specs:?} with {broken} broken");
        }
    }
}

#[test]
fn signers_of_different_messages_do_not_mix() {
    let world = world(&["ECC_NIST_P256", "ML_DSA_65"]);
    let digests = ["sha256", "sha512"];
    let (one, two) = (world.sign(&digests, START + 100), world.sign(&digests, START + 200));
    let by = |p7s: &[u8], name: &str| {
        let wanted = Digest::by_name(name).unwrap().oid;
        signers(p7s).into_iter().find(|signer| signer.digest_alg.oid == wanted).unwrap()
    };
    let mixed = with_signers(&one, vec![by(&one, "sha256"), by(&two, "sha512")]);
    assert!(is_missing(&world.verify(&mixed)));
    let mut both = signers(&one);
    both.extend(signers(&two));
    assert!(world.verify(&with_signers(&one, both)).is_ok(), "two whole signatures are two");
}

#[test]
fn each_signer_needs_its_own_chain() {
    let world = world(&["ECC_NIST_P256", "ML_DSA_65"]);
    let p7s = world.sign(&["sha256", "sha512"], START + 100);
    for root in 0..2 {
        let other = World {
            roots: vec![world.roots[root].clone()],
            subordinates: Vec::new(),
            signers: Vec::new(),
            authorities: Vec::new(),
        };
        let outcome = other.verify(&p7s);
        let is_unknown = matches!(outcome, Err(VerifyError::Path(PathError::UnknownIssuer { .. })));
        assert!(is_unknown, "{:?}", outcome.err());
    }
    let bare = changed(&p7s, |data| data.certificates = None);
    assert!(matches!(world.verify(&bare), Err(VerifyError::NoCertificate)));
}

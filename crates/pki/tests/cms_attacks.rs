//! Attacks on signed files, as a table: each is refused, with its reason in words.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::sync::LazyLock;

use cms::signed_data::SignerInfo;
use der::asn1::{Any, ObjectIdentifier, OctetString, SetOfVec};
use der::{Decode, Encode, Tag, TagNumber};
use outlast_crypto::digests::Digest;
use outlast_crypto::signatures::Message;
use outlast_pki::cms::sign::{Request, Unsigned};
use outlast_pki::cms::verify::{SignedMessage, Time, TimeSource, Verifier, VerifyError};
use outlast_pki::crl::{Crl, Reason};
use outlast_pki::pem;
use outlast_pki::seen::Seen;
use outlast_pki::validate::Revocation;
use outlast_testing::attack_page;

use crate::cms_dual::{changed, signers, with_signers, world};
use crate::cms_revocation::{DAY, crl};
use crate::common::{Hierarchy, Party, START, YEAR, hierarchy, issue};

const FILE: &[u8] = b"the file to be signed";
const SIGNED: i64 = START + 10 * DAY;
const NOW: i64 = START + 100 * DAY;

/// What a verifier is given.
struct Attack {
    name: &'static str,
    signature: Vec<u8>,
    file: Vec<u8>,
    root: Vec<u8>,
    crls: Vec<Crl>,
    trusted: Option<i64>,
    /// Part of the reason; empty if it is accepted: a control.
    reason: &'static str,
}

/// What all cases have seen: none may be judged otherwise for it.
static SEEN: LazyLock<Seen> = LazyLock::new(Seen::default);

impl Attack {
    fn run(&self) -> Result<(), VerifyError> {
        let message = SignedMessage::parse(&self.signature)?;
        let digests: Vec<_> = message.digests()?.iter().map(|row| row.digest(&self.file)).collect();
        let roots = [self.root.clone()];
        let verifier = Verifier {
            roots: &roots,
            now: NOW,
            time: self.trusted.map(|at| Time { at, source: TimeSource::Verifier }),
            revocation: Revocation::IfPresent,
            crls: &self.crls,
            ..Verifier::default()
        };
        let run = |seen| {
            let verifier = Verifier { seen, ..verifier.clone() };
            message.verify(&digests, &verifier).map(|_| ())
        };
        let outcome = run(None);
        for _ in 0..2 {
            assert_eq!(run(Some(&SEEN)), outcome);
        }
        outcome
    }
}

fn sign(signer: &Party, chain: &Party, digest: &str, time: i64) -> Vec<u8> {
    let digest = Digest::by_name(digest).unwrap();
    let request = Request {
        message_digest: &digest.digest(FILE),
        digest,
        algorithm: signer.algorithm,
        signing_time: time,
        signer: &signer.certificate,
        chain: &[chain.certificate.der().to_vec()],
    };
    let unsigned = Unsigned::new(&[request]).unwrap();
    let message = Message::Raw(&unsigned.to_be_signed[0]);
    let signature = signer.key.sign(signer.algorithm, message).unwrap();
    unsigned.assemble(&[signature]).unwrap()
}

/// The only signer after a change.
fn with_signer(p7s: &[u8], change: impl FnOnce(&mut SignerInfo)) -> Vec<u8> {
    let mut all = signers(p7s);
    change(&mut all[0]);
    with_signers(p7s, all)
}

fn oid(text: &str) -> ObjectIdentifier {
    text.parse().unwrap()
}

fn attacks(h: &Hierarchy) -> Vec<Attack> {
    let good = sign(&h.leaf, &h.subordinate, "sha512", SIGNED);
    let later = sign(&h.leaf, &h.subordinate, "sha512", SIGNED + DAY);
    let root = h.root.certificate.der().to_vec();
    let attack = |name, signature: Vec<u8>, reason| Attack {
        name,
        signature,
        file: FILE.to_vec(),
        root: root.clone(),
        crls: Vec::new(),
        trusted: None,
        reason,
    };
    let by_row = |row: &str| {
        let leaf = issue("ML_DSA_65", "Wrong", row, 1, Some(&h.subordinate));
        sign(&leaf, &h.subordinate, "sha512", SIGNED)
    };
    let revoked = |days: i64, code: u8| {
        let reason = Reason::by_code(code).unwrap();
        vec![crl(&h.subordinate, NOW - DAY, Some((SIGNED + days * DAY, reason)))]
    };
    let stranger = hierarchy("ML_DSA_65");
    let other = issue("ML_DSA_65", "Other", "RootCACertificate", 10, None);
    let many: Vec<_> = (0..17_u8)
        .map(|number| {
            let mut one = signers(&good).remove(0);
            one.signature = OctetString::new([number; 10]).unwrap();
            one
        })
        .collect();
    let attributes = signers(&later)[0].signed_attrs.clone();
    let enveloped = {
        let mut outer = cms::content_info::ContentInfo::from_der(&good).unwrap();
        outer.content_type = oid("1.2.840.113549.1.7.3");
        outer.to_der().unwrap()
    };
    let of_ca = sign(&h.subordinate, &h.subordinate, "sha512", SIGNED);
    vec![
        attack("none", good.clone(), ""),
        attack("the file is changed by a byte", good.clone(), "is not the one that was signed")
            .of_file(b"the file to be signeD"),
        attack("the file is empty", good.clone(), "is not the one that was signed").of_file(b""),
        attack("the signature of another file", good.clone(), "is not the one that was signed")
            .of_file(b"another file"),
        attack("an empty signature", Vec::new(), "it is empty"),
        attack("half of the signature", good[..good.len() / 2].to_vec(), "not a CMS signature"),
        attack("a byte is missing", good[..good.len() - 1].to_vec(), "not a CMS signature"),
        attack("data follows", [&good[..], b"x"].concat(), "data follows the signature"),
        attack("two signatures in a row", good.repeat(2), "data follows the signature"),
        attack("a text", b"release 1.0\n".to_vec(), "it is neither DER, BER nor PEM"),
        attack("a certificate", h.leaf.certificate.der().to_vec(), "not a CMS signature"),
        attack(
            "a certificate in PEM",
            pem::certificate(h.leaf.certificate.der()).into_bytes(),
            "not a CMS signature",
        ),
        attack("a CRL", crl(&h.subordinate, NOW, None).der().to_vec(), "not a CMS signature"),
        attack("an encrypted message", enveloped, "is not SignedData"),
        attack("no signer", with_signers(&good, Vec::new()), "has 0 signers"),
        attack("many signers", with_signers(&good, many), "has 17 signers"),
        attack(
            "a changed signature",
            with_signer(&good, |one| one.signature = OctetString::new([7; 3309]).unwrap()),
            "the signature is not valid",
        ),
        attack(
            "the attributes of another signature",
            with_signer(&good, |one| one.signed_attrs = attributes),
            "the signature is not valid",
        ),
        attack(
            "no signed attributes",
            with_signer(&good, |one| one.signed_attrs = None),
            "has no signed attributes",
        ),
        attack(
            "a weaker digest is named",
            with_signer(&good, |one| one.digest_alg.oid = oid("2.16.840.1.101.3.4.2.1")),
            "is not suitable",
        ),
        attack(
            "another digest is named",
            with_signer(&good, |one| one.digest_alg.oid = oid("2.16.840.1.101.3.4.2.2")),
            "the algorithms were changed after signing",
        ),
        attack(
            "another signature algorithm is named",
            with_signer(&good, |one| one.signature_algorithm.oid = oid("2.16.840.1.101.3.4.3.19")),
            "the algorithms were changed after signing",
        ),
        attack(
            "an unknown algorithm",
            with_signer(&good, |one| one.signature_algorithm.oid = oid("1.2.3.4")),
            "is not supported",
        ),
        attack(
            "content of its own",
            changed(&good, |data| {
                let content = OctetString::new(*b"another file").unwrap();
                data.encap_content_info.econtent = Some(Any::encode_from(&content).unwrap());
            }),
            "the content inside the message is not the file",
        ),
        attack(
            "the certificates are gone",
            changed(&good, |data| data.certificates = None),
            "certificate is not in the message",
        ),
        attack(
            "the CA in between is gone",
            changed(&good, |data| {
                let leaf = x509_cert::Certificate::from_der(h.leaf.certificate.der()).unwrap();
                let leaf = cms::cert::CertificateChoices::Certificate(leaf);
                let only = SetOfVec::try_from(vec![leaf]).unwrap();
                data.certificates = Some(cms::signed_data::CertificateSet(only));
            }),
            "no path from",
        ),
        attack(
            "a TLS server's certificate",
            by_row("EndEntityServerAuthCertificate"),
            "not for code signing",
        ),
        attack(
            "a certificate for anything",
            by_row("EndEntityCertificate"),
            "not for code signing",
        ),
        attack("an OCSP responder's", by_row("OCSPSigningCertificate"), "not for code signing"),
        attack("a CA signs itself", of_ca, "not for code signing"),
        Attack {
            root: stranger.root.certificate.der().to_vec(),
            ..attack("a root of the same name", good.clone(), "not valid")
        },
        Attack {
            root: other.certificate.der().to_vec(),
            ..attack("another root", good.clone(), "no path from")
        },
        Attack {
            root: h.leaf.certificate.der().to_vec(),
            ..attack("the signer as root", good.clone(), "no certificate of a CA")
        },
        attack(
            "dated before the certificate",
            sign(&h.leaf, &h.subordinate, "sha512", START - DAY),
            "is not valid before",
        ),
        attack(
            "dated in the future",
            sign(&h.leaf, &h.subordinate, "sha512", NOW + DAY),
            "is in the future",
        ),
        Attack {
            trusted: Some(START + 2 * YEAR),
            ..attack("kept until the certificate has expired", good.clone(), "expired at")
        },
        Attack {
            crls: revoked(-1, 4),
            ..attack("superseded before", good.clone(), "when the signer claims to have signed")
        },
        Attack { crls: revoked(1, 4), ..attack("superseded after", good.clone(), "") },
        Attack {
            crls: revoked(-1, 1),
            ..attack("stolen before", good.clone(), "when the signer claims to have signed")
        },
        Attack {
            crls: revoked(1, 1),
            ..attack("stolen, and dated before the theft", good.clone(), "only the signer claims")
        },
        Attack {
            crls: revoked(1, 0),
            ..attack("revoked without a reason", good.clone(), "only the signer claims")
        },
        Attack {
            crls: revoked(1, 1),
            trusted: Some(SIGNED + 2 * DAY),
            ..attack("stolen before the trusted time", good.clone(), "nothing shows that")
        },
        Attack {
            crls: revoked(1, 1),
            trusted: Some(SIGNED),
            ..attack("stolen after the trusted time", good, "")
        },
    ]
}

impl Attack {
    fn of_file(self, file: &[u8]) -> Self {
        Self { file: file.to_vec(), ..self }
    }
}

#[test]
fn each_attack_is_refused_with_its_reason() {
    let h = hierarchy("ML_DSA_65");
    let mut wrong = Vec::new();
    let attacks = attacks(&h);
    for attack in &attacks {
        match (attack.run(), attack.reason) {
            (Ok(()), "") => {}
            (Err(error), reason) if !reason.is_empty() && error.to_string().contains(reason) => {}
            (outcome, reason) => {
                wrong.push(format!("{}: {outcome:?} instead of {reason:?}", attack.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let rows: Vec<_> = attacks.iter().map(|attack| (attack.name, attack.reason)).collect();
    attack_page::hold("One signer", &rows);
}

#[test]
fn each_attack_on_a_dual_signature_is_refused_with_its_reason() {
    let world = world(&["ECC_NIST_P384", "ML_DSA_65"]);
    let digests = ["sha384", "sha384"];
    let (one, two) = (world.sign(&digests, START + 100), world.sign(&digests, START + 200));
    let by = |p7s: &[u8], index: usize| {
        let wanted = world.signers[index].algorithm.oid.unwrap();
        let mut all = signers(p7s).into_iter();
        all.find(|signer| signer.signature_algorithm.oid == wanted).unwrap()
    };
    let missing = "a signature is missing";
    let without_attribute = |index: usize| {
        let mut signer = by(&one, index);
        let kept = signer.signed_attrs.iter().flat_map(|set| set.iter());
        let kept: Vec<_> =
            kept.filter(|one| one.oid != oid("1.2.840.113549.1.9.16.2.51")).cloned().collect();
        signer.signed_attrs = Some(SetOfVec::try_from(kept).unwrap());
        signer
    };
    let attacks = [
        ("none", vec![by(&one, 0), by(&one, 1)], ""),
        ("the classical signer alone", vec![by(&one, 0)], missing),
        ("the post-quantum signer alone", vec![by(&one, 1)], missing),
        ("a signer of another message", vec![by(&one, 0), by(&two, 1)], missing),
        ("the attribute is removed, too", vec![without_attribute(0)], "signature is not valid"),
        ("one attribute is removed", vec![by(&one, 0), without_attribute(1)], missing),
    ];
    let rows = attacks.each_ref().map(|(name, _, reason)| (*name, *reason));
    for (name, signers, reason) in attacks {
        let outcome = world.verify(&with_signers(&one, signers)).map(|_| ());
        match outcome {
            Ok(()) => assert_eq!(reason, "", "{name} is accepted"),
            Err(error) => {
                let text = error.to_string();
                assert!(!reason.is_empty() && text.contains(reason), "{name}: {text}");
            }
        }
    }
    attack_page::hold("Two signers", &rows);
}

fn element(tag: Tag, content: Vec<u8>) -> Vec<u8> {
    Any::new(tag, content).unwrap().to_der().unwrap()
}

/// An attribute with this many values, each NULL.
fn attribute(values: usize) -> Vec<u8> {
    let values = element(Tag::Set, [5, 0].repeat(values));
    element(Tag::Sequence, [oid("1.2.3").to_der().unwrap(), values].concat())
}

/// The message with other attributes of its signer: signed ones if `signed` is not empty, unsigned ones, and `more`
/// behind the signers. Put together by hand, because sorting the attributes is what the attack makes slow.
fn flooded(p7s: &[u8], signed: &[u8], unsigned: &[u8], more: &[u8]) -> Vec<u8> {
    let set = |number: u32, content: &[u8]| {
        let number = TagNumber(number);
        element(Tag::ContextSpecific { constructed: true, number }, content.to_vec())
    };
    let one = signers(p7s).remove(0);
    let own = Any::encode_from(&one.signed_attrs.unwrap()).unwrap();
    let signed = if signed.is_empty() { own.value() } else { signed };
    let info = [
        one.version.to_der().unwrap(),
        one.sid.to_der().unwrap(),
        one.digest_alg.to_der().unwrap(),
        set(0, signed),
        one.signature_algorithm.to_der().unwrap(),
        one.signature.to_der().unwrap(),
        set(1, unsigned),
    ]
    .concat();
    let infos = element(Tag::Set, element(Tag::Sequence, info));
    let empty = with_signers(p7s, Vec::new());
    let mut outer = cms::content_info::ContentInfo::from_der(&empty).unwrap();
    let before = outer.content.value().strip_suffix(&[0x31, 0]).unwrap();
    outer.content = Any::new(Tag::Sequence, [before, &infos, more].concat()).unwrap();
    outer.to_der().unwrap()
}

#[test]
fn attributes_and_values_without_end_are_refused_before_they_are_sorted() {
    let h = hierarchy("ML_DSA_44");
    let good = sign(&h.leaf, &h.subordinate, "sha512", SIGNED);
    let run = |signature: Vec<u8>| {
        let attack = Attack {
            name: "",
            signature,
            file: FILE.to_vec(),
            root: h.root.certificate.der().to_vec(),
            crls: Vec::new(),
            trusted: None,
            reason: "",
        };
        attack.run()
    };
    // As many as are allowed: nothing covers unsigned attributes.
    assert_eq!(run(flooded(&good, &[], &attribute(64).repeat(64), &[])), Ok(()));
    let many = Err(VerifyError::TooManyAttributes);
    assert_eq!(run(flooded(&good, &[], &attribute(1).repeat(65), &[])), many);
    assert_eq!(run(flooded(&good, &[], &attribute(65), &[])), many);
    assert_eq!(run(flooded(&good, &attribute(1).repeat(65), &[], &[])), many);
    assert_eq!(run(flooded(&good, &attribute(65), &[], &[])), many);
    // One attribute that takes long to compare, among many to compare it with: hours, if they were sorted.
    let few = attribute(1).repeat(250_000);
    let flood = [&few[..], &attribute(2_000_000), &few].concat();
    for message in [flooded(&good, &flood, &[], &[]), flooded(&good, &[], &flood, &[])] {
        assert_eq!(run(message), many);
    }
    // The same for signers.
    let (short, long) = (element(Tag::Sequence, Vec::new()), element(Tag::Sequence, flood));
    let signers = element(Tag::Set, [short.repeat(1_000_000), long].concat());
    let empty = with_signers(&good, Vec::new());
    let mut outer = cms::content_info::ContentInfo::from_der(&empty).unwrap();
    let before = outer.content.value().strip_suffix(&[0x31, 0]).unwrap();
    outer.content = Any::new(Tag::Sequence, [before, &signers].concat()).unwrap();
    assert_eq!(run(outer.to_der().unwrap()), Err(VerifyError::Signers(1_000_001)));
    // Nor does a further member hide the signers.
    let hidden = flooded(&good, &[], &attribute(65), &element(Tag::Set, Vec::new()));
    assert_eq!(run(hidden), many);
}

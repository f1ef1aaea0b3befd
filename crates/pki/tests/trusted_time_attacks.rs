//! Attacks on the time of signatures, as tables: a timestamp or a record that does not hold improves no verdict, and each
//! reason is named.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::sync::LazyLock;

use cms::revocation::{RevocationInfoChoice, RevocationInfoChoices};
use der::asn1::{Any, OctetString, SetOfVec};
use der::{Decode, Encode, Sequence};
use outlast_crypto::digests::Digest;
use outlast_pki::cms::attach::with_tokens;
use outlast_pki::cms::verify::{SignedMessage, TimeSource};
use outlast_pki::crl::Reason;
use outlast_pki::evidence_record::EvidenceRecord;
use outlast_pki::seen::Seen;
use outlast_pki::signing_policy::file;
use outlast_pki::signing_policy::judge::{Context, Verdict};
use outlast_pki::signing_policy::names::FileName;
use outlast_pki::timestamp::Imprint;
use outlast_pki::trusted_time::{Authority, Evidence};
use outlast_testing::attack_page;
use spki::AlgorithmIdentifierOwned;
use x509_cert::crl::CertificateList;
use x509_cert::ext::pkix::KeyUsages;

use crate::authority::plan;
use crate::cms_dual::{World, signers, with_signers, world};
use crate::cms_revocation::{DAY, crl};
use crate::common::{Party, START, YEAR, issue};
use crate::trusted_time::{ACCURACY, FILE, SIGNED, Scene, Stamper, new_record, rehash, renew};

const NOW: i64 = SIGNED + 100 * DAY;

const TRUSTED_TIME: &str = "validity = \"trusted-time\"";

/// What all cases have seen: none may be judged otherwise for it.
static SEEN: LazyLock<Seen> = LazyLock::new(Seen::default);

/// What a verifier with a policy that wants timestamps is given.
struct Attack<'a> {
    name: &'static str,
    p7s: Vec<u8>,
    /// Keys of `[timestamp]` besides trust.
    keys: &'static str,
    /// Keys of the rule besides files and trust.
    rule: &'static str,
    stampers: Vec<&'a Stamper>,
    /// Reason and days between the signature and the revocation of the signer.
    revoked: Option<(u8, i64)>,
    /// The same of the first stamper.
    stamper_revoked: Option<(u8, i64)>,
    evidence: Option<Evidence>,
    /// Part of the reason; empty if it is accepted: a control.
    reason: &'static str,
}

impl Attack<'_> {
    fn run(&self, world: &World) -> Result<Verdict, String> {
        let text = format!(
            "[timestamp]\ntrust = [{}]\n{}\n[[rule]]\nfiles = \"*\"\ntrust = \"r\"\n{}\n",
            (0..self.stampers.len())
                .map(|index| format!("\"{index}\""))
                .collect::<Vec<_>>()
                .join(", "),
            self.keys,
            self.rule
        );
        let mut policy = file::parse("test", &text).unwrap();
        for rule in &mut policy.rules {
            rule.roots.clone_from(&world.roots);
            let roots = self.stampers.iter().map(|stamper| Authority::Roots(stamper.roots()));
            rule.timestamps.authorities = roots.collect();
        }
        let revoked = |issuer: &Party, (code, days): (u8, i64)| {
            let revoked = (SIGNED + days * DAY, Reason::by_code(code).unwrap());
            crl(issuer, NOW - DAY, Some(revoked))
        };
        let of_signer = self.revoked.map(|one| revoked(&world.authorities[0], one));
        let of_stamper = self.stamper_revoked.map(|one| revoked(&self.stampers[0].ca, one));
        let crls: Vec<_> = of_signer.into_iter().chain(of_stamper).collect();
        let context = Context {
            now: NOW,
            as_of: NOW,
            crls: &crls,
            evidence: self.evidence.as_ref(),
            ..Context::default()
        };
        let message = SignedMessage::parse(&self.p7s).map_err(|error| error.to_string())?;
        let digests: Vec<_> =
            message.digests().unwrap().iter().map(|row| row.digest(FILE)).collect();
        let rule = policy.rule_for(&FileName::parse("release.bin").unwrap()).unwrap();
        let run = |seen| {
            let context = Context { seen, ..context };
            rule.judge(&message, &digests, &context).map_err(|error| error.to_string())
        };
        let outcome = run(None);
        for _ in 0..2 {
            assert_eq!(format!("{:?}", run(Some(&SEEN))), format!("{outcome:?}"));
        }
        outcome
    }
}

#[test]
fn every_attack_on_timestamps_is_refused() {
    let world = world(&["ML_DSA_44"]);
    let (one, two) = (Stamper::new("ML_DSA_44", "One", 3), Stamper::new("ECC_NIST_P256", "Two", 3));
    let stranger = Stamper::new("ML_DSA_44", "Stranger", 3);
    let plain = world.sign(&["sha512"], SIGNED);
    let other = world.sign(&["sha512"], SIGNED + 1);
    let good = one.stamp(&plain, SIGNED + 60);
    let value = |p7s: &[u8]| SignedMessage::parse(p7s).unwrap().claims()[0].value.clone();
    let token_of = |p7s: &[u8]| SignedMessage::parse(p7s).unwrap().claims()[0].tokens[0].clone();
    let with = |token: Vec<u8>| with_tokens(&plain, &[(value(&plain), token)]).unwrap();
    let attack = |name, p7s: Vec<u8>, reason| Attack {
        name,
        p7s,
        keys: "",
        rule: "timestamp = \"required\"",
        stampers: vec![&one],
        revoked: None,
        stamper_revoked: None,
        evidence: None,
        reason,
    };
    let twice = one.stamp(&good, SIGNED + 120);
    let of_both = two.stamp(&good, SIGNED + 120);
    // One authority with two certificates for two keys.
    let below = |name: &str, row: &str| {
        let ca = issue(
            "ML_DSA_44",
            &format!("{name} CA"),
            "SubordinateCACertificate_PathLen0",
            9,
            Some(&one.root),
        );
        let tsa = issue("ML_DSA_44", name, row, 3, Some(&ca));
        let root = issue("ML_DSA_44", "Not needed", "RootCACertificate", 3, None);
        Stamper { root, ca, tsa }
    };
    let sibling = below("One again", "TimeStampingCertificate");
    let code_signer = below("Code", "CodeSigningCertificate");
    let stripped = with_signers(
        &good,
        signers(&good)
            .into_iter()
            .map(|mut signer| {
                signer.unsigned_attrs = None;
                signer
            })
            .collect(),
    );
    let digest = Digest::by_name("sha512").unwrap();
    let over_file = one.token(Imprint::of(digest, FILE), SIGNED);
    let mut changed = token_of(&good);
    *changed.last_mut().unwrap() ^= 1;
    // A thief keeps what the authority's CA said before the theft.
    let stale = crate::cms_dual::changed(&token_of(&good), |data| {
        let stale = crl(&one.ca, SIGNED, None);
        let stale = CertificateList::from_der(stale.der()).unwrap();
        let only = SetOfVec::try_from(vec![RevocationInfoChoice::Crl(stale)]).unwrap();
        data.crls = Some(RevocationInfoChoices(only));
    });
    let record = {
        let record = new_record(&one, "sha512", &plain, SIGNED + 60);
        Scene::new(&world, &[&one], NOW).evidence(&record, &plain).unwrap()
    };
    let none = "it has no timestamp, and the rule asks for one";
    let few = "not by 2 different authorities";
    let table = vec![
        attack("none", good.clone(), ""),
        Attack { evidence: Some(record.clone()), ..attack("a record", plain.clone(), "") },
        attack("no token", plain.clone(), none),
        Attack { rule: TRUSTED_TIME, ..attack("a time by others", good.clone(), "") },
        Attack {
            rule: TRUSTED_TIME,
            ..attack("a claim", plain.clone(), "the rule asks for a trusted time")
        },
        Attack {
            rule: "validity = \"trusted-time\"\ntimestamp = \"off\"",
            ..attack("a token that is ignored", good.clone(), "the rule asks for a trusted time")
        },
        attack("the token is stripped", stripped, none),
        attack(
            "the token of another signature",
            with(token_of(&one.stamp(&other, SIGNED))),
            "is for other data",
        ),
        attack("a token over the file", with(over_file), "is for other data"),
        attack("a token by an unknown authority", stranger.stamp(&plain, SIGNED), "no path from"),
        attack(
            "a token by a code signer",
            code_signer.stamp(&plain, SIGNED),
            "no timestamp counts",
        ),
        attack("a changed token", with(changed), "no timestamp counts"),
        attack("an empty token", with(vec![0x30, 0]), "not a timestamp"),
        attack("a back-dated token", one.stamp(&plain, START - DAY), "is not valid before"),
        attack("a token of the future", one.stamp(&plain, NOW + DAY), "which is in the future"),
        Attack {
            keys: "policies = \"1.2.3\"",
            ..attack("another policy", good.clone(), "which is not accepted")
        },
        Attack {
            keys: "policies = \"1.3.6.1.4.1.99999.1\"",
            ..attack("the policy", good.clone(), "")
        },
        Attack {
            keys: "algorithms = \"ml-dsa-65 or better\"",
            ..attack("a weak authority", good.clone(), "ml-dsa-44, is not ml-dsa-65 or better")
        },
        Attack {
            keys: "algorithms = \"post-quantum\"",
            ..attack("a strong one", good.clone(), "")
        },
        Attack {
            keys: "least = 2",
            stampers: vec![&one, &two],
            ..attack("two", of_both.clone(), "")
        },
        Attack {
            keys: "least = 2",
            stampers: vec![&one, &two],
            ..attack("one of two", good.clone(), few)
        },
        Attack {
            keys: "least = 2",
            stampers: vec![&one, &two],
            ..attack("two tokens of one", twice.clone(), few)
        },
        Attack {
            keys: "least = 2",
            stampers: vec![&one, &two],
            ..attack("two keys of one", sibling.stamp(&good, SIGNED + 120), few)
        },
        Attack {
            keys: "least = 2",
            stampers: vec![&one, &one],
            ..attack("one named twice", twice, few)
        },
        Attack {
            keys: "least = 2",
            stampers: vec![&one, &two],
            evidence: Some(record),
            ..attack("a token and a record of one", good.clone(), few)
        },
        Attack { revoked: Some((1, 5)), ..attack("compromised after it", good.clone(), "") },
        Attack {
            revoked: Some((1, -5)),
            ..attack("compromised before it", good.clone(), "revoked")
        },
        Attack { revoked: Some((4, 5)), ..attack("superseded after it", good.clone(), "") },
        Attack {
            revoked: Some((4, -5)),
            ..attack("superseded before it", good.clone(), "revoked")
        },
        Attack {
            stamper_revoked: Some((4, 5)),
            ..attack("the authority was superseded after it", good.clone(), "")
        },
        Attack {
            stamper_revoked: Some((4, -5)),
            ..attack("the authority was superseded before it", good.clone(), "it was revoked at")
        },
        Attack {
            stamper_revoked: Some((1, 5)),
            ..attack("the authority's key was stolen after it", good.clone(), "a thief of the key")
        },
        Attack {
            stamper_revoked: Some((0, 5)),
            ..attack("the authority was revoked without a reason", good, "a thief of the key")
        },
        attack("the token has an old CRL of its authority's CA", with(stale.clone()), ""),
        Attack {
            stamper_revoked: Some((1, 5)),
            ..attack("and the key was stolen after it", with(stale), "a thief of the key")
        },
    ];
    let count = table.len();
    let rows: Vec<_> = table.iter().map(|attack| (attack.name, attack.reason)).collect();
    for attack in table {
        let outcome = attack.run(&world);
        let said = match &outcome {
            Err(error) => error.clone(),
            Ok(verdict) if verdict.is_accepted() => String::new(),
            Ok(verdict) => verdict.signers[0].against.join("; "),
        };
        assert_eq!(said.is_empty(), attack.reason.is_empty(), "{}: {said}", attack.name);
        assert!(said.contains(attack.reason), "{}: {said}", attack.name);
    }
    assert_eq!(count, 35);
    attack_page::hold("Signatures with timestamps", &rows);
}

/// A time is no help if the signer's certificate did not exist then, whatever the signer claims.
#[test]
fn a_timestamp_before_the_signers_certificate_refuses() {
    let root = plan("ML_DSA_44", "Late Root").ca(None).issue(None);
    let leaf = plan("ML_DSA_44", "Late")
        .usage(&[KeyUsages::DigitalSignature])
        .purpose(&["1.3.6.1.5.5.7.3.3"])
        .serial(0x12)
        .valid(SIGNED + DAY, START + YEAR)
        .issue(Some(&root));
    let signer = Party { key: leaf.key, algorithm: leaf.algorithm, certificate: leaf.certificate };
    let world = World {
        roots: vec![root.der()],
        subordinates: vec![root.der()],
        signers: vec![signer],
        authorities: Vec::new(),
    };
    let stamper = Stamper::new("ML_DSA_44", "A", 3);
    let plain = world.sign(&["sha512"], SIGNED + 2 * DAY);
    let scene = Scene::new(&world, &[&stamper], NOW);
    assert_eq!(scene.time(&plain, None), (SIGNED + 2 * DAY, TimeSource::Signer));
    let stamped = stamper.stamp(&plain, SIGNED + 2 * DAY);
    assert_eq!(scene.time(&stamped, None), (SIGNED + 2 * DAY + ACCURACY, TimeSource::Timestamp));
    let error = scene.verify(&stamper.stamp(&plain, SIGNED), None).unwrap_err();
    assert!(error.to_string().contains("is not valid before"), "{error}");
}

/// The record's ASN.1, to change it.
#[derive(Clone, Sequence)]
struct Record {
    version: u8,
    digests: Vec<AlgorithmIdentifierOwned>,
    sequence: Vec<Vec<Stamp>>,
}

#[derive(Clone, Sequence)]
struct Stamp {
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    digest: Option<AlgorithmIdentifierOwned>,
    #[asn1(context_specific = "2", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    tree: Option<Vec<Vec<OctetString>>>,
    token: Any,
}

#[test]
fn every_attack_on_evidence_records_is_refused() {
    let world = world(&["ML_DSA_44"]);
    let stamper = Stamper::new("ML_DSA_44", "A", 3);
    let stranger = Stamper::new("ML_DSA_44", "B", 30);
    let p7s = world.sign(&["sha512"], SIGNED);
    let other = world.sign(&["sha512"], SIGNED + 1);
    let at = |days: i64| SIGNED + days * DAY;
    let mut record = new_record(&stamper, "sha256", &p7s, at(1));
    renew(&mut record, &stamper, at(2));
    renew(&mut record, &stamper, at(3));
    rehash(&mut record, "sha512", &stamper, &p7s, at(4));
    renew(&mut record, &stamper, at(5));
    let of_other = new_record(&stamper, "sha256", &other, at(1));
    let changed = |change: &dyn Fn(&mut Record)| {
        let mut inner = Record::from_der(&record.to_der().unwrap()).unwrap();
        change(&mut inner);
        inner.to_der().unwrap()
    };
    let of_other_der = of_other.to_der().unwrap();
    let other_inner = Record::from_der(&of_other_der).unwrap();
    let backwards = {
        let mut one = new_record(&stamper, "sha256", &p7s, at(10));
        renew(&mut one, &stamper, at(2));
        one.to_der().unwrap()
    };
    let by =
        |stamper: &Stamper, days| new_record(stamper, "sha256", &p7s, at(days)).to_der().unwrap();
    let mut late = new_record(&stamper, "sha256", &p7s, at(1));
    renew(&mut late, &stranger, START + 3 * YEAR + DAY);
    let table: Vec<(&str, Vec<u8>, i64, &str)> = vec![
        ("none", record.to_der().unwrap(), NOW, ""),
        ("of another signature", of_other_der.clone(), NOW, "not for this file and this signature"),
        ("by an unknown authority", by(&stranger, 1), NOW, "no path from"),
        ("back-dated", by(&stamper, -30), NOW, "is not valid before"),
        ("from the future", by(&stamper, 200), NOW, "is in the future"),
        ("backwards", backwards, NOW, "later than the time by which"),
        ("ended", record.to_der().unwrap(), START + 3 * YEAR + DAY, "was not renewed before"),
        ("nothing", Vec::new(), NOW, "not an evidence record"),
        ("a signature", p7s.clone(), NOW, "not an evidence record"),
        (
            "data follows",
            [record.to_der().unwrap(), vec![0]].concat(),
            NOW,
            "not an evidence record",
        ),
        ("no chain", changed(&|one| one.sequence.clear()), NOW, "has no timestamp"),
        ("an empty chain", changed(&|one| one.sequence[0].clear()), NOW, "a chain in it is empty"),
        ("version 2", changed(&|one| one.version = 2), NOW, "its version is 2"),
        // An element is removed from a chain, or a chain.
        (
            "without its first",
            changed(&|one| drop(one.sequence[0].remove(0))),
            NOW,
            "not for this file",
        ),
        (
            "without its second",
            changed(&|one| drop(one.sequence[0].remove(1))),
            NOW,
            "not for this file",
        ),
        (
            "without the first chain",
            changed(&|one| drop(one.sequence.remove(0))),
            NOW,
            "not for this file",
        ),
        (
            "of one chain, without its second",
            changed(&|one| {
                one.sequence.truncate(1);
                one.sequence[0].remove(1);
            }),
            NOW,
            "",
        ),
        (
            "of one chain, without its first",
            changed(&|one| {
                one.sequence.truncate(1);
                one.sequence[0].remove(0);
            }),
            NOW,
            "not for this file",
        ),
        (
            "swapped",
            changed(&|one| {
                one.sequence.truncate(1);
                one.sequence[0].swap(1, 2);
            }),
            NOW,
            "is for other data",
        ),
        (
            "continued by another record's",
            changed(&|one| {
                one.sequence.truncate(1);
                one.sequence[0].insert(1, other_inner.sequence[0][0].clone());
            }),
            NOW,
            "timestamp 2 of the evidence record does not cover",
        ),
        (
            "mixed digests",
            changed(&|one| {
                let sha512 = one.sequence[1][0].digest.clone();
                one.sequence[0][1].digest = sha512;
            }),
            NOW,
            "the digests within a chain",
        ),
        (
            "a digest that is not known",
            changed(&|one| {
                for stamp in &mut one.sequence[0] {
                    stamp.digest.as_mut().unwrap().oid = "1.3.14.3.2.26".parse().unwrap();
                }
            }),
            NOW,
            "1.3.14.3.2.26 of the evidence record is not supported",
        ),
        (
            "one more file in the group",
            changed(&|one| {
                let tree = one.sequence[0][0].tree.as_mut().unwrap();
                tree[0].push(OctetString::new([7; 32]).unwrap());
            }),
            NOW,
            "not for this file",
        ),
        (
            "the file alone",
            changed(&|one| {
                one.sequence.truncate(1);
                one.sequence[0].truncate(1);
                one.sequence[0][0].tree.as_mut().unwrap()[0].pop();
            }),
            NOW,
            "not for this file",
        ),
        (
            "a wider tree",
            changed(&|one| {
                one.sequence.truncate(1);
                one.sequence[0].truncate(1);
                let tree = one.sequence[0][0].tree.as_mut().unwrap();
                tree.push(vec![OctetString::new([7; 32]).unwrap()]);
            }),
            NOW,
            "is for other data",
        ),
        (
            "a tree without end",
            changed(&|one| {
                let list = vec![OctetString::new([7; 32]).unwrap(); 5_000];
                one.sequence[0][0].tree.as_mut().unwrap().push(list);
            }),
            NOW,
            "a hash tree in it is too large",
        ),
        (
            "timestamps without end",
            changed(&|one| {
                let last = one.sequence[1][0].clone();
                one.sequence[1].extend(vec![last; 200]);
            }),
            NOW,
            "or too many",
        ),
    ];
    let rows: Vec<_> = table.iter().map(|(name, _, _, reason)| (*name, *reason)).collect();
    for (name, der, now, reason) in table {
        let scene = Scene::new(&world, &[&stamper], now);
        let outcome = EvidenceRecord::parse(&der)
            .map_err(|error| error.to_string())
            .and_then(|record| scene.evidence(&record, &p7s));
        let said = outcome.err().unwrap_or_default();
        assert_eq!(said.is_empty(), reason.is_empty(), "{name}: {said}");
        assert!(said.contains(reason), "{name}: {said}");
    }
    attack_page::hold("Evidence records", &rows);
    let scene = Scene::new(&world, &[&stamper, &stranger], START + 4 * YEAR);
    assert!(scene.evidence(&late, &p7s).unwrap_err().contains("renewed too late"));
    // A bad record leaves the claim; a good one tells the time.
    let scene = Scene::new(&world, &[&stamper], NOW);
    assert_eq!(scene.time(&p7s, None), (SIGNED, TimeSource::Signer));
    let evidence = scene.evidence(&record, &p7s).unwrap();
    let by_record = (at(1) + ACCURACY, TimeSource::EvidenceRecord);
    assert_eq!(scene.time(&p7s, Some(&evidence)), by_record);
}

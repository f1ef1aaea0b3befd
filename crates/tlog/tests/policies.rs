//! Policies and proof files: what is accepted, what is refused, and the line to blame.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::sync::LazyLock;

use outlast_tlog::checkpoint::{Checkpoint, SignedCheckpoint};
use outlast_tlog::hash;
use outlast_tlog::key::{Algorithm, ED25519_COSIGNATURE, ED25519_LOG, ML_DSA_44};
use outlast_tlog::note::NoteError;
use outlast_tlog::policy::{Part, Policy, Problem, Refused, verify_proof};
use outlast_tlog::proof::ProofError;
use outlast_tlog::proof_file::{ProofFile, ProofFileError};
use outlast_tlog::{KeyError, NoteSignature, Signer};
use proptest::prelude::*;

fn signer(name: &str, algorithm: &'static Algorithm) -> Signer {
    Signer::new(name, algorithm, &Signer::generate(algorithm).unwrap()).unwrap()
}

/// A log, five witnesses and the specification's policy with one witness less in the first group.
struct World {
    log: Signer,
    witnesses: Vec<Signer>,
    policy: Policy,
}

const NAMES: [&str; 5] = ["X1", "X2", "X3", "Y1", "Y2"];

static WORLD: LazyLock<World> = LazyLock::new(|| {
    let log = signer("example.com/log", &ML_DSA_44);
    let witnesses: Vec<Signer> = NAMES
        .iter()
        .enumerate()
        .map(|(number, name)| {
            let kind = if number % 2 == 0 { &ML_DSA_44 } else { &ED25519_COSIGNATURE };
            signer(&format!("{name}.example"), kind)
        })
        .collect();
    let mut text = format!("# a policy\n\n \t\nlog {} https://log.example/\n", log.verifier());
    for (name, witness) in NAMES.iter().zip(&witnesses) {
        text.push_str(&format!("\twitness {name}  {} \n", witness.verifier()));
    }
    text.push_str(
        "group X 2 X1 X2 X3\n  # and\ngroup Y any Y1 Y2\ngroup both all X Y\nquorum both\n",
    );
    World { log, witnesses, policy: Policy::parse(text.as_bytes()).unwrap() }
});

/// A tree of two, whose second entry is "entry".
fn proof(cosigned: impl IntoIterator<Item = usize>) -> ProofFile {
    let first = hash::leaf(b"first");
    let root = hash::node(&first, &hash::leaf(b"entry"));
    let head = Checkpoint::new("example.com/log", 2, root).unwrap();
    let mut checkpoint = SignedCheckpoint::sign(head, &[&WORLD.log], 1000).unwrap();
    for witness in cosigned {
        let time = 2000 + witness as u64;
        let signature = WORLD.witnesses[witness].sign(checkpoint.note().text(), time).unwrap();
        checkpoint.add(signature).unwrap();
    }
    ProofFile { extra: None, index: 1, hashes: vec![first], checkpoint }
}

#[test]
fn every_set_of_witnesses_counts_as_the_policy_says() {
    for set in 0..32_usize {
        let cosigned: Vec<usize> = (0..5).filter(|witness| set >> witness & 1 == 1).collect();
        let x = cosigned.iter().filter(|witness| **witness < 3).count();
        let y = cosigned.len() - x;
        let names: Vec<&str> = cosigned.iter().map(|witness| NAMES[*witness]).collect();
        match verify_proof(&WORLD.policy, &proof(cosigned), b"entry") {
            Ok(verified) => {
                assert!(x >= 2 && y >= 1, "{names:?}");
                assert_eq!(
                    (verified.origin.as_str(), verified.index, verified.size),
                    ("example.com/log", 1, 2)
                );
                assert_eq!(verified.accepted.log, *WORLD.log.verifier());
                assert_eq!(verified.accepted.time, Some(1000));
                let by = verified.accepted.cosigned_by;
                assert_eq!(by.iter().map(|by| by.witness.as_str()).collect::<Vec<_>>(), names);
                assert!(
                    by.iter()
                        .all(|by| by.time.unwrap() >= 2000 && by.key_name.ends_with(".example"))
                );
            }
            Err(Refused::Quorum(counted)) => {
                assert!(x < 2 || y < 1, "{names:?}");
                assert_eq!(counted, names);
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn what_is_not_the_entry_or_not_the_logs_is_refused() {
    let good = proof(0..5);
    let verify =
        |proof: &ProofFile, entry: &[u8]| verify_proof(&WORLD.policy, proof, entry).map(drop);
    assert_eq!(verify(&good, b"entry"), Ok(()));
    assert_eq!(verify(&good, b"Entry"), Err(ProofError::Root.into()));
    assert_eq!(
        verify(&ProofFile { index: 0, ..good.clone() }, b"entry"),
        Err(ProofError::Root.into())
    );
    assert_eq!(
        verify(&ProofFile { index: 2, ..good.clone() }, b"entry"),
        Err(ProofError::Numbers.into())
    );
    assert_eq!(
        verify(&ProofFile { hashes: vec![], ..good.clone() }, b"entry"),
        Err(ProofError::Length { found: 0 }.into())
    );
    // Signed by the policy's log key with another log's name.
    let head =
        Checkpoint::new("example.com/other", 2, *good.checkpoint.checkpoint().root()).unwrap();
    let other = SignedCheckpoint::sign(head, &[&WORLD.log], 1000).unwrap();
    assert_eq!(
        verify(&ProofFile { checkpoint: other, ..good.clone() }, b"entry"),
        Err(Refused::Log("example.com/other".into()))
    );
    // Signed by witnesses only.
    let mut alone = SignedCheckpoint::sign(good.checkpoint.checkpoint().clone(), &[], 0).unwrap();
    for signature in &good.checkpoint.note().signatures()[1..] {
        alone.add(signature.clone()).unwrap();
    }
    let alone = ProofFile { checkpoint: alone, ..good.clone() };
    assert_eq!(verify(&alone, b"entry"), Err(Refused::Log("example.com/log".into())));
    // One invalid cosignature among enough valid ones.
    let mut forged = good.clone();
    let last = forged.checkpoint.note().signatures().last().unwrap().clone();
    let mut bytes = last.bytes().to_vec();
    *bytes.last_mut().unwrap() ^= 1;
    forged.checkpoint.add(NoteSignature::new(last.name(), last.id(), bytes).unwrap()).unwrap();
    assert_eq!(verify(&forged, b"entry"), Err(NoteError::Invalid("Y2.example".into()).into()));
    // The same cosignature repeated is one witness.
    let text = proof([0]).to_string();
    let line = proof([0]).checkpoint.note().signatures()[1].to_string();
    let many = ProofFile::parse(format!("{text}{}", line.repeat(5)).as_bytes()).unwrap();
    assert_eq!(verify(&many, b"entry"), Err(Refused::Quorum(vec!["X1".into()])));
}

#[test]
fn proof_files_read_back_and_malformed_ones_do_not() {
    let with_extra = ProofFile { extra: Some(b"why".to_vec()), ..proof([1]) };
    for proof in [proof([0, 1]), with_extra.clone()] {
        assert_eq!(ProofFile::parse(proof.to_string().as_bytes()).unwrap(), proof);
    }
    let text = with_extra.to_string();
    assert!(text.starts_with("c2sp.org/tlog-proof@v1\nextra d2h5\nindex 1\n"));
    for (from, to, error) in [
        ("@v1\n", "@v2\n", ProofFileError::FirstLine),
        ("c2sp", " c2sp", ProofFileError::FirstLine),
        ("extra d2h5", "extra d2h", ProofFileError::Line(2)),
        ("extra d2h5", "Extra d2h5", ProofFileError::Line(2)),
        ("index 1", "index 01", ProofFileError::Line(3)),
        ("index 1", "index -1", ProofFileError::Line(3)),
        ("index 1", "index 1 ", ProofFileError::Line(3)),
        ("index 1", "index 1\nindex 1", ProofFileError::Line(4)),
        ("index 1\n", "index 1\nAAAA\n", ProofFileError::Line(4)),
        ("index 1\n", "index 1\r\n", ProofFileError::Line(3)),
    ] {
        assert_eq!(ProofFile::parse(text.replacen(from, to, 1).as_bytes()), Err(error), "{to}");
    }
    let hash = text.lines().nth(3).unwrap();
    let many = text.replacen(hash, &vec![hash; 64].join("\n"), 1);
    assert_eq!(ProofFile::parse(many.as_bytes()), Err(ProofFileError::Line(67)));
    assert_eq!(ProofFile::parse(b""), Err(ProofFileError::FirstLine));
    assert_eq!(ProofFile::parse(b"c2sp.org/tlog-proof@v1\nindex 0"), Err(ProofFileError::Line(2)));
    assert!(matches!(
        ProofFile::parse(b"c2sp.org/tlog-proof@v1\nindex 0\n\n"),
        Err(ProofFileError::Checkpoint(_))
    ));
    assert_eq!(ProofFile::parse(&vec![b'a'; 2 << 20]), Err(ProofFileError::TooLong));
}

#[test]
fn a_policy_names_the_line_that_is_wrong() {
    let ml_dsa = signer("example.com/log", &ML_DSA_44).verifier().to_string();
    let ed25519 = signer("example.com/log", &ED25519_LOG).verifier().to_string();
    let (w1, w2) = (signer("w1", &ML_DSA_44), signer("w2", &ED25519_COSIGNATURE));
    let (w1, w2) = (w1.verifier().to_string(), w2.verifier().to_string());
    let renamed = outlast_tlog::VerifierKey::new(
        "other",
        &ML_DSA_44,
        w1.parse::<outlast_tlog::VerifierKey>().unwrap().public_key(),
    )
    .unwrap();
    let two = format!("witness a {w1}\nwitness b {w2}\n");
    let name = Problem::Name;
    let member = |name: &str| Problem::Member(name.into());
    let unknown = |name: &str| Problem::Unknown(name.into());
    for (text, line, problem) in [
        (String::new(), 1, Problem::Quorum),
        ("# nothing\n".into(), 2, Problem::Quorum),
        ("quorum none".into(), 1, Problem::Characters),
        ("quorum none\nquorum none\n".into(), 2, Problem::Quorum),
        ("quorum none\r\n".into(), 1, Problem::Characters),
        ("quorum none\u{7f}\n".into(), 1, Problem::Characters),
        ("quorum\n".into(), 1, Problem::Form("quorum <name>|none")),
        ("quorum none none\n".into(), 1, Problem::Form("quorum <name>|none")),
        ("Quorum none\n".into(), 1, Problem::Keyword),
        ("quorum\u{a0}none\n".into(), 1, Problem::Keyword),
        ("log\n".into(), 1, Problem::Form("log <vkey> [<url>]")),
        (format!("log {ml_dsa} url more\n"), 1, Problem::Form("log <vkey> [<url>]")),
        (format!("log {w2}\n"), 1, Problem::Kind("log", "Ed25519 cosignature")),
        (format!("witness a {ed25519}\n"), 1, Problem::Kind("witness", "Ed25519")),
        (format!("log {ml_dsa}\nlog {ml_dsa}\n"), 2, Problem::DuplicateKey),
        (format!("witness a {w1}\nwitness b {renamed}\n"), 2, Problem::DuplicateKey),
        (format!("log {ml_dsa}\nwitness a {ml_dsa}\n"), 2, Problem::DuplicateKey),
        (format!("witness a {w1}\nwitness a {w2}\n"), 2, name.clone()),
        (format!("witness none {w1}\n"), 1, name.clone()),
        (format!("{two}group a any b\n"), 3, name),
        (format!("{two}group g any c\n"), 3, unknown("c")),
        (format!("{two}group g any none\n"), 3, unknown("none")),
        (format!("{two}group g any g\n"), 3, unknown("g")),
        ("quorum a\n".into(), 1, unknown("a")),
        (format!("quorum a\n{two}"), 1, unknown("a")),
        (format!("{two}group g any a a\n"), 3, member("a")),
        (format!("{two}group g any a\ngroup h all a b\n"), 4, member("a")),
        (format!("{two}group g 0 a b\n"), 3, Problem::Threshold),
        (format!("{two}group g 3 a b\n"), 3, Problem::Threshold),
        (format!("{two}group g 02 a b\n"), 3, Problem::Threshold),
        (format!("{two}group g some a b\n"), 3, Problem::Threshold),
        (format!("{two}group g 1\n"), 3, Problem::Form("group <name> all|any|<k> <name>...")),
    ] {
        let error = Policy::parse(text.as_bytes()).unwrap_err();
        assert_eq!((error.line, error.problem), (line, problem), "{text:?}");
    }
    let long = "quorum none\n".to_owned() + &"group\n".repeat(1024);
    assert!(Policy::parse(long.as_bytes()).is_err());
    assert!(Policy::parse(&vec![b'\n'; (1 << 20) + 1]).is_err());
    let policy = Policy::parse(
        format!("{two}log {ed25519}\nlog {ml_dsa}\ngroup g all a b\nquorum g\n").as_bytes(),
    )
    .unwrap();
    assert_eq!(policy.logs().len(), 2);
    assert_eq!(
        policy.witnesses().map(|witness| witness.name.as_str()).collect::<Vec<_>>(),
        ["a", "b"]
    );
}

/// The same rules for keys without a file: `of_keys` refuses what a line would be refused for.
#[test]
fn keys_make_a_policy_of_some_of_the_witnesses() {
    let log = WORLD.log.verifier().to_string();
    let witnesses: Vec<_> =
        WORLD.witnesses.iter().map(|witness| witness.verifier().to_string()).collect();
    let only = std::slice::from_ref(&log);
    let policy = |quorum| Policy::of_keys(only, &witnesses, quorum);
    for set in 0..32_usize {
        let cosigned: Vec<usize> = (0..5).filter(|witness| set >> witness & 1 == 1).collect();
        for quorum in 0..=5 {
            let proof = proof(cosigned.clone());
            let verified = verify_proof(&policy(quorum).unwrap(), &proof, b"entry");
            assert_eq!(verified.is_ok(), cosigned.len() >= quorum, "{cosigned:?} of {quorum}");
        }
    }
    // A cosignature that is repeated, or by a witness that is not named, is none.
    let line = proof([0]).checkpoint.note().signatures()[1].to_string();
    let text = format!("{}{}", proof([0]), line.repeat(5));
    let many = ProofFile::parse(text.as_bytes()).unwrap();
    let counted = Refused::Quorum(vec!["X1.example".into()]);
    assert_eq!(verify_proof(&policy(2).unwrap(), &many, b"entry"), Err(counted));
    let few = Policy::of_keys(only, &witnesses[..2], 2).unwrap();
    let counted = Refused::Quorum(vec!["X1.example".into()]);
    assert_eq!(verify_proof(&few, &proof([0, 2, 3, 4]), b"entry"), Err(counted));
    // What is refused.
    let renamed = |vkey: &str, name: &str| {
        let key: outlast_tlog::VerifierKey = vkey.parse().unwrap();
        let same = outlast_tlog::VerifierKey::new(name, key.algorithm(), key.public_key());
        same.unwrap().to_string()
    };
    let ed25519 = signer("example.com/log", &ED25519_LOG).verifier().to_string();
    let namesake = signer("X1.example", &ML_DSA_44).verifier().to_string();
    let first = witnesses[0].clone();
    let one = |second: String| vec![first.clone(), second];
    let twice = vec![log.clone(), log.clone()];
    for (logs, witnesses, quorum, part, problem) in [
        (vec!["x".into()], vec![], 0, Part::Log(0), Problem::Key(KeyError::Form)),
        (twice, vec![], 0, Part::Log(1), Problem::DuplicateKey),
        (vec![log.clone()], one(first.clone()), 1, Part::Witness(1), Problem::DuplicateKey),
        (
            vec![log.clone()],
            one(renamed(&first, "other")),
            1,
            Part::Witness(1),
            Problem::DuplicateKey,
        ),
        (vec![log.clone()], one(renamed(&log, "w")), 1, Part::Witness(1), Problem::DuplicateKey),
        (vec![log.clone()], one(namesake), 1, Part::Witness(1), Problem::Name),
        (vec![log.clone()], one(ed25519), 1, Part::Witness(1), Problem::Kind("witness", "Ed25519")),
        (
            vec![log.clone()],
            one(format!("{log}\nquorum none")),
            1,
            Part::Witness(1),
            Problem::Key(KeyError::Form),
        ),
        (vec![log.clone()], vec![first.clone()], 2, Part::Quorum, Problem::Threshold),
        (vec![log.clone()], vec![], 1, Part::Quorum, Problem::Threshold),
        (vec![log.clone(); 1025], vec![], 0, Part::Quorum, Problem::TooLong),
    ] {
        let error = Policy::of_keys(&logs, &witnesses, quorum).unwrap_err();
        assert_eq!((error.part, error.problem), (part, problem));
    }
}

#[test]
fn names_are_bytes_and_quorum_none_needs_no_witness() {
    let key = signer("w", &ML_DSA_44).verifier().to_string();
    // A letter in two encodings that look the same.
    let other = signer("w", &ML_DSA_44).verifier().to_string();
    let mut text = format!("witness K {key}\nwitness \u{212a} {other}\nquorum ").into_bytes();
    text.extend(b"\xff\n");
    assert!(matches!(Policy::parse(&text).unwrap_err().problem, Problem::Unknown(_)));
    let text = format!("log {}\nquorum none\n", WORLD.log.verifier());
    let policy = Policy::parse(text.as_bytes()).unwrap();
    assert!(verify_proof(&policy, &proof([]), b"entry").unwrap().accepted.cosigned_by.is_empty());
    // Cosignatures of witnesses that the policy lacks do not matter to it.
    assert!(verify_proof(&policy, &proof([0, 1]), b"entry").is_ok());
    let nobody = Policy::parse(b"quorum none\n").unwrap();
    assert_eq!(verify_proof(&nobody, &proof([]), b"entry"), Err(NoteError::Unsigned.into()));
}

proptest! {
    #[test]
    fn any_change_to_a_proof_file_is_refused_or_says_the_same(at: prop::sample::Index, bit in 0_u8..8) {
        static TEXT: LazyLock<Vec<u8>> = LazyLock::new(|| proof([0, 1, 3]).to_string().into_bytes());
        let mut text = TEXT.clone();
        let at = at.index(text.len());
        text[at] ^= 1 << bit;
        if let Ok(changed) = ProofFile::parse(&text)
            && let Ok(verified) = verify_proof(&WORLD.policy, &changed, b"entry")
        {
            // No signature that the quorum needs was touched, which is impossible: it needs each.
            prop_assert!(false, "byte {at}, bit {bit}: {verified:?}");
        }
    }

    #[test]
    fn no_policy_text_panics(text in "((log|witness|group|quorum|none|a|b|2|any|all|#|\t| )[ \n]){0,40}") {
        let _ = Policy::parse(text.as_bytes());
    }
}

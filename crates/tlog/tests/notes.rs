//! Notes, keys and checkpoints: known answers from other implementations, and refusals.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use outlast_crypto::Secret;
use outlast_tlog::checkpoint::{Checkpoint, CheckpointError, SignedCheckpoint};
use outlast_tlog::hash::EMPTY_ROOT;
use outlast_tlog::key::{ALGORITHMS, ED25519_COSIGNATURE, ED25519_LOG, KeyError, ML_DSA_44};
use outlast_tlog::note::{MAX_SIGNATURES, NoteError};
use outlast_tlog::{NoteSignature, SignedNote, Signer, VerifierKey};
use proptest::prelude::*;

// From golang.org/x/mod/sumdb/note.
const PETER: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const SAID: &str = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const SIGNED: &str = "\n\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
// From c2sp.org/tlog-cosignature.
const COSIGNED: &str = "example.com/behind-the-sofa
20852163
CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=

\u{2014} example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=
\u{2014} witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==
";

fn keys(texts: &[&str]) -> Vec<VerifierKey> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn signer(name: &str, algorithm: &'static outlast_tlog::key::Algorithm) -> Signer {
    Signer::new(name, algorithm, &Signer::generate(algorithm).unwrap()).unwrap()
}

fn head() -> Checkpoint {
    Checkpoint::new("example.com/log", 5, [7; 32]).unwrap()
}

#[test]
fn a_note_of_gos_documentation_verifies() {
    let known = keys(&[PETER]);
    assert_eq!(known[0].to_string(), PETER);
    assert_eq!(known[0].algorithm(), &ED25519_LOG);
    let note = SignedNote::parse(format!("{SAID}{SIGNED}").as_bytes()).unwrap();
    assert_eq!(note.text(), SAID);
    let verified = note.verify(&known).unwrap();
    assert_eq!((verified.len(), verified[0].key, verified[0].time), (1, &known[0], None));
    assert_eq!(note.to_string(), format!("{SAID}{SIGNED}"));
    let forged =
        SignedNote::parse(format!("{}{SIGNED}", SAID.replace("don't", "do")).as_bytes()).unwrap();
    assert_eq!(forged.verify(&known), Err(NoteError::Invalid("PeterNeumann".into())));
}

#[test]
fn the_specifications_checkpoint_is_read_and_written() {
    let signed = SignedCheckpoint::parse(COSIGNED.as_bytes()).unwrap();
    assert_eq!(signed.to_string(), COSIGNED);
    assert_eq!(signed.checkpoint().origin(), "example.com/behind-the-sofa");
    assert_eq!(signed.checkpoint().size(), 20_852_163);
    let [log, witness] = signed.note().signatures() else { panic!("two signatures") };
    assert_eq!((log.name(), log.bytes().len()), ("example.com/behind-the-sofa", 64));
    assert_eq!((witness.name(), witness.bytes().len()), ("witness.example.com/w1", 72));
    assert_eq!(witness.id(), [0x8d, 0x66, 0xcf, 0x3f]);
    assert_eq!(signed.note().verify(&keys(&[PETER])), Err(NoteError::Unsigned));
}

#[test]
fn each_kind_of_key_signs_verifies_and_reads_back() {
    for algorithm in ALGORITHMS {
        let by = signer("example.com/log", algorithm);
        let vkey = by.verifier().to_string();
        let known = keys(&[&vkey]);
        assert_eq!((&known[0], known[0].to_string()), (by.verifier(), vkey));
        let signed = SignedCheckpoint::sign(head(), &[&by], 1_700_000_000).unwrap();
        let again = SignedCheckpoint::parse(signed.to_string().as_bytes()).unwrap();
        assert_eq!(again, signed);
        let verified = again.note().verify(&known).unwrap();
        assert_eq!(verified[0].time, algorithm.timed.then_some(1_700_000_000), "{algorithm:?}");
        // Another key with the same name is unknown, which is not the same as invalid.
        let other = [signer("example.com/log", algorithm).verifier().clone()];
        assert_eq!(again.note().verify(&other), Err(NoteError::Unsigned));
        assert!(again.verify_log(&known).is_ok() == algorithm.of_logs);
        assert_eq!(by.sign(signed.note().text(), u64::MAX), Err(KeyError::Time));
    }
}

#[test]
fn the_bytes_that_ml_dsa_signs_are_the_specifications() {
    use outlast_crypto::signatures::{ML_DSA_44 as ROW, Message};
    let stored = Secret::new(vec![9; 32]);
    let by = Signer::new("w.example/1", &ML_DSA_44, &stored).unwrap();
    let signature = by.sign(&head().to_string(), 0x0102_0304).unwrap();
    assert_eq!(signature.bytes()[..8], [0, 0, 0, 0, 1, 2, 3, 4]);
    let mut message =
        b"subtree/v1\n\0\x0bw.example/1\0\0\0\0\x01\x02\x03\x04\x0fexample.com/log".to_vec();
    message.extend([[0; 8], [0, 0, 0, 0, 0, 0, 0, 5]].concat());
    message.extend([7; 32]);
    let key = outlast_crypto::keys::KeySpec::by_name("ML_DSA_44").unwrap().load(&stored).unwrap();
    ROW.verify(key.public_key().unwrap(), Message::Raw(&message), &signature.bytes()[8..]).unwrap();
    // The id is over name, newline, kind and key.
    let id = [b"w.example/1\n\x06".as_slice(), by.verifier().public_key()].concat();
    assert_eq!(by.verifier().id(), outlast_crypto::digests::sha256(&id)[..4]);
    assert_eq!(by.verifier().public_key().len(), 1312);
}

#[test]
fn ml_dsa_does_not_vouch_for_lines_that_it_does_not_sign() {
    let text = format!("{}extension\n", head());
    let ml_dsa = signer("example.com/log", &ML_DSA_44);
    assert_eq!(ml_dsa.sign(&text, 1), Err(KeyError::Message));
    let ed25519 = signer("example.com/log", &ED25519_LOG);
    let mut note = SignedNote::new(&text).unwrap();
    note.add(ed25519.sign(&text, 1).unwrap()).unwrap();
    note.verify(&[ed25519.verifier().clone()]).unwrap();
    // The signature of the head without the line.
    note.add(ml_dsa.sign(&head().to_string(), 1).unwrap()).unwrap();
    let known = [ml_dsa.verifier().clone(), ed25519.verifier().clone()];
    assert_eq!(note.verify(&known), Err(NoteError::Invalid("example.com/log".into())));
}

#[test]
fn a_false_signature_of_a_known_key_refuses_the_note() {
    let (log, witness) =
        (signer("example.com/log", &ML_DSA_44), signer("w.example", &ED25519_COSIGNATURE));
    let mut signed = SignedCheckpoint::sign(head(), &[&log], 1).unwrap();
    let good = witness.sign(signed.note().text(), 2).unwrap();
    let mut bytes = good.bytes().to_vec();
    bytes[20] ^= 1;
    signed.add(NoteSignature::new("w.example", good.id(), bytes).unwrap()).unwrap();
    let (log, witness) = (log.verifier().clone(), witness.verifier().clone());
    assert!(signed.note().verify(std::slice::from_ref(&log)).is_ok());
    let known = [log, witness];
    assert_eq!(signed.note().verify(&known), Err(NoteError::Invalid("w.example".into())));
    signed.add(good).unwrap();
    assert_eq!(signed.note().verify(&known).unwrap().len(), 2);
}

#[test]
fn another_time_origin_size_or_root_is_not_what_was_signed() {
    for algorithm in [&ML_DSA_44, &ED25519_COSIGNATURE] {
        let by = signer("w.example", algorithm);
        let signature = by.sign(&head().to_string(), 1000).unwrap();
        let others = [
            Checkpoint::new("example.com/log2", 5, [7; 32]).unwrap(),
            Checkpoint::new("example.com/log", 6, [7; 32]).unwrap(),
            Checkpoint::new("example.com/log", 5, [8; 32]).unwrap(),
        ];
        for other in others {
            assert_eq!(
                by.verifier().verify(&other.to_string(), &signature),
                Err(KeyError::Signature)
            );
        }
        let mut bytes = signature.bytes().to_vec();
        bytes[7] ^= 1;
        let later = NoteSignature::new("w.example", signature.id(), bytes).unwrap();
        assert_eq!(by.verifier().verify(&head().to_string(), &later), Err(KeyError::Signature));
        assert_eq!(by.verifier().verify("not a checkpoint\n", &signature), Err(KeyError::Message));
        for bytes in [&signature.bytes()[..7], &signature.bytes()[..50], &[0xff; 72]] {
            let cut = NoteSignature::new("w.example", signature.id(), bytes.to_vec()).unwrap();
            assert!(by.verifier().verify(&head().to_string(), &cut).is_err());
        }
    }
}

#[test]
fn malformed_notes_are_refused() {
    let line = "\u{2014} a AAAAAAA=\n";
    assert!(SignedNote::parse(format!("text\n\n{line}").as_bytes()).is_ok());
    let form = [
        "",
        "\n",
        "text",
        "text\n",
        "text\n\n",
        "text\n\n\n",
        &format!("text\n{line}"),
        &format!("text\n\n{line}\n"),
        &format!("text\n\n{}", line.trim_end()),
    ];
    for text in form {
        assert!(SignedNote::parse(text.as_bytes()).is_err(), "{text:?}");
    }
    let lines = [
        "- a AAAAAAA=",
        "\u{2014}a AAAAAAA=",
        "\u{2014} a",
        "\u{2014} a ",
        "\u{2014} AAAAAAA=",
        "\u{2014} a AAAA",
        "\u{2014} a AAAAAA==",
        "\u{2014} a AAAAAAA",
        "\u{2014} a AAAAAAB=",
        "\u{2014} a AAAAAAA= ",
        "\u{2014} a  AAAAAAA=",
        "\u{2014} a+b AAAAAAA=",
        "\u{2014} a\u{a0}b AAAAAAA=",
        " \u{2014} a AAAAAAA=",
    ];
    for line in lines {
        let note = format!("text\n\n{line}\n");
        assert_eq!(SignedNote::parse(note.as_bytes()), Err(NoteError::Signature(1)), "{line:?}");
    }
    for text in ["a\tb", "a\rb", "a\0b", "a\u{1b}b"] {
        let note = format!("{text}\n\n{line}");
        assert_eq!(SignedNote::parse(note.as_bytes()), Err(NoteError::Characters), "{text:?}");
    }
    assert_eq!(SignedNote::parse(b"\xff\n\n"), Err(NoteError::Characters));
    assert_eq!(SignedNote::parse(&vec![b'a'; (1 << 20) + 1]), Err(NoteError::TooLong));
    // A text may have empty lines.
    let note = SignedNote::parse(format!("a\n\nb\n\n\n{line}").as_bytes()).unwrap();
    assert_eq!(note.text(), "a\n\nb\n\n");
    for (count, fits) in [(16, true), (MAX_SIGNATURES, true), (MAX_SIGNATURES + 1, false)] {
        let note = format!("text\n\n{}", line.repeat(count));
        assert_eq!(SignedNote::parse(note.as_bytes()).is_ok(), fits);
    }
}

#[test]
fn malformed_checkpoints_are_refused() {
    let root = "CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=";
    let parse = |text: &str| Checkpoint::parse(text);
    let good = format!("o\n1\n{root}\n");
    assert_eq!(parse(&good).unwrap().to_string(), good);
    let extended = format!("o\n1\n{root}\nmore\nand more\n");
    assert_eq!(parse(&extended).unwrap().to_string(), extended);
    for (text, error) in [
        (format!("\n1\n{root}\n"), CheckpointError::Origin),
        (format!("{}\n1\n{root}\n", "o".repeat(256)), CheckpointError::Origin),
        (format!("o\n01\n{root}\n"), CheckpointError::Size),
        (format!("o\n-1\n{root}\n"), CheckpointError::Size),
        (format!("o\n+1\n{root}\n"), CheckpointError::Size),
        (format!("o\n\n{root}\n"), CheckpointError::Size),
        (format!("o\n9223372036854775808\n{root}\n"), CheckpointError::Size),
        ("o\n1\n".into(), CheckpointError::Root),
        (format!("o\n1\n{}\n", root.trim_end_matches('=')), CheckpointError::Root),
        ("o\n1\nAAAA\n".into(), CheckpointError::Root),
        (format!("o\n1\n{}\n", root.replace("I=", "J=")), CheckpointError::Root),
        (format!("o\n0\n{root}\n"), CheckpointError::Root),
        (format!("o\n1\n{root}"), CheckpointError::Lines),
        (format!("o\n1\n{root}\n\n"), CheckpointError::Lines),
        (format!("o\n1\n{root}\n\nx\n"), CheckpointError::Lines),
    ] {
        assert_eq!(parse(&text), Err(error), "{text:?}");
    }
    assert!(Checkpoint::new("o", 0, EMPTY_ROOT).is_ok());
    assert!(Checkpoint::new("a\nb", 1, EMPTY_ROOT).is_err());
}

#[test]
fn malformed_verifier_keys_are_refused() {
    let parse = |text: &str| text.parse::<VerifierKey>();
    for (text, error) in [
        ("", KeyError::Form),
        ("PeterNeumann", KeyError::Form),
        ("PeterNeumann+c74f20a3", KeyError::Form),
        ("PeterNeumann+c74f20a3+", KeyError::Form),
        (&PETER.replace("c74f20a3", "C74F20A3"), KeyError::Form),
        (&PETER.replace("c74f20a3", "c74f20a"), KeyError::Form),
        (&PETER.replace("c74f20a3", "+74f20a3"), KeyError::Form),
        (&PETER.replace("c74f20a3", "c74f20a4"), KeyError::Id),
        (&PETER.replace("PeterNeumann", "PeterNeuman"), KeyError::Id),
        (&PETER.replace("PeterNeumann", "Peter Neumann"), KeyError::Name),
        (&PETER.replace("PeterNeumann", ""), KeyError::Name),
        (&PETER.replace("+ARpc", "+AhRpc"), KeyError::Form),
        ("PeterNeumann+c74f20a3+AgAA", KeyError::Algorithm(2)),
        ("PeterNeumann+c74f20a3+AQAA", KeyError::Length),
    ] {
        assert_eq!(parse(text), Err(error), "{text}");
    }
}

proptest! {
    #[test]
    fn notes_read_back(text in "[^\\x00-\\x09\\x0b-\\x1f]{0,80}", name in "[a-z./]{1,20}", id: [u8; 4], bytes in prop::collection::vec(any::<u8>(), 1..100)) {
        let mut note = SignedNote::new(&format!("{text}\n")).unwrap();
        note.add(NoteSignature::new(&name, id, bytes).unwrap()).unwrap();
        prop_assert_eq!(SignedNote::parse(note.to_string().as_bytes()).unwrap(), note);
    }

    #[test]
    fn checkpoints_read_back(origin in "[^\\x00-\\x1f]{1,60}", size in 1_u64..=outlast_tlog::MAX_SIZE, root: [u8; 32]) {
        let checkpoint = Checkpoint::new(&origin, size, root).unwrap();
        prop_assert_eq!(Checkpoint::parse(&checkpoint.to_string()), Ok(checkpoint));
    }

    #[test]
    fn what_is_read_is_written_as_it_was(text in "[\\PC\n]{0,60}\n\n(\u{2014} [a+ \u{2003}]{0,3} [A-D=]{0,12}\n){0,3}") {
        if let Ok(note) = SignedNote::parse(text.as_bytes()) {
            prop_assert_eq!(note.to_string(), text);
        }
    }
}

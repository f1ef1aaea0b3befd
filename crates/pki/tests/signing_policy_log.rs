//! Signing policies that name a log and its witnesses themselves: what is read, what is refused, and the line to blame.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use outlast_pki::signing_policy::file::{self, FileError};
use outlast_pki::signing_policy::log::Log;
use outlast_pki::signing_policy::words::explain;
use outlast_tlog::key::{Algorithm, ED25519_COSIGNATURE, ED25519_LOG, ML_DSA_44};
use outlast_tlog::policy::Policy;
use outlast_tlog::{Signer, VerifierKey};

fn vkey(name: &str, algorithm: &'static Algorithm) -> String {
    let stored = Signer::generate(algorithm).unwrap();
    Signer::new(name, algorithm, &stored).unwrap().verifier().to_string()
}

/// The same public key under another name.
fn renamed(vkey: &str, name: &str) -> String {
    let key: VerifierKey = vkey.parse().unwrap();
    VerifierKey::new(name, key.algorithm(), key.public_key()).unwrap().to_string()
}

fn rule(log: &str) -> String {
    format!("[[rule]]\nfiles = \"*\"\ntrust = \"root.pem\"\n{log}\n")
}

#[test]
fn a_rule_names_the_log_and_its_witnesses_itself() {
    let log = vkey("log.example/log", &ML_DSA_44);
    let (one, two) = (vkey("w.example/1", &ED25519_COSIGNATURE), vkey("w.example/2", &ML_DSA_44));
    let table = format!(
        "log = {{ keys = \"{log}\", witness_keys = [\"{one}\", \"{two}\"], witnesses = 1 }}"
    );
    let section = format!(
        "[rule.log]\nkeys = [\"{log}\"]\nwitness_keys = [\"{one}\", \"{two}\"]\nwitnesses = 1"
    );
    for text in [table, section] {
        let policy = file::parse("p", &rule(&text)).unwrap();
        let Some(Log::Inline { policy: found, witnesses: 1 }) = &policy.rules[0].log else {
            panic!("{text}: {:?}", policy.rules[0].log)
        };
        assert_eq!(found.logs()[0].key.to_string(), log);
        let keys: Vec<_> = found.witnesses().map(|witness| witness.key.to_string()).collect();
        assert_eq!(keys, [one.clone(), two.clone()]);
        let said = explain(&policy);
        let expected = "the log log.example/log, cosigned by 1 of 2: w.example/1, w.example/2";
        assert!(said.contains(expected), "{said}");
    }
    // Without witnesses it is the policy that a file would say.
    let policy = file::parse("p", &rule(&format!("log = {{ keys = \"{log}\" }}"))).unwrap();
    let Some(Log::Inline { policy: found, witnesses: 0 }) = &policy.rules[0].log else {
        panic!("{:?}", policy.rules[0].log)
    };
    let read = Policy::parse(format!("log {log}\nquorum none\n").as_bytes()).unwrap();
    assert_eq!(found.logs(), read.logs());
    assert!(explain(&policy).contains("log.example/log; no witness is asked for"));
}

#[test]
fn what_is_wrong_with_a_log_is_named_with_its_line() {
    let log = vkey("log.example/log", &ML_DSA_44);
    let ed25519 = vkey("log.example/log", &ED25519_LOG);
    let (one, two) = (vkey("w.example/1", &ED25519_COSIGNATURE), vkey("w.example/2", &ML_DSA_44));
    let again = renamed(&one, "other.example/w");
    let own = renamed(&log, "w.example/own");
    let namesake = vkey("w.example/1", &ML_DSA_44);
    let keys = |second: &str, count: &str| {
        format!(
            "[rule.log]\nkeys = \"{log}\"\nwitness_keys = [\n  \"{one}\",\n  \"{second}\",\n]\n{count}"
        )
    };
    for (text, line, reason) in [
        ("log = {}".to_owned(), 4, "log: keys: it is missing"),
        ("log = { keys = [] }".to_owned(), 4, "it is a text, or a list"),
        ("log = { keys = \"log.policy\" }".to_owned(), 4, "this is not a verifier key"),
        (format!("log = {{ keys = \"{log} x\" }}"), 4, "this is not a verifier key"),
        (format!("log = {{ keys = \"{log}\\nquorum none\" }}"), 4, "not a verifier key"),
        (format!("log = {{ keys = \"{}\" }}", &log[..log.len() - 4]), 4, "the wrong length"),
        (format!("log = {{ keys = \"{one}\" }}"), 4, "a log cannot have a key"),
        (
            format!("[rule.log]\nkeys = [\n  \"{log}\",\n  \"{log}\"]"),
            7,
            "the same public key is named before",
        ),
        (format!("log = {{ keys = \"{log}\", witnesses = 1 }}"), 4, "no witness is named"),
        (format!("log = {{ keys = \"{log}\", witness = \"{one}\" }}"), 4, "has no key witness"),
        (keys(&two, ""), 4, "log: witnesses: it is missing"),
        (keys(&two, "witnesses = 0"), 10, "it is a number from 1 to 2"),
        (keys(&two, "witnesses = 3"), 10, "it is a number from 1 to 2"),
        (keys(&two, "witnesses = \"2\""), 10, "it is a number from 1 to 2"),
        // One witness would count twice.
        (keys(&one, "witnesses = 2"), 8, "the same public key is named before"),
        (keys(&again, "witnesses = 2"), 8, "the same public key is named before"),
        (keys(&namesake, "witnesses = 2"), 8, "a key with the same name is named before"),
        // The log would be its own witness.
        (keys(&own, "witnesses = 2"), 8, "the same public key is named before"),
        (keys(&ed25519, "witnesses = 2"), 8, "a witness cannot have a key"),
    ] {
        let text = rule(&text);
        let error = file::parse("p", &text).unwrap_err();
        assert!(error.message.starts_with(&format!("line {line}: rule \"rule 1\"")), "{error}");
        assert!(error.message.contains(reason), "{reason}: {error}");
        if reason.contains("named before") {
            assert!(error.hint.unwrap().contains("a witness counts once"));
        }
    }
}

#[test]
fn every_error_names_its_line() {
    let line = |text: &str| -> (Option<usize>, FileError) {
        let error = file::parse("p", text).unwrap_err();
        let number = error.message.strip_prefix("line ");
        let number = number.and_then(|rest| rest.split_once(':'));
        (number.and_then(|(number, _)| number.parse().ok()), error)
    };
    let first = "# who may sign\n\n[[rule]]\nfiles = \"*.bin\"\ntrust = \"root.pem\"\n";
    for (text, expected) in [
        ("rules = 1".to_owned(), 1),
        (format!("{first}algorithm = \"any\""), 6),
        (format!("{first}algorithms = \"ml-dsa-66\""), 6),
        (format!("{first}algorithms = {{ any_of = [\"any\"] }}"), 6),
        (format!("{first}until = 5"), 6),
        (format!("{first}name = \"\""), 3),
        (format!("{first}public_keys = [\n\"sha256:{}\",\n\"sha256:00\"]", "0".repeat(64)), 8),
        (format!("{first}[[rule]]\ntrust = \"root.pem\""), 6),
        (format!("{first}name = \"a\"\n[[rule]]\nfiles = \"*\"\nname = \"a\""), 7),
        (format!("{first}[timestamp]\nroots = \"a\""), 7),
        (format!("timestamp = 1\n{first}"), 1),
        (format!("{first}[timestamp]\n# two\nleast = 9"), 8),
        (format!("[timestamp]\r\npolicies = \"x\"\r\n{first}"), 2),
    ] {
        let (found, error) = line(&text);
        assert_eq!(found, Some(expected), "{text}\n{error}");
    }
    // Where there is nothing to point to.
    for text in [String::new(), " ".repeat(file::MAX_LEN + 1)] {
        assert_eq!(line(&text).0, None);
    }
}

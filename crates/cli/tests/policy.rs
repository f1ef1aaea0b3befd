//! `outlast policy`: what it lists, compares and explains, and what it refuses.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;

use common::peers::peer;
use common::{outlast, run, stderr, succeed};
use outlast_negotiate::catalogue::POLICIES;
use serde_json::Value;

fn policy(arguments: &[&str]) -> String {
    succeed(outlast().arg("policy").args(arguments))
}

/// The text with its lines joined: it is wrapped for a terminal.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&policy(&[&["--output", "json"], arguments].concat())).unwrap()
}

/// Runs a command that must fail with this exit code; returns its stderr.
fn refuse(arguments: &[&str], code: i32) -> String {
    let output = run(outlast().arg("policy").args(arguments));
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
    assert!(output.stdout.is_empty());
    stderr(&output)
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|value| value.as_str().unwrap()).collect()
}

const HELLO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../negotiate/tests/data/openssl-3.5.hex");

#[test]
fn every_policy_is_listed_shown_and_explained() {
    let list = json(&["list", "--all"]);
    let names: Vec<_> =
        list.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, POLICIES.iter().map(|row| row.name).collect::<Vec<_>>());
    // Without --all it lists those that a listener can have.
    let usual = json(&["list"]);
    let has_tls = POLICIES.iter().filter(|row| row.has_tls()).count();
    assert_eq!(usual.as_array().unwrap().len(), has_tls);
    let rest = POLICIES.len() - has_tls;
    let end = format!("{rest} more are for SSH alone: --all lists them\n");
    assert!(policy(&["list"]).ends_with(&end));
    let text = policy(&["list", "--all"]);
    for row in POLICIES {
        assert!(text.contains(row.name) && text.contains(row.summary));
        let shown = json(&["show", row.name]);
        assert_eq!(strings(&shown["groups"]), row.tls.groups);
        assert_eq!(strings(&shown["ssh_key_exchanges"]), row.ssh.key_exchanges);
        assert_eq!(strings(&shown["sources"]), row.sources);
        let text = policy(&["show", row.name]);
        let shown = [row.tls.groups, row.tls.suites, row.sources, row.ssh.host_keys].concat();
        assert!(shown.iter().all(|name| text.contains(name)), "{text}");
        let explained = json(&["explain", row.name]);
        assert_eq!(explained["groups"].as_array().unwrap().len(), row.tls.groups.len());
        assert!(!explained["meaning"].as_array().unwrap().is_empty());
        assert!(policy(&["explain", row.name]).contains(row.summary));
    }
}

#[test]
fn explanations_say_who_is_served() {
    let text = policy(&["explain", "2026-11"]);
    let (served, refused) = (text.find("\nserved"), text.find("\nrefused"));
    assert!(served.is_some() && text.contains("OpenSSL 3.0 (AWS CLI"), "{text}");
    assert!(
        text[served.unwrap()..refused.unwrap()]
            .contains("TLSv1.3, X25519MLKEM768 by HelloRetryRequest")
    );
    let required = json(&["explain", "2026-11", "--mode", "require"]);
    let fare = |name: &str| {
        let clients = required["clients"].as_array().unwrap();
        clients
            .iter()
            .find(|row| row["client"].as_str().unwrap().starts_with(name))
            .unwrap()
            .clone()
    };
    assert_eq!(fare("browser")["post_quantum"], true);
    assert_eq!(fare("OpenSSL 3.0")["served"], false);
    assert_eq!(fare("client of TLS 1.2")["outcome"], "refused: no TLS version in common");
    let cnsa = json(&["explain", "cnsa2-2026-11"]);
    let served: Vec<_> =
        cnsa["clients"].as_array().unwrap().iter().filter(|row| row["served"] == true).collect();
    assert_eq!(served.len(), 2, "{served:?}");
}

#[test]
fn an_offer_is_followed_to_its_outcome() {
    let classical_first = ["--groups", "X25519:X25519MLKEM768", "--shares", "x25519"];
    let found = json(&[&["explain", "2026-11"], &classical_first[..]].concat());
    assert_eq!(found["group"], "X25519MLKEM768");
    assert_eq!(found["hello_retry"], true);
    assert_eq!(found["post_quantum"], true);
    assert_eq!(found["offer"]["groups"], serde_json::json!([0x001d, 0x11ec]));
    let text = flat(&policy(&[&["explain", "2026-11"], &classical_first[..]].concat()));
    assert!(text.starts_with("2026-11 in the mode prefer: served, post-quantum"), "{text}");
    assert!(text.contains("although the client prefers others"), "{text}");
    assert!(text.contains("HelloRetryRequest, which costs a round trip"), "{text}");

    let allowed =
        json(&[&["explain", "2026-11", "--mode", "allow"], &classical_first[..]].concat());
    assert_eq!(allowed["group"], "x25519");
    let refused = json(&["explain", "2026-11-require-pq", "--groups", "0x001e,secp256r1"]);
    assert_eq!(refused["served"], false);
    assert_eq!(refused["refusal"], "classical");
    assert_eq!(refused["alert"], 40);
    let text = policy(&["explain", "2026-11", "--mode", "require", "--groups", "0x001e,secp256r1"]);
    let text = flat(&text);
    assert!(text.contains("It offers 0x001e, secp256r1."), "{text}");
    assert!(text.contains("It would be served in the mode prefer or allow or off."), "{text}");
    let old = json(&[
        "explain",
        "2026-11",
        "--groups",
        "secp256r1",
        "--tls",
        "TLSv1.2",
        "--certificate",
        "mldsa65",
    ]);
    assert_eq!(old["refusal"], "scheme");
    let quic = json(&["explain", "2026-11", "--groups", "secp256r1", "--tls", "TLSv1.2", "--quic"]);
    assert_eq!(quic["refusal"], "version");
}

#[test]
fn a_client_hello_is_read_in_any_form() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(HELLO).unwrap();
    let records = hex::decode(text.split_whitespace().collect::<String>()).unwrap();
    let path = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let forms = [
        HELLO.to_owned(),
        path("records", &records),
        path("message", &records[5..]),
        path("message.hex", hex::encode(&records[5..]).as_bytes()),
    ];
    for form in forms {
        let found = json(&["explain", "2026-11", "--client", &form]);
        assert_eq!(found["group"], "X25519MLKEM768", "{form}");
        assert_eq!(found["hello_retry"], false);
        assert_eq!(found["offer"]["sni"], "outlast.test");
    }
    let cut = path("cut", &records[..200]);
    assert!(refuse(&["explain", "2026-11", "--client", &cut], 1).contains("cut off"));
    let other = path("other", b"GET / HTTP/1.1\r\n\r\n");
    assert!(refuse(&["explain", "2026-11", "--client", &other], 1).contains("plain HTTP"));
    refuse(&["explain", "2026-11", "--client", "/nowhere/at-all"], 1);
    refuse(&["explain", "2026-11", "--client", HELLO, "--groups", "x25519"], 2);
}

#[test]
fn differences_are_listed_with_who_notices() {
    let same = policy(&["diff", "2026-11", "2026-11"]);
    assert_eq!(same, "2026-11 and 2026-11 are the same\n");
    let found = json(&["diff", "2026-11", "cnsa2-2026-11"]);
    let groups =
        found["lists"].as_array().unwrap().iter().find(|list| list["list"] == "groups").unwrap();
    assert_eq!(strings(&groups["added"]), ["MLKEM1024"]);
    assert!(strings(&groups["removed"]).contains(&"x25519"));
    assert_eq!(found["mode"], serde_json::json!(["prefer", "require"]));
    let lost = found["clients"].as_array().unwrap().iter().filter(|change| change["lost"] == true);
    assert!(lost.count() >= 4);
    let text = policy(&["diff", "2026-11", "fips-2026-11"]);
    assert!(text.contains("  - x25519\n  + secp521r1\n"), "{text}");
    assert!(
        text.contains("in another order: SecP256r1MLKEM768, SecP384r1MLKEM1024, X25519MLKEM768"),
        "{text}"
    );
}

#[test]
fn unknown_names_are_errors_with_a_suggestion() {
    for arguments in [
        &["show", "2026-10"][..],
        &["diff", "2026-11", "2026-10"],
        &["diff", "2026-10", "2026-11"],
        &["explain", "2026-10"],
    ] {
        let said = refuse(arguments, 2);
        assert_eq!(
            said,
            "error: there is no security policy \"2026-10\"\n\
             hint: did you mean 2026-11? outlast policy list shows them\n"
        );
    }
    assert!(refuse(&["show", "zzz"], 2).contains("hint: outlast policy list shows them"));
    for (flag, name, suggestion) in [
        ("--groups", "X25519MLKEM786", "X25519MLKEM768"),
        ("--certificate", "mldsa66", "mldsa65"),
        ("--suites", "TLS_AES_256_GCM_SHA385", "TLS_AES_256_GCM_SHA384"),
        ("--schemes", "ed25518", "ed25519"),
        ("--tls", "TLSv1.4", "TLSv1.3"),
        ("--tls", "1.3", "TLSv1.3"),
    ] {
        let mut arguments = vec!["explain", "2026-11", flag, name];
        if flag != "--groups" {
            arguments.extend(["--groups", "x25519"]);
        }
        let said = refuse(&arguments, 2);
        assert!(
            said.starts_with(&format!("error: {flag}: "))
                && said.contains(name)
                && said.contains(&format!("did you mean {suggestion}?")),
            "{said}"
        );
    }
    assert!(refuse(&["explain", "2026-11", "--mode", "maybe"], 2).contains("'--mode <MODE>'"));
    refuse(&["explain", "2026-11", "--shares", "x25519"], 2);
    refuse(&["explain", "2026-11", "--groups", "x25519,X25519"], 2);
    let said = refuse(&["explain", "2026-11", "--groups", "x25519", "--shares", "secp256r1"], 2);
    assert!(said.contains("0x0017"), "{said}");
    let said = refuse(&["explain", "cnsa2-2026-11", "--mode", "off", "--groups", "x25519"], 2);
    assert!(said.contains("--mode: ") && said.contains("has no classical groups"), "{said}");
}

/// The server's option, and the setting's variable.
#[test]
fn server_refuses_an_unknown_policy() {
    for (arguments, code, said) in [
        (&["--policy", "2026-12"][..], 2, "a similar value exists: '2026-11'"),
        (&["--policy", "TransferSecurityPolicy-2025-03"], 2, "'--policy <NAME>'"),
        (&["--policy", "classical-2026-11", "--mode", "require"], 2, "has no post-quantum groups"),
        (&["--mode", "requir"], 2, "'--mode <MODE>'"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = outlast();
        command.args(["server", "--data"]).arg(folder.path()).args(arguments);
        let output = run(&mut command);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(stderr(&output).contains(said), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn an_explanation_says_what_ssh_clients_get() {
    let text = flat(&policy(&["explain", "2026-11"]));
    let old = "OpenSSH 9.2 (Debian 12): curve25519-sha256, chacha20-poly1305@openssh.com, signed with ssh-ed25519";
    assert!(text.contains(old), "{text}");
    assert!(text.contains("the server reads the client's list before it sends its own"));
    assert!(text.contains("Not served here: sntrup761x25519-sha512,"));
    let required = flat(&policy(&["explain", "2026-11", "--mode", "require"]));
    let refused = required.split("SSH clients that are refused").nth(1).unwrap();
    assert!(refused.contains("libssh2 1.10 (curl): refused: "), "{required}");
    // Policies without SSH say nothing of it, and those for SSH only nothing of TLS.
    assert!(!policy(&["explain", "20251014"]).contains("SSH clients"));
    let transfer = json(&["explain", "TransferSecurityPolicy-2025-03"]);
    assert!(transfer["clients"].as_array().unwrap().is_empty());
    let clients = transfer["ssh"]["clients"].as_array().unwrap();
    let putty = clients.iter().find(|row| row["client"] == "PuTTY 0.83").unwrap();
    assert_eq!(putty["post_quantum"], true);
    assert!(json(&["explain", "20251014"]).get("ssh").is_none());
    let diff = flat(&policy(&["diff", "2026-11", "2026-11-require-pq"]));
    assert!(diff.contains("OpenSSH 8.4 (Debian 11) (no longer served)"), "{diff}");
}

#[test]
fn policy_files_of_ssh_audit_say_what_is_served() {
    let text = policy(&["ssh-audit", "2026-11", "--mode", "require"]);
    let methods = "key exchanges = mlkem768x25519-sha256, mlkem768nistp256-sha256, mlkem1024nistp384-sha384, kex-strict-s-v00@openssh.com\n";
    assert!(text.contains(methods), "{text}");
    let value = json(&["ssh-audit", "2026-11", "--mode", "require"]);
    assert_eq!(value["file"].as_str().unwrap().trim_end(), text.trim_end());
    assert!(refuse(&["ssh-audit", "20251014"], 2).contains("does not cover SSH"));
    let nothing = refuse(&["ssh-audit", "classical-2026-11", "--mode", "require"], 2);
    assert!(
        nothing.contains("hint: to see what it contains, run: outlast policy show"),
        "{nothing}"
    );
}

#[test]
fn ssh_audits_own_parser_takes_the_files() {
    let Some(peer) = peer("python") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut files = Vec::new();
    for row in POLICIES.iter().filter(|row| row.has_ssh() && row.name != "cnsa2-2026-11") {
        let path = folder.path().join(row.name);
        std::fs::write(&path, policy(&["ssh-audit", row.name])).unwrap();
        files.push(path);
    }
    let script =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/interop/python/ssh_audit_policies.py");
    let mut python = std::process::Command::new(peer.join("bin/python"));
    let said = succeed(python.arg(script).args(&files));
    assert_eq!(said.lines().count(), files.len());
    assert!(files.len() >= 7, "{}", files.len());
}

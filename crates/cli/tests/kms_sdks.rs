//! The same KMS calls in five AWS SDKs, each with only standard AWS configuration: `tests/interop/KMS_STEPS.md` says
//! what each step checks.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::process::Command;

use common::peers::{checkout, java, peer};
use common::{Folder, outlast, run, stderr, stdout, succeed};
use outlast_store::Store;
use outlast_store::sqlite::SqliteStore;
use serde_json::{Value, json};

const ROLE: &str = "arn:aws:iam::123456789012:role/whole";

/// Runs the program with a new server; `hybrid` says whether every connection must be hybrid.
fn whole(sdk: &str, mut program: Command, hybrid: bool) {
    let folder = Folder::new();
    let trust = json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Allow",
            "Principal": { "AWS": "arn:aws:iam::123456789012:user/administrator" },
            "Action": "sts:AssumeRole",
        }],
    });
    let trust = folder.write("trust.json", trust.to_string().as_bytes());
    let mut create = outlast();
    create.args(["principal", "create", "whole", "--role", "--admin", "--data"]);
    succeed(create.arg(&folder.data).arg("--trust").arg(trust));
    let mut server = folder.serve();
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            program.env_remove(&name);
        }
    }
    program
        .env("AWS_CONFIG_FILE", folder.data.join("client/config"))
        .env("AWS_SHARED_CREDENTIALS_FILE", folder.data.join("client/credentials"))
        .env("AWS_PROFILE", "outlast")
        .env("OUTLAST_CA", folder.data.join("client/ca.pem"))
        .env("OUTLAST_ENDPOINT", format!("https://localhost:{}", server.port))
        .env("OUTLAST_ROLE_ARN", ROLE);
    let output = run(&mut program);
    let text = stdout(&output);
    let last = text.lines().last().unwrap_or_default().to_owned();
    let failed: Vec<_> = text.lines().filter(|line| line.starts_with("FAILED")).collect();
    assert!(failed.is_empty(), "{sdk}: {failed:#?}");
    assert!(output.status.success(), "{sdk}: {text}{}", stderr(&output));
    assert!(last.contains(" steps passed, 0 failed"), "{sdk}: {last}");
    for line in text.lines().filter(|line| line.starts_with("skipped")) {
        println!("{sdk}: {line}");
    }
    println!("{sdk}: {last}");
    assert_eq!(server.terminate(), Some(0));
    // What was negotiated, from the service's own records.
    let store = SqliteStore::open(&folder.data.join("store.db")).unwrap();
    let mut calls = 0;
    for event in store.events(0, 100_000).unwrap() {
        let event: Value = serde_json::from_slice(&event.body).unwrap();
        let Some(group) = event["tlsDetails"]["keyExchange"].as_str() else { continue };
        calls += 1;
        assert!(!hybrid || group == "X25519MLKEM768", "{sdk} negotiated {group}");
        assert!(event["errorCode"] != "KMSInternalException", "{event}");
    }
    assert!(calls > 100, "{sdk}: {calls} calls");
}

#[test]
fn python() {
    let Some(peer) = peer("python") else { return };
    let mut program = Command::new(peer.join("bin/python"));
    program.arg(checkout().join("tests/interop/python/kms_whole.py"));
    // Python's OpenSSL is older than ML-KEM.
    whole("Python", program, false);
}

#[test]
fn java_crt() {
    let Some(peer) = peer("java") else { return };
    // The CRT client only trusts the system's CA file; the script gives it another one.
    let sdk = java(&peer, "outlast.interop.KmsWhole", &[]);
    let mut program = Command::new("sh");
    let script = checkout().join("tests/interop/java/run-with-ca.sh");
    program.args(["-c", "exec \"$0\" \"$OUTLAST_CA\" \"$@\""]).arg(script);
    program.arg(sdk.get_program()).args(sdk.get_args());
    whole("Java", program, true);
}

#[test]
fn go() {
    let Some(peer) = peer("go") else { return };
    whole("Go", Command::new(peer.join("bin/kms-whole")), true);
}

#[test]
fn javascript() {
    let Some(peer) = peer("javascript") else { return };
    let mut program = Command::new(peer.join("bin/node"));
    program.arg(peer.join("src/kms-whole.mjs"));
    whole("JavaScript", program, true);
}

#[test]
fn rust() {
    let Some(peer) = peer("rust") else { return };
    whole("Rust", Command::new(peer.join("bin/kms-whole")), true);
}

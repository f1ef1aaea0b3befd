//! The same calls of Secrets Manager in five AWS SDKs, each with only standard AWS configuration:
//! `tests/interop/SECRETS_STEPS.md` says what each step checks.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;

use std::collections::BTreeMap;
use std::process::Command;

use common::peers::{checkout, java, peer};
use common::{Folder, outlast, run, stderr, stdout, succeed};
use serde_json::{Value, json};

const FUNCTION: &str = "arn:aws:lambda:us-east-1:123456789012:function:rotate";
const ROLE: &str = "arn:aws:iam::123456789012:role/rotator";
/// In the ARN of the rotation function's session, whose calls are not the SDK's.
const ROTATOR: &str = ":assumed-role/rotator/";

/// Gives the server a rotation function in AWS's form, if Python is there to run it.
fn rotation(folder: &Folder) -> bool {
    let Some(python) = peer("python") else { return false };
    let allow = |statement: Value| json!({ "Version": "2012-10-17", "Statement": [statement] });
    let trust = allow(json!({
        "Effect": "Allow", "Action": "sts:AssumeRole", "Principal": { "Service": "lambda.amazonaws.com" },
    }));
    let rights = allow(json!({ "Effect": "Allow", "Action": "secretsmanager:*", "Resource": "*" }));
    let mut create = outlast();
    create
        .args(["principal", "create", "rotator", "--role", "--trust-policy-file"])
        .arg(folder.write("trust.json", trust.to_string().as_bytes()))
        .arg("--policy-file")
        .arg(folder.write("rights.json", rights.to_string().as_bytes()));
    succeed(create.arg("--data").arg(&folder.data));
    let functions = format!(
        "['{FUNCTION}']\nprogram = ['{}', '{}', 'program', '{}']\nrole = '{ROLE}'\n",
        python.join("bin/python").display(),
        checkout().join("tests/interop/python/rotation_function.py").display(),
        folder.data.join("client/ca.pem").display(),
    );
    let functions = folder.write("functions.toml", functions.as_bytes());
    let settings = format!("[rotation]\nfunctions = '{}'\n", functions.display());
    std::fs::write(folder.data.join("outlast.toml"), settings).unwrap();
    true
}

/// Runs the program with a new server, and finds in the audit trail that each GetSecretValue had this key
/// exchange.
fn whole(sdk: &str, mut program: Command, group: &str) {
    let folder = Folder::new();
    let rotates = rotation(&folder);
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
        .env("PYTHONDONTWRITEBYTECODE", "1");
    if rotates {
        program.env("OUTLAST_ROTATION_FUNCTION", FUNCTION);
    }
    let output = run(&mut program);
    let text = stdout(&output);
    let last = text.lines().last().unwrap_or_default().to_owned();
    let failed: Vec<_> = text.lines().filter(|line| line.starts_with("FAILED")).collect();
    assert!(failed.is_empty(), "{sdk}: {failed:#?}");
    assert!(output.status.success(), "{sdk}: {text}{}", stderr(&output));
    let wanted =
        if rotates { "16 steps passed, 0 failed" } else { "14 steps passed, 0 failed, 2 skipped" };
    assert_eq!(last, wanted, "{sdk}: {text}");
    assert_eq!(server.terminate(), Some(0));
    let groups = negotiated(&folder);
    println!("{sdk}: {last}; {groups:?}");
    assert_eq!(groups.keys().collect::<Vec<_>>(), [group], "{sdk}: {groups:?}");
    assert!(groups[group] >= 10, "{sdk}: {groups:?}");
}

/// How many GetSecretValue of the SDK had which key exchange, by the audit trail.
fn negotiated(folder: &Folder) -> BTreeMap<String, usize> {
    let mut tail = outlast();
    tail.args(["audit", "tail", "-n", "100000", "--output", "json", "--data"]);
    let mut groups = BTreeMap::new();
    for line in succeed(tail.arg(&folder.data)).lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        assert!(event["errorCode"] != "InternalServiceError", "{event}");
        let by = event["userIdentity"]["arn"].as_str().unwrap_or_default();
        if event["eventName"] != "GetSecretValue" || by.contains(ROTATOR) {
            continue;
        }
        let group = event["tlsDetails"]["keyExchange"].as_str().unwrap_or("none");
        *groups.entry(group.to_owned()).or_default() += 1;
    }
    groups
}

const HYBRID: &str = "X25519MLKEM768";

#[test]
fn python() {
    let Some(peer) = peer("python") else { return };
    let mut program = Command::new(peer.join("bin/python"));
    program.arg(checkout().join("tests/interop/python/kms_whole.py")).arg("secrets");
    // Python's OpenSSL is older than ML-KEM.
    whole("Python", program, "x25519");
}

#[test]
fn java_crt() {
    let Some(peer) = peer("java") else { return };
    // The CRT client only trusts the system's CA file; the script gives it another one.
    let sdk = java(&peer, "outlast.interop.KmsWhole", &["secrets"]);
    let mut program = Command::new("sh");
    let script = checkout().join("tests/interop/java/run-with-ca.sh");
    program.args(["-c", "exec \"$0\" \"$OUTLAST_CA\" \"$@\""]).arg(script);
    program.arg(sdk.get_program()).args(sdk.get_args());
    whole("Java", program, HYBRID);
}

#[test]
fn go() {
    let Some(peer) = peer("go") else { return };
    let mut program = Command::new(peer.join("bin/kms-whole"));
    program.arg("secrets");
    whole("Go", program, HYBRID);
}

#[test]
fn javascript() {
    let Some(peer) = peer("javascript") else { return };
    let mut program = Command::new(peer.join("bin/node"));
    program.arg(peer.join("src/kms-whole.mjs")).arg("secrets");
    whole("JavaScript", program, HYBRID);
}

#[test]
fn rust() {
    let Some(peer) = peer("rust") else { return };
    let mut program = Command::new(peer.join("bin/kms-whole"));
    program.arg("secrets");
    whole("Rust", program, HYBRID);
}

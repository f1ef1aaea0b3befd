//! Roles Anywhere, used by AWS's own Python client.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail and print")]

use std::process::Command;

use serde_json::json;

use crate::common::peers::{checkout, peer};
use crate::common::{Folder, outlast, succeed};

#[test]
fn awss_python_client_gets_sessions_by_certificate() {
    let Some(peer) = peer("python") else { return };
    let folder = Folder::new();
    std::fs::write(
        folder.data.join("outlast.toml"),
        "[rolesanywhere]\nend_sessions_on_revocation = true\n",
    )
    .unwrap();
    let trust = json!({ "Version": "2012-10-17", "Statement": [{
        "Effect": "Allow",
        "Principal": { "Service": "rolesanywhere.amazonaws.com" },
        "Action": ["sts:AssumeRole", "sts:TagSession", "sts:SetSourceIdentity"],
        "Condition": { "StringEquals": { "aws:PrincipalTag/x509Subject/CN": "workload" } },
    }]});
    let trust = folder.write("trust.json", trust.to_string().as_bytes());
    succeed(
        outlast()
            .args(["principal", "create", "workload", "--role", "--admin", "--trust-policy-file"])
            .arg(trust)
            .arg("--data")
            .arg(&folder.data),
    );
    let _server = folder.serve();
    let mut command = Command::new(peer.join("bin/python"));
    command
        .arg(checkout().join("tests/interop/python/roles_anywhere.py"))
        .arg("arn:aws:iam::123456789012:role/workload");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AWS_") {
            command.env_remove(&name);
        }
    }
    command
        .env("AWS_CONFIG_FILE", folder.data.join("client/config"))
        .env("AWS_SHARED_CREDENTIALS_FILE", folder.data.join("client/credentials"))
        .env("AWS_PROFILE", "outlast");
    let text = succeed(&mut command);
    let last = text.lines().last().unwrap_or_default();
    assert!(last.ends_with(" passed, 0 failed"), "{text}");
    println!("Roles Anywhere by AWS's Python client: {last}");
}

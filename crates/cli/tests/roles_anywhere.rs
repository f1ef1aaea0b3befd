//! Roles Anywhere, used by AWS's own Python client.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may fail and print")]

use std::process::Command;

use rusqlite::Connection;
use serde_json::json;

use crate::common::peers::{checkout, peer};
use crate::common::{Folder, authority, outlast, runtime, succeed};

/// Earlier versions had no index of authorities without CRLs and OCSP, which revocation needs.
#[test]
fn server_indexes_authorities_of_an_earlier_version() {
    let folder = Folder::new();
    let mut server = folder.serve();
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let algorithms = ("EC_prime256v1", "SHA256WITHECDSA");
        authority::root(&mut session, algorithms, "Root", None).await;
        authority::pending(&mut session, "ROOT", algorithms, "Pending", None).await;
    });
    assert_eq!(server.terminate(), Some(0));
    let sql = || Connection::open(folder.data.join("store.db")).unwrap();
    let is_index = "key LIKE 'ca/served/%' OR key LIKE 'ca/ocsp-issuer/%'";
    let index = || {
        let sql = sql();
        let mut found = sql.prepare(&format!("SELECT key FROM record WHERE {is_index}")).unwrap();
        let keys = found.query_map([], |row| row.get::<_, String>(0)).unwrap();
        keys.collect::<Result<Vec<_>, _>>().unwrap()
    };
    let before = index();
    assert_eq!(before.len(), 3, "{before:?}");
    assert_eq!(sql().execute(&format!("DELETE FROM record WHERE {is_index}"), []).unwrap(), 3);
    for _ in 0..2 {
        let mut server = folder.serve();
        assert_eq!(server.terminate(), Some(0));
        assert_eq!(index(), before);
    }
    succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
}

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

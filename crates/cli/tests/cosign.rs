//! Sigstore's cosign with keys of our KMS, and its attestations and ours.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::peers::peer;
use crate::common::{Folder, fail, outlast, succeed};

/// cosign in the test's folder, with the access key of the administrator.
pub fn cosign(folder: &Folder, place: &Path, arguments: &[&str]) -> Command {
    let profile = folder.client(&[]);
    let mut command = outlast_testing::program::command(place.join("bin/cosign").to_str().unwrap());
    command.envs(profile.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.env("AWS_CA_BUNDLE", folder.data.join("client/ca.pem"));
    command.env("HOME", folder.temporary.path()).args(arguments);
    folder.here(command)
}

#[test]
fn cosign_signs_with_kms_and_verifies_what_we_attest() {
    let Some(place) = peer("cosign") else { return };
    let folder = Folder::new();
    let server = folder.serve();
    let client = |arguments: &[&str]| folder.client_at(&server, arguments);
    let cosign = |arguments: &[&str]| cosign(&folder, &place, arguments);
    succeed(&mut client(&[
        "sign",
        "setup",
        "--name",
        "ci",
        "--algorithm",
        "ecdsa-p256",
        "--create-ca",
    ]));
    folder.write("app.bin", b"the program");
    folder.write("other.bin", b"another program");
    let key = format!("awskms://localhost:{}/alias/ci", server.port);
    let public = succeed(&mut cosign(&["public-key", "--key", &key]));
    folder.write("ci.pub", public.as_bytes());

    // Its signature by our key; with our key it verifies, too.
    let sign = [
        "sign-blob",
        "--yes",
        "--key",
        &key,
        "--tlog-upload=false",
        "--output-signature",
        "app.sig",
        "app.bin",
    ];
    succeed(&mut cosign(&sign));
    for known in [key.as_str(), "ci.pub"] {
        let verify = |file: &str| {
            cosign(&[
                "verify-blob",
                "--key",
                known,
                "--insecure-ignore-tlog",
                "--signature",
                "app.sig",
                file,
            ])
        };
        succeed(&mut verify("app.bin"));
        fail(&mut verify("other.bin"), 1);
    }

    // Our attestation.
    let attest =
        ["attest", "--subject", "app.bin", "--key", "alias/ci", "--type", "slsa-provenance"];
    let more =
        ["--builder", "https://ci.example/1", "--build-type", "urn:x", "--out", "ours.jsonl"];
    succeed(client(&attest).args(more));
    let verify = |signature: &str, file: &str| {
        cosign(&[
            "verify-blob-attestation",
            "--key",
            "ci.pub",
            "--insecure-ignore-tlog",
            "--type",
            "slsaprovenance1",
            "--signature",
            signature,
            file,
        ])
    };
    succeed(&mut verify("ours.jsonl", "app.bin"));
    fail(&mut verify("ours.jsonl", "other.bin"), 1);

    // Its attestation by our key, which our certificate makes somebody's.
    let ours: Value =
        serde_json::from_slice(&std::fs::read(folder.path("ours.jsonl")).unwrap()).unwrap();
    folder.write("ci.pem", ours["signatures"][0]["cert"].as_str().unwrap().as_bytes());
    folder.write("predicate.json", br#"{"buildDefinition": {"buildType": "urn:x", "externalParameters": {}}, "runDetails": {"builder": {"id": "urn:them"}}}"#);
    let attest = [
        "attest-blob",
        "--yes",
        "--key",
        &key,
        "--tlog-upload=false",
        "--type",
        "slsaprovenance1",
        "--predicate",
        "predicate.json",
        "--output-signature",
        "theirs.jsonl",
        "app.bin",
    ];
    succeed(&mut cosign(&attest));
    let mut verify = outlast();
    verify.args([
        "verify",
        "--subject",
        "app.bin",
        "--attestation",
        "theirs.jsonl",
        "--trust",
        "ci-root.pem",
    ]);
    let said = succeed(folder.here(verify).args(["--certificates", "ci.pem"]));
    assert!(said.contains("builder urn:them"), "{said}");
}

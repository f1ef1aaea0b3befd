//! Uploads that the server signs, with OpenSSH's client, and OpenSSL's verifier.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::path::PathBuf;
use std::process::Command;

use outlast_api::aws::kms::{DescribeKey, DisableKey, EnableKey};
use outlast_crypto::digests::sha256;
use outlast_pki::cms::verify::SignedMessage;
use serde_json::{Value, json};

use crate::common::peers::{openssl, peer};
use crate::common::{Folder, fail, outlast, run, stderr, succeed};
use crate::sftp::{World, openssh, random};

const KEY: &str = "arn:aws:kms:us-east-1:123456789012:alias/uploads";
/// Where the signature of a content is.
fn signature(world: &World, content: &[u8]) -> PathBuf {
    let sha512 = outlast_crypto::digests::Digest::by_name("sha512").unwrap();
    let name = format!("{}.p7s", hex::encode(sha512.digest(content)));
    world.folder.data.join("upload-signatures").join(name)
}

/// Verifies a file as it is in the bucket.
fn verify(world: &World, name: &str) -> Command {
    let path = world.bucket(&format!("files/alice/{name}"));
    let mut command = outlast();
    command.arg("verify").arg(&path).arg("--signature");
    command.arg(signature(world, &std::fs::read(&path).unwrap()));
    command.arg("--trust").arg(world.folder.path("uploads-root.pem"));
    command
}

fn names(world: &World) -> Vec<String> {
    let entries = std::fs::read_dir(world.bucket("files/alice")).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[track_caller]
fn refused(world: &World, command: &str, why: &str) {
    let output = world.sftp("alice", &[], &[command]);
    let text = stderr(&output);
    assert!(!output.status.success() && text.contains(why), "{command}: {text}");
}

#[test]
fn an_upload_appears_with_a_signature_that_others_verify_or_not_at_all() {
    let Some(tools) = openssh() else { return };
    let folder = Folder::new();
    let config = format!("[sftp_uploads]\nsign = \"{KEY}\"\n");
    let config = folder.write("sign.toml", config.as_bytes()).display().to_string();
    let world = World::new(&tools, "2026-11", &["--config", &config]);
    world.at_home("alice", "all");
    let content = random(700_000);
    world.folder.write("report", &content);
    world.folder.write("other", b"other");
    // There is no key yet.
    refused(&world, "put report", "Failure");
    assert_eq!(names(&world), [] as [&str; 0]);
    let setup = ["sign", "setup", "--name", "uploads", "--create-ca"];
    succeed(&mut world.folder.client_at(&world.server, &setup));
    world.works("alice", &["put report", "put -f other"]);
    assert_eq!(names(&world), ["other", "report"]);
    let said = succeed(&mut verify(&world, "report"));
    assert!(said.contains("CN=uploads") || said.contains("uploads"), "{said}");
    succeed(&mut verify(&world, "other"));
    if let Some(peer) = peer("openssl") {
        let mut cms = openssl(&peer, &["cms", "-verify", "-binary", "-inform", "DER"]);
        cms.args(["-purpose", "any", "-out", "/dev/null", "-in"]);
        cms.arg(signature(&world, &content)).arg("-content");
        cms.arg(world.bucket("files/alice/report")).arg("-CAfile");
        succeed(cms.arg(world.folder.path("uploads-root.pem")));
    }
    // The signature is that of the content, whatever the file is called, and of no other content.
    world.works("alice", &["rename report final"]);
    succeed(&mut verify(&world, "final"));
    let other = world.bucket("files/alice/other");
    let mut wrong = outlast();
    wrong.arg("verify").arg(&other).arg("--signature").arg(signature(&world, &content));
    let text = fail(wrong.arg("--trust").arg(world.folder.path("uploads-root.pem")), 3);
    assert!(text.contains("its digest does not match"), "{text}");
    // The trail says who sent what, before the signature was there.
    let events = world.folder.events();
    let uploads: Vec<_> = events
        .iter()
        .filter(|event| event["eventName"] == "Sign")
        .map(|event| &event["additionalEventData"]["upload"])
        .filter(|upload| upload.is_object())
        .collect();
    assert_eq!(uploads.len(), 2, "{uploads:?}");
    let (report, other) = (uploads[0], uploads[1]);
    let sha512 = outlast_crypto::digests::Digest::by_name("sha512").unwrap();
    assert_eq!(report["user"], "alice");
    assert_eq!((&report["name"], &report["size"]), (&json!("report"), &json!("700000")));
    assert_eq!(report["value"], json!(hex::encode(sha512.digest(&content))));
    assert_eq!(other["name"], "other");
    // The owner of the key sees them, with the signature of the key's certificate request.
    let monitor = ["log", "monitor", "--key", "alias/uploads", "--grace", "0", "--output", "json"];
    let output = run(&mut world.folder.client_at(&world.server, &monitor));
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["without_digest"], 0);
    let made = found["made_without_the_log"].as_array().unwrap();
    assert_eq!(made.len(), 3, "{found:#}");
    for name in [&content[..], b"other"] {
        let message = std::fs::read(signature(&world, name)).unwrap();
        let message = SignedMessage::parse(&message).unwrap();
        let digest = hex::encode(sha256(&message.claims()[0].value));
        assert!(made.iter().any(|one| one["signature_sha256"] == digest.as_str()), "{found:#}");
    }
    // Neither with a key that is disabled, nor for the owner who objects by a policy.
    let key = world.call(async |session| {
        let found = session.call::<DescribeKey>(json!({ "KeyId": "alias/uploads" })).await;
        let id = found.unwrap().unwrap().key_metadata.key_id;
        session.call::<DisableKey>(json!({ "KeyId": id })).await.unwrap().unwrap();
        id
    });
    let before = names(&world);
    refused(&world, "put other late", "Failure");
    refused(&world, "put -f other late", "");
    refused(&world, "put report other", "Failure");
    assert_eq!(names(&world), before);
    assert_eq!(std::fs::read(world.bucket("files/alice/other")).unwrap(), b"other");
    world.call(async |session| {
        session.call::<EnableKey>(json!({ "KeyId": key })).await.unwrap().unwrap();
    });
    let role = "role/aws-service-role/uploads.outlast/OutlastServiceRoleForUploads";
    let policy = json!({ "Version": "2012-10-17", "Statement": [
        { "Effect": "Allow", "Principal": { "AWS": "arn:aws:iam::123456789012:root" }, "Action": "kms:*", "Resource": "*" },
        { "Effect": "Deny", "Principal": { "AWS": format!("arn:aws:iam::123456789012:{role}") },
          "Action": "kms:Sign", "Resource": "*" }] });
    let put = |policy: Value| {
        world.call(async |session| {
            let input = json!({ "KeyId": key, "Policy": policy.to_string() });
            session.call::<outlast_api::aws::kms::PutKeyPolicy>(input).await.unwrap().unwrap();
        });
    };
    put(policy);
    refused(&world, "put other late", "Failure");
    assert_eq!(names(&world), before);
    let policy = json!({ "Version": "2012-10-17", "Statement": [
        { "Effect": "Allow", "Principal": { "AWS": "arn:aws:iam::123456789012:root" }, "Action": "kms:*", "Resource": "*" }] });
    put(policy);
    world.works("alice", &["put other late", "rm other"]);
    succeed(&mut verify(&world, "late"));
}

#[test]
fn a_key_that_is_none_and_a_storage_that_cannot_are_refused_at_the_start() {
    let folder = Folder::new();
    let secret = folder.write("secret", b"s").display().to_string();
    for (text, why) in [
        ("[sftp_uploads]\nsign = \"alias/uploads\"\n", "is not the ARN of a KMS key or alias"),
        (
            &*format!(
                "[sftp_uploads]\nsign = \"{KEY}\"\n[buckets]\nendpoint = \"http://127.0.0.1:9\"\naccess_key_id = \"a\"\nsecret_access_key_file = \"{secret}\"\n"
            ),
            "in folders only",
        ),
    ] {
        let config = folder.write("bad.toml", text.as_bytes());
        let mut server = outlast();
        server.args([
            "server",
            "--listen",
            "127.0.0.1:0",
            "--sftp-listen",
            "127.0.0.1:0",
            "--data",
        ]);
        let said = fail(server.arg(&folder.data).arg("--config").arg(config), 1);
        assert!(said.contains(why) && said.contains("sftp_uploads.sign"), "{said}");
    }
}

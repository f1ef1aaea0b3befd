//! `outlast sign --oci` and `outlast verify --oci`: images in layouts on disk.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use outlast_crypto::digests::sha256;
use serde_json::{Value, json};

use crate::common::{Folder, fail, outlast, run, stderr, succeed};

fn name(bytes: &[u8]) -> String {
    let hex: String = sha256(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn blob(layout: &Path, digest: &str) -> PathBuf {
    layout.join("blobs").join(digest.replace(':', "/"))
}

/// Writes a blob; returns its descriptor.
fn put(layout: &Path, kind: &str, bytes: &[u8]) -> Value {
    let digest = name(bytes);
    std::fs::write(blob(layout, &digest), bytes).unwrap();
    json!({ "mediaType": kind, "digest": digest, "size": bytes.len() })
}

/// An image with one layer; returns the digest of its manifest.
pub fn image(layout: &Path, tag: &str, content: &[u8]) -> String {
    std::fs::create_dir_all(layout.join("blobs/sha256")).unwrap();
    std::fs::write(layout.join("oci-layout"), r#"{"imageLayoutVersion": "1.0.0"}"#).unwrap();
    let config = put(layout, "application/vnd.oci.image.config.v1+json", b"{\"os\":\"linux\"}");
    let layer = put(layout, "application/vnd.oci.image.layer.v1.tar", content);
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifest =
        json!({ "schemaVersion": 2, "mediaType": kind, "config": config, "layers": [layer] });
    let mut entry = put(layout, kind, manifest.to_string().as_bytes());
    entry["annotations"] = json!({ "org.opencontainers.image.ref.name": tag });
    let mut index = index(layout);
    index["manifests"].as_array_mut().unwrap().push(entry.clone());
    std::fs::write(layout.join("index.json"), index.to_string()).unwrap();
    entry["digest"].as_str().unwrap().to_owned()
}

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Makes a blob the only image of a layout, `v1`.
fn tag(layout: &Path, mut entry: Value) {
    entry["annotations"] = json!({ "org.opencontainers.image.ref.name": "v1" });
    let index = json!({ "schemaVersion": 2, "manifests": [entry] });
    std::fs::write(layout.join("index.json"), index.to_string()).unwrap();
}

fn index(layout: &Path) -> Value {
    match std::fs::read(layout.join("index.json")) {
        Ok(bytes) => serde_json::from_slice(&bytes).unwrap(),
        Err(_) => json!({ "schemaVersion": 2, "manifests": [] }),
    }
}

fn copy(from: &Path, to: &Path) {
    succeed(Command::new("cp").arg("-R").arg(from).arg(to));
}

#[test]
fn images_are_signed_by_their_manifest_and_checked_to_the_last_blob() {
    let folder = Folder::new();
    let server = folder.serve();
    let client = |arguments: &[&str]| folder.client_at(&server, arguments);
    let verify = |reference: &str, root: &str| {
        let mut command = outlast();
        command.args(["verify", "--oci", reference, "--trust", root]);
        folder.here(command)
    };
    for (signer, algorithm) in [("release", "ml-dsa-65"), ("ci", "ecdsa-p256")] {
        let setup = ["sign", "setup", "--name", signer, "--algorithm", algorithm, "--create-ca"];
        succeed(&mut client(&setup));
    }
    let layout = folder.path("app");
    let digest = image(&layout, "v1", b"layer 1");
    let text = fail(&mut verify("app", "release-root.pem"), 3);
    assert!(text.contains("the image has no signature") && text.contains("--oci"), "{text}");
    succeed(&mut client(&["sign", "--oci", "app", "--key", "alias/release", "--dry-run"]));
    let said = succeed(&mut client(&["sign", "--oci", "app", "--key", "alias/release"]));
    assert!(said.contains(&format!("signed app ({digest}): sha256:")), "{said}");
    let said = succeed(&mut verify("app", "release-root.pem"));
    assert!(said.contains("verified app: ML_DSA_65 by \"CN=release\""), "{said}");
    // As OCI 1.1 wants it: `subject` in the manifest, the artifact's type also in the index.
    let entry = index(&layout)["manifests"][1].clone();
    assert_eq!(entry["artifactType"], "application/pkcs7-signature");
    let bytes = std::fs::read(blob(&layout, entry["digest"].as_str().unwrap())).unwrap();
    let artifact: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(artifact["subject"]["digest"], digest.as_str());
    assert_eq!(artifact["config"]["digest"], name(b"{}"));
    assert_eq!(artifact["layers"].as_array().unwrap().len(), 1);

    // A second image, and a second signature of the first; each verifier finds the one that it trusts.
    image(&layout, "v2", b"layer 2");
    let text = fail(&mut verify("app", "release-root.pem"), 2);
    assert!(text.contains("there are 2 such images") && text.contains("v1, v2"), "{text}");
    succeed(&mut client(&["sign", "--oci", "app:v1", "--key", "alias/ci"]));
    let output = run(&mut verify("app:v1", "release-root.pem"));
    assert!(output.status.success() && stderr(&output).contains("warning: ignored sha256:"));
    succeed(&mut verify(&format!("app@{digest}"), "ci-root.pem"));
    let text = fail(&mut verify("app:v2", "ci-root.pem"), 3);
    assert!(text.contains("the image has no signature"), "{text}");
    let policy = "[[rule]]\nfiles = \"app:v*\"\ntrust = \"release-root.pem\"\nalgorithms = \"post-quantum\"\n";
    folder.write("policy.toml", policy.as_bytes());
    let judged = |reference: &str| {
        let mut command = outlast();
        command.args(["verify", "--oci", reference, "--policy", "policy.toml"]);
        folder.here(command)
    };
    succeed(&mut judged("app:v1"));
    let text = fail(&mut judged(&format!("app@{digest}")), 3);
    assert!(text.contains("no rule of policy.toml is for this file"), "{text}");

    // Attacks.
    let layer = name(b"layer 1");
    let signature = artifact["layers"][0]["digest"].as_str().unwrap().to_owned();
    let manifest = blob(&layout, &digest);
    let original = std::fs::read(&manifest).unwrap();
    let other = put(&layout, "application/vnd.oci.image.layer.v1.tar", b"layer 3");
    for (what, change, reason) in [
        (
            "layer",
            &(|at: &Path| std::fs::write(blob(at, &layer), b"layer X").unwrap()) as &dyn Fn(&Path),
            "not the digest and size",
        ),
        ("gone", &|at| std::fs::remove_file(blob(at, &layer)).unwrap(), "No such file"),
        (
            "manifest",
            &|at| std::fs::write(blob(at, &digest), b"{}").unwrap(),
            "not the digest and size",
        ),
        (
            "signature",
            &|at| std::fs::write(blob(at, &signature), b"x").unwrap(),
            "not the digest and size",
        ),
        (
            "moved",
            &|at| {
                // Another image under the tag; the signature is made to refer to it.
                let text = String::from_utf8(original.clone()).unwrap();
                let text = text.replace(&layer, other["digest"].as_str().unwrap());
                let evil = put(at, "application/vnd.oci.image.manifest.v1+json", text.as_bytes());
                let mut artifact = artifact.clone();
                artifact["subject"] = evil.clone();
                let mut entry = put(
                    at,
                    "application/vnd.oci.image.manifest.v1+json",
                    artifact.to_string().as_bytes(),
                );
                entry["artifactType"] = json!("application/pkcs7-signature");
                let mut evil = evil;
                evil["annotations"] = json!({ "org.opencontainers.image.ref.name": "v1" });
                let index = json!({ "schemaVersion": 2, "manifests": [evil, entry] });
                std::fs::write(at.join("index.json"), index.to_string()).unwrap();
            },
            "its digest does not match",
        ),
        (
            "path",
            &|at| {
                let text = index(at).to_string().replace(&digest, "sha256:../../../etc/passwd");
                std::fs::write(at.join("index.json"), text).unwrap();
            },
            "descriptor is not valid",
        ),
        (
            "twice",
            &|at| {
                let text = index(at).to_string().replacen('{', "{\"manifests\": [], ", 1);
                std::fs::write(at.join("index.json"), text).unwrap();
            },
            "occurs twice",
        ),
        (
            "both",
            &|at| {
                let value = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [], "layers": [] });
                tag(at, put(at, INDEX, value.to_string().as_bytes()));
            },
            "a manifest and an index at once",
        ),
        (
            "type",
            &|at| tag(at, put(at, INDEX, &original)),
            "media type is not that by which it is named",
        ),
        (
            "bomb",
            &|at| {
                // Indexes inside indexes: 10,000 to the power of three layers.
                let config = put(at, "application/vnd.oci.image.config.v1+json", b"{}");
                let layers = vec![config.clone(); 10_000];
                let inner = json!({ "schemaVersion": 2, "config": config, "layers": layers });
                let mut entry = put(
                    at,
                    "application/vnd.oci.image.manifest.v1+json",
                    inner.to_string().as_bytes(),
                );
                for _ in 0..2 {
                    let outer = json!({ "schemaVersion": 2, "manifests": vec![entry; 10_000] });
                    entry = put(at, INDEX, outer.to_string().as_bytes());
                }
                tag(at, entry);
            },
            "the image has no signature",
        ),
    ] {
        let attacked = folder.path(what);
        copy(&layout, &attacked);
        change(&attacked);
        let output = run(&mut verify(&format!("{what}:v1"), "release-root.pem"));
        let text = stderr(&output);
        assert!(!output.status.success() && text.contains(reason), "{what}: {text}");
    }
    // Somebody who may add artifacts can add broken ones: they hide none that is good.
    copy(&layout, &folder.path("broken"));
    let ci = index(&layout)["manifests"][3]["digest"].as_str().unwrap().to_owned();
    std::fs::write(blob(&folder.path("broken"), &ci), b"x").unwrap();
    let output = run(&mut verify("broken:v1", "release-root.pem"));
    let text = stderr(&output);
    assert!(output.status.success() && text.contains("warning: ignored sha256:"), "{text}");
    let text = fail(&mut verify("broken:v1", "ci-root.pem"), 3);
    assert!(text.contains("not the digest and size"), "{text}");
    let text = fail(&mut client(&["sign", "--oci", "nothing", "--key", "alias/ci"]), 1);
    assert!(text.contains("an OCI image layout is a folder"), "{text}");
}

fn blobs(layout: &Path) -> usize {
    let names = std::fs::read_dir(layout.join("blobs/sha256")).unwrap();
    // Not those that are being written.
    names.filter(|name| name.as_ref().unwrap().file_name().len() == 64).count()
}

#[test]
fn signatures_that_are_made_at_the_same_time_are_all_kept() {
    let folder = Folder::new();
    let server = folder.serve();
    let setup = ["sign", "setup", "--name", "ci", "--algorithm", "ecdsa-p256", "--create-ca"];
    succeed(&mut folder.client_at(&server, &setup));
    let layout = folder.path("app");
    image(&layout, "v1", b"layer 1");
    let sign = || {
        let mut command =
            folder.client_at(&server, &["sign", "--oci", "app:v1", "--key", "alias/ci"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let ends = |child: std::process::Child| {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    };
    let entries = || index(&layout)["manifests"].as_array().unwrap().len();

    // As long as somebody else changes the index, its entry waits. The blobs are there already.
    let held = File::open(&layout).unwrap();
    held.lock().unwrap();
    let mut one = sign();
    let end = Instant::now() + Duration::from_secs(60);
    while blobs(&layout) < 6 {
        assert!(Instant::now() < end, "the blobs are not written");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    assert!(one.try_wait().unwrap().is_none() && entries() == 1);
    image(&layout, "v2", b"layer 2");
    held.unlock().unwrap();
    ends(one);
    assert_eq!(entries(), 3);

    let many: Vec<_> = (0..6).map(|_| sign()).collect();
    many.into_iter().for_each(ends);
    assert_eq!(entries(), 9);
    let verify = |reference: &str| {
        let mut command = outlast();
        command.args(["verify", "--oci", reference, "--trust", "ci-root.pem"]);
        folder.here(command)
    };
    let said = succeed(&mut verify("app:v1"));
    assert!(said.contains("verified app:v1: "), "{said}");
    fail(&mut verify("app:v2"), 3);

    // Some programs copy artifacts without the type in the index.
    let mut plain = index(&layout);
    for entry in plain["manifests"].as_array_mut().unwrap() {
        entry.as_object_mut().unwrap().remove("artifactType");
    }
    std::fs::write(layout.join("index.json"), plain.to_string()).unwrap();
    succeed(&mut verify("app:v1"));
    fail(&mut verify("app:v2"), 3);

    // No more signatures than verifiers read.
    let list = plain["manifests"].as_array_mut().unwrap();
    let last = list.last().unwrap().clone();
    list.extend(std::iter::repeat_n(last, 64 - 7));
    std::fs::write(layout.join("index.json"), plain.to_string()).unwrap();
    succeed(&mut verify("app:v1"));
    let sign = ["sign", "--oci", "app:v1", "--key", "alias/ci"];
    let text = fail(&mut folder.client_at(&server, &sign), 1);
    assert!(text.contains("has 64 signatures already") && text.contains("hint: "), "{text}");
    assert_eq!(index(&layout), plain);
}

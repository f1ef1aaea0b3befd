//! `outlast sign setup`: from a new server to a signature in few commands.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::process::Command;

use serde_json::Value;

use crate::common::{Folder, Server, fail, outlast, succeed};

struct Scene {
    folder: Folder,
    server: Server,
}

impl Scene {
    fn new() -> Self {
        let folder = Folder::new();
        let server = folder.serve();
        Self { folder, server }
    }

    fn run(&self, arguments: &[&str]) -> Command {
        self.folder.client_at(&self.server, arguments)
    }

    fn setup(&self, arguments: &[&str]) -> Command {
        self.run(&[&["sign", "setup"][..], arguments].concat())
    }
}

fn verify(scene: &Scene, file: &str, trust: &str) -> String {
    let mut command = outlast();
    command.arg("verify").arg(scene.folder.path(file)).arg("--trust").arg(scene.folder.path(trust));
    succeed(&mut command)
}

#[test]
fn a_key_is_made_once_and_its_certificate_renewed() {
    let scene = Scene::new();
    let text = fail(&mut scene.setup(&["--name", "release"]), 1);
    assert!(text.contains("no active CA suits") && text.contains("--create-ca"), "{text}");
    let said = succeed(&mut scene.setup(&["--name", "release", "--create-ca"]));
    for words in [
        "made the root \"release Root\"",
        "made the key alias/release (ML_DSA_65)",
        "issued a certificate of alias/release for \"CN=release\"",
        "sign:   outlast sign FILE --key alias/release",
        "verify: outlast verify FILE --trust release-root.pem",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    scene.folder.write("one", b"one");
    succeed(&mut scene.run(&["sign", "one", "--key", "alias/release"]));
    verify(&scene, "one", "release-root.pem");
    // Again: the same key and the same CA, another certificate.
    let json =
        succeed(&mut scene.setup(&["--name", "release", "--output", "json", "--days", "90"]));
    let value: Value = serde_json::from_str(&json).unwrap();
    let steps = value["steps"].to_string();
    assert!(steps.contains("used the key alias/release") && !steps.contains("made"), "{steps}");
    assert_eq!(value["certificates"].as_array().unwrap().len(), 1);
    scene.folder.write("two", b"two");
    succeed(&mut scene.run(&["sign", "two", "--key", "alias/release"]));
    verify(&scene, "two", "release-root.pem");
    let of = |file: &str| {
        let bytes = std::fs::read(scene.folder.path(file)).unwrap();
        let read = outlast_pki::cms::verify::SignedMessage::parse(&bytes).unwrap();
        read.claims()[0].certificate.clone().unwrap()
    };
    let (one, two) = (of("one.p7s"), of("two.p7s"));
    assert_eq!(one.public_key().unwrap(), two.public_key().unwrap());
    assert_ne!(one.serial(), two.serial());
    // Mistakes.
    let text = fail(&mut scene.setup(&["--name", "release", "--algorithm", "ml-dsa-87"]), 2);
    assert!(text.contains("is a key of type ML_DSA_65") && text.contains("hint: "), "{text}");
    let text = fail(&mut scene.setup(&["--name", "x", "--days", "4000"]), 2);
    assert!(text.contains("4000"), "{text}");
    let text = fail(&mut scene.setup(&["--name", "x", "--days", "3000"]), 1);
    assert!(text.contains("for 3000 days") && text.contains("--days"), "{text}");
    let text = fail(&mut scene.setup(&["--name", "x", "--ca", "arn:none"]), 1);
    assert!(text.contains("there is no CA arn:none"), "{text}");
    // A second CA that suits: which one is not guessed.
    let other = ["--name", "other", "--algorithm", "ecdsa-p256", "--create-ca"];
    succeed(&mut scene.setup(&other));
    let said = succeed(&mut scene.setup(&["--name", "third"]));
    assert!(said.contains("release Code Signing CA"), "{said}");
}

#[test]
fn a_dual_key_signs_both_ways() {
    let scene = Scene::new();
    let dual = ["--name", "release", "--algorithm", "dual", "--create-ca"];
    let said = succeed(&mut scene.setup(&dual));
    assert!(said.contains("made the key alias/release-classical (ECC_NIST_P384)"), "{said}");
    scene.folder.write("file", b"content");
    let sign = ["sign", "file", "--key", "alias/release", "--classical-copy"];
    succeed(&mut scene.run(&sign));
    let said = verify(&scene, "file", "release-root.pem");
    assert_eq!(said.lines().count(), 2, "{said}");
    // One digest for both.
    let bytes = std::fs::read(scene.folder.path("file.p7s")).unwrap();
    let read = outlast_pki::cms::verify::SignedMessage::parse(&bytes).unwrap();
    let names: Vec<_> = read.digests().unwrap().iter().map(|row| row.name).collect();
    assert_eq!(names, ["sha384"]);
    let mut copy = outlast();
    copy.arg("verify").arg(scene.folder.path("file")).arg("--signature");
    copy.arg(scene.folder.path("file.classical.p7s")).arg("--trust");
    let said = succeed(copy.arg(scene.folder.path("release-root.pem")));
    assert_eq!(said.lines().count(), 1, "{said}");
    let text = fail(&mut scene.setup(&["--name", "release"]), 2);
    assert!(text.contains("is the key of a dual signature"), "{text}");
}

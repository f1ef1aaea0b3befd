//! What `outlast sign` checks before it signs, and what it can be given to sign.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use common::authority::{Authority, Order, root, subordinate};
use common::{Folder, Server, fail, outlast, run, stderr, stdout, succeed};
use outlast_pki::certificate::Certificate;
use outlast_testing::until;
use serde_json::json;

/// A server with an authority, and a key with its certificate, PEM with its chain.
pub struct Scene {
    pub folder: Folder,
    pub server: Server,
    authority: Authority,
    key: String,
    certificate: PathBuf,
    /// PEM.
    pub root: PathBuf,
}

pub fn scene() -> Scene {
    let folder = Folder::new();
    let server = folder.serve();
    let revocation = json!({
        "CrlConfiguration": { "Enabled": true, "ExpirationInDays": 7 },
        "OcspConfiguration": { "Enabled": true },
    });
    let algorithms = ("ML_DSA_44", "ML_DSA_44");
    let endpoint = format!("https://localhost:{}", server.port);
    let (authority, key, certificate, top) = common::runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let top = root(&mut session, algorithms, "Root", Some(&revocation)).await;
        let sub = subordinate(&mut session, &top, algorithms, "Code", Some(&revocation)).await;
        let new = json!({ "KeySpec": "ML_DSA_44", "KeyUsage": "SIGN_VERIFY" });
        type Create = outlast_api::ops::kms::create_key::CreateKey;
        let key = session.call::<Create>(new).await.unwrap().unwrap().key_metadata.arn;
        let mut ask = folder.client(&["cert", "request", "--key", &key, "--subject", "CN=Release"]);
        ask.args(["--endpoint-url", &endpoint]);
        let csr = tokio::task::block_in_place(|| succeed(&mut ask));
        let template = "CodeSigningCertificate";
        let order = Order { template, csr: csr.as_bytes(), passthrough: None, days: 30 };
        let issued = sub.issue(&mut session, order).await;
        let pem = format!("{}\n{}", issued.certificate.trim(), issued.chain);
        let certificate = folder.write("release.pem", pem.as_bytes());
        let top = folder.write("root.pem", top.certificate.as_bytes());
        (sub, key, certificate, top)
    });
    Scene { folder, server, authority, key, certificate, root: top }
}

impl Scene {
    pub fn sign(&self) -> Command {
        let mut command = self.folder.client(&["sign", "--key", &self.key, "--certificate"]);
        command.arg(&self.certificate);
        command.args(["--endpoint-url", &format!("https://localhost:{}", self.server.port)]);
        command
    }

    /// Waits until a file's signature is older than a second: the times of signatures and revocations have whole
    /// seconds.
    pub fn until_past(&self, signature: &str) {
        let signed = std::fs::metadata(self.folder.path(signature)).unwrap().modified().unwrap();
        until("another second", || signed.elapsed().is_ok_and(|past| past.as_millis() > 1100));
    }

    pub fn revoke(&self, reason: &str) {
        let pem = std::fs::read(&self.certificate).unwrap();
        let leaf = outlast_pki::pem::read_certificates(&pem).unwrap().remove(0);
        let leaf = Certificate::parse(&leaf).unwrap();
        common::runtime().block_on(async {
            let mut session = self.server.session().await.unwrap();
            self.authority.revoke(&mut session, &hex::encode(leaf.serial()), reason).await;
        });
    }
}

#[test]
fn a_revoked_certificate_signs_nothing() {
    let scene = scene();
    let file = scene.folder.write("release.bin", b"release");
    let target = scene.folder.path("release.bin.p7s");
    succeed(scene.sign().arg(&file));
    std::fs::remove_file(&target).unwrap();
    scene.revoke("SUPERSEDED");
    // The CA's responder may be busy for a moment.
    until("an answer of the responder", || {
        run(scene.sign().arg(&file).arg("--dry-run")).status.code() == Some(3)
    });
    let text = fail(scene.sign().arg(&file), 3);
    assert!(text.contains("nothing is signed: \"CN=Release\": it was revoked at"), "{text}");
    assert!(text.contains("(superseded)") && text.contains("hint: "), "{text}");
    assert!(!target.exists());
    fail(scene.sign().arg(&file).args(["--revocation", "required"]), 3);
    succeed(scene.sign().arg(&file).args(["--revocation", "off"]));
}

#[test]
fn a_status_that_cannot_be_had_is_a_warning_unless_it_is_required() {
    let mut scene = scene();
    let file = scene.folder.write("release.bin", b"release");
    scene.server.kill();
    // The same store on other ports: the URLs in the certificates lead nowhere.
    scene.server = scene.folder.serve();
    let output = run(scene.sign().arg(&file));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stderr(&output);
    assert!(text.contains("warning: not known to be revoked or not: \"CN=Release\""), "{text}");
    let text = fail(scene.sign().arg(&file).args(["--force", "--revocation", "required"]), 3);
    assert!(text.contains("its revocation status cannot be determined"), "{text}");
}

#[test]
fn a_signature_is_not_overwritten_unasked_and_a_dry_run_writes_nothing() {
    let scene = scene();
    let (one, two) = (scene.folder.write("one", b"1"), scene.folder.write("two", b"2"));
    let (first, second) = (scene.folder.path("one.p7s"), scene.folder.path("two.p7s"));
    let said = succeed(scene.sign().args([&one, &two]).arg("--dry-run"));
    assert!(said.starts_with("would sign ") && said.lines().count() == 2, "{said}");
    assert!(!first.exists() && !second.exists());
    let json = succeed(scene.sign().arg(&one).args(["--dry-run", "--output", "json"]));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value[0]["outcome"], "would-sign");
    let text = fail(scene.sign().arg(scene.folder.path("none")).arg("--dry-run"), 1);
    assert!(text.contains("none: No such file"), "{text}");
    // If one signature is there, none is made.
    std::fs::write(&second, "kept").unwrap();
    let text = fail(scene.sign().args([&one, &two]), 1);
    assert!(text.contains("nothing is signed: ") && text.contains("two.p7s: the file exists"));
    assert!(text.contains("--force"), "{text}");
    assert!(!first.exists() && std::fs::read(&second).unwrap() == b"kept");
    succeed(scene.sign().args([&one, &two]).arg("--force"));
    assert!(std::fs::read(&second).unwrap().len() > 1000);
}

/// A command with this standard input; its output.
fn with_input(command: &mut Command, input: &[u8]) -> std::process::Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn standard_input_and_folders_can_be_signed() {
    let scene = scene();
    let content = vec![7; 300_000];
    let file = scene.folder.write("release.bin", &content);
    let verify = |signature: &PathBuf| {
        let mut command = outlast();
        command.arg("verify").arg(&file).arg("--signature").arg(signature);
        succeed(command.arg("--trust").arg(&scene.root));
    };
    let output = with_input(scene.sign().arg("-"), &content);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    verify(&scene.folder.write("from-stdout.p7s", &output.stdout));
    let named = scene.folder.path("named.p7s");
    let output = with_input(scene.sign().args(["-", "--signature"]).arg(&named), &content);
    assert!(stdout(&output).starts_with("signed -: "), "{}", stdout(&output));
    verify(&named);
    let text = fail(scene.sign().args(["-", "--output", "json"]), 2);
    assert!(text.contains("--signature FILE"), "{text}");
    let text = fail(scene.sign().arg("-").arg(&file), 2);
    assert!(text.contains("signed alone"), "{text}");

    let tree = scene.folder.path("tree");
    std::fs::create_dir_all(tree.join("linux/deep")).unwrap();
    for name in ["a.bin", "notes.txt", "linux/b.bin", "linux/deep/c.so", "old.bin.p7s"] {
        std::fs::write(tree.join(name), name).unwrap();
    }
    let out = scene.folder.path("signatures");
    let recursive = |include: &[&str]| {
        let mut command = scene.sign();
        command.arg("--recursive").arg(&tree).arg("--output-dir").arg(&out);
        for pattern in include {
            command.args(["--include", pattern]);
        }
        command
    };
    let said = succeed(&mut recursive(&["*.bin", "linux/**/*.so"]));
    assert_eq!(said.lines().count(), 3, "{said}");
    for name in ["a.bin.p7s", "linux/b.bin.p7s", "linux/deep/c.so.p7s"] {
        assert!(out.join(name).exists(), "{name}");
    }
    assert_eq!(succeed(recursive(&[]).args(["--force", "--dry-run"])).lines().count(), 4);
    assert!(fail(&mut recursive(&["*.zip"]), 1).contains("there is no such file in it"));
    assert!(fail(&mut recursive(&["a**b"]), 2).contains("** is a whole part of a path"));
}

#[test]
fn many_files_are_verified_at_once_and_told_in_their_order() {
    let scene = scene();
    let names: Vec<_> = (0..24).map(|number| format!("file-{number}")).collect();
    let paths: Vec<_> =
        names.iter().map(|name| scene.folder.write(name, name.as_bytes())).collect();
    succeed(scene.sign().args(&paths));
    let verify = || {
        let mut command = outlast();
        command.arg("verify").args(&paths).arg("--trust").arg(&scene.root);
        command.args(["--output", "json"]);
        command
    };
    let told = |text: &str| -> Vec<(PathBuf, bool)> {
        let list: Vec<serde_json::Value> = serde_json::from_str(text).unwrap();
        let entry = |value: &serde_json::Value| {
            (value["file"].as_str().unwrap().into(), value["verified"].as_bool().unwrap())
        };
        list.iter().map(entry).collect()
    };
    let expected = |changed: &[usize]| -> Vec<_> {
        let entry = |(number, path): (usize, &PathBuf)| (path.clone(), !changed.contains(&number));
        paths.iter().enumerate().map(entry).collect()
    };
    assert_eq!(told(&succeed(&mut verify())), expected(&[]));
    let changed = [0, 7, 23];
    for number in changed {
        scene.folder.write(&names[number], b"changed");
    }
    let output = run(&mut verify());
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(told(&stdout(&output)), expected(&changed));
}

//! What a format does not have is refused, and not silently left out: proofs of a log, evidence records, timestamps and times
//! of signing, in JWS, attestations, images and what git has signed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::fs::File;
use std::process::Command;

use serde_json::Value;

use crate::common::{Folder, Server, fail, outlast, run, stdout, succeed};
use crate::oci::image;
use crate::sign_policy::conforms_to_schema;

/// A server with a signing key `alias/release`, and a file that is signed in each format.
struct Scene {
    folder: Folder,
    server: Server,
}

impl Scene {
    fn new() -> Self {
        let folder = Folder::new();
        let server = folder.serve();
        let scene = Self { folder, server };
        let setup = ["sign", "setup", "--name", "release", "--algorithm", "ml-dsa-65"];
        succeed(scene.client(&setup).arg("--create-ca"));
        for name in ["app.bin", "logged.bin"] {
            scene.folder.write(name, b"the program");
        }
        scene
    }

    fn client(&self, arguments: &[&str]) -> Command {
        self.folder.client_at(&self.server, arguments)
    }

    /// A verification of something that has no proof of a log.
    fn verify(&self, arguments: &[&str]) -> Command {
        let mut command = outlast();
        command.arg("verify").args(arguments);
        self.folder.here(command)
    }
}

const TRUST: [&str; 2] = ["--trust", "release-root.pem"];
const JWS: [&str; 3] = ["app.bin", "--signature", "app.bin.p7s"];
const IMAGE: [&str; 2] = ["--oci", "app"];
const ATTESTATION: [&str; 4] = ["--attestation", "app.jsonl", "--subject", "app.bin"];

fn rule(more: &str) -> String {
    format!(
        "[[rule]]\nname = \"all\"\nfiles = [\"**\", \"git:*\"]\ntrust = \"release-root.pem\"\n{more}\n"
    )
}

#[test]
fn a_log_that_is_asked_for_is_not_forgotten_for_other_formats() {
    let scene = Scene::new();
    let key = ["--key", "alias/release"];
    let sign = |arguments: &[&str]| {
        succeed(scene.client(&[&["sign"], arguments].concat()).args(key));
    };
    sign(&["logged.bin", "--log"]);
    let policy = succeed(&mut scene.client(&["log", "policy"]));
    scene.folder.write("log.policy", policy.as_bytes());
    // A thief of the permission hides the signature from the log by its format, under the usual name.
    sign(&["app.bin", "--format", "jws", "--signature", "app.bin.p7s"]);
    image(&scene.folder.path("app"), "v1", b"layer");
    sign(&["--oci", "app"]);
    let attest =
        ["attest", "--subject", "app.bin", "--out", "app.jsonl", "--type", "slsa-provenance"];
    let build =
        ["--build-type", "https://b.example/make", "--builder", "https://ci.example/runner"];
    succeed(scene.client(&attest).args(build).args(key));

    scene.folder.write("plain.toml", rule("").as_bytes());
    scene.folder.write("logged.toml", rule("log = \"log.policy\"").as_bytes());
    let (plain, logged) = (["--policy", "plain.toml"], ["--policy", "logged.toml"]);
    for format in [&JWS[..], &IMAGE] {
        succeed(scene.verify(format).args(TRUST));
        succeed(scene.verify(format).args(plain));
        let text = fail(scene.verify(format).args(logged), 3);
        assert!(text.contains("a proof that a log has it is asked for"), "{format:?}: {text}");
        assert!(text.contains("outlast sign --log"), "{format:?}: {text}");
    }
    let file = ["logged.bin"];
    let said = succeed(scene.verify(&file).args(logged));
    assert!(said.contains("logged logged.bin: entry 0 of "), "{said}");
    let text = fail(scene.verify(&JWS).args(TRUST).args(["--log-policy", "log.policy"]), 3);
    assert!(text.contains("a proof that a log has it is asked for"), "{text}");
    // Options that the format cannot have.
    for (option, value) in [
        ("--log-policy", "log.policy"),
        ("--log-proof", "logged.bin.tlog-proof"),
        ("--evidence", "e"),
    ] {
        for format in [&IMAGE[..], &ATTESTATION] {
            let text = fail(scene.verify(format).args(TRUST).args([option, value]), 2);
            assert!(text.contains(option) && text.contains("cannot be used with"), "{text}");
        }
    }
    for (option, value) in [("--log-proof", "logged.bin.tlog-proof"), ("--evidence", "e")] {
        let text = fail(scene.verify(&JWS).args(plain).args([option, value]), 2);
        assert!(text.contains(&format!("{option} is for CMS signatures")), "{text}");
    }
    // A rule for attestations cannot ask for a log at all.
    succeed(scene.verify(&ATTESTATION).args(TRUST));
    let attested = "predicate_type = \"slsa-provenance\"\n";
    scene.folder.write("attested.toml", rule(attested).as_bytes());
    succeed(scene.verify(&ATTESTATION).args(["--policy", "attested.toml"]));
    let wrong = rule(&format!("{attested}log = \"log.policy\""));
    scene.folder.write("wrong.toml", wrong.as_bytes());
    let text = fail(scene.verify(&ATTESTATION).args(["--policy", "wrong.toml"]), 1);
    assert!(text.contains("logs have signatures of files, and no attestations"), "{text}");
    // Neither has a commit a proof.
    let commit = scene.folder.write("commit", b"tree 0\nauthor a\n\nchange\n");
    let stdin = || File::open(&commit).unwrap();
    let signature = succeed(scene.client(&["git", "sign"]).args(key).stdin(stdin()));
    scene.folder.write("commit.sig", signature.as_bytes());
    let git = |policy: &[&str; 2]| {
        let mut command = outlast();
        command.args(["git", "verify", "commit.sig"]).args(policy).stdin(stdin());
        scene.folder.here(command)
    };
    succeed(&mut git(&plain));
    let text = fail(&mut git(&logged), 3);
    assert!(text.contains("there is none for commits and tags"), "{text}");
}

#[test]
fn what_a_format_cannot_have_is_not_signed_without() {
    let scene = Scene::new();
    image(&scene.folder.path("app"), "v1", b"layer");
    let index = std::fs::read(scene.folder.path("app/index.json")).unwrap();
    for option in [
        &["--log"][..],
        &["--timestamp", "http://127.0.0.1:1/tsa"],
        &["--timestamp-trust", "release-root.pem"],
        &["--timestamp-ca", "release-root.pem"],
    ] {
        let sign = |what: &[&str]| {
            let mut command = scene.client(&[&["sign"], what].concat());
            command.args(["--key", "alias/release"]).args(option);
            command
        };
        let text = fail(&mut sign(&["--oci", "app"]), 2);
        assert!(text.contains(option[0]) && text.contains("cannot be used with"), "{text}");
        let text = fail(&mut sign(&["app.bin", "--format", "jws"]), 2);
        assert!(text.contains(&format!("{} is for CMS signatures", option[0])), "{text}");
    }
    assert_eq!(std::fs::read(scene.folder.path("app/index.json")).unwrap(), index);
    assert!(!scene.folder.path("app.bin.jws").exists());

    // A JWS has no time: it is here now, and nobody says more.
    let jws = ["sign", "app.bin", "--format", "jws", "--signature", "app.bin.p7s"];
    succeed(scene.client(&jws).args(["--key", "alias/release"]));
    let json = |command: &mut Command| -> Value {
        let value =
            serde_json::from_str(&stdout(&run(command.args(["--output", "json"])))).unwrap();
        conforms_to_schema(&value);
        value
    };
    let value = json(scene.verify(&JWS).args(TRUST));
    let signer = &value[0]["signers"][0];
    assert_eq!(
        (&signer["time_source"], &signer["time_trusted"]),
        (&"present".into(), &false.into())
    );
    for (more, accepted, reason) in [
        ("", true, ""),
        ("validity = \"now\"", true, ""),
        ("validity = \"trusted-time\"", false, "asks for a trusted time"),
        ("not_before = 2020-01-01", false, "nothing says when it signed"),
    ] {
        scene.folder.write("policy.toml", rule(more).as_bytes());
        let mut command = scene.verify(&JWS);
        command.args(["--policy", "policy.toml"]);
        if accepted {
            succeed(&mut command);
        } else {
            let text = fail(&mut command, 3);
            assert!(text.contains(reason), "{more}: {text}");
        }
    }
    scene.folder.write("policy.toml", rule("validity = \"trusted-time\"").as_bytes());
    let value = json(scene.verify(&JWS).args(["--policy", "policy.toml", "--at", "now"]));
    let signer = &value[0]["signers"][0];
    assert_eq!(
        (&signer["time_source"], &signer["time_trusted"]),
        (&"verifier".into(), &true.into())
    );
}

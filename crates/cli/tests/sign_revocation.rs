//! Signing with embedded revocation information, and verification before and after a revocation, with a real CA.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::process::Command;

use outlast_pki::pem::read_certificates;
use outlast_testing::until;
use serde_json::Value;

use crate::common::{fail, outlast, run, stderr, stdout, succeed};
use crate::sign_before::{Scene, scene};

fn verify(scene: &Scene, file: &str, arguments: &[&str]) -> Command {
    let mut command = outlast();
    command.arg("verify").arg(scene.folder.path(file)).args(arguments);
    command.arg("--trust").arg(&scene.root);
    command
}

fn json(command: &mut Command) -> Value {
    serde_json::from_str(&stdout(&run(command.args(["--output", "json"])))).unwrap()
}

#[test]
fn what_is_embedded_outlives_the_ca_and_a_stolen_key_refuses_everything() {
    let mut scene = scene();
    for name in ["plain", "embedded"] {
        scene.folder.write(name, name.as_bytes());
    }
    succeed(scene.sign().arg(scene.folder.path("plain")));
    // A CA's CRL takes a moment.
    until("a CRL", || {
        let mut command = scene.sign();
        command.arg(scene.folder.path("embedded")).args(["--force", "--embed-revocation"]);
        run(&mut command).status.success() && {
            let signature = std::fs::read(scene.folder.path("embedded.p7s")).unwrap();
            let read = outlast_pki::cms::verify::SignedMessage::parse(&signature).unwrap();
            (read.embedded.crls.len(), read.embedded.ocsp.len()) == (2, 2)
        }
    });
    let unasked = ["--revocation", "off", "--embed-revocation", "--force", "--signature"];
    let other = scene.folder.path("other.p7s");
    succeed(scene.sign().arg(scene.folder.path("plain")).args(unasked).arg(&other));
    let said = succeed(&mut verify(&scene, "plain", &["--signature", other.to_str().unwrap()]));
    assert!(said.contains("not revoked as of"), "{said}");
    let said = succeed(&mut verify(&scene, "plain", &[]));
    assert!(said.contains("; revocation not checked"), "{said}");
    let said = succeed(&mut verify(&scene, "embedded", &[]));
    assert!(said.contains("not revoked as of") && said.contains("in the signature"), "{said}");
    let value = json(&mut verify(&scene, "embedded", &[]));
    assert_eq!(value[0]["revocation"], "good");
    let signer = &value[0]["signers"][0];
    assert_eq!(signer["time_source"], "signer's claim");
    assert_eq!(signer["revocation"]["certificates"][0]["source"], "OCSP response in the signature");
    assert_eq!(signer["chain"].as_array().unwrap().len(), 3);
    // With the network, from the CA.
    let said = succeed(&mut verify(&scene, "plain", &["--fetch", "--revocation", "required"]));
    assert!(said.contains("not revoked as of") && said.contains("OCSP response http://"), "{said}");
    let text = fail(&mut verify(&scene, "plain", &["--revocation", "required"]), 3);
    assert!(text.contains("cannot be determined") && text.contains("--fetch"), "{text}");

    scene.until_past("embedded.p7s");
    scene.revoke("KEY_COMPROMISE");
    until("an answer of the responder", || {
        run(&mut verify(&scene, "plain", &["--fetch"])).status.code() == Some(3)
    });
    // Without a trusted time nothing helps; what is embedded is older than the revocation.
    for name in ["plain", "embedded"] {
        let text = fail(&mut verify(&scene, name, &["--fetch"]), 3);
        assert!(text.contains("it was revoked at") && text.contains("keyCompromise"), "{text}");
        assert!(text.contains("only the signer claims"), "{text}");
    }
    succeed(&mut verify(&scene, "plain", &["--fetch", "--revocation", "off"]));
    // A rule that names the certificate alone refuses it, too, if the CA that revoked it is known.
    let chain = scene.folder.path("release.pem");
    let leaf = read_certificates(&std::fs::read(&chain).unwrap()).unwrap().remove(0);
    let pin = hex::encode(outlast_crypto::digests::sha256(&leaf));
    let rule = format!("[[rule]]\nfiles = \"**\"\ncertificates = \"sha256:{pin}\"\n");
    let policy = scene.folder.write("pin.toml", rule.as_bytes());
    let pinned = |name: &str, arguments: &[&str]| {
        let mut command = outlast();
        command.args(["verify", name, "--fetch", "--policy"]).arg(&policy).args(arguments);
        scene.folder.here(command)
    };
    let known = ["--certificates", "release.pem"];
    let text = fail(&mut pinned("plain", &known), 3);
    assert!(text.contains("it was revoked at") && text.contains("keyCompromise"), "{text}");
    succeed(pinned("plain", &known).args(["--revocation", "off"]));
    // Nothing is fetched of a CA that nobody has named; evidence that is there is told, and cannot be verified.
    let said = succeed(&mut pinned("plain", &[]));
    assert!(said.contains("revocation not checked"), "{said}");
    let output = run(&mut pinned("embedded", &[]));
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("it is not known whether \"CN=Release\" is revoked"), "{text}");
    assert!(text.contains("give it with --certificates"), "{text}");
    // Somebody who knows that the file was there an hour before the revocation.
    let now = outlast_net::server::system_clock().div_euclid(1000);
    let before = outlast_pki::time::rfc3339(now - 1800);
    let value = json(&mut verify(&scene, "plain", &["--fetch", "--at", &before]));
    assert_eq!(value[0]["revocation"], "revoked later", "{value}");
    assert_eq!(value[0]["signers"][0]["time_source"], "verifier");
    let text = fail(&mut verify(&scene, "plain", &["--fetch", "--at", "now"]), 3);
    assert!(text.contains("nothing shows that the signature is older"), "{text}");
    // The CA is gone: what is embedded still says what it said.
    scene.server.kill();
    let said = succeed(&mut verify(&scene, "embedded", &[]));
    assert!(said.contains("not revoked as of"), "{said}");
}

#[test]
fn a_superseded_certificate_keeps_its_signatures() {
    let scene = scene();
    scene.folder.write("release", b"release");
    succeed(scene.sign().arg(scene.folder.path("release")));
    scene.until_past("release.p7s");
    scene.revoke("SUPERSEDED");
    until("an answer of the responder", || {
        stdout(&run(&mut verify(&scene, "release", &["--fetch"]))).contains("was revoked")
    });
    let said = succeed(&mut verify(&scene, "release", &["--fetch"]));
    assert!(said.contains("was revoked after that, at") && said.contains("superseded"), "{said}");
}

//! Approvals of signatures by two keys, by the commands: what approvers see is what both keys sign, and what was approved becomes
//! one message, with its copy, timestamps and proof.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::time::{SystemTime, UNIX_EPOCH};

use outlast_api::ops::kms::sign::Sign;
use outlast_api::ops::outlast::get_signing_request::GetSigningRequest;
use outlast_api::ops::outlast::request_signing_approval::RequestSigningApproval;
use outlast_crypto::digests::Digest;
use outlast_pki::cms::verify::SignedMessage;
use outlast_testing::until;
use serde_json::{Value, json};

use crate::approvals::{Scene, arn};
use crate::common::tsa::Tsa;
use crate::common::{Identity, fail, outlast, runtime, succeed};

/// A dual key whose halves need one approver each: Alice for ML-DSA, Bob for ECDSA.
struct Dual {
    scene: Scene,
    rita: Value,
    alice: Value,
    bob: Value,
}

impl Dual {
    fn new() -> Self {
        let scene = Scene::new();
        let [rita, alice, bob] = ["rita", "alice", "bob"].map(|name| scene.user(name));
        let setup = ["sign", "setup", "--name", "release", "--algorithm", "dual", "--create-ca"];
        succeed(&mut scene.admin(&setup));
        let dual = Self { scene, rita, alice, bob };
        dual.rule("alias/release", "alice");
        dual
    }

    fn rule(&self, key: &str, approver: &str) {
        let approver = arn(approver);
        let put = ["sign", "rule", "put", "--key", key, "--required", "1", "--approver", &approver];
        assert!(succeed(&mut self.scene.admin(&put)).contains("is set"));
    }

    fn tokens(&self, name: &str) -> Vec<usize> {
        let bytes = std::fs::read(self.scene.folder.path(name)).unwrap();
        let claims = SignedMessage::parse(&bytes).unwrap().claims();
        claims.iter().map(|claim| claim.tokens.len()).collect()
    }

    fn verify(&self, signature: &str, more: &[&str]) -> String {
        let mut command = outlast();
        command.args(["verify", "app", "--signature", signature, "--trust", "release-root.pem"]);
        succeed(self.scene.folder.here(command).args(more))
    }

    /// Approved by both.
    fn approved(&self, id: &str) {
        let approve = ["sign", "approve", id, "--yes", "--file", "app"];
        succeed(&mut self.scene.by(&self.alice, &approve));
        let said = succeed(&mut self.scene.by(&self.bob, &approve));
        assert!(said.contains("1 of 1 approvals, 1 of 1 for arn:"), "{said}");
    }
}

#[test]
fn two_keys_sign_together_what_the_approvers_of_both_have_seen() {
    let dual = Dual::new();
    let Dual { scene, rita, alice, bob } = &dual;
    let exists = |name: &str| scene.folder.path(name).exists();
    scene.folder.write("app", b"release 1");
    scene.folder.write("other", b"release X");
    // One half without a rule would sign at once.
    let ask = ["sign", "request", "app", "--key", "alias/release", "--classical-copy"];
    let text = fail(&mut scene.by(rita, &ask), 1);
    assert!(text.contains("has no rule") && text.contains("hint: give it one"), "{text}");
    dual.rule("alias/release-classical", "bob");
    let text = succeed(scene.by(rita, &ask).args(["--output", "json"]));
    let made: Value = serde_json::from_str(&text).unwrap();
    let id = made["id"].as_str().unwrap();
    let (first, second) = (&made["key"], &made["other_keys"][0]["key"]);
    let (first, second) = (first.as_str().unwrap(), second.as_str().unwrap());
    // Every approver sees both keys, their digests, and that one message will be by ECDSA alone.
    let shown = succeed(&mut scene.by(alice, &["sign", "show", id]));
    for words in [
        first,
        second,
        &format!("ML_DSA_SHAKE_256 by {first}, together, with the time"),
        &format!("ECDSA_SHA_384 by {second}, together, with the time"),
        &format!("ECDSA_SHA_384 by {second}, alone, with the time"),
        "PENDING, 0 of 1 approvals, 0 of 1 for",
        &arn("alice"),
        &arn("bob"),
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(shown.matches("sha384 ").count(), 3, "{shown}");
    let listed = succeed(&mut scene.by(bob, &["sign", "requests"]));
    assert!(listed.contains("0 of 1, 0 of 1 for") && listed.contains("1 file,"), "{listed}");
    // One half is approved: neither key signs, nor does the other one alone.
    let approve = ["sign", "approve", id, "--yes", "--file", "app"];
    let said = succeed(&mut scene.by(alice, &approve));
    assert!(said.contains("1 of 1 approvals, 0 of 1 for"), "{said}");
    let text = fail(&mut scene.by(rita, &["sign", "finish", id]), 1);
    assert!(text.contains("PENDING, 1 of 1 approvals, 0 of 1 for"), "{text}");
    let text = fail(&mut scene.by(alice, &approve), 1);
    assert!(text.contains("has approved the request"), "{text}");
    let wrong = ["sign", "approve", id, "--yes", "--file", "other"];
    let text = fail(&mut scene.by(bob, &wrong), 1);
    assert!(text.contains("no file of the request has its digest"), "{text}");
    succeed(&mut scene.by(bob, &approve));
    // Other attributes than the approved ones, by either key: another time, or without the other signature. In the second of the request
    // the time would be the approved one.
    let second = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let approved_in = second();
    until("the second is over", || second() > approved_in);
    for key in ["alias/release", "alias/release-classical"] {
        let text = fail(&mut scene.by(rita, &["sign", "app", "--key", key]), 1);
        assert!(text.contains("no request for this message"), "{text}");
    }
    // Another file than the approved one.
    scene.folder.write("app", b"release 2");
    let text = fail(&mut scene.by(rita, &["sign", "finish", id]), 1);
    assert!(text.contains("not the file that was approved"), "{text}");
    scene.folder.write("app", b"release 1");
    fail(&mut scene.admin(&["sign", "finish", id]), 1);
    assert!(!exists("app.p7s") && !exists("app.classical.p7s"));

    // Without a timestamp the signatures stay, because the approvals are used up.
    let tsa = Tsa::new("ML_DSA_65", "PQ");
    let finish = |path: &str| {
        let url = tsa.url(path);
        scene.by(rita, &["sign", "finish", id, "--log", "--log-name", "--timestamp", &url])
    };
    let text = fail(&mut finish("/refuse"), 1);
    assert!(text.contains("is signed, but not complete") && text.contains("hint: "), "{text}");
    assert!(exists("app.p7s") && exists("app.classical.p7s") && !exists("app.tlog-proof"));
    assert_eq!(dual.verify("app.p7s", &[]).lines().count(), 2);
    let said = succeed(&mut finish("/tsa"));
    assert!(said.contains("signed before app: app.classical.p7s"), "{said}");
    assert_eq!(said.matches("timestamp of").count(), 3, "{said}");
    // Complete: nothing is added twice.
    let proof = std::fs::read(scene.folder.path("app.tlog-proof")).unwrap();
    succeed(&mut finish("/tsa"));
    assert_eq!(std::fs::read(scene.folder.path("app.tlog-proof")).unwrap(), proof);
    assert_eq!(dual.tokens("app.p7s"), [1, 1]);
    assert_eq!(dual.tokens("app.classical.p7s"), [1]);
    let policy = succeed(&mut scene.admin(&["log", "policy"]));
    scene.folder.write("log.policy", policy.as_bytes());
    let log = ["--log-policy", "log.policy", "--log-proof", "app.tlog-proof"];
    let said = dual.verify("app.p7s", &log);
    assert!(said.contains("ML_DSA_65 by") && said.contains("SHA384WITHECDSA by"), "{said}");
    assert!(said.contains("logged app: entry "), "{said}");
    assert!(dual.verify("app.classical.p7s", &log).contains("SHA384WITHECDSA by"));
    let text = fail(&mut scene.by(rita, &["sign", "finish", id, "--output-dir", "again"]), 1);
    assert!(text.contains("approvals were used"), "{text}");
    // A signature of something else in its place gets no timestamp and no proof.
    std::fs::remove_file(scene.folder.path("app.tlog-proof")).unwrap();
    scene.folder.write("one", b"one");
    let one = scene.asked(rita, &["one"]);
    for who in [alice, bob] {
        succeed(&mut scene.by(who, &["sign", "approve", &one, "--yes"]));
    }
    succeed(&mut scene.by(rita, &["sign", "finish", &one]));
    std::fs::copy(scene.folder.path("one.p7s"), scene.folder.path("app.p7s")).unwrap();
    let text = fail(&mut finish("/tsa"), 1);
    assert!(text.contains("not the signature that was approved"), "{text}");
    assert!(!exists("app.tlog-proof"));
}

/// A requester who shows one file, and lets the other key sign another one.
#[test]
fn approvers_notice_two_files_under_one_name() {
    let dual = Dual::new();
    dual.rule("alias/release-classical", "bob");
    let Dual { scene, alice, .. } = &dual;
    let file = |content: &[u8], digest: &str, algorithm: &str| {
        use base64::Engine;
        let b64 = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
        let sum = Digest::by_name(digest).unwrap().digest(content);
        json!({
            "Name": "app", "DigestAlgorithm": digest, "Digest": b64(&sum),
            "SigningAlgorithm": algorithm, "Message": b64(content),
        })
    };
    let mut evil = file(b"evil", "sha384", "ECDSA_SHA_384");
    evil["KeyId"] = json!("alias/release-classical");
    let body = json!({
        "KeyId": "alias/release", "Files": [file(b"good", "sha512", "ML_DSA_SHAKE_256"), evil],
    });
    let made = runtime().block_on(async {
        let mut session = scene.server.session().await.unwrap();
        session.call::<RequestSigningApproval>(body).await.unwrap().unwrap()
    });
    let id = made.request_id.as_str();
    scene.folder.write("app", b"good");
    scene.folder.write("other", b"evil");
    for own in [&["app"][..], &["other"], &["app", "other"]] {
        let mut command = scene.by(alice, &["sign", "approve", id, "--yes"]);
        command.args(own.iter().flat_map(|file| ["--file", file]));
        let text = fail(&mut command, 1);
        assert!(text.contains("only some of the digests of \"app\" are its own"), "{text}");
        assert!(text.contains("do not approve it"), "{text}");
    }
    let shown = succeed(&mut scene.by(alice, &["sign", "show", id]));
    assert!(shown.contains("PENDING, 0 of 1"), "{shown}");
}

/// Another client has used the approval of one half.
#[test]
fn half_a_signature_is_not_finished() {
    let dual = Dual::new();
    dual.rule("alias/release-classical", "bob");
    let Dual { scene, rita, .. } = &dual;
    scene.folder.write("app", b"release 1");
    let id = scene.asked(rita, &["app"]);
    dual.approved(&id);
    runtime().block_on(async {
        let mut session = scene.server.session_as(Identity::printed(rita)).await;
        let asked = json!({ "RequestId": id });
        let request = session.call::<GetSigningRequest>(asked).await.unwrap().unwrap().request;
        let file = &request.files[0];
        let body = json!({
            "KeyId": request.key_id, "Message": file.message,
            "SigningAlgorithm": file.signing_algorithm,
        });
        session.call::<Sign>(body).await.unwrap().unwrap();
    });
    let text = fail(&mut scene.by(rita, &["sign", "finish", &id]), 1);
    assert!(text.contains("used for a part of its signatures"), "{text}");
    assert!(!scene.folder.path("app.p7s").exists());
}

/// Nothing is signed, and no approval is used up, where the signatures could not be written.
#[test]
fn signatures_without_a_place_of_their_own_are_not_made() {
    let dual = Dual::new();
    let Dual { scene, rita, alice, bob } = &dual;
    dual.rule("alias/release-classical", "bob");
    for folder in ["a", "b"] {
        std::fs::create_dir(scene.folder.path(folder)).unwrap();
        scene.folder.write(&format!("{folder}/x"), folder.as_bytes());
    }
    let ask = ["sign", "request", "a/x", "b/x", "--key", "alias/release", "--output", "json"];
    let made: Value = serde_json::from_str(&succeed(&mut scene.by(rita, &ask))).unwrap();
    let id = made["id"].as_str().unwrap();
    let approve = ["sign", "approve", id, "--yes", "--file", "a/x", "--file", "b/x"];
    for approver in [alice, bob] {
        succeed(&mut scene.by(approver, &approve));
    }
    for force in [&[][..], &["--force"]] {
        let finish = ["sign", "finish", id, "--output-dir", "out"];
        let text = fail(scene.by(rita, &finish).args(force), 1);
        assert!(text.contains("two files of the request would be written here"), "{text}");
    }
    let [here, away] = ["a", "away"].map(|name| scene.folder.path(name));
    std::fs::rename(&here, &away).unwrap();
    let text = fail(&mut scene.by(rita, &["sign", "finish", id]), 1);
    assert!(text.contains("the folder for the signature is missing"), "{text}");
    std::fs::rename(&away, &here).unwrap();
    succeed(&mut scene.by(rita, &["sign", "finish", id]));
    assert!(["a/x.p7s", "b/x.p7s"].iter().all(|name| scene.folder.path(name).exists()));
}

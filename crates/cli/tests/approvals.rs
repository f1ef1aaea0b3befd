//! Approvals by the commands: a request survives the server's death, and what an approver sees is what is signed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use std::process::Command;

use serde_json::{Value, json};

use crate::common::{Folder, Server, fail, outlast, succeed};

/// A server, and users who ask and approve.
pub struct Scene {
    pub folder: Folder,
    pub server: Server,
}

impl Scene {
    pub fn new() -> Self {
        let folder = Folder::new();
        let server = folder.serve();
        Self { folder, server }
    }

    /// The administrator's command.
    pub fn admin(&self, arguments: &[&str]) -> Command {
        self.folder.client_at(&self.server, arguments)
    }

    /// A user who may do everything, as far as policies go.
    pub fn user(&self, name: &str) -> Value {
        let mut command = outlast();
        command.args(["principal", "create", name, "--admin", "--output", "json", "--data"]);
        serde_json::from_str(&succeed(command.arg(&self.folder.data))).unwrap()
    }

    /// The command of a user.
    pub fn by(&self, user: &Value, arguments: &[&str]) -> Command {
        let mut command = self.admin(arguments);
        command.env("AWS_ACCESS_KEY_ID", user["access_key_id"].as_str().unwrap());
        command.env("AWS_SECRET_ACCESS_KEY", user["secret_access_key"].as_str().unwrap());
        command
    }

    /// The id of a request of this user for signatures by `alias/release`.
    pub fn asked(&self, user: &Value, files: &[&str]) -> String {
        let words = [&["sign", "request"][..], files, &["--key", "alias/release"]].concat();
        let text = succeed(self.by(user, &words).args(["--output", "json"]));
        let value: Value = serde_json::from_str(&text).unwrap();
        value["id"].as_str().unwrap().to_owned()
    }

    fn restart(&mut self) {
        self.server.kill();
        self.server = self.folder.serve();
    }
}

/// The ARN of a user.
pub fn arn(name: &str) -> String {
    format!("arn:aws:iam::123456789012:user/{name}")
}

#[test]
fn what_is_approved_survives_a_crash_and_is_signed_once() {
    let mut scene = Scene::new();
    let [rita, alice, bob] = ["rita", "alice", "bob"].map(|name| scene.user(name));
    succeed(&mut scene.admin(&["sign", "setup", "--name", "release", "--create-ca"]));
    // Alice's approvals are signed by a key of hers.
    succeed(&mut scene.by(&alice, &["sign", "setup", "--name", "alice"]));
    let request =
        ["cert", "request", "--key", "alias/alice", "--subject", "CN=alice", "--out", "alice.csr"];
    succeed(&mut scene.by(&alice, &request));
    let csr = std::fs::read(scene.folder.path("alice.csr")).unwrap();
    let csr = outlast_pki::csr::CertificateRequest::parse_and_verify(&csr).unwrap();
    let der = outlast_crypto::Secret::new(csr.public_key);
    let pem = outlast_pki::object::Object { kind: outlast_pki::object::Kind::PublicKey, der };
    scene.folder.write("alice.pem", pem.to_pem().unwrap().expose());
    let (of_alice, of_bob) = (arn("alice"), arn("bob"));
    let put = [
        "sign",
        "rule",
        "put",
        "--key",
        "alias/release",
        "--required",
        "2",
        "--approver",
        &of_alice,
        "--approver",
        &of_bob,
        "--public-key",
        &of_alice,
        "alice.pem",
    ];
    assert!(succeed(&mut scene.admin(&put)).contains("is set"));
    for (name, text) in [("one", "one"), ("two", "two"), ("other", "other")] {
        scene.folder.write(name, text.as_bytes());
    }
    let text = fail(&mut scene.by(&rita, &["sign", "one", "--key", "alias/release"]), 1);
    assert!(text.contains("have approved") && text.contains("hint: ask for approval"), "{text}");
    let id = scene.asked(&rita, &["one", "two"]);
    scene.restart();
    let shown = succeed(&mut scene.by(&bob, &["sign", "show", &id]));
    for words in ["one", "two", &arn("rita"), "PENDING, 0 of 2", "sha512 "] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let text = fail(&mut scene.by(&alice, &["sign", "approve", &id]), 2);
    assert!(text.contains("--yes"), "{text}");
    let text = fail(&mut scene.by(&alice, &["sign", "approve", &id, "--yes"]), 1);
    assert!(text.contains("hint: give the key"), "{text}");
    let text = fail(&mut scene.by(&bob, &["sign", "approve", &id, "--yes", "--file", "other"]), 1);
    assert!(text.contains("no file of the request has its digest"), "{text}");
    let approve =
        ["sign", "approve", &id, "--yes", "--approval-key", "alias/alice", "--file", "one"];
    assert!(succeed(&mut scene.by(&alice, &approve)).contains("1 of 2"));
    let text = fail(&mut scene.by(&rita, &["sign", "finish", &id]), 1);
    assert!(text.contains("PENDING, 1 of 2"), "{text}");
    scene.restart();
    assert!(succeed(&mut scene.by(&bob, &["sign", "approve", &id, "--yes"])).contains("2 of 2"));
    scene.restart();
    // What was changed meanwhile is noticed before an approval is used up.
    scene.folder.write("two", b"changed");
    let text = fail(&mut scene.by(&rita, &["sign", "finish", &id]), 1);
    assert!(text.contains("not the file that was approved"), "{text}");
    assert!(!scene.folder.path("one.p7s").exists());
    scene.folder.write("two", b"two");
    // Neither the administrator nor an approver gets what Rita has asked for.
    fail(&mut scene.admin(&["sign", "finish", &id]), 1);
    fail(&mut scene.by(&bob, &["sign", "finish", &id]), 1);
    let text = succeed(&mut scene.by(&rita, &["sign", "finish", &id]));
    assert!(text.contains("signed one: one.p7s"), "{text}");
    for file in ["one", "two"] {
        let mut verify = outlast();
        verify.arg("verify").arg(scene.folder.path(file));
        succeed(verify.arg("--trust").arg(scene.folder.path("release-root.pem")));
    }
    let text = succeed(&mut scene.by(&rita, &["sign", "finish", &id]));
    assert!(text.contains("signed before one"), "{text}");
    let text = fail(&mut scene.by(&rita, &["sign", "finish", &id, "--output-dir", "again"]), 1);
    assert!(text.contains("approvals were used"), "{text}");
    let events = scene.folder.events();
    let signed = events
        .iter()
        .filter(|event| event["additionalEventData"]["signingRequestId"] == json!(id))
        .count();
    assert_eq!(signed, 2);
}

#[test]
fn a_rule_is_changed_and_a_request_denied_by_the_commands() {
    let scene = Scene::new();
    let [rita, alice] = ["rita", "alice"].map(|name| scene.user(name));
    succeed(&mut scene.admin(&["sign", "setup", "--name", "release", "--create-ca"]));
    let put = |required: &str, more: &[&str]| {
        let mut command = scene.admin(&["sign", "rule", "put", "--key", "alias/release"]);
        command.args(["--required", required, "--approver", &arn("alice")]).args(more);
        command
    };
    let text = fail(&mut put("2", &[]), 1);
    assert!(text.contains("there are 1 approvers"), "{text}");
    let text = fail(&mut put("1", &["--public-key", &arn("bob"), "x.pem"]), 2);
    assert!(text.contains("no --approver"), "{text}");
    succeed(&mut put("1", &[]));
    scene.folder.write("one", b"one");
    let id = scene.asked(&rita, &["one"]);
    let listed = succeed(&mut scene.by(&alice, &["sign", "requests"]));
    assert!(listed.contains(&id) && listed.contains("0 of 1, 1 file"), "{listed}");
    succeed(&mut scene.by(&alice, &["sign", "deny", &id, "--reason", "no"]));
    let text = fail(&mut scene.by(&rita, &["sign", "finish", &id]), 1);
    assert!(text.contains("DENIED") && text.contains("hint: "), "{text}");
    assert!(succeed(&mut scene.by(&alice, &["sign", "requests"])).contains("no requests"));
    let text = succeed(&mut scene.admin(&["sign", "rule", "delete", "--key", "alias/release"]));
    let id = text.lines().find_map(|line| line.strip_prefix("request: ")).unwrap();
    assert!(succeed(&mut scene.by(&alice, &["sign", "show", id])).contains("without approvals"));
    succeed(&mut scene.by(&alice, &["sign", "approve", id, "--yes"]));
    assert!(succeed(&mut scene.admin(&["sign", "finish", id])).contains("changed the rule"));
    succeed(&mut scene.by(&rita, &["sign", "one", "--key", "alias/release"]));
}

/// No signature replaces another file of its request, however that is spelled; and no approval is used up.
#[test]
fn a_signature_does_not_overwrite_a_file_of_its_request() {
    let scene = Scene::new();
    let [rita, alice] = ["rita", "alice"].map(|name| scene.user(name));
    succeed(&mut scene.admin(&["sign", "setup", "--name", "release", "--create-ca"]));
    let of_alice = arn("alice");
    let put = ["sign", "rule", "put", "--key", "alias/release", "--required", "1", "--approver"];
    let put: Vec<&str> = put.into_iter().chain([of_alice.as_str()]).collect();
    assert!(succeed(&mut scene.admin(&put)).contains("is set"));
    scene.folder.write("app", b"app");
    let input = scene.folder.write("app.p7s", b"a file");
    std::fs::create_dir(scene.folder.path("one")).unwrap();
    let whole = input.display().to_string();
    for spelled in ["app.p7s", "./app.p7s", "one/../app.p7s", &whole] {
        let id = scene.asked(&rita, &["app", spelled]);
        succeed(&mut scene.by(&alice, &["sign", "approve", &id, "--yes"]));
        for more in [&[][..], &["--output-dir", "one/.."]] {
            let mut finish = scene.by(&rita, &["sign", "finish", &id, "--force"]);
            let text = fail(finish.args(more), 1);
            assert!(text.contains("it is to be signed"), "{spelled} {more:?}: {text}");
            assert_eq!(std::fs::read(&input).unwrap(), b"a file");
        }
        let out = format!("out-{id}");
        succeed(&mut scene.by(&rita, &["sign", "finish", &id, "--output-dir", &out]));
        for name in ["app.p7s", "app.p7s.p7s"] {
            assert!(scene.folder.path(&out).join(name).exists(), "{spelled}: {name}");
        }
    }
}

//! The artifact log: signatures are entered and proved, proofs are verified without any service, and the owner of a key
//! sees what a thief does.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use outlast_api::ops::kms::sign;
use outlast_api::ops::outlast::{add_log_entries, get_log_proof};
use outlast_pki::cms::verify::SignedMessage;
use outlast_testing::until;
use outlast_tlog::key::{ED25519_COSIGNATURE, ML_DSA_44};
use outlast_tlog::proof_file::ProofFile;
use outlast_tlog::tile::{Resource, new_tiles};
use outlast_tlog::{Checkpoint, NoteSignature, SignedCheckpoint, Signer, VerifierKey};
use serde_json::{Value, json};

use crate::common::peers::peer;
use crate::common::{Folder, Server, fail, outlast, run, runtime, stderr, stdout, succeed};
use crate::sign_policy::conforms;

/// A service with a signing key `alias/release`, and its client.
struct Scene {
    folder: Folder,
    server: Server,
}

impl Scene {
    fn new(settings: &str, algorithm: &str) -> Self {
        let folder = Folder::new();
        let path = folder.data.join("outlast.toml");
        let own = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{own}\n{settings}\n")).unwrap();
        let server = folder.serve();
        let scene = Self { folder, server };
        let setup = ["sign", "setup", "--name", "release", "--create-ca", "--algorithm", algorithm];
        succeed(&mut scene.run(&setup));
        scene
    }

    fn run(&self, arguments: &[&str]) -> Command {
        self.folder.client_at(&self.server, arguments)
    }

    fn sign(&self, file: &str) -> Command {
        let mut command = self.run(&["sign", file, "--key", "alias/release", "--log"]);
        command.args(["--revocation", "off"]);
        command
    }

    fn monitor(&self, arguments: &[&str]) -> Command {
        let mut command = self.run(&["log", "monitor", "--grace", "0"]);
        command.args(arguments);
        command
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    /// A verification that needs no service.
    fn verify(&self, file: &str, more: &[&str]) -> Command {
        let mut command = outlast();
        command.current_dir(self.folder.temporary.path());
        command.args(["verify", file]).args(more);
        command
    }

    fn policy(&self) -> String {
        let text = succeed(&mut self.run(&["log", "policy"]));
        self.folder.write("log.policy", text.as_bytes());
        text
    }
}

const TRUST: [&str; 2] = ["--trust", "release-root.pem"];
const LOG: [&str; 4] = ["--trust", "release-root.pem", "--log-policy", "log.policy"];

fn read_proof(path: &Path) -> ProofFile {
    ProofFile::parse(&std::fs::read(path).unwrap()).unwrap()
}

/// Every forged or misplaced proof, and what is said about it.
fn attacks(scene: &Scene) {
    let good = std::fs::read_to_string(scene.path("one.tlog-proof")).unwrap();
    let proof = read_proof(&scene.path("one.tlog-proof"));
    let other = read_proof(&scene.path("two.tlog-proof"));
    // The same origin, another key.
    let head = proof.checkpoint.checkpoint();
    let stored = Signer::generate(&ML_DSA_44).unwrap();
    let thief = Signer::new(head.origin(), &ML_DSA_44, &stored).unwrap();
    let copy = Checkpoint::new(head.origin(), head.size(), *head.root()).unwrap();
    let checkpoint = SignedCheckpoint::sign(copy, &[&thief], 1).unwrap();
    let resigned = ProofFile { checkpoint, ..proof.clone() };
    let entry = String::from_utf8(proof.extra.clone().unwrap()).unwrap();
    let swapped = ProofFile { extra: other.extra.clone(), ..proof.clone() };
    let edited = ProofFile {
        extra: Some(entry.replace("\"one\"", "\"all\"").into_bytes()),
        ..proof.clone()
    };
    let moved = ProofFile { index: 1, ..proof.clone() };
    let bare = ProofFile { extra: None, ..proof.clone() };
    let cut = &good[..good.len() / 2];
    let lines: Vec<_> = good.lines().collect();
    let text = |proof: &ProofFile| proof.to_string();
    for (proof, reason) in [
        (std::fs::read_to_string(scene.path("two.tlog-proof")).unwrap(), "about other signatures"),
        (text(&resigned), "not signed by a known key"),
        (text(&swapped), "does not lead to the root"),
        (text(&edited), "does not lead to the root"),
        (text(&moved), "does not lead to the root"),
        (text(&bare), "the entry is not in it"),
        (cut.to_owned(), "one.tlog-proof"),
        (lines[..lines.len() - 2].join("\n"), "one.tlog-proof"),
        (String::new(), "does not begin with"),
    ] {
        scene.folder.write("one.tlog-proof", proof.as_bytes());
        let said = fail(&mut scene.verify("one", &LOG), 3);
        assert!(said.contains(reason), "{reason}: {said}");
        // Without the log nobody looks at the proof.
        succeed(&mut scene.verify("one", &TRUST));
    }
    // The proof of an earlier signature of the same file.
    let earlier = [&LOG[..], &["--log-proof", "two.old"]].concat();
    let said = fail(&mut scene.verify("two", &earlier), 3);
    assert!(said.contains("about other signatures"), "{said}");
    std::fs::remove_file(scene.path("one.tlog-proof")).unwrap();
    let said = fail(&mut scene.verify("one", &LOG), 3);
    assert!(said.contains("does not exist") && said.contains("sign with --log"), "{said}");
    let rule = "[[rule]]\nfiles = \"*\"\ntrust = \"release-root.pem\"\nlog = \"log.policy\"\n";
    scene.folder.write("release.toml", rule.as_bytes());
    let said = fail(&mut scene.verify("one", &["--policy", "release.toml"]), 3);
    assert!(said.contains("does not exist"), "{said}");
    scene.folder.write("one.tlog-proof", good.as_bytes());
    let said = succeed(&mut scene.verify("one", &["--policy", "release.toml"]));
    assert!(said.contains("logged one: entry 0 of "), "{said}");
    let mut explain = outlast();
    explain.current_dir(scene.folder.temporary.path());
    let said = succeed(explain.args(["verify", "--explain", "--policy", "release.toml"]));
    assert!(said.contains("in the log of log.policy"), "{said}");
    // Witnesses that did not sign.
    let policy = std::fs::read_to_string(scene.path("log.policy")).unwrap();
    let witness = thief.verifier().to_string().replace(head.origin(), "w.example/w");
    let witness = Signer::new("w.example/w", &ML_DSA_44, &stored)
        .map_or(witness, |signer| signer.verifier().to_string());
    let strict = policy.replace("quorum none", &format!("witness w {witness}\nquorum w"));
    scene.folder.write("strict.policy", strict.as_bytes());
    let strict = ["--trust", "release-root.pem", "--log-policy", "strict.policy"];
    let said = fail(&mut scene.verify("one", &strict), 3);
    assert!(said.contains("quorum") && said.contains("outlast log proof"), "{said}");
    // What makes no sense.
    let alone = [&TRUST[..], &["--log-proof", "one.tlog-proof"]].concat();
    fail(&mut scene.verify("one", &alone), 2);
    scene.folder.write("bare.toml", rule.replace("log = \"log.policy\"\n", "").as_bytes());
    let unasked = ["--policy", "bare.toml", "--log-proof", "one.tlog-proof"];
    let said = fail(&mut scene.verify("one", &unasked), 2);
    assert!(said.contains("its rule asks for no log"), "{said}");
    succeed(&mut scene.verify("one", &unasked[..2]));
    let asked = [&unasked[..], &LOG[2..]].concat();
    succeed(&mut scene.verify("one", &asked));
    let said = fail(&mut scene.verify("one", &[&TRUST[..], &["--log-policy", "one"]].concat()), 1);
    assert!(said.contains("outlast log policy"), "{said}");
}

/// A rule that names the log and its witnesses itself: too few cosignatures, and what looks like more of them.
fn attacks_on_witnesses(scene: &Scene) {
    let good = std::fs::read_to_string(scene.path("one.tlog-proof")).unwrap();
    let proof = read_proof(&scene.path("one.tlog-proof"));
    let policy = std::fs::read_to_string(scene.path("log.policy")).unwrap();
    let log = policy.lines().find_map(|line| line.strip_prefix("log ")).unwrap();
    let witness = |name: &str| {
        let stored = Signer::generate(&ED25519_COSIGNATURE).unwrap();
        Signer::new(name, &ED25519_COSIGNATURE, &stored).unwrap()
    };
    let (one, two) = (witness("w.example/1"), witness("w.example/2"));
    let (unknown, namesake) = (witness("w.example/3"), witness("w.example/2"));
    let cosign =
        |signer: &Signer| signer.sign(proof.checkpoint.note().text(), 1_800_000_000).unwrap();
    let forged = {
        let signature = cosign(&two);
        let mut bytes = signature.bytes().to_vec();
        *bytes.last_mut().unwrap() ^= 1;
        NoteSignature::new(signature.name(), signature.id(), bytes).unwrap()
    };
    let rule = |keys: &[String], count: usize| {
        let keys: Vec<_> = keys.iter().map(|key| format!("\"{key}\"")).collect();
        format!(
            "[[rule]]\nfiles = \"*\"\ntrust = \"release-root.pem\"\n[rule.log]\nkeys = \"{log}\"\n\
             witness_keys = [{}]\nwitnesses = {count}\n",
            keys.join(", ")
        )
    };
    let judged = |text: &str| {
        scene.folder.write("inline.toml", text.as_bytes());
        scene.verify("one", &["--policy", "inline.toml"])
    };
    let both = [one.verifier().to_string(), two.verifier().to_string()];
    let few = "do not make the policy's quorum";
    for (name, signatures, count, reason) in [
        ("both", vec![cosign(&one), cosign(&two)], 2, ""),
        ("one of one", vec![cosign(&one)], 1, ""),
        ("one of two", vec![cosign(&one)], 2, few),
        ("none", vec![], 1, few),
        ("an unknown one", vec![cosign(&one), cosign(&unknown)], 2, few),
        ("another key of the same name", vec![cosign(&one), cosign(&namesake)], 2, few),
        ("one twice", vec![cosign(&one), cosign(&one)], 2, few),
        ("a changed one", vec![cosign(&one), forged], 2, "signature of w.example/2 is not valid"),
    ] {
        let text = signatures.iter().fold(proof.to_string(), |text, one| text + &one.to_string());
        scene.folder.write("one.tlog-proof", text.as_bytes());
        let mut command = judged(&rule(&both, count));
        if reason.is_empty() {
            let said = succeed(&mut command);
            assert!(said.contains("cosigned by w.example/1"), "{name}: {said}");
        } else {
            let said = fail(&mut command, 3);
            assert!(said.contains(reason), "{name}: {said}");
        }
    }
    // One witness under two names.
    let key = one.verifier();
    let renamed = VerifierKey::new("other.example/w", key.algorithm(), key.public_key()).unwrap();
    let said = fail(&mut judged(&rule(&[key.to_string(), renamed.to_string()], 2)), 1);
    assert!(said.contains("line 6: ") && said.contains("the same public key"), "{said}");
    assert!(said.contains("hint: a witness counts once"), "{said}");
    judged(&rule(&both, 2));
    let mut explain = outlast();
    explain.current_dir(scene.folder.temporary.path());
    let said = succeed(explain.args(["verify", "--explain", "--policy", "inline.toml"]));
    assert!(said.contains("cosigned by 2 of 2: w.example/1, w.example/2"), "{said}");
    scene.folder.write("one.tlog-proof", good.as_bytes());
}

#[test]
fn signatures_are_logged_and_proofs_verify_offline() {
    let mut scene = Scene::new("[artifact_log]\npublish = true", "dual");
    for (file, content) in [("one", "1"), ("two", "2"), ("three", "3")] {
        scene.folder.write(file, content.as_bytes());
    }
    let said = fail(&mut scene.run(&["log", "policy"]), 1);
    assert!(said.contains("no entry yet") && said.contains("--log"), "{said}");
    let said = succeed(scene.sign("one").arg("--dry-run"));
    assert!(said.contains("would sign one") && !scene.path("one.tlog-proof").exists(), "{said}");
    succeed(scene.sign("one").args(["--log-name", "--classical-copy"]));
    succeed(scene.sign("two").arg("three"));
    assert!(scene.path("three.tlog-proof").exists());
    // Nothing is overwritten, and then nothing is signed.
    std::fs::remove_file(scene.path("two.p7s")).unwrap();
    let said = fail(&mut scene.sign("two"), 1);
    assert!(said.contains("nothing is signed") && said.contains("two.tlog-proof"), "{said}");
    std::fs::copy(scene.path("two.tlog-proof"), scene.path("two.old")).unwrap();
    succeed(scene.sign("two").arg("--force"));
    let said = fail(scene.sign("one").args(["--signature", "-"]), 2);
    assert!(said.contains("a proof needs a file"), "{said}");
    let policy = scene.policy();
    assert!(policy.contains("/artifacts+") && policy.contains("quorum none"), "{policy}");
    let shown = succeed(&mut scene.run(&["log", "show"]));
    // Two signers and a classical copy, twice two signers, and two again.
    assert_eq!(shown.lines().count(), 3 + 2 + 2 + 2, "{shown}");
    assert!(shown.contains(" one\n") && !shown.contains("three"), "names only if wanted: {shown}");
    let checkpoint = succeed(&mut scene.run(&["log", "checkpoint"]));
    assert!(checkpoint.contains("/artifacts\n4\n"), "{checkpoint}");
    let said = succeed(&mut scene.run(&["log", "proof", "one.tlog-proof"]));
    assert!(said.contains("entry 0 in a log of 4"), "{said}");
    // An entry of another service's log is not taken for ours.
    let mut strange = read_proof(&scene.path("one.tlog-proof"));
    strange.index = 1;
    scene.folder.write("strange.tlog-proof", strange.to_string().as_bytes());
    let said = fail(&mut scene.run(&["log", "proof", "strange.tlog-proof"]), 1);
    assert!(said.contains("another entry at this index"), "{said}");
    published(&scene);

    assert_eq!(scene.server.terminate(), Some(0));
    let said = succeed(&mut scene.verify("one", &LOG));
    assert!(
        said.contains("logged one: entry 0 of ") && said.contains("cosigned by nobody"),
        "{said}"
    );
    let copy = [&LOG[..], &["--signature", "one.classical.p7s"]].concat();
    succeed(&mut scene.verify("one", &copy));
    let json = [&LOG[..], &["--output", "json"]].concat();
    let said: Value = serde_json::from_str(&succeed(&mut scene.verify("two", &json))).unwrap();
    assert_eq!((&said[0]["log"]["index"], &said[0]["outcome"]), (&json!(3), &json!("verified")));
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/verify.json");
    let schema: Value = serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    conforms(&schema, &schema, &said, "$").unwrap_or_else(|fault| panic!("{fault}\n{said:#}"));
    attacks(&scene);
    attacks_on_witnesses(&scene);
    database_writer(&scene.folder);
}

/// Anybody reads the log, and Go checks every tile and entry of it.
fn published(scene: &Scene) {
    let mirror = scene.path("mirror");
    runtime().block_on(async {
        let mut session = scene.server.session().await.unwrap();
        let (status, head) = session.get("/log/checkpoint").await;
        assert_eq!(status, 200);
        let head = SignedCheckpoint::parse(&head).unwrap();
        let size = head.checkpoint().size();
        let hashes = new_tiles(0, size).map(Resource::Tile);
        let entries = new_tiles(0, size).filter(|id| id.level() == 0).map(Resource::Entries);
        let paths: Vec<_> = hashes.chain(entries).map(|found| found.to_string()).collect();
        for path in paths.iter().map(String::as_str).chain(["checkpoint"]) {
            let (status, body) = session.get(&format!("/log/{path}")).await;
            assert_eq!(status, 200, "{path}");
            let file = mirror.join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, body).unwrap();
        }
        for wrong in ["/log/", "/log/tile/0/000.p/9", "/log/tile/9/000", "/log/../log/checkpoint"] {
            assert_eq!(session.get(wrong).await.0, 404, "{wrong}");
        }
    });
    let Some(go) = peer("go127") else { return };
    let policy = std::fs::read_to_string(scene.path("log.policy")).unwrap();
    let key = policy.lines().find_map(|line| line.strip_prefix("log ")).unwrap();
    let keys = scene.folder.write("keys", format!("{key}\n").as_bytes());
    let check = |arguments: &[&Path], verb: &str| {
        let output =
            Command::new(go.join("bin/tlog-check")).arg(verb).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
        stdout(&output)
    };
    let said = check(&[&mirror, &keys], "log");
    assert!(said.contains("ok 4"), "{said}");
    let proof = scene.path("one.tlog-proof");
    let entry = scene.folder.write("entry", &read_proof(&proof).extra.unwrap());
    let said = check(&[&proof, &scene.path("log.policy"), &entry, &keys], "proof");
    assert!(said.contains("ok entry 0"), "{said}");
}

/// What somebody who can only write to the database does, with the server stopped.
fn database_writer(folder: &Folder) {
    for (number, change) in [
        "DELETE FROM record WHERE key = 'artifacts/entry/0000000000000003'",
        "DELETE FROM record WHERE key = 'artifacts/entry/0000000000000001'",
        "UPDATE record SET value = (SELECT value FROM record WHERE key = 'artifacts/entry/0000000000000000') \
         WHERE key = 'artifacts/entry/0000000000000002'",
        "DELETE FROM record WHERE key = 'artifacts/head'",
        "DELETE FROM record WHERE key = 'artifacts/key'",
        "DELETE FROM record WHERE key LIKE 'artifacts/tile/%'",
        "DELETE FROM record WHERE key LIKE 'artifacts/%'",
    ]
    .iter()
    .enumerate()
    {
        let to = folder.path(&format!("changed-{number}"));
        succeed(Command::new("cp").arg("-r").arg(&folder.data).arg(&to));
        let changed = rusqlite::Connection::open(to.join("store.db")).unwrap();
        assert!(changed.execute(change, []).unwrap() > 0, "{change}");
        drop(changed);
        let checked = run(outlast().args(["store", "check", "--data"]).arg(&to));
        assert_eq!(checked.status.code(), Some(1), "{change}: {}", stdout(&checked));
        assert!(stdout(&checked).contains("artifact log"), "{change}: {}", stdout(&checked));
        if change.contains("head") || change.contains("artifacts/%'") {
            // The register knows that there was a log.
            let start = ["server", "--listen", "127.0.0.1:0", "--data"];
            fail(outlast().args(start).arg(&to), 1);
        }
    }
    succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
}

/// What a thief signs, with a permission that was stolen.
fn steal(scene: &Scene, content: &[u8]) {
    use base64::Engine;
    let message = base64::engine::general_purpose::STANDARD.encode(content);
    runtime().block_on(async {
        let mut session = scene.server.session().await.unwrap();
        let input = json!({
            "KeyId": "alias/release", "Message": message, "SigningAlgorithm": "ML_DSA_SHAKE_256",
        });
        session.call::<sign::Sign>(input).await.unwrap().unwrap();
    });
}

#[test]
fn the_owner_of_a_key_sees_what_a_thief_does() {
    let mut scene = Scene::new("", "ml-dsa-65");
    let state = ["--key", "alias/release", "--state", "release.monitor"];
    // Nothing was logged yet; setting the key up has signed its certificate request.
    let said = stdout(&run(&mut scene.monitor(&["--key", "alias/release", "--output", "json"])));
    let said: Value = serde_json::from_str(&said).unwrap();
    let requests = said["made_without_the_log"].as_array().unwrap();
    let requests: Vec<_> = requests
        .iter()
        .map(|one| format!("{}\n", one["signature_sha256"].as_str().unwrap()))
        .collect();
    // The owner writes down what was released, as sha512sum does.
    let digest = outlast_crypto::digests::Digest::by_name("sha512").unwrap().digest(b"1");
    let digests = format!("# released\n{}  one\n{}", hex::encode(digest), requests.concat());
    scene.folder.write("known", digests.as_bytes());
    let known = ["--known", "known"];
    scene.folder.write("one", b"1");
    succeed(&mut scene.sign("one"));
    let said = succeed(scene.monitor(&state).args(known));
    assert!(said.contains("logged: entry 0 at ") && said.contains("made by arn:"), "{said}");
    let said = succeed(scene.monitor(&state).args(known));
    assert!(said.contains("0 new signatures in the log of 1 entries; 0 not explained"), "{said}");

    steal(&scene, b"a trojan");
    let said = run(scene.monitor(&state).args(known));
    assert_eq!(said.status.code(), Some(5), "{}", stderr(&said));
    let text = stdout(&said);
    assert!(text.contains("made without the log: signature ") && text.contains("event "), "{text}");
    assert!(text.contains(":user/administrator from 127.0.0.1"), "{text}");
    assert!(stderr(&said).contains("found: 1 signatures"), "{}", stderr(&said));
    // It is told again until it is explained, however the key is spelled.
    let arn = &text.lines().last().unwrap().split_once(": ").unwrap().0.to_owned();
    let id = arn.rsplit('/').next().unwrap();
    let alias = arn.replace(&format!("key/{id}"), "alias/release");
    for spelled in ["alias/release", arn, id, &alias] {
        let again = ["--key", spelled, "--state", "release.monitor"];
        assert_eq!(run(scene.monitor(&again).args(known)).status.code(), Some(5), "{spelled}");
    }
    for odd in ["ALIAS/release", "release", "alias/Release"] {
        let said = run(&mut scene.monitor(&["--key", odd, "--state", "release.monitor"]));
        assert_eq!(said.status.code(), Some(1), "{odd}: {}", stdout(&said));
    }
    // A thief who logs the signature is seen in the log.
    scene.folder.write("trojan", b"another trojan");
    succeed(&mut scene.sign("trojan"));
    let said = run(scene.monitor(&state).args(known));
    assert_eq!(said.status.code(), Some(5));
    let text = stdout(&said);
    assert!(text.contains("not known to you: entry 1 at "), "{text}");
    assert!(text.contains("2 not explained"), "{text}");

    // The log is rewritten: other entries after the ones that were seen, or fewer.
    assert_eq!(scene.server.terminate(), Some(0));
    let old = scene.path("old");
    succeed(Command::new("cp").arg("-r").arg(&scene.folder.data).arg(&old));
    scene.server = scene.folder.serve();
    scene.folder.write("three", b"3");
    succeed(&mut scene.sign("three"));
    let said = run(scene.monitor(&state).args(known));
    assert_eq!(said.status.code(), Some(5));
    scene.server.kill();
    std::fs::remove_dir_all(&scene.folder.data).unwrap();
    std::fs::rename(&old, &scene.folder.data).unwrap();
    scene.server = scene.folder.serve();
    let said = fail(&mut scene.monitor(&state), 3);
    assert!(said.contains("it had 3 entries, and has 2"), "{said}");
    scene.folder.write("four", b"4");
    scene.folder.write("five", b"5");
    succeed(scene.sign("four").arg("five"));
    let said = fail(&mut scene.monitor(&state), 3);
    assert!(said.contains("does not continue"), "{said}");
    // A policy of another log.
    let policy = scene.policy();
    let stored = Signer::generate(&ML_DSA_44).unwrap();
    let other = Signer::new("other.example/log", &ML_DSA_44, &stored).unwrap();
    let other = format!("log {}\nquorum none\n", other.verifier());
    assert_ne!(policy, other);
    scene.folder.write("other.policy", other.as_bytes());
    let arguments = ["--key", "alias/release", "--log-policy", "other.policy"];
    let said = fail(&mut scene.monitor(&arguments), 3);
    assert!(said.contains("log's signature"), "{said}");
}

#[test]
fn proofs_wait_for_the_witnesses() {
    let folder = Folder::new();
    let witness = folder.path("witness");
    let made = ["audit", "witness", "init", "--name", "w.example/w", "--output", "json", "--data"];
    let made: Value = serde_json::from_str(&succeed(outlast().args(made).arg(&witness))).unwrap();
    let serve = ["audit", "witness", "serve", "--listen", "127.0.0.1:0", "--log", "warn", "--data"];
    let mut child = outlast().args(serve).arg(&witness).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let url = line.trim().split_once(" listening on ").unwrap().1.to_owned();
    let settings =
        format!("[artifact_log]\nwitnesses = [\"{} {url}\"]", made["vkey"].as_str().unwrap());
    let scene = Scene::new(&settings, "ml-dsa-65");
    scene.folder.write("one", b"1");
    // The witness does not know the log before its first entry.
    let output = run(scene.sign("one").args(["--log-wait", "0"]));
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("too few witnesses") && said.contains("outlast log proof"), "{said}");
    let policy = scene.policy();
    assert!(policy.contains("group enough 1 w.example/w\nquorum enough\n"), "{policy}");
    fail(&mut scene.verify("one", &LOG), 3);
    let key = policy.lines().find_map(|line| line.strip_prefix("log ")).unwrap();
    let add = ["audit", "witness", "log", "add", "--vkey", key, "--data"];
    succeed(outlast().args(add).arg(&witness));
    until("a cosigned proof", || {
        run(&mut scene.run(&["log", "proof", "one.tlog-proof"])).status.success()
    });
    let said = succeed(&mut scene.verify("one", &LOG));
    assert!(said.contains("cosigned by w.example/w"), "{said}");
    // From now on the command waits for it.
    scene.folder.write("two", b"2");
    succeed(&mut scene.sign("two"));
    let said = succeed(&mut scene.verify("two", &LOG));
    assert!(said.contains("entry 1 of ") && said.contains("cosigned by w.example/w"), "{said}");
    let _ = child.kill();
    let _ = child.wait();
}

/// kill -9 while entries are made: what was acknowledged is there, where its proof says.
#[test]
fn acknowledged_entries_survive_kills() {
    let mut scene = Scene::new("", "ml-dsa-65");
    scene.folder.write("one", b"1");
    succeed(&mut scene.sign("one"));
    let message = std::fs::read(scene.path("one.p7s")).unwrap();
    let message = SignedMessage::parse(&message).unwrap().reduced().unwrap();
    let message = {
        use base64::Engine;
        base64::engine::general_purpose::STANDARD.encode(message)
    };
    let mut acknowledged = vec![read_proof(&scene.path("one.tlog-proof"))];
    for round in 0..4 {
        runtime().block_on(async {
            let mut sessions = Vec::new();
            for _ in 0..3 {
                sessions.push(scene.server.session().await.unwrap());
            }
            let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
            for mut session in sessions {
                let entry = json!({ "Messages": [message] });
                let body = json!({ "Entries": [entry, entry] });
                let sender = sender.clone();
                tokio::spawn(async move {
                    // Until the connection breaks.
                    while let Ok(answer) =
                        session.call::<add_log_entries::AddLogEntries>(body.clone()).await
                    {
                        for entry in answer.unwrap().entries {
                            sender.send(entry.proof).unwrap();
                        }
                    }
                });
            }
            drop(sender);
            // In the middle of the stream.
            let mut received = 0;
            while let Some(proof) = receiver.recv().await {
                acknowledged.push(ProofFile::parse(proof.as_bytes()).unwrap());
                received += 1;
                if received == 5 + 4 * round {
                    scene.server.kill();
                }
            }
        });
        scene.server = scene.folder.serve();
    }
    assert!(acknowledged.len() > 4, "something was entered");
    runtime().block_on(async {
        let mut session = scene.server.session().await.unwrap();
        let mut indexes = std::collections::BTreeSet::new();
        for proof in &acknowledged {
            assert!(indexes.insert(proof.index), "an index was given twice");
            let asked = json!({ "Index": proof.index });
            let found = session.call::<get_log_proof::GetLogProof>(asked).await.unwrap().unwrap();
            let found = ProofFile::parse(found.proof.as_bytes()).unwrap();
            assert_eq!(found.extra, proof.extra);
        }
    });
    assert_eq!(scene.server.terminate(), Some(0));
    succeed(outlast().args(["store", "check", "--data"]).arg(&scene.folder.data));
}

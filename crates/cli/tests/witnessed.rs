//! Servers whose audit logs are witnessed, and servers that publish theirs: two organisations watch each other, a
//! database that was set back is detected, proofs need the quorum, and what strangers can read.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::peers::peer;
use common::{Folder, Server, fail, outlast, run, runtime, stdout, succeed};
use outlast_api::ops::kms::list_keys;
use outlast_tlog::hash;
use outlast_tlog::tile::{Resource, new_tiles, unbundle};
use serde_json::{Value, json};

/// An organisation: its server's folder, and its witness for others' logs.
struct Organisation {
    folder: Folder,
    witness: PathBuf,
    name: &'static str,
    key: String,
}

/// A witness's process; killed when dropped.
struct Witness {
    child: Child,
    url: String,
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn witness(data: &Path, arguments: &[&str]) -> Command {
    let mut command = outlast();
    command.args(["audit", "witness"]).args(arguments).arg("--data").arg(data);
    command
}

fn audit(data: &Path, arguments: &[&str]) -> Command {
    let mut command = outlast();
    command.arg("audit").args(arguments).arg("--data").arg(data);
    command
}

impl Organisation {
    fn new(name: &'static str) -> Self {
        let folder = Folder::new();
        let data = folder.path("witness");
        let made = succeed(witness(&data, &["init", "--name", name]).args(["--output", "json"]));
        let made: Value = serde_json::from_str(&made).unwrap();
        let key = made["vkey"].as_str().unwrap().to_owned();
        Self { folder, witness: data, name, key }
    }

    /// The log's own key.
    fn log_key(&self) -> String {
        let shown = succeed(audit(&self.folder.data, &["policy"]).args(["--output", "json"]));
        let shown: Value = serde_json::from_str(&shown).unwrap();
        shown["verifierKeys"][0].as_str().unwrap().to_owned()
    }

    fn watches(&self, other: &Self) {
        succeed(&mut witness(&self.witness, &["log", "add", "--vkey", &other.log_key()]));
    }

    fn serve_witness(&self) -> Witness {
        let mut child =
            witness(&self.witness, &["serve", "--listen", "127.0.0.1:0", "--log", "warn"])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().split_once(" listening on ").unwrap().1.to_owned();
        Witness { child, url }
    }

    /// Sets the witnesses in the settings file.
    fn is_witnessed_by(&self, lines: &str) {
        let path = self.folder.data.join("outlast.toml");
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        writeln!(file, "\n[audit]\n{lines}").unwrap();
    }

    fn policy(&self) -> PathBuf {
        let text = succeed(&mut audit(&self.folder.data, &["policy"]));
        self.folder.write("policy", text.as_bytes())
    }

    /// Waits until a head of at least this size has so many cosignatures.
    fn wait_for_cosignatures(&self, size: u64, count: usize) {
        until("cosignatures", || {
            let path = self.folder.data.join("store.db");
            let found: Option<Vec<u8>> = rusqlite::Connection::open(path)
                .unwrap()
                .query_row(
                    "SELECT value FROM record WHERE key = 'audit/cosigned-head'",
                    [],
                    |row| row.get(0),
                )
                .ok();
            let Some(bytes) = found else { return false };
            let found: Value = serde_json::from_slice(outlast_domain::seal::json(&bytes)).unwrap();
            let lines: Vec<&str> = found["head"].as_str().unwrap().lines().collect();
            lines[1].parse::<u64>().unwrap() >= size && found["count"] == count
        });
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(180), "it does not come: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn calls(server: &Server, count: usize) {
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        for _ in 0..count {
            session.call::<list_keys::ListKeys>(json!({})).await.unwrap().unwrap();
        }
    });
}

fn readyz(server: &Server) -> (u16, String) {
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let (status, body) = session.get("/readyz").await;
        (status, String::from_utf8(body).unwrap())
    })
}

fn verify(proof: &Path, policy: &Path) -> Command {
    let mut command = outlast();
    command.args(["audit", "verify", "--proof"]).arg(proof).arg("--policy-file").arg(policy);
    command
}

#[test]
fn mutual_witnesses_detect_a_rolled_back_database() {
    let (one, two) = (Organisation::new("one.example/w"), Organisation::new("two.example/w"));
    one.watches(&two);
    two.watches(&one);
    let (at_one, at_two) = (one.serve_witness(), two.serve_witness());
    one.is_witnessed_by(&format!("witnesses = [\"{} {}\"]", two.key, at_two.url));
    two.is_witnessed_by(&format!("witnesses = [\"{} {}\"]", one.key, at_one.url));
    for (organisation, by) in [(&one, &two), (&two, &one)] {
        let data = &organisation.folder.data;
        let mut server = organisation.folder.serve();
        calls(&server, 300);
        assert_eq!(server.terminate(), Some(0));
        // The server has signed when it stopped; the next server has that head cosigned.
        let mut server = organisation.folder.serve();
        organisation.wait_for_cosignatures(300, 1);
        // A copy of the database as it is now, which is an older backup later on.
        let backup = organisation.folder.path("backup");
        succeed(Command::new("cp").arg("-r").arg(data).arg(&backup));
        calls(&server, 200);
        assert_eq!(server.terminate(), Some(0));
        let mut server = organisation.folder.serve();
        organisation.wait_for_cosignatures(500, 1);
        assert_eq!(readyz(&server).0, 200);
        // A verifier with only the policy sees that the witness has cosigned.
        let proof = organisation.folder.path("proof");
        let policy = organisation.policy();
        succeed(audit(data, &["prove", "--index", "42"]).arg("--out").arg(&proof));
        let text = succeed(&mut verify(&proof, &policy));
        assert!(text.contains(&format!("cosigned by: {}", by.name)), "{text}");
        // Without the witness's signature it is refused.
        let all = std::fs::read_to_string(&proof).unwrap();
        let bare: String = all
            .lines()
            .filter(|line| !line.starts_with(&format!("\u{2014} {}", by.name)))
            .map(|line| format!("{line}\n"))
            .collect();
        let bare = organisation.folder.write("bare", bare.as_bytes());
        let said = fail(&mut verify(&bare, &policy), 3);
        assert!(said.contains("quorum"), "{said}");
        assert_eq!(server.terminate(), Some(0));

        // The whole database is set back. It is consistent in itself, and a server starts on it.
        std::fs::remove_dir_all(data).unwrap();
        std::fs::rename(&backup, data).unwrap();
        succeed(&mut audit(data, &["verify"]));
        let mut server = organisation.folder.serve();
        until("the alarm", || readyz(&server).0 == 503);
        let (_, text) = readyz(&server);
        assert!(text.contains("rolled back") && text.contains(by.name), "{text}");
        server.terminate();
        let checked = run(outlast().args(["store", "check", "--data"]).arg(data));
        assert!(stdout(&checked).contains("a server has raised an alarm"), "{}", stdout(&checked));
    }
}

#[test]
fn two_of_three_witnesses_suffice() {
    let own = Organisation::new("own.example/w");
    let others = ["a.example/w", "b.example/w", "c.example/w"].map(Organisation::new);
    others.iter().for_each(|other| other.watches(&own));
    let (a, b) = (others[0].serve_witness(), others[1].serve_witness());
    own.is_witnessed_by(&format!(
        "quorum = 2\nwitnesses = [\"{} {}\", \"{} {}\", \"{} http://127.0.0.1:1\"]",
        others[0].key, a.url, others[1].key, b.url, others[2].key
    ));
    let mut server = own.folder.serve();
    calls(&server, 20);
    assert_eq!(server.terminate(), Some(0));
    let server = own.folder.serve();
    own.wait_for_cosignatures(20, 2);
    // No call waits for the witness that is down.
    calls(&server, 5);
    assert_eq!(readyz(&server).0, 200);
    let proof = own.folder.path("proof");
    let policy = own.policy();
    succeed(audit(&own.folder.data, &["prove", "--index", "3"]).arg("--out").arg(&proof));
    succeed(&mut verify(&proof, &policy));
    let strict =
        std::fs::read_to_string(&policy).unwrap().replace("group enough 2", "group enough 3");
    fail(&mut verify(&proof, &own.folder.write("strict", strict.as_bytes())), 3);

    // Go reads the proof, with the same result.
    let Some(go) = peer("go127") else { return };
    let keys: String = std::fs::read_to_string(&policy)
        .unwrap()
        .lines()
        .filter_map(|line| match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["log", key] => Some(format!("{key}\n")),
            ["witness", name, key, ..] if !name.starts_with('c') => Some(format!("{key}\n")),
            _ => None,
        })
        .collect();
    let keys = own.folder.write("keys", keys.as_bytes());
    let text = succeed(verify(&proof, &policy).args(["--output", "json"]));
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(shown["by"]["cosignedBy"].as_array().unwrap().len(), 2, "{shown}");
    let events = succeed(&mut audit(&own.folder.data, &["tail", "-n", "100", "--output", "json"]));
    let entry = own.folder.write("entry", events.lines().nth(3).unwrap().as_bytes());
    let check = |entry: &Path| {
        let mut command = Command::new(go.join("bin/tlog-check"));
        command.arg("proof").arg(&proof).arg(&policy).arg(entry).arg(&keys);
        command.output().unwrap()
    };
    let output = check(&entry);
    let said = stdout(&output) + &common::stderr(&output);
    assert!(output.status.success() && said.contains("ok entry 3"), "{said}");
    assert!(!check(&own.folder.write("other", b"{}")).status.success());
}

#[test]
fn published_log_is_public_except_entries() {
    let closed = Folder::new();
    let server = closed.serve();
    calls(&server, 3);
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        for path in ["/tlog/checkpoint", "/tlog/tile/0/000.p/3", "/tlog/tile/entries/000.p/3"] {
            assert_eq!(session.get(path).await.0, 404, "{path} is served and was not switched on");
            assert_eq!(session.get_signed(path).await.0, 404, "{path}");
        }
    });
    drop(server);

    let own = Organisation::new("own.example/w");
    let data = &own.folder.data;
    own.is_witnessed_by(
        "publish = true\nreaders = [\"arn:aws:iam::123456789012:user/administrator\", \"arn:aws:iam::123456789012:user/powerless\"]",
    );
    let mut server = own.folder.serve();
    calls(&server, 700);
    assert_eq!(server.terminate(), Some(0));
    let mut identities = Vec::new();
    for name in ["powerless", "stranger"] {
        let text = succeed(
            outlast().args(["principal", "create", name, "--output", "json", "--data"]).arg(data),
        );
        identities.push(common::Identity::printed(&serde_json::from_str(&text).unwrap()));
    }
    let server = own.folder.serve();
    let mirror = own.folder.path("mirror");
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let (status, head) = session.get("/tlog/checkpoint").await;
        assert_eq!(status, 200);
        let size: u64 =
            String::from_utf8(head.clone()).unwrap().lines().nth(1).unwrap().parse().unwrap();
        assert!(size >= 700, "{size}");
        let save = |path: &str, bytes: &[u8]| {
            let path = mirror.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        };
        save("checkpoint", &head);
        let mut first = None;
        for id in new_tiles(0, size) {
            let path = Resource::Tile(id).to_string();
            let (status, hashes) = session.get(&format!("/tlog/{path}")).await;
            assert_eq!((status, hashes.len()), (200, usize::from(id.width()) * 32), "{path}");
            save(&path, &hashes);
            if id.level() > 0 {
                continue;
            }
            let path = Resource::Entries(id).to_string();
            // A stranger, and a request that is not signed for this purpose.
            let (status, text) = session.get(&format!("/tlog/{path}")).await;
            assert_eq!(status, 400, "{path}: {}", String::from_utf8_lossy(&text));
            let (status, bundle) = session.get_signed(&format!("/tlog/{path}")).await;
            assert_eq!(status, 200, "{}", String::from_utf8_lossy(&bundle));
            let entries = unbundle(&bundle).unwrap();
            for (entry, leaf) in entries.iter().zip(hashes.as_chunks::<32>().0) {
                assert_eq!(hash::leaf(entry), *leaf);
            }
            save(&path, &bundle);
            first.get_or_insert(path);
        }
        // A reader without permissions, and an account's user who is not a reader.
        for identity in identities {
            let mut session = server.session_as(identity).await;
            let (status, text) =
                session.get_signed(&format!("/tlog/{}", first.as_ref().unwrap())).await;
            assert_eq!(status, 400, "{}", String::from_utf8_lossy(&text));
            assert!(String::from_utf8(text).unwrap().contains("AccessDenied"));
        }
        for wrong in [
            "/tlog/",
            "/tlog/tile/0/999",
            "/tlog/tile/0/000.p/0",
            "/tlog/tile/9/000",
            "/tlog/tile/0/../../x",
            "/tlog/tile/0/x999/999",
            "/tlog/tile/63/000",
        ] {
            assert_eq!(session.get(wrong).await.0, 404, "{wrong}");
        }
    });
    // Reading the entries is recorded, too.
    let tail = succeed(&mut audit(data, &["tail", "-n", "20"]));
    assert!(tail.contains("GetAuditEntries"), "{tail}");
    // Go reads the whole log as it is published.
    let Some(go) = peer("go127") else { return };
    let keys = own.folder.write("keys", format!("{}\n", own.log_key()).as_bytes());
    let mut command = Command::new(go.join("bin/tlog-check"));
    let output = command.arg("log").arg(&mirror).arg(&keys).output().unwrap();
    let said = stdout(&output) + &common::stderr(&output);
    assert!(output.status.success() && said.contains("ok 70"), "{said}");
}

#[test]
fn settings_that_cannot_be_meant_are_refused() {
    for (lines, expected) in [
        ("witnesses = [\"x\"]", "has no URL"),
        ("witnesses = [\"x http://a\"]", "verifier key"),
        ("quorum = 1", "1 of 0 witnesses"),
        ("witness = []", "did you mean audit.witnesses?"),
    ] {
        let own = Organisation::new("own.example/w");
        own.is_witnessed_by(lines);
        let mut command = outlast();
        command.args(["server", "--listen", "127.0.0.1:0", "--data"]).arg(&own.folder.data);
        let said = fail(&mut command, 1);
        assert!(said.contains(expected), "{lines}: {said}");
    }
}

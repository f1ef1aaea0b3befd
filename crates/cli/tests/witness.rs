//! `outlast audit witness` as a process: its folder and commands, what it remembers after a kill, and Go as its
//! client.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use common::peers::peer;
use common::{fail, outlast, runtime, succeed};
use outlast_net::witness::{Witness, WitnessError, cosign};
use outlast_tlog::checkpoint::{Checkpoint, SignedCheckpoint};
use outlast_tlog::key::ML_DSA_44;
use outlast_tlog::tile::{Tiles, Tree};
use outlast_tlog::{Hash, Signer, VerifierKey, hash};
use serde_json::Value;

fn command(data: &Path, arguments: &[&str]) -> Command {
    let mut command = outlast();
    command.args(["audit", "witness"]).args(arguments).arg("--data").arg(data);
    command
}

fn json(data: &Path, arguments: &[&str]) -> Value {
    let text = succeed(command(data, arguments).args(["--output", "json"]));
    serde_json::from_str(&text).unwrap()
}

fn new_log() -> Signer {
    let stored = Signer::generate(&ML_DSA_44).unwrap();
    Signer::new("example.com/log", &ML_DSA_44, &stored).unwrap()
}

/// A witness's folder that watches a log.
struct Folder {
    _temporary: tempfile::TempDir,
    data: PathBuf,
    key: VerifierKey,
}

impl Folder {
    fn new(log: &VerifierKey) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let data = temporary.path().join("w");
        let made = json(&data, &["init", "--name", "w.example/1"]);
        let key = made["vkey"].as_str().unwrap().parse().unwrap();
        succeed(&mut command(&data, &["log", "add", "--vkey", &log.to_string()]));
        Self { _temporary: temporary, data, key }
    }

    fn serve(&self) -> Server {
        let mut child = command(&self.data, &["serve", "--listen", "127.0.0.1:0", "--log", "warn"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("w.example/1 listening on ");
        let url = url.unwrap_or_else(|| panic!("it did not start: {line}")).to_owned();
        Server { child, url }
    }
}

/// A witness process; dropping it kills it with `kill -9`.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn client(&self, key: &VerifierKey) -> Witness {
        Witness::new(key.clone(), &self.url, None).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A log with a leaf for each number; from `fork` on its history differs.
struct History {
    fork: usize,
}

impl Tiles for &History {
    type Error = ();

    fn tile(&self, level: u8, index: u64, width: u16) -> Result<Vec<Hash>, ()> {
        let span = 256_usize.pow(level.into());
        let leaf =
            |number: usize| hash::leaf(format!("{number} {}", number >= self.fork).as_bytes());
        let first = usize::try_from(index).unwrap() * 256;
        let subtree = |number: usize| {
            let leaves: Vec<Hash> = (number * span..(number + 1) * span).map(leaf).collect();
            hash::root(&leaves).ok_or(())
        };
        (first..first + usize::from(width)).map(subtree).collect()
    }
}

impl History {
    fn checkpoint(&self, log: &Signer, size: usize) -> SignedCheckpoint {
        let root = Tree::new(self, size as u64).unwrap().root().unwrap();
        let head = Checkpoint::new(log.verifier().name(), size as u64, root).unwrap();
        SignedCheckpoint::sign(head, &[log], 1).unwrap()
    }

    async fn cosign(&self, by: &Witness, log: &Signer, size: usize) -> Result<(), WitnessError> {
        let prove = |old| Tree::new(self, size as u64).unwrap().consistency(old).map_err(|_| "");
        cosign(by, &self.checkpoint(log, size), prove).await.map(drop)
    }
}

const HONEST: History = History { fork: usize::MAX };

#[test]
fn a_witness_has_a_folder_of_its_own() {
    let log = new_log();
    let folder = Folder::new(log.verifier());
    let data = &folder.data;
    assert_eq!(json(data, &["key"])["vkey"], folder.key.to_string());
    let mode =
        |name: &str| std::fs::metadata(data.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("root.key"), 0o600);
    let stored = std::fs::read(data.join("witness.db")).unwrap();
    let has = |text: &[u8]| stored.windows(text.len()).any(|part| part == text);
    assert!(!has(b"example.com/log") && !has(b"w.example/1"), "something is not sealed");

    let again = command(data, &["init", "--name", "w.example/2"]).output().unwrap();
    assert!(!again.status.success());
    assert_eq!(json(data, &["key"])["vkey"], folder.key.to_string());
    let listed = json(data, &["log", "list"]);
    assert_eq!((&listed[0]["origin"], &listed[0]["size"]), (&"example.com/log".into(), &0.into()));
    let twice = json(data, &["log", "add", "--vkey", &log.verifier().to_string()]);
    assert_eq!(twice["added"], false);
    let further = json(data, &["log", "add", "--vkey", &new_log().verifier().to_string()]);
    assert_eq!(further["added"], true);
    assert_eq!(json(data, &["log", "list"])[0]["keys"].as_array().unwrap().len(), 2);

    let text = fail(&mut command(data, &["log", "add", "--vkey", "example.com/log"]), 1);
    assert!(text.contains("not a verifier key"), "{text}");
    // A witness's folder is not a server's, nor the reverse.
    let text = fail(outlast().args(["server", "--data"]).arg(data), 1);
    assert!(text.contains("no outlast store"), "{text}");
    let elsewhere = data.join("none");
    let text = fail(&mut command(&elsewhere, &["serve"]), 1);
    assert!(text.contains("no witness in this folder"), "{text}");
    // Another root key opens nothing.
    let other = Folder::new(log.verifier());
    std::fs::copy(other.data.join("root.key"), data.join("root.key")).unwrap();
    fail(&mut command(data, &["key"]), 1);
}

#[test]
fn one_process_serves_and_logs_are_added_beside_it() {
    let log = new_log();
    let folder = Folder::new(log.verifier());
    let server = folder.serve();
    let text = fail(&mut command(&folder.data, &["serve", "--listen", "127.0.0.1:0"]), 1);
    assert!(text.contains("in use"), "{text}");
    let client = server.client(&folder.key);
    let stored = Signer::generate(&ML_DSA_44).unwrap();
    let second = Signer::new("example.com/second", &ML_DSA_44, &stored).unwrap();
    runtime().block_on(async {
        HONEST.cosign(&client, &log, 10).await.unwrap();
        let unknown = HONEST.cosign(&client, &second, 10).await;
        assert_eq!(unknown, Err(WitnessError::UnknownLog));
    });
    succeed(&mut command(&folder.data, &["log", "add", "--vkey", &second.verifier().to_string()]));
    runtime().block_on(HONEST.cosign(&client, &second, 10)).unwrap();
    assert_eq!(json(&folder.data, &["log", "list"]).as_array().unwrap().len(), 2);
}

/// Killed at any moment while it cosigns checkpoints, it never forgets one that it has answered.
#[test]
fn a_killed_witness_forgets_no_cosignature() {
    let log = new_log();
    let folder = Folder::new(log.verifier());
    let size = AtomicUsize::new(1);
    for round in 0..6_u32 {
        let server = folder.serve();
        let client = server.client(&folder.key);
        let answered = AtomicUsize::new(0);
        let killed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                runtime().block_on(async {
                    loop {
                        let next = size.load(Ordering::SeqCst);
                        match HONEST.cosign(&client, &log, next).await {
                            Ok(()) => {
                                size.store(next + 1, Ordering::SeqCst);
                                answered.fetch_add(1, Ordering::SeqCst);
                            }
                            Err(error) => {
                                // Another process may have taken the port of a killed one.
                                let killed = killed.load(Ordering::SeqCst);
                                assert!(killed || error.is_transient(), "{error}");
                                return;
                            }
                        }
                    }
                });
            });
            while answered.load(Ordering::SeqCst) < 3 {
                assert!(!asking.is_finished(), "it stopped by itself");
                std::thread::yield_now();
            }
            // At some point within the next requests.
            std::thread::sleep(std::time::Duration::from_millis(u64::from(round) * 3));
            killed.store(true, Ordering::SeqCst);
            drop(server);
            asking.join().unwrap();
        });
        let cosigned = size.load(Ordering::SeqCst) - 1;
        let known = json(&folder.data, &["log", "list"])[0]["size"].as_u64().unwrap();
        let known = usize::try_from(known).unwrap();
        // Unanswered requests may be recorded, and answered ones must be.
        assert!((cosigned..=cosigned + 1).contains(&known), "{known} after {cosigned}");
        // After a restart it accepts no other history of what it has cosigned.
        let server = folder.serve();
        let forged = History { fork: cosigned - 1 };
        let client = server.client(&folder.key);
        runtime().block_on(async {
            for size in [known, known + 1, known + 300] {
                let error = forged.cosign(&client, &log, size).await.unwrap_err();
                assert!(error.is_alarm(), "{error}");
            }
            // The interrupted one is cosigned when it is requested again.
            HONEST.cosign(&client, &log, known).await.unwrap();
        });
        size.store(known + 1, Ordering::SeqCst);
    }
}

#[test]
fn go_has_its_logs_cosigned() {
    let Some(peer) = peer("go127") else { return };
    let go = peer.join("bin/tlog-check");
    let scratch = tempfile::tempdir().unwrap();
    let made = scratch.path().join("log");
    succeed(Command::new(&go).arg("make").arg(&made).arg("300"));
    let keys = std::fs::read_to_string(made.join("keys")).unwrap();
    let mut keys = keys.lines();
    // Its log has two keys: either may sign.
    let folder = Folder::new(&keys.next().unwrap().parse().unwrap());
    succeed(&mut command(&folder.data, &["log", "add", "--vkey", keys.next().unwrap()]));
    let server = folder.serve();
    let ask = |sizes: &[&str]| {
        let mut command = Command::new(&go);
        command.args(["ask", &server.url, &folder.key.to_string()]).arg(&made).args(sizes);
        command
    };
    let said = succeed(&mut ask(&["1", "2", "2", "7", "256", "300"]));
    assert_eq!(said.lines().count(), 6);
    assert!(said.lines().all(|line| line.starts_with("ok ")), "{said}");
    // The client begins with 0 each time, and is told the right size.
    let said = fail(&mut ask(&["300"]), 1);
    assert!(said.contains("409 Conflict: 300"), "{said}");
}

//! `outlast audit`: what is verified, what every kind of change does to that, exports, and when checkpoints are made.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

mod common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Folder, Server, fail, outlast, run, runtime, stdout, succeed};
use outlast_api::ops::kms::list_keys;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

fn audit(data: &Path, arguments: &[&str]) -> Command {
    let mut command = outlast();
    command.arg("audit").args(arguments).arg("--data").arg(data);
    command
}

fn verified(data: &Path) -> Value {
    serde_json::from_str(&succeed(&mut audit(data, &["verify", "--output", "json"]))).unwrap()
}

/// Makes `count` events through a server, over several connections.
fn calls(server: &Server, count: usize) {
    runtime().block_on(async {
        let mut tasks = Vec::new();
        for part in 0..8 {
            let mut session = server.session().await.unwrap();
            let share = count / 8 + usize::from(part < count % 8);
            tasks.push(tokio::spawn(async move {
                for _ in 0..share {
                    session.call::<list_keys::ListKeys>(json!({})).await.unwrap().unwrap();
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
}

/// A folder whose server has made this many events and has ended.
fn filled(count: usize) -> Folder {
    let folder = Folder::new();
    let mut server = folder.serve();
    calls(&server, count);
    assert_eq!(server.terminate(), Some(0));
    folder
}

fn sql(data: &Path) -> Connection {
    Connection::open(data.join("store.db")).unwrap()
}

fn number(data: &Path, query: &str) -> u64 {
    sql(data).query_row(query, [], |row| row.get(0)).unwrap()
}

/// A copy of the folder, to be changed.
fn copy(folder: &Folder, name: &str) -> PathBuf {
    let to = folder.path(name);
    succeed(Command::new("cp").arg("-r").arg(&folder.data).arg(&to));
    to
}

/// Records below a prefix, as JSON.
fn records(data: &Path, prefix: &str) -> Vec<(String, Value)> {
    let sql = sql(data);
    let mut found =
        sql.prepare("SELECT key, value FROM record WHERE key LIKE ?1 || '%' ORDER BY key").unwrap();
    let rows = found
        .query_map([prefix], |row| Ok((row.get(0)?, row.get::<_, Vec<u8>>(1)?)))
        .unwrap()
        .map(Result::unwrap);
    rows.map(|(key, value)| (key, serde_json::from_slice(&value).unwrap())).collect()
}

fn put(data: &Path, key: &str, value: &Value) {
    let bytes = serde_json::to_vec(value).unwrap();
    let changed = sql(data)
        .execute("UPDATE record SET value = ?2 WHERE key = ?1", params![key, bytes])
        .unwrap();
    assert_eq!(changed, 1);
}

#[test]
fn a_checkpoint_comes_with_every_thousand_events_and_at_the_end() {
    let folder = Folder::new();
    let mut server = folder.serve();
    calls(&server, 2100);
    // Beside the running server, and while it is busy.
    succeed(&mut audit(&folder.data, &["verify"]));
    let begun = Instant::now();
    while verified(&folder.data)["uncovered"].as_u64().unwrap() >= 1000 {
        assert!(begun.elapsed() < Duration::from_secs(20), "no checkpoint came");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(server.terminate(), Some(0));
    let found = verified(&folder.data);
    assert_eq!((&found["events"], &found["uncovered"]), (&json!(2100), &json!(0)), "{found}");
    assert_eq!(found["keys"].as_array().unwrap().len(), 1);
    assert_eq!(found["problems"], json!([]));
    let at: Vec<_> = records(&folder.data, "audit/checkpoint/")
        .into_iter()
        .map(|(_, checkpoint)| checkpoint["sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(at.len() as u64, found["checkpoints"].as_u64().unwrap());
    for due in [1000, 2000, 2100] {
        assert!(at.contains(&due), "no checkpoint at {due}: {at:?}");
    }
    // An end without anything new makes none.
    assert_eq!(folder.serve().terminate(), Some(0));
    assert_eq!(verified(&folder.data)["checkpoints"], found["checkpoints"]);
}

#[test]
fn what_a_killed_server_left_is_signed_by_the_next() {
    let folder = Folder::new();
    let mut server = folder.serve();
    calls(&server, 2300);
    server.kill();
    let before = verified(&folder.data);
    assert_eq!(before["events"], 2300);
    assert!(before["uncovered"].as_u64().unwrap() > 0, "{before}");
    let _server = folder.serve();
    let begun = Instant::now();
    while verified(&folder.data)["uncovered"] != 0 {
        assert!(begun.elapsed() < Duration::from_secs(10), "{}", verified(&folder.data));
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn every_change_of_a_store_is_noticed() {
    let folder = filled(1200);
    assert_eq!(verified(&folder.data)["events"], 1200);
    let last = "SELECT max(sequence) FROM event";
    let change = |name: &str, expected: &str, problems: usize, change: &dyn Fn(&Path)| {
        let data = copy(&folder, name);
        change(&data);
        let output = run(&mut audit(&data, &["verify", "--output", "json"]));
        let said = format!("{}{}", stdout(&output), common::stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains(expected), "{name}: {said}");
        if problems > 0 {
            let value: Value = serde_json::from_str(&stdout(&output)).unwrap();
            assert_eq!(value["problems"].as_array().unwrap().len(), problems, "{name}: {said}");
        }
        // The check of the whole store sees it, too.
        let checked = run(outlast().args(["store", "check", "--data"]).arg(&data));
        assert_eq!(checked.status.code(), Some(1), "{name}: {}", stdout(&checked));
        std::fs::remove_dir_all(data).unwrap();
    };
    let execute = |data: &Path, statement: &str| {
        assert!(sql(data).execute(statement, []).unwrap() > 0);
    };
    change("body", "event 500 does not continue the chain", 1, &|data| {
        execute(
            data,
            "UPDATE event SET body = CAST(replace(CAST(body AS TEXT), 'ListKeys', 'ListKeyz') AS BLOB) WHERE sequence = 500",
        );
    });
    change("link", "event 700 does not continue the chain", 2, &|data| {
        // The event after it does not continue from it either.
        execute(data, "UPDATE event SET chain = zeroblob(32) WHERE sequence = 700");
    });
    change("middle", "event 601 follows event 599", 1, &|data| {
        execute(data, "DELETE FROM event WHERE sequence = 600");
    });
    change("many", "event 1101 follows event 99", 2, &|data| {
        // With the checkpoint at 1000.
        execute(data, "DELETE FROM event WHERE sequence BETWEEN 100 AND 1100");
    });
    change("first", "event 2 follows event 0", 1, &|data| {
        execute(data, "DELETE FROM event WHERE sequence = 1");
    });
    change("tail", "covers events that are not there", 0, &|data| {
        execute(data, "DELETE FROM event WHERE sequence > 1150");
    });
    change("last", "covers events that are not there", 0, &|data| {
        execute(data, "DELETE FROM event WHERE sequence = (SELECT max(sequence) FROM event)");
    });
    change("tail and checkpoint", "were signed, and are missing", 1, &|data| {
        execute(data, "DELETE FROM event WHERE sequence > 1150");
        execute(
            data,
            "DELETE FROM record WHERE key > 'audit/checkpoint/00000000000000001150' AND key < 'audit/checkpoint0'",
        );
    });
    change("last checkpoint", "is missing or not valid", 1, &|data| {
        execute(
            data,
            "DELETE FROM record WHERE key = (SELECT max(key) FROM record WHERE key LIKE 'audit/checkpoint/%')",
        );
    });
    change("no last", "the record of the last checkpoint is missing", 1, &|data| {
        execute(data, "DELETE FROM record WHERE key = 'audit/last'");
    });
    change("another last", "audit/last", 0, &|data| {
        put(data, "audit/last", &json!({ "sequence": 0, "at_ms": 0 }));
    });
    change("signature", "has no valid signature", 0, &|data| {
        let (key, mut checkpoint) = records(data, "audit/checkpoint/").pop().unwrap();
        let signature = checkpoint["signature"].as_str().unwrap();
        let flipped = if signature.ends_with('0') { "1" } else { "0" };
        let other = format!("{}{flipped}", &signature[..signature.len() - 1]);
        checkpoint["signature"] = other.into();
        put(data, &key, &checkpoint);
    });
    change("time of checkpoint", "has no valid signature", 0, &|data| {
        let (key, mut checkpoint) = records(data, "audit/checkpoint/").pop().unwrap();
        checkpoint["at_ms"] = 1.into();
        put(data, &key, &checkpoint);
    });
    change("key of checkpoint", "unknown key", 0, &|data| {
        let (key, mut checkpoint) = records(data, "audit/checkpoint/").pop().unwrap();
        checkpoint["key_id"] = "00".repeat(16).into();
        put(data, &key, &checkpoint);
    });
    // Whoever rewrites events, the chain behind them included, must sign, too.
    change("rewritten", "are not those that were signed", 0, &|data| {
        rewrite(data, 900);
    });
    change("rewritten and signed with another key", "audit/public-key/", 0, &|data| {
        rewrite(data, 900);
        forge(data);
    });
    assert_eq!(number(&folder.data, last), 1200, "the original was touched");
    succeed(&mut audit(&folder.data, &["verify"]));
}

/// Changes an event and makes all links after it anew.
fn rewrite(data: &Path, sequence: u64) {
    let sql = sql(data);
    let mut link: Vec<u8> = sql
        .query_row("SELECT chain FROM event WHERE sequence = ?1", [sequence - 1], |row| row.get(0))
        .unwrap();
    let mut next: Vec<(u64, Vec<u8>)> = sql
        .prepare("SELECT sequence, body FROM event WHERE sequence >= ?1 ORDER BY sequence")
        .unwrap()
        .query_map([sequence], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    next[0].1 = br#"{"eventName":"Nothing"}"#.to_vec();
    sql.execute_batch("BEGIN").unwrap();
    for (sequence, body) in next {
        let before: [u8; 32] = link.try_into().unwrap();
        link = outlast_store::chain::next(&before, sequence, &body).to_vec();
        sql.execute(
            "UPDATE event SET body = ?2, chain = ?3 WHERE sequence = ?1",
            params![sequence, body, link],
        )
        .unwrap();
    }
    sql.execute_batch("COMMIT").unwrap();
}

/// Signs all checkpoints again with a key of one's own, and puts that in the place of the store's.
fn forge(data: &Path) {
    use outlast_crypto::keys::KeySpec;
    use outlast_crypto::signatures::{ML_DSA_65, Message};
    use outlast_domain::audit::PublicKey;
    let spec = KeySpec::by_name("ML_DSA_65").unwrap();
    let own = spec.load(&spec.generate().unwrap()).unwrap();
    let public = PublicKey::new(own.public_key().unwrap());
    let (place, _) = records(data, "audit/public-key/").pop().unwrap();
    put(data, &place, &serde_json::to_value(&public).unwrap());
    for (key, mut checkpoint) in records(data, "audit/checkpoint/") {
        let sequence = checkpoint["sequence"].as_u64().unwrap();
        let link: Vec<u8> = sql(data)
            .query_row("SELECT chain FROM event WHERE sequence = ?1", [sequence], |row| row.get(0))
            .unwrap();
        let chain = hex::encode(link);
        let mut statement = b"outlast audit checkpoint v1\0".to_vec();
        statement.extend(sequence.to_be_bytes());
        statement.extend(chain.as_bytes());
        statement.extend(checkpoint["at_ms"].as_i64().unwrap().to_be_bytes());
        let signature = own.sign(&ML_DSA_65, Message::Raw(&statement)).unwrap();
        checkpoint["chain"] = chain.into();
        checkpoint["key_id"] = public.id.clone().into();
        checkpoint["signature"] = hex::encode(signature).into();
        put(data, &key, &checkpoint);
    }
}

fn verify_file(file: &Path, more: &[&str]) -> Command {
    let mut command = outlast();
    command.args(["audit", "verify", "--file"]).arg(file).args(more);
    command
}

#[test]
fn an_export_is_verified_anywhere() {
    let folder = filled(1050);
    let file = folder.path("events.jsonl");
    let out = file.display().to_string();
    let text = succeed(&mut audit(&folder.data, &["export", "--out", &out]));
    assert!(text.contains("wrote 1050 events"), "{text}");
    let store = verified(&folder.data);
    let key = store["keys"][0].as_str().unwrap().to_owned();
    // Away from the store, and whatever the environment says of one.
    let mut command = verify_file(&file, &["--key-id", &key, "--output", "json"]);
    command.env("OUTLAST_DATA", "/nowhere").env("OUTLAST_ROOT_KEY", "file:/nowhere/root.key");
    let found: Value = serde_json::from_str(&succeed(&mut command)).unwrap();
    assert_eq!(found, store);
    let output = run(verify_file(&file, &[]).env("OUTLAST_ROOT_KEY", "file:/nowhere"));
    assert!(output.status.success(), "{}", common::stderr(&output));
    assert!(common::stderr(&output).contains("--key-id"));
    let other = fail(&mut verify_file(&file, &["--key-id", &"00".repeat(16)]), 1);
    assert!(other.contains("problems"), "{other}");
    assert_eq!(
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions())
            & 0o777,
        0o600
    );
    // An earlier export is evidence.
    let again = fail(&mut audit(&folder.data, &["export", "--out", &out]), 1);
    assert!(again.contains("exists already") && again.contains("hint: "), "{again}");

    let lines: Vec<String> =
        std::fs::read_to_string(&file).unwrap().lines().map(str::to_owned).collect();
    let at = |what: &str| lines.iter().position(|line| line.contains(what)).unwrap();
    let event = |sequence: u64| at(&format!("{{\"event\":{{\"sequence\":{sequence},"));
    let check = |name: &str, expected: &str, lines: &[String]| {
        let changed = folder.path("changed.jsonl");
        std::fs::write(&changed, lines.join("\n") + "\n").unwrap();
        for more in [&["--key-id", key.as_str()][..], &[]] {
            let output = run(&mut verify_file(&changed, more));
            let said = stdout(&output) + &common::stderr(&output);
            let believes = more.is_empty() && name.starts_with("forged");
            if !believes {
                assert_eq!(output.status.code(), Some(1), "{name}: {said}");
                assert!(said.contains(expected), "{name}: {said}");
            }
        }
    };
    let with = |place: usize, line: &str| {
        let mut changed = lines.clone();
        line.clone_into(&mut changed[place]);
        changed
    };
    let without = |place: usize| {
        let mut changed = lines.clone();
        changed.remove(place);
        changed
    };
    let body = lines[event(77)].replace("ListKeys", "ListKeyz");
    check("body", "event 77 does not continue the chain", &with(event(77), &body));
    check("taken out", "event 501 follows event 499", &without(event(500)));
    let mut swapped = lines.clone();
    swapped.swap(event(300), event(301));
    check("swapped", "event 301 follows event 299", &swapped);
    let mut twice = lines.clone();
    twice.insert(event(9), lines[event(9)].clone());
    check("twice", "event 9 comes after event 9", &twice);
    check("cut off", "it was cut off", &lines[..lines.len() - 20]);
    check("cut off after an event", "it was cut off", &lines[..=event(200)]);
    let mut shortened = lines[..=event(1049)].to_vec();
    shortened.push(lines.last().unwrap().clone());
    check("tail taken out", "the export had 1050 events", &shortened);
    check("no key", "key", &without(at("public_key")));
    let garbled = with(event(5), "{\"event\":1}");
    check("garbled", "line", &garbled);
    check("long", "line", &with(event(5), &"x".repeat(2 << 20)));
    let mut more = lines.clone();
    more.push(lines[event(1050)].clone());
    check("after the end", "comes after the end", &more);
    check("empty", "line 1", &[]);
    let signature = at("\"checkpoint\"");
    let other = lines[signature].replace("\"at_ms\":1", "\"at_ms\":2");
    check("checkpoint", "has no valid signature", &with(signature, &other));
    // All signatures taken out, and the events made anew: without the key's id nobody can tell.
    let bare: Vec<String> =
        lines.iter().filter(|line| !line.starts_with("{\"checkpoint\"")).cloned().collect();
    check("forged: nothing signed", "nothing in the export is signed with the key", &bare);
}

#[test]
fn tail_shows_the_last_events_and_follows() {
    let folder = Folder::new();
    let server = folder.serve();
    calls(&server, 30);
    let text = succeed(&mut audit(&folder.data, &["tail"]));
    assert_eq!(text.lines().count(), 10);
    let last = text.lines().last().unwrap();
    assert!(last.contains(" 30 ") || last.trim_start().starts_with("30 "), "{last}");
    for part in ["ListKeys", "user/administrator", "X25519MLKEM768", "ok"] {
        assert!(last.contains(part), "{part}: {last}");
    }
    let text = succeed(&mut audit(&folder.data, &["tail", "-n", "3", "--output", "json"]));
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 3);
    assert_eq!(events[0]["eventSource"], "kms.amazonaws.com");
    assert_eq!(succeed(&mut audit(&folder.data, &["tail", "-n", "0"])), "");
    assert_eq!(succeed(&mut audit(&folder.data, &["tail", "-n", "1000"])).lines().count(), 30);

    let mut follower = audit(&folder.data, &["tail", "-n", "1", "--follow"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    assert!(lines.next().unwrap().unwrap().contains("ListKeys"));
    succeed(outlast().args(["principal", "create", "zoe", "--data"]).arg(&folder.data));
    let line = lines.next().unwrap().unwrap();
    assert!(line.contains("CreateUser") && line.contains("outlast command line"), "{line}");
    // When nobody reads any more it ends with the next event.
    drop(lines);
    calls(&server, 1);
    let begun = Instant::now();
    let status = loop {
        match follower.try_wait().unwrap() {
            Some(status) => break status,
            None if begun.elapsed() > Duration::from_secs(10) => {
                follower.kill().unwrap();
                panic!("tail goes on without a reader");
            }
            None => std::thread::sleep(Duration::from_millis(50)),
        }
    };
    assert!(status.success(), "{status}");
}

#[test]
fn what_cannot_be_verified_is_named() {
    let folder = Folder::new();
    let text = fail(outlast().args(["audit", "verify"]), 2);
    assert!(text.contains("--data"), "{text}");
    let text = fail(&mut audit(&folder.path("none"), &["verify"]), 1);
    assert!(text.contains("no outlast store"), "{text}");
    let text = fail(&mut verify_file(&folder.path("none"), &[]), 1);
    assert!(text.contains("none"), "{text}");
    let text = fail(outlast().args(["audit", "verify", "--key-id", "00"]), 2);
    assert!(text.contains("--file"), "{text}");
    let out = folder.path("no/folder/x").display().to_string();
    assert!(fail(&mut audit(&folder.data, &["export", "--out", &out]), 1).contains("no/folder"));
    // A new store has nothing to be wrong.
    let found = verified(&folder.data);
    assert_eq!((&found["events"], &found["checkpoints"]), (&json!(0), &json!(0)));
}

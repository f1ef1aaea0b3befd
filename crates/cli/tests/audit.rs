//! `outlast audit`: when the log is signed, what an attacker with the database can and cannot do to it, proofs,
//! exports and pruning.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use common::{Folder, Server, fail, outlast, run, runtime, stdout, succeed};
use outlast_api::ops::kms::{create_key, list_keys};
use outlast_testing::{PATIENCE, until};
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

/// A folder whose server has recorded this many events and has stopped.
fn filled(count: usize) -> Folder {
    let folder = Folder::new();
    let mut server = folder.serve();
    calls(&server, count);
    assert_eq!(server.terminate(), Some(0));
    folder
}

/// Waits until all events are older than 0 days: events have times in whole seconds.
fn next_second() {
    let second = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let begun = second();
    until("the next second", || second() > begun);
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

fn execute(data: &Path, statement: &str) {
    let changed = sql(data).execute(statement, []).unwrap();
    assert!(changed > 0, "{statement}");
}

/// The last signed head, as a file.
fn kept_head(folder: &Folder, data: &Path, name: &str) -> PathBuf {
    let bytes: Vec<u8> = sql(data)
        .query_row("SELECT value FROM record WHERE key = 'audit/signed-head'", [], |row| row.get(0))
        .unwrap();
    let text: String = serde_json::from_slice(outlast_domain::seal::json(&bytes)).unwrap();
    folder.write(name, text.as_bytes())
}

/// The status and text of `/readyz`.
fn readyz(server: &Server) -> (u16, String) {
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let (status, body) = session.get("/readyz").await;
        (status, String::from_utf8(body).unwrap())
    })
}

/// The result of a call: `ok`, or its error's code.
fn list_keys_code(server: &Server) -> String {
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        match session.call::<list_keys::ListKeys>(json!({})).await.unwrap() {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.code,
        }
    })
}

#[test]
fn a_head_is_signed_after_a_thousand_events_and_at_the_end() {
    let folder = Folder::new();
    let mut server = folder.serve();
    calls(&server, 2100);
    // Beside the running server, while it is busy.
    succeed(&mut audit(&folder.data, &["verify"]));
    until("a signed head", || verified(&folder.data)["unsigned"].as_u64().unwrap() < 1000);
    assert_eq!(server.terminate(), Some(0));
    let found = verified(&folder.data);
    assert_eq!((&found["events"], &found["size"]), (&json!(2100), &json!(2100)), "{found}");
    assert_eq!((&found["unsigned"], &found["problems"]), (&json!(0), &json!([])), "{found}");
    // Stopping without new events leaves the head as it is.
    let before = std::fs::read(kept_head(&folder, &folder.data, "one")).unwrap();
    assert_eq!(folder.serve().terminate(), Some(0));
    assert_eq!(std::fs::read(kept_head(&folder, &folder.data, "two")).unwrap(), before);
}

#[test]
fn what_a_killed_server_left_is_signed_by_the_next() {
    let folder = Folder::new();
    let mut server = folder.serve();
    calls(&server, 300);
    server.kill();
    let before = verified(&folder.data);
    assert_eq!(before["events"], 300);
    assert!(before["unsigned"].as_u64().unwrap() > 0, "{before}");
    let _server = folder.serve();
    until("a head over all", || verified(&folder.data)["unsigned"] == 0);
}

#[test]
fn every_change_of_a_store_is_noticed() {
    let folder = filled(1200);
    assert_eq!(verified(&folder.data)["size"], 1200);
    // A statement, what `verify` says, and whether the next server refuses to start: before it serves, it does not
    // read what was signed long ago; its patrol does that.
    let changed = |event: u64| {
        format!(
            "UPDATE event SET body = CAST(replace(CAST(body AS TEXT), 'ListKeys', 'ListKeyz') AS BLOB) WHERE sequence = {event}"
        )
    };
    let delete = |key: &str| format!("DELETE FROM record WHERE key = '{key}'");
    for (name, statement, expected, refuses) in [
        ("body", changed(500), "event/500: its leaf hash", false),
        ("body in the last tile", changed(1190), "event/1190: its leaf hash", false),
        (
            "leaf in the last tile",
            "UPDATE event SET leaf = zeroblob(32) WHERE sequence = 1190".into(),
            "event/1190: its leaf hash",
            true,
        ),
        ("middle", "DELETE FROM event WHERE sequence = 600".into(), "the events after 599", false),
        (
            "many",
            "DELETE FROM event WHERE sequence BETWEEN 100 AND 1100".into(),
            "the events after 99",
            true,
        ),
        ("first", "DELETE FROM event WHERE sequence = 1".into(), "the events before it", false),
        ("tail", "DELETE FROM event WHERE sequence > 1150".into(), "were signed and are missing", true),
        ("everything", "DELETE FROM event".into(), "were signed and are missing", true),
        ("head", delete("audit/head"), "audit/head: it is missing", true),
        ("key", delete("audit/log-key"), "the key that signs the log is missing", true),
        ("signed head", delete("audit/signed-head"), "audit/signed-head: it is missing", true),
        ("tile", delete("audit/tile/01/0000000000000000"), "it is missing, or not the tile", true),
        (
            "another place",
            "UPDATE record SET value = (SELECT value FROM record WHERE key = 'audit/log-key') WHERE key = 'audit/head'".into(),
            "audit/head",
            true,
        ),
    ] {
        let data = copy(&folder, name);
        execute(&data, &statement);
        let output = run(&mut audit(&data, &["verify"]));
        let said = format!("{}{}", stdout(&output), common::stderr(&output));
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        assert!(said.contains(expected), "{name}: {said}");
        // The check of the whole store finds it, too.
        let checked = run(outlast().args(["store", "check", "--data"]).arg(&data));
        assert_eq!(checked.status.code(), Some(1), "{name}: {}", stdout(&checked));
        if refuses {
            let text = fail(outlast().args(["server", "--listen", "127.0.0.1:0", "--data"]).arg(&data), 1);
            assert!(text.contains("the audit trail was tampered with"), "{name}: {text}");
        }
        std::fs::remove_dir_all(data).unwrap();
    }
    succeed(&mut audit(&folder.data, &["verify"]));
}

/// The whole trail is removed, as if the store were new: a store without a trail does not exist.
#[test]
fn a_store_without_its_trail_does_not_start() {
    let folder = filled(40);
    let empty = copy(&folder, "empty");
    execute(&empty, "DELETE FROM event");
    execute(&empty, "DELETE FROM record WHERE key LIKE 'audit/%'");
    let said = fail(&mut audit(&empty, &["verify"]), 1);
    assert!(said.contains("problems"), "{said}");
    fail(outlast().args(["store", "check", "--data"]).arg(&empty), 1);
    let said = fail(outlast().args(["server", "--listen", "127.0.0.1:0", "--data"]).arg(&empty), 1);
    assert!(said.contains("its records are missing"), "{said}");
}

/// Rewrites the bodies of events, with everything that somebody with the database can recompute: leaf hashes and
/// tiles.
fn rewrite(data: &Path, from: &str, to: &str) -> usize {
    let mut sql = sql(data);
    let sql = sql.transaction().unwrap();
    let found: Vec<(u64, Vec<u8>)> = sql
        .prepare("SELECT sequence, body FROM event WHERE instr(CAST(body AS TEXT), ?1) > 0")
        .unwrap()
        .query_map([from], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for (sequence, body) in &found {
        let body = String::from_utf8(body.clone()).unwrap().replace(from, to).into_bytes();
        let leaf = outlast_tlog::hash::leaf(&body);
        sql.execute(
            "UPDATE event SET body = ?2, leaf = ?3 WHERE sequence = ?1",
            params![sequence, body, leaf],
        )
        .unwrap();
    }
    sql.commit().unwrap();
    found.len()
}

#[test]
fn a_running_server_never_signs_a_rewritten_past() {
    let folder = Folder::new();
    let mut server = folder.serve();
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        for _ in 0..9 {
            session.call::<create_key::CreateKey>(json!({})).await.unwrap().unwrap();
        }
    });
    calls(&server, 1100);
    until("a signed head", || verified(&folder.data)["size"].as_u64().unwrap() >= 1000);
    assert_eq!(readyz(&server).0, 200);
    let head = kept_head(&folder, &folder.data, "head");
    assert_eq!(rewrite(&folder.data, "CreateKey", "DeleteKey"), 9);
    until("the alarm", || readyz(&server).0 == 503);
    let (_, text) = readyz(&server);
    assert!(text.contains("tampered") && text.contains("not those that were signed"), "{text}");
    // Calls are refused: none could be recorded.
    assert_eq!(list_keys_code(&server), "KMSInternalException");
    let events = number(&folder.data, "SELECT max(sequence) FROM event");
    assert_eq!(list_keys_code(&server), "KMSInternalException");
    assert_eq!(number(&folder.data, "SELECT max(sequence) FROM event"), events);
    server.terminate();
    // Nothing was signed since, and the forgery is reported.
    let now = kept_head(&folder, &folder.data, "now");
    assert_eq!(std::fs::read(head).unwrap(), std::fs::read(now).unwrap());
    let said = fail(&mut audit(&folder.data, &["verify"]), 1);
    assert!(said.contains("problems"), "{said}");
    let checked = run(outlast().args(["store", "check", "--data"]).arg(&folder.data));
    assert!(stdout(&checked).contains("a server has raised an alarm"), "{}", stdout(&checked));
    let said =
        fail(outlast().args(["server", "--listen", "127.0.0.1:0", "--data"]).arg(&folder.data), 1);
    assert!(said.contains("nobody has cleared") && said.contains("hint: "), "{said}");
}

/// The events of the last minute are not signed yet, but the server that wrote them remembers them.
#[test]
fn unsigned_events_are_protected_from_changes() {
    for attack in ["rewrite", "delete"] {
        let folder = Folder::new();
        let mut server = folder.serve();
        calls(&server, 20);
        assert!(verified(&folder.data)["unsigned"].as_u64().unwrap() > 0);
        match attack {
            "rewrite" => assert!(rewrite(&folder.data, "ListKeys", "ListKeyz") > 0),
            _ => execute(&folder.data, "DELETE FROM event WHERE sequence > 15"),
        }
        // It signs when it stops, and notices.
        server.terminate();
        let checked = run(outlast().args(["store", "check", "--data"]).arg(&folder.data));
        let said = stdout(&checked);
        assert_eq!(checked.status.code(), Some(1), "{attack}: {said}");
        assert!(said.contains("a server has raised an alarm"), "{attack}: {said}");
        let start = ["server", "--listen", "127.0.0.1:0", "--data"];
        fail(outlast().args(start).arg(&folder.data), 1);
        // An operator who has investigated may continue; that is recorded.
        let text = succeed(&mut audit(&folder.data, &["clear-alarm"]));
        assert!(text.contains("cleared:"), "{text}");
        assert_eq!(folder.serve().terminate(), Some(0), "{attack}");
        let tail = succeed(&mut audit(&folder.data, &["tail"]));
        assert!(tail.contains("ClearAuditAlarm"), "{tail}");
    }
}

#[test]
fn a_head_that_was_kept_tells_that_the_database_was_set_back() {
    let folder = filled(50);
    let old = copy(&folder, "old");
    let first = kept_head(&folder, &folder.data, "first.checkpoint");
    let mut server = folder.serve();
    calls(&server, 30);
    assert_eq!(server.terminate(), Some(0));
    let second = kept_head(&folder, &folder.data, "second.checkpoint");
    let heads = |data: &Path, heads: &[&PathBuf]| {
        let mut command = audit(data, &["verify"]);
        for head in heads {
            command.arg("--checkpoint").arg(head);
        }
        command
    };
    let text = succeed(&mut heads(&folder.data, &[&second, &first]));
    assert!(text.contains("50, 80, 80"), "{text}");
    // The older database is consistent in itself; only the holder of a head can tell.
    succeed(&mut audit(&old, &["verify"]));
    let said = fail(&mut heads(&old, &[&second]), 3);
    assert!(said.contains("refused"), "{said}");
    // If it is continued, it becomes another log with the same name.
    let mut server = Server::start(&old, &[]);
    calls(&server, 60);
    assert_eq!(server.terminate(), Some(0));
    succeed(&mut heads(&old, &[&first]));
    let said = fail(&mut heads(&old, &[&second]), 3);
    assert!(said.contains("does not continue"), "{said}");
    // A head of another log, and one that is not signed.
    let other = filled(3);
    let foreign = kept_head(&other, &other.data, "foreign.checkpoint");
    fail(&mut heads(&folder.data, &[&foreign]), 3);
    let text = std::fs::read_to_string(&second).unwrap().replacen("\n80\n", "\n79\n", 1);
    fail(&mut heads(&folder.data, &[&folder.write("changed", text.as_bytes())]), 3);
}

/// The policy of a store's log, as a file.
fn policy(folder: &Folder, name: &str) -> PathBuf {
    let text = succeed(&mut audit(&folder.data, &["policy"]));
    folder.write(name, text.as_bytes())
}

fn verify_with(what: &str, file: &Path, policy: &Path) -> Command {
    let mut command = outlast();
    command.args(["audit", "verify", what]).arg(file).arg("--policy-file").arg(policy);
    // Away from the store, whatever the environment says about one.
    command.env("OUTLAST_DATA", "/nowhere").env("OUTLAST_ROOT_KEY", "file:/nowhere/root.key");
    command
}

#[test]
fn one_event_is_proved_to_who_has_only_the_policy() {
    let folder = filled(700);
    let policy = policy(&folder, "policy");
    let all = succeed(&mut audit(&folder.data, &["tail", "-n", "700", "--output", "json"]));
    let events: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut proofs = Vec::new();
    for index in [0, 1, 255, 256, 511, 512, 698, 699] {
        let id = events[index]["eventID"].as_str().unwrap();
        let file = folder.path(&format!("{index}.tlog-proof"));
        let out = file.display().to_string();
        let text = succeed(&mut audit(&folder.data, &["prove", "--event", id, "--out", &out]));
        assert!(text.contains(&format!("event {} of 700", index + 1)), "{text}");
        let mut command = verify_with("--proof", &file, &policy);
        let found: Value =
            serde_json::from_str(&succeed(command.args(["--output", "json"]))).unwrap();
        assert_eq!((&found["index"], &found["size"]), (&json!(index), &json!(700)), "{found}");
        assert_eq!(found["event"], events[index]);
        proofs.push(file);
    }
    let by_index = folder.path("by-index").display().to_string();
    succeed(&mut audit(&folder.data, &["prove", "--index", "255", "--out", &by_index]));
    assert_eq!(std::fs::read(&proofs[2]).unwrap(), std::fs::read(&by_index).unwrap());
    // The proof with another event, another index, another hash, and another log's policy.
    let good = std::fs::read_to_string(&proofs[2]).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    let with = |at: usize, line: &str| {
        let mut lines = lines.clone();
        lines[at] = line;
        lines.join("\n") + "\n"
    };
    let other = std::fs::read_to_string(&proofs[3]).unwrap();
    let hash =
        lines[3].replacen(&lines[3][..1], if lines[3].starts_with('A') { "B" } else { "A" }, 1);
    for (name, text) in [
        ("another event", with(1, other.lines().nth(1).unwrap())),
        ("another index", with(2, "index 254")),
        ("another hash", with(3, &hash)),
        (
            "no event",
            lines
                .iter()
                .filter(|line| !line.starts_with("extra"))
                .copied()
                .collect::<Vec<_>>()
                .join("\n")
                + "\n",
        ),
        ("another size", good.replacen("\n700\n", "\n701\n", 1)),
        ("nothing", String::new()),
    ] {
        let changed = folder.write("changed.tlog-proof", text.as_bytes());
        let output = run(&mut verify_with("--proof", &changed, &policy));
        assert!(matches!(output.status.code(), Some(1 | 3)), "{name}: {}", stdout(&output));
    }
    let another = filled(3);
    let foreign = self::policy(&another, "policy");
    let said = fail(&mut verify_with("--proof", &proofs[0], &foreign), 3);
    assert!(said.contains("refused"), "{said}");
    let said = fail(&mut audit(&folder.data, &["prove", "--event", "nobody"]), 1);
    assert!(said.contains("no event") && said.contains("hint: "), "{said}");
    fail(outlast().args(["audit", "verify", "--proof", "x"]), 2);
}

#[test]
fn an_export_is_verified_anywhere() {
    let folder = filled(1050);
    let policy = policy(&folder, "policy");
    let file = folder.path("events.jsonl");
    let out = file.display().to_string();
    let text = succeed(&mut audit(&folder.data, &["export", "--out", &out]));
    assert!(text.contains("wrote 1050 events"), "{text}");
    let found: Value = serde_json::from_str(&succeed(
        verify_with("--file", &file, &policy).args(["--output", "json"]),
    ))
    .unwrap();
    let store = verified(&folder.data);
    assert_eq!((&found["root"], &found["events"]), (&store["root"], &json!(1050)), "{found}");
    // Without a policy the store's own key counts, with a warning.
    let output = run(outlast().args(["audit", "verify", "--file"]).arg(&file));
    assert!(output.status.success() && common::stderr(&output).contains("--policy-file"));
    let another = filled(3);
    let foreign = self::policy(&another, "foreign");
    fail(&mut verify_with("--file", &file, &foreign), 3);
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
    assert_eq!(lines.len(), 1050 + 4);
    let event = |number: usize| number + 1;
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
    let swapped = |a: usize, b: usize| {
        let mut changed = lines.clone();
        changed.swap(a, b);
        changed
    };
    let mut twice = lines.clone();
    twice.insert(event(9), lines[event(9)].clone());
    let mut more = lines.clone();
    more.push(lines[event(7)].clone());
    let head = lines.len() - 2;
    for (name, changed) in [
        ("body", with(event(77), &lines[event(77)].replace("ListKeys", "ListKeyz"))),
        ("taken out", without(event(500))),
        ("swapped", swapped(event(300), event(301))),
        ("twice", twice),
        ("cut off", lines[..lines.len() - 20].to_vec()),
        ("no log", without(0)),
        ("no range", without(1)),
        ("no head", without(head)),
        ("no end", without(head + 1)),
        ("another head", with(head, &lines[head].replacen("\\n1050\\n", "\\n1049\\n", 1))),
        ("garbled", with(event(5), "{\"event\":1}")),
        ("long", with(event(5), &"x".repeat(2 << 20))),
        ("after the end", more),
        ("empty", Vec::new()),
    ] {
        let changed = folder.write("changed.jsonl", (changed.join("\n") + "\n").as_bytes());
        for command in [
            &mut verify_with("--file", &changed, &policy),
            outlast().args(["audit", "verify", "--file"]).arg(&changed),
        ] {
            let output = run(command);
            assert_eq!(output.status.code(), Some(3), "{name}: {}", stdout(&output));
        }
    }
    // A range of events, with what proves their position.
    let part = folder.path("part.jsonl");
    let arguments = ["export", "--from", "300", "--to", "777", "--out", part.to_str().unwrap()];
    succeed(&mut audit(&folder.data, &arguments));
    let text = succeed(&mut verify_with("--file", &part, &policy));
    assert!(text.contains("events 300 to 777"), "{text}");
    succeed(&mut audit(&folder.data, &["verify", "--from", "300", "--to", "777"]));
    let data = copy(&folder, "changed");
    rewrite(&data, "ListKeys", "ListKeyz");
    fail(&mut audit(&data, &["verify", "--from", "300", "--to", "777"]), 3);
    fail(
        &mut audit(&data, &["prove", "--index", "5", "--out", folder.path("no").to_str().unwrap()]),
        1,
    );
}

#[test]
fn events_stay_provable_after_pruning() {
    let folder = filled(1300);
    let policy = policy(&folder, "policy");
    let head = kept_head(&folder, &folder.data, "before.checkpoint");
    let nothing = folder.path("nothing.jsonl");
    let arguments = ["prune", "--older-than", "1", "--out", nothing.to_str().unwrap()];
    let text = succeed(&mut audit(&folder.data, &arguments));
    assert!(text.contains("no events are old enough") && !nothing.exists(), "{text}");
    // Beside a running server.
    let mut server = folder.serve();
    next_second();
    let out = folder.path("old.jsonl");
    let arguments = ["prune", "--older-than", "0", "--out", out.to_str().unwrap()];
    let text = succeed(&mut audit(&folder.data, &arguments));
    assert!(text.contains("events 1 to 1280"), "{text}");
    assert_eq!(number(&folder.data, "SELECT min(sequence) FROM event"), 1281);
    succeed(&mut verify_with("--file", &out, &policy));
    calls(&server, 1200);
    until("a signed head", || verified(&folder.data)["size"].as_u64().unwrap() > 2000);
    assert_eq!(readyz(&server).0, 200);
    assert_eq!(server.terminate(), Some(0));
    let found = verified(&folder.data);
    assert_eq!((&found["pruned"], &found["problems"]), (&json!(1280), &json!([])), "{found}");
    succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
    succeed(audit(&folder.data, &["verify"]).arg("--checkpoint").arg(&head));
    for index in ["1280", "1299", "2000"] {
        let file = folder.path(&format!("{index}.tlog-proof"));
        let out = file.display().to_string();
        succeed(&mut audit(&folder.data, &["prove", "--index", index, "--out", &out]));
        succeed(&mut verify_with("--proof", &file, &policy));
    }
    let gone = fail(&mut audit(&folder.data, &["prove", "--index", "5"]), 1);
    assert!(gone.contains("pruned"), "{gone}");
    // More events than were pruned, deleted by somebody else.
    execute(&folder.data, "DELETE FROM event WHERE sequence < 1300");
    fail(&mut audit(&folder.data, &["verify"]), 1);
}

#[test]
fn server_exports_and_prunes_by_retention() {
    let folder = filled(1300);
    next_second();
    let policy = policy(&folder, "policy");
    let settings = folder.data.join("outlast.toml");
    let before = std::fs::read_to_string(&settings).unwrap();
    let set = |lines: &str| {
        std::fs::write(&settings, format!("{before}\n[audit]\n{lines}\n")).unwrap();
    };
    let first = || number(&folder.data, "SELECT min(sequence) FROM event");
    for half in ["retention_days = 1", "archive = \"a\""] {
        set(half);
        let text = fail(outlast().args(["server", "--data"]).arg(&folder.data), 1);
        assert!(text.contains("audit.retention_days") && text.contains("hint: "), "{text}");
    }
    // Serves until the log says that nothing, or something, was pruned; returns what it says.
    let serve = |number: u32| {
        let log = folder.path(&format!("log-{number}"));
        let mut command = outlast();
        command.stderr(std::fs::File::create(&log).unwrap());
        let mut server = Server::start_by(command, &folder.data, &[]);
        until("a look at old events", || {
            first() > 1 || std::fs::read_to_string(&log).unwrap().contains("were not pruned")
        });
        assert_eq!(readyz(&server).0, 200);
        assert_eq!(server.terminate(), Some(0));
        std::fs::read_to_string(&log).unwrap()
    };
    let archive = folder.path("archive");
    set(&format!("retention_days = 0\narchive = {:?}", archive.display().to_string()));
    // Nothing is pruned that cannot be exported: without the folder, and then with a file in the way.
    let text = serve(1);
    assert!(text.contains("ERROR") && text.contains("there is no such folder"), "{text}");
    assert_eq!(first(), 1);
    std::fs::create_dir(&archive).unwrap();
    let out = archive.join("audit-events-000000000001-000000001280.jsonl");
    std::fs::write(&out, "something else").unwrap();
    let text = serve(2);
    assert!(text.contains("nothing was pruned") && text.contains("do not verify"), "{text}");
    assert_eq!(
        (first(), std::fs::read(&out).unwrap().as_slice()),
        (1, b"something else".as_slice())
    );
    std::fs::remove_file(&out).unwrap();
    // An export whose events were not deleted afterwards is used.
    let range = ["export", "--from", "1", "--to", "1280", "--out", out.to_str().unwrap()];
    succeed(&mut audit(&folder.data, &range));
    let made = std::fs::read(&out).unwrap();
    assert_eq!(serve(3), "");
    assert_eq!((first(), std::fs::read(&out).unwrap() == made), (1281, true));
    succeed(&mut verify_with("--file", &out, &policy));
    assert_eq!(verified(&folder.data)["problems"], json!([]));
    assert_eq!(std::fs::read_dir(&archive).unwrap().count(), 1);
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
    // When nobody reads any more, the command ends with the next event.
    drop(lines);
    calls(&server, 1);
    let begun = Instant::now();
    let status = loop {
        match follower.try_wait().unwrap() {
            Some(status) => break status,
            None if begun.elapsed() > PATIENCE => {
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
    let text = fail(outlast().args(["audit", "verify", "--file"]).arg(folder.path("none")), 1);
    assert!(text.contains("none"), "{text}");
    let out = folder.path("no/folder/x").display().to_string();
    assert!(fail(&mut audit(&folder.data, &["export", "--out", &out]), 1).contains("no/folder"));
    let text = fail(&mut audit(&folder.data, &["prove", "--index", "0"]), 1);
    assert!(text.contains("covers 0 events"), "{text}");
    // A new store verifies.
    let found = verified(&folder.data);
    assert_eq!((&found["events"], &found["size"]), (&json!(0), &json!(0)));
}

#[test]
fn ranges_and_events_that_cannot_be_are_wrong_usage() {
    let folder = Folder::new();
    let out = folder.path("out");
    let out = out.to_str().unwrap();
    for (arguments, said) in [
        (&["export", "--out", out, "--from", "9", "--to", "2"][..], "--from 9 is after --to 2"),
        (&["verify", "--from", "9", "--to", "3"], "--from 9 is after --to 3"),
        (&["export", "--out", out, "--from", "0"], "counted from 1"),
        (&["verify", "--from", "0"], "counted from 1"),
        (&["verify", "--to", "0"], "counted from 1"),
        (&["prove"], "--event <EVENT>|--index <INDEX>"),
        (&["prove", "--event", "x", "--index", "1"], "cannot be used with"),
    ] {
        let message = fail(&mut audit(&folder.data, arguments), 2);
        assert!(message.contains(said), "{arguments:?}: {message}");
    }
}

//! Backups: the restore drill under load, backups that were tampered with, and `store check`.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::{Folder, Load, Server, fail, lost, outlast, runtime, succeed};
use outlast_api::ops::kms;
use outlast_domain::seal::{RootKey, SoftwareKek};
use outlast_domain::work::Work;
use outlast_store::Store;
use outlast_store::sqlite::SqliteStore;
use serde_json::json;

/// Length of an encrypted chunk: 64 KiB and the overhead.
const SEALED_CHUNK: usize = 64 * 1024 + 45;
const PASSPHRASE: &str = "correct horse battery staple";

fn backup(folder: &Folder, out: &Path) -> Command {
    let mut command = outlast();
    command.args(["backup", "--data"]).arg(&folder.data).arg("--out").arg(out);
    command
}

/// Restores with the root key of the original folder.
fn restore(folder: &Folder, file: &Path, data: &Path) -> Command {
    let mut command = outlast();
    let root_key = format!("file:{}", folder.data.join("root.key").display());
    command.args(["restore", "--root-key", &root_key]).arg(file).arg("--data").arg(data);
    command
}

fn check(data: &Path) -> Command {
    let mut command = outlast();
    command.args(["store", "check", "--data"]).arg(data);
    command
}

/// Checks that the folder contains only these names.
fn assert_only(folder: &Path, names: &[&str]) {
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, names);
}

/// Serves the folder and makes `count` keys and data keys.
fn fill(folder: &Folder, count: usize) -> Arc<Load> {
    let mut server = folder.serve();
    let load = Arc::new(Load::default());
    runtime().block_on(async {
        let mut tasks = Vec::new();
        for _ in 0..4 {
            tasks.push(tokio::spawn(load.clone().run(server.session().await.unwrap())));
        }
        while load.count() < count && load.failures.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        load.stop.store(true, Ordering::SeqCst);
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(*load.failures.lock().unwrap(), [""; 0]);
    server.terminate();
    load
}

#[test]
fn restore_has_everything_acknowledged_before_the_backup() {
    let folder = Folder::new();
    let server = folder.serve();
    let runtime = runtime();
    let load = Arc::new(Load::default());
    let mut tasks = Vec::new();
    runtime.block_on(async {
        for _ in 0..6 {
            tasks.push(tokio::spawn(load.clone().run(server.session().await.unwrap())));
        }
    });
    let wait = |wanted: usize| {
        while load.count() < wanted && load.failures.lock().unwrap().is_empty() {
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    let mut drills = Vec::new();
    for round in 1..=3 {
        wait(100 * round);
        let before = load.taken();
        let file = folder.path(&format!("backup-{round}"));
        succeed(&mut backup(&folder, &file));
        drills.push((file, before));
    }
    wait(load.count() + 50);
    load.stop.store(true, Ordering::SeqCst);
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    assert_eq!(*load.failures.lock().unwrap(), [""; 0], "a call failed beside a backup");
    drop(server);
    for (number, (file, before)) in drills.into_iter().enumerate() {
        let data = folder.path(&format!("restored-{number}"));
        succeed(&mut restore(&folder, &file, &data));
        let text = succeed(check(&data).args(["--output", "json"]));
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(report["keys"].as_u64().unwrap() >= before.len() as u64, "{report}");
        let server = Server::start(&data, &[]);
        runtime.block_on(async {
            let mut session = server.session().await.unwrap();
            assert_eq!(lost(&mut session, &before).await, 0);
            let made = session.call::<kms::create_key::CreateKey>(json!({})).await.unwrap();
            assert!(made.is_ok(), "the restored store takes no writes");
        });
        println!("drill {number}: {} data keys, none lost", before.len());
    }
}

#[test]
fn every_way_to_keep_the_keys_of_a_backup() {
    let folder = Folder::new();
    let load = fill(&folder, 5);
    let run = |command: &mut Command| succeed(command.env("P", PASSPHRASE));
    let readable = |data: &Path| {
        succeed(&mut check(data));
        let server = Server::start(data, &[]);
        runtime().block_on(async {
            let mut session = server.session().await.unwrap();
            assert_eq!(lost(&mut session, &load.taken()).await, 0);
        });
    };
    // A key of the backup's own, with the root key elsewhere.
    let file = folder.path("without");
    run(backup(&folder, &file).args(["--backup-key", "passphrase:env:P"]));
    let text = fail(&mut restore(&folder, &file, &folder.path("r")), 1);
    assert!(text.contains("--backup-key passphrase:"), "{text}");
    let mut wrong = restore(&folder, &file, &folder.path("r"));
    wrong.args(["--backup-key", "passphrase:env:P"]).env("P", "another passphrase");
    assert!(fail(&mut wrong, 1).contains("does not open this backup"));
    let mut alone = outlast();
    alone.args(["restore", "--backup-key", "passphrase:env:P"]).arg(&file).env("P", PASSPHRASE);
    alone.arg("--data").arg(folder.path("r"));
    let text = fail(&mut alone, 1);
    assert!(text.contains("not in the backup") && text.contains("--root-key"), "{text}");
    let mut right = restore(&folder, &file, &folder.path("r"));
    run(right.args(["--backup-key", "passphrase:env:P"]));
    readable(&folder.path("r"));
    // With the root key in it: the original folder may be gone, and the root key gets another place.
    let file = folder.path("with");
    let key = folder.path("backup.key");
    let key = format!("file:{}", key.display());
    run(backup(&folder, &file).args(["--include-root-key", "--backup-key", &key]));
    std::fs::rename(&folder.data, folder.path("gone")).unwrap();
    let again = || {
        let mut command = outlast();
        command.arg("restore").arg(&file).args(["--backup-key", &key, "--data"]);
        command
    };
    run(again().arg(folder.path("r2")));
    assert!(folder.path("r2/root.key").exists());
    readable(&folder.path("r2"));
    let mut to_passphrase = again();
    to_passphrase.arg(folder.path("r3")).args(["--root-key", "passphrase:env:P"]);
    run(&mut to_passphrase);
    assert!(!folder.path("r3/root.key").exists());
    let settings = std::fs::read_to_string(folder.path("r3/outlast.toml")).unwrap();
    assert!(settings.contains("root_key = \"passphrase:env:P\""), "{settings}");
    run(&mut check(&folder.path("r3")));
    // The administrator's profile is there, too.
    assert!(folder.path("r3/client/credentials").exists());
    // A backup has no root key unless it was requested.
    let text = fail(backup(&folder, &folder.path("x")).arg("--include-root-key"), 2);
    assert!(text.contains("--backup-key"), "{text}");
}

#[test]
fn a_backup_that_was_changed_is_refused_and_leaves_no_folder() {
    let folder = Folder::new();
    fill(&folder, 150);
    let file = folder.path("backup");
    succeed(&mut backup(&folder, &file));
    let good = std::fs::read(&file).unwrap();
    let head = 15 + 4 + usize::from(good[17]) * 256 + usize::from(good[18]);
    assert_eq!((good[head - 1], good[head]), (b'}', 1), "the layout changed");
    assert!(good.len() > head + 3 * SEALED_CHUNK, "too small: {}", good.len());
    let place = folder.path("place");
    std::fs::create_dir(&place).unwrap();
    let refused = |name: &str, bytes: &[u8]| {
        let bad = folder.write("bad", bytes);
        let text = fail(&mut restore(&folder, &bad, &place.join("data")), 1);
        assert!(text.contains("bad: ") && !text.contains("panicked"), "{name}: {text}");
        assert_only(&place, &[]);
    };
    let chunk = |number: usize| head + number * SEALED_CHUNK;
    let regions = [
        ("magic", 3),
        ("length of the header", 16),
        ("header", 40),
        ("key", head - 20),
        ("version of a chunk", head),
        ("salt", head + 5),
        ("nonce", head + 20),
        ("first chunk", head + 1000),
        ("tag", chunk(1) - 1),
        ("second chunk", chunk(1) + 70),
        ("last byte", good.len() - 1),
    ];
    for (name, at) in regions {
        let mut bad = good.clone();
        bad[at] ^= 1;
        refused(name, &bad);
    }
    for length in [0, 10, 17, head - 1, head, head + 10, chunk(1), chunk(2), good.len() - 1] {
        refused(&format!("cut at {length}"), &good[..length]);
    }
    let mut swapped = good.clone();
    swapped[chunk(0)..chunk(2)].rotate_left(SEALED_CHUNK);
    refused("swapped", &swapped);
    let missing = [&good[..chunk(1)], &good[chunk(2)..]].concat();
    refused("missing", &missing);
    let second = folder.path("second");
    succeed(&mut backup(&folder, &second));
    let second = std::fs::read(second).unwrap();
    refused("spliced", &[&good[..chunk(1)], &second[chunk(1)..]].concat());
    refused("longer", &[good.as_slice(), b"x"].concat());
    // Another store's key, and a folder that is in use.
    let other = Folder::new();
    let text = fail(&mut restore(&other, &file, &place.join("data")), 1);
    assert!(text.contains("does not open this backup") && text.contains("hint: "), "{text}");
    assert_only(&place, &[]);
    let text = fail(&mut restore(&folder, &file, &other.data), 1);
    assert!(text.contains("not empty"), "{text}");
    succeed(&mut restore(&folder, &file, &place.join("data")));
    assert_only(&place, &["data"]);
}

#[test]
fn a_backup_is_written_whole_or_not_at_all() {
    let folder = Folder::new();
    let file = folder.write("taken", b"something");
    let text = fail(&mut backup(&folder, &file), 1);
    assert!(text.contains("exists already") && text.contains("hint: "), "{text}");
    assert_eq!(std::fs::read(&file).unwrap(), b"something");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    // Not with `fail`: standard output is used.
    let output =
        backup(&folder, Path::new("-")).stdout(full).stderr(std::process::Stdio::piped()).spawn();
    let output = output.unwrap().wait_with_output().unwrap();
    let text = common::stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("No space left") && text.contains("hint: make room"), "{text}");
    let text = fail(&mut backup(&folder, &folder.path("no/such/folder")), 1);
    assert!(text.contains("no/such/folder"), "{text}");
    assert_only(folder.temporary.path(), &["data", "taken"]);
    let mode = |path: PathBuf| {
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(path).unwrap().permissions())
    };
    succeed(&mut backup(&folder, &folder.path("made")));
    assert_eq!(mode(folder.path("made")) & 0o777, 0o600);
}

#[test]
fn a_backup_is_verified_without_a_store() {
    let folder = Folder::new();
    fill(&folder, 5);
    let (file, own) = (folder.path("plain"), folder.path("own"));
    succeed(&mut backup(&folder, &file));
    let key = ["--backup-key", "passphrase:env:P", "--include-root-key"];
    succeed(backup(&folder, &own).args(key).env("P", PASSPHRASE));
    let root_key = format!("file:{}", folder.data.join("root.key").display());
    let scratch = folder.path("scratch");
    std::fs::create_dir(&scratch).unwrap();
    let verify = |file: &Path, key: [&str; 2]| {
        let mut command = outlast();
        command.args(["restore", "--verify-only"]).args(key).arg(file);
        command.env("P", PASSPHRASE).env("TMPDIR", &scratch);
        command
    };
    let [with_root, with_own] = [["--root-key", &root_key], ["--backup-key", "passphrase:env:P"]];
    for (file, key) in [(&file, with_root), (&own, with_own)] {
        let text = succeed(&mut verify(file, key));
        assert!(text.contains(" 0 problems"), "{text}");
    }
    // Any damage of the file, and a store that was damaged before the backup.
    let bytes = std::fs::read(&file).unwrap();
    let bad = folder.path("bad");
    for at in [bytes.len() / 2, bytes.len() - 1] {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        std::fs::write(&bad, &changed).unwrap();
        let text = fail(&mut verify(&bad, with_root), 1);
        assert!(text.contains("the backup is damaged"), "{text}");
    }
    let database = rusqlite::Connection::open(folder.data.join("store.db")).unwrap();
    let gone = "DELETE FROM record WHERE key = (SELECT min(key) FROM record WHERE key LIKE 'kms/material/%')";
    assert_eq!(database.execute(gone, []).unwrap(), 1);
    let late = folder.path("late");
    succeed(&mut backup(&folder, &late));
    let output = common::run(&mut verify(&late, with_root));
    let text = common::stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("key material is missing (the key arn:aws:kms:"), "{text}");
    assert_only(&scratch, &[]);
    assert_only(folder.temporary.path(), &["bad", "data", "late", "own", "plain", "scratch"]);
}

#[test]
fn memory_stays_flat() {
    let folder = Folder::new();
    // 200 MB of records.
    let root_key = std::fs::read_to_string(folder.data.join("root.key")).unwrap();
    let root = RootKey::new(Box::new(SoftwareKek::from_file(&root_key).unwrap()));
    let store = SqliteStore::open(&folder.data.join("store.db")).unwrap();
    let value = "x".repeat(100_000);
    for first in (0..2000).step_by(100) {
        let mut work = Work::new(&store, &root, 0);
        for number in first..first + 100 {
            work.create(&format!("ca/chain/1/r/a/{number}"), &value).unwrap();
        }
        store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
    }
    drop(store);
    let file = folder.path("large");
    let backup_kib = peak(&mut backup(&folder, &file));
    assert!(std::fs::metadata(&file).unwrap().len() > 190_000_000);
    let restore_kib = peak(&mut restore(&folder, &file, &folder.path("restored")));
    let check_kib = peak(&mut check(&folder.path("restored")));
    println!("peak memory: backup {backup_kib}, restore {restore_kib}, check {check_kib} KiB");
    assert!(backup_kib.max(restore_kib).max(check_kib) < 64 * 1024);
}

/// Runs a command that must succeed, and returns its highest resident memory in KiB.
fn peak(command: &mut Command) -> u64 {
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        if let Some(line) = text.lines().find_map(|line| line.strip_prefix("VmHWM:")) {
            peak = line.trim().trim_end_matches(" kB").trim().parse().unwrap();
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success() && peak > 0, "{command:?}");
            return peak;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_check_finds_what_is_wrong() {
    let folder = Folder::new();
    let load = fill(&folder, 6);
    assert!(load.count() >= 6);
    let report = |expected: i32, after: &str| -> serde_json::Value {
        let output = common::run(check(&folder.data).args(["--output", "json"]));
        assert_eq!(output.status.code(), Some(expected), "{after} {}", common::stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let good = report(0, "");
    assert!(good["keys"].as_u64().unwrap() >= 6 && good["problem_count"] == 0, "{good}");
    let database = rusqlite::Connection::open(folder.data.join("store.db")).unwrap();
    // Each statement spoils a copy of a row, and is undone.
    let first = "(SELECT min(key) FROM record WHERE key LIKE 'kms/material/%')";
    let last = "(SELECT max(key) FROM record WHERE key LIKE 'kms/material/%')";
    let key = "(SELECT min(key) FROM record WHERE key LIKE 'kms/key/%')";
    let flip = "CAST(substr(value, 1, 40) || CASE WHEN substr(value, 41, 1) = x'00' THEN x'01' \
                ELSE x'00' END || substr(value, 42) AS BLOB)";
    for (sql, place, what) in [
        (format!("UPDATE record SET value = {flip} WHERE key = {first}"), "kms/material/", "does not open"),
        (
            format!("UPDATE record SET value = CAST(x'07' || substr(value, 2) AS BLOB) WHERE key = {first}"),
            "kms/material/",
            "is not sealed",
        ),
        (
            format!("UPDATE record SET value = (SELECT value FROM record WHERE key = {last}) WHERE key = {first}"),
            "kms/material/",
            "does not open",
        ),
        (format!("DELETE FROM record WHERE key = {first}"), "kms/key/", "key material is missing"),
        (format!("DELETE FROM record WHERE key = {key}"), "kms/material/", "the key that this material"),
        (
            format!("UPDATE record SET value = CAST('{{' AS BLOB) WHERE key = {key}"),
            "kms/key/",
            "neither sealed nor JSON",
        ),
        (
            format!("UPDATE record SET value = CAST(replace(value, 'SYMMETRIC_DEFAULT', 'ML_DSA_87') AS BLOB) WHERE key = {key}"),
            "kms/key/",
            "usage is not one that its type allows",
        ),
        (
            format!("UPDATE record SET value = CAST(replace(value, 'SYMMETRIC_DEFAULT', 'RSA_2048') AS BLOB) WHERE key = {key}"),
            "kms/material/",
            "not one of the key's type",
        ),
        (
            "INSERT INTO record VALUES ('kms/alias/123456789012/us-east-1/alias/a', 99999, \
             CAST('{\"target\":\"none\"}' AS BLOB))"
                .to_owned(),
            "kms/alias/",
            "does not exist",
        ),
        (
            "DELETE FROM record WHERE key LIKE 'iam/access-key-secret/%'".to_owned(),
            "iam/access-key/",
            "secret is missing",
        ),
        (
            "UPDATE record SET value = (SELECT value FROM record WHERE key = 'tls/certificate/ecdsa-p256/root') \
             WHERE key = 'tls/certificate/ecdsa-p256/leaf'"
                .to_owned(),
            "tls/key/ecdsa-p256/leaf",
            "not the certificate's",
        ),
        ("UPDATE record SET value = CAST(x'01' || value AS BLOB) WHERE key LIKE 'meta/root-key/%'".to_owned(), "", ""),
        (
            "UPDATE event SET body = CAST(replace(body, 'CreateKey', 'createKey') AS BLOB) WHERE sequence = 1"
                .to_owned(),
            "event/1",
            "leaf hash",
        ),
        ("DELETE FROM event WHERE sequence = 2".to_owned(), "event/3", "missing"),
    ] {
        database.execute_batch("CREATE TABLE r AS SELECT * FROM record; CREATE TABLE e AS SELECT * FROM event;").unwrap();
        assert_eq!(database.execute(&sql, []).unwrap(), 1, "{sql}");
        if place.is_empty() {
            // Without its root key nothing can be opened: the command says so instead of listing everything.
            let text = fail(&mut check(&folder.data), 1);
            assert!(text.contains("root key of another store"), "{text}");
        } else {
            let found = report(1, &sql);
            let problems = found["problems"].as_array().unwrap();
            assert!(
                problems.iter().any(|problem| {
                    problem["place"].as_str().unwrap().starts_with(place)
                        && problem["what"].as_str().unwrap().contains(what)
                }),
                "{sql}: {found}"
            );
            assert!(problems.len() <= 6, "{sql}: {found}");
            let text = fail(&mut check(&folder.data), 1);
            assert!(text.contains("problem") && text.contains("hint: "), "{text}");
        }
        database
            .execute_batch(
                "DELETE FROM record; INSERT INTO record SELECT * FROM r; DROP TABLE r;
                 DELETE FROM event; INSERT INTO event SELECT * FROM e; DROP TABLE e;",
            )
            .unwrap();
    }
    assert_eq!(report(0, ""), good);
}

/// Names in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut found: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    found.sort();
    found
}

/// Makes a backup look as if it was made so many hours earlier; returns that time as it appears in names.
fn made_before(backup: &[u8], hours: i64) -> (Vec<u8>, String) {
    let key = b"\"created_ms\":";
    let at = backup.windows(key.len()).position(|part| part == key).unwrap() + key.len();
    let digits = std::str::from_utf8(&backup[at..at + 13]).unwrap();
    let made_ms = digits.parse::<i64>().unwrap() - hours * 3_600_000;
    let mut bytes = backup.to_vec();
    bytes[at..at + 13].copy_from_slice(made_ms.to_string().as_bytes());
    (bytes, outlast_pki::time::rfc3339(made_ms / 1000).replace(':', "-"))
}

#[test]
fn scheduled_backups_remove_only_their_own_files() {
    let folder = Folder::new();
    let settings = folder.data.join("outlast.toml");
    let before = std::fs::read_to_string(&settings).unwrap();
    let set = |lines: &str| {
        let text = format!("{before}\n[backup]\n{lines}\n");
        std::fs::write(&settings, text).unwrap();
    };
    for (lines, wrong) in [
        ("folder = \"b\"\nkeep = 0", "backup.keep must be at least 1"),
        ("folder = \"b\"\nkeep_days = 0", "backup.keep_days must be at least 1"),
        ("folder = \"b\"\nevery_hours = 0", "backup.every_hours must be at least 1"),
        ("keep = 1", "folder"),
    ] {
        set(lines);
        let text = fail(outlast().args(["server", "--data"]).arg(&folder.data), 1);
        assert!(text.contains(wrong), "{text}");
    }
    let place = folder.path("backups");
    set(&format!("folder = {:?}\nkeep = 2\nkeep_days = 400", place.display().to_string()));
    let log = folder.path("log");
    // Serves until the log says this; returns the log.
    let serve = |what: &str, is_done: &dyn Fn(&str) -> bool| {
        let mut command = outlast();
        command.stderr(std::fs::File::create(&log).unwrap());
        let mut server = Server::start_by(command, &folder.data, &[]);
        outlast_testing::until(what, || is_done(&std::fs::read_to_string(&log).unwrap()));
        assert_eq!(server.terminate(), Some(0));
        std::fs::read_to_string(&log).unwrap()
    };
    // Nothing is written to the mount point of a disk that is not mounted.
    let text = serve("an error", &|log| log.contains("no backup was made"));
    assert!(text.contains("ERROR") && text.contains("there is no such folder"), "{text}");
    assert!(!place.exists());

    std::fs::create_dir(&place).unwrap();
    serve("a backup", &|_| names(&place).iter().any(|name| name.ends_with(".backup")));
    let [first] = names(&place).try_into().unwrap();
    succeed(&mut {
        let mut command = outlast();
        let root_key = format!("file:{}", folder.data.join("root.key").display());
        command.args(["restore", "--verify-only", "--root-key", &root_key]).arg(place.join(&first));
        command
    });

    // None is due: the next server makes none until an hour has passed, and removes none.
    let log_id = first.split('-').nth(1).unwrap().to_owned();
    let at = |time: &str| place.join(format!("outlast-{log_id}-{time}.backup"));
    std::fs::rename(place.join(&first), at("2020-01-01T00-00-00Z")).unwrap();
    // A file that only has the name of an old backup, one of another store, and one that an attempt left behind.
    for name in [
        format!("outlast-{log_id}-2019-01-01T00-00-00Z.backup"),
        "outlast-00112233-2019-01-01T00-00-00Z.backup".to_owned(),
        "notes.txt".to_owned(),
        format!(".outlast-{log_id}-part"),
    ] {
        std::fs::write(place.join(name), "not a backup").unwrap();
    }
    // By its name the newest is of 2020, so another is due. By its header that one is of today, so it stays.
    let liar = "its name does not match the backup in it";
    serve("two that are not removed", &|log| log.matches(liar).count() == 2);
    let found = names(&place);
    assert_eq!(found.len(), 5, "{found:?}");
    assert!(!found.iter().any(|name| name.ends_with("-part")), "{found:?}");
    std::fs::remove_file(at("2020-01-01T00-00-00Z")).unwrap();
    std::fs::remove_file(at("2019-01-01T00-00-00Z")).unwrap();

    // Real backups that are old: two stay, the newest and the one before it.
    let [newest] = names(&place)
        .into_iter()
        .filter(|name| name.contains(&log_id))
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let dated: Vec<PathBuf> = [30, 60, 90]
        .into_iter()
        .map(|hours| {
            let (bytes, time) = made_before(&std::fs::read(place.join(&newest)).unwrap(), hours);
            std::fs::write(at(&time), bytes).unwrap();
            at(&time)
        })
        .collect();
    std::fs::remove_file(place.join(&newest)).unwrap();
    serve("old ones are removed", &|_| !dated[1].exists() && !dated[2].exists());
    let kept: Vec<_> = names(&place).into_iter().filter(|name| name.contains(&log_id)).collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert_eq!(dated.iter().map(|path| path.exists()).collect::<Vec<_>>(), [true, false, false]);
    assert!(place.join("notes.txt").exists());
    assert!(place.join("outlast-00112233-2019-01-01T00-00-00Z.backup").exists());
}

//! `[limits]`: quotas of accounts, on a server, in a store of an earlier version, and in one that somebody has
//! changed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{Folder, Server, fail, outlast, runtime, succeed};
use outlast_api::ops::kms::create_key;
use outlast_domain::quotas::QUOTAS;
use rusqlite::Connection;
use serde_json::{Value, json};

fn set(folder: &Folder, lines: &str) {
    let path = folder.data.join("outlast.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let before = text.split("\n[limits]").next().unwrap();
    std::fs::write(&path, format!("{before}\n[limits]\n{lines}\n")).unwrap();
}

/// Makes a key, or returns the error's code.
fn create_key(server: &Server) -> Result<(), String> {
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        let answer = session.call::<create_key::CreateKey>(json!({})).await.unwrap();
        answer.map(|_| ()).map_err(|error| error.code)
    })
}

fn limits(folder: &Folder) -> Value {
    let mut command = outlast();
    command.args(["store", "limits", "--output", "json", "--data"]).arg(&folder.data);
    serde_json::from_str(&succeed(&mut command)).unwrap()
}

fn row<'a>(limits: &'a Value, name: &str) -> &'a Value {
    limits["limits"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap()
}

#[test]
fn an_operator_sets_limits_and_sees_what_is_used() {
    let folder = Folder::new();
    set(&folder, "kms_keys = 2");
    let mut server = folder.serve();
    for _ in 0..2 {
        create_key(&server).unwrap();
    }
    assert_eq!(create_key(&server).unwrap_err(), "LimitExceededException");
    // Beside the server.
    let found = limits(&folder);
    let keys = row(&found, "kms_keys");
    assert_eq!((&keys["limit"], &keys["default"]), (&json!(2), &json!(100_000)), "{keys}");
    assert_eq!(keys["used"][0]["used"], 2, "{keys}");
    assert_eq!(row(&found, "grants_per_kms_key")["used"], Value::Null);
    let text = succeed(outlast().args(["store", "limits", "--data"]).arg(&folder.data));
    assert!(text.contains("kms_keys") && text.contains("in us-east-1"), "{text}");
    assert_eq!(server.terminate(), Some(0));
    set(&folder, "kms_keys = 3");
    let mut server = folder.serve();
    create_key(&server).unwrap();
    assert_eq!(create_key(&server).unwrap_err(), "LimitExceededException");
    assert_eq!(server.terminate(), Some(0));
    // Another settings file than the folder's.
    let elsewhere = folder.path("elsewhere.toml");
    std::fs::write(&elsewhere, "[limits]\nsessions = 7\n").unwrap();
    let mut command = outlast();
    command.args(["store", "limits", "--output", "json", "--config"]).arg(&elsewhere);
    let found = succeed(command.arg("--data").arg(&folder.data));
    assert_eq!(row(&serde_json::from_str(&found).unwrap(), "sessions")["limit"], 7);
}

#[test]
fn what_a_store_of_an_earlier_version_holds_counts() {
    let folder = Folder::new();
    let mut server = folder.serve();
    for _ in 0..3 {
        create_key(&server).unwrap();
    }
    assert_eq!(server.terminate(), Some(0));
    let sql = Connection::open(folder.data.join("store.db")).unwrap();
    sql.execute_batch("DROP TABLE tally; PRAGMA user_version = 3").unwrap();
    drop(sql);
    set(&folder, "kms_keys = 4");
    let mut server = folder.serve();
    create_key(&server).unwrap();
    assert_eq!(create_key(&server).unwrap_err(), "LimitExceededException");
    assert_eq!(server.terminate(), Some(0));
    succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
}

#[test]
fn changed_counts_are_found_and_restored_stores_recount() {
    let folder = Folder::new();
    let mut server = folder.serve();
    for _ in 0..2 {
        create_key(&server).unwrap();
    }
    assert_eq!(server.terminate(), Some(0));
    succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
    let sql = Connection::open(folder.data.join("store.db")).unwrap();
    let changed = sql.execute("UPDATE tally SET value = 0 WHERE prefix LIKE 'kms/key/%'", []);
    assert_eq!(changed.unwrap(), 1);
    drop(sql);
    let mut check = outlast();
    check.args(["store", "check", "--output", "json", "--data"]).arg(&folder.data);
    let output = check.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["problem_count"], 1, "{report}");
    let what = report["problems"][0]["what"].as_str().unwrap();
    assert!(what.contains("counts 0 records below it, but there are 2"), "{what}");
    let backup = folder.path("backup");
    succeed(outlast().args(["backup", "--data"]).arg(&folder.data).arg("--out").arg(&backup));
    let restored = folder.path("restored");
    let key = format!("file:{}", folder.data.join("root.key").display());
    let mut restore = outlast();
    restore.arg("restore").arg(&backup).arg("--data").arg(&restored);
    succeed(restore.args(["--root-key", &key]));
    succeed(outlast().args(["store", "check", "--data"]).arg(&restored));
}

#[test]
fn a_limit_that_is_none_is_refused() {
    let folder = Folder::new();
    for (lines, part) in [
        ("kms-keys = 2", "limits.kms-keys"),
        ("kms_keys = -1", "kms_keys"),
        ("kms_keys = \"many\"", "kms_keys"),
    ] {
        set(&folder, lines);
        for arguments in [["server", "--data"].as_slice(), &["store", "limits", "--data"]] {
            let text = fail(outlast().args(arguments).arg(&folder.data), 1);
            assert!(text.contains(part) && text.contains("hint: "), "{text}");
        }
    }
}

#[test]
fn the_documentation_has_every_limit() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/limits.md");
    let text = std::fs::read_to_string(path).unwrap();
    for quota in QUOTAS {
        let begin = format!("| `{}` | {} | {} {}", quota.name, quota.default, quota.what, quota.of);
        let aws = if quota.aws.is_empty() { "none" } else { quota.aws };
        let row = text.lines().find(|line| line.starts_with(&begin));
        let row = row.unwrap_or_else(|| panic!("docs/limits.md has no row that begins {begin}"));
        assert!(row.ends_with(&format!("| {aws} |")), "{row}");
    }
    let rows = text.lines().filter(|line| line.starts_with("| `") && line.contains("` | "));
    assert_eq!(rows.count(), QUOTAS.len(), "a row without a limit");
}

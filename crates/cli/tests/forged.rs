//! An attacker who can write to the database file: rows are changed by SQL, and stores of an earlier version are
//! faked.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::path::Path;

use common::{ACCESS_KEY, Folder, Identity, Server, fail, outlast, runtime, succeed};
use outlast_api::ops::kms::create_key::CreateKey;
use outlast_domain::seal;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

fn sql(data: &Path) -> Connection {
    Connection::open(data.join("store.db")).unwrap()
}

fn read(data: &Path, key: &str) -> Vec<u8> {
    sql(data).query_row("SELECT value FROM record WHERE key = ?1", [key], |row| row.get(0)).unwrap()
}

fn write(data: &Path, key: &str, value: &[u8]) {
    let sql = sql(data);
    let update = "UPDATE record SET value = ?2, version = version + 100000 WHERE key = ?1";
    assert_eq!(sql.execute(update, params![key, value]).unwrap(), 1);
}

/// The row with other JSON; the bytes that authenticate it stay, if `keep`.
fn edit(data: &Path, key: &str, keep: bool, member: &str, to: Value) {
    let before = read(data, key);
    let json = seal::json(&before);
    let mut said: Value = serde_json::from_slice(json).unwrap();
    said[member] = to;
    let head = if keep { &before[..before.len() - json.len()] } else { &[] };
    write(data, key, &[head, said.to_string().as_bytes()].concat());
}

/// The result of a call: `ok`, or the error's code.
fn create_key(server: &Server, identity: Identity) -> String {
    runtime().block_on(async {
        let mut session = server.session_as(identity).await;
        match session.call::<CreateKey>(json!({})).await.unwrap() {
            Ok(_) => "ok".into(),
            Err(error) => error.code,
        }
    })
}

fn user(folder: &Folder, name: &str, more: &[&str]) -> Value {
    let mut command = outlast();
    command.args(["principal", "create", name, "--output", "json", "--data"]).arg(&folder.data);
    serde_json::from_str(&succeed(command.args(more))).unwrap()
}

/// No server starts on rows that differ from the audit events.
fn assert_not_served(data: &Path) {
    let text = fail(outlast().args(["server", "--data"]).arg(data), 1);
    assert!(text.contains("put back or removed") && text.contains("store check"), "{text}");
}

fn assert_reported(folder: &Folder, key: &str) {
    let mut command = outlast();
    let output = command.args(["store", "check", "--data"]).arg(&folder.data).output().unwrap();
    let text = common::stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains(&format!("{key}: is not as the service wrote it")), "{text}");
}

#[test]
fn an_access_key_is_not_made_the_administrators() {
    let folder = Folder::new();
    let made = user(&folder, "mallory", &[]);
    let id = made["access_key_id"].as_str().unwrap();
    let mallory = || Identity::printed(&made);
    let place = format!("iam/access-key/{id}");
    let server = folder.serve();
    assert_eq!(create_key(&server, mallory()), "AccessDeniedException");
    let good = read(&folder.data, &place);
    let administrator = read(&folder.data, &format!("iam/access-key/{ACCESS_KEY}"));
    for keep in [true, false] {
        for (member, to) in [
            ("has_user", json!(false)),
            ("user", json!("administrator")),
            ("account", json!("210987654321")),
        ] {
            edit(&folder.data, &place, keep, member, to);
            // A server that has read the row before may go on with the right one; one that starts now has nothing.
            let said = create_key(&server, mallory());
            assert!(
                ["AccessDeniedException", "KMSInternalException"].contains(&said.as_str()),
                "{said}"
            );
            let copy = copy(&folder);
            if keep {
                let fresh = Server::start(&copy, &[]);
                assert_eq!(create_key(&fresh, mallory()), "KMSInternalException", "{member}");
                assert_eq!(create_key(&fresh, Identity::administrator()), "ok");
            } else {
                assert_not_served(&copy);
            }
            assert_reported(&folder, &place);
            write(&folder.data, &place, &good);
        }
    }
    write(&folder.data, &place, &administrator);
    assert_not_served(&copy(&folder));
    assert_reported(&folder, &place);
    write(&folder.data, &place, &good);
    drop(server);
    succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
    // The operator is told, too.
    edit(&folder.data, "iam/user/123456789012/mallory", true, "tags", json!({ "a": "b" }));
    let text = fail(outlast().args(["principal", "list", "--data"]).arg(&folder.data), 1);
    assert!(
        text.contains("iam/user/123456789012/mallory") && text.contains("store check"),
        "{text}"
    );
}

/// The audit events outlive the process: an earlier state of a row is refused after a restart, too, and a check of
/// the store names rows that were put back and rows that were removed.
#[test]
fn restart_does_not_accept_an_earlier_row() {
    let folder = Folder::new();
    let made = user(&folder, "mallory", &["--admin"]);
    let mallory = || Identity::printed(&made);
    let place = "iam/user/123456789012/mallory";
    let key = format!("iam/access-key/{}", made["access_key_id"].as_str().unwrap());
    let secret = key.replace("access-key/", "access-key-secret/");
    let principal = |arguments: &[&str]| {
        let mut command = outlast();
        command.arg("principal").args(arguments).args(["--data"]).arg(&folder.data);
        succeed(&mut command);
    };
    let refused = || assert_not_served(&folder.data);
    let rows = [place, &key, &secret].map(|place| (place.to_owned(), read(&folder.data, place)));
    assert_eq!(create_key(&folder.serve(), mallory()), "ok");
    let policy = ["policy", "delete", "mallory", "--policy-name", "AdministratorAccess"];
    principal(&policy);
    assert_eq!(create_key(&folder.serve(), mallory()), "AccessDeniedException");
    let weak = read(&folder.data, place);
    write(&folder.data, place, &rows[0].1);
    let say = |what: &str| {
        let output =
            outlast().args(["store", "check", "--data"]).arg(&folder.data).output().unwrap();
        let text = common::stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{text}");
        assert!(text.contains(&format!("{place}: it {what}")), "{text}");
    };
    say("is older than the audit events say");
    refused();
    write(&folder.data, place, &weak);
    succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
    // Removed, but not by the service.
    sql(&folder.data).execute("DELETE FROM record WHERE key = ?1", [place]).unwrap();
    say("is missing");
    refused();
    let insert = "INSERT INTO record VALUES (?1, ?2, ?3)";
    sql(&folder.data).execute(insert, params![place, 999_999, weak]).unwrap();
    // Deleted by the service, and put back with everything that belongs to it.
    principal(&["delete", "mallory"]);
    assert_eq!(create_key(&folder.serve(), mallory()), "UnrecognizedClientException");
    for (number, (place, value)) in rows.iter().enumerate() {
        sql(&folder.data).execute(insert, params![place, 9_999_990 + number, value]).unwrap();
    }
    say("was put back");
    refused();
    // A running server that has never seen it cannot know that it is new.
    let remove = "DELETE FROM record WHERE key = ?1";
    for (place, _) in &rows {
        sql(&folder.data).execute(remove, [place]).unwrap();
    }
    let server = folder.serve();
    for (number, (place, value)) in rows.iter().enumerate() {
        sql(&folder.data).execute(insert, params![place, 9_999_990 + number, value]).unwrap();
    }
    assert_eq!(create_key(&server, mallory()), "KMSInternalException");
    // It learns from the events what the command line makes beside it.
    let made = user(&folder, "alice", &["--admin"]);
    assert_eq!(create_key(&server, Identity::printed(&made)), "ok");
}

/// A copy of the data folder as it is on disk.
fn copy(folder: &Folder) -> std::path::PathBuf {
    let to = folder.path("copy");
    let _ = std::fs::remove_dir_all(&to);
    std::fs::create_dir_all(to.join("client")).unwrap();
    for name in ["root.key", "outlast.toml"] {
        std::fs::copy(folder.data.join(name), to.join(name)).unwrap();
    }
    let backup = format!("VACUUM INTO '{}'", to.join("store.db").display());
    sql(&folder.data).execute_batch(&backup).unwrap();
    to
}

/// A folder from the version before root keys had ids.
fn first_layout() -> (Folder, Identity) {
    let temporary = tempfile::tempdir().unwrap();
    let data = temporary.path().join("data");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/first-layout");
    std::fs::create_dir_all(data.join("client")).unwrap();
    for name in ["store.db", "root.key", "client/credentials"] {
        std::fs::copy(from.join(name), data.join(name)).unwrap();
    }
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(data.join("root.key"), private).unwrap();
    let text = std::fs::read_to_string(data.join("client/credentials")).unwrap();
    let value = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_once('=').unwrap().1.trim().to_owned()
    };
    let identity = Identity {
        id: value("aws_access_key_id"),
        secret: value("aws_secret_access_key"),
        token: None,
    };
    (Folder { temporary, data }, identity)
}

#[test]
fn a_store_of_an_earlier_version_is_brought_up_to_date_once() {
    let (folder, identity) = first_layout();
    let clone =
        || Identity { id: identity.id.clone(), secret: identity.secret.clone(), token: None };
    let place = format!("iam/access-key/{}", identity.id);
    let canary = read(&folder.data, "meta/canary");
    let plain = read(&folder.data, &place);
    // Beside an older server nothing is changed.
    let text = fail(outlast().args(["principal", "list", "--data"]).arg(&folder.data), 1);
    assert!(text.contains("a server upgrades it"), "{text}");
    assert_eq!(read(&folder.data, &place), plain);
    // Its administrator, who has an access key and no user record, stays one.
    let mut server = folder.serve();
    assert_eq!(create_key(&server, clone()), "ok");
    assert_eq!(server.terminate(), Some(0));
    let plain_left: i64 = sql(&folder.data)
        .query_row(
            "SELECT count(*) FROM record WHERE substr(value, 1, 1) = CAST('{' AS BLOB) \
             AND key NOT LIKE 'kms/last-use/%' AND key NOT LIKE 'audit/%'",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(plain_left, 0);
    // Its two CAs are in the index by which Roles Anywhere finds issuers.
    for (prefix, expected) in [("ca/served/", 2), ("ca/ocsp-issuer/", 4)] {
        let count = "SELECT count(*) FROM record WHERE key LIKE ?1 || '%'";
        let found: i64 = sql(&folder.data).query_row(count, [prefix], |row| row.get(0)).unwrap();
        assert_eq!(found, expected, "{prefix}");
    }
    succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
    assert_ne!(read(&folder.data, "meta/canary"), canary);
    // A record that was valid in the earlier version is not valid in this one.
    write(&folder.data, &place, &plain);
    assert_not_served(&folder.data);
    assert_reported(&folder, &place);
    // Claiming that the store is of the earlier version does not help either.
    write(&folder.data, "meta/canary", &canary);
    let text = fail(outlast().args(["server", "--data"]).arg(&folder.data), 1);
    assert!(text.contains("put back") && text.contains("hint: "), "{text}");
    assert_eq!(read(&folder.data, &place), plain);
}

/// Without its canary no store can be opened; nor with another store's canary.
#[test]
fn the_canary_cannot_be_taken_away() {
    let (folder, other) = (Folder::new(), Folder::new());
    let place = format!("iam/access-key/{ACCESS_KEY}");
    let good = read(&folder.data, "meta/canary");
    edit(&folder.data, &place, false, "user", json!("x"));
    write(&folder.data, "meta/canary", &read(&other.data, "meta/canary"));
    let text = fail(outlast().args(["server", "--data"]).arg(&folder.data), 1);
    assert!(text.contains("root key of another store"), "{text}");
    sql(&folder.data).execute("DELETE FROM record WHERE key = 'meta/canary'", []).unwrap();
    let text = fail(outlast().args(["server", "--data"]).arg(&folder.data), 1);
    assert!(text.contains("root key of another store"), "{text}");
    let insert = "INSERT INTO record VALUES ('meta/canary', 999999, ?1)";
    sql(&folder.data).execute(insert, [good]).unwrap();
    assert_not_served(&folder.data);
}

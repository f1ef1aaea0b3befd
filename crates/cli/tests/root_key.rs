//! Root keys: where they are kept, and their rotation, also beside a server under load and through kills.
//!
//! `OUTLAST_ROTATION_ROUNDS` sets the number of kills (default 15).
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
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use common::{ACCESS_KEY, Folder, Load, SECRET, Server, fail, lost, outlast, runtime, succeed};
use outlast_store::sqlite::SqliteStore;
use outlast_store::{Item, Store};

const PASSPHRASE: &str = "correct horse battery staple";

fn root_key(arguments: &[&str], data: &Path) -> Command {
    let mut command = outlast();
    command.arg("root-key").args(arguments).arg("--data").arg(data);
    command
}

fn status(data: &Path) -> serde_json::Value {
    serde_json::from_str(&succeed(&mut root_key(&["status", "--output", "json"], data))).unwrap()
}

/// Checks that everything is sealed under the current root key, and that there is no other.
fn assert_settled(data: &Path) -> String {
    let status = status(data);
    let current = status["current"].as_str().unwrap();
    assert!(status["previous"].is_null(), "{status}");
    let under: Vec<_> = status["records"].as_object().unwrap().keys().collect();
    assert_eq!(under, [current], "{status}");
    let store = SqliteStore::open_read_only(&data.join("store.db")).unwrap();
    assert_eq!(store.scan("meta/root-key/", "", 10).unwrap().len(), 1);
    current.to_owned()
}

/// All items of a store.
fn items(data: &Path) -> Vec<Item> {
    let store = SqliteStore::open_read_only(&data.join("store.db")).unwrap();
    let mut items = Vec::new();
    let taken = store.snapshot(&mut |item| {
        items.push(item);
        Ok(())
    });
    taken.unwrap();
    items
}

fn init(data: &Path, root_key: &str) -> Command {
    let mut command = outlast();
    command
        .args(["init", "--access-key-id", ACCESS_KEY, "--root-key", root_key, "--data"])
        .arg(data)
        .env("OUTLAST_SECRET_ACCESS_KEY", SECRET);
    command
}

/// Makes some keys on a server, and returns what it handed out.
fn use_server(command: Command, data: &Path) -> Arc<Load> {
    let server = Server::start_by(command, data, &[]);
    let load = Arc::new(Load::default());
    runtime().block_on(async {
        let task = tokio::spawn(load.clone().run(server.session().await.unwrap()));
        while load.count() < 5 && load.failures.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        load.stop.store(true, Ordering::SeqCst);
        task.await.unwrap();
    });
    assert_eq!(*load.failures.lock().unwrap(), [""; 0]);
    load
}

fn assert_readable(command: Command, data: &Path, load: &Load) {
    let server = Server::start_by(command, data, &[]);
    runtime().block_on(async {
        let mut session = server.session().await.unwrap();
        assert_eq!(lost(&mut session, &load.taken()).await, 0);
    });
}

#[test]
fn a_file_elsewhere_keeps_the_root_key() {
    let temporary = tempfile::tempdir().unwrap();
    let (data, kek) = (temporary.path().join("data"), temporary.path().join("kek"));
    succeed(&mut init(&data, &format!("file:{}", kek.display())));
    assert!(kek.exists() && !data.join("root.key").exists());
    let load = use_server(outlast(), &data);
    succeed(&mut root_key(&["rotate"], &data));
    assert_settled(&data);
    assert_readable(outlast(), &data, &load);
    std::fs::remove_file(&kek).unwrap();
    let text = fail(outlast().args(["server", "--data"]).arg(&data), 1);
    assert!(text.contains("kek") && text.contains("hint: "), "{text}");
}

#[test]
fn a_passphrase_keeps_the_root_key() {
    let temporary = tempfile::tempdir().unwrap();
    let data = temporary.path().join("data");
    let file = temporary.path().join("passphrase");
    std::fs::write(&file, "short\n").unwrap();
    let source = format!("passphrase:file:{}", file.display());
    let text = fail(&mut init(&data, &source), 1);
    assert!(text.contains("too short") && !data.exists(), "{text}");
    std::fs::write(&file, format!("{PASSPHRASE}\r\n")).unwrap();
    succeed(&mut init(&data, &source));
    assert!(!data.join("root.key").exists());
    let load = use_server(outlast(), &data);
    let before = items(&data);
    for (wrong, expected) in [
        ("passphrase:env:WRONG", "the passphrase is wrong"),
        ("passphrase:env:NONE", "NONE contains no passphrase"),
        ("file:root.key", "kept by the provider passphrase"),
        ("passphrase:", "input cannot be read from the terminal"),
        ("correct horse", "is not valid"),
    ] {
        for command in ["server", "root-key rotate", "backup --out x", "store check"] {
            let mut run = outlast();
            // Without a terminal to ask on.
            run = {
                let mut detached = Command::new("setsid");
                detached.arg("--wait").arg(run.get_program());
                detached
            };
            run.args(command.split(' ')).args(["--root-key", wrong, "--data"]).arg(&data);
            run.env("WRONG", "correct horse battery stapler").stdin(Stdio::null());
            // Text that is not a valid place at all is wrong usage.
            let code = if wrong == "correct horse" { 2 } else { 1 };
            let text = fail(&mut run, code);
            assert!(text.contains(expected) && text.contains("hint: "), "{command}: {text}");
            assert!(!text.contains("stapler"), "{text}");
        }
    }
    assert!(items(&data) == before, "something was changed");
    succeed(root_key(&["rotate", "--root-key", "passphrase:env:P"], &data).env("P", PASSPHRASE));
    assert_settled(&data);
    assert_readable(outlast(), &data, &load);
    // The costs in the store are not trusted if they are too low.
    let database = rusqlite::Connection::open(data.join("store.db")).unwrap();
    let weaken = "UPDATE record SET value = CAST(replace(value, '65536', '8') AS BLOB) WHERE key = 'meta/root'";
    assert_eq!(database.execute(weaken, []).unwrap(), 1);
    let text = fail(outlast().args(["server", "--data"]).arg(&data), 1);
    assert!(text.contains("too weak"), "{text}");
}

/// The library, the tool and the environment of SoftHSM, with a token of its own.
struct SoftHsm {
    module: PathBuf,
    configuration: PathBuf,
}

impl SoftHsm {
    fn new(folder: &Path) -> Option<Self> {
        let peer = outlast_testing::peer("softhsm")?;
        let (module, tool) = (peer.join("lib/libsofthsm2.so"), peer.join("bin/softhsm2-util"));
        std::fs::create_dir(folder.join("tokens")).unwrap();
        let configuration = folder.join("softhsm2.conf");
        let text = format!("directories.tokendir = {}\n", folder.join("tokens").display());
        std::fs::write(&configuration, text).unwrap();
        let made = Command::new(tool)
            .args(["--init-token", "--free", "--label", "Test token"])
            .args(["--pin", "123456", "--so-pin", "12345678"])
            .env("SOFTHSM2_CONF", &configuration)
            .output()
            .unwrap();
        assert!(made.status.success(), "{made:?}");
        Some(Self { module, configuration })
    }

    fn uri(&self, object: &str, pin: &str) -> String {
        let module = self.module.display();
        format!("pkcs11:token=Test%20token;object={object}?module-path={module}&{pin}")
    }

    fn with(&self, mut command: Command) -> Command {
        command.env("SOFTHSM2_CONF", &self.configuration);
        command
    }
}

#[test]
fn a_token_keeps_the_root_key() {
    let temporary = tempfile::tempdir().unwrap();
    let Some(token) = SoftHsm::new(temporary.path()) else { return };
    let data = temporary.path().join("data");
    let pin = temporary.path().join("pin");
    std::fs::write(&pin, "123456\n").unwrap();
    let uri = token.uri("kek", &format!("pin-source=file:{}", pin.display()));
    succeed(&mut token.with(init(&data, &uri)));
    let load = use_server(token.with(outlast()), &data);
    let other = temporary.path().join("other");
    succeed(&mut token.with(init(&other, &token.uri("kek2", "pin-value=123456"))));
    let settings = std::fs::read_to_string(other.join("outlast.toml")).unwrap();
    assert!(!settings.contains("123456"), "{settings}");
    for (wrong, expected) in [
        (token.uri("kek", "pin-value=98765432"), "the PIN is wrong"),
        (token.uri("nothing", "pin-value=123456"), "the token has no such key"),
        (token.uri("kek2", "pin-value=123456"), "not the key that wraps"),
        (token.uri("kek", "pin-value=1").replace("Test", "Best"), "there is no such token"),
        (token.uri("kek", "pin-value=1").replace(".so", ".os"), "cannot be loaded"),
        (token.uri("kek", "pin=123456"), "the attribute pin is not supported"),
    ] {
        let mut command = token.with(root_key(&["rotate", "--root-key", &wrong], &data));
        let code = if expected.contains("attribute") { 2 } else { 1 };
        let text = fail(&mut command, code);
        assert!(text.contains(expected) && text.contains("hint: "), "{text}");
        assert!(!text.contains("98765432") && !text.contains("123456"), "{text}");
    }
    succeed(&mut token.with(root_key(&["rotate"], &data)));
    assert_settled(&data);
    assert_readable(token.with(outlast()), &data, &load);
    // From the token to a file and back.
    let file = format!("file:{}", temporary.path().join("kek").display());
    succeed(&mut token.with(root_key(&["rotate", "--to", &file], &data)));
    succeed(&mut token.with(root_key(&["rotate", "--root-key", &file, "--to", &uri], &data)));
    assert_eq!(status(&data)["provider"], "pkcs11");
    assert_settled(&data);
    assert_readable(token.with(outlast()), &data, &load);
}

#[test]
fn provider_rotation_needs_a_stopped_server() {
    let folder = Folder::new();
    let load = use_server(outlast(), &folder.data);
    let mut server = folder.serve();
    let to = || {
        let mut command = root_key(&["rotate", "--to", "passphrase:env:P"], &folder.data);
        command.env("P", PASSPHRASE);
        command
    };
    let text = fail(&mut to(), 1);
    assert!(text.contains("in use") && text.contains("hint: stop the server"), "{text}");
    server.terminate();
    let before = assert_settled(&folder.data);
    let text = succeed(&mut to());
    assert!(text.contains("--root-key 'passphrase:env:P'"), "{text}");
    assert_ne!(assert_settled(&folder.data), before);
    let text = fail(outlast().args(["server", "--data"]).arg(&folder.data), 1);
    assert!(text.contains("kept by the provider passphrase"), "{text}");
    let mut command = outlast();
    command.env("OUTLAST_ROOT_KEY", "passphrase:env:P").env("P", PASSPHRASE);
    assert_readable(command, &folder.data, &load);
}

/// A folder from the version before root keys had ids; `README.md` next to it describes it.
fn first_layout() -> Folder {
    let temporary = tempfile::tempdir().unwrap();
    let data = temporary.path().join("data");
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/first-layout");
    std::fs::create_dir_all(data.join("client")).unwrap();
    for name in ["store.db", "root.key", "client/credentials"] {
        std::fs::copy(from.join(name), data.join(name)).unwrap();
    }
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(data.join("root.key"), private).unwrap();
    Folder { temporary, data }
}

#[test]
fn first_rotation_migrates_the_oldest_store_layout() {
    let folder = first_layout();
    // It signs its audit events, with a key that is sealed like all others.
    assert_eq!(folder.serve().terminate(), Some(0));
    let before = status(&folder.data);
    assert!(before["current"].is_null() && before["records"]["file"].as_u64().unwrap() > 5);
    succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
    let other = Folder::new();
    std::fs::copy(other.data.join("root.key"), folder.path("other.key")).unwrap();
    let wrong = format!("file:{}", folder.path("other.key").display());
    let text = fail(&mut root_key(&["rotate", "--root-key", &wrong], &folder.data), 1);
    assert!(text.contains("root key of another store") && text.contains("store needs"), "{text}");
    // A backup includes its only key, if requested.
    let backup = folder.path("backup");
    let mut command = outlast();
    command.args(["backup", "--include-root-key", "--backup-key", "passphrase:env:P", "--data"]);
    succeed(command.arg(&folder.data).arg("--out").arg(&backup).env("P", PASSPHRASE));
    let restored = folder.path("restored");
    let mut command = outlast();
    command.arg("restore").arg(&backup).args(["--backup-key", "passphrase:env:P", "--data"]);
    succeed(command.arg(&restored).env("P", PASSPHRASE));
    succeed(outlast().args(["store", "check", "--data"]).arg(&restored));
    // Beside a server that was started before, and keeps running.
    let server = folder.serve();
    let text = succeed(&mut root_key(&["rotate", "--output", "json"], &folder.data));
    let rotated: serde_json::Value = serde_json::from_str(&text).unwrap();
    // All records from before, and the key that has signed the audit events since.
    assert!(rotated["resealed"].as_u64() >= before["records"]["file"].as_u64(), "{rotated}");
    assert_settled(&folder.data);
    succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
    drop(server);
    drop(folder.serve());
}

#[test]
fn rotation_under_load_fails_no_call() {
    let folder = Folder::new();
    let mut server = folder.serve();
    let runtime = runtime();
    let load = Arc::new(Load::default());
    let mut tasks = Vec::new();
    runtime.block_on(async {
        for _ in 0..6 {
            tasks.push(tokio::spawn(load.clone().run(server.session().await.unwrap())));
        }
    });
    let mut seen = Vec::new();
    for round in 1..=4 {
        let wanted = 40 * round;
        while load.count() < wanted && load.failures.lock().unwrap().is_empty() {
            std::thread::sleep(Duration::from_millis(5));
        }
        succeed(&mut root_key(&["rotate"], &folder.data));
        seen.push(status(&folder.data)["current"].as_str().unwrap().to_owned());
    }
    load.stop.store(true, Ordering::SeqCst);
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*load.failures.lock().unwrap(), [""; 0]);
        let mut session = server.session().await.unwrap();
        assert_eq!(lost(&mut session, &load.taken()).await, 0, "in the server that saw it all");
    });
    println!("data keys handed out during 4 rotations: {}", load.count());
    server.terminate();
    assert_settled(&folder.data);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 4);
    assert_readable(outlast(), &folder.data, &load);
    let store = SqliteStore::open(&folder.data.join("store.db")).unwrap();
    let events = store.events(0, 100_000).unwrap();
    let count = |name: &str| {
        let needle = format!("\"eventName\":\"{name}\"");
        let texts = events.iter().map(|event| String::from_utf8_lossy(&event.body));
        texts.filter(|text| text.contains(&needle)).count()
    };
    assert_eq!((count("BeginRootKeyRotation"), count("FinishRootKeyRotation")), (4, 4));
    succeed(outlast().args(["store", "check", "--data"]).arg(&folder.data));
}

#[test]
fn a_rotation_that_is_killed_goes_on_where_it_was() {
    let rounds: u64 = std::env::var("OUTLAST_ROTATION_ROUNDS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(15);
    let mut seed: u64 = std::env::var("OUTLAST_CRASH_SEED")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or_else(|| u64::from(std::process::id()));
    println!("replay with OUTLAST_CRASH_SEED={seed} OUTLAST_ROTATION_ROUNDS={rounds}");
    let folder = first_layout();
    // Enough records that a rotation takes some time.
    drop(folder.serve());
    let filler = Folder::new();
    let load = Arc::new(Load::default());
    let server = filler.serve();
    runtime().block_on(async {
        let mut tasks = Vec::new();
        for _ in 0..6 {
            tasks.push(tokio::spawn(load.clone().run(server.session().await.unwrap())));
        }
        while load.count() < 600 && load.failures.lock().unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        load.stop.store(true, Ordering::SeqCst);
        for task in tasks {
            task.await.unwrap();
        }
    });
    drop(server);
    // The kills come at any moment of the time that a rotation takes here and now.
    let clock = Instant::now();
    succeed(&mut root_key(&["rotate"], &filler.data));
    let longest = u64::try_from(clock.elapsed().as_micros()).unwrap() * 5 / 4;
    let (mut kills, mut interrupted) = (0, 0);
    for (data, may_go_on) in [(&folder.data, false), (&filler.data, true)] {
        let first = kills;
        // More than the rounds only if none of them met a rotation.
        while kills - first < rounds || (may_go_on && interrupted == 0 && kills < 10 * rounds) {
            kills += 1;
            let mut child = root_key(&["rotate"], data)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            std::thread::sleep(Duration::from_micros((seed >> 33) % longest));
            let _ = child.kill();
            let _ = child.wait();
            let under_way = status(data)["previous"].is_string();
            interrupted += u64::from(under_way);
            succeed(outlast().args(["store", "check", "--data"]).arg(data));
            if under_way {
                let current = status(data)["current"].clone();
                let text = succeed(&mut root_key(&["rotate", "--output", "json"], data));
                let done: serde_json::Value = serde_json::from_str(&text).unwrap();
                assert_eq!((&done["current"], &done["resumed"]), (&current, &true.into()));
                assert_settled(data);
            }
        }
    }
    println!("kills: {kills}, in the middle of a rotation: {interrupted}");
    assert!(interrupted > 0 || rounds < 10, "no kill met a rotation");
    assert_readable(outlast(), &filler.data, &load);
    drop(folder.serve());
}

#[test]
fn a_rotation_that_cannot_end_does_not_begin() {
    let folder = Folder::new();
    let load = use_server(outlast(), &folder.data);
    let database = rusqlite::Connection::open(folder.data.join("store.db")).unwrap();
    // A secret that cannot be opened, and one of the load's keys.
    let spoil = |from: &str, to: &str| {
        let sql = "UPDATE record SET value = CAST(?2 || substr(value, 2) AS BLOB)
                   WHERE key LIKE 'iam/access-key-secret/%' AND substr(value, 1, 1) = CAST(?1 AS BLOB)";
        assert_eq!(database.execute(sql, [from, to]).unwrap(), 1);
    };
    spoil("\u{2}", "\u{7}");
    let to = || {
        let mut command = root_key(&["rotate", "--to", "passphrase:env:P"], &folder.data);
        command.env("P", PASSPHRASE);
        command
    };
    let before = status(&folder.data);
    let all = items(&folder.data);
    for mut command in [to(), root_key(&["rotate"], &folder.data)] {
        let text = fail(&mut command, 1);
        let named = "rotation stopped: the secret of the access key TESTKEY01 could not be read";
        assert!(text.contains(named) && text.contains("nothing was changed"), "{text}");
        assert!(text.contains("outlast store check"), "{text}");
        assert_eq!(status(&folder.data), before);
        assert!(items(&folder.data) == all, "something was changed");
    }
    spoil("\u{7}", "\u{2}");
    // The key in force keeps serving; then the other takes over.
    assert_readable(outlast(), &folder.data, &load);
    succeed(&mut to());
    assert_settled(&folder.data);
    let mut command = outlast();
    command.env("OUTLAST_ROOT_KEY", "passphrase:env:P").env("P", PASSPHRASE);
    assert_readable(command, &folder.data, &load);
}

#[test]
fn killed_provider_rotation_leaves_one_in_force() {
    let folder = Folder::new();
    let load = use_server(outlast(), &folder.data);
    let file = |number: u64| folder.path(&format!("kek{number}"));
    let provider = |number: u64| format!("file:{}", file(number).display());
    std::fs::copy(folder.data.join("root.key"), file(0)).unwrap();
    let with = |number: u64, more: &[&str]| {
        let given = provider(number);
        let arguments = [&["rotate", "--root-key", &given], more].concat();
        root_key(&arguments, &folder.data)
    };
    let mut finished = 0;
    for round in 0..8 {
        let to = provider(round + 1);
        let mut child = with(round, &["--to", &to])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(round * 40));
        let _ = child.kill();
        let _ = child.wait();
        let opens = |number: u64| {
            let mut check = outlast();
            check.args(["store", "check", "--data"]).arg(&folder.data);
            check.args(["--root-key", &provider(number)]).output().unwrap().status.success()
        };
        let (before, after) = (opens(round), opens(round + 1));
        assert!(before != after, "round {round}: {before} {after}");
        if before {
            succeed(&mut with(round, &["--to", &to]));
        } else {
            finished += 1;
        }
        assert_settled(&folder.data);
        assert!(opens(round + 1) && !opens(round), "round {round}");
    }
    println!("8 kills, {finished} after the other provider was in force");
    let mut command = outlast();
    command.env("OUTLAST_ROOT_KEY", provider(8));
    assert_readable(command, &folder.data, &load);
}

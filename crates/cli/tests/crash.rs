//! kill -9 at random moments of a stream of writes, of servers and of the database below them: no acknowledged write
//! is lost, and none is done twice.
//!
//! `OUTLAST_CRASH_ROUNDS` sets the number of kills (default 25 for SQLite and 12 for PostgreSQL),
//! `OUTLAST_CRASH_WINDOW_MS` the latest time of a kill in a round.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::cluster::Cluster;
use common::{Folder, Server, Session, lost, outlast, runtime, succeed};
use outlast_api::ops::kms::{create_alias, create_key, generate_data_key, list_aliases, list_keys};
use outlast_store::postgres::PostgresStore;
use outlast_store::sqlite::SqliteStore;
use outlast_store::testing::Postgres;
use outlast_store::{Event, Store};
use serde_json::{Value, json};

/// Writers on each server.
const WRITERS: usize = 4;
/// Every fourth kill hits the database, if there is one.
const DATABASE_EVERY: u64 = 4;

/// Writes that the servers have acknowledged.
#[derive(Default)]
struct Acknowledged {
    aliases: Mutex<BTreeSet<String>>,
    keys: Mutex<BTreeSet<String>>,
    data_keys: Mutex<Vec<(String, Vec<u8>)>>,
    calls: AtomicU64,
}

/// The processes that are killed, and the store that must survive it.
struct Site {
    name: &'static str,
    /// A data folder for each server.
    folders: Vec<PathBuf>,
    postgres: Option<Arc<Postgres>>,
    open: Box<dyn Fn() -> Box<dyn Store>>,
}

impl Site {
    fn serve(&self, number: usize) -> Server {
        let mut command = outlast();
        // Hides a server's messages while its database is away.
        command.stderr(Stdio::null());
        Server::start_by(command, &self.folders[number], &[])
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Writes until it is told to stop; `None` if the connection broke or a call failed.
async fn write(
    mut session: Session,
    name: String,
    key: String,
    seen: Arc<Acknowledged>,
    stop: Arc<AtomicBool>,
) -> Option<()> {
    for number in 0.. {
        if stop.load(Ordering::SeqCst) {
            break;
        }
        let made = session.call::<create_key::CreateKey>(json!({})).await.ok()?.ok()?;
        let id = made.key_metadata.key_id;
        seen.keys.lock().unwrap().insert(id.clone());
        seen.calls.fetch_add(1, Ordering::SeqCst);
        let alias = format!("alias/{name}-{number}");
        let request = json!({ "AliasName": alias, "TargetKeyId": id });
        session.call::<create_alias::CreateAlias>(request).await.ok()?.ok()?;
        seen.aliases.lock().unwrap().insert(alias);
        seen.calls.fetch_add(1, Ordering::SeqCst);
        let request = json!({ "KeyId": key, "KeySpec": "AES_256" });
        let made = session.call::<generate_data_key::GenerateDataKey>(request).await.ok()?.ok()?;
        let blob = serde_json::to_value(&made.ciphertext_blob).unwrap();
        let pair = (blob.as_str().unwrap().to_owned(), made.plaintext.0);
        seen.data_keys.lock().unwrap().push(pair);
        seen.calls.fetch_add(1, Ordering::SeqCst);
    }
    Some(())
}

#[test]
fn nothing_acknowledged_is_lost_in_sqlite() {
    let folder = Folder::new();
    let file = folder.data.join("store.db");
    crash(
        &Site {
            name: "SQLite",
            folders: vec![folder.data.clone()],
            postgres: None,
            open: Box::new(move || Box::new(SqliteStore::open(&file).unwrap())),
        },
        setting("OUTLAST_CRASH_ROUNDS", 25),
    );
}

#[test]
fn nothing_acknowledged_is_lost_in_postgresql() {
    let Some(cluster) = Cluster::alone() else { return };
    let url = cluster.url.clone();
    crash(
        &Site {
            name: "PostgreSQL",
            folders: cluster.folders.clone(),
            postgres: Some(cluster.postgres.clone()),
            open: Box::new(move || Box::new(PostgresStore::open(&url).unwrap())),
        },
        setting("OUTLAST_CRASH_ROUNDS", 12),
    );
}

fn crash(site: &Site, rounds: u64) {
    let mut seed = setting("OUTLAST_CRASH_SEED", u64::from(std::process::id()));
    let window_us = setting("OUTLAST_CRASH_WINDOW_MS", 150) * 1000;
    println!("replay with OUTLAST_CRASH_SEED={seed} OUTLAST_CRASH_ROUNDS={rounds}");
    // A linear congruential generator is random enough for the moment of a kill.
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    };
    let runtime = runtime();
    let seen = Arc::new(Acknowledged::default());
    let mut servers: Vec<Server> = (0..site.folders.len()).map(|n| site.serve(n)).collect();
    let key = runtime.block_on(async {
        let mut session = servers[0].session().await.unwrap();
        let made = session.call::<create_key::CreateKey>(json!({})).await.unwrap().unwrap();
        seen.calls.fetch_add(1, Ordering::SeqCst);
        made.key_metadata.key_id
    });
    seen.keys.lock().unwrap().insert(key.clone());
    let (mut database_kills, mut disturbed) = (0, 0);
    for round in 1..=rounds {
        let moment = Duration::from_micros(random() % window_us);
        let victim = usize::try_from(random()).unwrap() % servers.len();
        let database = site.postgres.as_ref().filter(|_| round.is_multiple_of(DATABASE_EVERY));
        runtime.block_on(async {
            let stop = Arc::new(AtomicBool::new(false));
            let mut tasks = Vec::new();
            for (number, server) in servers.iter().enumerate() {
                for writer in 0..WRITERS {
                    let session = ready(server, site).await;
                    let name = format!("r{round}-s{number}-w{writer}");
                    let writing = write(session, name, key.clone(), seen.clone(), stop.clone());
                    tasks.push((number, tokio::spawn(writing)));
                }
            }
            tokio::time::sleep(moment).await;
            match database {
                Some(database) => database.kill(),
                None => servers[victim].kill(),
            }
            // The other servers go on for a while.
            tokio::time::sleep(Duration::from_millis(20)).await;
            stop.store(true, Ordering::SeqCst);
            if let Some(database) = database {
                database_kills += 1;
                database.start_again();
            }
            for (number, task) in tasks {
                let ended = task.await.unwrap();
                // A client of another server does not notice the kill.
                if database.is_none() && number != victim && ended.is_none() {
                    disturbed += 1;
                }
            }
        });
        if database.is_none() {
            servers[victim] = site.serve(victim);
        }
    }
    let (lost, unexplained) = runtime.block_on(account(&servers, &seen, site));
    for server in &mut servers {
        assert_eq!(server.terminate(), Some(0));
    }
    let store = (site.open)();
    let audit = Audit::of(store.as_ref());
    let acknowledged = seen.calls.load(Ordering::SeqCst);
    println!(
        "{}: writes acknowledged: {acknowledged}, kills: {rounds} ({database_kills} of the \
         database), lost: {lost}, done twice: {}, others disturbed: {disturbed}, audit gaps: {}, \
         audit events: {}",
        site.name, audit.twice, audit.gaps, audit.events
    );
    assert!(acknowledged > rounds, "the writers did not get going");
    assert_eq!(audit.problems, Vec::<String>::new());
    assert_eq!((lost, audit.twice, audit.gaps, disturbed), (0, 0, 0, 0));
    assert!(audit.writes >= acknowledged, "{} events, {acknowledged} calls", audit.writes);
    // A write that was not acknowledged is in the store if, and only if, its event is.
    assert_eq!(unexplained.keys, audit.keys, "keys and events do not fit");
    assert_eq!(unexplained.aliases, audit.aliases, "aliases and events do not fit");
    drop(store);
    let checked = succeed(outlast().args(["store", "check", "--data"]).arg(&site.folders[0]));
    assert!(checked.contains("problems:     0"), "{checked}");
    let verified = outlast()
        .args(["audit", "verify", "--output", "json", "--data"])
        .arg(&site.folders[0])
        .output();
    let verified: Value = serde_json::from_slice(&verified.unwrap().stdout).unwrap();
    assert_eq!(verified["unsigned"], 0, "the servers ended and left events unsigned: {verified}");
}

/// Contents of the store.
struct Found {
    keys: BTreeSet<String>,
    aliases: BTreeSet<String>,
}

/// Counts what is lost, and lists the contents.
async fn account(servers: &[Server], seen: &Acknowledged, site: &Site) -> (usize, Found) {
    let mut found = Found { keys: BTreeSet::new(), aliases: BTreeSet::new() };
    let mut session = ready(servers.last().unwrap(), site).await;
    let mut marker: Option<String> = None;
    loop {
        let request = json!({ "Limit": 100, "Marker": marker });
        let page = session.call::<list_aliases::ListAliases>(request).await.unwrap().unwrap();
        found.aliases.extend(page.aliases.into_iter().map(|alias| alias.alias_name));
        marker = page.next_marker;
        if marker.is_none() {
            break;
        }
    }
    loop {
        let request = json!({ "Limit": 1000, "Marker": marker });
        let page = session.call::<list_keys::ListKeys>(request).await.unwrap().unwrap();
        found.keys.extend(page.keys.into_iter().map(|key| key.key_id));
        marker = page.next_marker;
        if marker.is_none() {
            break;
        }
    }
    let mut missing = seen.aliases.lock().unwrap().difference(&found.aliases).count();
    missing += seen.keys.lock().unwrap().difference(&found.keys).count();
    let data_keys = seen.data_keys.lock().unwrap().clone();
    // Several at a time share a sync.
    let mut tasks = Vec::new();
    for (number, part) in data_keys.chunks(data_keys.len().div_ceil(8).max(1)).enumerate() {
        let (mut session, part) =
            (ready(&servers[number % servers.len()], site).await, part.to_vec());
        tasks.push(tokio::spawn(async move { lost(&mut session, &part).await }));
    }
    for task in tasks {
        missing += task.await.unwrap();
    }
    (missing, found)
}

/// A session with a server that can write: after a restart of the database that takes a moment, because a server does
/// not try to connect all the time.
async fn ready(server: &Server, site: &Site) -> Session {
    let mut session = server.session().await.unwrap();
    for _ in 0..100 {
        // It is recorded, and so it is written.
        let listed = session.call::<list_keys::ListKeys>(json!({ "Limit": 1 })).await.unwrap();
        match listed {
            Ok(_) => return session,
            Err(error) => assert!(site.postgres.is_some(), "not ready: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the server does not become ready");
}

/// Contents of the audit log.
#[derive(Default)]
struct Audit {
    events: u64,
    gaps: usize,
    /// Successful calls of the kinds that the writers make.
    writes: u64,
    /// Events, keys and aliases that occur twice.
    twice: usize,
    keys: BTreeSet<String>,
    aliases: BTreeSet<String>,
    problems: Vec<String>,
}

impl Audit {
    fn of(store: &dyn Store) -> Self {
        let mut audit = Self::default();
        let mut ids = BTreeSet::new();
        loop {
            let page = store.events(audit.events, 5000).unwrap();
            let Some(last) = page.last().map(|event| event.sequence) else { break };
            for (expected, event) in (audit.events + 1..).zip(&page) {
                audit.gaps += usize::from(event.sequence != expected);
                if outlast_tlog::hash::leaf(&event.body) != event.leaf {
                    audit.problems.push(format!("event {expected} has another leaf hash"));
                }
                audit.count(event, &mut ids);
            }
            audit.events = last;
        }
        audit
    }

    fn count(&mut self, event: &Event, ids: &mut BTreeSet<String>) {
        let event: Value = serde_json::from_slice(&event.body).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        self.twice += usize::from(!ids.insert(text(&event["eventID"])));
        if !event["errorCode"].is_null() {
            return;
        }
        let new = match event["eventName"].as_str().unwrap() {
            "CreateKey" => self.keys.insert(text(&event["responseElements"]["keyId"])),
            "CreateAlias" => self.aliases.insert(text(&event["requestParameters"]["aliasName"])),
            "GenerateDataKey" => true,
            _ => return,
        };
        self.twice += usize::from(!new);
        self.writes += 1;
    }
}

//! PostgreSQL as the store: several processes on one database, a database that dies, connections that break.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use outlast_store::postgres::PostgresStore;
use outlast_store::sqlite::SqliteStore;
use outlast_store::testing::{PASSWORD, Postgres};
use outlast_store::{Item, Store, StoreError, Transaction};
use outlast_testing::{PATIENCE, until};

const COUNTER: &str = "counter";

/// Adds one to the counter and appends an event with this id, once.
fn increment(store: &dyn Store, id: &str) -> Result<(), StoreError> {
    let found = store.read(COUNTER)?;
    let value = found.as_ref().map_or(0, |record| number(&record.value)) + 1;
    store.commit_and_wait(Transaction {
        expectations: vec![(COUNTER.into(), found.map(|record| record.version))],
        writes: vec![(COUNTER.into(), Some(value.to_be_bytes().to_vec()))],
        events: vec![id.as_bytes().to_vec().into()],
        ..Transaction::default()
    })
}

/// Repeats [`increment`] until it meets no conflict.
fn increment_at_last(store: &dyn Store, id: &str) -> Result<(), StoreError> {
    loop {
        match increment(store, id) {
            Err(StoreError::Conflict) => {}
            outcome => return outcome,
        }
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().unwrap())
}

fn items(store: &dyn Store) -> Vec<Item> {
    let mut items = Vec::new();
    store
        .snapshot(&mut |item| {
            items.push(item);
            Ok(())
        })
        .unwrap();
    items
}

/// Returns the ids of all events. Checks that their leaf hashes are right, that no id occurs twice and that the
/// counter agrees.
fn check_history(store: &dyn Store) -> BTreeSet<String> {
    let (mut counter, mut sequence, mut ids) = (0, 0, BTreeSet::new());
    for item in items(store) {
        match item {
            Item::Record(key, record) if key == COUNTER => counter = number(&record.value),
            Item::Record(..) => {}
            Item::Event(event) => {
                sequence += 1;
                let leaf = outlast_tlog::hash::leaf(&event.body);
                assert_eq!((event.sequence, event.leaf), (sequence, leaf));
                let id = String::from_utf8(event.body).unwrap();
                assert!(ids.insert(id.clone()), "{id} was done twice");
            }
        }
    }
    assert_eq!(counter, sequence, "counter and events differ");
    assert_eq!(store.last_event().unwrap(), sequence);
    ids
}

#[test]
fn several_processes_lose_no_update() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.new_database();
    const THREADS: usize = 6;
    const EACH: usize = 40;
    // Both create the tables at the same time.
    let stores: Vec<PostgresStore> = std::thread::scope(|scope| {
        let opening: Vec<_> =
            (0..3).map(|_| scope.spawn(|| PostgresStore::open(&url).unwrap())).collect();
        opening.into_iter().map(|store| store.join().unwrap()).collect()
    });
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = &stores[thread % stores.len()];
            scope.spawn(move || {
                for number in 0..EACH {
                    increment_at_last(store, &format!("{thread}/{number}")).unwrap();
                }
            });
        }
    });
    for store in &stores {
        assert_eq!(check_history(store).len(), THREADS * EACH);
    }
}

/// Outcomes of the attempts.
#[derive(Default)]
struct Seen {
    done: Mutex<BTreeSet<String>>,
    refused: Mutex<BTreeSet<String>>,
    uncertain: AtomicU64,
}

impl Seen {
    fn note(&self, id: String, outcome: &Result<(), StoreError>) {
        match outcome {
            Ok(()) => self.done.lock().unwrap().insert(id),
            Err(StoreError::Uncertain(_)) => {
                self.uncertain.fetch_add(1, Ordering::SeqCst);
                true
            }
            Err(_) => self.refused.lock().unwrap().insert(id),
        };
    }

    fn check(&self, store: &dyn Store) {
        let found = check_history(store);
        let done = self.done.lock().unwrap();
        let lost: Vec<_> = done.difference(&found).collect();
        assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
        let refused = self.refused.lock().unwrap();
        let kept: Vec<_> = refused.intersection(&found).collect();
        assert!(kept.is_empty(), "refused and done: {kept:?}");
        assert_eq!(self.uncertain.load(Ordering::SeqCst), 0);
        assert_eq!(found.len(), done.len());
        eprintln!("{} done, {} refused", done.len(), refused.len());
    }
}

/// Runs writers on several stores until `stop`.
fn load<'scope>(
    scope: &'scope std::thread::Scope<'scope, '_>,
    stores: &'scope [PostgresStore],
    seen: &'scope Seen,
    stop: &'scope AtomicBool,
) {
    for thread in 0..6 {
        let store = &stores[thread % stores.len()];
        scope.spawn(move || {
            for number in 0.. {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let id = format!("{thread}/{number}");
                let outcome = increment(store, &id);
                seen.note(id, &outcome);
                if matches!(outcome, Err(StoreError::Unavailable(_))) {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        });
    }
}

#[test]
fn a_database_that_is_killed_loses_nothing() {
    let Some(server) = Postgres::start() else { return };
    let rounds = std::env::var("OUTLAST_CRASH_ROUNDS").map_or(5, |text| text.parse().unwrap());
    let stores = [(); 2].map(|()| PostgresStore::open(&server.url()).unwrap());
    let (seen, stop) = (Seen::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        load(scope, &stores, &seen, &stop);
        let done = || seen.done.lock().unwrap().len();
        for round in 0..rounds {
            // Kills the database at an arbitrary point of the work.
            let (before, begun) = (done(), Instant::now());
            while done() < before + 40 && begun.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_micros(round * 7919 % 5000));
            if round % 3 == 2 {
                server.stop();
            } else {
                server.kill();
            }
            std::thread::sleep(Duration::from_millis(30 * (round % 3)));
            server.start_again();
        }
        let before = done();
        until("commits succeed after the restarts", || done() > before + 40);
        stop.store(true, Ordering::SeqCst);
    });
    seen.check(&stores[0]);
}

/// Stands between a store and the database, and cuts connections when a COMMIT passes.
struct Proxy {
    port: u16,
    /// Number of COMMITs cut before and after the database received them.
    cuts: Arc<[AtomicUsize; 2]>,
}

impl Proxy {
    /// Cuts every seventh COMMIT, alternately before and after it reaches the database.
    fn start(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self { port: listener.local_addr().unwrap().port(), cuts: Arc::default() };
        let (cuts, commits) = (proxy.cuts.clone(), Arc::new(AtomicUsize::new(0)));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, cuts, commits) = (client.unwrap(), cuts.clone(), commits.clone());
                let Ok(server) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                client.set_nodelay(true).unwrap();
                server.set_nodelay(true).unwrap();
                let (mut from, mut to) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                // The answer to the cut COMMIT must not pass.
                let deaf = Arc::new(AtomicBool::new(false));
                let is_deaf = deaf.clone();
                std::thread::spawn(move || {
                    let mut buffer = [0; 65536];
                    while let Ok(len @ 1..) = from.read(&mut buffer) {
                        if is_deaf.load(Ordering::SeqCst) || to.write_all(&buffer[..len]).is_err() {
                            return;
                        }
                    }
                    let _ = to.shutdown(Shutdown::Both);
                });
                std::thread::spawn(move || forward(client, server, &deaf, &cuts, &commits));
            }
        });
        proxy
    }

    fn url(&self, database: &str) -> String {
        format!("postgres://outlast:{PASSWORD}@127.0.0.1:{}/{database}?sslmode=disable", self.port)
    }
}

fn forward(
    mut client: TcpStream,
    mut server: TcpStream,
    deaf: &AtomicBool,
    cuts: &[AtomicUsize; 2],
    commits: &AtomicUsize,
) {
    let mut buffer = [0; 65536];
    while let Ok(len @ 1..) = client.read(&mut buffer) {
        let bytes = &buffer[..len];
        let is_commit = bytes.windows(7).any(|window| window == b"COMMIT\0");
        let number = if is_commit { commits.fetch_add(1, Ordering::SeqCst) } else { 0 };
        let cut = (number % 7 == 6).then_some(number / 7 % 2);
        if let Some(after) = cut {
            cuts[after].fetch_add(1, Ordering::SeqCst);
            deaf.store(true, Ordering::SeqCst);
        }
        if cut != Some(0) && server.write_all(bytes).is_err() || cut.is_some() {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
}

#[test]
fn a_connection_cut_during_commit_is_cleared_up() {
    let Some(server) = Postgres::start() else { return };
    let proxy = Proxy::start(server.folder_and_port().1);
    let stores = [(); 2].map(|()| PostgresStore::open(&proxy.url("postgres")).unwrap());
    let (seen, stop) = (Seen::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        load(scope, &stores, &seen, &stop);
        let cuts = |kind: usize| proxy.cuts[kind].load(Ordering::SeqCst);
        until("connections are cut in both ways", || cuts(0) > 4 && cuts(1) > 4);
        stop.store(true, Ordering::SeqCst);
    });
    let cuts = [0, 1].map(|kind| proxy.cuts[kind].load(Ordering::SeqCst));
    eprintln!("cut before and after the database saw COMMIT: {cuts:?}");
    assert!(cuts.iter().all(|count| *count > 0));
    seen.check(&PostgresStore::open(&server.url()).unwrap());
}

#[test]
fn a_database_that_is_down_is_no_trap() {
    let Some(server) = Postgres::start() else { return };
    let store = PostgresStore::open(&server.url()).unwrap();
    increment(&store, "first").unwrap();
    server.stop();
    std::thread::scope(|scope| {
        for thread in 0..16 {
            let store = &store;
            scope.spawn(move || {
                for _ in 0..50 {
                    assert!(matches!(store.read(COUNTER), Err(StoreError::Unavailable(_))));
                    let outcome = store.commit_and_wait(Transaction {
                        events: vec![format!("{thread}").into_bytes().into()],
                        ..Transaction::default()
                    });
                    assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
                }
            });
        }
    });
    assert!(PostgresStore::open(&server.url()).is_err());
    server.start_again();
    until("it comes back", || increment(&store, "second").is_ok());
    assert_eq!(check_history(&store).len(), 2);
}

#[test]
fn a_wrong_password_is_not_repeated() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.url().replace(PASSWORD, "hunter2");
    let error = PostgresStore::open(&url).err().unwrap();
    let (shown, debugged) = (error.to_string(), format!("{error:?}"));
    assert!(shown.contains("password authentication failed"), "{shown}");
    assert!(!shown.contains("hunter2") && !debugged.contains("hunter2"), "{debugged}");
}

#[test]
fn a_newer_or_foreign_schema_is_refused_and_left_alone() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.url();
    let refused = |schema: &str| PostgresStore::open_in(&url, schema).err().unwrap();
    let store = PostgresStore::open_in(&url, "newer").unwrap();
    increment(&store, "first").unwrap();
    server.execute("postgres", "UPDATE newer.meta SET schema_version = 99");
    assert!(matches!(refused("newer"), StoreError::TooNew { found: 99, .. }));
    // A server that was running when the tables were upgraded.
    let outcome = increment(&store, "second");
    assert!(matches!(outcome, Err(StoreError::TooNew { found: 99, .. })), "{outcome:?}");

    server.execute("postgres", "CREATE SCHEMA theirs; CREATE TABLE theirs.record (x INT)");
    assert!(matches!(refused("theirs"), StoreError::Foreign(_)));
    server.execute("postgres", "CREATE TABLE theirs.meta (application_id TEXT)");
    assert!(matches!(refused("theirs"), StoreError::Foreign(_)));
    server.execute("postgres", "DROP TABLE theirs.meta; SELECT x FROM theirs.record");
    assert!(matches!(refused("No; DROP"), StoreError::Unavailable(_)));
}

#[test]
fn a_store_moves_from_one_engine_to_the_other_and_back() {
    let Some(server) = Postgres::shared() else { return };
    let folder = tempfile::tempdir().unwrap();
    let first = SqliteStore::open(&folder.path().join("first.db")).unwrap();
    for number in 0..1234 {
        let key = format!("k/{}/ü{number}", number % 7);
        first
            .commit_and_wait(Transaction {
                writes: vec![
                    (key, Some(vec![7; number % 50])),
                    (format!("k/{}", number / 2), None),
                ],
                events: vec![Vec::new().into(), format!("event {number}").into_bytes().into()],
                ..Transaction::default()
            })
            .unwrap();
    }
    let copy = |from: &dyn Store, to: &dyn Store| {
        to.restore(&mut items(from).into_iter().map(Ok)).unwrap();
        assert!(items(from) == items(to), "the copy differs");
        assert_eq!(from.last_event().unwrap(), to.last_event().unwrap());
    };
    let middle = PostgresStore::open(&server.new_database()).unwrap();
    copy(&first, &middle);
    let last = SqliteStore::open(&folder.path().join("last.db")).unwrap();
    copy(&middle, &last);
    let refused = middle.restore(&mut items(&first).into_iter().map(Ok));
    assert_eq!(refused, Err(StoreError::NotEmpty));
    increment(&middle, "new").unwrap();
    let highest = items(&first).iter().filter_map(version).max();
    assert!(middle.read(COUNTER).unwrap().map(|record| record.version) > highest);
}

fn version(item: &Item) -> Option<u64> {
    match item {
        Item::Record(_, record) => Some(record.version),
        Item::Event(_) => None,
    }
}

#[test]
fn it_works_inside_a_runtime_and_from_a_completion() {
    let Some(server) = Postgres::shared() else { return };
    let url = server.new_database();
    let single = tokio::runtime::Builder::new_current_thread().build().unwrap();
    single.block_on(async {
        let store = Arc::new(PostgresStore::open(&url).unwrap());
        assert!(store.is_remote());
        increment(store.as_ref(), "first").unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let reader = store.clone();
        store.commit(
            Transaction { events: vec![b"second".to_vec().into()], ..Transaction::default() },
            Box::new(move |outcome| {
                let _ = sender.send((outcome, reader.last_event()));
            }),
        );
        // The completion may now hold the last reference.
        drop(store);
        let (outcome, last) = receiver.recv().unwrap();
        assert_eq!(outcome, Ok(()));
        assert_eq!(last.unwrap(), 2);
    });
}

#[test]
fn a_zero_byte_in_a_key_harms_nobody() {
    let Some(server) = Postgres::shared() else { return };
    let store = PostgresStore::open(&server.new_database()).unwrap();
    let put = |key: &str| Transaction {
        writes: vec![(key.into(), Some(Vec::new()))],
        ..Transaction::default()
    };
    store.commit_and_wait(put("a/b")).unwrap();
    assert!(matches!(store.commit_and_wait(put("a/\0")), Err(StoreError::Unavailable(_))));
    assert_eq!(store.read("a/\0"), Ok(None));
    assert_eq!(store.scan("a/", "a/a\0x", 9).unwrap().len(), 1);
    assert_eq!(store.scan("a/", "a/b\0x", 9).unwrap().len(), 0);
    assert_eq!(store.scan("a/\0", "", 9).unwrap().len(), 0);
}

#[test]
fn tls_to_the_database_is_checked() {
    let Some(server) = Postgres::start() else { return };
    server.stop();
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    server.install("server.crt", &std::fs::read(data.join("server.pem")).unwrap());
    server.install("server.key", &std::fs::read(data.join("server.key")).unwrap());
    server.configure("ssl = on\nssl_min_protocol_version = 'TLSv1.3'");
    server.start_again();
    let port = server.folder_and_port().1;
    let url = |host: &str, rest: &str| {
        format!("postgres://outlast:{PASSWORD}@{host}:{port}/postgres?sslmode=require{rest}")
    };
    let roots = format!("&sslrootcert={}", data.join("root.pem").display());
    let store = PostgresStore::open(&url("localhost", &roots)).unwrap();
    increment(&store, "first").unwrap();
    server.execute(
        "postgres",
        "CREATE VIEW seen AS SELECT 1 / (count(*) / 2) FROM pg_stat_ssl WHERE ssl",
    );
    check_history(&store);
    server.execute("postgres", "SELECT * FROM seen");

    let shown = |url: String| PostgresStore::open(&url).err().unwrap().to_string();
    // The certificate is for localhost and is not a root.
    let other_name = shown(url("127.0.0.1", &roots));
    assert!(other_name.contains("certificate"), "{other_name}");
    let server_only = format!("&sslrootcert={}", data.join("server.pem").display());
    let other_root = shown(url("localhost", &server_only));
    assert!(other_root.contains("certificate"), "{other_root}");
    assert!(shown(url("localhost", "")).contains("sslrootcert=FILE"));
    server.stop();
    server.configure("ssl = off");
    server.start_again();
    assert!(shown(url("localhost", &roots)).contains("TLS"));
}

#[test]
fn refusals_of_the_database_are_told_apart() {
    let Some(server) = Postgres::shared() else { return };
    let store = PostgresStore::open_in(&server.url(), "refusals").unwrap();
    // A database with triggers: writing a key that begins with "again" fails once with a serialization failure, and
    // the disk is full for keys that begin with "full".
    server.execute(
        "postgres",
        "CREATE SEQUENCE refusals.tries;
         CREATE FUNCTION refusals.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF NEW.key LIKE 'full%' THEN RAISE 'full' USING ERRCODE = '53100'; END IF;
             IF NEW.key LIKE 'again%' AND nextval('refusals.tries') % 2 = 1 THEN
                 RAISE 'again' USING ERRCODE = '40001';
             END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON refusals.record
             FOR EACH ROW EXECUTE FUNCTION refusals.refuse();",
    );
    let put = |key: &str| {
        store.commit_and_wait(Transaction {
            writes: vec![(key.into(), Some(Vec::new()))],
            events: vec![key.as_bytes().to_vec().into()],
            ..Transaction::default()
        })
    };
    assert_eq!(put("fine"), Ok(()));
    assert_eq!(put("full"), Err(StoreError::Full));
    assert_eq!(put("again"), Ok(()));
    assert_eq!(put("full again"), Err(StoreError::Full));
    assert_eq!(put("fine again"), Ok(()));
    let bodies: Vec<_> = store.events(0, 9).unwrap().into_iter().map(|event| event.body).collect();
    assert_eq!(bodies, [b"fine".as_slice(), b"again", b"fine again"]);
}

#[test]
fn a_process_that_keeps_the_lock_is_not_waited_for_for_ever() {
    let Some(server) = Postgres::shared() else { return };
    let store = PostgresStore::open_in(&server.url(), "held").unwrap();
    increment(&store, "first").unwrap();
    let hold = |seconds: u32| {
        server.execute(
            "postgres",
            &format!("BEGIN; SELECT * FROM held.counter FOR UPDATE; SELECT pg_sleep({seconds})"),
        );
    };
    let held = || {
        let look = "SELECT * FROM held.counter FOR UPDATE NOWAIT";
        until("the lock is kept", || server.try_execute("postgres", look).is_err());
    };
    std::thread::scope(|scope| {
        scope.spawn(|| hold(1));
        held();
        increment(&store, "second").unwrap();
    });
    std::thread::scope(|scope| {
        scope.spawn(|| hold(30));
        held();
        let outcome = increment(&store, "third");
        assert!(matches!(outcome, Err(StoreError::Unavailable(_))), "{outcome:?}");
        assert_eq!(store.read(COUNTER).unwrap().map(|record| number(&record.value)), Some(2));
    });
    increment(&store, "fourth").unwrap();
    assert_eq!(check_history(&store).len(), 3);
}

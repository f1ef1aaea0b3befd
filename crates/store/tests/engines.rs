//! All engines behave alike; the durable ones survive being closed, filled up and misused.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use outlast_store::cache::CachedStore;
use outlast_store::faulty::FaultyStore;
use outlast_store::lock::FolderLock;
use outlast_store::memory::MemoryStore;
use outlast_store::postgres::PostgresStore;
use outlast_store::sqlite::SqliteStore;
use outlast_store::tally::Tally;
use outlast_store::testing::Postgres;
use outlast_store::{Item, Record, Store, StoreError, Transaction};

fn put(key: &str, value: &[u8], expected: Option<u64>) -> Transaction {
    Transaction {
        expectations: vec![(key.into(), expected)],
        writes: vec![(key.into(), Some(value.to_vec()))],
        events: vec![format!("put {key}").into_bytes().into()],
        ..Transaction::default()
    }
}

fn with_every_engine(check: impl Fn(&dyn Store)) {
    check(&MemoryStore::new());
    check(&FaultyStore::new(MemoryStore::new()));
    check(&CachedStore::new(Arc::new(MemoryStore::new())));
    let folder = tempfile::tempdir().unwrap();
    check(&SqliteStore::open(&folder.path().join("store.db")).unwrap());
    if let Some(server) = Postgres::shared() {
        static SCHEMAS: AtomicU32 = AtomicU32::new(0);
        let schema = format!("test_{}", SCHEMAS.fetch_add(1, Ordering::SeqCst));
        check(&PostgresStore::open_in(&server.url(), &schema).unwrap());
    }
}

fn append(body: &str) -> Transaction {
    Transaction { events: vec![body.as_bytes().to_vec().into()], ..Transaction::default() }
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

/// Checks that the events have no gaps and that every leaf hash is right.
fn check_events(store: &dyn Store, count: u64) {
    let mut sequence = 0;
    loop {
        let page = store.events(sequence, 100).unwrap();
        if page.is_empty() {
            break;
        }
        let leaves = store.leaves(sequence, 100).unwrap();
        assert_eq!(leaves.len(), page.len());
        for (event, leaf) in page.iter().zip(leaves) {
            sequence += 1;
            assert_eq!(event.sequence, sequence);
            assert_eq!(event.leaf, outlast_tlog::hash::leaf(&event.body));
            assert_eq!(leaf, (sequence, event.leaf));
        }
    }
    assert_eq!(sequence, count);
    assert_eq!(store.last_event().unwrap(), sequence);
}

#[test]
fn compare_and_swap() {
    with_every_engine(|store| {
        store.commit_and_wait(put("a/1", b"one", None)).unwrap();
        assert_eq!(store.commit_and_wait(put("a/1", b"two", None)), Err(StoreError::Conflict));
        let first = store.read("a/1").unwrap().unwrap();
        assert_eq!(first.value, b"one");
        store.commit_and_wait(put("a/1", b"two", Some(first.version))).unwrap();
        assert_eq!(
            store.commit_and_wait(put("a/1", b"three", Some(first.version))),
            Err(StoreError::Conflict)
        );
        let second = store.read("a/1").unwrap().unwrap();
        let delete = Transaction {
            expectations: vec![("a/1".into(), Some(second.version))],
            writes: vec![("a/1".into(), None)],
            ..Transaction::default()
        };
        store.commit_and_wait(delete).unwrap();
        assert_eq!(store.read("a/1").unwrap(), None);
        store.commit_and_wait(put("a/1", b"again", None)).unwrap();
        let again = store.read("a/1").unwrap().unwrap();
        assert!(again.version > second.version, "a version came back");
        assert_eq!(store.events(0, 100).unwrap().len(), 3, "a refused transaction left an event");
        assert_eq!(store.events(2, 100).unwrap()[0].sequence, 3);
    });
}

#[test]
fn pruning_deletes_the_oldest_events_and_never_the_last() {
    with_every_engine(|store| {
        for body in ["one", "two", "three"] {
            store.commit_and_wait(append(body)).unwrap();
        }
        let prune = |upto| Transaction { prune_events: Some(upto), ..Transaction::default() };
        let sequences = || {
            let found = store.events(0, 10).unwrap();
            found.iter().map(|event| event.sequence).collect::<Vec<_>>()
        };
        store.commit_and_wait(prune(1)).unwrap();
        assert_eq!(sequences(), [2, 3]);
        // A refused transaction prunes nothing.
        let refused = Transaction { expectations: vec![("a".into(), Some(1))], ..prune(2) };
        assert_eq!(store.commit_and_wait(refused), Err(StoreError::Conflict));
        assert_eq!(sequences(), [2, 3]);
        store.commit_and_wait(prune(u64::MAX)).unwrap();
        assert_eq!(sequences(), [3]);
        store.commit_and_wait(Transaction { prune_events: Some(9), ..append("four") }).unwrap();
        assert_eq!(sequences(), [4], "the numbers go on");
    });
}

#[test]
fn scans_page_by_page_inside_the_prefix() {
    with_every_engine(|store| {
        for key in ["a/1", "a/2", "a/3", "ab/1", "b/1"] {
            store.commit_and_wait(put(key, key.as_bytes(), None)).unwrap();
        }
        let keys = |after: &str, limit| {
            let found = store.scan("a/", after, limit).unwrap();
            found.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        assert_eq!(keys("", 10), ["a/1", "a/2", "a/3"]);
        assert_eq!(keys("", 2), ["a/1", "a/2"]);
        assert_eq!(keys("a/2", 2), ["a/3"]);
        assert_eq!(keys("b", 2), [""; 0]);
    });
}

#[test]
fn events_have_no_gaps_and_their_leaf_hashes() {
    with_every_engine(|store| {
        assert_eq!(store.last_event().unwrap(), 0);
        let two =
            Transaction { events: vec![b"one".to_vec().into(), Vec::new().into()], ..append("") };
        store.commit_and_wait(two).unwrap();
        store.commit_and_wait(put("a", b"x", Some(7))).unwrap_err();
        store.commit_and_wait(put("a", b"x", None)).unwrap();
        check_events(store, 3);
    });
}

#[test]
fn a_snapshot_restores_exactly() {
    with_every_engine(|store| {
        for key in ["b/1", "a/1", "a/2"] {
            store.commit_and_wait(put(key, key.as_bytes(), None)).unwrap();
        }
        store.commit_and_wait(append("last")).unwrap();
        let saved = items(store);
        let kinds: Vec<_> = saved
            .iter()
            .map(|item| match item {
                Item::Record(key, _) => key.clone(),
                Item::Event(event) => event.sequence.to_string(),
            })
            .collect();
        assert_eq!(kinds, ["a/1", "a/2", "b/1", "1", "2", "3", "4"]);
        let refused = store.restore(&mut saved.iter().cloned().map(Ok));
        assert_eq!(refused, Err(StoreError::NotEmpty));
        assert_eq!(items(store), saved);

        with_every_engine(|copy| {
            let broken = saved.iter().cloned().map(Ok).chain([Err(StoreError::Full)]);
            assert_eq!(copy.restore(&mut broken.into_iter()), Err(StoreError::Full));
            assert_eq!(items(copy), [], "half of a restore was kept");
            copy.restore(&mut saved.iter().cloned().map(Ok)).unwrap();
            assert_eq!(items(copy), saved);
            copy.commit_and_wait(put("c", b"new", None)).unwrap();
            let newest = copy.read("c").unwrap().unwrap().version;
            let is_older = |item: &Item| match item {
                Item::Record(_, record) => record.version < newest,
                Item::Event(_) => true,
            };
            assert!(saved.iter().all(is_older), "a version came back");
            check_events(copy, 5);
        });
    });
}

#[test]
fn an_error_ends_a_snapshot() {
    with_every_engine(|store| {
        store.commit_and_wait(put("a", b"x", None)).unwrap();
        let mut seen = 0;
        let outcome = store.snapshot(&mut |_| {
            seen += 1;
            Err(StoreError::Full)
        });
        assert_eq!((outcome, seen), (Err(StoreError::Full), 1));
        store.commit_and_wait(put("b", b"x", None)).unwrap();
    });
}

/// Every commit moves one unit from one record to another and appends an event, so that their sum shows whether a
/// snapshot is of one moment.
#[test]
fn a_snapshot_is_of_one_moment() {
    with_every_engine(|store| {
        let total = 1000_u64;
        let change = |left: u64, expected: [Option<u64>; 2]| Transaction {
            expectations: vec![("left".into(), expected[0]), ("right".into(), expected[1])],
            writes: vec![
                ("left".into(), Some(left.to_be_bytes().to_vec())),
                ("right".into(), Some((total - left).to_be_bytes().to_vec())),
            ],
            events: vec![left.to_be_bytes().to_vec().into()],
            ..Transaction::default()
        };
        store.commit_and_wait(change(0, [None, None])).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for left in 1..=total {
                    let version = |key| store.read(key).unwrap().map(|record| record.version);
                    let expected = [version("left"), version("right")];
                    store.commit_and_wait(change(left, expected)).unwrap();
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                }
            });
            for _ in 0..10 {
                let (mut values, mut last) = (Vec::new(), None);
                for item in items(store) {
                    match item {
                        Item::Record(_, Record { value, .. }) => {
                            values.push(u64::from_be_bytes(value.try_into().unwrap()));
                        }
                        Item::Event(event) => last = Some(event),
                    }
                }
                let last = last.unwrap();
                assert_eq!(last.body, values[0].to_be_bytes(), "records and events differ in age");
                assert_eq!(last.sequence, values[0] + 1);
                assert_eq!(values[0] + values[1], total, "records differ in age");
            }
            stop.store(true, Ordering::SeqCst);
        });
    });
}

#[test]
fn many_writers_share_the_file_without_loss() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open(&path).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..50 {
                    store
                        .commit_and_wait(put(&format!("t/{thread}/{number}"), b"x", None))
                        .unwrap();
                }
            });
        }
    });
    drop(store);
    let store = SqliteStore::open(&path).unwrap();
    assert_eq!(store.scan("t/", "", 1000).unwrap().len(), 400);
    check_events(&store, 400);
}

#[test]
fn a_full_disk_fails_the_write_and_keeps_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let store = SqliteStore::open_limited(&path, Some(40)).unwrap();
    store.commit_and_wait(put("a", b"kept", None)).unwrap();
    assert_eq!(store.commit_and_wait(put("b", &vec![0; 400_000], None)), Err(StoreError::Full));
    assert_eq!(store.read("a").unwrap().unwrap().value, b"kept");
    assert_eq!(store.read("b").unwrap(), None);
    store.commit_and_wait(put("c", b"small again", None)).unwrap();
    assert_eq!(store.events(0, 10).unwrap().len(), 2);
}

#[test]
fn a_newer_or_foreign_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let newer = folder.path().join("newer.db");
    drop(SqliteStore::open(&newer).unwrap());
    rusqlite::Connection::open(&newer).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(SqliteStore::open(&newer), Err(StoreError::TooNew { found: 99, .. })));

    let other = folder.path().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE theirs (x)").unwrap();
    assert!(matches!(SqliteStore::open(&other), Err(StoreError::Foreign(_))));

    let text = folder.path().join("text.db");
    std::fs::write(&text, "x".repeat(5000)).unwrap();
    assert!(matches!(SqliteStore::open(&text), Err(StoreError::Foreign(_))));
    assert_eq!(std::fs::read(&text).unwrap(), "x".repeat(5000).as_bytes());
}

#[test]
fn a_store_of_schema_version_1_is_upgraded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.db");
    let old = rusqlite::Connection::open(&path).unwrap();
    // Statements of outlast 0.1.0.
    old.execute_batch(
        "CREATE TABLE record (key TEXT PRIMARY KEY, version INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID;
         CREATE TABLE event (sequence INTEGER PRIMARY KEY, body BLOB NOT NULL);
         CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
         INSERT INTO counter VALUES ('version', 0);
         PRAGMA application_id = 0x4f75746c;
         PRAGMA user_version = 1;
         INSERT INTO record VALUES ('a', 41, x'01');
         UPDATE counter SET value = 41;
         WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1200)
         INSERT INTO event (body) SELECT CAST('event ' || n AS BLOB) FROM n;",
    )
    .unwrap();
    drop(old);
    assert!(matches!(SqliteStore::open_read_only(&path), Err(StoreError::Unavailable(_))));
    for count in [1200, 1201] {
        let store = SqliteStore::open(&path).unwrap();
        check_events(&store, count);
        assert_eq!(store.events(1199, 1).unwrap()[0].body, b"event 1200");
        assert_eq!(store.read("a").unwrap().unwrap(), Record { version: 41, value: vec![1] });
        store.commit_and_wait(append("new")).unwrap();
    }
}

#[test]
fn a_look_at_a_store_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    assert!(SqliteStore::open_read_only(&path).is_err());
    assert!(!path.exists());
    for server_runs in [true, false] {
        let mut server = Some(SqliteStore::open(&path).unwrap());
        let before = server.as_ref().unwrap().last_event().unwrap();
        server.as_ref().unwrap().commit_and_wait(append("first")).unwrap();
        if !server_runs {
            server = None;
        }
        let look = SqliteStore::open_read_only(&path).unwrap();
        check_events(&look, before + 1);
        assert!(matches!(look.commit_and_wait(append("no")), Err(StoreError::Unavailable(_))));
        assert!(matches!(look.restore(&mut [].into_iter()), Err(StoreError::Unavailable(_))));
        if let Some(server) = &server {
            server.commit_and_wait(append("second")).unwrap();
            check_events(&look, before + 2);
        }
        assert!(!items(&look).is_empty());
    }
}

#[test]
fn a_folder_has_one_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let first = FolderLock::acquire(&path).unwrap();
    assert!(matches!(FolderLock::acquire(&path), Err(StoreError::InUse(_))));
    drop(first);
    FolderLock::acquire(&path).unwrap();
}

#[test]
fn what_is_stale_does_not_commit_and_is_forgotten() {
    let behind = Arc::new(MemoryStore::new());
    let store = CachedStore::new(behind.clone());
    assert_eq!(store.read("a").unwrap(), None);
    behind.commit_and_wait(put("a", b"1", None)).unwrap();
    let first = store.read("a").unwrap().unwrap();
    assert_eq!(first.value, b"1", "that it was absent is not remembered");
    behind.commit_and_wait(put("a", b"2", Some(first.version))).unwrap();
    assert_eq!(store.read("a").unwrap(), Some(first.clone()), "known from before");
    let relying = Transaction {
        expectations: vec![("a".into(), Some(first.version))],
        events: vec![b"event".to_vec().into()],
        ..Transaction::default()
    };
    assert_eq!(store.commit_and_wait(relying), Err(StoreError::Conflict));
    let second = store.read("a").unwrap().unwrap();
    assert_eq!(second.value, b"2");
    store.commit_and_wait(put("a", b"3", Some(second.version))).unwrap();
    assert_eq!(store.read("a").unwrap().unwrap().value, b"3", "its own writes are seen at once");
    behind.commit_and_wait(put("a", b"4", store.read("a").unwrap().map(|r| r.version))).unwrap();
    assert_eq!(store.read_fresh("a").unwrap().unwrap().value, b"4");
    assert_eq!(store.read("a").unwrap().unwrap().value, b"4");
    let gone = Transaction { writes: vec![("a".into(), None)], ..Transaction::default() };
    behind.commit_and_wait(gone).unwrap();
    assert_eq!(store.read_fresh("a").unwrap(), None);
    assert_eq!(store.read("a").unwrap(), None);
    let large = vec![7; 100_000];
    behind.commit_and_wait(put("b", &large, None)).unwrap();
    let version = store.read("b").unwrap().map(|record| record.version);
    behind.commit_and_wait(put("b", b"small", version)).unwrap();
    assert_eq!(store.read("b").unwrap().unwrap().value, b"small", "what is large is not kept");
}

#[test]
fn absence_is_remembered_until_a_commit_relies_on_it() {
    let behind = Arc::new(MemoryStore::new());
    let store = CachedStore::new(behind.clone()).remembering(|key| key.starts_with("often/"));
    for key in ["often/a", "often/b", "often/c", "seldom/a"] {
        assert_eq!(store.read(key).unwrap(), None);
        behind.commit_and_wait(put(key, b"1", None)).unwrap();
        assert_eq!(store.read(key).unwrap().is_none(), key.starts_with("often/"), "{key}");
    }
    let relying = Transaction {
        expectations: vec![("often/a".into(), None)],
        events: vec![b"event".to_vec().into()],
        ..Transaction::default()
    };
    assert_eq!(store.commit_and_wait(relying), Err(StoreError::Conflict));
    assert_eq!(store.read("often/a").unwrap().unwrap().value, b"1");
    assert_eq!(store.read_fresh("often/b").unwrap().unwrap().value, b"1");
    assert_eq!(store.read("often/b").unwrap().unwrap().value, b"1", "it was read anew");
    store
        .commit_and_wait(put(
            "often/c",
            b"2",
            store.read_fresh("often/c").unwrap().map(|r| r.version),
        ))
        .unwrap();
    assert_eq!(store.read("often/c").unwrap().unwrap().value, b"2");
    let gone = Transaction { writes: vec![("often/c".into(), None)], ..Transaction::default() };
    store.commit_and_wait(gone).unwrap();
    assert_eq!(store.read("often/c").unwrap(), None);
    store.commit_and_wait(put("often/c", b"3", None)).unwrap();
    assert_eq!(
        store.read("often/c").unwrap().unwrap().value,
        b"3",
        "its own writes are seen at once"
    );
}

/// Creates or deletes records without reading them, and names the prefix under which they are counted.
fn tallied(writes: &[(&str, bool)], prefix: &str, at_most: Option<u64>) -> Transaction {
    let write = |(key, made): &(&str, bool)| ((*key).to_owned(), made.then(|| b"x".to_vec()));
    Transaction {
        writes: writes.iter().map(write).collect(),
        tallies: vec![Tally { prefix: prefix.into(), at_most }],
        ..Transaction::default()
    }
}

#[test]
fn records_below_a_prefix_are_counted_and_limited() {
    with_every_engine(|store| {
        // Two records that nobody has counted, and a neighbour.
        for key in ["n/a/1", "n/a/2", "n/b/1"] {
            store.commit_and_wait(put(key, b"x", None)).unwrap();
        }
        let count = |prefix: &str| store.count(prefix).unwrap();
        assert_eq!((count("n/a/"), count("n/b/"), count("n/"), count("m/")), (2, 1, 3, 0));
        let try_it = |writes: &[(&str, bool)], at_most: Option<u64>| {
            store.commit_and_wait(tallied(writes, "n/a/", at_most))
        };
        try_it(&[("n/a/3", true), ("n/b/2", true)], Some(3)).unwrap();
        assert_eq!((count("n/a/"), count("n/b/")), (3, 2), "b is not named, and counted anew");
        // There is no room for another, alone or with others; nothing is written.
        assert_eq!(try_it(&[("n/a/4", true)], Some(3)), Err(StoreError::Conflict));
        assert_eq!(try_it(&[("n/b/3", true), ("n/a/4", true)], Some(3)), Err(StoreError::Conflict));
        assert_eq!((count("n/a/"), store.read("n/b/3").unwrap()), (3, None));
        // Writes that need no room, or free some, are allowed.
        try_it(&[("n/a/1", true)], Some(1)).unwrap();
        try_it(&[("n/a/1", false), ("n/a/4", true)], Some(1)).unwrap();
        try_it(&[("n/a/2", false), ("n/a/none", false)], Some(0)).unwrap();
        assert_eq!(count("n/a/"), 2);
        try_it(&[("n/a/5", true), ("n/a/6", true)], None).unwrap();
        assert_eq!(count("n/a/"), 4);
        // A conflict changes no count.
        let stale = Transaction {
            expectations: vec![("n/a/5".into(), None)],
            ..tallied(&[("n/a/7", true)], "n/a/", None)
        };
        assert_eq!(store.commit_and_wait(stale), Err(StoreError::Conflict));
        assert_eq!(count("n/a/"), 4);
        // Several at a time, some of which exceed the limit.
        let (sender, receiver) = std::sync::mpsc::channel();
        for number in 10..30 {
            let sender = sender.clone();
            let key = format!("n/a/{number}");
            let done = Box::new(move |outcome| sender.send(outcome).unwrap());
            store.commit(tallied(&[(&key, true)], "n/a/", Some(11)), done);
        }
        drop(sender);
        let made = receiver.iter().filter(Result::is_ok).count();
        assert_eq!((made, count("n/a/")), (7, 11));
        assert_eq!(store.scan("n/a/", "", 100).unwrap().len(), 11);
    });
}

#[test]
fn numbers_are_not_restored_but_counted_anew() {
    let source = MemoryStore::new();
    for key in ["n/1", "n/2"] {
        source.commit_and_wait(put(key, b"x", None)).unwrap();
    }
    let from = items(&source);
    with_every_engine(|store| {
        // Deletes existing records without naming their prefix.
        store.commit_and_wait(tallied(&[("n/9", true)], "n/", None)).unwrap();
        store
            .commit_and_wait(Transaction {
                writes: vec![("n/9".into(), None)],
                ..Transaction::default()
            })
            .unwrap();
        store.restore(&mut from.iter().cloned().map(Ok)).unwrap();
        assert_eq!(store.count("n/").unwrap(), 2);
        store.commit_and_wait(tallied(&[("n/3", true)], "n/", Some(3))).unwrap();
        assert_eq!(store.count("n/").unwrap(), 3);
    });
}

#[test]
fn no_two_processes_pass_a_limit_that_has_room_for_one() {
    let check = |open: &(dyn Fn() -> Box<dyn Store> + Sync)| {
        let made = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let made = &made;
                scope.spawn(move || {
                    let store = open();
                    for number in 0..50 {
                        let key = format!("n/{writer}/{number}");
                        match store.commit_and_wait(tallied(&[(&key, true)], "n/", Some(77))) {
                            Ok(()) => made.fetch_add(1, Ordering::SeqCst),
                            Err(error) => {
                                assert_eq!(error, StoreError::Conflict);
                                0
                            }
                        };
                    }
                });
            }
        });
        let store = open();
        let there = store.scan("n/", "", 1000).unwrap().len() as u64;
        assert_eq!((made.into_inner(), there, store.count("n/").unwrap()), (77, 77, 77));
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    drop(SqliteStore::open(&path).unwrap());
    check(&|| Box::new(SqliteStore::open(&path).unwrap()));
    if let Some(server) = Postgres::shared() {
        let url = server.new_database();
        drop(PostgresStore::open(&url).unwrap());
        check(&|| Box::new(PostgresStore::open(&url).unwrap()));
    }
}

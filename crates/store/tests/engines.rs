//! Every engine behaves alike; the durable one survives being closed, filled up and misused.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use outlast_store::faulty::FaultyStore;
use outlast_store::lock::FolderLock;
use outlast_store::memory::MemoryStore;
use outlast_store::sqlite::SqliteStore;
use outlast_store::{Store, StoreError, Transaction};

fn put(key: &str, value: &[u8], expected: Option<u64>) -> Transaction {
    Transaction {
        expectations: vec![(key.into(), expected)],
        writes: vec![(key.into(), Some(value.to_vec()))],
        events: vec![format!("put {key}").into_bytes()],
    }
}

fn with_every_engine(check: impl Fn(&dyn Store)) {
    check(&MemoryStore::new());
    check(&FaultyStore::new(MemoryStore::new()));
    let folder = tempfile::tempdir().unwrap();
    check(&SqliteStore::open(&folder.path().join("store.db")).unwrap());
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
    let events = store.events(0, 1000).unwrap();
    assert!(events.iter().map(|event| event.sequence).eq(1..=400), "the events have gaps");
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
fn a_folder_has_one_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    let first = FolderLock::acquire(&path).unwrap();
    assert!(matches!(FolderLock::acquire(&path), Err(StoreError::InUse(_))));
    drop(first);
    FolderLock::acquire(&path).unwrap();
}

//! A backup restores what was written, and refuses what was changed in any way.

use outlast_store::Transaction;
use outlast_store::memory::MemoryStore;

use super::*;
use crate::seal::SoftwareKek;
use crate::work::Work;

fn kek(byte: u8) -> SoftwareKek {
    SoftwareKek::from_passphrase(Secret::new(vec![byte; 32])).unwrap()
}

fn store(events: usize) -> (MemoryStore, RootKey) {
    let (store, root) = (MemoryStore::new(), RootKey::new(Box::new(kek(1))));
    let mut work = Work::new(&store, &root, 0);
    root.establish(&mut work, Map::new()).unwrap();
    work.put_secret("x/secret", &Secret::new(b"a secret".to_vec())).unwrap();
    store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
    for number in 0..events {
        let body = vec![b'e'; number * 97 % 4000];
        let writes = vec![(format!("r/{number:06}"), Some(vec![b'7'; number * 31 % 3000]))];
        let transaction =
            Transaction { writes, events: vec![body.into()], ..Transaction::default() };
        store.commit_and_wait(transaction).unwrap();
    }
    (store, root)
}

fn backup(store: &MemoryStore, root: &RootKey, include_root_keys: bool) -> Vec<u8> {
    let mut out = Vec::new();
    let new = NewBackup {
        created_ms: 1,
        created_by: "test".into(),
        kek: &kek(2),
        parameters: Map::new(),
        by_store: false,
        include_root_keys,
    };
    let counts = write(store, root, new, &mut out, &mut |_| {}).unwrap();
    assert_eq!(counts.root_keys, u64::from(include_root_keys));
    out
}

fn open(bytes: &[u8], byte: u8) -> Result<(MemoryStore, Restored), BackupError> {
    let mut input = bytes;
    let (header, head) = header(&mut input)?;
    let store = MemoryStore::new();
    let outcome = restore(&header, &head, &kek(byte), &mut input, &store, &mut |_| {});
    if outcome.is_err() {
        assert!(store.scan("", "", 1).unwrap().is_empty(), "something was restored");
        assert!(store.events(0, 1).unwrap().is_empty(), "an event was restored");
    }
    outcome.map(|restored| (store, restored))
}

fn items(store: &MemoryStore) -> Vec<Item> {
    let mut items = Vec::new();
    store
        .snapshot(&mut |item| {
            items.push(item);
            Ok(())
        })
        .unwrap();
    items
}

#[test]
fn what_is_written_comes_back() {
    for events in [0, 1, 300] {
        let (original, root) = store(events);
        let (copy, restored) = open(&backup(&original, &root, true), 2).unwrap();
        assert_eq!(items(&copy), items(&original));
        assert_eq!(restored.counts.events, events as u64);
        let [(record_key, key)] = restored.root_keys.as_slice() else { panic!("no root key") };
        assert!(record_key.starts_with(seal::WRAPPED) && key.len() == 32);
    }
}

#[test]
fn a_stream_may_end_with_a_full_chunk() {
    for length in [1, stream::CHUNK - 1, stream::CHUNK, stream::CHUNK + 1, 3 * stream::CHUNK] {
        let (mut out, key) = (Vec::new(), || Secret::new(vec![3; 32]));
        let mut writer = stream::Writer::new(&mut out, key(), b"head");
        writer.put(&Secret::new(vec![9; length])).unwrap();
        writer.finish().unwrap();
        let mut input = out.as_slice();
        let mut reader = stream::Reader::new(&mut input, key(), b"head").unwrap();
        assert_eq!(reader.take(length).unwrap().expose(), vec![9; length]);
        assert!(reader.is_at_end());
        assert!(reader.take(1).is_err());
    }
}

#[test]
fn whatever_was_changed_is_refused() {
    let (original, root) = store(120);
    let good = backup(&original, &root, false);
    let (_, head) = header(&mut good.as_slice()).unwrap();
    let sealed = stream::CHUNK + aead::OVERHEAD;
    assert!(good.len() > head.len() + 3 * sealed, "too small for this test");
    assert!(matches!(open(&good, 3), Err(BackupError::WrongKey)));
    for at in (0..good.len()).step_by(411).chain(0..head.len()) {
        let mut bad = good.clone();
        bad[at] ^= 1;
        assert!(open(&bad, 2).is_err(), "byte {at}");
    }
    let boundaries = (0..4).map(|chunk| head.len() + chunk * sealed);
    for at in boundaries.chain([0, 5, good.len() - 1, head.len() + 5]) {
        assert!(open(&good[..at], 2).is_err(), "cut at {at}");
    }
    let mut longer = good.clone();
    longer.push(0);
    assert!(open(&longer, 2).is_err(), "a byte more");
    let (first, second) = (head.len(), head.len() + sealed);
    let mut swapped = good.clone();
    swapped[first..second + sealed].rotate_left(sealed);
    assert!(open(&swapped, 2).is_err(), "two chunks swapped");
    let mut doubled = good.clone();
    doubled.splice(first..first, good[first..second].to_vec());
    assert!(open(&doubled, 2).is_err(), "a chunk twice");
    let mut missing = good.clone();
    missing.drain(first..second);
    assert!(open(&missing, 2).is_err(), "a chunk left out");
    let other = backup(&original, &root, false);
    let spliced = [&good[..second], &other[second..]].concat();
    assert!(open(&spliced, 2).is_err(), "two backups put together");
}

#[test]
fn foreign_and_newer_files_are_named() {
    assert!(matches!(open(b"SQLite format 3\0 and more of it", 2), Err(BackupError::Foreign)));
    assert!(matches!(open(b"", 2), Err(BackupError::Foreign)));
    let json = br#"{"version":9}"#;
    let newer = [MAGIC, &[0, 0, 0, json.len() as u8], json].concat();
    assert!(matches!(open(&newer, 2), Err(BackupError::TooNew(9))));
}

#[test]
fn a_disk_that_is_full_is_told_apart() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let (original, root) = store(120);
    let new = NewBackup {
        created_ms: 1,
        created_by: String::new(),
        kek: &kek(2),
        parameters: Map::new(),
        by_store: false,
        include_root_keys: false,
    };
    let outcome = write(&original, &root, new, &mut Full(100_000), &mut |_| {});
    let Err(BackupError::Io(error)) = outcome else { panic!("it was written") };
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

//! Layouts, wrong keys, and rotations.

use std::sync::Arc;

use outlast_store::faulty::FaultyStore;
use outlast_store::memory::MemoryStore;
use outlast_store::{Store, StoreError};

use super::rotation::{NewKek, begin, finish, reseal};
use super::*;
use crate::work::Work;

const PLACE: &str = "kms/material/1";

fn secret() -> Secret {
    Secret::new(b"a secret".to_vec())
}

fn kek(text: &str) -> Box<SoftwareKek> {
    Box::new(SoftwareKek::from_file(text).unwrap())
}

fn commit(store: &MemoryStore, work: Work<'_>) {
    store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
}

fn put(store: &MemoryStore, root: &RootKey, record_key: &str) {
    let mut work = Work::new(store, root, 0);
    work.put_secret(record_key, &secret()).unwrap();
    commit(store, work);
}

fn opens(store: &MemoryStore, root: &RootKey, record_key: &str) -> bool {
    let mut work = Work::new(store, root, 0);
    work.secret(record_key)
        .is_ok_and(|found| found.is_some_and(|found| found.expose() == b"a secret"))
}

fn value(store: &MemoryStore, record_key: &str) -> Vec<u8> {
    store.read(record_key).unwrap().unwrap().value
}

/// A store of the first layout, or of this one, and the text of its root key file.
fn store(established: bool) -> (MemoryStore, RootKey, String) {
    let software = SoftwareKek::generate().unwrap();
    let text = String::from_utf8(software.to_file().expose().to_vec()).unwrap();
    let (store, root) = (MemoryStore::new(), RootKey::new(Box::new(software)));
    if established {
        let mut work = Work::new(&store, &root, 7);
        root.establish(&mut work, Map::new()).unwrap();
        commit(&store, work);
    }
    put(&store, &root, PLACE);
    (store, root, text)
}

fn rotate(store: &MemoryStore, root: &RootKey) -> usize {
    let mut work = Work::new(store, root, 8);
    begin(&mut work).unwrap();
    commit(store, work);
    finish_rotation(store, root)
}

fn finish_rotation(store: &MemoryStore, root: &RootKey) -> usize {
    let (mut after, mut resealed) = (Some(String::new()), 0);
    while let Some(from) = after {
        let mut work = Work::new(store, root, 9);
        let step = reseal(&mut work, &from, 2).unwrap();
        assert!(step.unreadable.is_empty(), "{:?}", step.unreadable);
        resealed += step.resealed;
        after = step.next;
        commit(store, work);
    }
    let mut work = Work::new(store, root, 10);
    finish(&mut work, None).unwrap();
    commit(store, work);
    resealed
}

#[test]
fn what_is_sealed_names_its_key_and_record_key() {
    let (store, root, text) = store(true);
    let sealed = value(&store, PLACE);
    let record = read_record(&store).unwrap().unwrap();
    assert_eq!(sealed_under(PLACE, &sealed), Some(SealedUnder::Id(record.current.clone())));
    assert_eq!(sealed.len(), 9 + 8 + aead::OVERHEAD);
    assert!(opens(&store, &root, PLACE));
    // Another process with the same file has not unwrapped anything yet.
    assert!(opens(&store, &RootKey::new(kek(&text)), PLACE));
    assert!(!opens(&store, &RootKey::generate().unwrap(), PLACE), "another key opens it");
    assert!(root.open(&store, "kms/material/2", &sealed).is_err(), "it opens elsewhere");
    for at in 0..sealed.len() {
        let mut bad = sealed.clone();
        bad[at] ^= 1;
        assert!(root.open(&store, PLACE, &bad).is_err(), "byte {at}");
        assert!(root.open(&store, PLACE, &sealed[..at]).is_err(), "cut at {at}");
    }
    assert_eq!(sealed_under(PLACE, b"{}"), None);
    let wrapped = format!("{WRAPPED}{}", record.current);
    assert_eq!(sealed_under(&wrapped, &value(&store, &wrapped)), None);
}

#[test]
fn the_first_layout_still_works_and_its_rotation_moves_it() {
    let (store, root, text) = store(false);
    assert_eq!(sealed_under(PLACE, &value(&store, PLACE)), Some(SealedUnder::Direct));
    assert!(opens(&store, &root, PLACE));
    assert!(!opens(&store, &RootKey::generate().unwrap(), PLACE));
    let server = RootKey::new(kek(&text));
    assert!(opens(&store, &server, PLACE));
    assert_eq!(rotate(&store, &root), 1);
    assert!(matches!(sealed_under(PLACE, &value(&store, PLACE)), Some(SealedUnder::Id(_))));
    for key in [&root, &server, &RootKey::new(kek(&text))] {
        assert!(opens(&store, key, PLACE));
    }
    put(&store, &server, "kms/material/2");
    assert!(opens(&store, &root, "kms/material/2"));
}

#[test]
fn a_rotation_leaves_nothing_under_the_key_before() {
    let (store, root, text) = store(true);
    for number in 0..7 {
        put(&store, &root, &format!("x/{number}"));
    }
    let before = read_record(&store).unwrap().unwrap();
    let old = value(&store, PLACE);
    assert_eq!(rotate(&store, &root), 8);
    let after = read_record(&store).unwrap().unwrap();
    assert_ne!(after.current, before.current);
    assert_eq!(after.previous, None);
    assert_eq!(store.scan(WRAPPED, "", 10).unwrap().len(), 1);
    assert!(opens(&store, &RootKey::new(kek(&text)), "x/3"));
    assert!(RootKey::new(kek(&text)).open(&store, PLACE, &old).is_err(), "the old key is there");
    // A process that had it unwrapped drops it at the next sealing.
    put(&store, &root, "x/8");
    assert!(root.open(&store, PLACE, &old).is_err(), "the old key is in memory");
}

#[test]
fn nothing_can_be_committed_under_the_key_before() {
    for established in [false, true] {
        let (store, root, text) = store(established);
        let server = RootKey::new(kek(&text));
        let mut late = Work::new(&store, &server, 0);
        late.put_secret("x/late", &secret()).unwrap();
        let mut work = Work::new(&store, &root, 8);
        begin(&mut work).unwrap();
        commit(&store, work);
        let outcome = store.commit_and_wait(late.into_transaction(Vec::new()));
        assert_eq!(outcome, Err(StoreError::Conflict));
        // In between both keys open records, in every process.
        assert!(opens(&store, &server, PLACE));
        put(&store, &server, "x/late");
        assert!(opens(&store, &RootKey::new(kek(&text)), PLACE));
        let mut again = Work::new(&store, &root, 8);
        assert!(begin(&mut again).is_err(), "a second rotation began");
        assert_eq!(finish_rotation(&store, &RootKey::new(kek(&text))), 1);
        assert!(opens(&store, &server, PLACE) && opens(&store, &server, "x/late"));
    }
}

#[test]
fn another_provider_takes_over_at_the_end_and_alone() {
    for established in [false, true] {
        let (store, root, text) = store(established);
        let derived = || SoftwareKek::from_passphrase(Secret::new(vec![5; 32])).unwrap();
        let (new, salt) = (derived(), Value::from("00"));
        let new = NewKek { kek: &new, parameters: Map::from_iter([("salt".into(), salt)]) };
        let mut work = Work::new(&store, &root, 8);
        begin(&mut work).unwrap();
        commit(&store, work);
        // The process that began the rotation died. Until the end only the previous provider opens everything.
        let again = || RootKey::new(kek(&text));
        let mut after = Some(String::new());
        while let Some(from) = after {
            assert!(opens(&store, &again(), PLACE));
            assert!(!opens(&store, &RootKey::new(Box::new(derived())), PLACE));
            let other = again();
            let mut work = Work::new(&store, &other, 9);
            after = reseal(&mut work, &from, 1).unwrap().next;
            commit(&store, work);
        }
        assert_eq!(read_record(&store).unwrap().unwrap().provider, "file");
        let other = again();
        let mut work = Work::new(&store, &other, 10);
        finish(&mut work, Some(&new)).unwrap();
        commit(&store, work);
        let record = read_record(&store).unwrap().unwrap();
        assert_eq!((record.provider.as_str(), record.parameters.len()), ("passphrase", 1));
        assert!(opens(&store, &RootKey::new(Box::new(derived())), PLACE));
        assert!(!opens(&store, &again(), PLACE), "the file opens it still");
    }
}

#[test]
fn what_does_not_open_is_reported_and_left_alone() {
    let (store, root, _) = store(true);
    for record_key in ["x/1", "x/2"] {
        put(&store, &root, record_key);
    }
    let spoil = |record_key: &str, at: usize| {
        let mut bad = value(&store, record_key);
        bad[at] ^= 4;
        let transaction = outlast_store::Transaction {
            writes: vec![(record_key.into(), Some(bad.clone()))],
            ..outlast_store::Transaction::default()
        };
        store.commit_and_wait(transaction).unwrap();
        bad
    };
    let (first, last) = (spoil("x/1", 0), spoil("x/2", 40));
    let mut work = Work::new(&store, &root, 8);
    begin(&mut work).unwrap();
    commit(&store, work);
    let mut work = Work::new(&store, &root, 9);
    let step = reseal(&mut work, "", 100).unwrap();
    assert_eq!((step.resealed, step.unreadable), (1, vec!["x/1".to_owned(), "x/2".to_owned()]));
    commit(&store, work);
    assert_eq!((value(&store, "x/1"), value(&store, "x/2")), (first, last));
}

fn text(store: &MemoryStore, root: &RootKey, record_key: &str) -> Result<Option<String>, Fault> {
    Work::new(store, root, 0).get(record_key)
}

fn put_text(store: &MemoryStore, root: &RootKey, record_key: &str, said: &str) {
    let mut work = Work::new(store, root, 5);
    work.put(record_key, &said).unwrap();
    commit(store, work);
}

fn overwrite(store: &MemoryStore, record_key: &str, value: &[u8]) {
    let writes = vec![(record_key.to_owned(), Some(value.to_vec()))];
    let transaction = outlast_store::Transaction { writes, ..Default::default() };
    store.commit_and_wait(transaction).unwrap();
}

#[test]
fn a_record_verifies_in_its_place_and_store_alone() {
    for established in [false, true] {
        let (store, root, key) = store(established);
        put_text(&store, &root, "a/1", "one");
        put_text(&store, &root, "a/2", "two");
        let good = value(&store, "a/1");
        let again = || RootKey::new(kek(&key));
        assert_eq!(text(&store, &again(), "a/1"), Ok(Some("one".into())));
        let forged = Err(Fault::Forged("a/1".into()));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            overwrite(&store, "a/1", &bad);
            assert_eq!(text(&store, &again(), "a/1"), forged, "byte {at}");
            overwrite(&store, "a/1", &good[..at]);
            assert_eq!(text(&store, &again(), "a/1"), forged, "cut at {at}");
        }
        overwrite(&store, "a/1", &value(&store, "a/2"));
        assert_eq!(text(&store, &again(), "a/1"), forged, "moved");
        overwrite(&store, "a/1", br#""one""#);
        assert_eq!(text(&store, &again(), "a/1"), forged, "plain");
        let (other, other_root, _) = self::store(established);
        put_text(&other, &other_root, "a/1", "one");
        overwrite(&store, "a/1", &value(&other, "a/1"));
        assert_eq!(text(&store, &again(), "a/1"), forged, "of another store");
        overwrite(&store, "a/1", &good);
        assert_eq!(text(&store, &again(), "a/1"), Ok(Some("one".into())));
    }
}

#[test]
fn rollback_is_told_from_concurrent_change() {
    let (store, root, key) = store(true);
    let other = RootKey::new(kek(&key));
    put_text(&store, &root, "a", "one");
    let first = value(&store, "a");
    assert_eq!(text(&store, &other, "a"), Ok(Some("one".into())));
    put_text(&store, &root, "a", "two");
    assert!(layout::stamp(&value(&store, "a")) > layout::stamp(&first));
    assert_eq!(text(&store, &other, "a"), Ok(Some("two".into())));
    overwrite(&store, "a", &first);
    assert_eq!(text(&store, &other, "a"), Err(Fault::Forged("a".into())));
    // Deleted and created again: greater than before, although the clock stands still.
    let (store, root, _) = self::store(true);
    put_text(&store, &root, "a", "one");
    let first = value(&store, "a");
    let mut work = Work::new(&store, &root, 5);
    work.delete("a");
    commit(&store, work);
    put_text(&store, &root, "a", "two");
    assert!(layout::stamp(&value(&store, "a")) > layout::stamp(&first));
}

#[test]
fn a_rotation_authenticates_all_records_again() {
    for established in [false, true] {
        let (store, root, key) = store(established);
        for number in 0..5 {
            put_text(&store, &root, &format!("a/{number}"), "said");
        }
        let before = value(&store, "a/3");
        assert_eq!(rotate(&store, &root), 6);
        let after = value(&store, "a/3");
        assert_ne!(after, before);
        assert_eq!(layout::stamp(&after), layout::stamp(&before), "it is the same record");
        let current = read_record(&store).unwrap().unwrap().current;
        for record_key in ["a/0", "a/3", ROOT] {
            let under = protected_under(record_key, &value(&store, record_key));
            assert_eq!(under, Some(SealedUnder::Id(current.clone())), "{record_key}");
        }
        let later = RootKey::new(kek(&key));
        assert_eq!(text(&store, &later, "a/3"), Ok(Some("said".into())));
        // What was authentic under the previous key no longer is, even for a process that still has the key.
        overwrite(&store, "a/3", &before);
        assert_eq!(text(&store, &later, "a/3"), Err(Fault::Forged("a/3".into())));
    }
}

/// A rotation reports a forged record, and does not authenticate it.
#[test]
fn a_rotation_makes_nothing_authentic_that_was_not() {
    let (store, root, key) = store(true);
    for record_key in ["a/1", "a/2"] {
        put_text(&store, &root, record_key, "said");
    }
    overwrite(&store, "a/1", br#""plain""#);
    let mut bad = value(&store, "a/2");
    let last = bad.len() - 2;
    bad[last] ^= 1;
    overwrite(&store, "a/2", &bad);
    let mut work = Work::new(&store, &root, 8);
    begin(&mut work).unwrap();
    commit(&store, work);
    let root = RootKey::new(kek(&key));
    let mut work = Work::new(&store, &root, 9);
    let step = reseal(&mut work, "", 100).unwrap();
    assert_eq!((step.resealed, step.unreadable), (1, vec!["a/1".to_owned(), "a/2".to_owned()]));
    commit(&store, work);
    assert_eq!(value(&store, "a/2"), bad);
}

#[test]
fn plain_records_are_taken_over_in_steps() {
    for established in [false, true] {
        let (store, root, key) = store(established);
        put_text(&store, &root, "done", "done");
        let mut work = Work::new(&store, &root, 5);
        work.put_secret(CANARY, &Secret::new(b"canary".to_vec())).unwrap();
        commit(&store, work);
        let plain = json(&value(&store, "done")).to_vec();
        for number in 0..5 {
            overwrite(&store, &format!("a/{number}"), br#""said""#);
        }
        overwrite(&store, "b", b"no JSON");
        if established {
            let said = json(&value(&store, ROOT)).to_vec();
            overwrite(&store, ROOT, &said);
        }
        let wrapped = store.scan(WRAPPED, "", 10).unwrap();
        let state = |root: &RootKey| migration::state(&mut Work::new(&store, root, 0)).unwrap();
        assert_eq!(
            state(&root),
            Some(migration::State { has_log: false, is_authenticated: false })
        );
        let (mut after, mut unreadable) = (Some(String::new()), Vec::new());
        while let Some(from) = after {
            // Each step in another process.
            let root = RootKey::new(kek(&key));
            let mut work = Work::new(&store, &root, 60);
            let step = migration::step(&mut work, &from, 2).unwrap();
            commit(&store, work);
            unreadable.extend(step.unreadable);
            after = step.next;
        }
        assert_eq!(unreadable, ["b"]);
        let mut work = Work::new(&store, &root, 7);
        let done = migration::State { has_log: false, is_authenticated: true };
        migration::set_state(&mut work, done).unwrap();
        commit(&store, work);
        let root = RootKey::new(kek(&key));
        assert_eq!(state(&root), Some(done));
        for record_key in ["a/0", "a/4"] {
            assert_eq!(text(&store, &root, record_key), Ok(Some("said".into())));
        }
        assert_eq!(json(&value(&store, "done")), plain);
        assert_eq!(text(&store, &root, "done"), Ok(Some("done".into())));
        assert_eq!(store.scan(WRAPPED, "", 10).unwrap(), wrapped);
        assert!(opens(&store, &root, PLACE));
    }
}

#[test]
fn records_that_change_while_they_are_scanned_are_no_forgeries() {
    const KEY: &str = "kms/alias/123456789012/us-east-1/alias/a";
    fn write(store: &MemoryStore, root: &RootKey, number: u32) {
        let mut work = Work::new(store, root, 8);
        work.put(KEY, &number).unwrap();
        let transaction = work.into_transaction(Vec::new());
        let written = root.stamps().writing(&transaction.writes);
        store.commit_and_wait(transaction).unwrap();
        root.stamps().wrote(&written);
    }
    let (inner, root, _) = store(true);
    write(&inner, &root, 0);
    let (store, root) = (FaultyStore::new(inner), Arc::new(root));
    let (writer, mut number) = (root.clone(), 0);
    // The scan's own result is as old as the first of these writes.
    let old = store.scan(KEY, "", 1).unwrap();
    store.after_reads(Some(Box::new(move |store, read| {
        if read == KEY && number < 3 {
            number += 1;
            write(store, &writer, number);
        }
    })));
    assert!(store.read(KEY).unwrap().is_some());
    let (key, record) = old.into_iter().next().unwrap();
    assert_eq!(Work::new(&store, &root, 9).scanned::<u32>(&key, record.clone()), Ok(3));
    // One that was put back is refused as before.
    let put_back = outlast_store::Transaction {
        writes: vec![(key.clone(), Some(record.value.clone()))],
        ..Default::default()
    };
    store.commit_and_wait(put_back).unwrap();
    let (key, record) = store.scan(KEY, "", 1).unwrap().into_iter().next().unwrap();
    let found = Work::new(&store, &root, 9).scanned::<u32>(&key, record);
    assert_eq!(found, Err(Fault::Forged(key)));
}

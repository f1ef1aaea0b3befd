//! Layouts, wrong keys, and rotations.

use outlast_store::memory::MemoryStore;
use outlast_store::{Store, StoreError};

use super::rotation::{NewKek, begin, finish, reseal};
use super::*;

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

fn put(store: &MemoryStore, root: &RootKey, place: &str) {
    let mut work = Work::new(store, root, 0);
    work.put_secret(place, &secret()).unwrap();
    commit(store, work);
}

fn opens(store: &MemoryStore, root: &RootKey, place: &str) -> bool {
    let mut work = Work::new(store, root, 0);
    work.secret(place).is_ok_and(|found| found.is_some_and(|found| found.expose() == b"a secret"))
}

fn value(store: &MemoryStore, place: &str) -> Vec<u8> {
    store.read(place).unwrap().unwrap().value
}

/// A store of the first layout or of this one, and the text of its root key file.
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
    begin(&mut work, None).unwrap();
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
    finish(&mut work).unwrap();
    commit(store, work);
    resealed
}

#[test]
fn what_is_sealed_names_its_key_and_place() {
    let (store, root, text) = store(true);
    let sealed = value(&store, PLACE);
    let record = read_record(&store).unwrap().unwrap();
    assert_eq!(sealed_under(PLACE, &sealed), Some(SealedUnder::Id(record.current.clone())));
    assert_eq!(sealed.len(), 9 + 8 + aead::OVERHEAD);
    assert!(opens(&store, &root, PLACE));
    // Another process with the same file has nothing unwrapped yet.
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
    // Who had it unwrapped forgets it with the next sealing.
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
        begin(&mut work, None).unwrap();
        commit(&store, work);
        let outcome = store.commit_and_wait(late.into_transaction(Vec::new()));
        assert_eq!(outcome, Err(StoreError::Conflict));
        // In between both keys open, for every process.
        assert!(opens(&store, &server, PLACE));
        put(&store, &server, "x/late");
        assert!(opens(&store, &RootKey::new(kek(&text)), PLACE));
        let mut again = Work::new(&store, &root, 8);
        assert!(begin(&mut again, None).is_err(), "a second rotation began");
        assert_eq!(finish_rotation(&store, &RootKey::new(kek(&text))), 1);
        assert!(opens(&store, &server, PLACE) && opens(&store, &server, "x/late"));
    }
}

#[test]
fn a_rotation_to_another_provider_needs_only_the_new_key_afterwards() {
    for established in [false, true] {
        let (store, root, text) = store(established);
        let derived = || SoftwareKek::from_passphrase(Secret::new(vec![5; 32])).unwrap();
        let new = derived();
        let mut parameters = Map::new();
        parameters.insert("salt".into(), "00".into());
        let mut work = Work::new(&store, &root, 8);
        begin(&mut work, Some(&NewKek { kek: &new, parameters })).unwrap();
        commit(&store, work);
        // The process that began it died: another one with the new key goes on.
        let other = RootKey::new(Box::new(derived()));
        assert!(opens(&store, &other, PLACE));
        assert_eq!(finish_rotation(&store, &other), 1);
        let record = read_record(&store).unwrap().unwrap();
        assert_eq!((record.provider.as_str(), record.parameters.len()), ("passphrase", 1));
        assert!(opens(&store, &RootKey::new(Box::new(derived())), PLACE));
        assert!(!opens(&store, &RootKey::new(kek(&text)), PLACE), "the file opens it still");
    }
}

#[test]
fn what_does_not_open_is_reported_and_left_alone() {
    let (store, root, _) = store(true);
    for place in ["x/1", "x/2"] {
        put(&store, &root, place);
    }
    let spoil = |place: &str, at: usize| {
        let mut bad = value(&store, place);
        bad[at] ^= 4;
        let transaction = outlast_store::Transaction {
            writes: vec![(place.into(), Some(bad.clone()))],
            ..outlast_store::Transaction::default()
        };
        store.commit_and_wait(transaction).unwrap();
        bad
    };
    let (first, last) = (spoil("x/1", 0), spoil("x/2", 40));
    let mut work = Work::new(&store, &root, 8);
    begin(&mut work, None).unwrap();
    commit(&store, work);
    let mut work = Work::new(&store, &root, 9);
    let step = reseal(&mut work, "", 100).unwrap();
    assert_eq!((step.resealed, step.unreadable), (1, vec!["x/1".to_owned(), "x/2".to_owned()]));
    commit(&store, work);
    assert_eq!((value(&store, "x/1"), value(&store, "x/2")), (first, last));
}

//! Chains of earlier builds: which are adopted, and which are refused.

use outlast_store::memory::MemoryStore;
use outlast_store::{Store, Transaction};
use serde_json::json;

use super::*;
use crate::audit::{check_start, prove, signed_head};
use crate::seal::RootKey;

const EVENTS: u64 = 600;

struct Old {
    store: MemoryStore,
    root: RootKey,
}

impl Old {
    /// A store with a chain that was signed at events 300 and 550.
    fn new() -> Self {
        let (store, root) = (MemoryStore::new(), RootKey::generate().unwrap());
        let old = Self { store, root };
        let mut work = old.work();
        old.root.establish(&mut work, serde_json::Map::new()).unwrap();
        old.store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
        let mut link = chain::START;
        let spec = KeySpec::by_name("ML_DSA_65").unwrap();
        let seed = spec.generate().unwrap();
        let key = spec.load(&seed).unwrap();
        let spki = key.public_key().unwrap().to_vec();
        let id = hex::encode(&digests::sha256(&spki)[..16]);
        for number in 1..=EVENTS {
            let body = format!("{{\"number\":{number}}}").into_bytes();
            link = chain::next(&link, number, &body);
            if number == 300 || number == 550 {
                let mut checkpoint = Checkpoint {
                    sequence: number,
                    chain: hex::encode(link),
                    at_ms: 1,
                    key_id: id.clone(),
                    signature: String::new(),
                };
                let message = statement(&checkpoint);
                let signature = key.sign(&ML_DSA_65, Message::Raw(&message)).unwrap();
                checkpoint.signature = hex::encode(signature);
                old.put(&format!("{CHECKPOINTS}{number:020}"), &checkpoint);
            }
            let events = vec![body.into()];
            old.store.commit_and_wait(Transaction { events, ..Transaction::default() }).unwrap();
        }
        let mut work = old.work();
        work.put(CURRENT_KEY, &id).unwrap();
        work.put_secret(&format!("{KEYS}{id}"), &seed).unwrap();
        let last = json!({ "sequence": 550, "at_ms": 1 }).to_string().into_bytes();
        work.put_secret(LAST, &Secret::new(last)).unwrap();
        old.store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
        old
    }

    fn work(&self) -> Work<'_> {
        Work::new(&self.store, &self.root, 1_000)
    }

    fn adopt(&self) -> Result<Adopted, Fault> {
        let mut work = self.work();
        assert!(is_old(&mut work)?);
        let found = adopt(&mut work, "log.example/old", &mut |_| {})?;
        let event = json!({ "eventName": "AdoptAuditChain", "chain": found.chain });
        let transaction = work.into_transaction(vec![event.to_string().into_bytes()]);
        self.store.commit_and_wait(transaction)?;
        Ok(found)
    }

    /// Writes a record as if it was authenticated before the adoption.
    fn put(&self, key: &str, checkpoint: &Checkpoint) {
        let mut work = self.work();
        work.put(key, checkpoint).unwrap();
        self.store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
    }

    fn write(&self, key: &str, value: Option<Vec<u8>>) {
        let writes = vec![(key.to_owned(), value)];
        self.store.commit_and_wait(Transaction { writes, ..Transaction::default() }).unwrap();
    }
}

#[test]
fn an_old_chain_becomes_the_first_entries() {
    let old = Old::new();
    let found = old.adopt().unwrap();
    assert_eq!((found.events, found.checkpoints), (EVENTS, 2));
    assert_eq!(found.last.unwrap().0.sequence, 550);
    let mut work = old.work();
    assert!(!is_old(&mut work).unwrap());
    let head = check_start(&mut work).unwrap();
    assert_eq!(head.size, EVENTS);
    let key = LogKey::read(&mut work).unwrap();
    let signed = signed_head(&mut work, &key).unwrap();
    for index in [0, 255, 256, EVENTS - 1] {
        prove::prove(&mut work, &signed, index).unwrap();
    }
    // The log has the contents of the old signatures; they are deleted, and the last event binds the chain.
    assert!(old.store.scan(CHECKPOINTS, "", 10).unwrap().is_empty());
    assert!(old.store.scan(KEYS, "", 10).unwrap().is_empty());
    let last = old.store.events(EVENTS, 1).unwrap().remove(0);
    assert!(String::from_utf8(last.body).unwrap().contains(&found.chain));
}

#[test]
fn a_chain_that_was_changed_is_not_adopted() {
    let checkpoint = |number: u64| format!("{CHECKPOINTS}{number:020}");
    let changed = |old: &Old, number: u64, change: fn(&mut Checkpoint)| {
        let record_key = checkpoint(number);
        let stored = old.store.read(&record_key).unwrap().unwrap();
        let mut found: Checkpoint =
            serde_json::from_slice(crate::seal::json(&stored.value)).unwrap();
        change(&mut found);
        old.put(&record_key, &found);
    };
    type Attack<'a> = (&'static str, &'a dyn Fn(&Old));
    let attacks: [Attack<'_>; 7] = [
        ("the record of the last one taken away", &|old| old.write(LAST, None)),
        ("the last checkpoint taken away", &|old| old.write(&checkpoint(550), None)),
        ("another link", &|old| changed(old, 300, |found| found.chain = "00".repeat(32))),
        ("another signature", &|old| {
            changed(old, 550, |found| found.signature = "00".repeat(3309));
        }),
        ("another key", &|old| changed(old, 550, |found| found.key_id = "00".repeat(16))),
        ("the record of the last one changed", &|old| old.write(LAST, Some(b"{}".to_vec()))),
        ("events taken away", &|old| {
            let prune_events = Some(10);
            old.store
                .commit_and_wait(Transaction { prune_events, ..Transaction::default() })
                .unwrap();
        }),
    ];
    for (name, attack) in attacks {
        let old = Old::new();
        attack(&old);
        let found = old.adopt();
        assert!(matches!(found, Err(Fault::Audit(_))), "{name}: {found:?}");
    }
}

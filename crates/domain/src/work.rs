//! A unit of work: everything one operation reads and writes, committed as a whole.
//!
//! Each record that was read must still have the same version at commit, so that operations behave as if
//! they ran one after the other. A conflict means: run the operation again.

use std::collections::BTreeMap;

use outlast_crypto::Secret;
use outlast_store::{NewEvent, Store, Transaction};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::Fault;
use crate::arn::Scope;
use crate::seal::{self, RootKey, RootRecord};

/// One page of a list.
#[derive(Debug)]
pub struct Page<T> {
    /// The items, in order of their keys.
    pub items: Vec<T>,
    /// Where the next page begins, if there is one: the last key, without the prefix.
    pub next: Option<String>,
}

/// Something that is looked for in the whole store from time to time, and dealt with where it is found.
#[derive(Clone, Copy)]
pub struct Sweep {
    /// Finds what is due among up to so many records after a key. Nothing it reads counts as read.
    pub find: fn(&Work<'_>, &str, usize) -> Result<Due, Fault>,
    /// Deals with one of those, if it is still due, and notes what it did.
    pub handle: fn(&mut Work<'_>, &str, &mut Swept) -> Result<(), Fault>,
}

/// What a step of a sweep has found.
#[derive(Debug)]
pub struct Due {
    /// The keys of the records that are due.
    pub places: Vec<String>,
    /// The keys of the records that cannot be read.
    pub damaged: Vec<String>,
    /// Where to go on, if there is more.
    pub next: Option<String>,
}

/// What a sweep did where something was due.
#[derive(Debug, Default)]
pub struct Swept {
    /// What was done by itself, for the record.
    pub done: Vec<Done>,
    /// Materials that are gone once this is committed. Until then a call could load them again.
    pub erased: Vec<String>,
}

/// Something that a sweep did.
#[derive(Debug)]
pub struct Done {
    /// Where the resource lives or lived.
    pub scope: Scope,
    /// Its ARN.
    pub arn: String,
    /// CloudTrail's name of the event, such as `DeleteKey`.
    pub event: &'static str,
}

impl Swept {
    /// Notes what was done.
    pub fn done(&mut self, scope: &Scope, arn: String, event: &'static str) {
        self.done.push(Done { scope: scope.clone(), arn, event });
    }
}

/// One operation's view of the store.
pub struct Work<'a> {
    store: &'a dyn Store,
    root: &'a RootKey,
    now_ms: i64,
    reads: BTreeMap<String, Option<u64>>,
    writes: BTreeMap<String, Option<Vec<u8>>>,
    prune_events: Option<u64>,
}

impl<'a> Work<'a> {
    /// Begins at the time `now_ms`, milliseconds since 1970.
    pub fn new(store: &'a dyn Store, root: &'a RootKey, now_ms: i64) -> Self {
        Self {
            store,
            root,
            now_ms,
            reads: BTreeMap::new(),
            writes: BTreeMap::new(),
            prune_events: None,
        }
    }

    /// The time of the operation, milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// The time of the operation, seconds since 1970.
    pub fn now(&self) -> i64 {
        self.now_ms.div_euclid(1000)
    }

    /// The record under `key`, as written earlier in this work or as stored.
    pub fn get<T: DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>, Fault> {
        match self.bytes(key)? {
            None => Ok(None),
            Some(bytes) => decode(key, &bytes).map(Some),
        }
    }

    /// Whether there is a record under `key`.
    pub fn exists(&mut self, key: &str) -> Result<bool, Fault> {
        Ok(self.bytes(key)?.is_some())
    }

    /// Writes a record.
    pub fn put<T: Serialize>(&mut self, key: &str, value: &T) -> Result<(), Fault> {
        let bytes =
            serde_json::to_vec(value).map_err(|error| Fault::Encoding(error.to_string()))?;
        self.writes.insert(key.to_owned(), Some(bytes));
        Ok(())
    }

    /// Deletes the events up to this sequence, except the last.
    pub(crate) fn prune_events(&mut self, upto: u64) {
        self.prune_events = Some(upto);
    }

    /// Deletes a record.
    pub fn delete(&mut self, key: &str) {
        self.writes.insert(key.to_owned(), None);
    }

    /// Up to `limit` stored records below `prefix` after `after`. Takes no part in conflict detection.
    pub fn scan<T: DeserializeOwned>(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, T)>, Fault> {
        self.store
            .scan(prefix, after, limit)?
            .into_iter()
            .map(|(key, record)| {
                let value = decode(&key, &record.value)?;
                Ok((key, value))
            })
            .collect()
    }

    /// Those of up to `limit` stored records below `prefix` after `after` that are due at this time. One that
    /// cannot be read hides no other.
    pub(crate) fn due<T: DeserializeOwned>(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
        is_due: fn(&T, i64) -> bool,
    ) -> Result<Due, Fault> {
        let found = self.store.scan(prefix, after, limit)?;
        let last = found.last().filter(|_| found.len() == limit);
        let mut due =
            Due { places: Vec::new(), damaged: Vec::new(), next: last.map(|(key, _)| key.clone()) };
        for (key, record) in found {
            match serde_json::from_slice(&record.value) {
                Ok(value) if is_due(&value, self.now_ms) => due.places.push(key),
                Ok(_) => {}
                Err(_) => due.damaged.push(key),
            }
        }
        Ok(due)
    }

    /// A page of up to `limit` stored records below `prefix`, after the `next` of the page before. Takes no
    /// part in conflict detection.
    pub fn page<T: DeserializeOwned>(
        &self,
        prefix: &str,
        marker: Option<&str>,
        limit: usize,
    ) -> Result<Page<T>, Fault> {
        let after = marker.map(|last| format!("{prefix}{last}")).unwrap_or_default();
        let mut found = self.scan(prefix, &after, limit + 1)?;
        let more = found.len() > limit;
        found.truncate(limit);
        let last = found.last().and_then(|(key, _)| key.strip_prefix(prefix)).map(str::to_owned);
        let items = found.into_iter().map(|(_, item)| item).collect();
        Ok(Page { items, next: last.filter(|_| more) })
    }

    /// Writes a secret, sealed for its place under the current root key. Which one that is counts as read:
    /// after a rotation has begun, nothing can be committed that is sealed under the key before.
    pub fn put_secret(&mut self, key: &str, secret: &Secret) -> Result<(), Fault> {
        let record = self.get::<RootRecord>(seal::ROOT)?;
        let sealed = self.root.seal(self.store, record.as_ref(), key, secret)?;
        self.put_bytes(key, sealed);
        Ok(())
    }

    /// Reads a secret.
    pub fn secret(&mut self, key: &str) -> Result<Option<Secret>, Fault> {
        let Some(sealed) = self.bytes(key)? else { return Ok(None) };
        let opened = self.root.open(self.store, key, &sealed);
        if opened.is_err() {
            // Its root key may have been replaced and removed since it was read: then it has changed, too.
            let version = self.store.read_fresh(key)?.map(|record| record.version);
            if self.reads.get(key).is_some_and(|read| *read != version) {
                return Err(outlast_store::StoreError::Conflict.into());
            }
        }
        opened.map(Some)
    }

    /// Writes a record that is no JSON: one that is sealed or wrapped.
    pub(crate) fn put_bytes(&mut self, key: &str, bytes: Vec<u8>) {
        self.writes.insert(key.to_owned(), Some(bytes));
    }

    /// The root keys.
    pub(crate) fn root(&self) -> &'a RootKey {
        self.root
    }

    /// The store, for reads that take no part in conflict detection.
    pub(crate) fn store(&self) -> &'a dyn Store {
        self.store
    }

    /// Whether anything would be written.
    pub fn writes_anything(&self) -> bool {
        !self.writes.is_empty()
    }

    /// What records a refusal: nothing is written but the events, if what was read still holds.
    pub fn into_refusal(self, events: Vec<Vec<u8>>) -> Transaction {
        Transaction {
            expectations: self.reads.into_iter().collect(),
            events: events.into_iter().map(NewEvent::new).collect(),
            ..Transaction::default()
        }
    }

    /// Whether every record that was read is as it was: if not, what does not fit together was read at two
    /// moments.
    pub fn is_current(&self) -> Result<bool, Fault> {
        for (key, version) in &self.reads {
            if self.store.read_fresh(key)?.map(|record| record.version) != *version {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is to be committed, together with the events that record it.
    pub fn into_transaction(self, events: Vec<Vec<u8>>) -> Transaction {
        Transaction {
            expectations: self.reads.into_iter().collect(),
            writes: self.writes.into_iter().collect(),
            events: events.into_iter().map(NewEvent::new).collect(),
            prune_events: self.prune_events,
        }
    }

    fn bytes(&mut self, key: &str) -> Result<Option<Vec<u8>>, Fault> {
        if let Some(written) = self.writes.get(key) {
            return Ok(written.clone());
        }
        let record = self.store.read(key)?;
        let version = record.as_ref().map(|record| record.version);
        if *self.reads.entry(key.to_owned()).or_insert(version) != version {
            // It changed between two reads of one operation; the commit would fail just so.
            return Err(outlast_store::StoreError::Conflict.into());
        }
        Ok(record.map(|record| record.value))
    }
}

fn decode<T: DeserializeOwned>(key: &str, bytes: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(bytes).map_err(|_| Fault::Damaged(key.to_owned()))
}

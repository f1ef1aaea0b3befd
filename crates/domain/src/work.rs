//! A unit of work: everything one operation reads and writes, committed as a whole.
//!
//! Each record that was read must still have the same version at commit, so that operations behave as if
//! they ran one after the other. A conflict means: run the operation again.

use std::collections::BTreeMap;

use outlast_crypto::Secret;
use outlast_store::{Store, Transaction};
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

/// What one step of a sweep over the store did.
#[derive(Debug, Default)]
pub struct Sweep {
    /// Where to go on, if there is more.
    pub next: Option<String>,
    /// What was erased: where it lived, and its ARN.
    pub erased: Vec<(Scope, String)>,
}

/// One operation's view of the store.
pub struct Work<'a> {
    store: &'a dyn Store,
    root: &'a RootKey,
    now_ms: i64,
    reads: BTreeMap<String, Option<u64>>,
    writes: BTreeMap<String, Option<Vec<u8>>>,
}

impl<'a> Work<'a> {
    /// Begins at the time `now_ms`, milliseconds since 1970.
    pub fn new(store: &'a dyn Store, root: &'a RootKey, now_ms: i64) -> Self {
        Self { store, root, now_ms, reads: BTreeMap::new(), writes: BTreeMap::new() }
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
            self.bytes(key)?;
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

    /// What is to be committed, together with the events that record it.
    pub fn into_transaction(self, events: Vec<Vec<u8>>) -> Transaction {
        Transaction {
            expectations: self.reads.into_iter().collect(),
            writes: self.writes.into_iter().collect(),
            events,
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

//! Records that were read before, kept in memory and verified at commit.
//!
//! A record here may be stale: another process, or another thread just now, may have changed it. That is no
//! harm to a transaction that lists what it read as expectations: the store behind compares the versions, the commit
//! conflicts, and the stale records are forgotten, so that the next attempt reads them anew. Whoever decides
//! something without committing must ask [`Store::read_fresh`]. That a record is absent is never remembered.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::{Completion, Event, Item, Record, Store, StoreError, Transaction};

/// Records that are kept.
const ENTRIES: usize = 8192;
/// Longest record that is kept, in bytes: so all together have 64 MiB at the very most, and mostly far less.
const MAX_VALUE: usize = 8192;

type Entries = LruCache<String, Record>;

/// A store with the records that were read last in front of it.
pub struct CachedStore {
    inner: Arc<dyn Store>,
    entries: Arc<Mutex<Entries>>,
}

impl CachedStore {
    /// Nothing is kept yet.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        let capacity = NonZeroUsize::new(ENTRIES).unwrap_or(NonZeroUsize::MIN);
        Self { inner, entries: Arc::new(Mutex::new(LruCache::new(capacity))) }
    }

    /// The store behind, without any memory.
    pub fn inner(&self) -> &Arc<dyn Store> {
        &self.inner
    }
}

fn lock(entries: &Mutex<Entries>) -> MutexGuard<'_, Entries> {
    // A panic cannot leave an entry half-changed.
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for CachedStore {
    fn read(&self, key: &str) -> Result<Option<Record>, StoreError> {
        if let Some(record) = lock(&self.entries).get(key) {
            return Ok(Some(record.clone()));
        }
        self.read_fresh(key)
    }

    fn read_fresh(&self, key: &str) -> Result<Option<Record>, StoreError> {
        let found = self.inner.read_fresh(key)?;
        let mut entries = lock(&self.entries);
        match &found {
            Some(record) if record.value.len() <= MAX_VALUE => {
                entries.put(key.to_owned(), record.clone());
            }
            _ => {
                entries.pop(key);
            }
        }
        Ok(found)
    }

    fn scan(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Record)>, StoreError> {
        self.inner.scan(prefix, after, limit)
    }

    fn commit(&self, transaction: Transaction, done: Completion) {
        let written: Vec<_> = transaction.writes.iter().map(|(key, _)| key.clone()).collect();
        let relied: Vec<_> = transaction.expectations.iter().map(|(key, _)| key.clone()).collect();
        let entries = self.entries.clone();
        self.inner.commit(
            transaction,
            Box::new(move |outcome| {
                let mut kept = lock(&entries);
                // What is written by now is read anew; after a conflict or an open outcome, all that was relied on.
                for key in &written {
                    kept.pop(key);
                }
                if outcome.is_err() {
                    for key in &relied {
                        kept.pop(key);
                    }
                }
                drop(kept);
                done(outcome);
            }),
        );
    }

    fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.inner.events(after, limit)
    }

    fn last_event(&self) -> Result<(u64, [u8; 32]), StoreError> {
        self.inner.last_event()
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn snapshot(
        &self,
        out: &mut dyn FnMut(Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.inner.snapshot(out)
    }

    fn restore(
        &self,
        items: &mut dyn Iterator<Item = Result<Item, StoreError>>,
    ) -> Result<(), StoreError> {
        self.inner.restore(items)
    }
}

//! A cache of records in memory, verified at commit.
//!
//! A cached record may be stale: another process or thread may have changed it. This does no harm to a transaction
//! that lists the records it read as expectations: the store compares the versions, the commit conflicts and the
//! stale records are dropped, so that the next attempt reads them again. A caller that decides something without
//! committing must use [`Store::read_fresh`]. That a record is absent is remembered for the kinds of records only that are
//! named as often absent: otherwise a caller who asks for names that do not exist would push out what is used.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use crate::{Completion, Event, Item, Record, Store, StoreError, Transaction};

/// Most records in the cache.
const ENTRIES: usize = 8192;
/// Longest cached record in bytes: an authority with its chain of ML-DSA certificates has about 30,000.
const MAX_VALUE: usize = 64 * 1024;
/// Most bytes in the cache.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// A cached record.
struct Kept {
    record: Record,
    /// Whether it passed the check of [`Store::read_checked`].
    checked: bool,
}

/// The records and their total size in bytes, and the keys of records that are absent.
struct Entries {
    records: LruCache<String, Kept>,
    bytes: usize,
    absent: LruCache<String, ()>,
}

impl Entries {
    fn new() -> Self {
        let capacity = NonZeroUsize::new(ENTRIES).unwrap_or(NonZeroUsize::MIN);
        Self { records: LruCache::new(capacity), bytes: 0, absent: LruCache::new(capacity) }
    }

    fn put(&mut self, key: &str, record: &Record) {
        self.absent.pop(key);
        self.bytes += record.value.len();
        // Removes the record that this one replaces, or records that exceed the limits.
        let kept = Kept { record: record.clone(), checked: false };
        if let Some((_, before)) = self.records.push(key.to_owned(), kept) {
            self.bytes -= before.record.value.len();
        }
        while self.bytes > MAX_BYTES {
            let Some((_, oldest)) = self.records.pop_lru() else { break };
            self.bytes -= oldest.record.value.len();
        }
    }

    fn pop(&mut self, key: &str) {
        self.absent.pop(key);
        if let Some(kept) = self.records.pop(key) {
            self.bytes -= kept.record.value.len();
        }
    }

    /// Notes that a record passed its check, if the cache still holds the same version.
    fn passed(&mut self, key: &str, record: &Record) {
        if let Some(kept) = self.records.get_mut(key).filter(|kept| kept.record == *record) {
            kept.checked = true;
        }
    }
}

/// A store behind a cache of recently read records.
pub struct CachedStore {
    inner: Arc<dyn Store>,
    entries: Arc<Mutex<Entries>>,
    is_often_absent: fn(&str) -> bool,
}

impl CachedStore {
    /// Creates an empty cache in front of `inner`.
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self { inner, entries: Arc::new(Mutex::new(Entries::new())), is_often_absent: |_| false }
    }

    /// Remembers that a record is absent where `is_often_absent` says so of its key. A caller must not be able to choose such a
    /// key freely.
    pub fn remembering(mut self, is_often_absent: fn(&str) -> bool) -> Self {
        self.is_often_absent = is_often_absent;
        self
    }

    /// The store behind the cache.
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
        let mut entries = lock(&self.entries);
        if let Some(kept) = entries.records.get(key) {
            return Ok(Some(kept.record.clone()));
        }
        if entries.absent.get(key).is_some() {
            return Ok(None);
        }
        drop(entries);
        self.read_fresh(key)
    }

    fn read_checked(
        &self,
        key: &str,
        check: &mut dyn FnMut(&Record) -> bool,
    ) -> Result<Option<Record>, StoreError> {
        if let Some(kept) = lock(&self.entries).records.get(key).filter(|kept| kept.checked) {
            return Ok(Some(kept.record.clone()));
        }
        // Checks without holding the lock, because the check may read other records.
        let found = self.read(key)?;
        if let Some(record) = &found
            && check(record)
        {
            lock(&self.entries).passed(key, record);
        }
        Ok(found)
    }

    fn read_fresh(&self, key: &str) -> Result<Option<Record>, StoreError> {
        let found = self.inner.read_fresh(key)?;
        let mut entries = lock(&self.entries);
        match &found {
            Some(record) if record.value.len() <= MAX_VALUE => {
                entries.put(key, record);
            }
            found => {
                entries.pop(key);
                if found.is_none() && (self.is_often_absent)(key) {
                    entries.absent.put(key.to_owned(), ());
                }
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

    fn count(&self, prefix: &str) -> Result<u64, StoreError> {
        self.inner.count(prefix)
    }

    fn commit(&self, transaction: Transaction, done: Completion) {
        let written: Vec<_> = transaction.writes.iter().map(|(key, _)| key.clone()).collect();
        let relied: Vec<_> = transaction.expectations.iter().map(|(key, _)| key.clone()).collect();
        let entries = self.entries.clone();
        self.inner.commit(
            transaction,
            Box::new(move |outcome| {
                let mut kept = lock(&entries);
                // After a commit, drops the records that it wrote; after a conflict or an open outcome, all that it
                // relied on.
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

    fn leaves(&self, after: u64, limit: usize) -> Result<Vec<(u64, [u8; 32])>, StoreError> {
        self.inner.leaves(after, limit)
    }

    fn last_event(&self) -> Result<u64, StoreError> {
        self.inner.last_event()
    }

    fn clock_ms(&self) -> Result<Option<i64>, StoreError> {
        self.inner.clock_ms()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_has_a_bound_in_bytes() {
        let record = |len: usize| Record { version: 1, value: vec![0; len] };
        let mut entries = Entries::new();
        for number in 0..3000 {
            entries.put(&format!("key/{number}"), &record(MAX_VALUE));
            assert!(entries.bytes <= MAX_BYTES);
        }
        assert_eq!(entries.records.len(), MAX_BYTES / MAX_VALUE);
        assert!(entries.records.contains("key/2999") && !entries.records.contains("key/0"));
        // Replaces it with a shorter record, then removes it.
        entries.put("key/2999", &record(10));
        entries.pop("key/2998");
        entries.pop("key/2998");
        assert_eq!(entries.bytes, MAX_BYTES - 2 * MAX_VALUE + 10);
        let kept = |entries: &mut Entries| entries.records.get("key/2999").map(|kept| kept.checked);
        entries.passed("key/2999", &record(11));
        assert_eq!(kept(&mut entries), Some(false), "another record has passed");
        entries.passed("key/2999", &record(10));
        assert_eq!(kept(&mut entries), Some(true));
        entries.put("key/2999", &record(10));
        assert_eq!(kept(&mut entries), Some(false), "it was read anew");
        for number in 0..2 * ENTRIES {
            entries.put(&format!("small/{number}"), &record(3));
        }
        assert_eq!((entries.records.len(), entries.bytes), (ENTRIES, ENTRIES * 3));
    }
}

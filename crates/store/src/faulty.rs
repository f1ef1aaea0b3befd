//! A store that fails on demand: shows in tests that nothing is answered which was not written.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::{Completion, Event, Item, Record, Store, StoreError, Transaction};

/// Passes everything on to `inner`, until told to fail.
pub struct FaultyStore<S> {
    inner: S,
    fail_writes: AtomicBool,
    fail_reads: AtomicBool,
    conflicts: AtomicU64,
    contested: Mutex<Option<String>>,
}

impl<S: Store> FaultyStore<S> {
    /// Wraps a store; nothing fails yet.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            fail_writes: AtomicBool::new(false),
            fail_reads: AtomicBool::new(false),
            conflicts: AtomicU64::new(0),
            contested: Mutex::default(),
        }
    }

    /// From now on every commit fails as on a full disk (or no longer does).
    pub fn fail_writes(&self, fail: bool) {
        self.fail_writes.store(fail, Ordering::SeqCst);
    }

    /// From now on every read fails (or no longer does).
    pub fn fail_reads(&self, fail: bool) {
        self.fail_reads.store(fail, Ordering::SeqCst);
    }

    /// The next `count` commits meet a conflict.
    pub fn conflict_next(&self, count: u64) {
        self.conflicts.store(count, Ordering::SeqCst);
    }

    /// From now on every commit that relies on the record under `key` meets a conflict (or none does).
    pub fn conflict_on(&self, key: Option<&str>) {
        *self.contested.lock().unwrap_or_else(PoisonError::into_inner) = key.map(str::to_owned);
    }

    fn is_contested(&self, transaction: &Transaction) -> bool {
        let contested = self.contested.lock().unwrap_or_else(PoisonError::into_inner);
        contested
            .as_ref()
            .is_some_and(|key| transaction.expectations.iter().any(|(expected, _)| expected == key))
    }

    fn readable(&self) -> Result<(), StoreError> {
        if self.fail_reads.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("injected read error".into()));
        }
        Ok(())
    }
}

impl<S: Store> Store for FaultyStore<S> {
    fn read(&self, key: &str) -> Result<Option<Record>, StoreError> {
        self.readable()?;
        self.inner.read(key)
    }

    fn scan(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Record)>, StoreError> {
        self.readable()?;
        self.inner.scan(prefix, after, limit)
    }

    fn commit(&self, transaction: Transaction, done: Completion) {
        if self.fail_writes.load(Ordering::SeqCst) {
            return done(Err(StoreError::Full));
        }
        let injected = self
            .conflicts
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
            .is_ok();
        if injected || self.is_contested(&transaction) {
            return done(Err(StoreError::Conflict));
        }
        self.inner.commit(transaction, done);
    }

    fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        self.readable()?;
        self.inner.events(after, limit)
    }

    fn leaves(&self, after: u64, limit: usize) -> Result<Vec<(u64, [u8; 32])>, StoreError> {
        self.readable()?;
        self.inner.leaves(after, limit)
    }

    fn last_event(&self) -> Result<u64, StoreError> {
        self.readable()?;
        self.inner.last_event()
    }

    fn is_remote(&self) -> bool {
        self.inner.is_remote()
    }

    fn snapshot(
        &self,
        out: &mut dyn FnMut(Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.readable()?;
        self.inner.snapshot(out)
    }

    fn restore(
        &self,
        items: &mut dyn Iterator<Item = Result<Item, StoreError>>,
    ) -> Result<(), StoreError> {
        if self.fail_writes.load(Ordering::SeqCst) {
            return Err(StoreError::Full);
        }
        self.inner.restore(items)
    }
}

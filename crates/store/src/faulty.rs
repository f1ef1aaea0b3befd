//! A store that fails on demand, so that tests can show that nothing is answered before it is written. It also counts
//! reads.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::{Completion, Event, Item, Record, Store, StoreError, Transaction};

/// What another thread does between a read and its caller: gets the store and the key that was read.
pub type Haste<S> = Box<dyn FnMut(&S, &str) + Send>;

/// Passes every call on to `inner` until it is told to fail.
pub struct FaultyStore<S> {
    inner: S,
    fail_writes: AtomicBool,
    /// Commits that succeed before all others fail.
    writes_left: AtomicU64,
    fail_reads: AtomicBool,
    lose_outcomes: AtomicBool,
    /// Time of the database's clock; 0 if it has none.
    clock_ms: AtomicI64,
    conflicts: AtomicU64,
    contested: Mutex<Option<String>>,
    records_read: AtomicU64,
    haste: Mutex<Option<Haste<S>>>,
}

impl<S: Store> FaultyStore<S> {
    /// Wraps a store; nothing fails at first.
    pub fn new(inner: S) -> Self {
        Self {
            inner,
            fail_writes: AtomicBool::new(false),
            writes_left: AtomicU64::new(u64::MAX),
            fail_reads: AtomicBool::new(false),
            lose_outcomes: AtomicBool::new(false),
            clock_ms: AtomicI64::new(0),
            conflicts: AtomicU64::new(0),
            contested: Mutex::default(),
            records_read: AtomicU64::new(0),
            haste: Mutex::default(),
        }
    }

    /// Lets every commit fail as if the disk were full, or stops that.
    pub fn fail_writes(&self, fail: bool) {
        self.fail_writes.store(fail, Ordering::SeqCst);
    }

    /// Lets `count` commits succeed and every later one fail as if the disk were full; `None` stops that.
    pub fn fail_writes_after(&self, count: Option<u64>) {
        self.writes_left.store(count.unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Lets every read fail, or stops that.
    pub fn fail_reads(&self, fail: bool) {
        self.fail_reads.store(fail, Ordering::SeqCst);
    }

    /// Carries out every commit but loses its outcome, as when a connection breaks, or stops that.
    pub fn lose_outcomes(&self, lose: bool) {
        self.lose_outcomes.store(lose, Ordering::SeqCst);
    }

    /// Gives the store a database clock that shows this time, in milliseconds since 1970.
    pub fn set_clock(&self, now_ms: i64) {
        self.clock_ms.store(now_ms, Ordering::SeqCst);
    }

    /// Lets the next `count` commits meet a conflict.
    pub fn conflict_next(&self, count: u64) {
        self.conflicts.store(count, Ordering::SeqCst);
    }

    /// Lets every commit that relies on the record under `key` meet a conflict; `None` stops that.
    pub fn conflict_on(&self, key: Option<&str>) {
        *self.contested.lock().unwrap_or_else(PoisonError::into_inner) = key.map(str::to_owned);
    }

    /// Runs this after each read of a record, before the reader gets it; `None` stops that.
    pub fn after_reads(&self, haste: Option<Haste<S>>) {
        *self.haste.lock().unwrap_or_else(PoisonError::into_inner) = haste;
    }

    /// Reads so far, including records that scans returned.
    pub fn records_read(&self) -> u64 {
        self.records_read.load(Ordering::SeqCst)
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
        self.records_read.fetch_add(1, Ordering::SeqCst);
        let found = self.inner.read(key)?;
        if let Some(haste) = self.haste.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            haste(&self.inner, key);
        }
        Ok(found)
    }

    fn scan(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Record)>, StoreError> {
        self.readable()?;
        let found = self.inner.scan(prefix, after, limit)?;
        self.records_read.fetch_add(found.len() as u64, Ordering::SeqCst);
        Ok(found)
    }

    fn count(&self, prefix: &str) -> Result<u64, StoreError> {
        self.readable()?;
        self.inner.count(prefix)
    }

    fn commit(&self, transaction: Transaction, done: Completion) {
        let counted = |left: u64| if left == u64::MAX { Some(left) } else { left.checked_sub(1) };
        let is_over =
            self.writes_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, counted).is_err();
        if is_over || self.fail_writes.load(Ordering::SeqCst) {
            return done(Err(StoreError::Full));
        }
        let injected = self
            .conflicts
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
            .is_ok();
        if injected || self.is_contested(&transaction) {
            return done(Err(StoreError::Conflict));
        }
        let lost = self.lose_outcomes.load(Ordering::SeqCst);
        self.inner.commit(
            transaction,
            Box::new(move |outcome| {
                done(match outcome {
                    Ok(()) if lost => Err(StoreError::Uncertain("injected".into())),
                    outcome => outcome,
                });
            }),
        );
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

    fn clock_ms(&self) -> Result<Option<i64>, StoreError> {
        self.readable()?;
        let now_ms = self.clock_ms.load(Ordering::SeqCst);
        if now_ms == 0 { self.inner.clock_ms() } else { Ok(Some(now_ms)) }
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

//! The store as a server uses it: remembers committed events until a signed head covers them, and commits none after
//! an alarm. Remembers the stamps of written records, so that no older one can be put back.
//!
//! It also counts the commits that may have changed an OCSP response. Only this process commits to a store that is
//! not remote; so as long as the count stays the same, every epoch does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_domain::audit::Guard;
use outlast_domain::ca::ocsp::EPOCHS;
use outlast_domain::seal::Stamps;
use outlast_store::{Completion, Event, Item, Record, Store, StoreError, Transaction};

/// A store that is watched.
pub(super) struct Watched {
    inner: Arc<dyn Store>,
    watches: Watches,
}

/// Observer of commits.
#[derive(Clone)]
pub(super) struct Watches {
    pub changes: Arc<AtomicU64>,
    pub guard: Arc<Guard>,
    pub stamps: Arc<Stamps>,
}

impl Watched {
    pub(super) fn new(inner: Arc<dyn Store>, watches: Watches) -> Self {
        Self { inner, watches }
    }
}

fn changes_epoch(transaction: &Transaction) -> bool {
    transaction.writes.iter().any(|(key, _)| key.starts_with(EPOCHS))
}

impl Store for Watched {
    fn read(&self, key: &str) -> Result<Option<Record>, StoreError> {
        self.inner.read(key)
    }

    fn read_fresh(&self, key: &str) -> Result<Option<Record>, StoreError> {
        self.inner.read_fresh(key)
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
        let written = self.watches.stamps.writing(&transaction.writes);
        let counts = changes_epoch(&transaction);
        if transaction.events.is_empty() && !counts && written.is_empty() {
            return self.inner.commit(transaction, done);
        }
        if !transaction.events.is_empty()
            && let Some(reason) = self.watches.guard.refusal()
        {
            return done(Err(StoreError::Unavailable(reason)));
        }
        self.watches.guard.begin(&transaction.events);
        let leaves: Vec<_> = transaction.events.iter().map(|event| *event.leaf()).collect();
        let Watches { changes, guard, stamps } = self.watches.clone();
        self.inner.commit(
            transaction,
            Box::new(move |outcome| {
                guard.end(&leaves, outcome.is_ok());
                // Before anybody learns the outcome, and also if the outcome is unknown.
                if counts {
                    changes.fetch_add(1, Ordering::SeqCst);
                }
                if outcome.is_ok() {
                    stamps.wrote(&written);
                }
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

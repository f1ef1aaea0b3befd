//! The store, with a count of the commits that may have changed what an OCSP answer says. Only this process commits to
//! a store that is not remote, so that as long as the count is the same, so is every epoch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_domain::ca::ocsp::EPOCHS;
use outlast_store::{Completion, Event, Item, Record, Store, StoreError, Transaction};

/// A store that counts.
pub(super) struct Watched {
    inner: Arc<dyn Store>,
    changes: Arc<AtomicU64>,
}

impl Watched {
    pub(super) fn new(inner: Arc<dyn Store>, changes: Arc<AtomicU64>) -> Self {
        Self { inner, changes }
    }
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

    fn commit(&self, transaction: Transaction, done: Completion) {
        if !transaction.writes.iter().any(|(key, _)| key.starts_with(EPOCHS)) {
            return self.inner.commit(transaction, done);
        }
        let changes = self.changes.clone();
        self.inner.commit(
            transaction,
            Box::new(move |outcome| {
                // Before anybody is told, and whatever the outcome: it may be open.
                changes.fetch_add(1, Ordering::SeqCst);
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

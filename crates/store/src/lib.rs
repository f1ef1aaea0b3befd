//! Durable records, and the rules for changing them.
//!
//! A store holds opaque records under text keys, each with a version, and an append-only list of events.
//! [`Store::commit`] makes every change: a [`Transaction`] lists the versions that it relied on, its writes and the
//! events that it appends. It takes effect as a whole or not at all, and its completion is called only when it is on
//! disk. The events are the entries of a Merkle log: each is stored with its leaf hash.
//!
//! This crate never sees a plaintext secret, knows no AWS name and reads no clock.

pub mod cache;
pub mod chain;
pub mod driver;
pub mod faulty;
pub mod limits;
pub mod lock;
pub mod memory;
pub mod postgres;
pub mod sqlite;
pub mod tally;
#[cfg(feature = "testing")]
pub mod testing;

use std::sync::mpsc;

use tally::Tally;

/// A stored record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Changes whenever the record is written; never 0.
    pub version: u64,
    /// Contents, opaque to the store.
    pub value: Vec<u8>,
}

/// A stored event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Position in the list, from 1, without gaps.
    pub sequence: u64,
    /// Contents, opaque to the store.
    pub body: Vec<u8>,
    /// Its leaf hash in the Merkle log (RFC 6962, section 2.1): see [`NewEvent`].
    pub leaf: [u8; 32],
}

/// An event to append, with its leaf hash, which is computed when the event is made and not under the commit lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    body: Vec<u8>,
    leaf: [u8; 32],
}

impl NewEvent {
    /// Makes an event with these bytes.
    pub fn new(body: Vec<u8>) -> Self {
        Self { leaf: outlast_tlog::hash::leaf(&body), body }
    }

    /// Contents.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// SHA-256 of a zero byte followed by the contents.
    pub fn leaf(&self) -> &[u8; 32] {
        &self.leaf
    }
}

impl From<Vec<u8>> for NewEvent {
    fn from(body: Vec<u8>) -> Self {
        Self::new(body)
    }
}

/// An item of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// A record and its key.
    Record(String, Record),
    /// An event.
    Event(Event),
}

/// Changes that take effect as a whole or not at all.
///
/// ```
/// use outlast_store::memory::MemoryStore;
/// use outlast_store::{Store, StoreError, Transaction};
///
/// let store = MemoryStore::new();
/// let new = Transaction {
///     expectations: vec![("a".into(), None)], // there must be no such record yet
///     writes: vec![("a".into(), Some(b"1".to_vec()))],
///     ..Transaction::default()
/// };
/// store.commit_and_wait(new.clone()).unwrap();
/// assert_eq!(store.read("a").unwrap().unwrap().value, b"1");
/// assert_eq!(store.commit_and_wait(new), Err(StoreError::Conflict));
/// ```
#[derive(Debug, Default, Clone)]
pub struct Transaction {
    /// Versions that must still hold; `None` requires that the record does not exist.
    pub expectations: Vec<(String, Option<u64>)>,
    /// New values; `None` deletes.
    pub writes: Vec<(String, Option<Vec<u8>>)>,
    /// Events to append.
    pub events: Vec<NewEvent>,
    /// Deletes events up to this sequence; the last event always stays.
    pub prune_events: Option<u64>,
    /// Record counts that the writes change.
    pub tallies: Vec<Tally>,
}

/// Errors of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// A record that the transaction relied on has changed. Nothing was written; start over.
    #[error("a record was changed in the meantime")]
    Conflict,
    /// The disk is full. Nothing was written.
    #[error("the disk that holds the store is full")]
    Full,
    /// Reading or writing failed. Nothing was written.
    #[error("the store cannot be read or written: {0}")]
    Unavailable(String),
    /// A commit was sent but not answered, so it may or may not have taken effect. The caller must check before
    /// trying again.
    #[error("whether a commit was carried out is not certain: {0}")]
    Uncertain(String),
    /// The database was written by a newer version of Outlast.
    #[error(
        "the store has schema version {found}, and this version of outlast knows up to {known}"
    )]
    TooNew {
        /// Version of the database.
        found: u32,
        /// Newest version that this build knows.
        known: u32,
    },
    /// The file is not a store of Outlast.
    #[error("{0} is not an outlast store")]
    Foreign(String),
    /// The store must be empty but is not. Nothing was written.
    #[error("the store is not empty")]
    NotEmpty,
    /// Another process has the store open.
    #[error("{0} is in use by another outlast process")]
    InUse(String),
}

/// Called once, when a transaction is durable or has failed.
pub type Completion = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Durable records and events.
pub trait Store: Send + Sync {
    /// Record under `key`, as of the last completed commit. A [`cache::CachedStore`] may return an older one: callers
    /// that rely on it list it in the transaction's expectations.
    fn read(&self, key: &str) -> Result<Option<Record>, StoreError>;

    /// Record under `key`, as of the last completed commit and no older: for decisions without a commit.
    fn read_fresh(&self, key: &str) -> Result<Option<Record>, StoreError> {
        self.read(key)
    }

    /// Record under `key` like [`Store::read`], after `check` has passed it. A store that caches records need not
    /// check a record again that has passed; it checks all others each time. A record that does not pass is returned
    /// all the same: `check` remembers its verdict.
    fn read_checked(
        &self,
        key: &str,
        check: &mut dyn FnMut(&Record) -> bool,
    ) -> Result<Option<Record>, StoreError> {
        let found = self.read(key)?;
        if let Some(record) = &found {
            check(record);
        }
        Ok(found)
    }

    /// Up to `limit` records whose key starts with `prefix` and is greater than `after`, in order of key.
    fn scan(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Record)>, StoreError>;

    /// Number of records whose key starts with `prefix`, as of the last completed commit and no older. Fast if a
    /// transaction has named the prefix before ([`Tally`]); otherwise it counts them.
    fn count(&self, prefix: &str) -> Result<u64, StoreError>;

    /// Commits, and calls `done` when the outcome is certain, on this thread or another, now or later. It may block
    /// as long as one sync of the disk. `done` may read, but must not wait for another commit.
    fn commit(&self, transaction: Transaction, done: Completion);

    /// Up to `limit` events with a sequence greater than `after`.
    fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, StoreError>;

    /// Sequences and leaf hashes of up to `limit` events with a sequence greater than `after`.
    fn leaves(&self, after: u64, limit: usize) -> Result<Vec<(u64, [u8; 32])>, StoreError>;

    /// The sequence of the last event; 0 when there is none.
    fn last_event(&self) -> Result<u64, StoreError>;

    /// Time on the database's machine, in milliseconds since 1970; `None` if this process keeps the store itself.
    fn clock_ms(&self) -> Result<Option<i64>, StoreError> {
        Ok(None)
    }

    /// Whether a read may take a network round trip. If so, callers on an async runtime read on a blocking thread.
    fn is_remote(&self) -> bool {
        false
    }

    /// Passes every record in order of key, then every event in order of sequence, to `out`, all as of one point in
    /// time, while commits go on. An error of `out` ends it.
    fn snapshot(
        &self,
        out: &mut dyn FnMut(Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    /// Fills an empty store with the items of a snapshot, exactly as they were: all of them or none. Versions
    /// assigned later are greater than all of these.
    ///
    /// # Errors
    /// [`StoreError::NotEmpty`], or the first error among the items.
    fn restore(
        &self,
        items: &mut dyn Iterator<Item = Result<Item, StoreError>>,
    ) -> Result<(), StoreError>;

    /// Commits and waits for the outcome.
    fn commit_and_wait(&self, transaction: Transaction) -> Result<(), StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.commit(
            transaction,
            Box::new(move |outcome| {
                // The receiver lives until this call returns.
                let _ = sender.send(outcome);
            }),
        );
        receiver
            .recv()
            .unwrap_or_else(|_| Err(StoreError::Uncertain("the writer has stopped".into())))
    }
}

/// The first key after all keys that start with `prefix`; keys are ASCII.
fn prefix_end(prefix: &str) -> String {
    format!("{prefix}\u{7f}")
}

/// Reports the outcomes to the members of a group, or to all of them the error that rolled the group back.
fn complete(
    completions: Vec<Completion>,
    outcomes: Result<Vec<Result<(), StoreError>>, StoreError>,
) {
    match outcomes {
        Ok(outcomes) => {
            for (done, outcome) in completions.into_iter().zip(outcomes) {
                done(outcome);
            }
        }
        Err(error) => {
            tracing::error!(%error, "a group of commits failed");
            for done in completions {
                done(Err(error.clone()));
            }
        }
    }
}

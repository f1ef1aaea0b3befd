//! Durable records and the rules of how they change.
//!
//! A store holds opaque records under text keys, each with a version, and an append-only list of events.
//! Everything changes through [`Store::commit`]: a [`Transaction`] says which versions it relied on, what it
//! writes and which events it appends; it happens as a whole or not at all, and its completion is called
//! only when it is on disk. The events are the entries of a Merkle log: each is stored with its leaf hash.
//!
//! This crate never sees a plaintext secret, knows no AWS name and has no clock.

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

/// A record as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Changes with every write of the record; never 0.
    pub version: u64,
    /// The bytes, opaque to the store.
    pub value: Vec<u8>,
}

/// An event as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Position in the list, from 1, without gaps.
    pub sequence: u64,
    /// The bytes, opaque to the store.
    pub body: Vec<u8>,
    /// Its leaf hash in the Merkle log (RFC 6962, section 2.1): see [`NewEvent`].
    pub leaf: [u8; 32],
}

/// An event to append, with its leaf hash, which is computed where the event is made and not under the lock of
/// the commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    body: Vec<u8>,
    leaf: [u8; 32],
}

impl NewEvent {
    /// An event with these bytes.
    pub fn new(body: Vec<u8>) -> Self {
        Self { leaf: outlast_tlog::hash::leaf(&body), body }
    }

    /// The bytes.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// SHA-256 of a zero byte and the bytes.
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

/// A set of changes that happens as a whole or not at all.
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
    /// Versions that must still hold; `None` says that there must be no such record.
    pub expectations: Vec<(String, Option<u64>)>,
    /// New values; `None` deletes.
    pub writes: Vec<(String, Option<Vec<u8>>)>,
    /// Events to append.
    pub events: Vec<NewEvent>,
    /// Events up to this sequence are deleted; the last event always stays.
    pub prune_events: Option<u64>,
    /// Counts of records that the writes change.
    pub tallies: Vec<Tally>,
}

/// Errors of a store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Somebody else changed a record that the transaction relied on. Nothing was written; start over.
    #[error("a record changed meanwhile")]
    Conflict,
    /// The disk is full. Nothing was written.
    #[error("the disk that holds the store is full")]
    Full,
    /// Reading or writing failed; nothing was written.
    #[error("the store cannot be read or written: {0}")]
    Unavailable(String),
    /// A commit was sent and not answered: whether it was carried out is not certain. The caller must check before trying
    /// again.
    #[error("whether a commit was carried out is not certain: {0}")]
    Uncertain(String),
    /// The database was written by a newer version of Outlast.
    #[error(
        "the store has schema version {found}, and this version of outlast knows up to {known}"
    )]
    TooNew {
        /// Version in the database.
        found: u32,
        /// Newest version known to this build.
        known: u32,
    },
    /// The file is not a store of Outlast.
    #[error("{0} is not an outlast store")]
    Foreign(String),
    /// The store must be empty and is not. Nothing was written.
    #[error("the store is not empty")]
    NotEmpty,
    /// Another process has the store open.
    #[error("{0} is in use by another outlast process")]
    InUse(String),
}

/// Called once when a transaction is durable, or has failed.
pub type Completion = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Durable records and events.
pub trait Store: Send + Sync {
    /// The record under `key`, as of the last completed commit. From a [`cache::CachedStore`] it may be older:
    /// callers that rely on it list it in the transaction's expectations.
    fn read(&self, key: &str) -> Result<Option<Record>, StoreError>;

    /// The record under `key`, as of the last completed commit and no older: for decisions without a commit.
    fn read_fresh(&self, key: &str) -> Result<Option<Record>, StoreError> {
        self.read(key)
    }

    /// The record under `key` as [`Store::read`] gives it, once `check` has passed it. A store that keeps records in
    /// memory need not have one checked again that has passed; the others are, each time. A record that does not pass is
    /// returned all the same: `check` remembers its verdict.
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

    /// The number of records whose key starts with `prefix`, as of the last completed commit and no older. Quick where a
    /// transaction has named the prefix before ([`Tally`]); otherwise it counts them.
    fn count(&self, prefix: &str) -> Result<u64, StoreError>;

    /// Commits, and calls `done` when the outcome is certain: on this thread or another, now or later. It may
    /// take as long as one sync of the disk. `done` may read, but must not wait for another commit.
    fn commit(&self, transaction: Transaction, done: Completion);

    /// Up to `limit` events with a sequence greater than `after`.
    fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, StoreError>;

    /// Sequences and leaf hashes of up to `limit` events with a sequence greater than `after`.
    fn leaves(&self, after: u64, limit: usize) -> Result<Vec<(u64, [u8; 32])>, StoreError>;

    /// The sequence of the last event; 0 when there is none.
    fn last_event(&self) -> Result<u64, StoreError>;

    /// The time on the database's machine, milliseconds since 1970; `None` if this process keeps the store itself.
    fn clock_ms(&self) -> Result<Option<i64>, StoreError> {
        Ok(None)
    }

    /// Whether a read may take a network round trip: callers on an async runtime then leave its threads to others.
    fn is_remote(&self) -> bool {
        false
    }

    /// Hands out every record in order of key, then every event in order of sequence, all as of one point in
    /// time; commits go on meanwhile. An error of `out` ends it.
    fn snapshot(
        &self,
        out: &mut dyn FnMut(Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    /// Fills an empty store with the items of a snapshot, exactly as they were: all of them or none. Versions
    /// that are given later are greater than all of these.
    ///
    /// # Errors
    /// [`StoreError::NotEmpty`], and the first error among the items.
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

/// The first key after all that start with `prefix`; keys are ASCII.
fn prefix_end(prefix: &str) -> String {
    format!("{prefix}\u{7f}")
}

/// Tells the members of a group their outcomes, or all of them the error that rolled the group back.
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

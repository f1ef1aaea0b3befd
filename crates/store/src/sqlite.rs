//! The embedded store: SQLite in WAL mode with full synchronisation.
//!
//! A transaction without competition is committed by its caller's thread, so that no other thread has to wake up. If
//! several arrive at once, the writer's thread takes all that wait, checks and applies them one after the other in
//! one SQLite transaction, and completes them when that is on disk, so that many clients share one sync (group
//! commit). Readers have their own connections and see the last completed commit.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};

use crate::{Completion, Event, Item, Record, Store, StoreError, Transaction, prefix_end};

mod copy;
mod schema;
mod tallies;

/// Most transactions in the writer's queue; more are refused.
const QUEUE: usize = 4096;
/// Most transactions that share a sync.
const GROUP: usize = 512;
const READERS: usize = 4;

/// A store in one SQLite file.
pub struct SqliteStore {
    path: PathBuf,
    readers: Vec<Mutex<Connection>>,
    next_reader: AtomicUsize,
    writer: Option<Writer>,
}

/// `None` if the store was opened read-only.
struct Writer {
    writing: Arc<Writing>,
    thread: Option<JoinHandle<()>>,
}

type Job = (Transaction, Completion);

/// State shared by the writer's thread and the threads that commit.
struct Writing {
    connection: Mutex<Connection>,
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl SqliteStore {
    /// Opens the store at `path` or creates one there; upgrades an older schema first.
    ///
    /// # Errors
    /// [`StoreError::TooNew`] and [`StoreError::Foreign`] leave the file unchanged.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Self::open_limited(path, None)
    }

    /// Like [`SqliteStore::open`], with a limit on the size of the database in pages of 4096 bytes, to imitate a disk
    /// that is nearly full.
    pub fn open_limited(path: &Path, max_pages: Option<u32>) -> Result<Self, StoreError> {
        let mut connection = connect(path, OpenFlags::default())?;
        schema::prepare(&mut connection, path)?;
        if let Some(pages) = max_pages {
            connection.pragma_update(None, "max_page_count", pages).map_err(failed)?;
        }
        let readers = readers(path)?;
        let writing = Arc::new(Writing {
            connection: Mutex::new(connection),
            queue: Mutex::default(),
            wake: Condvar::new(),
        });
        let shared = writing.clone();
        let thread = std::thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || shared.run())
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let writer = Some(Writer { writing, thread: Some(thread) });
        Ok(Self { path: path.into(), readers, next_reader: AtomicUsize::new(0), writer })
    }

    /// Opens a store read-only, even while a server has it open: commits fail, and nothing is upgraded.
    pub fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        let readers = readers(path)?;
        schema::check(&readers[0].lock().unwrap_or_else(PoisonError::into_inner), path)?;
        Ok(Self { path: path.into(), readers, next_reader: AtomicUsize::new(0), writer: None })
    }

    fn writing(&self) -> Result<&Writing, StoreError> {
        let writer = self.writer.as_ref().map(|writer| writer.writing.as_ref());
        writer.ok_or_else(|| StoreError::Unavailable("it was opened for reading only".into()))
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        // Always tries the connections in the same order, because the page cache of the first is the freshest.
        if let Some(reader) = self.readers.iter().find_map(|reader| reader.try_lock().ok()) {
            return reader;
        }
        let next = self.next_reader.fetch_add(1, Ordering::Relaxed) % READERS;
        self.readers[next].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        // The writer's connection closes last, because only it may move the log into the database and remove it.
        self.readers.clear();
        let Some(writer) = &mut self.writer else { return };
        // Closing the queue ends the writer after it has served what waits.
        writer.writing.queue().closed = true;
        writer.writing.wake.notify_one();
        if let Some(thread) = writer.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Store for SqliteStore {
    fn read(&self, key: &str) -> Result<Option<Record>, StoreError> {
        self.reader()
            .prepare_cached("SELECT version, value FROM record WHERE key = ?1")
            .and_then(|mut statement| {
                statement
                    .query_row([key], |row| {
                        Ok(Record {
                            version: row.get::<_, i64>(0)?.unsigned_abs(),
                            value: row.get(1)?,
                        })
                    })
                    .optional()
            })
            .map_err(failed)
    }

    fn scan(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Record)>, StoreError> {
        let reader = self.reader();
        let mut statement = reader
            .prepare_cached(
                "SELECT key, version, value FROM record
                 WHERE key >= ?1 AND key < ?2 AND key > ?3 ORDER BY key LIMIT ?4",
            )
            .map_err(failed)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement
            .query_map(params![prefix.max(after), prefix_end(prefix), after, limit], |row| {
                let version = row.get::<_, i64>(1)?.unsigned_abs();
                Ok((row.get(0)?, Record { version, value: row.get(2)? }))
            })
            .map_err(failed)?;
        rows.collect::<Result<_, _>>().map_err(failed)
    }

    fn count(&self, prefix: &str) -> Result<u64, StoreError> {
        tallies::count(&self.reader(), prefix).map_err(failed)
    }

    fn commit(&self, transaction: Transaction, done: Completion) {
        let writing = match self.writing() {
            Ok(writing) => writing,
            Err(error) => return done(Err(error)),
        };
        if let Ok(mut connection) = writing.connection.try_lock()
            && writing.queue().jobs.is_empty()
        {
            return carry_out(&mut connection, vec![(transaction, done)]);
        }
        let mut queue = writing.queue();
        // Never blocks: the caller may be a network thread, and a stalled disk must not stall the others.
        if queue.jobs.len() >= QUEUE {
            drop(queue);
            return done(Err(StoreError::Unavailable(
                "too many commits are waiting for the disk".into(),
            )));
        }
        queue.jobs.push_back((transaction, done));
        writing.wake.notify_one();
    }

    fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        let reader = self.reader();
        let mut statement = reader
            .prepare_cached(
                "SELECT sequence, body, leaf FROM event
                 WHERE sequence > ?1 ORDER BY sequence LIMIT ?2",
            )
            .map_err(failed)?;
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = statement.query_map([after, limit], event_of).map_err(failed)?;
        rows.collect::<Result<_, _>>().map_err(failed)
    }

    fn leaves(&self, after: u64, limit: usize) -> Result<Vec<(u64, [u8; 32])>, StoreError> {
        let reader = self.reader();
        let mut statement = reader
            .prepare_cached(
                "SELECT sequence, leaf FROM event WHERE sequence > ?1 ORDER BY sequence LIMIT ?2",
            )
            .map_err(failed)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let rows = statement
            .query_map(params![after, limit], |row| {
                Ok((row.get::<_, i64>(0)?.unsigned_abs(), row.get(1)?))
            })
            .map_err(failed)?;
        rows.collect::<Result<_, _>>().map_err(failed)
    }

    fn last_event(&self) -> Result<u64, StoreError> {
        last_event(&self.reader()).map_err(failed)
    }

    fn snapshot(
        &self,
        out: &mut dyn FnMut(Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        copy::snapshot(&mut connect_reader(&self.path)?, out)
    }

    fn restore(
        &self,
        items: &mut dyn Iterator<Item = Result<Item, StoreError>>,
    ) -> Result<(), StoreError> {
        let mut connection =
            self.writing()?.connection.lock().unwrap_or_else(PoisonError::into_inner);
        copy::restore(&mut connection, items)
    }
}

fn readers(path: &Path) -> Result<Vec<Mutex<Connection>>, StoreError> {
    (0..READERS).map(|_| connect_reader(path).map(Mutex::new)).collect()
}

fn connect_reader(path: &Path) -> Result<Connection, StoreError> {
    connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StoreError> {
    let connection = Connection::open_with_flags(path, flags).map_err(failed)?;
    connection.busy_timeout(Duration::from_secs(5)).map_err(failed)?;
    // A page cache of 2 MiB per connection keeps an idle server small.
    connection.pragma_update(None, "cache_size", -2048).map_err(failed)?;
    // Overwrites deleted data: an erased key must not linger in a free page.
    connection.pragma_update(None, "secure_delete", "ON").map_err(failed)?;
    connection.set_prepared_statement_cache_capacity(16);
    Ok(connection)
}

impl Writing {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // A panic cannot leave the queue half-changed: every change is one push or drain.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The writer's loop: ends when the store is dropped and the queue is empty.
    fn run(&self) {
        loop {
            let mut queue = self.queue();
            while queue.jobs.is_empty() {
                if queue.closed {
                    return;
                }
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            drop(queue);
            // Waits for a commit in progress first: transactions that arrive in the meantime join the group.
            let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
            let mut queue = self.queue();
            let len = queue.jobs.len().min(GROUP);
            let group = queue.jobs.drain(..len).collect();
            drop(queue);
            carry_out(&mut connection, group);
        }
    }
}

/// Commits a group and reports its outcome to each member.
fn carry_out(connection: &mut Connection, group: Vec<Job>) {
    let (transactions, completions): (Vec<_>, Vec<_>) = group.into_iter().unzip();
    crate::complete(completions, apply(connection, &transactions));
}

/// Applies a group in one SQLite transaction. A conflict concerns one member, an error all.
fn apply(
    connection: &mut Connection,
    group: &[Transaction],
) -> Result<Vec<Result<(), StoreError>>, StoreError> {
    let sql = connection
        .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
        .map_err(failed)?;
    let mut outcomes = Vec::with_capacity(group.len());
    {
        let mut version_of =
            sql.prepare_cached("SELECT version FROM record WHERE key = ?1").map_err(failed)?;
        let mut put = sql
            .prepare_cached(
                "INSERT INTO record VALUES (?1, ?2, ?3)
                 ON CONFLICT (key) DO UPDATE SET version = ?2, value = ?3",
            )
            .map_err(failed)?;
        let mut delete = sql.prepare_cached("DELETE FROM record WHERE key = ?1").map_err(failed)?;
        let mut append =
            sql.prepare_cached("INSERT INTO event VALUES (?1, ?2, ?3)").map_err(failed)?;
        let mut sequence = last_event(&sql).map_err(failed)?;
        // Versions are never reused, so that a record that is deleted and created again differs.
        let mut next_version: i64 = sql
            .prepare_cached("SELECT value FROM counter WHERE name = 'version'")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(failed)?;
        let first_version = next_version;
        for transaction in group {
            let mut conflict = false;
            for (key, expected) in &transaction.expectations {
                let found: Option<i64> =
                    version_of.query_row([key], |row| row.get(0)).optional().map_err(failed)?;
                conflict |= found.map(i64::unsigned_abs) != *expected;
            }
            let conflict = conflict || !tallies::change(&sql, transaction).map_err(failed)?;
            if conflict {
                outcomes.push(Err(StoreError::Conflict));
                continue;
            }
            for (key, value) in &transaction.writes {
                match value {
                    Some(value) => {
                        next_version += 1;
                        put.execute(params![key, next_version, value]).map_err(failed)?;
                    }
                    None => {
                        delete.execute([key]).map_err(failed)?;
                    }
                }
            }
            for event in &transaction.events {
                sequence += 1;
                append
                    .execute(params![sequence.cast_signed(), event.body(), event.leaf()])
                    .map_err(failed)?;
            }
            if let Some(upto) = transaction.prune_events {
                let upto = upto.min(sequence.saturating_sub(1)).cast_signed();
                sql.execute("DELETE FROM event WHERE sequence <= ?1", [upto]).map_err(failed)?;
            }
            outcomes.push(Ok(()));
        }
        if next_version != first_version {
            sql.prepare_cached("UPDATE counter SET value = ?1 WHERE name = 'version'")
                .and_then(|mut statement| statement.execute([next_version]))
                .map_err(failed)?;
        }
    }
    sql.commit().map_err(|error| match failed(error) {
        // The log may already hold it: a crash before the next commit would bring it back.
        StoreError::Unavailable(what) => StoreError::Uncertain(what),
        certain => certain,
    })?;
    Ok(outcomes)
}

/// The columns sequence, body, leaf.
fn event_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Event> {
    let sequence = row.get::<_, i64>(0)?.unsigned_abs();
    Ok(Event { sequence, body: row.get(1)?, leaf: row.get(2)? })
}

fn last_event(connection: &Connection) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT coalesce(max(sequence), 0) FROM event")?
        .query_row([], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
}

fn failed(error: rusqlite::Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full,
        Some(ErrorCode::NotADatabase) => StoreError::Foreign("the database file".into()),
        _ => StoreError::Unavailable(error.to_string()),
    }
}

//! A store in a PostgreSQL database, which several server processes may share.
//!
//! Two threads carry all traffic, each with a small runtime: one reads, one commits. Calls work on any thread, inside
//! a runtime or outside, and wait on a channel. A completion may read from the store, but must not wait for another
//! commit.

mod breaker;
mod connection;
mod copy;
mod login;
mod patience;
mod plan;
mod pool;
mod queue;
mod schema;
mod settings;
mod tls;
mod writer;

pub use login::{LoginError, log_in};
pub use tokio_postgres::Client;

use std::future::Future;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio_postgres::Row;

use crate::{Completion, Event, Item, Record, Store, StoreError, Transaction, prefix_end};
use breaker::Breaker;
use connection::failed;
use copy::{Restore, Snapshot};
use patience::unavailable;
use pool::{Pool, Question};
use queue::Queue;
use settings::Settings;
use writer::Writer;

/// Default schema of the tables.
pub const SCHEMA: &str = "outlast";

/// A store in one schema of a PostgreSQL database.
pub struct PostgresStore {
    settings: Arc<Settings>,
    queue: Arc<Queue>,
    pool: Arc<Pool>,
    breaker: Arc<Breaker>,
    writer: Worker,
    // Last in drop order: a completion that the writer calls at the end may read.
    reader: Reader,
}

/// The thread that reads, and its queue.
struct Reader {
    stop: Option<oneshot::Sender<()>>,
    worker: Worker,
}

/// A thread with a runtime.
struct Worker {
    runtime: Handle,
    thread: Option<JoinHandle<()>>,
}

impl PostgresStore {
    /// Opens the store in the database that `url` names, in the schema [`SCHEMA`]; creates or upgrades its tables if
    /// necessary.
    ///
    /// The URL is `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. Unless the host is on the loopback interface or a
    /// unix socket, the connection uses TLS, and `?sslrootcert=FILE` names the trusted roots.
    ///
    /// # Errors
    /// [`StoreError::TooNew`] and [`StoreError::Foreign`] leave the database unchanged.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        Self::open_in(url, SCHEMA)
    }

    /// Like [`PostgresStore::open`], in another schema.
    pub fn open_in(url: &str, schema: &str) -> Result<Self, StoreError> {
        let settings = Arc::new(Settings::parse(url, schema)?);
        let id = outlast_crypto::random::bytes::<16>()
            .map_err(|error| unavailable(&error.to_string()))?
            .map(|byte| format!("{byte:02x}"))
            .concat();
        let pool = Arc::new(Pool::new(&settings));
        let breaker = Arc::new(Breaker::default());
        let reader = Reader::start(breaker.clone().watch(pool.clone()))?;
        let prepared = settings.clone();
        reader.worker.wait(async move { schema::prepare(&prepared).await })?;
        let queue = Arc::new(Queue::default());
        let writer = Writer::new(settings.clone(), queue.clone(), id);
        let writer = Worker::start("store-writer", writer.run())?;
        Ok(Self { settings, queue, pool, breaker, writer, reader })
    }

    fn ask(&self, question: Question) -> Result<Vec<Row>, StoreError> {
        let reading = self.breaker.begin()?;
        let pool = self.pool.clone();
        self.reader.worker.wait(async move { reading.wait(pool.ask(&question)).await })
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        // Closing the queue ends the writer after it has served what waits.
        self.queue.close();
        self.writer.join();
    }
}

impl Store for PostgresStore {
    fn read(&self, key: &str) -> Result<Option<Record>, StoreError> {
        // PostgreSQL's text cannot hold a zero byte, so no such record exists.
        if key.contains('\0') {
            return Ok(None);
        }
        let rows = self.ask(Question::Read(key.to_owned()))?;
        rows.first().map(|row| record_of(row, 0)).transpose()
    }

    fn scan(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Record)>, StoreError> {
        if prefix.contains('\0') {
            return Ok(Vec::new());
        }
        // No key contains a zero byte: the keys after "a\0..." are those after "a".
        let after = after.split('\0').next().unwrap_or_default();
        let question = Question::Scan(
            prefix.max(after).to_owned(),
            prefix_end(prefix),
            after.to_owned(),
            i64::try_from(limit).unwrap_or(i64::MAX),
        );
        let keyed = |row: &Row| {
            let key = row.try_get(0).map_err(|error| failed(&error))?;
            Ok((key, record_of(row, 1)?))
        };
        self.ask(question)?.iter().map(keyed).collect()
    }

    fn count(&self, prefix: &str) -> Result<u64, StoreError> {
        if prefix.contains('\0') {
            return Ok(0);
        }
        let rows = self.ask(Question::Count(prefix.to_owned(), prefix_end(prefix)))?;
        let count = rows.first().map(|row| row.try_get::<_, i64>(0)).transpose();
        Ok(count.map_err(|error| failed(&error))?.unwrap_or_default().unsigned_abs())
    }

    fn commit(&self, transaction: Transaction, done: Completion) {
        let expected = transaction.expectations.iter().map(|(key, _)| key);
        let mut keys = expected.chain(transaction.writes.iter().map(|(key, _)| key));
        // Checked here, it fails this transaction and not all that share its commit.
        if keys.any(|key| key.contains('\0')) {
            return done(Err(unavailable("PostgreSQL does not accept a key with a zero byte")));
        }
        self.queue.push(transaction, done);
    }

    fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.ask(Question::Events(after, limit))?.iter().map(event_of).collect()
    }

    fn leaves(&self, after: u64, limit: usize) -> Result<Vec<(u64, [u8; 32])>, StoreError> {
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let leaf = |row: &Row| {
            let sequence = row.try_get::<_, i64>(0).map_err(|error| failed(&error))?;
            Ok((sequence.unsigned_abs(), writer::leaf_of(row, 1)?))
        };
        self.ask(Question::Leaves(after, limit))?.iter().map(leaf).collect()
    }

    fn last_event(&self) -> Result<u64, StoreError> {
        writer::last_event_of(self.ask(Question::LastEvent)?.first())
    }

    fn clock_ms(&self) -> Result<Option<i64>, StoreError> {
        let rows = self.ask(Question::Clock)?;
        rows.first().map(|row| row.try_get(0).map_err(|error| failed(&error))).transpose()
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn snapshot(
        &self,
        out: &mut dyn FnMut(Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let (worker, settings) = (&self.reader.worker, self.settings.clone());
        let mut snapshot = worker.wait(async move { Snapshot::begin(&settings).await })?;
        loop {
            let (page, next) = worker.wait(async move {
                let page = snapshot.page().await?;
                Ok((page, snapshot))
            })?;
            if page.is_empty() {
                return Ok(());
            }
            page.into_iter().try_for_each(&mut *out)?;
            snapshot = next;
        }
    }

    fn restore(
        &self,
        items: &mut dyn Iterator<Item = Result<Item, StoreError>>,
    ) -> Result<(), StoreError> {
        let (worker, settings) = (&self.reader.worker, self.settings.clone());
        let mut restore = worker.wait(async move { Restore::begin(&settings).await })?;
        // The last batch ends with the items; one more page shows that none follow.
        let mut items = items.fuse();
        loop {
            let (mut batch, mut bytes) = (Vec::new(), 0);
            while batch.len() < copy::BATCH && bytes < copy::BATCH_BYTES {
                let Some(item) = items.next().transpose()? else { break };
                bytes += match &item {
                    Item::Record(_, record) => record.value.len(),
                    Item::Event(event) => event.body.len(),
                };
                batch.push(item);
            }
            if batch.is_empty() {
                return worker.wait(restore.finish());
            }
            restore = worker.wait(async move {
                restore.write(&batch).await?;
                Ok(restore)
            })?;
        }
    }
}

/// The columns version and value, from `first` on.
fn record_of(row: &Row, first: usize) -> Result<Record, StoreError> {
    let read = || {
        let version = row.try_get::<_, i64>(first)?.unsigned_abs();
        Ok(Record { version, value: row.try_get(first + 1)? })
    };
    read().map_err(|error| failed(&error))
}

/// The columns sequence, body, leaf.
fn event_of(row: &Row) -> Result<Event, StoreError> {
    let sequence = row.try_get::<_, i64>(0).map_err(|error| failed(&error))?.unsigned_abs();
    let body = row.try_get(1).map_err(|error| failed(&error))?;
    Ok(Event { sequence, body, leaf: writer::leaf_of(row, 2)? })
}

impl Reader {
    /// Starts the thread; it ends when this is dropped, and `watching` with it.
    fn start(watching: impl Future<Output = ()> + Send + 'static) -> Result<Self, StoreError> {
        let (stop, stopped) = oneshot::channel::<()>();
        let worker = Worker::start("store-reader", async move {
            tokio::select! {
                _ = stopped => {}
                () = watching => {}
            }
        })?;
        Ok(Self { stop: Some(stop), worker })
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.worker.join();
    }
}

impl Worker {
    /// Starts a thread that ends with `main`, together with all tasks on it.
    fn start(
        name: &str,
        main: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Self, StoreError> {
        let stopped = |error: std::io::Error| unavailable(&error.to_string());
        let runtime = Builder::new_current_thread().enable_all().build().map_err(stopped)?;
        let handle = runtime.handle().clone();
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || {
                runtime.block_on(main);
                // A name lookup that hangs must not delay shutdown.
                runtime.shutdown_background();
            })
            .map_err(stopped)?;
        Ok(Self { runtime: handle, thread: Some(thread) })
    }

    /// Runs `asking` on the reader's thread and waits for it here.
    fn wait<T: Send + 'static>(
        &self,
        asking: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            // The receiver lives until this call.
            let _ = sender.send(asking.await);
        });
        receiver.recv().unwrap_or_else(|_| Err(unavailable("the store is closed")))
    }

    fn join(&mut self) {
        // A completion may hold the last reference to the store; a thread must not join itself.
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

//! Connections that read. Each carries several queries at once and is replaced when it breaks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Mutex;
use tokio::time::{Duration, timeout};
use tokio_postgres::{Client, Error, Row, Statement};

use super::connection::{Connector, answer, failed, is_refusal, silent};
use super::patience::{ANSWER, unavailable};
use super::settings::Settings;
use super::writer::LAST_EVENT;
use crate::StoreError;

const READERS: usize = 4;
/// Milliseconds since 1970.
const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// A query.
pub(super) enum Question {
    /// The record under a key.
    Read(String),
    /// Records from the first key (inclusive) to the second (exclusive), after the third.
    Scan(String, String, String, i64),
    /// Events after a sequence.
    Events(i64, i64),
    /// Leaf hashes of events after a sequence.
    Leaves(i64, i64),
    /// The last event.
    LastEvent,
    /// Number of records from one key (inclusive) to another (exclusive); the first key is the prefix under which the
    /// count is stored.
    Count(String, String),
    /// The database's time.
    Clock,
}

/// A few connections.
pub(super) struct Pool(Vec<Slot>);

struct Slot {
    /// Queries in progress.
    busy: AtomicUsize,
    state: Mutex<State>,
}

struct State {
    connector: Connector,
    reader: Option<Arc<Reader>>,
}

struct Reader {
    client: Client,
    read: Statement,
    scan: Statement,
    events: Statement,
    leaves: Statement,
    last_event: Statement,
    count: Statement,
    clock: Statement,
}

/// A query in progress; it also ends when nobody waits for it any more.
struct Busy<'a>(&'a AtomicUsize);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Pool {
    /// Connects at the first query.
    pub(super) fn new(settings: &Arc<Settings>) -> Self {
        let slot = |_| Slot {
            busy: AtomicUsize::new(0),
            state: Mutex::new(State { connector: Connector::new(settings.clone()), reader: None }),
        };
        Self((0..READERS).map(slot).collect())
    }

    /// Rows that answer a query. If the connection turns out to be broken, asks once more.
    pub(super) async fn ask(&self, question: &Question) -> Result<Vec<Row>, StoreError> {
        let slot = self.0.iter().min_by_key(|slot| slot.busy.load(Ordering::Relaxed));
        let slot = slot.ok_or_else(|| unavailable("there is no connection"))?;
        slot.busy.fetch_add(1, Ordering::Relaxed);
        let _busy = Busy(&slot.busy);
        slot.ask(question).await
    }

    /// Asks with a shorter time limit than a caller has. A connection that stays silent is dropped, and the next
    /// query makes a new one.
    pub(super) async fn look(&self, patience: Duration) -> Result<(), StoreError> {
        for slot in &self.0 {
            // The connection with the fewest queries may be the only one that still works.
            let Ok(outcome) = timeout(patience, slot.ask(&Question::LastEvent)).await else {
                if let Ok(mut state) = slot.state.try_lock() {
                    state.reader = None;
                }
                return Err(silent());
            };
            outcome?;
        }
        Ok(())
    }
}

impl Slot {
    async fn ask(&self, question: &Question) -> Result<Vec<Row>, StoreError> {
        let mut is_again = false;
        loop {
            let reader = self.reader().await?;
            match timeout(ANSWER, reader.ask(question)).await {
                Ok(Ok(rows)) => return Ok(rows),
                Ok(Err(error)) if is_refusal(&error) => return Err(failed(&error)),
                Ok(Err(error)) => {
                    self.forget(&reader).await;
                    if is_again {
                        return Err(failed(&error));
                    }
                    is_again = true;
                }
                Err(_) => {
                    self.forget(&reader).await;
                    return Err(silent());
                }
            }
        }
    }

    async fn reader(&self) -> Result<Arc<Reader>, StoreError> {
        let mut state = self.state.lock().await;
        if let Some(reader) = state.reader.as_ref().filter(|reader| !reader.client.is_closed()) {
            return Ok(reader.clone());
        }
        let client = state.connector.connect().await?;
        let reader = Arc::new(answer(Reader::new(client)).await?);
        state.reader = Some(reader.clone());
        Ok(reader)
    }

    /// The next query gets a new connection; queries in progress keep the old one to the end.
    async fn forget(&self, broken: &Arc<Reader>) {
        let mut state = self.state.lock().await;
        state.reader.take_if(|reader| Arc::ptr_eq(reader, broken));
    }
}

impl Reader {
    async fn new(client: Client) -> Result<Self, Error> {
        let (read, scan, events, leaves, last_event, count, clock) = tokio::try_join!(
            client.prepare("SELECT version, value FROM record WHERE key = $1"),
            client.prepare(
                "SELECT key, version, value FROM record
                 WHERE key >= $1 AND key < $2 AND key > $3 ORDER BY key LIMIT $4",
            ),
            client.prepare(
                "SELECT sequence, body, leaf FROM event
                 WHERE sequence > $1 ORDER BY sequence LIMIT $2",
            ),
            client.prepare(
                "SELECT sequence, leaf FROM event WHERE sequence > $1 ORDER BY sequence LIMIT $2",
            ),
            client.prepare(LAST_EVENT),
            client.prepare(
                "SELECT coalesce((SELECT value FROM tally WHERE prefix = $1),
                                 (SELECT count(*) FROM record WHERE key >= $1 AND key < $2))",
            ),
            client.prepare(CLOCK),
        )?;
        Ok(Self { client, read, scan, events, leaves, last_event, count, clock })
    }

    async fn ask(&self, question: &Question) -> Result<Vec<Row>, Error> {
        let client = &self.client;
        match question {
            Question::Read(key) => client.query(&self.read, &[key]).await,
            Question::Scan(from, before, after, limit) => {
                client.query(&self.scan, &[from, before, after, limit]).await
            }
            Question::Events(after, limit) => client.query(&self.events, &[after, limit]).await,
            Question::Leaves(after, limit) => client.query(&self.leaves, &[after, limit]).await,
            Question::LastEvent => client.query(&self.last_event, &[]).await,
            Question::Count(prefix, end) => client.query(&self.count, &[prefix, end]).await,
            Question::Clock => client.query(&self.clock, &[]).await,
        }
    }
}

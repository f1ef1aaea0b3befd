//! Group commit to the database.
//!
//! Every writer first locks the row of the version counter, so that the writers of all processes take turns. A group
//! costs two round trips: lock and read; write and COMMIT.
//!
//! If a connection breaks after COMMIT was sent, the outcome is unknown. So each group writes its number to a row of
//! this process. Later, under the same lock, that row shows whether the group was committed: it cannot still be in
//! progress because it would hold the lock. (`pg_xact_status` does not serve: after a crash of the database the
//! number of a lost transaction is assigned again.)

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Row, Statement};

use super::connection::{Connector, answer, failed, is_refusal, is_transient, silent};
use super::patience::{ANSWER, unavailable};
use super::plan::{self, Ground, Plan};
use super::queue::Queue;
use super::schema::SCHEMA_VERSION;
use super::settings::Settings;
use crate::{StoreError, Transaction, complete};

/// Longest time to find out the outcome of a commit whose answer was lost.
const CERTAINTY: Duration = Duration::from_secs(30);
/// Attempts per group.
const ATTEMPTS: usize = 3;

/// Blocks all other writers until the transaction ends.
pub(super) const LOCK: &str = "SELECT value FROM counter WHERE name = 'version' FOR UPDATE";
/// Sequence and link of the last event.
pub(super) const LAST_EVENT: &str = "SELECT sequence FROM event ORDER BY sequence DESC LIMIT 1";
pub(super) const SET_COUNTER: &str = "UPDATE counter SET value = $1 WHERE name = 'version'";
pub(super) const APPEND: &str =
    "INSERT INTO event SELECT * FROM unnest($1::bigint[], $2::bytea[], $3::bytea[])";

/// Prefixes, with the number of records under each. Prefixes without a stored count are counted.
const TALLIES: &str = "SELECT named.prefix, coalesce(tally.value,
         (SELECT count(*) FROM record WHERE key >= named.prefix AND key < named.prefix || chr(127)))
     FROM unnest($1::text[]) AS named (prefix) LEFT JOIN tally ON tally.prefix = named.prefix";

/// The only task of this process that writes.
pub(super) struct Writer {
    queue: Arc<Queue>,
    connector: Connector,
    connection: Option<Connection>,
    /// Name of this process in the table `writer`.
    id: String,
    /// Number of the last group that was tried.
    number: i64,
}

struct Connection {
    client: Client,
    lock: Statement,
    schema: Statement,
    versions: Statement,
    tallies: Statement,
    last_event: Statement,
    put: Statement,
    delete: Statement,
    append: Statement,
    prune: Statement,
    tally: Statement,
    count: Statement,
    sign: Statement,
}

/// Why a group was not committed, or may not have been.
enum Failure {
    /// Nothing was written, and another attempt would fail too.
    Refused(StoreError),
    /// Nothing was written; the next attempt may succeed.
    Again(StoreError),
    /// COMMIT was sent but not answered. Contains the outcomes in case it took effect.
    Open(Vec<Result<(), StoreError>>, StoreError),
}

impl Writer {
    pub(super) fn new(settings: Arc<Settings>, queue: Arc<Queue>, id: String) -> Self {
        Self { queue, connector: Connector::new(settings), connection: None, id, number: 0 }
    }

    /// Commits group after group, until the queue is closed.
    pub(super) async fn run(mut self) {
        while let Some(group) = self.queue.next().await {
            let (transactions, completions): (Vec<_>, Vec<_>) = group.into_iter().unzip();
            complete(completions, self.commit(&transactions).await);
        }
    }

    async fn commit(
        &mut self,
        group: &[Transaction],
    ) -> Result<Vec<Result<(), StoreError>>, StoreError> {
        let mut last = unavailable("the database is busy");
        for _ in 0..ATTEMPTS {
            match self.attempt(group).await {
                Ok(outcomes) => return Ok(outcomes),
                Err(Failure::Refused(error)) => return Err(error),
                Err(Failure::Again(error)) => last = error,
                Err(Failure::Open(outcomes, error)) => {
                    tracing::warn!(%error, "no answer to a COMMIT; checking whether it was carried out");
                    if self.was_committed(&error).await? {
                        return Ok(outcomes);
                    }
                    last = error;
                }
            }
        }
        Err(last)
    }

    /// One attempt. Keeps the connection only if it is known to be outside a transaction.
    async fn attempt(
        &mut self,
        group: &[Transaction],
    ) -> Result<Vec<Result<(), StoreError>>, Failure> {
        let connection = match self.connection.take() {
            Some(connection) if !connection.client.is_closed() => connection,
            _ => self.connect().await.map_err(Failure::Refused)?,
        };
        self.number += 1;
        let ground = match timeout(ANSWER, connection.begin(group)).await {
            Ok(rows) => rows.map_err(before_commit)?.ground().map_err(Failure::Refused)?,
            Err(_) => return Err(Failure::Refused(silent())),
        };
        let mut plan = Plan::new(group, ground);
        if plan.is_void() {
            if answer(connection.client.batch_execute("ROLLBACK")).await.is_ok() {
                self.connection = Some(connection);
            }
            return Ok(plan.outcomes);
        }
        let written = timeout(ANSWER, connection.write(&plan, &self.id, self.number)).await;
        let outcomes = std::mem::take(&mut plan.outcomes);
        match written {
            Ok(Ok(())) => {
                self.connection = Some(connection);
                Ok(outcomes)
            }
            // A refused statement turned COMMIT into a rollback.
            Ok(Err(error)) if is_refusal(&error) => Err(before_commit(error)),
            Ok(Err(error)) => Err(Failure::Open(outcomes, failed(&error))),
            Err(_) => Err(Failure::Open(outcomes, silent())),
        }
    }

    async fn connect(&mut self) -> Result<Connection, StoreError> {
        let client = self.connector.connect().await?;
        answer(Connection::new(client)).await
    }

    /// Whether the last group was committed, which a new connection finds out.
    async fn was_committed(&mut self, lost: &StoreError) -> Result<bool, StoreError> {
        let deadline = Instant::now() + CERTAINTY;
        loop {
            let error = match timeout_at(deadline, self.last_committed()).await {
                Ok(Ok(last)) => return Ok(last == Some(self.number)),
                Ok(Err(error)) => error,
                Err(_) => silent(),
            };
            if Instant::now() >= deadline {
                return Err(StoreError::Uncertain(format!("{lost}; {error}")));
            }
            // Waiting transactions get the error now; none of them was begun.
            self.queue.refuse(&error);
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Number of this process's last committed group.
    async fn last_committed(&mut self) -> Result<Option<i64>, StoreError> {
        let client = self.connector.connect().await?;
        let look = async {
            client.batch_execute("BEGIN").await?;
            client.query_one(LOCK, &[]).await?;
            let row =
                client.query_opt("SELECT last FROM writer WHERE id = $1", &[&self.id]).await?;
            client.batch_execute("ROLLBACK").await?;
            row.map(|row| row.try_get(0)).transpose()
        };
        answer(look).await
    }
}

fn before_commit(error: Error) -> Failure {
    if is_transient(&error) || !is_refusal(&error) {
        return Failure::Again(failed(&error));
    }
    Failure::Refused(failed(&error))
}

type Columns<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Answer of the database to the first round trip.
struct Looked {
    lock: Row,
    schema: Row,
    versions: Vec<Row>,
    tallies: Vec<Row>,
    last_event: Option<Row>,
}

impl Connection {
    async fn new(client: Client) -> Result<Self, Error> {
        let (lock, schema, versions, tallies, last_event, put, delete, append, prune, tally, count, sign) = tokio::try_join!(
            client.prepare(LOCK),
            client.prepare("SELECT schema_version FROM meta"),
            client.prepare("SELECT key, version FROM record WHERE key = ANY ($1)"),
            client.prepare(TALLIES),
            client.prepare(LAST_EVENT),
            client.prepare(
                "INSERT INTO record SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[])
                 ON CONFLICT (key) DO UPDATE SET version = excluded.version, value = excluded.value",
            ),
            client.prepare("DELETE FROM record WHERE key = ANY ($1)"),
            client.prepare(APPEND),
            client.prepare("DELETE FROM event WHERE sequence <= $1"),
            client.prepare(
                "INSERT INTO tally SELECT * FROM unnest($1::text[], $2::bigint[])
                 ON CONFLICT (prefix) DO UPDATE SET value = excluded.value",
            ),
            client.prepare(SET_COUNTER),
            client.prepare(
                "INSERT INTO writer VALUES ($1, $2, now())
                 ON CONFLICT (id) DO UPDATE SET last = excluded.last, seen = excluded.seen",
            ),
        )?;
        Ok(Self {
            client,
            lock,
            schema,
            versions,
            tallies,
            last_event,
            put,
            delete,
            append,
            prune,
            tally,
            count,
            sign,
        })
    }

    /// First round trip. The statements are sent in this order without waiting for answers. Each sees what was
    /// committed before it began, and so everything that was committed before the lock was taken.
    async fn begin(&self, group: &[Transaction]) -> Result<Looked, Error> {
        let (keys, prefixes) = (plan::looked_at(group), plan::prefixes(group));
        let keys: Columns<'_> = &[&keys];
        let tallies = async {
            match prefixes.is_empty() {
                true => Ok(Vec::new()),
                false => self.client.query(&self.tallies, &[&prefixes]).await,
            }
        };
        let (begun, lock, schema, versions, tallies, last_event) = tokio::join!(
            biased;
            self.client.batch_execute("BEGIN"),
            self.client.query_one(&self.lock, &[]),
            self.client.query_one(&self.schema, &[]),
            self.client.query(&self.versions, keys),
            tallies,
            self.client.query_opt(&self.last_event, &[]),
        );
        begun?;
        Ok(Looked {
            lock: lock?,
            schema: schema?,
            versions: versions?,
            tallies: tallies?,
            last_event: last_event?,
        })
    }

    /// Second round trip. The first error counts; later ones follow from it.
    async fn write(&self, plan: &Plan<'_>, id: &str, number: i64) -> Result<(), Error> {
        let (puts, deletes, events) = (&plan.puts, &plan.deletes, &plan.events);
        let put: Columns<'_> = &[&puts.keys, &puts.versions, &puts.values];
        let delete: Columns<'_> = &[deletes];
        let append: Columns<'_> = &[&events.sequences, &events.bodies, &events.leaves];
        let (count, sign): (Columns<'_>, Columns<'_>) = (&[&plan.version], &[&id, &number]);
        let prune: Columns<'_> = &[&plan.prune];
        let tally: Columns<'_> = &[&plan.tallies.prefixes, &plan.tallies.values];
        let (put, deleted, appended, pruned, tallied, counted, signed, committed) = tokio::join!(
            biased;
            self.execute(&self.put, put, puts.keys.len()),
            self.execute(&self.delete, delete, deletes.len()),
            self.execute(&self.append, append, events.sequences.len()),
            self.execute(&self.prune, prune, usize::from(plan.prune.is_some())),
            self.execute(&self.tally, tally, plan.tallies.prefixes.len()),
            self.execute(&self.count, count, 1),
            self.execute(&self.sign, sign, 1),
            self.client.batch_execute("COMMIT"),
        );
        for statement in [put, deleted, appended, pruned, tallied, counted, signed] {
            statement?;
        }
        committed
    }

    /// Executes a statement on `rows` rows, unless there are none.
    async fn execute(
        &self,
        statement: &Statement,
        columns: Columns<'_>,
        rows: usize,
    ) -> Result<(), Error> {
        if rows > 0 {
            self.client.execute(statement, columns).await?;
        }
        Ok(())
    }
}

impl Looked {
    fn ground(&self) -> Result<Ground, StoreError> {
        let read = || {
            let version = self.lock.try_get::<_, i64>(0)?;
            let schema = self.schema.try_get::<_, i64>(0)?;
            let number_of =
                |row: &Row| Ok((row.try_get(0)?, row.try_get::<_, i64>(1)?.unsigned_abs()));
            let versions = self.versions.iter().map(number_of).collect::<Result<_, Error>>()?;
            let tallies = self.tallies.iter().map(number_of).collect::<Result<_, Error>>()?;
            Ok((version.unsigned_abs(), schema, versions, tallies))
        };
        let (version, schema, versions, tallies) = read().map_err(|error: Error| failed(&error))?;
        // A newer version of Outlast has upgraded the tables in the meantime.
        if schema != i64::from(SCHEMA_VERSION) {
            let found = u32::try_from(schema).unwrap_or(u32::MAX);
            return Err(StoreError::TooNew { found, known: SCHEMA_VERSION });
        }
        Ok(Ground {
            versions,
            tallies,
            version,
            last_event: last_event_of(self.last_event.as_ref())?,
        })
    }
}

/// Parses the answer to [`LAST_EVENT`].
pub(super) fn last_event_of(row: Option<&Row>) -> Result<u64, StoreError> {
    let Some(row) = row else { return Ok(0) };
    let sequence = row.try_get::<_, i64>(0).map_err(|error| failed(&error))?;
    Ok(sequence.unsigned_abs())
}

/// Reads a leaf hash from this column.
pub(super) fn leaf_of(row: &Row, column: usize) -> Result<[u8; 32], StoreError> {
    let bytes = row.try_get::<_, &[u8]>(column).map_err(|error| failed(&error))?;
    bytes.try_into().map_err(|_| unavailable("an event's leaf hash is not 32 bytes long"))
}

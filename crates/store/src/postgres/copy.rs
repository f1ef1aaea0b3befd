//! The whole store in the database: read as of one point in time, and filled from such a copy.

use tokio_postgres::{Client, Row};

use super::connection::{self, answer, failed};
use super::patience::unavailable;
use super::plan::{Columns, Events};
use super::settings::Settings;
use super::writer::{APPEND, LOCK, SET_COUNTER};
use super::{event_of, record_of};
use crate::{Item, StoreError};

/// Rows per page of a snapshot.
const PAGE: usize = 500;
/// Items per batch of a restore, and the bytes after which a batch takes no more.
pub(super) const BATCH: usize = 500;
pub(super) const BATCH_BYTES: usize = 8 << 20;

/// The program that writes or reads the copy may be slow, so the database waits longer than usual.
const PATIENCE: &str = "SET idle_in_transaction_session_timeout = '10min'; ";

/// A transaction on its own connection, which sees the store as it was at the start.
pub(super) struct Snapshot {
    client: Client,
    cursors: &'static [&'static str],
}

impl Snapshot {
    pub(super) async fn begin(settings: &Settings) -> Result<Self, StoreError> {
        let client = connection::connect(settings).await?;
        let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
             DECLARE records NO SCROLL CURSOR FOR SELECT key, version, value FROM record ORDER BY key;
             DECLARE events NO SCROLL CURSOR FOR SELECT sequence, body, leaf FROM event ORDER BY sequence";
        answer(client.batch_execute(&format!("{PATIENCE}{begin}"))).await?;
        Ok(Self { client, cursors: &["records", "events"] })
    }

    /// Returns the next items; none after the last.
    pub(super) async fn page(&mut self) -> Result<Vec<Item>, StoreError> {
        while let Some((cursor, others)) = self.cursors.split_first() {
            let fetch = format!("FETCH FORWARD {PAGE} FROM {cursor}");
            let rows = answer(self.client.query(&fetch, &[])).await?;
            if !rows.is_empty() {
                let is_record = *cursor == "records";
                return rows.iter().map(|row| item_of(row, is_record)).collect();
            }
            self.cursors = others;
        }
        Ok(Vec::new())
    }
}

fn item_of(row: &Row, is_record: bool) -> Result<Item, StoreError> {
    if is_record {
        let key = row.try_get(0).map_err(|error| failed(&error))?;
        return Ok(Item::Record(key, record_of(row, 1)?));
    }
    Ok(Item::Event(event_of(row)?))
}

/// One transaction, so that an interrupted restore leaves the store empty.
pub(super) struct Restore {
    client: Client,
    highest: u64,
}

impl Restore {
    /// Takes the writers' lock and checks that the store is empty.
    pub(super) async fn begin(settings: &Settings) -> Result<Self, StoreError> {
        let client = connection::connect(settings).await?;
        answer(client.batch_execute(&format!("{PATIENCE}BEGIN"))).await?;
        let counter = answer(client.query_one(LOCK, &[])).await?;
        let highest = counter.try_get::<_, i64>(0).map_err(|error| failed(&error))?.unsigned_abs();
        let look = "SELECT EXISTS (SELECT 1 FROM record) OR EXISTS (SELECT 1 FROM event)";
        let found = answer(client.query_one(look, &[])).await?;
        if found.try_get(0).map_err(|error| failed(&error))? {
            return Err(StoreError::NotEmpty);
        }
        // Removes counts of records that no longer exist.
        answer(client.batch_execute("DELETE FROM tally")).await?;
        Ok(Self { client, highest })
    }

    /// Writes a batch of items.
    pub(super) async fn write(&mut self, items: &[Item]) -> Result<(), StoreError> {
        let (mut records, mut events) = (Columns::default(), Events::default());
        for item in items {
            match item {
                Item::Record(key, record) => {
                    if key.contains('\0') {
                        return Err(unavailable(
                            "PostgreSQL does not accept a key with a zero byte",
                        ));
                    }
                    self.highest = self.highest.max(record.version);
                    records.push(key, record.version, &record.value);
                }
                Item::Event(event) => events.push(event.sequence, &event.body, &event.leaf),
            }
        }
        let put = "INSERT INTO record SELECT * FROM unnest($1::text[], $2::bigint[], $3::bytea[])";
        let writing = async {
            self.client.execute(put, &[&records.keys, &records.versions, &records.values]).await?;
            self.client.execute(APPEND, &[&events.sequences, &events.bodies, &events.leaves]).await
        };
        answer(writing).await.map(drop)
    }

    /// Ends the restore; before that it is invisible to others.
    pub(super) async fn finish(self) -> Result<(), StoreError> {
        answer(self.client.execute(SET_COUNTER, &[&self.highest.cast_signed()])).await?;
        answer(self.client.batch_execute("COMMIT")).await.map_err(|error| {
            StoreError::Uncertain(format!(
                "the restore was not confirmed: {error}; the store is either complete or empty"
            ))
        })
    }
}

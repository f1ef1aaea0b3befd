//! A whole SQLite store: read as of one point in time, and filled from such a copy.

use rusqlite::{Connection, TransactionBehavior, params};

use super::{event_of, failed};
use crate::{Item, Record, StoreError};

/// One read transaction on its own connection, which does not see later commits.
pub(super) fn snapshot(
    connection: &mut Connection,
    out: &mut dyn FnMut(Item) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let sql = connection.transaction().map_err(failed)?;
    let mut records =
        sql.prepare("SELECT key, version, value FROM record ORDER BY key").map_err(failed)?;
    let mut rows = records.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let version = row.get::<_, i64>(1).map_err(failed)?.unsigned_abs();
        let record = Record { version, value: row.get(2).map_err(failed)? };
        out(Item::Record(row.get(0).map_err(failed)?, record))?;
    }
    let mut events =
        sql.prepare("SELECT sequence, body, leaf FROM event ORDER BY sequence").map_err(failed)?;
    let mut rows = events.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        out(Item::Event(event_of(row).map_err(failed)?))?;
    }
    Ok(())
}

/// One write transaction, so that an interrupted restore leaves the store empty.
pub(super) fn restore(
    connection: &mut Connection,
    items: &mut dyn Iterator<Item = Result<Item, StoreError>>,
) -> Result<(), StoreError> {
    let sql =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    let found = "SELECT EXISTS (SELECT 1 FROM record) OR EXISTS (SELECT 1 FROM event)";
    if sql.query_row(found, [], |row| row.get(0)).map_err(failed)? {
        return Err(StoreError::NotEmpty);
    }
    // Removes counts of records that no longer exist.
    sql.execute("DELETE FROM tally", []).map_err(failed)?;
    let mut highest = 0;
    {
        let mut put = sql.prepare("INSERT INTO record VALUES (?1, ?2, ?3)").map_err(failed)?;
        let mut append = sql.prepare("INSERT INTO event VALUES (?1, ?2, ?3)").map_err(failed)?;
        for item in items {
            match item? {
                Item::Record(key, record) => {
                    let version = record.version.cast_signed();
                    highest = highest.max(version);
                    put.execute(params![key, version, record.value]).map_err(failed)?;
                }
                Item::Event(event) => {
                    let sequence = event.sequence.cast_signed();
                    append.execute(params![sequence, event.body, event.leaf]).map_err(failed)?;
                }
            }
        }
    }
    sql.execute("UPDATE counter SET value = max(value, ?1) WHERE name = 'version'", [highest])
        .map_err(failed)?;
    sql.commit().map_err(failed)
}

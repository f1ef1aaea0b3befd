//! The schema of the SQLite file, and upgrades from older ones.

use std::path::Path;

use rusqlite::{Connection, Transaction, params};

use super::failed;
use crate::{StoreError, chain};

/// "Outl" in ASCII: SQLite's application id of our databases.
const APPLICATION_ID: i32 = 0x4f75_746c;
/// Schema version that this build writes.
const SCHEMA_VERSION: u32 = MIGRATIONS.len() as u32;
/// Upgrades from schema version `index` to `index + 1`.
const MIGRATIONS: &[fn(&Transaction<'_>) -> rusqlite::Result<()>] =
    &[tables, chain_events, leaf_hashes, tallies];

/// Creates a new database, upgrades an old one, and refuses a foreign or too new one.
pub(super) fn prepare(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let found = version(connection, path)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    // FULL: the write-ahead log is synced before a commit returns.
    connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    if found == SCHEMA_VERSION {
        return Ok(());
    }
    let upgrade = connection.transaction().map_err(failed)?;
    for migrate in MIGRATIONS.iter().skip(found as usize) {
        migrate(&upgrade).map_err(failed)?;
    }
    upgrade.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    upgrade.pragma_update(None, "user_version", SCHEMA_VERSION).map_err(failed)?;
    upgrade.commit().map_err(failed)
}

/// Refuses a database that cannot be read without an upgrade.
pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    match version(connection, path)? {
        SCHEMA_VERSION => Ok(()),
        0 => Err(StoreError::Foreign(path.display().to_string())),
        found => Err(StoreError::Unavailable(format!(
            "its schema version {found} is older than {SCHEMA_VERSION}; a server upgrades it when it starts"
        ))),
    }
}

/// Schema version of the database; 0 if it is empty.
fn version(connection: &Connection, path: &Path) -> Result<u32, StoreError> {
    let foreign = || StoreError::Foreign(path.display().to_string());
    let pragma = |name: &str| {
        connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(failed)
    };
    let application = pragma("application_id")?;
    let found = u32::try_from(pragma("user_version")?).map_err(|_| foreign())?;
    let tables: i64 = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    if application != i64::from(APPLICATION_ID) && (application != 0 || tables != 0) {
        return Err(foreign());
    }
    if found > SCHEMA_VERSION {
        return Err(StoreError::TooNew { found, known: SCHEMA_VERSION });
    }
    Ok(found)
}

fn tables(sql: &Transaction<'_>) -> rusqlite::Result<()> {
    sql.execute_batch(
        "CREATE TABLE record (key TEXT PRIMARY KEY, version INTEGER NOT NULL, value BLOB NOT NULL) WITHOUT ROWID;
         CREATE TABLE event (sequence INTEGER PRIMARY KEY, body BLOB NOT NULL);
         CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
         INSERT INTO counter VALUES ('version', 0);",
    )
}

/// Adds the table of record counts per prefix.
fn tallies(sql: &Transaction<'_>) -> rusqlite::Result<()> {
    sql.execute_batch(
        "CREATE TABLE tally (prefix TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    )
}

/// Links the events to a hash chain, including those that already exist.
fn chain_events(sql: &Transaction<'_>) -> rusqlite::Result<()> {
    sql.execute_batch("ALTER TABLE event ADD COLUMN chain BLOB NOT NULL DEFAULT x''")?;
    let mut page = sql.prepare(
        "SELECT sequence, body FROM event WHERE sequence > ?1 ORDER BY sequence LIMIT 500",
    )?;
    let mut update = sql.prepare("UPDATE event SET chain = ?2 WHERE sequence = ?1")?;
    let (mut sequence, mut link) = (0_i64, chain::START);
    loop {
        let rows = page
            .query_map([sequence], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<Vec<(i64, Vec<u8>)>>>()?;
        if rows.is_empty() {
            return Ok(());
        }
        for (number, body) in rows {
            sequence = number;
            link = chain::next(&link, number.unsigned_abs(), &body);
            update.execute(params![number, link])?;
        }
    }
}

/// Turns the events into the leaves of a Merkle log. The links of the old chain need not be kept to verify it: they
/// follow from the events.
fn leaf_hashes(sql: &Transaction<'_>) -> rusqlite::Result<()> {
    sql.execute_batch("ALTER TABLE event RENAME COLUMN chain TO leaf")?;
    let mut page = sql.prepare(
        "SELECT sequence, body FROM event WHERE sequence > ?1 ORDER BY sequence LIMIT 500",
    )?;
    let mut update = sql.prepare("UPDATE event SET leaf = ?2 WHERE sequence = ?1")?;
    let mut after = 0_i64;
    loop {
        let rows = page
            .query_map([after], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<Vec<(i64, Vec<u8>)>>>()?;
        let Some((last, _)) = rows.last() else { return Ok(()) };
        after = *last;
        for (sequence, body) in rows {
            update.execute(params![sequence, outlast_tlog::hash::leaf(&body)])?;
        }
    }
}

//! Record counts per prefix, in a table of their own.

use rusqlite::{Connection, OptionalExtension, params};

use crate::{Transaction, prefix_end, tally};

/// Number of records under a prefix.
pub(super) fn count(connection: &Connection, prefix: &str) -> rusqlite::Result<u64> {
    match kept(connection, prefix)? {
        Some(count) => Ok(count),
        None => counted(connection, prefix),
    }
}

/// Changes the counts as the transaction's writes, which follow, will change the records. Returns whether the limits
/// allow it.
pub(super) fn change(sql: &Connection, transaction: &Transaction) -> rusqlite::Result<bool> {
    if transaction.tallies.is_empty() {
        return Ok(true);
    }
    let mut look = sql.prepare_cached("SELECT 1 FROM record WHERE key = ?1")?;
    let mut after = Vec::with_capacity(transaction.tallies.len());
    for (tally, change) in tally::changes(transaction, |key| look.exists([key]))? {
        let before = match kept(sql, &tally.prefix)? {
            Some(count) => count,
            None => {
                let count = counted(sql, &tally.prefix)?;
                keep(sql, &tally.prefix, count)?;
                count
            }
        };
        let Some(count) = tally.after(before, change) else { return Ok(false) };
        if count != before {
            after.push((&tally.prefix, count));
        }
    }
    for (prefix, count) in after {
        keep(sql, prefix, count)?;
    }
    Ok(true)
}

fn kept(connection: &Connection, prefix: &str) -> rusqlite::Result<Option<u64>> {
    connection
        .prepare_cached("SELECT value FROM tally WHERE prefix = ?1")?
        .query_row([prefix], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
        .optional()
}

fn counted(connection: &Connection, prefix: &str) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT count(*) FROM record WHERE key >= ?1 AND key < ?2")?
        .query_row([prefix, &prefix_end(prefix)], |row| Ok(row.get::<_, i64>(0)?.unsigned_abs()))
}

fn keep(sql: &Connection, prefix: &str, count: u64) -> rusqlite::Result<()> {
    let keep = "INSERT INTO tally VALUES (?1, ?2) ON CONFLICT (prefix) DO UPDATE SET value = ?2";
    sql.prepare_cached(keep)?.execute(params![prefix, count.cast_signed()]).map(drop)
}

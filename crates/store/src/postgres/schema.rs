//! The tables in the database: their schema, creation and upgrades.

use tokio::time::{Duration, timeout};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::connection::{self, failed};
use super::patience::unavailable;
use super::settings::Settings;
use crate::StoreError;

/// "Outl" in ASCII: in the table `meta` it marks a schema as Outlast's.
const APPLICATION_ID: i64 = 0x4f75_746c;
/// The schema that this build reads and writes.
pub(super) const SCHEMA_VERSION: u32 = MIGRATIONS.len() as u32;
/// Statements that bring schema version `index` to `index + 1`.
const MIGRATIONS: &[&str] = &[
    r#"
    CREATE TABLE meta (application_id BIGINT NOT NULL, schema_version BIGINT NOT NULL);
    INSERT INTO meta VALUES (0, 0);
    CREATE TABLE record (key TEXT COLLATE "C" PRIMARY KEY, version BIGINT NOT NULL, value BYTEA NOT NULL);
    CREATE TABLE event (sequence BIGINT PRIMARY KEY, body BYTEA NOT NULL, chain BYTEA NOT NULL);
    CREATE TABLE counter (name TEXT PRIMARY KEY, value BIGINT NOT NULL);
    INSERT INTO counter VALUES ('version', 0);
    -- The last group of commits of each process that writes: see `Writer`.
    CREATE TABLE writer (id TEXT PRIMARY KEY, last BIGINT NOT NULL, seen TIMESTAMPTZ NOT NULL);
"#,
    r#"
    -- The events become the leaves of a Merkle log (RFC 6962, section 2.1).
    ALTER TABLE event RENAME COLUMN chain TO leaf;
    UPDATE event SET leaf = sha256('\x00'::bytea || body);
"#,
    r#"
    -- The numbers of records below prefixes.
    CREATE TABLE tally (prefix TEXT COLLATE "C" PRIMARY KEY, value BIGINT NOT NULL);
"#,
];

/// Longest time that an upgrade may take while other processes wait for it.
const UPGRADE: Duration = Duration::from_secs(300);

/// Creates new tables, upgrades old ones, and refuses foreign or too new ones.
pub(super) async fn prepare(settings: &Settings) -> Result<(), StoreError> {
    let client = connection::connect(settings).await?;
    timeout(UPGRADE, upgrade(&client, &settings.schema))
        .await
        .unwrap_or_else(|_| Err(unavailable("the upgrade of the tables takes too long")))
}

async fn upgrade(client: &Client, schema: &str) -> Result<(), StoreError> {
    // The lock makes processes that start at the same time take turns; it ends with the transaction.
    let begin = format!(
        "BEGIN; SET LOCAL statement_timeout = '{0}s'; SET LOCAL lock_timeout = '{0}s';
         SELECT pg_advisory_xact_lock({APPLICATION_ID});",
        UPGRADE.as_secs()
    );
    client.batch_execute(&begin).await.map_err(|error| failed(&error))?;
    let found = version(client, schema).await?;
    if found > SCHEMA_VERSION {
        return Err(StoreError::TooNew { found, known: SCHEMA_VERSION });
    }
    if found < SCHEMA_VERSION {
        let mut statements = String::new();
        if found > 0 {
            // Nobody commits in the meantime, and servers of an older version will see the new version.
            statements.push_str("SELECT value FROM counter WHERE name = 'version' FOR UPDATE;");
        }
        statements.extend(MIGRATIONS.iter().skip(found as usize).copied());
        statements.push_str(&format!(
            "UPDATE meta SET application_id = {APPLICATION_ID}, schema_version = {SCHEMA_VERSION};"
        ));
        client.batch_execute(&statements).await.map_err(|error| failed(&error))?;
    }
    // Removes rows of processes that ended long ago; a process that is alive but idle inserts its row again.
    let end = "DELETE FROM writer WHERE seen < now() - interval '30 days'; COMMIT";
    client.batch_execute(end).await.map_err(|error| failed(&error))?;
    let sync = client.query_one("SHOW fsync", &[]).await.map_err(|error| failed(&error))?;
    if sync.try_get::<_, &str>(0).is_ok_and(|setting| setting == "off") {
        tracing::warn!("the database runs with fsync=off: a crash of its machine loses commits");
    }
    Ok(())
}

/// Version of the tables in the schema, which is created if necessary; 0 if it is empty.
async fn version(client: &Client, schema: &str) -> Result<u32, StoreError> {
    let foreign = || StoreError::Foreign(format!("the schema {schema} of the database"));
    let look = "SELECT to_regnamespace($1) IS NOT NULL,
                       EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace($1)),
                       to_regclass($1 || '.meta') IS NOT NULL";
    let row = client.query_one(look, &[&schema]).await.map_err(|error| failed(&error))?;
    let is = |column: usize| row.try_get::<_, bool>(column).map_err(|error| failed(&error));
    if !is(0)? {
        // Not IF NOT EXISTS, because that needs the right to create schemas even if the schema exists.
        let create = format!("CREATE SCHEMA \"{schema}\"");
        client.batch_execute(&create).await.map_err(|error| failed(&error))?;
    }
    if !is(1)? {
        return Ok(0);
    }
    if !is(2)? {
        return Err(foreign());
    }
    let meta = client.query_opt("SELECT application_id, schema_version FROM meta", &[]).await;
    let meta = match meta {
        Ok(meta) => meta.ok_or_else(foreign)?,
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_COLUMN) => return Err(foreign()),
        Err(error) => return Err(failed(&error)),
    };
    match (meta.try_get(0), meta.try_get::<_, i64>(1).map(u32::try_from)) {
        (Ok(APPLICATION_ID), Ok(Ok(found))) => Ok(found),
        _ => Err(foreign()),
    }
}

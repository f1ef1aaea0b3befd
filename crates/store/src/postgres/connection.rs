//! One connection to the database: made within a time limit and not too often; classifies its errors.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_postgres::error::{DbError, Severity, SqlState};
use tokio_postgres::{Client, Connection, Error, NoTls, Socket};

use super::patience::{ANSWER, CONNECT, unavailable};
use super::settings::Settings;
use crate::StoreError;

/// Settings of every session. `idle_in_transaction` releases the lock of a process that hangs or is cut off.
const SESSION: &str = "
    SET synchronous_commit = on;
    SET default_transaction_isolation = 'read committed';
    SET statement_timeout = '15s';
    SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '10s';
    SET client_min_messages = warning;
";

/// Makes connections. After a failure it waits before the next attempt, so that a database that is down does not make
/// every caller wait.
pub(super) struct Connector {
    settings: Arc<Settings>,
    failed: Option<Failed>,
}

struct Failed {
    error: StoreError,
    until: Instant,
    pause: Duration,
}

impl Connector {
    pub(super) fn new(settings: Arc<Settings>) -> Self {
        Self { settings, failed: None }
    }

    /// A new connection; right after a failure, the error of the last attempt.
    pub(super) async fn connect(&mut self) -> Result<Client, StoreError> {
        let mut pause = Duration::from_millis(100);
        if let Some(failed) = &self.failed {
            if Instant::now() < failed.until {
                return Err(failed.error.clone());
            }
            pause = (failed.pause * 2).min(Duration::from_secs(1));
        }
        match connect(&self.settings).await {
            Ok(client) => {
                self.failed = None;
                Ok(client)
            }
            Err(error) => {
                let until = Instant::now() + pause;
                self.failed = Some(Failed { error: error.clone(), until, pause });
                Err(error)
            }
        }
    }
}

/// Opens a new connection.
pub(super) async fn connect(settings: &Settings) -> Result<Client, StoreError> {
    let connecting = async {
        let client = match &settings.tls {
            Some(tls) => {
                let (client, connection) = settings.config.connect(tls.clone()).await?;
                drive(connection);
                client
            }
            None => {
                let (client, connection) = settings.config.connect(NoTls).await?;
                drive(connection);
                client
            }
        };
        let schema = &settings.schema;
        client
            .batch_execute(&format!("{SESSION} SET search_path = \"{schema}\", pg_temp;"))
            .await?;
        Ok(client)
    };
    match timeout(CONNECT, connecting).await {
        Ok(connected) => connected.map_err(|error| failed(&error)),
        Err(_) => Err(silent()),
    }
}

/// Carries a connection's messages until it ends.
pub(super) fn drive<T>(connection: Connection<Socket, T>)
where
    T: tokio_postgres::tls::TlsStream + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::warn!(error = describe(&error), "a connection to the database broke");
        }
    });
}

/// Awaits an answer of the database for at most [`ANSWER`].
pub(super) async fn answer<T>(
    asking: impl Future<Output = Result<T, Error>>,
) -> Result<T, StoreError> {
    match timeout(ANSWER, asking).await {
        Ok(answer) => answer.map_err(|error| failed(&error)),
        Err(_) => Err(silent()),
    }
}

/// Error message for a database that does not answer.
const SILENT: &str = "the database does not answer";

/// Error of a caller that waited long enough.
pub(super) fn silent() -> StoreError {
    unavailable(SILENT)
}

/// Whether `error` is [`silent`].
pub(super) fn is_silent(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable(what) if what == SILENT)
}

/// Whether the database refused one statement but kept the connection: the transaction is then rolled back.
pub(super) fn is_refusal(error: &Error) -> bool {
    let severity = error.as_db_error().and_then(DbError::parsed_severity);
    severity == Some(Severity::Error)
}

/// Whether the same transaction may succeed on another attempt.
pub(super) fn is_transient(error: &Error) -> bool {
    let transient = [&SqlState::T_R_SERIALIZATION_FAILURE, &SqlState::T_R_DEADLOCK_DETECTED];
    error.code().is_some_and(|code| transient.contains(&code))
}

pub(super) fn failed(error: &Error) -> StoreError {
    match error.code() {
        Some(code) if *code == SqlState::DISK_FULL => StoreError::Full,
        _ => unavailable(&describe(error)),
    }
}

/// What happened, without the values involved.
fn describe(error: &Error) -> String {
    if let Some(refusal) = error.as_db_error() {
        return format!("database: {} ({})", refusal.message(), refusal.code().code());
    }
    let mut text = format!("database: {error}");
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

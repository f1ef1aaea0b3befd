//! Keeps a hanging database from blocking readers.
//!
//! A caller waits for its read on a thread of its own. A database that is stopped, or behind a network that drops
//! packets, would block all threads one after the other, for as long as a read may take. So only a limited number of
//! callers wait at a time. Once one of them has waited in vain, all waiting callers get an error, and so do new ones
//! at once, until the database answers a probe.
//!
//! Commits do not block a thread, so this does not concern them.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;
use tokio::time::{Duration, sleep};

use super::connection::{is_silent, silent};
use super::patience::unavailable;
use super::pool::Pool;
use crate::{StoreError, limits};

/// Interval between probes of the database while somebody waits for it or it is silent.
const INTERVAL: Duration = Duration::from_secs(1);
/// Longest wait for the answer to a probe before the database counts as silent.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether the database is silent, and how many callers wait for it.
pub(super) struct Breaker {
    silent: watch::Sender<bool>,
    reading: Arc<AtomicUsize>,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { silent: watch::Sender::new(false), reading: Arc::default() }
    }
}

/// A reader's permit; released on drop.
pub(super) struct Reading {
    silent: watch::Sender<bool>,
    reading: Arc<AtomicUsize>,
}

impl Breaker {
    /// Takes a permit to read.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] at once while the database is silent or too many callers wait.
    pub(super) fn begin(&self) -> Result<Reading, StoreError> {
        if *self.silent.borrow() {
            return Err(silent());
        }
        let before = self.reading.fetch_add(1, Ordering::Relaxed);
        let reading = Reading { silent: self.silent.clone(), reading: self.reading.clone() };
        if before >= limits::WAITING_READS {
            return Err(unavailable("too many reads are waiting for the database"));
        }
        Ok(reading)
    }

    /// Probes the database while somebody waits for it or it is silent. Never ends.
    pub(super) async fn watch(self: Arc<Self>, pool: Arc<Pool>) {
        loop {
            sleep(INTERVAL).await;
            let was_silent = *self.silent.borrow();
            if !was_silent && self.reading.load(Ordering::Relaxed) == 0 {
                continue;
            }
            match pool.look(PATIENCE).await {
                Ok(()) if was_silent => {
                    tracing::warn!("the database answers again");
                    self.silent.send_replace(false);
                }
                Err(error) if is_silent(&error) => note_silent(&self.silent),
                // A database that refuses answers at once, so nobody waits for it.
                Ok(()) | Err(_) => {}
            }
        }
    }
}

impl Reading {
    /// Awaits `asking`, unless the database falls silent in the meantime.
    pub(super) async fn wait<T>(
        self,
        asking: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let mut silence = self.silent.subscribe();
        let answer = tokio::select! {
            biased;
            answer = asking => answer,
            _ = silence.wait_for(|silent| *silent) => return Err(silent()),
        };
        if answer.as_ref().is_err_and(is_silent) {
            note_silent(&self.silent);
        }
        answer
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.reading.fetch_sub(1, Ordering::Relaxed);
    }
}

fn note_silent(silent: &watch::Sender<bool>) {
    if !silent.send_replace(true) {
        tracing::error!("the database does not answer: reads fail at once until it does");
    }
}

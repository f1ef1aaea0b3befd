//! Keeps a database that hangs from holding up whoever reads.
//!
//! A caller waits on a thread of its own for what it reads. A database that is stopped, or behind a network that swallows
//! packets, would hold all threads there are, one after the other, for as long as an answer may take. So only so many wait
//! at a time; and once one has waited in vain, nobody waits any more: those that do are told, and those that come are told
//! at once, until the database answers a look from here.
//!
//! Commits wait for nothing on a thread: they are not held up here.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::watch;
use tokio::time::{Duration, sleep};

use super::connection::{is_silent, silent};
use super::patience::unavailable;
use super::pool::Pool;
use crate::{StoreError, limits};

/// Interval between looks at the database while somebody waits for it, or it is silent.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a look may take before the database is held to be silent.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whether the database is silent, and how many wait for it.
pub(super) struct Breaker {
    silent: watch::Sender<bool>,
    reading: Arc<AtomicUsize>,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { silent: watch::Sender::new(false), reading: Arc::default() }
    }
}

/// The place of one that reads; given back when it is dropped.
pub(super) struct Reading {
    silent: watch::Sender<bool>,
    reading: Arc<AtomicUsize>,
}

impl Breaker {
    /// A place among those that read.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] at once while the database is silent, or when too many wait.
    pub(super) fn begin(&self) -> Result<Reading, StoreError> {
        if *self.silent.borrow() {
            return Err(silent());
        }
        let before = self.reading.fetch_add(1, Ordering::Relaxed);
        let reading = Reading { silent: self.silent.clone(), reading: self.reading.clone() };
        if before >= limits::WAITING_READS {
            return Err(unavailable("too many reads wait for the database"));
        }
        Ok(reading)
    }

    /// Looks at the database while somebody waits for it, or it is silent. Never ends.
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
                // One that refuses does so at once: nobody waits for it.
                Ok(()) | Err(_) => {}
            }
        }
    }
}

impl Reading {
    /// What `asking` answers, unless the database falls silent meanwhile.
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

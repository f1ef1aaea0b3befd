//! Heartbeats of the servers that share a store, so that a command that must not run beside one can tell.
//!
//! A heartbeat says that a server once ran, not that it still does: to find out, read twice, some time apart, and see
//! whose count has grown. So it does not depend on any clock.

use serde::{Deserialize, Serialize};

use crate::work::Work;
use crate::{Fault, limits};

/// Prefix of the records with a [`Heartbeat`] each, by the server's id.
pub const PREFIX: &str = "server/heartbeat/";

/// A server and its last heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Its id, chosen at the start: 16 hexadecimal digits.
    pub id: String,
    /// Its host name.
    pub host: String,
    /// Its process id.
    pub process: u32,
    /// When it was started, by its own clock, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it wrote this heartbeat, by its own clock, in milliseconds since 1970.
    pub beat_ms: i64,
    /// Number of heartbeats so far.
    pub beats: u64,
}

impl Heartbeat {
    /// The next heartbeat.
    #[must_use]
    pub fn next(&self, now_ms: i64) -> Self {
        Self { beat_ms: now_ms, beats: self.beats + 1, ..self.clone() }
    }
}

/// Writes a heartbeat over the previous one.
pub fn beat(work: &mut Work<'_>, heartbeat: &Heartbeat) -> Result<(), Fault> {
    work.put(&record_key(&heartbeat.id), heartbeat)
}

/// Removes a server from the list: it has stopped, or was found not to run any more.
pub fn remove(work: &mut Work<'_>, id: &str) -> Result<(), Fault> {
    if work.exists(&record_key(id))? {
        work.delete(&record_key(id));
    }
    Ok(())
}

/// The last heartbeats, of [`limits::MAX_HEARTBEATS`] servers at most.
pub fn all(work: &Work<'_>) -> Result<Vec<Heartbeat>, Fault> {
    Ok(work.page(PREFIX, None, limits::MAX_HEARTBEATS)?.items)
}

fn record_key(id: &str) -> String {
    format!("{PREFIX}{id}")
}

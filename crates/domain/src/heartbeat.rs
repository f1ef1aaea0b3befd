//! Signs of life of the servers that share a store, so that a command that must not run beside one knows them.
//!
//! Says who has written one, and not whether they still live: whoever wants to know reads twice, some time apart, and sees
//! whose count has grown. So no clock has to be right for it.

use serde::{Deserialize, Serialize};

use crate::work::Work;
use crate::{Fault, limits};

/// Records below hold a [`Heartbeat`] each, by the server's id.
pub const PREFIX: &str = "server/heartbeat/";

/// A server and its last sign of life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Its id, given at the start: 16 hexadecimal digits.
    pub id: String,
    /// Name of its host.
    pub host: String,
    /// Id of its process there.
    pub process: u32,
    /// When it was started, by its own clock, in milliseconds since 1970.
    pub started_ms: i64,
    /// When it gave its last sign, by its own clock, in milliseconds since 1970.
    pub beat_ms: i64,
    /// How many signs it has given.
    pub beats: u64,
}

impl Heartbeat {
    /// The next sign.
    #[must_use]
    pub fn next(&self, now_ms: i64) -> Self {
        Self { beat_ms: now_ms, beats: self.beats + 1, ..self.clone() }
    }
}

/// Writes a sign of life over the one before.
pub fn beat(work: &mut Work<'_>, heartbeat: &Heartbeat) -> Result<(), Fault> {
    work.put(&record_key(&heartbeat.id), heartbeat)
}

/// Takes a server off the list: it has stopped, or was seen not to be there any more.
pub fn remove(work: &mut Work<'_>, id: &str) -> Result<(), Fault> {
    if work.exists(&record_key(id))? {
        work.delete(&record_key(id));
    }
    Ok(())
}

/// The last signs of life that there are, of [`limits::MAX_HEARTBEATS`] servers at most.
pub fn all(work: &Work<'_>) -> Result<Vec<Heartbeat>, Fault> {
    Ok(work.page(PREFIX, None, limits::MAX_HEARTBEATS)?.items)
}

fn record_key(id: &str) -> String {
    format!("{PREFIX}{id}")
}

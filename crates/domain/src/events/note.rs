//! Notes of what was told, so that what is searched for again and again is told once: a day, or an end.

use serde::{Deserialize, Serialize};

use super::table::Kind;
use crate::work::{Sweep, Work};
use crate::{Fault, limits};

/// Prefix of the notes, by kind of event and subject.
pub const PREFIX: &str = "events/told/";

/// The last event of a kind about a subject.
#[derive(Serialize, Deserialize)]
struct Note {
    /// What was told: a day, an end, a number of days.
    what: i64,
    /// Milliseconds since 1970.
    at_ms: i64,
}

impl Note {
    fn is_old(&self, now_ms: i64) -> bool {
        self.at_ms + limits::KEEP_EVENT_NOTE_MS < now_ms
    }
}

/// Whether `what` differs from the last thing that was told about a subject, and notes it. False if no target wants this kind.
pub(crate) fn is_news(
    work: &mut Work<'_>,
    kind: &'static Kind,
    subject: &str,
    what: i64,
) -> Result<bool, Fault> {
    if !super::is_wanted(work, &[kind]) {
        return Ok(false);
    }
    let record_key = format!("{PREFIX}{}/{subject}", kind.name);
    if work.get::<Note>(&record_key)?.is_some_and(|note| note.what == what) {
        return Ok(false);
    }
    let at_ms = work.now_ms();
    work.put(&record_key, &Note { what, at_ms })?;
    Ok(true)
}

/// Forgets notes whose subjects are gone or not near their end any more.
pub const FORGET: Sweep = Sweep {
    find: |work, after, limit| work.due(PREFIX, after, limit, Note::is_old),
    handle: |work, record_key, _| {
        // Read as part of the work, so that a note that is renewed in the meantime stays.
        if work.get::<Note>(record_key)?.is_some_and(|note| note.is_old(work.now_ms())) {
            work.delete(record_key);
        }
        Ok(())
    },
};

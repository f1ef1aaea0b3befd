//! Appends entries, and signs the new head: all in one transaction.

use outlast_tlog::{Checkpoint, CompactRange, hash};

use super::{HEAD, KEY, Log, LogEntry, State, Stored, TILES, entry_key, origin, read};
use crate::Fault;
use crate::audit::tiles::Edge;
use crate::audit::{Head, LogKey};
use crate::identity::{Permit, action};
use crate::work::Work;

/// Appends entries in this order; returns the index of the first one, and the log with its new head. The log begins
/// with its first entry. The permit is for the log's [`arn`](super::arn).
///
/// Two works that append at the same time conflict, since both write the head: one of them is repeated.
///
/// # Errors
/// [`Fault::Damaged`] or [`Fault::Forged`] if the log's records are not as this service wrote them.
pub fn append(
    work: &mut Work<'_>,
    arn: &str,
    entries: &[LogEntry],
    permit: &Permit<action::outlast::AddLogEntries>,
) -> Result<(u64, Log), Fault> {
    permit.opens(arn)?;
    let (key, before) = match read(work)? {
        Some(log) => (log.key, log.head.range()?),
        None => {
            let key = LogKey::generate(&origin(work)?)?;
            key.write_to(work, KEY)?;
            (key, CompactRange::default())
        }
    };
    let first = before.end();
    let mut edge = Edge::load_records(work, TILES, first)?;
    if edge.range()? != before {
        return Err(Fault::Damaged(format!("{TILES}00")));
    }
    let mut range = before;
    for (index, entry) in (first..).zip(entries) {
        let text = entry.to_text()?;
        let leaf = hash::leaf(text.as_bytes());
        range.append(&leaf).map_err(|error| Fault::Encoding(error.to_string()))?;
        edge.append(&leaf);
        work.create(&entry_key(index), &Stored { entry: text })?;
    }
    edge.write(work, TILES)?;
    let head = Head::new(&range, work.now_ms(), 0);
    let checkpoint = Checkpoint::new(&key.origin, head.size, head.root()?)
        .map_err(|error| Fault::Encoding(error.to_string()))?;
    let signed = key.sign(checkpoint, work.now())?;
    work.put(HEAD, &State { head: head.clone(), signed: signed.to_string() })?;
    Ok((first, Log { key, head, signed }))
}

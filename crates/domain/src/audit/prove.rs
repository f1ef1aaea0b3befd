//! Proofs: that an event is in the log, and that one head continues another.

use outlast_tlog::proof_file::ProofFile;
use outlast_tlog::tile::{TileError, Tree};
use outlast_tlog::{CompactRange, Hash, SignedCheckpoint, proof};

use super::tiles::StoredTiles;
use crate::Fault;
use crate::work::Work;

/// Events that are searched on each side of the position where an id's time belongs: first a few, because only
/// delayed events are further away; then more, and then all.
const NEAR: [u64; 2] = [64, 4096];
/// Events that are read in one step.
const PAGE: usize = 512;

/// Proves that entry `index` is in the log with the head `signed`; the entry itself is included as `extra`.
///
/// # Errors
/// [`Fault::Audit`] if the store differs from what was signed, so that the proof would be invalid.
pub fn prove(
    work: &mut Work<'_>,
    signed: &SignedCheckpoint,
    index: u64,
) -> Result<ProofFile, Fault> {
    let event = work.store().events(index, 1)?.into_iter().next();
    let event = event.filter(|event| event.sequence == index + 1).ok_or_else(|| {
        Fault::Audit(format!("event {} is missing: it was pruned or removed", index + 1))
    })?;
    let hashes = inclusion(work, signed, index)?;
    let found =
        ProofFile { extra: Some(event.body.clone()), index, hashes, checkpoint: signed.clone() };
    found
        .verify_inclusion(&event.body)
        .map_err(|_| Fault::Audit(format!("event {} is not the one that was signed", index + 1)))?;
    Ok(found)
}

/// The inclusion proof of an entry in the tree of a signed head; not yet verified.
pub fn inclusion(
    work: &mut Work<'_>,
    signed: &SignedCheckpoint,
    index: u64,
) -> Result<Vec<Hash>, Fault> {
    let tree = Tree::new(StoredTiles::new(work), signed.checkpoint().size()).map_err(fault)?;
    tree.inclusion(index).map_err(fault)
}

/// Proves that the head `signed` continues an earlier head of the log that somebody has kept.
///
/// # Errors
/// [`Fault::Audit`] if it is not.
pub fn consistency(
    work: &mut Work<'_>,
    old_size: u64,
    signed: &SignedCheckpoint,
) -> Result<Vec<Hash>, Fault> {
    let size = signed.checkpoint().size();
    let tree = Tree::new(StoredTiles::new(work), size).map_err(fault)?;
    tree.consistency(old_size).map_err(fault)
}

/// Checks that the head `new` continues the head `old`, from the contents of the store.
pub fn verify_continues(
    work: &mut Work<'_>,
    old: &SignedCheckpoint,
    new: &SignedCheckpoint,
) -> Result<(), Fault> {
    let (old, size) = (old.checkpoint(), new.checkpoint().size());
    if old.size() > size {
        let text =
            format!("the log has {size} events, and had {} when the head was saved", old.size());
        return Err(Fault::Audit(text));
    }
    let hashes = consistency(work, old.size(), new)?;
    proof::verify_consistency(old.size(), old.root(), size, new.checkpoint().root(), &hashes)
        .map_err(|_| {
            Fault::Audit(format!(
                "the head of {size} events does not continue the one of {} events: events before it were changed or removed",
                old.size()
            ))
        })
}

/// The log's compact ranges before `begin` and from `end` to the head: together with the entries in between they give
/// the head's root.
pub fn around(
    work: &mut Work<'_>,
    signed: &SignedCheckpoint,
    begin: u64,
    end: u64,
) -> Result<(CompactRange, CompactRange), Fault> {
    let size = signed.checkpoint().size();
    let tree = Tree::new(StoredTiles::new(work), size).map_err(fault)?;
    let before = tree.range(0, begin).map_err(fault)?;
    Ok((before, tree.range(end, size).map_err(fault)?))
}

/// The index of the event with this `eventID`, among the first `size`.
///
/// Ids begin with the time of their event (RFC 9562, version 7), and events are committed almost in order of time, so
/// a binary search comes close. Ids of earlier builds contain no time; then all events are searched.
pub fn find(
    work: &Work<'_>,
    id: &str,
    progress: &mut dyn FnMut(u64),
) -> Result<Option<u64>, Fault> {
    let store = work.store();
    let size = store.last_event()?;
    let named = |body: &[u8]| event_id(body).is_some_and(|found| found.eq_ignore_ascii_case(id));
    let mut look = |from: u64, to: u64| -> Result<Option<u64>, Fault> {
        let mut at = from;
        while at < to {
            let left = usize::try_from(to - at).unwrap_or(PAGE);
            let page = store.events(at, PAGE.min(left))?;
            let Some(last) = page.last() else { return Ok(None) };
            at = last.sequence;
            if let Some(event) = page.iter().find(|event| named(&event.body)) {
                return Ok(Some(event.sequence - 1));
            }
            progress(at);
        }
        Ok(None)
    };
    if let Some(wanted) = time_of(id) {
        let (mut low, mut high) = (0, size);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let event = store.events(middle, 1)?.into_iter().next();
            let time = event.and_then(|event| event_id(&event.body).and_then(|id| time_of(&id)));
            // Pruned events are the earliest; ids without a time are older still.
            if time.is_none_or(|time| time < wanted) { low = middle } else { high = middle }
        }
        for near in NEAR {
            if let Some(found) = look(low.saturating_sub(near), low + near)? {
                return Ok(Some(found));
            }
        }
    }
    look(0, size)
}

/// The `eventID` of an event.
fn event_id(body: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Named {
        #[serde(rename = "eventID")]
        event_id: String,
    }
    serde_json::from_slice::<Named>(body).ok().map(|named| named.event_id)
}

/// The milliseconds since 1970 that an id begins with.
fn time_of(id: &str) -> Option<u64> {
    let bytes = crate::ids::uuid_bytes(id)?;
    if bytes[6] >> 4 != 7 {
        return None;
    }
    Some(bytes[..6].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

pub(crate) fn fault(error: TileError<Fault>) -> Fault {
    match error {
        TileError::Read(fault) => fault,
        other => Fault::Audit(other.to_string()),
    }
}

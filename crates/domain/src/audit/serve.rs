//! The log's tiles for readers (C2SP tlog-tiles): hashes for anybody, entries for authorized readers.

use outlast_tlog::Hash;
use outlast_tlog::tile::{TileId, Tiles, bundle};

use super::head::Head;
use super::tiles::StoredTiles;
use crate::Fault;
use crate::identity::{Permit, action};
use crate::work::Work;

/// ARN of the log in an account's policies. The log belongs to no account; each account whose principals may read
/// entries sees it under an ARN of its own.
pub fn arn(account: &str, origin: &str) -> String {
    format!("arn:aws:outlast::{account}:audit-log/{origin}")
}

/// A tile of hashes, 32 bytes each; `None` if it lies beyond the signed head or its events were pruned.
pub fn tile(work: &mut Work<'_>, id: TileId) -> Result<Option<Vec<u8>>, Fault> {
    if !covers(Head::read(work)?.size, id) {
        return Ok(None);
    }
    let found = StoredTiles::new(work).tile(id.level(), id.index(), id.width());
    let hashes: Vec<Hash> = match found {
        Err(Fault::Audit(_)) if id.level() == 0 => return Ok(None),
        other => other?,
    };
    Ok(Some(hashes.concat()))
}

/// A bundle of entries; `None` as for [`tile`]. The permit is for the log's [`arn`].
pub fn entries(
    work: &mut Work<'_>,
    arn: &str,
    id: TileId,
    permit: &Permit<action::outlast::GetAuditEntries>,
) -> Result<Option<Vec<u8>>, Fault> {
    permit.opens(arn)?;
    if !covers(Head::read(work)?.size, id) {
        return Ok(None);
    }
    let first = id.index() * super::tiles::WIDTH;
    let events = work.store().events(first, id.width().into())?;
    let in_order = (first + 1..).zip(&events).all(|(sequence, event)| event.sequence == sequence);
    if events.len() != usize::from(id.width()) || !in_order {
        return Ok(None);
    }
    bundle(events.iter().map(|event| event.body.as_slice()))
        .map(Some)
        .ok_or_else(|| Fault::Encoding("an entry is too long for a bundle".into()))
}

/// Whether a log of this size has the whole tile.
pub(crate) fn covers(size: u64, id: TileId) -> bool {
    let shift = 8 * u32::from(id.level());
    let count = size.checked_shr(shift).unwrap_or(0);
    id.index()
        .checked_mul(super::tiles::WIDTH)
        .and_then(|first| first.checked_add(u64::from(id.width())))
        .is_some_and(|end| end <= count)
}

/// Events, and where they begin and end.
pub struct Events {
    /// The events.
    pub events: Vec<outlast_store::Event>,
    /// Index of the first event that was not pruned.
    pub first: u64,
    /// Number of events.
    pub end: u64,
}

/// Up to `limit` events from index `from` on, for somebody who may know of the signatures of a key, with the ARN
/// [`crate::artifacts::signatures_arn`]: the caller takes what is about that key, and nothing else.
pub fn events_of(
    work: &Work<'_>,
    arn: &str,
    from: u64,
    limit: usize,
    permit: &Permit<action::outlast::ListKeySignatures>,
) -> Result<Events, Fault> {
    permit.opens(arn)?;
    let end = work.store().last_event()?;
    let found = work.store().events(0, 1)?;
    let first = found.first().map_or(end, |event| event.sequence - 1);
    let events = work.store().events(from.max(first), limit)?;
    Ok(Events { events, first, end })
}

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
    if !is_signed(&Head::read(work)?, id) {
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
    if !is_signed(&Head::read(work)?, id) {
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

/// Whether the signed head covers the whole tile.
fn is_signed(head: &Head, id: TileId) -> bool {
    let shift = 8 * u32::from(id.level());
    let count = head.size.checked_shr(shift).unwrap_or(0);
    id.index()
        .checked_mul(super::tiles::WIDTH)
        .and_then(|first| first.checked_add(u64::from(id.width())))
        .is_some_and(|end| end <= count)
}

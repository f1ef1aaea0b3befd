//! Pruning: deletes old events, and keeps what proves later ones.

use super::head::Head;
use super::tiles::WIDTH;
use crate::Fault;
use crate::register;
use crate::work::Work;

/// Number of entries from the first on that may be deleted now: whole tiles of 256, covered by a signed head, that
/// the register does not need; and never the last one, which gives the next number.
pub fn prunable(work: &mut Work<'_>) -> Result<u64, Fault> {
    let last = Head::read(work)?.size.saturating_sub(1);
    Ok(last.min(register::first_needed(work)?) / WIDTH * WIDTH)
}

/// Deletes the entries before `index`, as far as they are [`prunable`]; returns the index of the first that stays.
/// The caller has exported them. The hashes of their tiles stay in the tiles above, so that later entries can be
/// proved and later heads still continue each other (C2SP tlog-tiles, "Pruning").
pub fn prune(work: &mut Work<'_>, index: u64) -> Result<u64, Fault> {
    let mut head = Head::read(work)?;
    let pruned = (index / WIDTH * WIDTH).min(prunable(work)?);
    if pruned > head.pruned {
        head.pruned = pruned;
        head.write(work)?;
        work.prune_events(pruned);
    }
    Ok(head.pruned)
}

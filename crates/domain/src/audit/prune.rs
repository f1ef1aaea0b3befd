//! Pruning: old events go, what proves later ones stays.

use super::head::Head;
use super::tiles::WIDTH;
use crate::Fault;
use crate::register;
use crate::work::Work;

/// Deletes the entries before `index`, in whole tiles of 256 and never what no signed head covers or the register needs; returns the number of the first
/// that stays. The caller has exported them. The hashes of their tiles stay in the tiles above, so that later entries
/// are still proved, and later heads still follow from each other (C2SP tlog-tiles, "Pruning").
pub fn prune(work: &mut Work<'_>, index: u64) -> Result<u64, Fault> {
    let mut head = Head::read(work)?;
    // The last event stays: it says where the numbers go on.
    let last = head.size.saturating_sub(1);
    let needed = register::first_needed(work)?;
    let pruned = (index.min(last).min(needed) / WIDTH) * WIDTH;
    if pruned > head.pruned {
        head.pruned = pruned;
        head.write(work)?;
        work.prune_events(pruned);
    }
    Ok(head.pruned)
}

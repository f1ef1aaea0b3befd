//! Compares events that were signed long ago with the sealed head, a few at a time.
//!
//! Appending never looks back. Without this patrol, a change of an old event would be noticed only when somebody asks
//! for its proof or verifies the whole log.

use outlast_tlog::{Hash, hash, proof, tile};

use super::head::Head;
use super::tiles::{StoredTiles, WIDTH};
use crate::Fault;
use crate::work::Work;

/// The position of the patrol.
#[derive(Debug, Default)]
pub struct Patrol {
    /// The next tile of 256 events.
    next: u64,
    /// Whether it has completed the log once.
    pub completed: bool,
}

impl Patrol {
    /// Verifies up to `tiles` times 256 events; starts again after the last.
    ///
    /// # Errors
    /// [`Fault::Audit`] with the events that differ from what was signed.
    pub fn go_on(&mut self, work: &mut Work<'_>, tiles: u64) -> Result<(), Fault> {
        let head = Head::read(work)?;
        self.next = self.next.max(head.pruned.div_ceil(WIDTH));
        for _ in 0..tiles {
            if self.next * WIDTH >= head.size {
                *self = Self { next: 0, completed: true };
                return Ok(());
            }
            check(work, &head, self.next)?;
            self.next += 1;
        }
        Ok(())
    }
}

/// Compares the events of one tile with the head.
fn check(work: &mut Work<'_>, head: &Head, index: u64) -> Result<(), Fault> {
    let first = index * WIDTH;
    let last = head.size.min(first + WIDTH);
    let changed = || {
        Fault::Audit(format!(
            "the events from {} to {last} are not those that were signed",
            first + 1
        ))
    };
    let width = usize::try_from(last - first).unwrap_or(0);
    let events = work.store().events(first, width)?;
    let in_order = (first + 1..).zip(&events).all(|(sequence, event)| event.sequence == sequence);
    if events.len() != width || !in_order {
        // Another process may be pruning.
        if Head::read(&mut Work::new(work.store(), work.root(), work.now_ms()))?.pruned > first {
            return Ok(());
        }
        return Err(Fault::Audit(format!(
            "some of the events from {} to {last} are missing",
            first + 1
        )));
    }
    let leaves: Vec<Hash> = events.iter().map(|event| hash::leaf(&event.body)).collect();
    if leaves.iter().zip(&events).any(|(leaf, event)| *leaf != event.leaf) {
        return Err(changed());
    }
    let Some(leaf) = leaves.first().copied() else { return Ok(()) };
    // The proof of the first leaf depends on the whole tile: it holds only if all 256 leaves are as they were signed.
    let tree = tile::Tree::new(StoredTiles::with(work, index, leaves), head.size)
        .map_err(super::prove::fault)?;
    let siblings = tree.inclusion(first).map_err(super::prove::fault)?;
    proof::verify_inclusion(&leaf, first, head.size, &siblings, &head.root()?)
        .map_err(|_| changed())
}

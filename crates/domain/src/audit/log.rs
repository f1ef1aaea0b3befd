//! Extends the log by the new events, and signs its head.
//!
//! A head is computed from the last one, which is sealed, and from the events after it: so it continues the last one
//! by construction, whatever the database contains of the events before. The events' own bytes are hashed; a leaf
//! hash from the database counts only if this process computed it when it committed the event.

use std::collections::HashSet;

use outlast_store::Store;
use outlast_tlog::{Checkpoint, CompactRange, Hash};

use super::SIGNED;
use super::guard::{Advance, Guard};
use super::head::Head;
use super::key::LogKey;
use super::tiles::{Edge, TILES};
use crate::Fault;
use crate::work::Work;

/// A head is signed after this many events at the latest.
pub const INTERVAL: u64 = 1000;
/// Longest time until a head covers an event while a server runs, in milliseconds.
pub const MAX_AGE_MS: i64 = 60_000;
/// Events that one step covers at most, in a log that was not signed for long.
const BATCH: u64 = 1 << 16;
/// Leaf hashes that are read in one step.
const PAGE: usize = 1000;

type Leaves = HashSet<Hash, foldhash::fast::RandomState>;

/// The result of a step. It counts once its work is committed.
#[derive(Debug, Default)]
pub struct Step {
    /// What the guard must be told once it is on disk.
    pub advance: Option<Advance>,
    /// Whether another step is due at once.
    pub more: bool,
}

/// Creates the log of a new store: the signing keys, and the head of the empty log. `origin` names the log to
/// verifiers (C2SP tlog-checkpoint): a host name and path that nobody else uses.
pub fn establish(work: &mut Work<'_>, origin: &str) -> Result<(), Fault> {
    let key = LogKey::generate(origin)?;
    key.write(work)?;
    sign(work, &key, &CompactRange::default(), 0)
}

/// Signs a head if it is due; with `at_end`, if any event is new.
///
/// # Errors
/// [`Fault::Audit`] if the log differs from what was signed: the caller raises the guard's alarm then.
pub fn advance(work: &mut Work<'_>, guard: &Guard, at_end: bool) -> Result<Step, Fault> {
    if let Some(reason) = guard.alarm() {
        return Err(Fault::Audit(reason));
    }
    // Read before the number of events, which includes these.
    let own = guard.durable();
    Extension::begin(work, guard, &own)?.go_on(work, at_end)
}

/// Compares the store with the sealed head, and with what the guard remembers.
pub(super) fn verify_head(work: &mut Work<'_>, guard: &Guard) -> Result<(), Fault> {
    let own = guard.durable();
    Extension::begin(work, guard, &own).map(drop)
}

/// The log as of the last signed head, verified, and the events since.
struct Extension<'a> {
    own: &'a Leaves,
    head: Head,
    edge: Edge,
    /// The verified part of the log.
    range: CompactRange,
    /// Leaf hashes since the last head that the guard knew.
    covered: Vec<Hash>,
    last: u64,
}

impl<'a> Extension<'a> {
    fn begin(work: &mut Work<'_>, guard: &Guard, own: &'a Leaves) -> Result<Self, Fault> {
        let head = Head::read(work)?;
        let signed = head.range()?;
        let range = guard.known().unwrap_or_else(|| signed.clone());
        let last = work.store().last_event()?;
        if head.size < range.end() {
            return audit(format!(
                "the signed head went back from {} to {} events: an older database, or an older record, was put in place",
                range.end(),
                head.size
            ));
        }
        if last < head.size {
            return audit(format!(
                "the events from {} to {} were signed and are missing",
                last + 1,
                head.size
            ));
        }
        let edge = Edge::load(work, head.size)?;
        let mut found = Self { own, head, edge, range, covered: Vec::new(), last };
        // Heads that other servers on the same database have signed.
        let size = found.head.size;
        found.walk(work.store(), size, false)?;
        if found.range != signed {
            return audit("the signed head does not continue the one before it".into());
        }
        if found.edge.range()? != signed {
            return audit("the stored tiles do not fit the signed head".into());
        }
        Ok(found)
    }

    fn go_on(mut self, work: &mut Work<'_>, at_end: bool) -> Result<Step, Fault> {
        let grown = self.last - self.head.size;
        // Also true after the clock was set back.
        let is_old = (work.now_ms() - self.head.at_ms).abs() >= MAX_AGE_MS;
        if grown == 0 || !(at_end || is_old || grown >= INTERVAL) {
            // An event of this process that no head covers is missing, and nobody can say why.
            if grown == 0 {
                self.require_own()?;
            }
            let advance = Advance { range: self.range, covered: self.covered };
            return Ok(Step { advance: Some(advance), more: false });
        }
        let upto = self.last.min(self.head.size + BATCH);
        self.walk(work.store(), upto, true)?;
        let more = upto < self.last;
        if !more {
            self.require_own()?;
        }
        let key = LogKey::read(work)?;
        self.edge.write(work, TILES)?;
        sign(work, &key, &self.range, self.head.pruned)?;
        let advance = Advance { range: self.range, covered: self.covered };
        Ok(Step { advance: Some(advance), more })
    }

    /// Checks that every event that this process committed is in the log.
    fn require_own(&self) -> Result<(), Fault> {
        let covered: Leaves = self.covered.iter().copied().collect();
        match self.own.difference(&covered).count() {
            0 => Ok(()),
            count => audit(format!(
                "{count} events that this server has written were changed or removed"
            )),
        }
    }

    /// Advances to event `to`, and adds to the tiles what they lack.
    fn walk(&mut self, store: &dyn Store, to: u64, with_tiles: bool) -> Result<(), Fault> {
        while self.range.end() < to {
            let at = self.range.end();
            let limit = PAGE.min(usize::try_from(to - at).unwrap_or(PAGE));
            let page = store.leaves(at, limit)?;
            if page.is_empty() {
                return audit(format!("event {} is missing", at + 1));
            }
            if page.iter().any(|(_, leaf)| !self.own.contains(leaf)) {
                check_bodies(store, at, &page)?;
            }
            for (expected, (sequence, leaf)) in (at + 1..).zip(page) {
                if sequence != expected {
                    return audit(format!("event {expected} is missing"));
                }
                self.range.append(&leaf).map_err(|error| Fault::Audit(error.to_string()))?;
                if with_tiles {
                    self.edge.append(&leaf);
                }
                self.covered.push(leaf);
            }
        }
        Ok(())
    }
}

/// Checks that the stored leaf hashes of the events after `after` are the hashes of their bytes.
fn check_bodies(store: &dyn Store, after: u64, page: &[(u64, Hash)]) -> Result<(), Fault> {
    let events = store.events(after, page.len())?;
    for ((sequence, leaf), event) in page.iter().zip(&events) {
        if event.sequence != *sequence || outlast_tlog::hash::leaf(&event.body) != *leaf {
            return audit(format!("event {sequence} was changed"));
        }
    }
    if events.len() < page.len() {
        return audit(format!("events after {after} were removed"));
    }
    Ok(())
}

/// Signs a head and stores it.
pub(super) fn sign(
    work: &mut Work<'_>,
    key: &LogKey,
    range: &CompactRange,
    pruned: u64,
) -> Result<(), Fault> {
    let head = Head::new(range, work.now_ms(), pruned);
    let checkpoint = Checkpoint::new(&key.origin, head.size, head.root()?)
        .map_err(|error| Fault::Encoding(error.to_string()))?;
    let signed = key.sign(checkpoint, work.now())?;
    head.write(work)?;
    work.put(SIGNED, &signed.to_string())
}

fn audit<T>(what: String) -> Result<T, Fault> {
    Err(Fault::Audit(what))
}

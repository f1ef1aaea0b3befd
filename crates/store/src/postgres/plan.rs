//! What a group of transactions does to the database, worked out in memory without I/O.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;

use crate::{StoreError, Transaction, tally};

/// State of the database: the records that a group relies on, and the counters.
pub(super) struct Ground {
    /// Version of each existing record among those that [`looked_at`] names.
    pub(super) versions: HashMap<String, u64>,
    /// Number of records under each prefix that the transactions name.
    pub(super) tallies: HashMap<String, u64>,
    /// Last version assigned.
    pub(super) version: u64,
    /// Sequence of the last event.
    pub(super) last_event: u64,
}

/// Changes to write.
#[derive(Default)]
pub(super) struct Plan<'a> {
    /// Outcome of each transaction.
    pub(super) outcomes: Vec<Result<(), StoreError>>,
    pub(super) puts: Columns<'a>,
    pub(super) deletes: Vec<&'a str>,
    pub(super) events: Events<'a>,
    pub(super) tallies: Tallies,
    /// Delete events up to this sequence.
    pub(super) prune: Option<i64>,
    /// Last version assigned.
    pub(super) version: i64,
}

/// Records, one vector per column.
#[derive(Default)]
pub(super) struct Columns<'a> {
    pub(super) keys: Vec<&'a str>,
    pub(super) versions: Vec<i64>,
    pub(super) values: Vec<&'a [u8]>,
}

/// Events, one vector per column.
#[derive(Default)]
pub(super) struct Events<'a> {
    pub(super) sequences: Vec<i64>,
    pub(super) bodies: Vec<&'a [u8]>,
    pub(super) leaves: Vec<&'a [u8]>,
}

/// Record counts per prefix, one vector per column.
#[derive(Default)]
pub(super) struct Tallies {
    pub(super) prefixes: Vec<String>,
    pub(super) values: Vec<i64>,
}

/// Keys of the records that decide the outcome of a group: those that it relies on and those that it counts.
pub(super) fn looked_at(group: &[Transaction]) -> Vec<&str> {
    let relied = group.iter().flat_map(|transaction| &transaction.expectations);
    let mut keys: Vec<&str> = relied.map(|(key, _)| key.as_str()).collect();
    for transaction in group {
        let counted =
            transaction.tallies.iter().flat_map(|named| tally::tallied(transaction, named));
        keys.extend(counted.map(|(key, _)| key.as_str()));
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// Prefixes whose counts a group changes.
pub(super) fn prefixes(group: &[Transaction]) -> Vec<&str> {
    let named = group.iter().flat_map(|transaction| &transaction.tallies);
    let mut prefixes: Vec<&str> = named.map(|tally| tally.prefix.as_str()).collect();
    prefixes.sort_unstable();
    prefixes.dedup();
    prefixes
}

/// Counts after a transaction, for the prefixes that it names; `None` if one would exceed its limit.
fn counted(
    transaction: &Transaction,
    versions: &HashMap<String, u64>,
    before: &HashMap<String, u64>,
) -> Option<Vec<(String, u64)>> {
    let exists = |key: &str| Ok::<_, Infallible>(versions.contains_key(key));
    let Ok(changes) = tally::changes(transaction, exists);
    let after = changes.into_iter().map(|(tally, change)| {
        let before = before.get(&tally.prefix).copied().unwrap_or_default();
        Some((tally.prefix.clone(), tally.after(before, change)?))
    });
    after.collect()
}

impl<'a> Plan<'a> {
    /// Applies the transactions one after the other; a conflict concerns only one of them.
    pub(super) fn new(group: &'a [Transaction], ground: Ground) -> Self {
        let Ground { mut versions, mut tallies, mut version, last_event: mut sequence } = ground;
        let mut plan = Self::default();
        // If a record is written several times, the last write counts.
        let mut writes: BTreeMap<&str, Option<(u64, &[u8])>> = BTreeMap::new();
        for transaction in group {
            let holds = |(key, expected): &(String, Option<u64>)| {
                versions.get(key.as_str()).copied() == *expected
            };
            let holds = transaction.expectations.iter().all(holds);
            let Some(after) = holds.then(|| counted(transaction, &versions, &tallies)).flatten()
            else {
                plan.outcomes.push(Err(StoreError::Conflict));
                continue;
            };
            tallies.extend(after);
            for (key, value) in &transaction.writes {
                match value {
                    Some(value) => {
                        version += 1;
                        versions.insert(key.clone(), version);
                        writes.insert(key, Some((version, value)));
                    }
                    None => {
                        versions.remove(key);
                        writes.insert(key, None);
                    }
                }
            }
            for event in &transaction.events {
                sequence += 1;
                plan.events.push(sequence, event.body(), event.leaf());
            }
            if let Some(upto) = transaction.prune_events {
                let upto = upto.min(sequence.saturating_sub(1)).cast_signed();
                plan.prune = plan.prune.max(Some(upto));
            }
            plan.outcomes.push(Ok(()));
        }
        for (key, write) in writes {
            match write {
                Some((version, value)) => plan.puts.push(key, version, value),
                None => plan.deletes.push(key),
            }
        }
        for (prefix, count) in tallies {
            plan.tallies.prefixes.push(prefix);
            plan.tallies.values.push(count.cast_signed());
        }
        plan.version = version.cast_signed();
        plan
    }

    /// Whether every transaction met a conflict.
    pub(super) fn is_void(&self) -> bool {
        self.outcomes.iter().all(Result::is_err)
    }
}

impl<'a> Columns<'a> {
    pub(super) fn push(&mut self, key: &'a str, version: u64, value: &'a [u8]) {
        self.keys.push(key);
        self.versions.push(version.cast_signed());
        self.values.push(value);
    }
}

impl<'a> Events<'a> {
    pub(super) fn push(&mut self, sequence: u64, body: &'a [u8], leaf: &'a [u8]) {
        self.sequences.push(sequence.cast_signed());
        self.bodies.push(body);
        self.leaves.push(leaf);
    }
}

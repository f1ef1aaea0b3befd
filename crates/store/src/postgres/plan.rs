//! What a group of transactions does to the database, worked out in memory: no I/O here.

use std::collections::{BTreeMap, HashMap};

use crate::{StoreError, Transaction};

/// What the database says of the records that a group relies on, and of where the counters stand.
pub(super) struct Ground {
    /// Version of each record that exists.
    pub(super) versions: HashMap<String, u64>,
    /// The last version that was given.
    pub(super) version: u64,
    /// Sequence of the last event.
    pub(super) last_event: u64,
}

/// What is to be written.
#[derive(Default)]
pub(super) struct Plan<'a> {
    /// One for each transaction.
    pub(super) outcomes: Vec<Result<(), StoreError>>,
    pub(super) puts: Columns<'a>,
    pub(super) deletes: Vec<&'a str>,
    pub(super) events: Events<'a>,
    /// Events up to this sequence are deleted.
    pub(super) prune: Option<i64>,
    /// The last version given.
    pub(super) version: i64,
}

/// Records, a vector for each column.
#[derive(Default)]
pub(super) struct Columns<'a> {
    pub(super) keys: Vec<&'a str>,
    pub(super) versions: Vec<i64>,
    pub(super) values: Vec<&'a [u8]>,
}

/// Events, a vector for each column.
#[derive(Default)]
pub(super) struct Events<'a> {
    pub(super) sequences: Vec<i64>,
    pub(super) bodies: Vec<&'a [u8]>,
    pub(super) leaves: Vec<&'a [u8]>,
}

impl<'a> Plan<'a> {
    /// Applies the transactions one after the other; a conflict concerns one of them.
    pub(super) fn new(group: &'a [Transaction], ground: Ground) -> Self {
        let Ground { mut versions, mut version, last_event: mut sequence } = ground;
        let mut plan = Self::default();
        // Of several writes of one record the last counts.
        let mut writes: BTreeMap<&str, Option<(u64, &[u8])>> = BTreeMap::new();
        for transaction in group {
            let holds = |(key, expected): &(String, Option<u64>)| {
                versions.get(key.as_str()).copied() == *expected
            };
            if !transaction.expectations.iter().all(holds) {
                plan.outcomes.push(Err(StoreError::Conflict));
                continue;
            }
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

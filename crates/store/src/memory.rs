//! A store in memory: for tests, and as the reference for tests of the durable stores.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Completion, Event, Item, Record, Store, StoreError, Transaction, prefix_end, tally};

/// Keeps everything in memory; durable only as long as the process runs.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

#[derive(Default, Clone)]
struct State {
    records: BTreeMap<String, Record>,
    events: Vec<Event>,
    next_version: u64,
}

impl State {
    fn last_event(&self) -> u64 {
        self.events.last().map_or(0, |event| event.sequence)
    }

    fn count(&self, prefix: &str) -> u64 {
        self.records.range(prefix.to_owned()..prefix_end(prefix)).count() as u64
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic under the lock cannot leave the maps half-changed: every change is one insert.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn apply(&self, transaction: Transaction) -> Result<(), StoreError> {
        let mut state = self.state();
        for (key, expected) in &transaction.expectations {
            if state.records.get(key).map(|record| record.version) != *expected {
                return Err(StoreError::Conflict);
            }
        }
        let exists = |key: &str| Ok::<_, StoreError>(state.records.contains_key(key));
        for (tally, change) in tally::changes(&transaction, exists)? {
            tally.after(state.count(&tally.prefix), change).ok_or(StoreError::Conflict)?;
        }
        for (key, value) in transaction.writes {
            match value {
                Some(value) => {
                    state.next_version += 1;
                    let version = state.next_version;
                    state.records.insert(key, Record { version, value });
                }
                None => {
                    state.records.remove(&key);
                }
            }
        }
        for event in transaction.events {
            let sequence = state.last_event() + 1;
            state.events.push(Event { sequence, leaf: *event.leaf(), body: event.body });
        }
        if let Some(upto) = transaction.prune_events {
            let last = state.last_event();
            state.events.retain(|event| event.sequence > upto || event.sequence == last);
        }
        Ok(())
    }
}

impl Store for MemoryStore {
    fn read(&self, key: &str) -> Result<Option<Record>, StoreError> {
        Ok(self.state().records.get(key).cloned())
    }

    fn scan(
        &self,
        prefix: &str,
        after: &str,
        limit: usize,
    ) -> Result<Vec<(String, Record)>, StoreError> {
        let end = prefix_end(prefix);
        let start = if after > prefix {
            Bound::Excluded(after.to_owned())
        } else {
            Bound::Included(prefix.to_owned())
        };
        if after >= end.as_str() {
            return Ok(Vec::new());
        }
        Ok(self
            .state()
            .records
            .range((start, Bound::Excluded(end)))
            .take(limit)
            .map(|(key, record)| (key.clone(), record.clone()))
            .collect())
    }

    fn count(&self, prefix: &str) -> Result<u64, StoreError> {
        Ok(self.state().count(prefix))
    }

    fn commit(&self, transaction: Transaction, done: Completion) {
        let outcome = self.apply(transaction);
        done(outcome);
    }

    fn events(&self, after: u64, limit: usize) -> Result<Vec<Event>, StoreError> {
        Ok(self
            .state()
            .events
            .iter()
            .filter(|event| event.sequence > after)
            .take(limit)
            .cloned()
            .collect())
    }

    fn leaves(&self, after: u64, limit: usize) -> Result<Vec<(u64, [u8; 32])>, StoreError> {
        let state = self.state();
        let later = state.events.iter().filter(|event| event.sequence > after);
        Ok(later.take(limit).map(|event| (event.sequence, event.leaf)).collect())
    }

    fn last_event(&self) -> Result<u64, StoreError> {
        Ok(self.state().last_event())
    }

    fn snapshot(
        &self,
        out: &mut dyn FnMut(Item) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let State { records, events, .. } = self.state().clone();
        for (key, record) in records {
            out(Item::Record(key, record))?;
        }
        events.into_iter().try_for_each(|event| out(Item::Event(event)))
    }

    fn restore(
        &self,
        items: &mut dyn Iterator<Item = Result<Item, StoreError>>,
    ) -> Result<(), StoreError> {
        let mut restored = State::default();
        for item in items {
            match item? {
                Item::Record(key, record) => {
                    restored.next_version = restored.next_version.max(record.version);
                    restored.records.insert(key, record);
                }
                Item::Event(event) => restored.events.push(event),
            }
        }
        let mut state = self.state();
        if !state.records.is_empty() || !state.events.is_empty() {
            return Err(StoreError::NotEmpty);
        }
        restored.next_version = restored.next_version.max(state.next_version);
        *state = restored;
        Ok(())
    }
}

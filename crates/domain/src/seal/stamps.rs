//! The newest stamps that this process has seen, so that a record that was put back is recognised.
//!
//! It keeps a keyed hash of each record's key with the stamp, in two generations: when the younger is full it becomes
//! the older, and the older is dropped.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::layout::stamp;
use crate::limits;

/// Stamps per millisecond. They stay below 2^53 until the year 2255, for readers of JSON that use floating point.
const PER_MS: u64 = 1000;

/// The newest stamps.
#[derive(Default)]
pub struct Stamps {
    hasher: RandomState,
    seen: Mutex<Generations>,
    last_given: AtomicU64,
    /// The audit event up to which the changes of registered records are known.
    followed: AtomicU64,
}

#[derive(Default)]
struct Generations {
    young: HashMap<u64, u64>,
    old: HashMap<u64, u64>,
    /// Whether it has every registered record.
    is_complete: bool,
}

impl Generations {
    fn newest(&self, record_key: u64) -> Option<u64> {
        self.young.get(&record_key).or_else(|| self.old.get(&record_key)).copied()
    }

    fn put(&mut self, record_key: u64, stamp: u64) {
        if self.young.len() >= limits::MAX_SEEN_STAMPS / 2 && !self.young.contains_key(&record_key)
        {
            self.is_complete &= self.old.is_empty();
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(record_key, stamp);
    }
}

impl Stamps {
    fn seen(&self) -> MutexGuard<'_, Generations> {
        // A panic cannot leave the maps half-changed: each change is one insertion or one swap.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stamp for a record that does not exist yet or is not read: from the time, and greater than any that this
    /// process has made, or has seen of this record.
    pub(crate) fn fresh(&self, record_key: &str, now_ms: i64) -> u64 {
        let seen = self.seen().newest(self.hasher.hash_one(record_key)).unwrap_or_default();
        let from = u64::try_from(now_ms).unwrap_or_default().saturating_mul(PER_MS).max(seen + 1);
        let next = |last: u64| from.max(last.saturating_add(1));
        let before = self
            .last_given
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
        next(before.unwrap_or_else(|last| last))
    }

    /// Notes that every registered record was seen, as of an audit event.
    pub(crate) fn saw_all(&self, sequence: u64) {
        self.seen().is_complete = true;
        self.followed(sequence);
    }

    /// Notes the audit event up to which changes are known; returns the previous one.
    pub(crate) fn followed(&self, sequence: u64) -> u64 {
        self.followed.fetch_max(sequence, Ordering::SeqCst)
    }

    /// Whether an unknown record cannot be a registered one, since it would have been seen, or its event read.
    pub(crate) fn is_unheard_of(&self, record_key: &str) -> bool {
        let seen = self.seen();
        seen.is_complete && seen.newest(self.hasher.hash_one(record_key)).is_none()
    }

    /// Whether a stamp of this record was seen, so that the record exists or was deleted.
    pub(crate) fn is_known(&self, record_key: &str) -> bool {
        self.seen().newest(self.hasher.hash_one(record_key)).is_some()
    }

    /// Whether a newer stamp of this record was seen.
    pub(crate) fn is_older(&self, record_key: &str, stamp: u64) -> bool {
        self.seen().newest(self.hasher.hash_one(record_key)).is_some_and(|newest| stamp < newest)
    }

    /// Notes the stamp of a record that was read and verified.
    pub(crate) fn saw(&self, record_key: &str, stamp: u64) {
        let record_key = self.hasher.hash_one(record_key);
        let mut seen = self.seen();
        if seen.newest(record_key).is_none_or(|newest| newest < stamp) {
            seen.put(record_key, stamp);
        }
    }

    /// Notes a change in an audit event: a record's stamps before and after.
    pub(crate) fn told(&self, record_key: &str, was: Option<u64>, is: Option<u64>) {
        // A deleted record must not be put back.
        if let Some(least) = is.or(was.map(|was| was.saturating_add(1))) {
            self.saw(record_key, least);
        }
    }

    /// What is to be noted once these writes are durable.
    pub fn writing(&self, writes: &[(String, Option<Vec<u8>>)]) -> Written {
        let stamp_of = |(record_key, value): &(String, Option<Vec<u8>>)| {
            let record_key = self.hasher.hash_one(record_key);
            match value {
                Some(value) => stamp(value).map(|stamp| (record_key, stamp)),
                // A deleted record must not be put back. Noted now: somebody may create it again before we learn that
                // the deletion is durable.
                None => self.seen().newest(record_key).map(|newest| (record_key, newest + 1)),
            }
        };
        Written(writes.iter().filter_map(stamp_of).collect())
    }

    /// Notes writes that are durable.
    pub fn wrote(&self, written: &Written) {
        let mut seen = self.seen();
        for (record_key, stamp) in &written.0 {
            if seen.newest(*record_key).is_none_or(|newest| newest < *stamp) {
                seen.put(*record_key, *stamp);
            }
        }
    }
}

/// Hashes of record keys, with their least valid stamps.
pub struct Written(Vec<(u64, u64)>);

impl Written {
    /// Whether there is nothing to note.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_is_remembered_within_bounds() {
        let stamps = Stamps::default();
        stamps.saw("a", 5);
        stamps.saw("a", 3);
        assert!(stamps.is_older("a", 4) && !stamps.is_older("a", 5) && !stamps.is_older("b", 0));
        for number in 0..limits::MAX_SEEN_STAMPS {
            stamps.saw(&number.to_string(), 7);
        }
        let seen = stamps.seen();
        assert!(seen.young.len() + seen.old.len() <= limits::MAX_SEEN_STAMPS);
        drop(seen);
        assert!(!stamps.is_older("a", 0), "the oldest go");
        assert!(stamps.is_older(&(limits::MAX_SEEN_STAMPS - 1).to_string(), 6));
    }

    #[test]
    fn stamps_grow_though_the_clock_does_not() {
        let stamps = Stamps::default();
        let first = stamps.fresh("a", 1_000);
        assert_eq!(first, 1_000 * PER_MS);
        assert!(stamps.fresh("b", 1_000) > first);
        assert!(stamps.fresh("a", -5) > first);
        stamps.saw("c", 9_000_000);
        assert!(stamps.fresh("c", 1_000) > 9_000_000);
        let gone = stamps.writing(&[("c".into(), None), ("d".into(), None)]);
        stamps.wrote(&gone);
        assert!(stamps.is_older("c", 9_000_000), "what was deleted is put back");
        assert!(stamps.fresh("c", 1_000) > 9_000_001);
    }
}

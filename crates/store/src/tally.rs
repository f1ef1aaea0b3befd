//! How many records there are below a prefix, so that a limit on them costs no look at each.
//!
//! A store keeps the number beside the records and changes it in the transaction that makes or deletes one of them, under
//! the lock that commits take anyway: creations at the same time do not wait for each other's answers, and no two of them pass
//! a limit that has room for one. A number that is not kept yet, as in a store of an earlier version or one that was
//! restored, is counted once.

use crate::Transaction;

/// A number that a transaction may change. Whoever makes or deletes records below the prefix names it, always.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// How the keys of the records begin.
    pub prefix: String,
    /// The transaction meets a conflict if it makes records and there were more than this many then.
    pub at_most: Option<u64>,
}

impl Tally {
    /// The number after `change`, which may be negative; `None` if it must not be.
    pub(crate) fn after(&self, before: u64, change: i64) -> Option<u64> {
        let after = before.saturating_add_signed(change);
        let is_full = change > 0 && self.at_most.is_some_and(|most| after > most);
        (!is_full).then_some(after)
    }
}

/// By how much a transaction changes each of its tallies. `exists` says whether a record is there before it.
pub(crate) fn changes<E>(
    transaction: &Transaction,
    mut exists: impl FnMut(&str) -> Result<bool, E>,
) -> Result<Vec<(&Tally, i64)>, E> {
    let mut changes = Vec::with_capacity(transaction.tallies.len());
    for tally in &transaction.tallies {
        let mut change = 0;
        for (key, value) in tallied(transaction, tally) {
            change += i64::from(value.is_some()) - i64::from(exists(key)?);
        }
        changes.push((tally, change));
    }
    Ok(changes)
}

/// The writes that a tally of the transaction counts.
pub(crate) fn tallied<'a>(
    transaction: &'a Transaction,
    tally: &'a Tally,
) -> impl Iterator<Item = &'a (String, Option<Vec<u8>>)> {
    transaction.writes.iter().filter(|(key, _)| key.starts_with(&tally.prefix))
}

//! Record counts per prefix, so that a limit on records does not require counting them.
//!
//! A store keeps the count next to the records and changes it in the transaction that creates or deletes a record,
//! under the lock that commits take anyway. So concurrent creations do not wait for each other's answers, and no two
//! of them exceed a limit that has room for one. A count that is missing, as in a store of an earlier version or
//! after a restore, is computed once.

use crate::Transaction;

/// A count that a transaction may change. Every transaction that creates or deletes records under the prefix must
/// name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tally {
    /// Common start of the records' keys.
    pub prefix: String,
    /// Most records before the transaction; if there are more and it creates records, it meets a conflict.
    pub at_most: Option<u64>,
}

impl Tally {
    /// The count after `change`, which may be negative; `None` if it may not change so.
    pub(crate) fn after(&self, before: u64, change: i64) -> Option<u64> {
        let after = before.saturating_add_signed(change);
        let is_full = change > 0 && self.at_most.is_some_and(|most| after > most);
        (!is_full).then_some(after)
    }
}

/// How much a transaction changes each of its tallies. `exists` says whether a record exists before it.
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

/// Writes of the transaction that a tally counts.
pub(crate) fn tallied<'a>(
    transaction: &'a Transaction,
    tally: &'a Tally,
) -> impl Iterator<Item = &'a (String, Option<Vec<u8>>)> {
    transaction.writes.iter().filter(|(key, _)| key.starts_with(&tally.prefix))
}

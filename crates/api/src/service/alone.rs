//! Transactions that the service makes by itself, with the events that record them.

use outlast_domain::change::Contended;
use outlast_domain::work::{Swept, Work};
use outlast_domain::{Fault, ids};
use outlast_store::driver::{Attempt, drive_and_wait};
use outlast_store::{StoreError, Transaction};

use super::Service;
use crate::audit::service_event;
use crate::table::ServiceRow;

/// The outcome of a transaction that is durable.
pub(crate) struct Did<T> {
    /// Result of the transaction.
    pub(super) value: T,
    /// What the audit events record.
    pub(super) swept: Swept,
    /// Number of deleted records.
    pub(super) deleted: usize,
}

impl Service {
    /// One attempt. A conflict means that another server or request changed the same records first.
    pub(super) fn do_once<T>(
        &self,
        row: &ServiceRow,
        now_ms: i64,
        what: impl FnOnce(&mut Work<'_>, &mut Swept) -> Result<T, Fault>,
    ) -> Result<Did<T>, Fault> {
        let (transaction, did) = self.prepare_alone(row, now_ms, what)?;
        if let Some(transaction) = transaction {
            self.store.commit_and_wait(transaction)?;
        }
        Ok(self.forget_erased(did))
    }

    /// The same, repeated after each conflict.
    pub(crate) fn do_at_last<T>(
        &self,
        row: &ServiceRow,
        now_ms: i64,
        mut what: impl FnMut(&mut Work<'_>, &mut Swept) -> Result<T, Fault>,
    ) -> Result<Did<T>, Fault> {
        let prepare = || match self.prepare_alone(row, now_ms, &mut what) {
            Ok((Some(transaction), did)) => Attempt::Commit(transaction, did),
            Ok((None, did)) => Attempt::Done(Ok(did)),
            Err(fault) if fault.is_conflict() => Attempt::Again,
            Err(fault) => Attempt::Done(Err(fault)),
        };
        let finish = |did, outcome: Result<(), StoreError>| Ok(outcome.map(|()| did)?);
        let done = drive_and_wait(self.store.as_ref(), prepare, finish);
        let did = done.unwrap_or_else(|| Err(StoreError::Conflict.into()))?;
        Ok(self.forget_erased(did))
    }

    fn prepare_alone<T>(
        &self,
        row: &ServiceRow,
        now_ms: i64,
        what: impl FnOnce(&mut Work<'_>, &mut Swept) -> Result<T, Fault>,
    ) -> Result<(Option<Transaction>, Did<T>), Fault> {
        let (mut work, mut swept) = (self.work(now_ms), Swept::default());
        let value = what(&mut work, &mut swept)?;
        if !work.writes_anything() {
            return Ok((None, Did { value, swept: Swept::default(), deleted: 0 }));
        }
        let transaction = work.into_transaction(events(row, now_ms, &swept)?);
        let deleted = transaction.writes.iter().filter(|(_, value)| value.is_none()).count();
        Ok((Some(transaction), Did { value, swept, deleted }))
    }

    fn forget_erased<T>(&self, did: Did<T>) -> Did<T> {
        for material in &did.swept.erased {
            self.ring.forget(material);
        }
        did
    }
}

/// The audit events of the transaction.
pub(super) fn events(row: &ServiceRow, now_ms: i64, swept: &Swept) -> Result<Vec<Vec<u8>>, Fault> {
    let source = row.model.event_source;
    let event = |done| Ok(service_event(now_ms, &ids::event_id(now_ms)?, source, done));
    swept.done.iter().map(event).collect()
}

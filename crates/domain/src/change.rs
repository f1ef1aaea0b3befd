//! Changes without a request: by a command, or by a server's housekeeping.

use outlast_store::driver::{Attempt, drive_and_wait};
use outlast_store::{Store, StoreError};

use crate::Fault;
use crate::work::Work;

/// An error that may report a conflict.
pub trait Contended: From<Fault> {
    /// Whether the same may succeed if it is repeated at once.
    fn is_conflict(&self) -> bool;
}

impl Contended for Fault {
    fn is_conflict(&self) -> bool {
        *self == Self::Store(StoreError::Conflict)
    }
}

/// Carries out a unit of work, with the events that record it, until its commit succeeds. If it writes nothing,
/// nothing is committed, not even an event.
///
/// # Errors
/// Those of `make`, and of the store; a conflict if others were first at every attempt.
pub fn change<'a, T, E: Contended>(
    store: &dyn Store,
    begin: impl Fn() -> Work<'a>,
    mut make: impl FnMut(&mut Work<'a>) -> Result<(T, Vec<Vec<u8>>), E>,
) -> Result<T, E> {
    let prepare = || {
        let mut work = begin();
        match make(&mut work) {
            Ok((done, _)) if !work.writes_anything() => Attempt::Done(Ok(done)),
            Ok((done, events)) => Attempt::Commit(work.into_transaction(events), done),
            Err(error) if error.is_conflict() => Attempt::Again,
            Err(error) => Attempt::Done(Err(error)),
        }
    };
    let failed = |error: StoreError| E::from(Fault::from(error));
    drive_and_wait(store, prepare, |done, outcome| outcome.map(|()| done).map_err(failed))
        .unwrap_or_else(|| Err(failed(StoreError::Conflict)))
}

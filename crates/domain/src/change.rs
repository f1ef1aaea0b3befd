//! Changes that no request makes: what a command does, and what a server does by itself.

use outlast_store::driver::{Attempt, drive_and_wait};
use outlast_store::{Store, StoreError};

use crate::Fault;
use crate::work::Work;

/// An error that may say that somebody else was quicker.
pub trait Contended: From<Fault> {
    /// Whether the same may succeed when it is tried again at once.
    fn is_conflict(&self) -> bool;
}

impl Contended for Fault {
    fn is_conflict(&self) -> bool {
        *self == Self::Store(StoreError::Conflict)
    }
}

/// Carries out a unit of work, with the events that record it, until its commit holds. If it writes nothing, nothing is
/// committed, no event either.
///
/// # Errors
/// Those of `make`, and of the store; that of a conflict if others are quicker all the time.
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

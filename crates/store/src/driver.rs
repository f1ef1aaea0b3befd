//! Runs work until it is durable: prepare, commit, and prepare again if another commit came first.
//!
//! [`drive`] is the only such loop. Servers run it on their runtime; commands, tests and housekeeping block on it
//! ([`drive_and_wait`]).

use std::future::ready;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tokio::sync::oneshot;

use crate::{Store, StoreError, Transaction};

/// Most attempts at preparing work. In each round one of the competitors for a record wins, so this many can change
/// the same record at once.
pub const MAX_ATTEMPTS: u32 = 64;

/// Outcome of preparing work.
#[derive(Debug)]
pub enum Attempt<P, T> {
    /// The result; nothing needs a commit.
    Done(T),
    /// A record that was read is out of date; prepare again.
    Again,
    /// Transaction to commit, and the input of `finish` once it is durable.
    Commit(Transaction, P),
}

/// Prepares until a commit succeeds, and returns what `finish` makes of the outcome. The outcome is never
/// [`StoreError::Conflict`]. `None` after [`MAX_ATTEMPTS`].
pub async fn drive<P, T, Preparing: Future<Output = Attempt<P, T>>>(
    store: &dyn Store,
    prepare: impl FnMut() -> Preparing,
    finish: impl FnOnce(P, Result<(), StoreError>) -> T,
) -> Option<T> {
    rounds(|transaction| committed(store, transaction), prepare, finish).await
}

/// Like [`drive`], but blocks this thread during each commit.
pub fn drive_and_wait<P, T>(
    store: &dyn Store,
    mut prepare: impl FnMut() -> Attempt<P, T>,
    finish: impl FnOnce(P, Result<(), StoreError>) -> T,
) -> Option<T> {
    let commit = |transaction| ready(store.commit_and_wait(transaction));
    let rounds = pin!(rounds(commit, || ready(prepare()), finish));
    match rounds.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        // A future that is ready needs no waiting.
        Poll::Pending => None,
    }
}

async fn rounds<P, T, Preparing, Committing>(
    commit: impl Fn(Transaction) -> Committing,
    mut prepare: impl FnMut() -> Preparing,
    finish: impl FnOnce(P, Result<(), StoreError>) -> T,
) -> Option<T>
where
    Preparing: Future<Output = Attempt<P, T>>,
    Committing: Future<Output = Result<(), StoreError>>,
{
    for _ in 0..MAX_ATTEMPTS {
        match prepare().await {
            Attempt::Done(done) => return Some(done),
            Attempt::Again => {}
            Attempt::Commit(transaction, prepared) => match commit(transaction).await {
                Err(StoreError::Conflict) => {}
                outcome => return Some(finish(prepared, outcome)),
            },
        }
    }
    None
}

/// Outcome of a commit, which runs to its end even if nobody waits for it any more.
pub async fn committed(store: &dyn Store, transaction: Transaction) -> Result<(), StoreError> {
    let (sender, receiver) = oneshot::channel();
    let tell = move |outcome| {
        // The client may be gone; the commit stands.
        let _ = sender.send(outcome);
    };
    store.commit(transaction, Box::new(tell));
    let lost = |_| Err(StoreError::Uncertain("its outcome was never reported".into()));
    receiver.await.unwrap_or_else(lost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::FaultyStore;
    use crate::memory::MemoryStore;

    fn writes(key: &str) -> Transaction {
        Transaction {
            writes: vec![(key.to_owned(), Some(b"x".to_vec()))],
            ..Transaction::default()
        }
    }

    #[test]
    fn it_is_prepared_again_until_the_commit_holds() {
        let store = FaultyStore::new(MemoryStore::new());
        for conflicts in [0, 1, MAX_ATTEMPTS - 1, MAX_ATTEMPTS] {
            store.conflict_next(u64::from(conflicts));
            let mut prepared = 0;
            let prepare = || {
                prepared += 1;
                Attempt::Commit::<_, u32>(writes("k"), prepared)
            };
            let found = drive_and_wait(&store, prepare, |prepared, outcome| {
                assert_eq!(outcome, Ok(()));
                prepared
            });
            assert_eq!(found, (conflicts < MAX_ATTEMPTS).then_some(conflicts + 1));
            assert_eq!(prepared, MAX_ATTEMPTS.min(conflicts + 1));
            store.conflict_next(0);
        }
    }

    #[test]
    fn what_needs_no_commit_makes_none_and_a_failure_is_told() {
        let store = FaultyStore::new(MemoryStore::new());
        let mut stale = true;
        let prepare = || match std::mem::take(&mut stale) {
            true => Attempt::Again::<(), u32>,
            false => Attempt::Done(7),
        };
        assert_eq!(drive_and_wait(&store, prepare, |(), _| 0), Some(7));
        store.fail_writes(true);
        let failed =
            drive_and_wait(&store, || Attempt::Commit(writes("k"), ()), |(), outcome| outcome);
        assert!(matches!(failed, Some(Err(error)) if error != StoreError::Conflict));
        assert!(store.read("k").unwrap().is_none());
    }

    /// A caller that stops waiting does not change what is committed.
    #[tokio::test]
    async fn a_commit_goes_on_without_who_asked_for_it() {
        let store = MemoryStore::new();
        let prepare = || async { Attempt::Commit::<_, ()>(writes("k"), ()) };
        {
            let mut driven = pin!(drive(&store, prepare, |(), _| ()));
            let _ = driven.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        }
        assert!(store.read("k").unwrap().is_some());
        let done = drive(&store, || async { Attempt::Commit(writes("l"), 1) }, |one, _| one).await;
        assert_eq!((done, store.read("l").unwrap().is_some()), (Some(1), true));
    }
}

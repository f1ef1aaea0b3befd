//! Turns for long-running work: generating RSA keys, signing with SLH-DSA, scanning an account's records.
//!
//! Each occupies a core for up to seconds. So only a few run concurrently, which leaves a core to all other requests.
//! Waiting calls take turns by principal, however many requests a principal has sent and over however many
//! connections.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::limits;

/// The turns of all principals.
pub(crate) struct Turns {
    all: Semaphore,
    /// Concurrent turns of one principal.
    of_one: usize,
    principals: Mutex<HashMap<String, Weak<Own>>>,
}

/// State of one principal.
struct Own {
    /// Calls behind these wait only for their own principal.
    turns: Arc<Semaphore>,
    waiting: AtomicUsize,
}

/// A turn, until it is dropped.
pub(crate) struct Turn<'a> {
    // Dropped in this order: the global permit first.
    _of_all: SemaphorePermit<'a>,
    _of_own: OwnedSemaphorePermit,
    _holder: Holder<'a>,
}

/// Too many calls of a principal are already waiting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

/// Removes a principal that has nothing left.
struct Holder<'a> {
    turns: &'a Turns,
    principal: String,
    /// `None` only while this is being dropped.
    own: Option<Arc<Own>>,
}

/// Counts a waiting call.
struct Waiting<'a>(&'a AtomicUsize);

impl Turns {
    /// Leaves one core to others, if there are several.
    pub(crate) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let at_a_time = cores.saturating_sub(1).max(1);
        Self::of(at_a_time, at_a_time)
    }

    /// With this many concurrent turns, and this many of one principal.
    pub(crate) fn of(at_a_time: usize, of_one: usize) -> Self {
        Self { all: Semaphore::new(at_a_time), of_one, principals: Mutex::default() }
    }

    /// Waits for a turn of this principal.
    pub(crate) async fn take(&self, principal: &str) -> Result<Turn<'_>, TooMany> {
        let own = Some(self.own(principal));
        let holder = Holder { turns: self, principal: principal.to_owned(), own };
        // Released before the holder, which checks whether it was the last.
        let Some(own) = holder.own.clone() else { return Err(TooMany) };
        let waiting = own.waiting.fetch_add(1, Ordering::SeqCst);
        let counted = Waiting(&own.waiting);
        if waiting >= limits::SLOW_WAITING {
            return Err(TooMany);
        }
        // Neither is ever closed.
        let of_own = own.turns.clone().acquire_owned().await.map_err(|_| TooMany)?;
        let of_all = self.all.acquire().await.map_err(|_| TooMany)?;
        drop(counted);
        Ok(Turn { _of_all: of_all, _of_own: of_own, _holder: holder })
    }

    fn own(&self, principal: &str) -> Arc<Own> {
        let mut principals = self.principals();
        let known = principals.get(principal).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let turns = Arc::new(Semaphore::new(self.of_one));
            let own = Arc::new(Own { turns, waiting: AtomicUsize::new(0) });
            principals.insert(principal.to_owned(), Arc::downgrade(&own));
            own
        })
    }

    fn principals(&self) -> MutexGuard<'_, HashMap<String, Weak<Own>>> {
        self.principals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Holder<'_> {
    fn drop(&mut self) {
        let mut principals = self.turns.principals();
        self.own = None;
        if principals.get(&self.principal).is_some_and(|own| own.strong_count() == 0) {
            principals.remove(&self.principal);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn who_has_many_does_not_hold_up_who_has_one() {
        let turns = Turns::of(1, 1);
        let Poll::Ready(Ok(first)) = poll(pin!(turns.take("busy"))) else { panic!("no turn") };
        let mut others: Vec<_> = (0..10).map(|_| Box::pin(turns.take("busy"))).collect();
        for other in &mut others {
            assert!(poll(other.as_mut()).is_pending());
        }
        // Arrives last, and is next.
        let mut quiet = pin!(turns.take("quiet"));
        assert!(poll(quiet.as_mut()).is_pending());
        drop(first);
        assert!(others.iter_mut().all(|other| poll(other.as_mut()).is_pending()));
        let Poll::Ready(Ok(turn)) = poll(quiet.as_mut()) else { panic!("no turn") };
        drop(turn);
        for other in &mut others {
            assert!(matches!(poll(other.as_mut()), Poll::Ready(Ok(_))), "one after the other");
        }
    }

    #[test]
    fn one_has_a_part_of_the_turns() {
        let turns = Turns::of(3, 2);
        let take = |principal| match poll(pin!(turns.take(principal))) {
            Poll::Ready(Ok(turn)) => Some(turn),
            _ => None,
        };
        let first = [take("busy").unwrap(), take("busy").unwrap()];
        assert!(take("busy").is_none());
        let other = take("quiet").unwrap();
        assert!(take("third").is_none());
        drop(first);
        assert!(take("busy").is_some());
        drop(other);
    }

    #[test]
    fn so_many_of_one_wait_and_what_is_given_up_makes_room() {
        let turns = Turns::of(2, 2);
        let taken: Vec<_> = (0..2)
            .map(|_| match poll(pin!(turns.take("a"))) {
                Poll::Ready(Ok(turn)) => turn,
                _ => panic!("no turn"),
            })
            .collect();
        let mut waiting: Vec<_> =
            (0..limits::SLOW_WAITING).map(|_| Box::pin(turns.take("a"))).collect();
        for one in &mut waiting {
            assert!(poll(one.as_mut()).is_pending());
        }
        assert!(matches!(poll(pin!(turns.take("a"))), Poll::Ready(Err(TooMany))));
        // Another principal is not affected.
        assert!(poll(pin!(turns.take("b"))).is_pending());
        waiting.pop();
        assert!(poll(pin!(turns.take("a"))).is_pending());
        drop((waiting, taken));
        assert_eq!(turns.all.available_permits(), 2);
        assert!(turns.principals().is_empty(), "nobody is remembered");
    }
}

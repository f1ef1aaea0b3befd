//! Requests that clients cancel before they are answered or never complete. Over HTTP/2 each cancelled request makes
//! room for the next at once, so that a limit on concurrent streams has no effect (CVE-2023-44487).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::limits;
use crate::metrics::{Action, Limit, Tally};

/// Requests that a connection's client has cancelled.
pub(crate) struct Cancelled {
    /// Cancelled requests minus answered ones.
    count: AtomicUsize,
    full: Notify,
    tally: Tally,
}

impl Cancelled {
    /// Nothing yet.
    pub(crate) fn new(tally: Tally) -> Self {
        Self { count: AtomicUsize::new(0), full: Notify::new(), tally }
    }

    /// Counts a request that has arrived.
    pub(crate) fn begin(self: &Arc<Self>) -> Request {
        Request { of: self.clone(), is_answered: false }
    }

    /// Ends when there are more than [`limits::MAX_CANCELLED`].
    pub(crate) async fn too_many(&self) {
        self.full.notified().await;
        self.tally.count(Limit::Cancelled, Action::Evicted);
    }
}

/// A request; dropped before it is answered, it counts as cancelled.
pub(crate) struct Request {
    of: Arc<Cancelled>,
    is_answered: bool,
}

impl Request {
    /// The request was complete and has been answered.
    pub(crate) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let Cancelled { count, full, .. } = &*self.of;
        if self.is_answered {
            let _ = count
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1));
        } else if count.fetch_add(1, Ordering::Relaxed) >= limits::MAX_CANCELLED {
            full.notify_one();
        }
    }
}

//! Requests that clients take back before they are answered, or never send to their end. Over HTTP/2 each that is taken back
//! gives room for the next at once, so that a limit on concurrent streams limits nothing (CVE-2023-44487).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

use crate::limits;
use crate::metrics::{Action, Limit, Tally};

/// What a connection's client has taken back.
pub(crate) struct Cancelled {
    /// Less those that were answered.
    count: AtomicUsize,
    full: Notify,
    tally: Tally,
}

impl Cancelled {
    /// Nothing yet.
    pub(crate) fn new(tally: Tally) -> Self {
        Self { count: AtomicUsize::new(0), full: Notify::new(), tally }
    }

    /// A request has come.
    pub(crate) fn begin(self: &Arc<Self>) -> Request {
        Request { of: self.clone(), is_answered: false }
    }

    /// Ends when there were more than [`limits::MAX_CANCELLED`].
    pub(crate) async fn too_many(&self) {
        self.full.notified().await;
        self.tally.count(Limit::Cancelled, Action::Evicted);
    }
}

/// A request: taken back if this is dropped before it is answered.
pub(crate) struct Request {
    of: Arc<Cancelled>,
    is_answered: bool,
}

impl Request {
    /// It was whole, and not taken back.
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

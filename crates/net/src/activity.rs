//! What goes on on a connection: whether it may be closed as idle, and which connection makes room when there are too
//! many. What is done about it is decided in [`crate::slots`] and by each server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Requests that are open on a connection, and when the last one ended.
pub(crate) struct Activity {
    /// Everything that is open.
    open: AtomicUsize,
    /// What of it makes use of the service.
    used: AtomicUsize,
    times: Mutex<Times>,
}

/// When something happened last.
#[derive(Clone, Copy)]
struct Times {
    /// Anything at all.
    open: Instant,
    /// A use of the service: no health check, no request that is only begun.
    used: Instant,
}

impl Activity {
    /// Of a connection that is new.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        let times = Mutex::new(Times { open: now, used: now });
        Self { open: AtomicUsize::new(0), used: AtomicUsize::new(0), times }
    }

    /// A request that is served. While it is open, its connection makes room for nobody.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.used.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        Busy { activity: self.clone(), is_use: true }
    }

    /// A request that may never be served: it is not whole yet, or asks only whether the server is there. It keeps its
    /// connection open, and from nothing else.
    pub(crate) fn attend(self: &Arc<Self>) -> Busy {
        self.open.fetch_add(1, Ordering::Relaxed);
        Busy { activity: self.clone(), is_use: false }
    }

    /// Something went on without a request being open.
    pub(crate) fn touch(&self) {
        let now = Instant::now();
        *self.times() = Times { open: now, used: now };
    }

    /// Since when there has been no request; `None` if there is one.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let last = self.times().open;
        (self.open.load(Ordering::Relaxed) == 0).then_some(last)
    }

    /// Since when the connection has made no use of the service; `None` if it does so now.
    pub(crate) fn unused_since(&self) -> Option<Instant> {
        let last = self.times().used;
        (self.used.load(Ordering::Relaxed) == 0).then_some(last)
    }

    /// Ends when there was no request for as long as a connection may idle.
    pub(crate) async fn idle(&self, limit: Duration) {
        loop {
            tokio::time::sleep(limit / 4).await;
            if self.idle_since().is_some_and(|since| since.elapsed() > limit) {
                return;
            }
        }
    }

    fn times(&self) -> std::sync::MutexGuard<'_, Times> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open request.
pub(crate) struct Busy {
    activity: Arc<Activity>,
    is_use: bool,
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Self { activity, is_use } = self;
        if *is_use {
            activity.touch();
            activity.used.fetch_sub(1, Ordering::Relaxed);
        } else {
            activity.times().open = Instant::now();
        }
        activity.open.fetch_sub(1, Ordering::Relaxed);
    }
}

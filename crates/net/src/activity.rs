//! Activity of a connection: whether it may be closed as idle, and which connection to close when there are too many.
//! [`crate::slots`] and each server decide what to do about it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Number of open requests on a connection, and when the last one ended.
pub(crate) struct Activity {
    /// All open requests.
    open: AtomicUsize,
    /// Those of them that use the service.
    used: AtomicUsize,
    times: Mutex<Times>,
}

/// Times of the last events.
#[derive(Clone, Copy)]
struct Times {
    /// Last event of any kind.
    open: Instant,
    /// Last use of the service, not counting health checks and incomplete requests.
    used: Instant,
}

impl Activity {
    /// For a new connection.
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        let times = Mutex::new(Times { open: now, used: now });
        Self { open: AtomicUsize::new(0), used: AtomicUsize::new(0), times }
    }

    /// Begins to serve a request. While it is open, its connection is not closed for another one.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.used.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        Busy { activity: self.clone(), is_use: true }
    }

    /// Begins a request that may never be served: it is incomplete, or only checks whether the server is there. It
    /// keeps its connection from being idle, but not from being closed for another one.
    pub(crate) fn attend(self: &Arc<Self>) -> Busy {
        self.open.fetch_add(1, Ordering::Relaxed);
        Busy { activity: self.clone(), is_use: false }
    }

    /// Notes activity outside of a request.
    pub(crate) fn touch(&self) {
        let now = Instant::now();
        *self.times() = Times { open: now, used: now };
    }

    /// When the last request ended; `None` if one is open.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let last = self.times().open;
        (self.open.load(Ordering::Relaxed) == 0).then_some(last)
    }

    /// When the connection last used the service; `None` if it does so now.
    pub(crate) fn unused_since(&self) -> Option<Instant> {
        let last = self.times().used;
        (self.used.load(Ordering::Relaxed) == 0).then_some(last)
    }

    /// Ends when there was no request for as long as a connection may be idle.
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

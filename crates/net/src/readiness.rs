//! The state behind `/readyz`: results of the last background check, so that requests for it do no work in the store.
//!
//! `outlast_api::service::readiness` does the checks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use outlast_api::service::Reading;
use outlast_api::service::Service;
use outlast_api::service::readiness::{AUDIT, LOOK, Problem};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::clock::Clock;
use crate::limits;

/// Readings of two clocks: `clock`, and the machine's monotonic one.
pub fn reading(clock: Clock) -> Reading {
    // Unlike CLOCK_MONOTONIC it goes on while the machine is suspended.
    let since_boot = clock_gettime(ClockId::Boottime);
    let monotonic_ms = since_boot.tv_sec * 1000 + since_boot.tv_nsec / 1_000_000;
    Reading { wall_ms: clock(), monotonic_ms }
}

/// Results of the last check.
pub(crate) struct Readiness {
    looked: watch::Sender<Option<Looked>>,
    is_watched: AtomicBool,
}

struct Looked {
    ended: Instant,
    problems: Vec<Problem>,
}

impl Default for Readiness {
    fn default() -> Self {
        Self { looked: watch::Sender::new(None), is_watched: AtomicBool::new(false) }
    }
}

impl Readiness {
    /// Problems of the last check. Before the first check has ended, this waits for it, without holding a thread.
    async fn problems(&self) -> Vec<Problem> {
        let mut looked = self.looked.subscribe();
        if timeout(limits::FIRST_LOOK, looked.wait_for(Option::is_some)).await.is_err() {
            return vec![Problem::new(&LOOK, "")];
        }
        let looked = looked.borrow();
        match looked.as_ref().filter(|looked| looked.ended.elapsed() <= limits::LOOK_AGE) {
            Some(looked) => looked.problems.clone(),
            None => vec![Problem::new(&LOOK, "")],
        }
    }

    /// Stores the result of a check and logs new problems.
    fn note(&self, problems: Vec<Problem>) {
        let looked = Looked { ended: Instant::now(), problems };
        let before = self.looked.borrow().as_ref().map(|looked| looked.problems.clone());
        let before = before.unwrap_or_default();
        let names = |problems: &[Problem]| problems.iter().map(|one| one.reason.name).collect();
        let (was, is): (Vec<_>, Vec<_>) = (names(&before), names(&looked.problems));
        if was != is {
            for problem in &looked.problems {
                tracing::error!(reason = %problem, "this server is not ready");
            }
            if is.is_empty() {
                tracing::warn!("this server is ready again");
            }
        }
        self.looked.send_replace(Some(looked));
    }
}

/// Checks until it is dropped.
pub(crate) struct Watching(JoinHandle<()>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Readiness {
    /// Why a server with this service is not ready; empty if it is. Does no work: an alarm is known at once,
    /// everything else since the last check.
    pub(crate) async fn why_not(&self, service: &Service) -> Vec<Problem> {
        let alarm = service.audit_alarm().map(|alarm| Problem::new(&AUDIT, alarm));
        let mut problems: Vec<_> = alarm.into_iter().collect();
        problems.extend(self.problems().await);
        problems
    }

    /// Starts the background checks, unless they have started already.
    pub(crate) fn watch(
        self: &Arc<Self>,
        service: &Arc<Service>,
        clock: Clock,
    ) -> Option<Watching> {
        if self.is_watched.swap(true, Ordering::SeqCst) {
            return None;
        }
        let (readiness, service) = (self.clone(), service.clone());
        Some(Watching(tokio::spawn(async move {
            loop {
                let service = service.clone();
                // On its own thread, because it may wait for a database or a token.
                let look = tokio::task::spawn_blocking(move || service.look(reading(clock)));
                if let Ok(problems) = look.await {
                    readiness.note(problems);
                }
                sleep(limits::LOOK_INTERVAL).await;
            }
        })))
    }
}

//! The lease of a job or of a workflow's step, renewed while it runs.

use std::future::Future;
use std::time::Duration;

use outlast_domain::limits::CONNECTOR_LEASE_MS;
use tokio::time::{Instant, timeout_at};

use crate::limits;

/// The times of a lease.
pub struct Times {
    /// How long a lease counts as held: less than it lasts.
    held: Duration,
    /// Time between renewals.
    renewal: Duration,
}

impl Default for Times {
    fn default() -> Self {
        let lease = Duration::from_millis(CONNECTOR_LEASE_MS.unsigned_abs());
        Self::new(lease, limits::CONNECTOR_MARGIN, limits::CONNECTOR_RENEWAL)
    }
}

impl Times {
    /// Those of a lease that lasts for `lease`, counts as lost `margin` earlier, and is renewed every `renewal`.
    pub fn new(lease: Duration, margin: Duration, renewal: Duration) -> Self {
        Self { held: lease.saturating_sub(margin), renewal }
    }

    /// Renews a lease that began after `since`; ends when it is lost, or soon may be: before another server may begin, also if
    /// the store does not answer or this process was stopped for a while. `renew` says whether the lease is still held,
    /// `warn` is told why it could not.
    pub async fn keep<F>(&self, since: Instant, renew: impl Fn() -> F, warn: impl Fn(&str))
    where
        F: Future<Output = Result<bool, String>>,
    {
        let mut renewed = since;
        loop {
            tokio::time::sleep(self.renewal).await;
            // It holds from a time after this.
            let now = Instant::now();
            let error = match timeout_at(renewed + self.held, renew()).await {
                Ok(Ok(true)) => {
                    renewed = now;
                    continue;
                }
                Ok(Ok(false)) => return,
                Ok(Err(error)) => error,
                Err(_) => "there was no answer in time".to_owned(),
            };
            warn(&error);
            if Instant::now() + self.renewal >= renewed + self.held {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail")]

    use std::cell::RefCell;
    use std::future::{pending, ready};

    use super::*;

    const TIMES: Times =
        Times { held: Duration::from_millis(1200), renewal: Duration::from_millis(300) };

    /// How long a lease that began now is kept, and what was warned of; `None` if it is kept for three seconds.
    async fn kept<F: Future<Output = Result<bool, String>>>(
        renew: impl Fn(usize) -> F,
    ) -> Option<(Duration, Vec<String>)> {
        let (number, warnings) = (RefCell::new(0), RefCell::new(Vec::new()));
        let begun = Instant::now();
        let next = || {
            *number.borrow_mut() += 1;
            renew(*number.borrow())
        };
        let warn = |error: &str| warnings.borrow_mut().push(error.to_owned());
        tokio::time::timeout(Duration::from_secs(3), TIMES.keep(begun, next, warn)).await.ok()?;
        Some((begun.elapsed(), warnings.take()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_that_hangs_does_not_outlive_the_lease() {
        let (took, warnings) = kept(|_| pending()).await.expect("it is not kept for ever");
        assert!(took >= TIMES.held, "until the lease is over: {took:?}");
        assert_eq!(warnings, ["there was no answer in time"]);
        // One that was renewed before lasts as much longer.
        let hangs_later = |number: usize| async move {
            if number > 2 { pending().await } else { Ok::<bool, String>(true) }
        };
        let (took, _) = kept(hangs_later).await.unwrap();
        assert!(took >= TIMES.held + 2 * TIMES.renewal, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_is_given_up_when_it_is_lost_or_may_be() {
        let (took, warnings) = kept(|_| ready(Ok(false))).await.unwrap();
        assert!(took < TIMES.held && warnings.is_empty(), "{took:?}");
        let (took, warnings) = kept(|_| ready(Err("the disk is full".to_owned()))).await.unwrap();
        assert!(took < TIMES.held, "while it is held: {took:?}");
        assert!(warnings.iter().all(|error| error == "the disk is full") && warnings.len() > 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_renewed_is_kept() {
        assert!(kept(|_| ready(Ok(true))).await.is_none());
        // A failure between two renewals does not matter.
        let fails = |number: usize| {
            ready(if number.is_multiple_of(2) { Ok(true) } else { Err("away".to_owned()) })
        };
        assert!(kept(fails).await.is_none());
    }
}

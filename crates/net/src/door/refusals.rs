//! Refusals in the log: a few per minute for each cause, so that an operator sees them but a flood does not fill the
//! disk.
//!
//! The ledger contains all of them; these lines are for operators who have not looked there yet.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use outlast_negotiate::{Refusal, Rules};

use crate::limits::REFUSALS_LOGGED;

const MINUTE: Duration = Duration::from_secs(60);

/// Logged refusals by cause.
#[derive(Default)]
pub(super) struct Refusals(Mutex<HashMap<Refusal, Counted>>);

struct Counted {
    /// Start of the current minute.
    since: Instant,
    /// Refusals logged in it.
    logged: u32,
    /// Refusals suppressed since the last logged one.
    kept_back: u64,
}

impl Refusals {
    /// Logs a refusal, unless its cause has been logged often enough in this minute.
    pub(super) fn log(
        &self,
        listener: &str,
        rules: &Rules,
        peer: Option<SocketAddr>,
        refusal: Refusal,
    ) {
        let Some(not_logged) = self.count(refusal, Instant::now()) else { return };
        let peer = peer.map(|peer| tracing::field::display(peer.ip()));
        tracing::info!(
            listener, peer, policy = rules.policy.name, mode = %rules.mode, %refusal, not_logged, "a client was refused"
        );
    }

    /// Number of suppressed refusals with this cause before this one; `None` if this one is suppressed too.
    fn count(&self, cause: Refusal, now: Instant) -> Option<u64> {
        let mut causes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Counted { since: now, logged: 0, kept_back: 0 };
        let counted = causes.entry(cause).or_insert(fresh);
        if now.duration_since(counted.since) >= MINUTE {
            counted.since = now;
            counted.logged = 0;
        }
        if counted.logged == REFUSALS_LOGGED {
            counted.kept_back += 1;
            return None;
        }
        counted.logged += 1;
        Some(std::mem::take(&mut counted.kept_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_logged_some_times_a_minute() {
        let refusals = Refusals::default();
        let begun = Instant::now();
        for cause in [Refusal::Group, Refusal::Version] {
            for _ in 0..REFUSALS_LOGGED {
                assert_eq!(refusals.count(cause, begun), Some(0), "{cause}");
            }
            for second in 0..60 {
                let later = begun + Duration::from_secs(second);
                assert_eq!(refusals.count(cause, later), None, "{cause}");
            }
        }
        // Reports the number of suppressed refusals once.
        assert_eq!(refusals.count(Refusal::Group, begun + MINUTE), Some(60));
        assert_eq!(refusals.count(Refusal::Group, begun + MINUTE), Some(0));
    }
}

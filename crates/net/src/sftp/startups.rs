//! Connections that have not authenticated. Above a number of them new ones are dropped at random, as by OpenSSH's
//! `MaxStartups`, so that a flood keeps out no particular client.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::metrics::{Action, Limit, Tally};

/// The connections that have not authenticated.
pub(super) struct Startups {
    now: AtomicUsize,
    begin: usize,
    full: usize,
}

/// One of them, until this is dropped.
pub(super) struct Startup(Arc<Startups>);

impl Startups {
    pub(super) fn new(begin: usize, full: usize) -> Self {
        Self { now: AtomicUsize::new(0), begin, full: full.max(1) }
    }

    /// One more, unless it is dropped.
    pub(super) fn admit(startups: &Arc<Self>, tally: &Tally) -> Option<Startup> {
        let before = startups.now.fetch_add(1, Ordering::Relaxed);
        let startup = Startup(startups.clone());
        if startups.drops(before, random()) {
            tally.count(Limit::Handshakes, Action::Refused);
            return None;
        }
        Some(startup)
    }

    /// Whether the next connection is dropped, when there are `before` of them. `random` is evenly distributed.
    fn drops(&self, before: usize, random: u32) -> bool {
        if before >= self.full {
            return true;
        }
        let Some(above) = before.checked_sub(self.begin) else { return false };
        let range = (self.full - self.begin).max(1) as u64;
        // Below `above / range`.
        u64::from(random) * range < ((above as u64) << 32)
    }
}

/// If there are no random numbers, the connection is dropped: it could not exchange keys, either.
fn random() -> u32 {
    outlast_crypto::random::bytes().map_or(0, u32::from_ne_bytes)
}

impl Drop for Startup {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probability_grows_from_the_beginning_to_the_full_number() {
        let startups = Startups::new(10, 30);
        for before in 0..=10 {
            assert!(!startups.drops(before, 0), "{before}");
        }
        for before in 30..32 {
            assert!(startups.drops(before, u32::MAX), "{before}");
        }
        let half = |random| startups.drops(20, random);
        assert!(half(0) && half(u32::MAX / 2) && !half(u32::MAX / 2 + 2) && !half(u32::MAX));
        let dropped = |before: usize| {
            let tries = (0..1000u32).map(|number| number * (u32::MAX / 1000));
            tries.filter(|random| startups.drops(before, *random)).count()
        };
        assert!((12..30).all(|before| dropped(before) > dropped(before - 1)));
    }

    #[test]
    fn a_connection_counts_until_it_has_authenticated() {
        let startups = Arc::new(Startups::new(1, 2));
        let tally = Tally::default();
        let first = Startups::admit(&startups, &tally).unwrap();
        let second = Startups::admit(&startups, &tally);
        assert!(second.is_some() && Startups::admit(&startups, &tally).is_none());
        drop((first, second));
        assert!(Startups::admit(&startups, &tally).is_some());
    }
}

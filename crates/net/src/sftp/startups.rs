//! Connections that have not authenticated. Above a number of them new ones are dropped at random, as by OpenSSH's
//! `MaxStartups`, so that a flood keeps out no particular client. A peer may begin many at once while the door is quiet; when it is not,
//! no more are taken from a peer that has many, and the door is judged to be as full as it would be if each such peer had its share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::HashMap;

use crate::limits;
use crate::metrics::{Action, Limit, Tally};
use crate::peer::Peer;

/// The connections that have not authenticated: at most `begin + full` of them.
pub(super) struct Startups {
    counts: Mutex<Counts>,
    begin: usize,
    full: usize,
    /// Connections of one peer that keep others out. It has more only if it began them while there were fewer than `begin`.
    share: usize,
}

#[derive(Default)]
struct Counts {
    all: usize,
    by_peer: HashMap<Peer, usize>,
    /// What peers have beyond their shares.
    surplus: usize,
}

/// One of them, until this is dropped.
pub(super) struct Startup {
    startups: Arc<Startups>,
    peer: Peer,
}

impl Startups {
    pub(super) fn new(begin: usize, full: usize) -> Self {
        let full = full.max(1);
        let share = (full / limits::PEER_SHARE).max(1);
        Self { counts: Mutex::default(), begin: begin.min(full), full, share }
    }

    /// One more of this peer, unless it is dropped.
    pub(super) fn admit(startups: &Arc<Self>, peer: Peer, tally: &Tally) -> Option<Startup> {
        let random = random();
        let mut counts = startups.counts();
        if let Some(limit) = startups.refuses(&counts, peer, random) {
            tally.count(limit, Action::Refused);
            return None;
        }
        counts.add(peer, startups.share);
        Some(Startup { startups: startups.clone(), peer })
    }

    /// The limit by which the peer's next connection is dropped, if it is.
    fn refuses(&self, counts: &Counts, peer: Peer, random: u32) -> Option<Limit> {
        if counts.all < self.begin {
            return None;
        }
        if counts.of(peer) >= self.share {
            return Some(Limit::HandshakesByPeer);
        }
        self.drops(counts.all.saturating_sub(counts.surplus), random).then_some(Limit::Handshakes)
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

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn of(&self, peer: Peer) -> usize {
        self.by_peer.get(&peer).copied().unwrap_or_default()
    }

    fn add(&mut self, peer: Peer, share: usize) {
        let mine = self.by_peer.entry(peer).or_default();
        *mine += 1;
        self.all += 1;
        self.surplus += usize::from(*mine > share);
    }

    fn remove(&mut self, peer: Peer, share: usize) {
        let Some(mine) = self.by_peer.get_mut(&peer) else { return };
        self.all -= 1;
        self.surplus -= usize::from(*mine > share);
        *mine -= 1;
        if *mine == 0 {
            self.by_peer.remove(&peer);
        }
    }
}

/// If there are no random numbers, the connection is dropped: it could not exchange keys, either.
fn random() -> u32 {
    outlast_crypto::random::bytes().map_or(0, u32::from_ne_bytes)
}

impl Drop for Startup {
    fn drop(&mut self) {
        self.startups.counts().remove(self.peer, self.startups.share);
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn peer(number: u8) -> Peer {
        Peer::of(IpAddr::from([192, 0, 2, number]))
    }

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
        let (startups, tally) = (Arc::new(Startups::new(1, 2)), Tally::default());
        let admit = |number| Startups::admit(&startups, peer(number), &tally);
        let (first, second) = (admit(1), admit(2));
        assert!(first.is_some() && second.is_some() && admit(3).is_none());
        drop((first, second));
        assert!(admit(3).is_some());
    }

    /// As many as it may begin at once, and again when those are over.
    #[test]
    fn an_address_begins_a_thousand_logins_at_once() {
        let (begin, full) = limits::SFTP_STARTUPS;
        let (startups, tally) = (Arc::new(Startups::new(begin, full)), Tally::default());
        for _ in 0..3 {
            let admit = |_| Startups::admit(&startups, peer(1), &tally);
            let held: Vec<Startup> = (0..1000).filter_map(admit).collect();
            assert_eq!(held.len(), 1000);
        }
    }

    #[test]
    fn two_addresses_do_not_keep_others_out() {
        let (startups, tally) = (Arc::new(Startups::new(1024, 2048)), Tally::default());
        let admit = |number| Startups::admit(&startups, peer(number), &tally);
        let mut held: Vec<Startup> = Vec::new();
        for (flooding, taken) in [(1, 1024), (2, 256)] {
            let before = held.len();
            held.extend((0..4096).filter_map(|_| admit(flooding)));
            assert_eq!(held.len() - before, taken, "{flooding}");
        }
        // None is dropped at random, either.
        for other in 3..=100 {
            held.extend((0..4).map(|_| admit(other).expect("a login of somebody else")));
        }
        assert!(admit(1).is_none() && admit(2).is_none());
        // Those that give up leave nothing behind.
        drop(held);
        let counts = startups.counts();
        assert_eq!((counts.all, counts.surplus, counts.by_peer.len()), (0, 0, 0));
    }

    /// Peers that stay within their shares fill the door together.
    #[test]
    fn many_addresses_are_dropped_at_random() {
        let (startups, tally) = (Arc::new(Startups::new(16, 32)), Tally::default());
        let admit = |number| Startups::admit(&startups, peer(number), &tally);
        let held: Vec<Startup> = (0..=255).cycle().take(2550).filter_map(admit).collect();
        assert_eq!(held.len(), 32);
    }
}

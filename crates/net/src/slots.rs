//! Slots of a listener: how many connections it has, how many of them one peer may have, and which one is closed for
//! another. [`crate::bodies`] limits the memory of their requests.
//!
//! A connection with an open request is never closed for another one. Of the rest, the one that has been idle for
//! longest is closed, so that a peer that only holds connections locks out nobody.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foldhash::HashMap;
use tokio::sync::{Notify, oneshot};

use crate::activity::Activity;
use crate::limits;
use crate::metrics::{Action, Limit, Tally};
use crate::peer::Peer;

/// Numbers of slots.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Number {
    /// Slots in all.
    pub(crate) all: usize,
    /// Slots of one peer.
    pub(crate) by_peer: usize,
}

impl Number {
    /// This many slots; a peer may have one in [`limits::PEER_SHARE`] of them, unless `by_peer` says otherwise.
    pub(crate) fn of(all: usize, by_peer: Option<usize>) -> Self {
        let by_peer = by_peer.unwrap_or(all / limits::PEER_SHARE);
        Self { all, by_peer: by_peer.clamp(1, all.max(1)) }
    }

    /// Slots for the handshakes of a listener with this many connections: handshakes are short, and many may begin at
    /// once.
    pub(crate) fn of_handshakes(all: usize, connections: Self) -> Self {
        let by_peer = connections.by_peer.saturating_mul(limits::HANDSHAKES_PER_CONNECTION);
        Self::of(all, Some(by_peer))
    }
}

/// Purpose of the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// Connections. When all slots are taken, the one that has been idle for longest is closed.
    Connections,
    /// Handshakes. When all slots are taken, the oldest of the peer with the most is closed.
    Handshakes,
    /// Requests. None is closed for another.
    Requests,
}

impl Of {
    fn limit(self, is_of_peer: bool) -> Limit {
        match (self, is_of_peer) {
            (Self::Connections, false) => Limit::Connections,
            (Self::Connections, true) => Limit::ConnectionsByPeer,
            (Self::Handshakes, false) => Limit::Handshakes,
            (Self::Handshakes, true) => Limit::HandshakesByPeer,
            (Self::Requests, false) => Limit::Requests,
            (Self::Requests, true) => Limit::RequestsByPeer,
        }
    }
}

/// The slots of a listener.
pub(crate) struct Slots {
    of: Of,
    all: AtomicUsize,
    by_peer: AtomicUsize,
    taken: Mutex<Taken>,
    freed: Notify,
    tally: Tally,
}

#[derive(Default)]
struct Taken {
    next: u64,
    entries: HashMap<u64, Entry>,
    peers: HashMap<Peer, Vec<u64>>,
    /// When a search last found none that can be closed.
    in_vain: Option<Instant>,
}

struct Entry {
    peer: Option<Peer>,
    activity: Arc<Activity>,
    close: oneshot::Sender<()>,
}

impl Taken {
    fn count(&self, peer: Peer) -> usize {
        self.peers.get(&peer).map_or(0, Vec::len)
    }

    fn remove(&mut self, id: u64) -> Option<Entry> {
        let entry = self.entries.remove(&id)?;
        if let Some(peer) = entry.peer
            && let Some(list) = self.peers.get_mut(&peer)
        {
            list.retain(|one| *one != id);
            if list.is_empty() {
                self.peers.remove(&peer);
            }
        }
        Some(entry)
    }

    fn unused_since(&self, id: u64) -> Option<Instant> {
        self.entries.get(&id)?.activity.unused_since()
    }

    /// The connection that has been idle for longest.
    fn longest_unused(&self, ids: impl Iterator<Item = u64>) -> Option<(Instant, u64)> {
        ids.filter_map(|id| Some((self.unused_since(id)?, id))).min()
    }

    /// The connection to close for another one: of this peer, or of any.
    fn candidate(&mut self, of: Of, peer: Option<Peer>, spared: Duration) -> Option<u64> {
        let list = match (peer, of) {
            (_, Of::Requests) => return None,
            (Some(peer), _) => self.peers.get(&peer),
            (None, Of::Handshakes) => self.peers.values().max_by_key(|list| list.len()),
            (None, Of::Connections) => None,
        };
        let old = |found: &(Instant, u64)| found.0.elapsed() >= spared;
        if let Some(list) = list {
            return self.longest_unused(list.iter().copied()).filter(old).map(|(_, id)| id);
        }
        if self.in_vain.is_some_and(|when| when.elapsed() < limits::SLOTS_IN_VAIN) {
            return None;
        }
        let found = self.longest_unused(self.entries.keys().copied()).filter(old);
        self.in_vain = found.is_none().then(Instant::now);
        found.map(|(_, id)| id)
    }
}

impl Slots {
    /// All slots, free.
    pub(crate) fn new(of: Of, number: Number, tally: Tally) -> Arc<Self> {
        Arc::new(Self {
            of,
            all: AtomicUsize::new(number.all),
            by_peer: AtomicUsize::new(number.by_peer),
            taken: Mutex::default(),
            freed: Notify::new(),
            tally,
        })
    }

    /// Changes the number of slots. Nobody loses one.
    pub(crate) fn resize(&self, number: Number) {
        self.all.store(number.all, Ordering::Relaxed);
        self.by_peer.store(number.by_peer, Ordering::Relaxed);
        self.freed.notify_waiters();
    }

    /// Takes a slot for a connection of this peer; a connection whose peer is not known yet counts for none. The
    /// error is the limit that was reached while all other connections were busy.
    pub(crate) fn enter(
        self: &Arc<Self>,
        peer: Option<Peer>,
        activity: &Arc<Activity>,
    ) -> Result<Slot, Limit> {
        let entered = self.try_enter(peer, activity, Duration::ZERO);
        if let Err(limit) = entered {
            self.tally.count(limit, Action::Refused);
        }
        entered
    }

    /// Like `enter`, but waits until a slot is free or another connection has been idle for `spared`.
    pub(crate) async fn enter_in_turn(
        self: &Arc<Self>,
        peer: Option<Peer>,
        activity: &Arc<Activity>,
        spared: Duration,
    ) -> Slot {
        let mut waiting = Waiting { slots: self, limit: None };
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            freed.as_mut().enable();
            match self.try_enter(peer, activity, spared) {
                Ok(slot) => {
                    waiting.limit = None;
                    return slot;
                }
                Err(limit) => waiting.limit = Some(limit),
            }
            let again = tokio::time::sleep(limits::SLOTS_AGAIN);
            if waiting.limit == Some(self.of.limit(true)) {
                // Other slots are for other peers.
                again.await;
            } else {
                tokio::select! {
                    () = freed => {}
                    () = again => {}
                }
            }
        }
    }

    /// Whether this peer could have a slot now.
    pub(crate) fn has_room(&self, peer: Peer) -> Result<(), Limit> {
        let checked = self.check(&mut self.taken(), Some(peer), Duration::ZERO).map(|_| ());
        checked.inspect_err(|limit| self.tally.count(*limit, Action::Refused))
    }

    /// Closes the connection that has been idle for longest, if any, because the system is out of file descriptors.
    pub(crate) fn make_room(&self) {
        let mut taken = self.taken();
        if let Some(id) = taken.candidate(self.of, None, Duration::ZERO) {
            self.evict(&mut taken, id, self.of.limit(false));
        }
    }

    fn try_enter(
        self: &Arc<Self>,
        peer: Option<Peer>,
        activity: &Arc<Activity>,
        spared: Duration,
    ) -> Result<Slot, Limit> {
        let mut taken = self.taken();
        if let Some((id, limit)) = self.check(&mut taken, peer, spared)? {
            self.evict(&mut taken, id, limit);
        }
        let id = taken.next;
        taken.next += 1;
        let (close, closed) = oneshot::channel();
        taken.entries.insert(id, Entry { peer, activity: activity.clone(), close });
        if let Some(peer) = peer {
            taken.peers.entry(peer).or_default().push(id);
        }
        Ok(Slot { slots: self.clone(), id, closed, activity: activity.clone() })
    }

    /// The connection to close for one more of this peer, and the limit that was reached.
    fn check(
        &self,
        taken: &mut Taken,
        peer: Option<Peer>,
        spared: Duration,
    ) -> Result<Option<(u64, Limit)>, Limit> {
        let by_peer = self.by_peer.load(Ordering::Relaxed);
        let full = peer.filter(|peer| taken.count(*peer) >= by_peer);
        if full.is_none() && taken.entries.len() < self.all.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let limit = self.of.limit(full.is_some());
        let found = taken.candidate(self.of, full, spared);
        found.map(|id| Some((id, limit))).ok_or(limit)
    }

    fn evict(&self, taken: &mut Taken, id: u64, limit: Limit) {
        if let Some(entry) = taken.remove(id) {
            self.tally.count(limit, Action::Evicted);
            let _ = entry.close.send(());
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of slots in use.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.taken().entries.len()
    }
}

/// A slot, in use until this is dropped.
pub struct Slot {
    slots: Arc<Slots>,
    id: u64,
    closed: oneshot::Receiver<()>,
    activity: Arc<Activity>,
}

impl Slot {
    /// Completes when the connection must be closed for another one, which then has its slot.
    pub(crate) async fn evicted(&mut self) {
        if (&mut self.closed).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// The connection's activity.
    pub(crate) fn activity(&self) -> &Arc<Activity> {
        &self.activity
    }

    /// Sets the peer once it is known. If the peer has too many connections, the one that has been idle for longest
    /// is closed; this one, if all others are busy.
    pub(crate) fn belongs_to(&self, peer: Peer) {
        let slots = &self.slots;
        let mut taken = slots.taken();
        if taken.count(peer) >= slots.by_peer.load(Ordering::Relaxed) {
            let found = taken.candidate(slots.of, Some(peer), Duration::ZERO);
            let found = found.unwrap_or(self.id);
            slots.evict(&mut taken, found, slots.of.limit(true));
        }
        let Some(entry) = taken.entries.get_mut(&self.id) else { return };
        if entry.peer.is_none() {
            entry.peer = Some(peer);
            taken.peers.entry(peer).or_default().push(self.id);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let removed = self.slots.taken().remove(self.id);
        if removed.is_some() {
            self.slots.freed.notify_one();
        }
    }
}

/// A wait for a slot; counted if it fails.
struct Waiting<'a> {
    slots: &'a Slots,
    limit: Option<Limit>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(limit) = self.limit {
            self.slots.tally.count(limit, Action::Refused);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(number: u8) -> Option<Peer> {
        Some(Peer::of([192, 0, 2, number].into()))
    }

    fn slots(of: Of, all: usize, by_peer: usize) -> Arc<Slots> {
        Slots::new(of, Number { all, by_peer }, Tally::default())
    }

    fn enter(slots: &Arc<Slots>, number: u8) -> Result<Slot, Limit> {
        slots.enter(peer(number), &Arc::new(Activity::new()))
    }

    fn is_evicted(slot: &mut Slot) -> bool {
        slot.closed.try_recv().is_ok()
    }

    #[test]
    fn a_peer_with_too_many_makes_room_itself() {
        let slots = slots(Of::Connections, 4, 2);
        let mut other = enter(&slots, 2).unwrap();
        let mut mine: Vec<_> = (0..5).map(|_| enter(&slots, 1).unwrap()).collect();
        let evicted: Vec<_> = mine.iter_mut().map(is_evicted).collect();
        assert_eq!(evicted, [true, true, true, false, false]);
        assert!(!is_evicted(&mut other));
        assert_eq!(slots.len(), 3);
        drop((mine, other));
        assert_eq!(slots.len(), 0);
        assert!(slots.taken().peers.is_empty());
    }

    #[test]
    fn open_requests_keep_slots_but_health_checks_do_not() {
        let slots = slots(Of::Connections, 3, 3);
        let mut served = enter(&slots, 1).unwrap();
        let _busy = served.activity().begin();
        let mut asks = enter(&slots, 2).unwrap();
        let mut useful = enter(&slots, 3).unwrap();
        drop(useful.activity().begin());
        // Later than the other one, but not a use of the service.
        drop(asks.activity().attend());
        let _asking = asks.activity().attend();
        let _new = enter(&slots, 4).unwrap();
        assert_eq!([&mut served, &mut asks, &mut useful].map(is_evicted), [false, true, false]);
        assert!(asks.activity().idle_since().is_none());
    }

    #[test]
    fn where_all_are_served_the_next_is_refused() {
        let slots = slots(Of::Connections, 2, 1);
        let one = enter(&slots, 1).unwrap();
        let busy = one.activity().begin();
        assert!(matches!(enter(&slots, 1), Err(Limit::ConnectionsByPeer)));
        let other = enter(&slots, 2).unwrap();
        let _busy = other.activity().begin();
        assert!(matches!(enter(&slots, 3), Err(Limit::Connections)));
        drop(busy);
        // They are not all examined again at once.
        std::thread::sleep(limits::SLOTS_IN_VAIN);
        assert!(enter(&slots, 3).is_ok());
    }

    #[test]
    fn of_handshakes_the_peer_with_most_makes_room() {
        let slots = slots(Of::Handshakes, 4, 3);
        let mut small = enter(&slots, 1).unwrap();
        let mut large: Vec<_> = (0..3).map(|_| enter(&slots, 2).unwrap()).collect();
        let _next = enter(&slots, 3).unwrap();
        assert!(!is_evicted(&mut small), "it is the oldest, and alone");
        assert!(is_evicted(&mut large[0]));
    }

    #[test]
    fn a_peer_that_becomes_known_counts_from_then_on() {
        let slots = slots(Of::Handshakes, 9, 2);
        let mut all: Vec<_> =
            (0..3).map(|_| slots.enter(None, &Arc::new(Activity::new())).unwrap()).collect();
        all.iter().for_each(|slot| slot.belongs_to(Peer::of([192, 0, 2, 1].into())));
        let evicted: Vec<_> = all.iter_mut().map(is_evicted).collect();
        assert_eq!(evicted, [true, false, false]);
    }

    #[tokio::test]
    async fn who_waits_gets_the_place_that_becomes_free() {
        let slots = slots(Of::Connections, 1, 1);
        let first = enter(&slots, 1).unwrap();
        let activity = Arc::new(Activity::new());
        let waiting = slots.enter_in_turn(peer(2), &activity, outlast_testing::PATIENCE * 2);
        let mut waiting = std::pin::pin!(waiting);
        let early = tokio::time::timeout(Duration::from_millis(50), waiting.as_mut()).await;
        assert!(early.is_err());
        drop(first);
        tokio::time::timeout(outlast_testing::PATIENCE, waiting).await.unwrap();
    }
}

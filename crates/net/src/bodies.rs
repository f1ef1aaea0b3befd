//! Request bodies, read within limits on their length, their rate, and the memory that all of them and those of one
//! peer use. Their content is not examined here.
//!
//! Memory is counted as bytes arrive, not as lengths are announced: a body that does not arrive uses up no memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use foldhash::{HashMap, HashMapExt};
use http_body_util::BodyExt;
use hyper::body::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout, timeout_at};

use crate::limits;
use crate::metrics::{Action, Limit, Tally};
use crate::peer::Peer;

/// A request's body, over any version of HTTP.
pub(crate) trait Content:
    Body<Data = Bytes, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Unpin + Send
{
}

impl<B> Content for B
where
    B: Body<Data = Bytes> + Unpin + Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
}

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// It is too long. The rest was read and discarded, within limits.
    TooLong,
    /// It broke off, arrived too slowly, or there was no memory for it in time.
    Incomplete,
}

/// Memory budget of all bodies.
pub(crate) struct Bodies {
    all: Semaphore,
    by_peer: usize,
    peers: Mutex<HashMap<Peer, Weak<Semaphore>>>,
    tally: Tally,
}

/// A body, and its share of the budget until it is dropped.
pub(crate) struct Whole<'a> {
    pub(crate) bytes: Bytes,
    _share: Option<Share<'a>>,
}

/// Bytes that a body uses of the whole budget and of its peer's share.
struct Share<'a> {
    bodies: &'a Bodies,
    peer: Peer,
    /// `None` only while this is being dropped.
    own: Option<Arc<Semaphore>>,
    of_own: Option<OwnedSemaphorePermit>,
    of_all: Option<SemaphorePermit<'a>>,
}

impl Bodies {
    /// A budget of [`limits::BODY_BUDGET`] bytes; a peer may use the same fraction of it as of the connections.
    pub(crate) fn new(connections: crate::slots::Number, tally: Tally) -> Self {
        let part = limits::BODY_BUDGET / connections.all.max(1) * connections.by_peer;
        let by_peer = part.clamp(limits::LEAST_BODY_SHARE, limits::BODY_BUDGET);
        let all = Semaphore::new(limits::BODY_BUDGET);
        Self { all, by_peer, peers: Mutex::new(HashMap::new()), tally }
    }

    /// Reads a body of at most `max` bytes.
    pub(crate) async fn read(
        &self,
        peer: Peer,
        mut body: impl Content,
        max: usize,
    ) -> Result<Whole<'_>, Unread> {
        if body.is_end_stream() {
            return Ok(Whole { bytes: Bytes::new(), _share: None });
        }
        let mut share = self.share(peer);
        let reading = timeout(limits::REQUEST_BODY, share.fill(&mut body, max));
        match reading.await.unwrap_or(Err(Unread::Incomplete)) {
            Ok(bytes) => Ok(Whole { bytes, _share: Some(share) }),
            Err(unread) => {
                drop(share);
                if unread == Unread::TooLong {
                    discard(body).await;
                }
                Err(unread)
            }
        }
    }

    fn share(&self, peer: Peer) -> Share<'_> {
        let mut peers = self.peers();
        let known = peers.get(&peer).and_then(Weak::upgrade);
        let own = known.unwrap_or_else(|| {
            let own = Arc::new(Semaphore::new(self.by_peer));
            peers.insert(peer, Arc::downgrade(&own));
            own
        });
        Share { bodies: self, peer, own: Some(own), of_own: None, of_all: None }
    }

    fn peers(&self) -> MutexGuard<'_, HashMap<Peer, Weak<Semaphore>>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes in use.
    #[cfg(test)]
    fn taken(&self) -> usize {
        limits::BODY_BUDGET - self.all.available_permits()
    }
}

impl Share<'_> {
    async fn fill(&mut self, body: &mut impl Content, max: usize) -> Result<Bytes, Unread> {
        let mut bytes = BytesMut::new();
        let mut pace = Pace::new();
        loop {
            let frame = match timeout_at(pace.end(), body.frame()).await {
                Ok(Some(Ok(frame))) => frame,
                Ok(Some(Err(_))) => return Err(Unread::Incomplete),
                Ok(None) => return Ok(bytes.freeze()),
                Err(_) => {
                    self.bodies.tally.count(Limit::BodyRate, Action::Refused);
                    return Err(Unread::Incomplete);
                }
            };
            // Trailers are ignored.
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > max {
                return Err(Unread::TooLong);
            }
            let waited = self.take(data.len()).await?;
            pace.moved(data.len(), waited);
            bytes.extend_from_slice(&data);
        }
    }

    /// Reserves memory as soon as it is free, first from the peer's share; returns how long that took.
    async fn take(&mut self, len: usize) -> Result<Duration, Unread> {
        let begun = Instant::now();
        let tally = &self.bodies.tally;
        // No body that is read is this long.
        let len = u32::try_from(len).map_err(|_| Unread::TooLong)?;
        let own = self.own.clone().ok_or(Unread::Incomplete)?;
        let waiting = Waiting::new(tally, Limit::BodiesByPeer);
        let own = own.acquire_many_owned(len).await.map_err(|_| Unread::Incomplete)?;
        waiting.over();
        let waiting = Waiting::new(tally, Limit::Bodies);
        let all = self.bodies.all.acquire_many(len).await.map_err(|_| Unread::Incomplete)?;
        waiting.over();
        match &mut self.of_own {
            Some(taken) => taken.merge(own),
            taken => *taken = Some(own),
        }
        match &mut self.of_all {
            Some(taken) => taken.merge(all),
            taken => *taken = Some(all),
        }
        Ok(begun.elapsed())
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.of_own = None;
        let mut peers = self.bodies.peers();
        // Under the lock, so that nobody takes it out at the same time.
        self.own = None;
        if peers.get(&self.peer).is_some_and(|own| own.strong_count() == 0) {
            peers.remove(&self.peer);
        }
    }
}

/// A wait for memory; counted if it fails.
struct Waiting<'a>(Option<(&'a Tally, Limit)>);

impl<'a> Waiting<'a> {
    fn new(tally: &'a Tally, limit: Limit) -> Self {
        Self(Some((tally, limit)))
    }

    fn over(mut self) {
        self.0 = None;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some((tally, limit)) = self.0 {
            tally.count(limit, Action::Refused);
        }
    }
}

/// Required rate of a body: after [`limits::BODY_GRACE`], [`limits::BODY_RATE`] on average.
struct Pace {
    /// When it is too slow if nothing more arrives.
    end: Instant,
    /// Bytes that have arrived, modulo the rate.
    rest: u64,
}

impl Pace {
    fn new() -> Self {
        Self { end: Instant::now() + limits::BODY_GRACE, rest: 0 }
    }

    fn end(&self) -> Instant {
        self.end
    }

    /// Counts bytes that arrived, and the time in which the server was not ready to read, which is not the client's
    /// fault.
    fn moved(&mut self, len: usize, waited: Duration) {
        let bytes = self.rest + len as u64;
        self.rest = bytes % limits::BODY_RATE;
        self.end += Duration::from_secs(bytes / limits::BODY_RATE) + waited;
    }
}

/// Reads and discards a refused body, within limits, because a client that is still sending does not read the
/// response.
pub(crate) async fn discard(mut body: impl Content) {
    if body.is_end_stream() {
        return;
    }
    let reading = async {
        let mut left = limits::MAX_DISCARDED;
        while let Some(Ok(frame)) = body.frame().await {
            let read = frame.data_ref().map_or(0, Bytes::len);
            left = match left.checked_sub(read) {
                Some(left) => left,
                None => break,
            };
        }
    };
    let _ = timeout(limits::DISCARD, reading).await;
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::{Full, StreamBody};
    use hyper::body::Frame;
    use outlast_testing::PATIENCE;
    use tokio::sync::mpsc;

    use super::*;
    use crate::slots::Number;

    fn peer(number: u8) -> Peer {
        Peer::of([192, 0, 2, number].into())
    }

    fn bodies() -> Bodies {
        Bodies::new(Number::of(limits::MAX_CONNECTIONS, None), Tally::default())
    }

    /// A body, and the times when its bytes arrive.
    fn slow() -> (mpsc::Sender<usize>, impl Content) {
        let (sender, receiver) = mpsc::channel::<usize>(1000);
        let stream = futures_util::stream::unfold(receiver, |mut receiver| async {
            let len = receiver.recv().await?;
            let frame = Frame::data(Bytes::from(vec![b'x'; len]));
            Some((Ok::<_, Infallible>(frame), receiver))
        });
        (sender, StreamBody::new(Box::pin(stream)))
    }

    #[tokio::test]
    async fn what_does_not_come_takes_no_memory() {
        let bodies = bodies();
        let mut held = Vec::new();
        let mut reading = Vec::new();
        // More than the whole budget, if announced lengths were counted.
        for number in 0..4000_u32 {
            let (sender, body) = slow();
            sender.send(1).await.unwrap();
            held.push(sender);
            let peer = peer((number % 4) as u8);
            reading.push(Box::pin(bodies.read(peer, body, 64 * 1024)));
        }
        for one in &mut reading {
            let early = timeout(Duration::from_millis(1), one.as_mut()).await;
            assert!(early.is_err());
        }
        assert_eq!(bodies.taken(), 4000);
        let whole = bodies.read(peer(1), Full::new(Bytes::from("whole")), 64 * 1024).await;
        assert_eq!(whole.map(|whole| whole.bytes).unwrap(), "whole");
        drop(reading);
        assert_eq!((bodies.taken(), bodies.peers().len()), (0, 0));
    }

    #[test]
    fn a_body_must_come_at_the_least_rate_from_its_beginning_on() {
        let mut pace = Pace::new();
        let begun = pace.end();
        // In small pieces as well as in large ones.
        for _ in 0..limits::BODY_RATE {
            pace.moved(3, Duration::ZERO);
        }
        assert_eq!(pace.end() - begun, Duration::from_secs(3));
        pace.moved(0, Duration::from_secs(5));
        assert_eq!(pace.end() - begun, Duration::from_secs(8));
        // A body at exactly this rate is never given up before its time is over.
        let least = limits::BODY_RATE * limits::REQUEST_BODY.as_secs();
        assert!(least > limits::UNKNOWN_CALLER_BODY as u64);
    }

    #[tokio::test]
    async fn a_peer_never_has_more_than_its_share() {
        let bodies = bodies();
        let share = limits::BODY_BUDGET / limits::PEER_SHARE;
        let full = || Full::new(Bytes::from(vec![b'x'; 1 << 20]));
        let mut held = Vec::new();
        for _ in 0..share >> 20 {
            held.push(bodies.read(peer(1), full(), 1 << 20).await.map_err(|_| ()).unwrap());
        }
        assert_eq!(bodies.taken(), share);
        let mut more = Box::pin(bodies.read(peer(1), full(), 1 << 20));
        assert!(timeout(Duration::from_millis(50), more.as_mut()).await.is_err());
        let other = timeout(PATIENCE, bodies.read(peer(2), full(), 1 << 20)).await;
        assert!(other.unwrap().is_ok());
        held.pop();
        assert!(timeout(PATIENCE, more).await.unwrap().is_ok());
    }

    #[tokio::test]
    async fn what_is_too_long_is_read_on_and_given_back() {
        let bodies = bodies();
        let (sender, body) = slow();
        for _ in 0..100 {
            sender.send(1000).await.unwrap();
        }
        let counted = sender.clone();
        drop(sender);
        let (read, ()) = tokio::join!(bodies.read(peer(1), body, 2000), async move {
            while counted.capacity() < 1000 {
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(read.map(|whole| whole.bytes), Err(Unread::TooLong));
        assert_eq!(bodies.taken(), 0);
    }
}

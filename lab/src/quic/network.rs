//! The link in virtual time: delay, loss, jitter, and a bottleneck with a queue that drops.
//!
//! The outcome of a datagram depends only on the seed, the flow, its direction and its number, so that two subjects
//! with the same flow meet the same losses. s2n-quic's own network model uses one generator for everything, in an
//! order that the random state of a hash table decides: it does not repeat across processes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use s2n_quic::provider::io::testing::network::{Buffers, Packet};
use s2n_quic::provider::io::testing::{Network, spawn, time};
use s2n_quic_core::inet::SocketAddress;
use s2n_quic_core::time::Timestamp;

use crate::link::Link;

/// Bytes that IPv4 and UDP add to a datagram: they take time on a link with a rate.
const HEADERS: u64 = 20 + 8;

/// A datagram that was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    /// Time in nanoseconds of virtual time.
    pub(super) at_ns: u64,
    /// Whether the server sent it.
    pub(super) by_server: bool,
    /// Bytes of its content.
    pub(super) len: u32,
    /// Whether the link lost it.
    pub(super) lost: bool,
}

/// State that both ends of a run share with the link between them.
#[derive(Debug, Clone, Default)]
pub(super) struct Shared {
    /// Datagrams that the link has seen.
    pub(super) log: Arc<Mutex<Vec<Sent>>>,
    /// The server's address, which tells the directions apart.
    pub(super) server: Arc<OnceLock<SocketAddress>>,
    /// When the client began.
    pub(super) begin: Arc<OnceLock<Timestamp>>,
}

impl Shared {
    /// Nanoseconds of virtual time since the client began; s2n-quic's clock has whole microseconds.
    pub(super) fn now(&self) -> u64 {
        let now = time::now();
        let since = now.saturating_duration_since(*self.begin.get().unwrap_or(&now));
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The datagrams so far.
    pub(super) fn seen(&self) -> Vec<Sent> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A link between one client and one server.
pub(super) struct Path {
    link: Link,
    /// Seed and flow.
    key: u64,
    shared: Shared,
    ways: [Way; 2],
}

/// One direction. Times are nanoseconds since the client began.
#[derive(Default)]
struct Way {
    count: u64,
    /// When the datagrams at the bottleneck will have left it.
    leaving: VecDeque<u64>,
    last_arrival: u64,
    on_the_way: Arc<Mutex<VecDeque<Packet>>>,
}

impl Path {
    /// A link for this flow.
    pub(super) fn new(link: Link, seed: u64, flow: u64, shared: Shared) -> Self {
        Self { link, key: mixed(seed, flow), shared, ways: Default::default() }
    }

    /// When the next datagram in this direction arrives; `None` if it is lost.
    fn arrival(&mut self, by_server: bool, len: u32, now: u64) -> Option<u64> {
        let link = self.link;
        let way = &mut self.ways[usize::from(by_server)];
        let mut random =
            Pcg64Mcg::seed_from_u64(mixed(self.key, way.count * 2 + u64::from(by_server)));
        way.count += 1;
        if random.random::<f64>() < link.loss {
            return None;
        }
        let leaves = match link.rate_bps.filter(|rate| *rate > 0) {
            None => now,
            Some(rate) => {
                while way.leaving.front().is_some_and(|left| *left <= now) {
                    way.leaving.pop_front();
                }
                // The first is being sent, the others wait.
                let waiting = way.leaving.len().saturating_sub(1);
                if !way.leaving.is_empty()
                    && waiting >= usize::try_from(link.queue_packets).unwrap_or(usize::MAX)
                {
                    return None;
                }
                let takes = (u64::from(len) + HEADERS) * 8 * 1_000_000_000 / rate;
                let left =
                    way.leaving.back().copied().unwrap_or(now).max(now).saturating_add(takes);
                way.leaving.push_back(left);
                left
            }
        };
        // An odd microsecond is added to the way back.
        let there = link.rtt_us / 2;
        let delay_us = if by_server { link.rtt_us - there } else { there };
        let delay_us = delay(&mut random, delay_us, link.jitter_us);
        // s2n-quic's clock has whole microseconds.
        let arrival_us = leaves.div_ceil(1000).saturating_add(delay_us);
        way.last_arrival = way.last_arrival.max(arrival_us.saturating_mul(1000));
        Some(way.last_arrival)
    }
}

impl Network for Path {
    fn execute(&mut self, buffers: &Buffers) -> usize {
        let server = self.shared.server.get().copied();
        let mut sent = Vec::new();
        buffers.drain_pending_transmissions(|packet| {
            sent.push(packet);
            Ok(())
        });
        // The two sides come in any order, and each side's datagrams in sequence.
        let is_servers = |packet: &Packet| server == Some(*packet.path.local_address);
        sent.sort_by_key(is_servers);
        let mut delivered = 0;
        for mut packet in sent {
            let now = self.shared.now();
            let by_server = is_servers(&packet);
            let len = u32::try_from(packet.payload.len()).unwrap_or(u32::MAX);
            let arrival = self.arrival(by_server, len, now);
            let seen = Sent { at_ns: now, by_server, len, lost: arrival.is_none() };
            self.shared.log.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
            let Some(arrival) = arrival else { continue };
            packet.switch();
            let on_the_way = self.ways[usize::from(by_server)].on_the_way.clone();
            on_the_way.lock().unwrap_or_else(PoisonError::into_inner).push_back(packet);
            let buffers = buffers.clone();
            spawn(async move {
                time::delay(Duration::from_nanos(arrival.saturating_sub(now))).await;
                // Those that arrive at the same time do so in the order of sending.
                let next = on_the_way.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                if let Some(packet) = next {
                    buffers.rx(*packet.path.local_address, |queue| queue.enqueue(packet));
                }
            });
            delivered += 1;
        }
        delivered
    }
}

/// A one-way delay in microseconds: normally distributed, and never negative.
fn delay(random: &mut Pcg64Mcg, middle_us: u64, deviation_us: u64) -> u64 {
    if deviation_us == 0 {
        return middle_us;
    }
    // Box and Muller: a normal distribution from two uniform ones.
    let (radius, angle) = (1.0 - random.random::<f64>(), random.random::<f64>());
    let normal = (-2.0 * radius.ln()).sqrt() * (angle * std::f64::consts::TAU).cos();
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a delay")]
    let drawn = middle_us as f64 + normal * deviation_us as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rounded, and at least 0"
    )]
    let drawn = drawn.round().max(0.0) as u64;
    drawn
}

/// Combines two numbers into a key (the finaliser of SplitMix64).
pub(super) fn mixed(first: u64, second: u64) -> u64 {
    let mut value = first.wrapping_add(second.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(seed: u64, flow: u64, len: u32) -> Vec<[bool; 2]> {
        let link = Link::new(Duration::from_millis(30), 0.2);
        let mut path = Path::new(link, seed, flow, Shared::default());
        let mut fate = |by_server| path.arrival(by_server, len, 0).is_some();
        (0..1000).map(|_| [fate(false), fate(true)]).collect()
    }

    #[test]
    fn losses_do_not_depend_on_contents() {
        let first = fates(1, 2, 1200);
        assert_eq!(first, fates(1, 2, 60));
        assert_ne!(first, fates(1, 3, 1200));
        assert_ne!(first, fates(2, 2, 1200));
        for side in [0, 1] {
            let lost = first.iter().filter(|fate| !fate[side]).count();
            // Four standard errors.
            assert!((150..250).contains(&lost), "{lost}");
        }
        let alike = first.iter().filter(|fate| fate[0] == fate[1]).count();
        assert!(alike < 800, "directions are independent: {alike}");
    }
}

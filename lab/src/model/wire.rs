//! The path between the two ends: loss, a bottleneck with a queue, delay, jitter.

use std::collections::VecDeque;

use crate::link::{Draw, Link, threshold};

/// Bytes of IPv4 and TCP headers with timestamps (20 + 20 + 12).
pub(super) const HEADER: u32 = 52;
/// Bytes of a SYN's further options: maximum segment size, SACK permitted, window scale.
const SYN_OPTIONS: u32 = 8;
/// Most blocks that fit beside the timestamp (RFC 2018, section 3).
pub(super) const BLOCKS: usize = 3;

/// A range of sequence numbers: the first, and the one after the last.
pub(super) type Range = (u32, u32);

/// A packet under way.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Packet {
    pub(super) arrives: u64,
    /// Sequence number, relative to the initial one.
    pub(super) start: u32,
    /// Bytes of data.
    pub(super) len: u32,
    pub(super) syn: bool,
    /// Everything before this has arrived; 0 in a SYN without ACK.
    pub(super) ack: u32,
    pub(super) blocks: [Range; BLOCKS],
    pub(super) block_count: u8,
    /// Whether the first block reports a duplicate (RFC 2883).
    pub(super) duplicate: bool,
    /// When it was sent, as a timestamp, and the timestamp that it echoes.
    pub(super) stamp: u64,
    pub(super) echo: u64,
}

impl Packet {
    /// Length at the IP layer, in bytes.
    fn size(&self) -> u32 {
        let sack = if self.block_count == 0 { 0 } else { 4 + 8 * u32::from(self.block_count) };
        HEADER + sack + if self.syn { SYN_OPTIONS } else { 0 } + self.len
    }
}

/// A link's properties in the units of the simulation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path {
    delay_ns: u64,
    jitter_ns: u64,
    threshold: u64,
    rate_bps: Option<u64>,
    queue: usize,
}

impl From<&Link> for Path {
    fn from(link: &Link) -> Self {
        Self {
            delay_ns: link.rtt_us.saturating_mul(500),
            jitter_ns: link.jitter_us.saturating_mul(1000),
            threshold: threshold(link.loss),
            rate_bps: link.rate_bps.map(|rate| rate.max(1)),
            queue: usize::try_from(link.queue_packets).unwrap_or(usize::MAX),
        }
    }
}

/// One direction.
#[derive(Debug, Default)]
pub(super) struct Wire {
    /// Packets that will arrive, in order.
    pub(super) packets: VecDeque<Packet>,
    /// When each packet in the bottleneck will have left it.
    leaving: VecDeque<u64>,
    last: u64,
    /// All packets that were sent, lost or not.
    #[cfg(test)]
    pub(super) sent: Vec<Sent>,
}

/// A packet, for tests.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) start: u32,
    pub(crate) len: u32,
    pub(crate) syn: bool,
    pub(crate) number: u32,
    pub(crate) again: u32,
}

impl Wire {
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.leaving.clear();
        self.last = 0;
        #[cfg(test)]
        self.sent.clear();
    }

    /// Sends a packet, which is lost or will arrive. Its random numbers are named as in [`crate::link::lost`].
    pub(super) fn send(
        &mut self,
        path: &Path,
        draw: Draw,
        now: u64,
        (number, again): (u32, u32),
        mut packet: Packet,
    ) {
        #[cfg(test)]
        self.sent.push(Sent {
            start: packet.start,
            len: packet.len,
            syn: packet.syn,
            number,
            again,
        });
        if draw.lost(number, again, path.threshold) {
            return;
        }
        let mut left = now;
        if let Some(rate) = path.rate_bps {
            while self.leaving.front().is_some_and(|at| *at <= now) {
                self.leaving.pop_front();
            }
            // One packet is being sent; the others wait.
            if self.leaving.len() > path.queue {
                return;
            }
            let begins = self.leaving.back().copied().unwrap_or(now);
            left = begins + u64::from(packet.size()) * 8_000_000_000 / rate;
            self.leaving.push_back(left);
        }
        let mut delay = path.delay_ns;
        if path.jitter_ns > 0 {
            let deviation = normal(draw, number, again)
                .saturating_mul(i64::try_from(path.jitter_ns).unwrap_or(i64::MAX))
                >> 16;
            delay = delay.saturating_add_signed(deviation);
        }
        // Packets keep their order.
        packet.arrives = (left + delay).max(self.last);
        self.last = packet.arrives;
        self.packets.push_back(packet);
    }
}

/// An approximately normal number, in units of 1/65536 standard deviation: the sum of 12 uniform ones, without
/// floating point, so that it is the same everywhere.
fn normal(draw: Draw, number: u32, again: u32) -> i64 {
    // Bit 30 keeps these draws apart from those of losses.
    let again = again | (1 << 30);
    let uniform = |bits: u64| {
        (0..4).map(|index| (bits >> (16 * index)).cast_signed() & 0xffff).sum::<i64>() - 4 * 32_767
    };
    let more = draw.bits(number, again);
    // Variance of 12 uniform numbers of width 65,536 is 65,536 squared.
    uniform(more) + uniform(crate::link::mix(more)) + uniform(crate::link::mix(!more))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Side;

    #[test]
    fn normal_numbers_have_mean_0_and_deviation_1() {
        let draw = Draw::new(1, 2, Side::Client);
        let values: Vec<f64> =
            (0..20_000).map(|number| normal(draw, number, 0) as f64 / 65_536.0).collect();
        let mean = values.iter().sum::<f64>() / 20_000.0;
        let deviation =
            (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 20_000.0).sqrt();
        assert!(mean.abs() < 0.03 && (deviation - 1.0).abs() < 0.03, "{mean} {deviation}");
    }

    #[test]
    fn a_full_queue_drops_and_a_bottleneck_delays() {
        let link = Link {
            rtt_us: 10_000,
            loss: 0.0,
            rate_bps: Some(12_000_000),
            queue_packets: 2,
            jitter_us: 0,
        };
        let path = Path::from(&link);
        let mut wire = Wire::default();
        let draw = Draw::new(1, 1, Side::Server);
        for number in 0..5 {
            // 1500 bytes at IP take 1 ms at 12 Mbit/s.
            let packet = Packet { start: number, len: 1448, ..Packet::default() };
            wire.send(&path, draw, 0, (number, 0), packet);
        }
        let arrivals: Vec<u64> = wire.packets.iter().map(|packet| packet.arrives).collect();
        assert_eq!(arrivals, [6_000_000, 7_000_000, 8_000_000], "one is sent, two wait");
        wire.send(&path, draw, 1_500_000, (9, 0), Packet { len: 1448, ..Packet::default() });
        assert_eq!(wire.packets.back().map(|packet| packet.arrives), Some(9_000_000));
    }
}

//! Links, and the outcome of a handshake over one: the same for the model and the live engine.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::trace::Side;

/// A path between a client and a server.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Round-trip time without queues, in microseconds; half of it each way.
    pub rtt_us: u64,
    /// Share of packets that are lost, 0 to 1, in each direction, independently.
    pub loss: f64,
    /// Bits per second in each direction; `None` for no limit.
    pub rate_bps: Option<u64>,
    /// Packets that may wait at the bottleneck before it drops others; only with a rate.
    pub queue_packets: u32,
    /// Standard deviation of the one-way delay in microseconds; packets keep their order.
    pub jitter_us: u64,
}

impl Link {
    /// A link with only delay and loss.
    pub fn new(rtt: Duration, loss: f64) -> Self {
        Self {
            rtt_us: u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX),
            loss,
            rate_bps: None,
            queue_packets: 1000,
            jitter_us: 0,
        }
    }

    /// Round-trip time.
    pub fn rtt(&self) -> Duration {
        Duration::from_micros(self.rtt_us)
    }
}

/// Sizes of a connection's request and answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Bytes of the client's request, sent with or right after its Finished.
    pub request: u32,
    /// Bytes of the server's answer.
    pub body: u32,
}

/// Outcome of one connection; times in nanoseconds since the client's SYN was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// When TCP was connected, on the client.
    pub connected_ns: u64,
    /// When the client's handshake was complete: its Finished was sent.
    pub handshake_ns: u64,
    /// When the first byte of the answer arrived.
    pub first_byte_ns: u64,
    /// When its last byte arrived.
    pub last_byte_ns: u64,
    /// Retransmitted packets of both sides, up to the last byte.
    pub retransmissions: u16,
    /// Those up to the end of the handshake, TCP's own included.
    pub handshake_retransmissions: u16,
    /// How many packets of the connection the emulated link delivered more than 50 microseconds late, or may have
    /// read so late: errors of the live engine itself.
    pub late: u16,
}

/// When the clock of a handshake starts: the literature differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockStart {
    /// When the SYN leaves (Paquin, Stebila, Tamvada 2019).
    Syn,
    /// When TCP is connected (the 2022 study).
    Connected,
}

impl Outcome {
    /// The time of the handshake in nanoseconds by this clock.
    pub fn handshake_from(&self, start: ClockStart) -> u64 {
        match start {
            ClockStart::Syn => self.handshake_ns,
            ClockStart::Connected => self.handshake_ns.saturating_sub(self.connected_ns),
        }
    }
}

/// Whether a packet is lost. Model and live engine both use this function, so that the same flow of two subjects, or
/// of the same subject in both engines, meets the same losses.
///
/// `direction` is the sender's side. `packet` is the number of the packet among those of its flow and direction that
/// carry something new: the SYN (or SYN-ACK) is 0, the first packet with data 1, and so on in order of first sending.
/// The number stands in for the sequence number, because the sequence number of a client's Finished depends on the
/// ClientHello's length, and then the Finished of a hybrid and of a classical handshake would not pair.
/// `retransmission` is how often the packet was sent before; for packets without data it is [`PURE_ACK`] plus the
/// number of such packets since the last new one, and `packet` is the number of the next new one.
pub fn lost(
    seed: u64,
    flow: u64,
    direction: Side,
    packet: u32,
    retransmission: u32,
    loss: f64,
) -> bool {
    Draw::new(seed, flow, direction).lost(packet, retransmission, threshold(loss))
}

/// Added to `retransmission` for packets that only carry an acknowledgement.
pub const PURE_ACK: u32 = 1 << 31;

/// The random numbers of one direction of a flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64, flow: u64, direction: Side) -> Self {
        let side = match direction {
            Side::Client => 1,
            Side::Server => 2,
        };
        Self(mix(mix(seed) ^ flow.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(side))
    }

    /// 64 random bits for a packet.
    pub(crate) fn bits(self, packet: u32, retransmission: u32) -> u64 {
        let key = (u64::from(packet) << 32) | u64::from(retransmission);
        mix(self.0.wrapping_add(mix(key)))
    }

    pub(crate) fn lost(self, packet: u32, retransmission: u32, threshold: u64) -> bool {
        // The top 63 bits: a threshold of 2^63 is above all of them.
        (self.bits(packet, retransmission) >> 1) < threshold
    }
}

/// The share of lost packets as a threshold for 63 random bits.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 0 and 2^63 after the clamp"
)]
pub(crate) fn threshold(loss: f64) -> u64 {
    // 2^63 exactly.
    (loss.clamp(0.0, 1.0) * 9_223_372_036_854_775_808.0) as u64
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every input bit changes half of the output bits.
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_have_their_share_and_repeat() {
        let count = |seed: u64, loss: f64| {
            (0..20_000_u64).filter(|flow| lost(seed, *flow, Side::Server, 3, 1, loss)).count()
        };
        assert_eq!(count(7, 0.0), 0);
        assert_eq!(count(7, 1.0), 20_000);
        let five = count(7, 0.05);
        // Three standard errors of 1000 expected are 92.
        assert!((908..=1092).contains(&five), "{five}");
        assert_eq!(five, count(7, 0.05));
        assert_ne!(count(7, 0.5), count(8, 0.5));
    }

    #[test]
    fn directions_packets_and_retransmissions_draw_apart() {
        let draws = |direction, packet, again| {
            (0..64).fold(0_u64, |bits, flow| {
                (bits << 1) | u64::from(lost(1, flow, direction, packet, again, 0.5))
            })
        };
        let all = [
            draws(Side::Client, 0, 0),
            draws(Side::Server, 0, 0),
            draws(Side::Client, 1, 0),
            draws(Side::Client, 0, 1),
            draws(Side::Client, 0, PURE_ACK),
        ];
        for (index, one) in all.iter().enumerate() {
            for other in &all[index + 1..] {
                let same = 64 - (one ^ other).count_ones();
                assert!((12..=52).contains(&same), "{same}");
            }
        }
    }
}

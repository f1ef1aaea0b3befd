//! Links, and what a handshake over one experienced: the same for the model and for the live engine.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A path between a client and a server.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Round-trip time without queues, in microseconds; half of it each way.
    pub rtt_us: u64,
    /// Share of packets that are lost, 0 to 1, in each direction, independently.
    pub loss: f64,
    /// Bits a second in each direction; `None` is without limit.
    pub rate_bps: Option<u64>,
    /// Packets that wait at the bottleneck before it drops: only with a rate.
    pub queue_packets: u32,
    /// Standard deviation of the one-way delay in microseconds; packets keep their order.
    pub jitter_us: u64,
}

impl Link {
    /// A link with nothing but delay and loss.
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

/// What a connection over a link is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Bytes of the client's request, sent with or right after its Finished.
    pub request: u32,
    /// Bytes of the server's answer.
    pub body: u32,
}

/// What one connection experienced; times in nanoseconds since the client's SYN left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// When TCP was connected, at the client.
    pub connected_ns: u64,
    /// When the client's handshake was complete: its Finished has left.
    pub handshake_ns: u64,
    /// When the first byte of the answer was there.
    pub first_byte_ns: u64,
    /// When its last byte was there.
    pub last_byte_ns: u64,
    /// Packets that were sent again, by both sides, up to the last byte.
    pub retransmissions: u16,
    /// Those of them up to the end of the handshake, TCP's included.
    pub handshake_retransmissions: u16,
    /// Packets of the connection that the emulated link delivered more than 50 microseconds late: the live engine's own fault.
    pub late: u16,
}

/// When the clock of a handshake starts: the literature does not agree.
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

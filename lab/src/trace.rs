//! The course of one handshake: who sent how many bytes, and the CPU time of each. Engine 1 measures traces, engine 2
//! plays them.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The side that connects.
    Client,
    /// The side that listens.
    Server,
}

/// A flight: what a side sends at once, after it has received the whole of the other's previous flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The sender.
    pub from: Side,
    /// Bytes of TLS records, including headers and tags; without TCP and IP.
    pub bytes: u32,
    /// CPU time in nanoseconds that the sender spends between the arrival of the previous flight and sending this
    /// one.
    pub cpu_ns: u64,
}

/// A handshake: its flights in order; the last one is what the server sends after the client's Finished (tickets), if
/// anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The flights in order, the client's first. In traces of engine 1 the sides take turns; the type does not
    /// require it.
    pub steps: Vec<Step>,
    /// Index in `steps` of the flight with the client's Finished: after it the client has finished, and application
    /// data is sent with it.
    pub client_done: usize,
    /// CPU time in nanoseconds that the server spends after the client's Finished, including tickets.
    pub server_after_ns: u64,
    /// Whether the server asked for another key share (RFC 8446, section 4.1.4).
    pub hello_retry: bool,
    /// Whether a session was resumed.
    pub resumed: bool,
    /// How much the CPU times vary from one handshake to the next: share of the handshakes, and the factor that their CPU times
    /// are at most multiplied by, both in parts per million and increasing. Empty if all are alike.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu_spread: Vec<[u32; 2]>,
}

/// A handshake with its name in tables and legends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contender {
    /// Name.
    pub name: String,
    /// A trace measured by engine 1, or composed from sizes.
    pub trace: Trace,
}

/// One, in parts per million.
pub const MILLION: u32 = 1_000_000;

impl Trace {
    /// Bytes of TLS records that this side sends up to the client's Finished.
    pub fn bytes(&self, side: Side) -> u64 {
        let until = self.steps.get(..=self.client_done).unwrap_or(&self.steps);
        until.iter().filter(|step| step.from == side).map(|step| u64::from(step.bytes)).sum()
    }

    /// CPU time in nanoseconds that this side spends on the handshake.
    pub fn cpu_ns(&self, side: Side) -> u64 {
        let spent: u64 =
            self.steps.iter().filter(|step| step.from == side).map(|step| step.cpu_ns).sum();
        if side == Side::Server { spent + self.server_after_ns } else { spent }
    }

    /// The handshake of a flow: with its own CPU times, if they vary. The bits are the flow's random ones: those of one flow
    /// make two algorithms equally slow.
    pub fn of_flow(&self, bits: u64) -> Cow<'_, Self> {
        if self.cpu_spread.is_empty() {
            return Cow::Borrowed(self);
        }
        let factor = self.factor(bits % u64::from(MILLION));
        let scaled = |ns: u64| {
            let product = u128::from(ns) * u128::from(factor) / u128::from(MILLION);
            u64::try_from(product).unwrap_or(u64::MAX)
        };
        let mut trace = self.clone();
        trace.server_after_ns = scaled(trace.server_after_ns);
        for step in &mut trace.steps {
            step.cpu_ns = scaled(step.cpu_ns);
        }
        Cow::Owned(trace)
    }

    /// The factor at this share, in parts per million: between two given ones on the line between them; below the first
    /// one it is the first, beyond the last one the last.
    fn factor(&self, share: u64) -> u64 {
        let mut before: Option<(u64, u64)> = None;
        for [at, factor] in self.cpu_spread.iter().map(|pair| pair.map(u64::from)) {
            if share <= at {
                return match before {
                    Some((from, low)) if at > from => {
                        low + factor.saturating_sub(low) * (share - from) / (at - from)
                    }
                    _ => factor,
                };
            }
            before = Some((at, factor));
        }
        before.map_or(u64::from(MILLION), |(_, factor)| factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_times_vary_as_they_are_said_to() {
        let trace = Trace {
            steps: vec![Step { from: Side::Client, bytes: 1, cpu_ns: 1000 }],
            client_done: 0,
            server_after_ns: 500,
            hello_retry: false,
            resumed: false,
            cpu_spread: vec![[100_000, 500_000], [500_000, MILLION], [900_000, 3 * MILLION]],
        };
        for (share, factor) in [
            (0, 500_000),
            (100_000, 500_000),
            (300_000, 750_000),
            (500_000, MILLION),
            (700_000, 2 * MILLION),
            (999_999, 3 * MILLION),
        ] {
            assert_eq!(trace.factor(share), u64::from(factor), "{share}");
        }
        let times: Vec<u64> =
            (0..4000).map(|flow| trace.of_flow(flow * 250).cpu_ns(Side::Server) * 2).collect();
        let below = |ns: u64| times.iter().filter(|time| **time <= ns).count();
        assert!((1900..=2100).contains(&below(1000)), "{}", below(1000));
        assert!((3500..=3700).contains(&below(2998)), "{}", below(2998));
        let alike = Trace { cpu_spread: Vec::new(), ..trace };
        assert!(matches!(alike.of_flow(7), Cow::Borrowed(_)));
    }
}

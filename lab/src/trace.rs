//! The course of one handshake: who sent how many bytes, and the CPU time of each. Engine 1 measures traces, engine 2
//! plays them.

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
}

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
}

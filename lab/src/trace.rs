//! What one handshake did: who sent how much, and what it cost whom. Engine 1 measures traces, engine 2 plays them.

use serde::{Deserialize, Serialize};

/// A side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Who connects.
    Client,
    /// Who listens.
    Server,
}

/// One flight: what a side sends at once, after it has all of the other's flight before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Who sends.
    pub from: Side,
    /// Bytes of TLS records, headers and tags included; without TCP and IP.
    pub bytes: u32,
    /// CPU time in nanoseconds that the sender spends between the arrival of the flight before and this one's departure.
    pub cpu_ns: u64,
}

/// A handshake: its flights in order, the last one what the server sends after the client's Finished (tickets), if
/// anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The flights in order, the client's first. In those that engine 1 measures sides take turns; the type does not demand it.
    pub steps: Vec<Step>,
    /// Index in `steps` of the flight that carries the client's Finished: once it is sent the client is done, and application data
    /// goes with it.
    pub client_done: usize,
    /// CPU time in nanoseconds that the server spends on what follows the client's Finished, tickets included.
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

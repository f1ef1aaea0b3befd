//! A running client and server: takes orders for them, and returns times.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use tempfile::TempDir;

use super::agents::{Line, Order};
use super::ends::Times;
use super::flows::Flow;
use super::peer::Peer;
use super::script::Script;
use crate::error::LabError;
use crate::link::{Outcome, Transfer};

/// A running client and server.
pub(super) struct Pair {
    /// Their script.
    pub script: Script,
    /// The process with the client, and the server if it is ours.
    pub ends: Peer,
    /// A server in its own process, and its folder.
    pub server: Option<(Peer, TempDir)>,
    /// Address of the server.
    pub address: SocketAddr,
}

impl Pair {
    /// Makes some connections: the times of those that succeeded, and why there are no more.
    pub fn batch(
        &mut self,
        transfer: Transfer,
        count: u64,
        deadline: Duration,
        stop: &AtomicBool,
    ) -> (Vec<Times>, Option<LabError>) {
        let deadline_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        let order = Order { address: self.address, transfer, count, deadline_ms };
        let mut times = Vec::new();
        if let Err(error) = self.ends.tell(&order) {
            return (times, Some(error));
        }
        while (times.len() as u64) < count {
            let server = &mut self.server;
            let mut dead = || server.as_mut().and_then(|(server, _)| server.ended());
            let alive = &mut || dead().map_or(Ok(()), Err);
            let error = match self.ends.hear(deadline * 4 + START, stop, alive) {
                Ok(Line::Times(one)) => {
                    times.push(one);
                    continue;
                }
                Ok(Line::Failed(reason)) => LabError::Peer {
                    peer: format!("connection {} over the emulated link", times.len() + 1),
                    reason,
                },
                Ok(Line::Ready(_)) => LabError::failed("the client speaks out of turn"),
                Err(error) => error,
            };
            // If the server died, a failed connection is the server's failure.
            std::thread::sleep(Duration::from_millis(20));
            return (times, Some(dead().unwrap_or(error)));
        }
        (times, None)
    }
}

impl Times {
    /// Combines the times with what the link saw.
    pub fn outcome(&self, flow: &Flow) -> Outcome {
        let since = |time: u64| time.saturating_sub(self.begun_ns);
        let until = |time: u64| {
            let count = flow.resent_ns.iter().filter(|resent| **resent <= time).count();
            u16::try_from(count).unwrap_or(u16::MAX)
        };
        Outcome {
            connected_ns: since(self.connected_ns),
            handshake_ns: since(self.handshake_ns),
            first_byte_ns: since(self.first_byte_ns),
            last_byte_ns: since(self.last_byte_ns),
            retransmissions: until(self.last_byte_ns),
            handshake_retransmissions: until(self.handshake_ns),
            late: flow.late,
        }
    }
}

/// Timeout for the start of a process.
pub(super) const START: Duration = Duration::from_secs(20);

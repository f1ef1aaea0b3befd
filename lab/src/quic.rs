//! Engine 4: s2n-quic in virtual time, and live QUIC over the emulated link.

mod agent;
pub mod client;
mod network;
pub mod selftest;
mod steady;
mod virtual_time;

pub use self::agent::{AGENT, in_another_process};

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::link::Link;
use crate::subject::Subject;
use steady::Ends;
use virtual_time::Connection;

/// Results of one QUIC connection; times in nanoseconds since the client began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuicOutcome {
    /// When the client's handshake was complete.
    pub handshake_ns: u64,
    /// When the echoed byte arrived.
    pub echo_ns: u64,
    /// UDP datagrams that each side sent until then: client, server.
    pub datagrams: [u32; 2],
    /// Their bytes, without UDP and IP.
    pub bytes: [u32; 2],
    /// Datagrams of each side that were lost on the link.
    pub lost: [u32; 2],
    /// Packets that each side declared lost, and whose contents it sent again.
    pub declared_lost: [u32; 2],
    /// Bytes that the server sent before it can have received more than the client's first flight: what the 3x limit
    /// cuts.
    pub first_flight: u32,
    /// Bytes that the server sent early enough to contribute to the end of the client's handshake.
    pub flight: u32,
}

/// Flows that one thread runs at once.
const PART: usize = 25;

/// A grid point in virtual time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct VirtualRun {
    /// The connections that succeeded.
    pub outcomes: Vec<QuicOutcome>,
    /// The flow of each: failed ones leave gaps.
    pub flows: Vec<u64>,
    /// Connections that did not succeed within two minutes.
    pub failed: u32,
    /// SHA-256 of all packets' times, directions, lengths and outcomes, in hexadecimal: the same for the same seed.
    pub trace_hash: String,
}

impl VirtualRun {
    /// Pairs the results of the same flows here and in another run; leaves out flows that failed in either.
    pub fn pairs<'a>(&'a self, other: &'a Self) -> Vec<(&'a QuicOutcome, &'a QuicOutcome)> {
        let theirs: HashMap<u64, &QuicOutcome> =
            other.flows.iter().copied().zip(&other.outcomes).collect();
        let ours = self.flows.iter().zip(&self.outcomes);
        ours.filter_map(|(flow, outcome)| Some((outcome, *theirs.get(flow)?))).collect()
    }
}

/// Makes connections in virtual time, each by itself, with flows 0 to `count`: the same seed and flow lose the same
/// datagrams, whatever is sent. [`Ready::run`] repeats any flow alone.
pub fn in_virtual_time(
    subject: &Subject,
    link: &Link,
    seed: u64,
    count: u32,
) -> Result<VirtualRun, LabError> {
    let ready = Ready::new(subject)?;
    ready.run(link, seed, 0, count)
}

/// A subject with its keys and certificates, for runs over several links.
pub struct Ready {
    ends: Ends,
}

impl Ready {
    /// Makes keys and certificates.
    pub fn new(subject: &Subject) -> Result<Self, LabError> {
        Ok(Self { ends: steady::ends(subject)? })
    }

    /// Runs flows from `first` on, on all cores; the result does not depend on their number.
    pub fn run(
        &self,
        link: &Link,
        seed: u64,
        first: u64,
        count: u32,
    ) -> Result<VirtualRun, LabError> {
        self.run_until(link, seed, first, count, &AtomicBool::new(false))
    }

    /// The same; stops soon after `stop` is set.
    pub fn run_until(
        &self,
        link: &Link,
        seed: u64,
        first: u64,
        count: u32,
        stop: &AtomicBool,
    ) -> Result<VirtualRun, LabError> {
        if !(0.0..1.0).contains(&link.loss) {
            return Err(LabError::Plan(format!(
                "a loss of {} is not from 0 to below 1",
                link.loss
            )));
        }
        let end = first.saturating_add(count.into());
        let parts: Vec<u64> = (first..end).step_by(PART).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut done = Vec::new();
            loop {
                if stop.load(Ordering::Relaxed) {
                    return Err(LabError::Interrupted);
                }
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(begin) = parts.get(index).copied() else { return Ok(done) };
                let flows = begin..end.min(begin + PART as u64);
                done.push((index, virtual_time::apart(|| self.part(link, seed, flows))?));
            }
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from).min(parts.len());
        let mut done: Vec<(usize, VirtualRun)> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
            let mut all = Vec::new();
            for thread in threads {
                let part: Result<_, LabError> =
                    thread.join().unwrap_or_else(|_| Err(LabError::failed("a thread died")));
                all.extend(part?);
            }
            Ok::<_, LabError>(all)
        })?;
        done.sort_by_key(|(index, _)| *index);
        let mut hash = digest::Context::new(&digest::SHA256);
        let mut run = VirtualRun::default();
        for (_, part) in done {
            hash.update(part.trace_hash.as_bytes());
            run.outcomes.extend(part.outcomes);
            run.flows.extend(part.flows);
            run.failed += part.failed;
        }
        run.trace_hash = hex::encode(hash.finish());
        Ok(run)
    }

    /// Runs some flows on this thread.
    fn part(&self, link: &Link, seed: u64, flows: Range<u64>) -> Result<VirtualRun, LabError> {
        let mut hash = digest::Context::new(&digest::SHA256);
        let mut run = VirtualRun::default();
        let ends = steady::with_own_tickets(&self.ends);
        for flow in flows {
            let connection = virtual_time::connect(&ends, link, seed, flow)?;
            trace(&mut hash, &connection);
            match outcome(&connection, link) {
                Some(outcome) => {
                    run.outcomes.push(outcome);
                    run.flows.push(flow);
                }
                // Without loss, something else than the link is the reason.
                None if link.loss == 0.0 && link.rate_bps.is_none() => {
                    let reason = connection.error.unwrap_or_default();
                    return Err(LabError::Peer { peer: "s2n-quic".to_owned(), reason });
                }
                None => run.failed += 1,
            }
        }
        run.trace_hash = hex::encode(hash.finish());
        Ok(run)
    }
}

fn trace(hash: &mut digest::Context, connection: &Connection) {
    for sent in &connection.sent {
        hash.update(&sent.at_ns.to_be_bytes());
        hash.update(&sent.len.to_be_bytes());
        hash.update(&[u8::from(sent.by_server), u8::from(sent.lost)]);
    }
    // Where a connection ends.
    hash.update(&[0xff]);
}

fn outcome(connection: &Connection, link: &Link) -> Option<QuicOutcome> {
    let mut outcome = QuicOutcome {
        handshake_ns: connection.handshake_ns?,
        echo_ns: connection.echo_ns.filter(|_| connection.error.is_none())?,
        datagrams: [0; 2],
        bytes: [0; 2],
        lost: [0; 2],
        declared_lost: connection.declared_lost,
        first_flight: 0,
        flight: 0,
    };
    // What the server sends later cannot contribute to the end of the handshake.
    let back = link.rtt_us - link.rtt_us / 2;
    let last = outcome.handshake_ns.saturating_sub(back.saturating_mul(1000));
    // The server's first flight ends when the client answers it.
    let mut answered = false;
    let mut has_begun = false;
    for sent in &connection.sent {
        let side = usize::from(sent.by_server);
        outcome.datagrams[side] += 1;
        outcome.bytes[side] += sent.len;
        outcome.lost[side] += u32::from(sent.lost);
        answered |= has_begun && !sent.by_server;
        has_begun |= sent.by_server;
        if sent.by_server && !answered {
            outcome.first_flight += sent.len;
        }
        if sent.by_server && sent.at_ns <= last {
            outcome.flight += sent.len;
        }
    }
    Some(outcome)
}

#[cfg(test)]
mod tests;

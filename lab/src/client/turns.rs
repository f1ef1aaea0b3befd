//! Ways of calling, in turns: short slots of each in every round, in random order.

use std::time::{Duration, Instant};

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use super::{Caller, Ready, Target, micros};
use crate::error::LabError;
use crate::statistics::quantile_of;

/// What a thread repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cycle {
    /// Connects and closes.
    Handshake,
    /// Connects, makes so many requests, and closes.
    Requests(u32),
    /// Makes a request over a connection that stays open.
    Kept,
}

/// A way of calling.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mode {
    /// The way of calling.
    pub caller: Caller,
    /// What it repeats.
    pub cycle: Cycle,
}

/// A job with turns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// The modes.
    pub modes: Vec<Mode>,
    /// Rounds: each mode has a slot in each.
    pub rounds: u32,
    /// Length of a slot in microseconds; it ends with the cycle that is under way then.
    pub slot_us: u64,
    /// Seed for the order.
    pub seed: u64,
}

/// Results of a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// Duration in nanoseconds.
    pub nanos: u64,
    /// Number of connections opened.
    pub connections: u32,
    /// Time of each request in microseconds, including its connection if one had to be opened; without requests, of
    /// each connection.
    pub times_us: Vec<u32>,
    /// Time of each whole cycle in microseconds, including the end of its connection; empty where a cycle is a
    /// request.
    pub cycles_us: Vec<u32>,
    /// Time until TCP was connected, in nanoseconds, over all connections.
    pub tcp_ns: u64,
    /// Time of the TLS handshakes after that.
    pub tls_ns: u64,
    /// Bytes of the last handshake, from the client and from the server.
    pub bytes: [u64; 2],
}

impl Slot {
    /// Seconds per request; without requests, per connection. The sum of this quantile for each part of a cycle: the
    /// first request with its connection, each of the others, and the end. A stall of the machine counts as one
    /// value, however long it was.
    pub fn typical(&self, share: f64) -> f64 {
        let quantile = |times_us: &mut dyn Iterator<Item = u32>| {
            quantile_of(&times_us.map(f64::from).collect::<Vec<_>>(), share) / 1e6
        };
        let Some(count) = self.times_us.len().checked_div(self.cycles_us.len()) else {
            return quantile(&mut self.times_us.iter().copied());
        };
        let count = count.max(1);
        let first = quantile(&mut self.times_us.iter().copied().step_by(count));
        let others = self.times_us.chunks(count).flat_map(|cycle| cycle.iter().skip(1));
        let others = quantile(&mut others.copied());
        let ends = self.cycles_us.iter().zip(self.times_us.chunks(count));
        let end = quantile(&mut ends.map(|(all, cycle)| all.saturating_sub(cycle.iter().sum())));
        #[expect(clippy::cast_precision_loss, reason = "requests of a connection")]
        let count = count as f64;
        (first + (count - 1.0) * others + end) / count
    }

    /// Mean seconds per request.
    pub fn seconds(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a count, and nanoseconds of seconds")]
        let (nanos, count) = (self.nanos as f64, self.times_us.len().max(1) as f64);
        nanos / count / 1e9
    }

    /// Milliseconds of each request.
    pub fn milliseconds(&self) -> impl Iterator<Item = f64> {
        self.times_us.iter().map(|time| f64::from(*time) / 1e3)
    }
}

/// The slots of each round, in the order of the modes.
pub(super) async fn run(targets: &[Target], turns: &Turns) -> Result<Vec<Vec<Slot>>, LabError> {
    let mut random = Pcg64Mcg::seed_from_u64(turns.seed);
    let ready: Vec<Ready> = turns
        .modes
        .iter()
        .map(|mode| Ready::new(targets, &mode.caller))
        .collect::<Result<_, _>>()?;
    for way in &ready {
        way.warm_up().await?;
    }
    let time = Duration::from_micros(turns.slot_us);
    let mut order: Vec<usize> = (0..ready.len()).collect();
    let mut rounds = Vec::new();
    for _ in 0..turns.rounds {
        order.shuffle(&mut random);
        let mut round: Vec<Option<Slot>> = vec![None; ready.len()];
        for index in &order {
            let (Some(way), Some(mode)) = (ready.get(*index), turns.modes.get(*index)) else {
                continue;
            };
            let measured = slot(way, mode.cycle, time).await?;
            if let Some(place) = round.get_mut(*index) {
                *place = Some(measured);
            }
        }
        rounds.push(round.into_iter().flatten().collect());
    }
    Ok(rounds)
}

async fn slot(way: &Ready, cycle: Cycle, time: Duration) -> Result<Slot, LabError> {
    let mut slot = Slot {
        nanos: 0,
        connections: 0,
        times_us: Vec::new(),
        cycles_us: Vec::new(),
        tcp_ns: 0,
        tls_ns: 0,
        bytes: [0; 2],
    };
    let mut kept = match cycle {
        // One request before the clock starts: tickets arrive with its answer.
        Cycle::Kept => {
            let mut connection = way.connect(false).await?;
            way.request(&mut connection).await?;
            Some(connection)
        }
        Cycle::Handshake | Cycle::Requests(_) => None,
    };
    let begun = Instant::now();
    while slot.times_us.is_empty() || begun.elapsed() < time {
        if let Some(connection) = &mut kept {
            let asked = Instant::now();
            way.request(connection).await?;
            slot.times_us.push(micros(asked.elapsed()));
            continue;
        }
        let cycle_begun = Instant::now();
        let mut asked = cycle_begun;
        let mut connection = way.connect(false).await?;
        slot.connections += 1;
        slot.tcp_ns += nanos(connection.times.tcp);
        slot.tls_ns += nanos(connection.times.tls);
        slot.bytes = [connection.handshake.sent, connection.handshake.received];
        match cycle {
            Cycle::Requests(count) => {
                for _ in 0..count {
                    way.request(&mut connection).await?;
                    slot.times_us.push(micros(asked.elapsed()));
                    asked = Instant::now();
                }
            }
            Cycle::Handshake | Cycle::Kept => slot.times_us.push(micros(asked.elapsed())),
        }
        connection.close().await;
        slot.cycles_us.push(micros(cycle_begun.elapsed()));
    }
    slot.nanos = nanos(begun.elapsed());
    if let Some(connection) = kept {
        connection.close().await;
    }
    Ok(slot)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_is_one_of_many() {
        // Three connections of two requests each; the end of each takes 100 microseconds, and the machine stood still twice.
        let slot = Slot {
            nanos: 2_004_000_000,
            connections: 3,
            times_us: vec![700, 300, 600, 400, 999_000, 350],
            cycles_us: vec![1_100, 1_100, 1_999_350],
            tcp_ns: 0,
            tls_ns: 0,
            bytes: [0; 2],
        };
        assert!((slot.typical(0.5) - 0.000_575).abs() < 1e-12, "{}", slot.typical(0.5));
        assert!((slot.typical(0.0) - 0.000_5).abs() < 1e-12, "{}", slot.typical(0.0));
        assert!((slot.seconds() - 2.004 / 6.0).abs() < 1e-9);
        let kept = Slot { cycles_us: Vec::new(), ..slot.clone() };
        assert!((kept.typical(0.5) - 0.000_5).abs() < 1e-12, "{}", kept.typical(0.5));
        let alone = Slot { times_us: vec![900, 1_000, 1_100], ..slot };
        assert!((alone.typical(0.5) - 0.001_2).abs() < 1e-12, "{}", alone.typical(0.5));
    }
}

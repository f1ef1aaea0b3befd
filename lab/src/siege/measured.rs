//! Results for one pattern, and whether the limits are met.

use serde::Serialize;

use super::attack::Volume;
use super::good::{Told, Waited};
use super::limits::{GROWTH_KIB, MANY_ATTACKS, PEAK_KIB, RATIO};
use super::pattern::Pattern;
use crate::statistics::quantile_of;

/// Durations of calls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Times {
    /// Number of calls, including those that a stall kept from being made.
    pub calls: usize,
    /// Median, in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile, in milliseconds.
    pub p99_ms: f64,
}

/// A way of calling, in quiet and in attacked windows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Name of the way.
    pub name: &'static str,
    /// Without an attack.
    pub quiet: Times,
    /// Under attack.
    pub attacked: Times,
    /// Ratio of the 99th percentiles, attacked to quiet.
    pub ratio: f64,
}

/// Resident memory of the server, in KiB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// Before the first attack.
    pub before_kib: u64,
    /// Highest under attack.
    pub peak_kib: u64,
    /// After each of the attacks.
    pub after_kib: Vec<u64>,
}

impl Memory {
    /// Whether it stays within [`PEAK_KIB`] and [`GROWTH_KIB`].
    pub fn is_flat(&self) -> bool {
        let count = self.after_kib.len();
        let settled = if count < MANY_ATTACKS { 0 } else { count / 2 };
        let (settled, last) = (self.after_kib.get(settled), self.after_kib.last());
        let grown = last.copied().unwrap_or(0).saturating_sub(settled.copied().unwrap_or(0));
        self.peak_kib.saturating_sub(self.before_kib) <= PEAK_KIB && grown <= GROWTH_KIB
    }
}

/// A row of the siege's table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measured {
    /// The pattern's name.
    pub pattern: &'static str,
    /// The attacked door.
    pub door: &'static str,
    /// The good client's ways of calling.
    pub good: Vec<Compared>,
    /// The good client's failed calls, at any time.
    pub failures: u64,
    /// Reason of the first failure.
    pub first_failure: Option<String>,
    /// Volume of the attack, over all windows.
    pub volume: Volume,
    /// CPU time of the server under attack, in milliseconds.
    pub server_cpu_ms: Option<u64>,
    /// `None` if the server's process is not known.
    pub memory: Option<Memory>,
}

impl Measured {
    pub(super) fn new(
        pattern: &Pattern,
        told: Told,
        volume: Volume,
        server_cpu_ms: Option<u64>,
        memory: Option<Memory>,
    ) -> Self {
        Self {
            pattern: pattern.name,
            door: pattern.door.name(),
            good: told.waited.iter().map(|(name, waited)| compared(name, waited)).collect(),
            failures: told.failures,
            first_failure: told.first_failure,
            volume,
            server_cpu_ms,
            memory,
        }
    }

    /// The way of calling that is affected most.
    pub fn worst(&self) -> Option<&Compared> {
        self.good.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }

    /// The missed limits, in words; times count only if `timed`.
    pub fn missed(&self, timed: bool) -> Vec<String> {
        let mut missed = Vec::new();
        if self.failures > 0 {
            let first = self.first_failure.as_deref().unwrap_or_default();
            missed.push(format!("{} calls failed, the first: {first}", self.failures));
        }
        if let Some(worst) = self.worst().filter(|worst| timed && worst.ratio > RATIO) {
            missed.push(format!(
                "{}: p99 {:.1} ms is {:.1} times the quiet {:.1} ms",
                worst.name, worst.attacked.p99_ms, worst.ratio, worst.quiet.p99_ms
            ));
        }
        if let Some(memory) = self.memory.as_ref().filter(|memory| !memory.is_flat()) {
            missed.push(format!(
                "memory is not flat: {} KiB before, {} at most, {:?} after each attack",
                memory.before_kib, memory.peak_kib, memory.after_kib
            ));
        }
        missed
    }
}

fn compared(name: &'static str, waited: &Waited) -> Compared {
    let (quiet, attacked) = (times(&waited.quiet), times(&waited.attacked));
    // No call is quicker than the resolution of the clock.
    let ratio = attacked.p99_ms / quiet.p99_ms.max(0.001);
    Compared { name, quiet, attacked, ratio }
}

fn times(all: &[f64]) -> Times {
    Times { calls: all.len(), p50_ms: quantile_of(all, 0.5), p99_ms: quantile_of(all, 0.99) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::siege::PATTERNS;

    fn measured(attacked: f64, failures: u64, peak_kib: u64, last_kib: u64) -> Measured {
        let mut told = Told { failures, ..Told::default() };
        let waited = Waited { quiet: vec![2.0; 50], attacked: vec![attacked; 50] };
        told.waited.insert("kept", waited);
        let memory = Memory { before_kib: 50_000, peak_kib, after_kib: vec![60_000, last_kib] };
        Measured::new(&PATTERNS[0], told, Volume::default(), None, Some(memory))
    }

    #[test]
    fn memory_of_many_attacks_must_reach_a_plateau() {
        let step = GROWTH_KIB / 4;
        let flat = |steps: &[u64]| {
            let after_kib = steps.iter().map(|steps| steps * step).collect();
            Memory { before_kib: 0, peak_kib: 0, after_kib }.is_flat()
        };
        assert!(flat(&[1, 3, 5]));
        assert!(!flat(&[1, 3, 6]), "few attacks: against the first");
        assert!(flat(&[1, 4, 7, 10, 12, 12, 13, 13]));
        assert!(!flat(&[1, 2, 3, 4, 5, 7, 9, 11]), "many attacks: against the one in the middle");
    }

    #[test]
    fn each_limit_is_missed_by_itself() {
        let limit = 50_000 + PEAK_KIB;
        for (row, timed, untimed) in [
            (measured(10.0, 0, limit, 60_000 + GROWTH_KIB), 0, 0),
            (measured(10.1, 0, limit, 60_000), 1, 0),
            (measured(2.0, 1, limit, 60_000), 1, 1),
            (measured(2.0, 0, limit + 1, 60_000), 1, 1),
            (measured(2.0, 0, limit, 60_001 + GROWTH_KIB), 1, 1),
            (measured(99.0, 9, limit + 1, 60_000), 3, 2),
        ] {
            assert_eq!(row.missed(true).len(), timed, "{row:?}");
            assert_eq!(row.missed(false).len(), untimed, "{row:?}");
        }
    }
}

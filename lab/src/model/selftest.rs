//! The properties that are promised of the model, as checks.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use sha3::{Digest, Sha3_256};

use super::validation::{Comparison, against_live, against_paquin, paquin_trace};
use super::{PROFILES, connections};
use crate::error::LabError;
use crate::link::{Link, Outcome, Transfer};
use crate::run::Settings;
use crate::selftest::check::{Check, Checked};
use crate::time::thread_cpu;

/// Least rate of handshakes on one core, per second.
const LEAST_RATE: f64 = 100_000.0;
const NOTHING: Transfer = Transfer { request: 0, body: 0 };

/// All checks.
pub const CHECKS: &[Check] = &[
    Check {
        name: "model: handshakes a second on one core",
        estimate: |_| Duration::from_secs(2),
        timed: true,
        run: rate,
    },
    Check {
        name: "model: the same seed gives the same bytes",
        estimate: |_| Duration::from_secs(2),
        timed: false,
        run: repeats,
    },
    Check {
        name: "model: against the percentiles of Paquin et al.",
        estimate: |short| Duration::from_secs(if short { 8 } else { 75 }),
        timed: false,
        run: |_, short, stop| Ok(compared(&against_paquin(short, stop)?)),
    },
    Check {
        name: "model: against real TCP over the emulated link",
        estimate: |short| Duration::from_secs(if short { 150 } else { 2400 }),
        timed: true,
        run: |settings, short, stop| Ok(compared(&against_live(settings, stop, short)?)),
    },
];

/// A handshake of a hybrid with a chain of two packets, at 5 % loss: neither the cheapest nor the most expensive to
/// simulate.
fn some(seed: u64, count: u64) -> Vec<Outcome> {
    let link = Link::new(Duration::from_millis(30), 0.05);
    let trace = paquin_trace("kex", "p256_kyber512_90s", 1_000_000);
    let Some(profile) = PROFILES.first() else { return Vec::new() };
    connections(profile, &link, &trace, NOTHING, seed, count)
}

fn rate(_: &Settings, _: bool, _: &AtomicBool) -> Result<Vec<Checked>, LabError> {
    // Fewer than would be spread over two threads.
    const AT_ONCE: u64 = 1_000;
    some(0, AT_ONCE);
    let (cpu, begun) = (thread_cpu(), Instant::now());
    let mut count = 0_u32;
    while begun.elapsed() < Duration::from_secs(1) {
        some(u64::from(count), AT_ONCE);
        count += 1_000;
    }
    let seconds = thread_cpu().saturating_sub(cpu).as_secs_f64();
    let rate = f64::from(count) / seconds.max(1e-9);
    Ok(vec![Checked {
        measured: format!("{rate:.0} handshakes a CPU second at RTT 30 ms and 5 % loss"),
        limit: format!("at least {LEAST_RATE:.0}"),
        met: Some(rate >= LEAST_RATE),
    }])
}

fn repeats(settings: &Settings, _: bool, _: &AtomicBool) -> Result<Vec<Checked>, LabError> {
    let digest = |seed: u64| -> Result<String, LabError> {
        let bytes = serde_json::to_vec(&some(seed, 20_000)).map_err(LabError::failed)?;
        Ok(hex::encode(&Sha3_256::digest(&bytes)[..8]))
    };
    let (first, second) = (digest(settings.seed)?, digest(settings.seed)?);
    let other = digest(settings.seed.wrapping_add(1))?;
    Ok(vec![Checked {
        measured: format!("20,000 connections twice: {first}, {second}; another seed: {other}"),
        limit: "equal, and another for another seed".into(),
        met: Some(first == second && first != other),
    }])
}

fn compared(comparison: &Comparison) -> Vec<Checked> {
    let result = Checked {
        measured: comparison.sentence(),
        limit: if comparison.compared == 0 {
            "reported only".into()
        } else {
            comparison.limits.clone()
        },
        // Nothing was judged, so nothing was met.
        met: (comparison.compared > 0).then(|| comparison.met()),
    };
    let told = |text: &String| Checked {
        measured: text.clone(),
        limit: "reported only".into(),
        met: None,
    };
    std::iter::once(result).chain(comparison.beside.iter().map(told)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Table;

    /// A comparison of `compared` figures, `within` of them within the limits, and another one for information.
    fn comparison(compared: usize, within: usize) -> Comparison {
        let table = Table {
            name: String::new(),
            title: String::new(),
            columns: Vec::new(),
            rows: Vec::new(),
            note: String::new(),
        };
        let beside = vec!["another".to_owned()];
        let limits = "all".to_owned();
        Comparison { table, compared, within, at_jump: 0, needed: 1.0, limits, beside }
    }

    #[test]
    fn what_was_not_judged_is_not_met() {
        let met = |compared, within| {
            let all = super::compared(&comparison(compared, within));
            all.into_iter().map(|one| (one.limit, one.met)).collect::<Vec<_>>()
        };
        let reported = ("reported only".to_owned(), None);
        let judged = |met| ("all".to_owned(), Some(met));
        assert_eq!(met(2, 2), [judged(true), reported.clone()]);
        assert_eq!(met(2, 1), [judged(false), reported.clone()]);
        assert_eq!(met(0, 0), [reported.clone(), reported]);
        assert!(!comparison(0, 0).met());
    }
}

//! The properties that are promised of QUIC in virtual time, as checks.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::{Ready, agent};
use crate::error::LabError;
use crate::link::Link;
use crate::run::Settings;
use crate::selftest::check::{Check, Checked};
use crate::subject::Subject;

/// Both checks.
pub const CHECKS: &[Check] = &[
    Check {
        name: "QUIC: ML-DSA-65 with two certificates costs one more round trip",
        estimate: |_| Duration::from_secs(1),
        timed: false,
        run: one_more_round_trip,
    },
    Check {
        name: "QUIC: the trace of virtual time repeats",
        estimate: |short| Duration::from_secs(if short { 2 } else { 10 }),
        timed: false,
        run: repeats,
    },
];

const HYBRID: &str = "X25519MLKEM768";

fn one_more_round_trip(
    settings: &Settings,
    short: bool,
    stop: &AtomicBool,
) -> Result<Vec<Checked>, LabError> {
    let rtts: &[u64] = if short { &[30] } else { &[1, 30, 100] };
    let mut checked = Vec::new();
    for rtt_ms in rtts {
        let link = Link::new(Duration::from_millis(*rtt_ms), 0.0);
        let time = |authentication: &str| -> Result<Option<u64>, LabError> {
            let subject = Subject::new(HYBRID, authentication, 2)?;
            let run = Ready::new(&subject)?.run_until(&link, settings.seed, 0, 1, stop)?;
            Ok(run.outcomes.first().map(|outcome| outcome.handshake_ns))
        };
        let times = (time("ECDSA P-256")?, time("ML-DSA-65")?);
        let (Some(ecdsa), Some(ml_dsa)) = times else {
            return Err(LabError::failed("no handshake without loss"));
        };
        let trip = rtt_ms * 1_000_000;
        checked.push(Checked {
            measured: format!(
                "RTT {rtt_ms} ms: {} µs with ECDSA P-256, {} µs with ML-DSA-65",
                ecdsa / 1000,
                ml_dsa / 1000
            ),
            limit: format!("exactly {} and {} µs", rtt_ms * 1000, rtt_ms * 2000),
            met: Some((ecdsa, ml_dsa) == (trip, 2 * trip)),
        });
    }
    Ok(checked)
}

fn repeats(settings: &Settings, short: bool, stop: &AtomicBool) -> Result<Vec<Checked>, LabError> {
    let count = if short { 100 } else { 500 };
    let link = Link::new(Duration::from_micros(5500), 0.05);
    let mut checked = Vec::new();
    for (authentication, certificates) in [("ECDSA P-256", 2), ("ML-DSA-65", 2)] {
        let subject = Subject::new(HYBRID, authentication, certificates)?;
        let here = || Ready::new(&subject)?.run_until(&link, settings.seed, 0, count, stop);
        let (first, again) = (here()?, here()?);
        let program = &settings.executable;
        let apart =
            agent::in_another_process(program, &subject, &link, settings.seed, count, stop)?;
        let start = |hash: &str| hash.chars().take(12).collect::<String>();
        checked.push(Checked {
            measured: format!(
                "{}, {count} connections at 5 % loss: {} here, {} again, {} in another process",
                subject.name(),
                start(&first.trace_hash),
                start(&again.trace_hash),
                start(&apart.trace_hash),
            ),
            limit: "all three equal".to_owned(),
            met: Some(first == again && first == apart),
        });
    }
    Ok(checked)
}

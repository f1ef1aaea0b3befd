//! Validation against engine 3: the same flights, over this machine's TCP and the emulated link, with the same losses
//! packet by packet.
//!
//! The live engine plays the traces, so that neither side has TLS. The system's own overhead (system calls, wake-ups,
//! the link's lateness) is calibrated before: other connections, without loss, for each round-trip time and trace;
//! the median of what they take longer than in the model is added to all of the model's times for that round-trip
//! time and trace. No calibrated connection is compared.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::agreement::{Agreement, LEAST_FLOWS, LIMITS_PERCENT, times};
use super::{Comparison, keep, percent, rounded};
use crate::error::LabError;
use crate::link::{Link, Transfer};
use crate::live::{Live, available};
use crate::model::{PROFILES, connections};
use crate::result::{Table, Value};
use crate::run::Settings;
use crate::statistics::{mean, quantile, quantile_of, sorted};
use crate::trace::{Side, Step, Trace};

/// A point: round-trip time in milliseconds, loss, index of the trace.
const POINTS: &[(u64, f64, usize)] = &[
    (5, 0.05, 1),
    (5, 0.10, 0),
    (30, 0.02, 2),
    (30, 0.05, 0),
    (30, 0.05, 1),
    (30, 0.10, 2),
    (100, 0.02, 1),
    (100, 0.05, 2),
];

/// Traces: bytes of ClientHello, of the server's flight, of the client's Finished.
const TRACES: &[(&str, [u32; 3])] = &[
    ("one packet each", [250, 1_200, 74]),
    ("hybrid, ECDSA", [1_402, 2_600, 74]),
    ("hybrid, ML-DSA-65 x2", [1_402, 15_600, 74]),
];

/// The comparison; has the same requirements as the live engine. The short form makes too few connections for a verdict
/// ([`Agreement::refusal`]) and only reports the differences.
pub fn against_live(
    settings: &Settings,
    stop: &AtomicBool,
    short: bool,
) -> Result<Comparison, LabError> {
    available()?;
    let count = if short { 60 } else { LEAST_FLOWS as u64 };
    let profile = PROFILES.first().ok_or_else(|| LabError::failed("no profile"))?;
    let seed = settings.seed;
    let nothing = Transfer { request: 0, body: 0 };
    let mut live: Option<Live<'_>> = None;
    let mut calibrated: Vec<((u64, usize), f64)> = Vec::new();
    for (rtt_ms, _, which) in POINTS {
        let Some((_, bytes)) = TRACES.get(*which) else { continue };
        if calibrated.iter().any(|(key, _)| *key == (*rtt_ms, *which)) {
            continue;
        }
        let trace = played(*bytes);
        let link = Link::new(Duration::from_millis(*rtt_ms), 0.0);
        let engine = over(&mut live, settings, &link, stop)?;
        let real = times(&engine.play(&trace, nothing, CALIBRATION_FLOWS, CALIBRATION)?);
        let model = times(&connections(profile, &link, &trace, nothing, seed, 1));
        let calm = model.first().copied().unwrap_or_default();
        calibrated.push(((*rtt_ms, *which), quantile_of(&real, 0.5) - calm));
    }
    let mut rows = Vec::new();
    let (mut compared, mut within, mut refused) = (0, 0, Vec::new());
    for (rtt_ms, loss, which) in POINTS {
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        let Some((name, bytes)) = TRACES.get(*which) else { continue };
        let trace = played(*bytes);
        let rtt = Duration::from_millis(*rtt_ms);
        let link = Link::new(rtt, *loss);
        let engine = over(&mut live, settings, &link, stop)?;
        let outcomes = engine.play(&trace, nothing, 0, count)?;
        let late = outcomes.iter().filter(|outcome| outcome.late > 0).count();
        let real = times(&outcomes);
        let model = times(&connections(profile, &link, &trace, nothing, seed, count));
        let overhead = calibrated
            .iter()
            .find(|(key, _)| *key == (*rtt_ms, *which))
            .map_or(0.0, |(_, overhead)| *overhead);
        let real = sorted(real);
        let model = sorted(model.into_iter().map(|time| time + overhead));
        let figures = [
            ("mean", mean(&model), mean(&real)),
            ("p95", quantile(&model, 0.95), quantile(&real, 0.95)),
        ];
        let [mean_percent, p95_percent] = figures.map(|(_, ours, theirs)| percent(ours, theirs));
        let flows = outcomes.len();
        let refusal = Agreement { loss: *loss, flows, late, mean_percent, p95_percent }.refusal();
        refused.extend(refusal.as_ref().map(|reason| {
            format!(
                "RTT {rtt_ms} ms, {} % loss: mean {mean_percent:+.1} %, p95 {p95_percent:+.1} %, {reason}",
                loss * 100.0
            )
        }));
        for ((figure, ours, theirs), limit) in figures.into_iter().zip(LIMITS_PERCENT) {
            let difference = percent(ours, theirs);
            let met = difference.abs() <= limit;
            compared += usize::from(refusal.is_none());
            within += usize::from(refusal.is_none() && met);
            let judged = if met { "within" } else { "beyond" };
            rows.push(vec![
                Value::from(*name),
                (rtt.as_secs_f64() * 1e3).into(),
                rounded(*loss * 100.0).into(),
                figure.into(),
                rounded(theirs).into(),
                rounded(ours).into(),
                rounded(difference).into(),
                rounded(overhead).into(),
                refusal.as_deref().unwrap_or(judged).into(),
            ]);
        }
    }
    let table = Table {
        name: "model-against-live".into(),
        title: "The model against real TCP over the emulated link".into(),
        columns: [
            "flights",
            "RTT (ms)",
            "loss (%)",
            "figure",
            "live (ms)",
            "model (ms)",
            "difference (%)",
            "overhead (ms)",
            "verdict",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        note: format!(
            "{count} connections a point in each engine, with the same losses packet by packet; profile {}. The overhead is the median of what this machine took longer than the model \
             in {CALIBRATION} other connections without loss of the same RTT and flights, measured before, and is added to the model's times.",
            profile.name
        ),
    };
    keep(&table);
    Ok(Comparison {
        table,
        compared,
        within,
        at_jump: 0,
        needed: 1.0,
        limits: "with this machine's overhead added to the model, all means within 10 %, all 95th percentiles within 8 %"
            .into(),
        beside: if refused.is_empty() { refused } else { vec![refused.join("; ")] },
    })
}

/// The engine over this link.
fn over<'a, 'b>(
    live: &'b mut Option<Live<'a>>,
    settings: &Settings,
    link: &Link,
    stop: &'a AtomicBool,
) -> Result<&'b mut Live<'a>, LabError> {
    if let Some(engine) = live.as_mut() {
        engine.set_link(link, settings.seed)?;
    }
    match live {
        Some(engine) => Ok(engine),
        none => Ok(none.insert(Live::open(settings, link, settings.seed, stop)?)),
    }
}

/// First flow of the calibration: none of those that are compared.
const CALIBRATION_FLOWS: u64 = 1_000_000;
/// Connections of the calibration, for each round-trip time and trace.
const CALIBRATION: u64 = 21;

fn played([hello, flight, finished]: [u32; 3]) -> Trace {
    let step = |from, bytes, cpu_ns| Step { from, bytes, cpu_ns };
    Trace {
        steps: vec![
            step(Side::Client, hello, 100_000),
            step(Side::Server, flight, 300_000),
            step(Side::Client, finished, 200_000),
        ],
        client_done: 2,
        server_after_ns: 0,
        hello_retry: false,
        resumed: false,
        cpu_spread: Vec::new(),
    }
}

//! The live engine beside the model: real kernels and real stacks at a handful of points, the same flows with the same losses.

use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use super::grid;
use crate::error::LabError;
use crate::experiments::play::{Contender, milliseconds, share};
use crate::experiments::show::{place_words, short};
use crate::link::{ClockStart, Link, Outcome, Transfer};
use crate::live::{self, Live, Proof};
use crate::model::{self, Profile};
use crate::plan::live_cost;
use crate::result::{Axis, Chart, Marks, Series, Table};
use crate::run::Run;
use crate::statistics::{mean, quantile_of, sorted};
use crate::subject::Subject;

/// What is transferred after the handshake.
const TRANSFER: Transfer = Transfer { request: 100, body: 1000 };
/// Flows of one subject before it is another's turn.
const TURN: u64 = 10;
/// Namespaces, devices, calibration.
const SETUP: Duration = Duration::from_secs(4);

/// A link that was emulated.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Beside {
    /// The link.
    pub(super) link: Link,
    /// Outcomes of each subject, by flow.
    pub(super) outcomes: Vec<(String, Vec<Outcome>)>,
    /// What the emulation says of itself.
    pub(super) proof: Proof,
}

/// Points and connections at each.
fn points(quick: bool) -> (&'static [(u64, f64)], u64) {
    if quick {
        return (&[(1_000, 0.0), (5_500, 0.02), (30_000, 0.02)], 60);
    }
    (
        &[
            (1_000, 0.0),
            (5_500, 0.0),
            (5_500, 0.05),
            (30_000, 0.0),
            (30_000, 0.02),
            (30_000, 0.05),
            (100_000, 0.01),
        ],
        400,
    )
}

/// How long it takes if it can be done.
pub(super) fn estimate(quick: bool) -> Duration {
    let (points, count) = points(quick);
    points.iter().map(|&(rtt_us, loss)| cost(rtt_us, loss, count)).sum()
}

fn cost(rtt_us: u64, loss: f64, count: u64) -> Duration {
    let link = Link::new(Duration::from_micros(rtt_us), loss);
    let connections = u32::try_from(count).unwrap_or(u32::MAX) * 3;
    SETUP + live_cost(&link, TRANSFER.body) * connections
}

/// Measures classical, hybrid and hybrid with ML-DSA-65 at each point. What the machine lacks is a note, and nothing else is lost.
pub(super) fn measure(
    run: &mut Run<'_>,
    stack: &str,
    all: &[(Subject, Contender)],
) -> Result<Vec<Beside>, LabError> {
    let wanted = [grid::CLASSICAL, grid::HYBRID, grid::HYBRID_65].map(grid::name);
    let subjects: Vec<Subject> = wanted
        .iter()
        .filter_map(|name| all.iter().find(|(_, contender)| contender.name == *name))
        .map(|(subject, _)| *subject)
        .collect();
    let (points, count) = points(run.quick());
    let (settings, seed, stop) = (run.settings(), run.seed(), run.stop_flag());
    let mut live: Option<Live<'_>> = None;
    let mut found = Vec::new();
    for &(rtt_us, loss) in points {
        let link = Link::new(Duration::from_micros(rtt_us), loss);
        let key = format!("live/{stack}/{}/{count}", place_words(&link));
        let point = run.point(&key, cost(rtt_us, loss, count), || {
            live::available()?;
            match &mut live {
                Some(live) => live.set_link(&link, seed)?,
                None => live = Some(Live::open(settings, &link, seed, stop)?),
            }
            let Some(live) = &mut live else { return Err(LabError::failed("no live engine")) };
            in_turns(live, stack, &subjects, link, seed, count)
        });
        match point {
            Ok(point) => found.push(point),
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Err(LabError::Plan(error)) => return Err(LabError::Plan(error)),
            Err(error) => {
                run.note(format!("Nothing was measured live at {}: {error}.", place_words(&link)));
                if matches!(error, LabError::Unavailable { .. }) {
                    break;
                }
                live = None;
            }
        }
    }
    Ok(found)
}

/// A few flows of each subject in turn, in random order.
fn in_turns(
    live: &mut Live<'_>,
    stack: &str,
    subjects: &[Subject],
    link: Link,
    seed: u64,
    count: u64,
) -> Result<Beside, LabError> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut outcomes: Vec<(String, Vec<Outcome>)> =
        subjects.iter().map(|subject| (subject.name(), Vec::new())).collect();
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    let mut first = 0;
    while first < count {
        let turn = TURN.min(count - first);
        order.shuffle(&mut random);
        for &index in &order {
            let (Some(subject), Some((_, list))) = (subjects.get(index), outcomes.get_mut(index))
            else {
                continue;
            };
            list.extend(live.connections(stack, subject, TRANSFER, first, turn)?);
        }
        first += turn;
    }
    Ok(Beside { link, outcomes, proof: live.proof()? })
}

/// Table and chart of both engines.
pub(super) fn tell(
    run: &mut Run<'_>,
    profile: &'static Profile,
    points: &[Beside],
    all: &[(Subject, Contender)],
) {
    if points.is_empty() {
        return;
    }
    let seed = run.seed();
    let mut rows = Vec::new();
    let mut series = Vec::new();
    for point in points {
        for (name, live) in &point.outcomes {
            let Some((_, contender)) = all.iter().find(|(_, contender)| contender.name == *name)
            else {
                continue;
            };
            let model = model::connections(
                profile,
                &point.link,
                &contender.trace,
                TRANSFER,
                seed,
                live.len() as u64,
            );
            let times = |list: &[Outcome]| -> Vec<f64> {
                list.iter()
                    .map(|outcome| milliseconds(outcome.handshake_from(ClockStart::Syn)))
                    .collect()
            };
            let late = live.iter().filter(|outcome| outcome.late > 0).count();
            let (live, model) = (times(live), times(&model));
            let off = |of: &dyn Fn(&[f64]) -> f64| short(100.0 * (of(&model) / of(&live) - 1.0));
            let p95 = |list: &[f64]| quantile_of(list, 0.95);
            let median = |list: &[f64]| quantile_of(list, 0.5);
            rows.push(vec![
                place_words(&point.link).into(),
                name.as_str().into(),
                short(median(&live)).into(),
                short(median(&model)).into(),
                short(mean(&live)).into(),
                short(mean(&model)).into(),
                off(&mean).into(),
                short(p95(&live)).into(),
                short(p95(&model)).into(),
                off(&p95).into(),
                short(100.0 * share(late, live.len())).into(),
            ]);
            if point.link.rtt_us == grid::CLOSE_RTT_US {
                series.push(steps(format!("{name}, live"), &live));
                series.push(steps(format!("{name}, model"), &model));
            }
        }
    }
    let columns = [
        "link",
        "who",
        "median, live (ms)",
        "median, model (ms)",
        "mean, live (ms)",
        "mean, model (ms)",
        "mean, model over live (%)",
        "p95, live (ms)",
        "p95, model (ms)",
        "p95, model over live (%)",
        "flows with a late packet (%)",
    ];
    run.table(Table {
        name: "live".to_owned(),
        title: "The model beside real kernels over the emulated link".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        note: "Handshakes since the SYN. The same flows lose the same packets in both engines. Late: delivered more than 50 \
               microseconds after its time by the emulation itself."
            .to_owned(),
    });
    if !series.is_empty() {
        run.chart(Chart {
            name: "live".to_owned(),
            title: "The same flows in the model and over the emulated link".to_owned(),
            x: Axis::log("handshake since the SYN (ms)"),
            y: Axis::linear("handshakes (%)"),
            marks: Marks::Steps { series },
            rules: Vec::new(),
            caption: "Distributions of the handshake time. Where live and model lie on each other, the model may be believed for points \
                      that nobody has time to measure."
                .to_owned(),
        });
    }
    for point in points {
        let proof = &point.proof;
        run.note(format!(
            "Live at {}: emulated by {}{}, connect median {} microseconds from the asked RTT after calibration ({} before).",
            place_words(&point.link),
            proof.emulator,
            if proof.real_time { ", with real-time priority" } else { ", without real-time priority" },
            short(proof.calibrated_us),
            short(proof.uncalibrated_us)
        ));
    }
}

fn steps(name: String, times: &[f64]) -> Series {
    let times = sorted(times.iter().copied());
    let points = times
        .iter()
        .enumerate()
        .map(|(index, time)| [*time, 100.0 * share(index + 1, times.len())])
        .collect();
    Series { name, points, band: Vec::new() }
}

//! `cpu`: processor time of a handshake, in microseconds and ticks of the time-stamp counter, on each TLS implementation;
//! and where the time goes.

mod flames;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::effect;
use crate::error::LabError;
use crate::experiment::{Engine, Experiment};
use crate::published::{CYCLES_CLASSICAL, CYCLES_HYBRID, CYCLES_HYBRID_TIME};
use crate::result::{
    Axis, Chart, ClaimKind, Clock, Control, Finding, Marks, Rule, Series, Table, Value, Verdict,
};
use crate::run::{Run, Settings};
use crate::statistics::{Estimate, quantile, sorted};
use crate::subject::{Subject, authentications, key_exchanges};
use crate::tls::profile::{self, Ticks};
use crate::tls::rounds::{self, Measured, Part};
use crate::tls::{STACKS, Stack};

/// The experiment's row.
pub const EXPERIMENT: Experiment = Experiment {
    name: "cpu",
    title: "Processor time and cycles",
    question: "How much more does the processor work for a post-quantum handshake, on which side, and in which functions?",
    source: "AWS: CPU of a hybrid post-quantum TLS 1.2 handshake with s2n-tls, by perf and flame graphs; extended to TLS 1.3, three implementations and ML-DSA",
    engines: &[Engine::Cpu],
    estimate,
    run,
};

/// The baseline.
const BASE: (&str, &str) = ("x25519", "ECDSA P-256");
/// The hybrid that most clients offer.
const HYBRID: (&str, &str) = ("X25519MLKEM768", "ECDSA P-256");

struct Size {
    processes: usize,
    rounds: usize,
    /// Handshakes under callgrind.
    counted: u32,
    /// Handshakes under perf.
    sampled: u64,
}

fn size(settings: &Settings) -> Size {
    match settings.quick {
        true => Size { processes: 5, rounds: 80, counted: 20, sampled: 4000 },
        false => Size { processes: 8, rounds: 300, counted: 100, sampled: 30_000 },
    }
}

/// Indexes of the baseline and its control.
const FIRST: usize = 0;
const AGAIN: usize = 1;

/// What is measured: the baseline twice, then the subjects to be compared with it.
fn subjects(settings: &Settings) -> Result<Vec<Subject>, LabError> {
    let mut pairs = vec![BASE, BASE, HYBRID];
    let mut add = |pair| {
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    };
    if settings.quick {
        for pair in [
            ("SecP256r1MLKEM768", BASE.1),
            ("secp256r1", BASE.1),
            (HYBRID.0, "ML-DSA-44"),
            (HYBRID.0, "ML-DSA-65"),
        ] {
            add(pair);
        }
    } else {
        key_exchanges().iter().for_each(|row| add((row.name, BASE.1)));
        authentications().iter().for_each(|row| add((HYBRID.0, row.name)));
    }
    pairs.iter().map(|(group, signature)| Subject::new(group, signature, 1)).collect()
}

fn handshakes(settings: &Settings) -> u64 {
    let size = size(settings);
    let subjects = subjects(settings).map_or(8, |found| found.len());
    (size.processes * (size.rounds + 25) * subjects) as u64
}

fn rounds_cost(settings: &Settings) -> Duration {
    // About 0.8 ms a handshake, and a second per process to make keys.
    Duration::from_micros(800 * handshakes(settings))
        + Duration::from_millis(600 * size(settings).processes as u64)
}

fn callgrind_cost(settings: &Settings) -> Duration {
    Duration::from_millis(8000 + 60 * u64::from(size(settings).counted))
}

fn flames_cost(settings: &Settings) -> Duration {
    Duration::from_micros(2 * 2500 * size(settings).sampled)
}

/// Whether callgrind counts this implementation.
fn is_counted(settings: &Settings, stack: &dyn Stack) -> bool {
    !settings.quick || STACKS.first().is_some_and(|first| first.name() == stack.name())
}

fn estimate(settings: &Settings) -> Duration {
    let stack = |stack: &&dyn Stack| match is_counted(settings, *stack) {
        true => rounds_cost(settings) + callgrind_cost(settings),
        false => rounds_cost(settings),
    };
    Duration::from_secs(2) + STACKS.iter().map(stack).sum::<Duration>() + flames_cost(settings)
}

/// All results of one implementation.
struct Outcome {
    stack: &'static dyn Stack,
    version: String,
    subjects: Vec<Subject>,
    measured: Measured,
    /// Ratio of instructions of the hybrid to the baseline, by callgrind.
    instructions: Option<f64>,
}

fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    let settings = run.settings();
    let wanted = subjects(settings)?;
    let ticks = ticks(run, &wanted[FIRST])?;
    let mut outcomes = Vec::new();
    for stack in STACKS {
        match measure(run, *stack, &wanted) {
            Ok(outcome) => outcomes.push(outcome),
            Err(error @ LabError::Unavailable { .. }) => {
                run.left_out(&format!("{} was left out: {error}.", stack.name()));
            }
            Err(error) => return Err(error),
        }
    }
    for outcome in &outcomes {
        tell(run, outcome, ticks.hertz)?;
    }
    table(run, &outcomes, ticks.hertz);
    cold(run, &outcomes);
    ratios(run, &outcomes);
    signing(run, &outcomes);
    published(run, &outcomes, &ticks);
    run.note(format!(
        "Ticks are those of the time-stamp counter, {:.0} million a second: {}. They are no cycles of the core, whose rate varies.",
        ticks.hertz / 1e6,
        ticks.by
    ));
    run.note("A handshake is full, TLS 1.3, one certificate below a root that the client has, verified, in memory: no sockets, no kernel. Figures are 10th percentiles; where ML-DSA signs, whose cost varies by itself, means.");
    flames::tell(run, &wanted)
}

fn ticks(run: &mut Run<'_>, subject: &Subject) -> Result<Ticks, LabError> {
    let (settings, stop) = (run.settings(), run.stop_flag());
    run.point("ticks", Duration::from_secs(2), || profile::ticks(settings, subject, stop))
}

fn measure(
    run: &mut Run<'_>,
    stack: &'static dyn Stack,
    wanted: &[Subject],
) -> Result<Outcome, LabError> {
    let (settings, stop, size) = (run.settings(), run.stop_flag(), size(run.settings()));
    let offer = rounds::ask(settings, stack, wanted)?;
    let supported = wanted.iter().zip(&offer.supported).filter(|(_, supported)| **supported);
    let subjects: Vec<Subject> = supported.map(|(subject, _)| *subject).collect();
    let left_out: Vec<String> = wanted
        .iter()
        .zip(&offer.supported)
        .filter(|(_, supported)| !**supported)
        .map(|(subject, _)| subject.name())
        .collect();
    if !left_out.is_empty() {
        run.note(format!("{} does not offer {}.", stack.name(), left_out.join(", ")));
    }
    if !offer.supported.first().is_some_and(|supported| *supported) {
        return Err(LabError::unavailable(wanted[FIRST].name(), "an implementation that has it"));
    }
    let key = format!(
        "rounds {} {}, {} processes of {} rounds, {} configurations",
        stack.name(),
        offer.version,
        size.processes,
        size.rounds,
        subjects.len()
    );
    let measured = run.point(&key, rounds_cost(settings), || {
        rounds::measure(settings, stack.name(), &subjects, size.processes, size.rounds, stop)
    })?;
    let key = format!("callgrind {} {}, {} handshakes", stack.name(), offer.version, size.counted);
    let both = [subject(&subjects, HYBRID), subject(&subjects, BASE)];
    let instructions = match both {
        _ if !is_counted(settings, stack) => {
            Tried::Not("it takes long, and quick runs do it for rustls alone".to_owned())
        }
        [Some(hybrid), Some(base)] => run.point(&key, callgrind_cost(settings), || {
            let pair = [subjects[hybrid], subjects[base]];
            tried(profile::instructions(settings, stack, &pair, size.counted, stop))
        })?,
        _ => Tried::Not("the pair is not offered".to_owned()),
    };
    let instructions = match instructions {
        Tried::Done(counts) => match counts[..] {
            [hybrid, base] if base > 0.0 => Some(hybrid / base),
            _ => None,
        },
        Tried::Not(reason) => {
            run.note(format!("Instructions of {} were not counted: {reason}.", stack.name()));
            None
        }
    };
    Ok(Outcome { stack, version: offer.version, subjects, measured, instructions })
}

/// A result that may be missing.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Tried<T> {
    Done(T),
    Not(String),
}

fn tried<T>(outcome: Result<T, LabError>) -> Result<Tried<T>, LabError> {
    match outcome {
        Ok(found) => Ok(Tried::Done(found)),
        Err(LabError::Interrupted) => Err(LabError::Interrupted),
        Err(error) => Ok(Tried::Not(error.to_string())),
    }
}

fn subject(subjects: &[Subject], pair: (&str, &str)) -> Option<usize> {
    subjects.iter().position(|subject| {
        subject.key_exchange.name == pair.0 && subject.authentication.name == pair.1
    })
}

/// The control, the summary and the chart of one implementation.
fn tell(run: &mut Run<'_>, outcome: &Outcome, hertz: f64) -> Result<(), LabError> {
    let (seed, name) = (run.seed(), outcome.stack.name());
    let control = outcome.measured.control(
        &format!("{name}: {} against itself, client and server", outcome.subjects[FIRST].name()),
        AGAIN,
        FIRST,
        Part::Both,
        seed,
    );
    run.control(control.clone());
    if let Some(hybrid) = subject(&outcome.subjects, HYBRID) {
        let ratio = outcome.measured.ratio(hybrid, FIRST, Part::Both, seed);
        let effect = effect::beside(&ratio, &control);
        let more = outcome.measured.difference(hybrid, FIRST, Part::Both, seed);
        let server = outcome.measured.difference(hybrid, FIRST, Part::Server, seed);
        run.summary(format!(
            "{name} {}: processor time of X25519MLKEM768 over x25519: {}, {:.0} µs more a handshake, of which {:.0} µs ({:.0} thousand ticks of the time-stamp counter) are the server's.",
            outcome.version,
            effect.words(&format!("{:.3} times [{:.3}, {:.3}]", ratio.value, ratio.low, ratio.high)),
            more.value,
            server.value,
            server.value * hertz / 1e9,
        ));
    }
    let cost = |part| -> Vec<f64> {
        (1..outcome.subjects.len()).map(|index| outcome.measured.typical(index, part)).collect()
    };
    run.chart(Chart {
        name: format!("cpu-{}", file_name(name)),
        title: format!("Processor time of a handshake, {name} {}", outcome.version),
        x: Axis::linear("key exchange + signature"),
        y: Axis::linear("CPU time (µs)"),
        marks: Marks::Bars {
            categories: outcome.subjects[1..].iter().map(Subject::name).collect(),
            parts: vec![
                ("client".to_owned(), cost(Part::Client)),
                ("server".to_owned(), cost(Part::Server)),
            ],
            grouped: false,
        },
        rules: Vec::new(),
        caption: "10th percentile (mean where ML-DSA signs) of the processor time of each side; full handshake, one certificate.".to_owned(),
    });
    Ok(())
}

fn file_name(name: &str) -> String {
    name.to_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")
}

fn table(run: &mut Run<'_>, outcomes: &[Outcome], hertz: f64) {
    let seed = run.seed();
    let mut rows = Vec::new();
    for outcome in outcomes {
        for (index, subject) in outcome.subjects.iter().enumerate() {
            let cost = |part| outcome.measured.typical(index, part);
            let ratio = outcome.measured.ratio(index, FIRST, Part::Both, seed);
            let server = outcome.measured.typical(index, Part::Server)
                / outcome.measured.typical(FIRST, Part::Server);
            let more = outcome.measured.difference(index, FIRST, Part::Both, seed);
            let is_hybrid =
                subject.key_exchange.name == HYBRID.0 && subject.authentication.name == HYBRID.1;
            let counted = outcome.instructions.filter(|_| is_hybrid);
            let name = match index {
                AGAIN => format!("{} (again: the control)", subject.name()),
                _ => subject.name(),
            };
            rows.push(vec![
                outcome.stack.name().into(),
                name.into(),
                rounded(cost(Part::Client), 1).into(),
                rounded(cost(Part::Server), 1).into(),
                rounded(ratio.value, 4).into(),
                rounded(ratio.low, 4).into(),
                rounded(ratio.high, 4).into(),
                rounded(server, 4).into(),
                rounded(more.value, 1).into(),
                rounded(more.value * hertz / 1e9, 0).into(),
                counted.map_or_else(|| Value::from(""), |ratio| rounded(ratio, 4).into()),
            ]);
        }
    }
    let columns = [
        "implementation",
        "handshake",
        "client (µs)",
        "server (µs)",
        "ratio to x25519 + ECDSA P-256",
        "95 % from",
        "95 % to",
        "ratio, server only",
        "more (µs)",
        "more (thousand ticks)",
        "ratio of instructions (callgrind)",
    ];
    run.table(Table {
        name: "cpu-handshakes".to_owned(),
        title: "Processor time of handshakes".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        note: "Ratios and differences are of client and server together, unless said otherwise, from rounds in random order in several processes; intervals by a bootstrap of processes and rounds. Valgrind hides AVX-512 and ADX from what it runs, so callgrind's ratio is of other code and need not be the clock's.".to_owned(),
    });
}

fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

/// Costs that a process pays once.
fn cold(run: &mut Run<'_>, outcomes: &[Outcome]) {
    let micros = |nanos: u64| Duration::from_nanos(nanos).as_secs_f64() * 1e6;
    let mut rows = Vec::new();
    for outcome in outcomes {
        let median = |values: Vec<f64>| rounded(quantile(&sorted(values), 0.5), 1);
        let cold = &outcome.measured.cold;
        let entropy = cold.iter().map(|cold| micros(cold.entropy_ns) / 1000.0).collect();
        let first = cold
            .iter()
            .filter_map(|cold| cold.first.first())
            .map(|times| micros(times.0 + times.1))
            .collect();
        let warm = outcome.measured.typical(FIRST, Part::Both);
        rows.push(vec![
            outcome.stack.name().into(),
            median(entropy).into(),
            median(first).into(),
            rounded(warm, 1).into(),
        ]);
    }
    let columns = [
        "implementation",
        "first random bytes (ms)",
        "first handshake (µs)",
        "handshake later (µs)",
    ];
    run.table(Table {
        name: "cpu-cold".to_owned(),
        title: "What a process pays once".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        note: "Medians over processes, x25519 + ECDSA P-256, both sides. AWS-LC gathers jitter entropy when a process first asks for random bytes; the lab makes its certificates with AWS-LC in any case. No other figure here contains it.".to_owned(),
    });
}

/// Ratios of all implementations side by side.
fn ratios(run: &mut Run<'_>, outcomes: &[Outcome]) {
    let Some(longest) = outcomes.iter().max_by_key(|outcome| outcome.subjects.len()) else {
        return;
    };
    // Subjects that only some implementations have are in the table only.
    let shared: Vec<Subject> = longest.subjects[AGAIN + 1..]
        .iter()
        .filter(|subject| {
            let pair = (subject.key_exchange.name, subject.authentication.name);
            outcomes.iter().all(|outcome| self::subject(&outcome.subjects, pair).is_some())
        })
        .copied()
        .collect();
    let values = |outcome: &Outcome| -> Vec<f64> {
        shared
            .iter()
            .filter_map(|subject| {
                let pair = (subject.key_exchange.name, subject.authentication.name);
                let index = self::subject(&outcome.subjects, pair)?;
                let [over, under] =
                    [index, FIRST].map(|index| outcome.measured.typical(index, Part::Both));
                Some(over / under)
            })
            .collect()
    };
    run.chart(Chart {
        name: "cpu-ratios".to_owned(),
        title: "How many times x25519 + ECDSA P-256".to_owned(),
        x: Axis::linear("key exchange + signature"),
        y: Axis::linear("ratio of processor time, both sides"),
        marks: Marks::Bars {
            categories: shared.iter().map(Subject::name).collect(),
            parts: outcomes
                .iter()
                .map(|outcome| (outcome.stack.name().to_owned(), values(outcome)))
                .collect(),
            grouped: true,
        },
        rules: vec![Rule { label: "x25519 + ECDSA P-256".to_owned(), at: 1.0 }],
        caption: "What all implementations offer; intervals are in the table.".to_owned(),
    });
}

/// Server times where the signature's cost varies, against one where it does not.
fn signing(run: &mut Run<'_>, outcomes: &[Outcome]) {
    let Some(outcome) = outcomes.first() else { return };
    let mut rows = Vec::new();
    let mut series = Vec::new();
    for (index, subject) in outcome.subjects.iter().enumerate() {
        let is_hybrid = subject.key_exchange.name == HYBRID.0;
        if !is_hybrid || !(subject.cost_varies() || subject.authentication.name == HYBRID.1) {
            continue;
        }
        let times = sorted(outcome.measured.micros(index, Part::Server));
        let at = |share| quantile(&times, share);
        rows.push(vec![
            subject.name().into(),
            rounded(at(0.1), 1).into(),
            rounded(at(0.5), 1).into(),
            rounded(rounds::undisturbed_mean(&times), 1).into(),
            rounded(at(0.99), 1).into(),
        ]);
        let points = (0..=95_u8).map(|percent| {
            let share = f64::from(percent) / 100.0;
            [at(share), share]
        });
        series.push(Series { name: subject.name(), points: points.collect(), band: Vec::new() });
    }
    let columns = ["handshake", "p10 (µs)", "median (µs)", "mean (µs)", "p99 (µs)"];
    run.table(Table {
        name: "cpu-signing".to_owned(),
        title: format!("The server's time where signing varies, {}", outcome.stack.name()),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        note: "ML-DSA tries until a signature may be shown (FIPS 204, algorithm 7), four to five times on average: its 10th percentile is the cost of the lucky ones. The mean leaves out what took more than four medians, which was interrupted.".to_owned(),
    });
    run.chart(Chart {
        name: "cpu-signing".to_owned(),
        title: "The server's time by signature algorithm".to_owned(),
        x: Axis::linear("server's processor time (µs)"),
        y: Axis::linear("share of handshakes"),
        marks: Marks::Steps { series },
        rules: Vec::new(),
        caption: "Up to the 95th percentile; what lies beyond is mostly the machine.".to_owned(),
    });
}

/// A ratio of the project's earlier trials: implementation, pair, from, to.
const EXPECTED: &[(&str, (&str, &str), f64, f64)] = &[
    ("rustls", HYBRID, 1.187, 1.189),
    ("OpenSSL", HYBRID, 1.238, 1.251),
    ("rustls", ("SecP256r1MLKEM768", "ECDSA P-256"), 1.37, 1.37),
    ("OpenSSL", ("SecP256r1MLKEM768", "ECDSA P-256"), 1.37, 1.37),
    ("rustls", ("X25519MLKEM768", "ML-DSA-44"), 1.32, 1.32),
    ("OpenSSL", ("X25519MLKEM768", "ML-DSA-44"), 1.90, 1.90),
    ("rustls", ("X25519MLKEM768", "ML-DSA-65"), 1.60, 1.71),
    ("OpenSSL", ("X25519MLKEM768", "ML-DSA-65"), 2.39, 2.39),
];

/// Difference from an earlier excess that counts as agreement, as a share of it.
const TOLERANCE: f64 = 0.15;

/// Compares the excess over one: a ratio of 1.2 against 1.1 is twice the effect.
fn verdict(measured: &Estimate, low: f64, high: f64, control: &Control) -> Verdict {
    let [low, high] = [(low - 1.0) * (1.0 - TOLERANCE), (high - 1.0) * (1.0 + TOLERANCE)];
    let (target, tolerance) = (f64::midpoint(low, high), (high - low) / 2.0);
    effect::agrees(&effect::as_change(measured), target, tolerance, Some(control))
}

/// Published cycles that the hybrid adds on the server.
const PUBLISHED_CYCLES: f64 = CYCLES_HYBRID.value;

/// The verdict on published cycles: `perf` counted those of the core, and what is measured here are ticks of a counter
/// with a constant rate. The rate of the core is not among the points, so that neither can be converted.
fn cycles_verdict() -> Verdict {
    Verdict::Undecided.of_clocks(Clock::Cycles, Clock::Ticks)
}

fn published(run: &mut Run<'_>, outcomes: &[Outcome], ticks: &Ticks) {
    let seed = run.seed();
    if let Some(outcome) =
        outcomes.iter().find(|outcome| outcome.stack.name() == "s2n-tls").or(outcomes.first())
        && let Some(hybrid) = subject(&outcome.subjects, HYBRID)
    {
        let more = outcome.measured.difference(hybrid, FIRST, Part::Both, seed);
        let in_ticks = |micros: f64| micros * ticks.hertz / 1e6;
        let server = outcome.measured.difference(hybrid, FIRST, Part::Server, seed);
        let server = Estimate {
            value: in_ticks(server.value),
            low: in_ticks(server.low),
            high: in_ticks(server.high),
        };
        run.finding(Finding {
            kind: ClaimKind::Published,
            source: CYCLES_HYBRID.source.to_owned(),
            claim: "A hybrid key exchange adds little to a handshake's cycles".to_owned(),
            published: format!(
                "+{PUBLISHED_CYCLES} cycles of {} ({:.1} %) of the server by perf, about {} µs",
                CYCLES_CLASSICAL.value,
                100.0 * PUBLISHED_CYCLES / CYCLES_CLASSICAL.value,
                CYCLES_HYBRID_TIME.value
            ),
            measured: format!(
                "{}: server {:+.0} ticks of the time-stamp counter [{:.0}, {:.0}] of {:.0}; client and server together {:+.0} [{:.0}, {:.0}] of {:.0}, {:.0} µs (processor time)",
                outcome.stack.name(),
                server.value,
                server.low,
                server.high,
                in_ticks(outcome.measured.typical(FIRST, Part::Server)),
                in_ticks(more.value),
                in_ticks(more.low),
                in_ticks(more.high),
                in_ticks(outcome.measured.typical(FIRST, Part::Both)),
                more.value
            ),
            verdict: cycles_verdict(),
            why: "Two clocks: published are cycles of the core, whose rate follows load and temperature; here they are ticks of the time-stamp counter, whose rate is constant, and the rate of the core was not recorded, so that neither can be converted into the other. The published total is also a hundred times that of a handshake here, so it probably has more in it than a handshake (it is not said what); the algorithm, the protocol (TLS 1.3) and the processor are others as well.".to_owned(),
        });
    }
    for (stack, pair, low, high) in EXPECTED {
        let Some(outcome) = outcomes.iter().find(|outcome| outcome.stack.name() == *stack) else {
            continue;
        };
        let Some(index) = subject(&outcome.subjects, *pair) else { continue };
        let ratio = outcome.measured.ratio(index, FIRST, Part::Both, seed);
        let control = outcome.measured.control("", AGAIN, FIRST, Part::Both, seed);
        run.finding(Finding {
            kind: ClaimKind::Earlier,
            source: "Outlast's own earlier trials, 2026, rustls 0.23.46 and OpenSSL 3.5.5".to_owned(),
            claim: format!("{stack}: {} + {} against x25519 + ECDSA P-256", pair.0, pair.1),
            published: if low == high { format!("{low} times") } else { format!("{low} to {high} times") },
            measured: format!("{:.3} times [{:.3}, {:.3}]", ratio.value, ratio.low, ratio.high),
            verdict: verdict(&ratio, *low, *high, &control),
            why: format!(
                "Ratios depend on the processor: AVX2, AVX-512 and ADX speed up ML-KEM, ML-DSA and the curves by different factors. It holds if the whole interval of what exceeds 1 is within {:.0} % of the earlier one.",
                TOLERANCE * 100.0
            ),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_reach_each_verdict() {
        let around =
            |value: f64, half: f64| Estimate { value, low: value - half, high: value + half };
        let control = Control { what: String::new(), ratio: 1.0, low: 0.99, high: 1.01 };
        let judge = |measured: Estimate| verdict(&measured, 1.187, 1.189, &control);
        assert_eq!(judge(around(1.205, 0.005)), Verdict::Holds);
        assert_eq!(judge(around(1.25, 0.005)), Verdict::Partly);
        assert_eq!(judge(around(1.05, 0.005)), Verdict::Partly);
        assert_eq!(judge(around(0.95, 0.005)), Verdict::Differs);
        // Intervals that contain the earlier ratio, and others that would not agree.
        assert_eq!(judge(around(1.188, 0.05)), Verdict::Undecided);
        assert_eq!(judge(around(1.24, 0.03)), Verdict::Undecided);
        let broken = Control { what: String::new(), ratio: 1.05, low: 1.02, high: 1.08 };
        assert_eq!(verdict(&around(1.188, 0.005), 1.187, 1.189, &broken), Verdict::Undecided);
    }

    /// The core's cycles and the counter's ticks are two clocks, however close their numbers are.
    #[test]
    fn ticks_are_not_judged_by_published_cycles() {
        assert_eq!(cycles_verdict(), Verdict::NotComparable);
    }
}

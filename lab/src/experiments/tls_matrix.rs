//! `tls-matrix`: handshakes over links. Engine 1 measures a trace of every pair of key exchange and signature, the
//! model plays it over every link, and the live engine checks a handful of points.

mod bodies;
mod grid;
mod jumps;
mod pairs;
mod paquin;
mod sizes;
mod study;
#[cfg(test)]
mod tests;
mod variants;

use std::time::Duration;

use crate::error::LabError;
use crate::experiment::{Engine, Experiment};
use crate::experiments::play::Seen;
use crate::experiments::play::{self, Contender};
use crate::experiments::tables::{place_words, rtt_ms, short};
use crate::experiments::validation;
use crate::link::Link;
use crate::result::{Control, Worth};
use crate::run::{Run, Settings};
use crate::statistics::sorted;
use crate::subject::{Authentication, KeyExchange, Subject, authentications, key_exchanges};
use crate::tls::{STACKS, Stack};

/// The experiment's row.
pub const EXPERIMENT: Experiment = Experiment {
    name: "tls-matrix",
    title: "Handshakes over links",
    question: "What do hybrid key exchange and ML-DSA certificates cost on links with delay and loss, and from where on does it matter?",
    source: "The 2022 study of post-quantum TLS 1.3 under loss (github.com/gudengxia/TestOfPQFizz); Paquin, Stebila, Tamvada, \
             Benchmarking Post-Quantum Cryptography in TLS, 2019 (eprint.iacr.org/2019/1447); Kampanakis, Childs-Klein, The impact of \
             data-heavy, post-quantum TLS 1.3 on the Time-To-Last-Byte of real-world connections, 2024 (eprint.iacr.org/2024/176)",
    engines: &[Engine::Cpu, Engine::Model, Engine::Live],
    estimate,
    run,
};

fn estimate(settings: &Settings) -> Duration {
    grid::estimate(settings.quick)
}

fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    let stack = first_stack()?;
    let profile = grid::kernel()?;
    let subjects = grid::subjects(run.quick())?;
    let all = play::contenders(run, stack, &subjects)?;
    let contenders: Vec<Contender> = all.iter().map(|(_, contender)| contender.clone()).collect();

    let seen = pairs::measure(run, profile, &contenders)?;
    pairs::tell(run, &seen, &all);
    pairs::thresholds(run, &seen);
    control(run, &seen);
    look_closely(run, &seen);

    let variants = variants::measure(run, stack, profile)?;
    variants::tell(run, &variants);

    let chosen = chosen(&all);
    let bodies = bodies::measure(run, profile, &chosen)?;
    bodies::tell(run, &bodies);

    let legacy = legacy(run, stack)?;
    let one_certificate = one_certificate(run, stack)?;
    let study = study::measure(run, profile, &all, &legacy, &one_certificate)?;
    study::tell(run, &study);
    paquin::run(run)?;

    let seed = run.seed();
    let (points, _) = validation::measure(run, stack, seed, &grid::live(run.quick())?)?;
    let close = |link: &Link| link.rtt_us == grid::CLOSE_RTT_US;
    validation::tell(run, profile, seed, &points, &contenders, &close);
    run.note(
        "Points store quantiles from 0 to 100 % by 1 %, 99.9 %, means and paired differences; every single time is kept at the \
         point that is examined closely (and, in a quick run, at all losses of its RTT). The others can be had again from the \
         traces, which are stored, and the seed: the model repeats itself exactly.",
    );
    Ok(())
}

fn first_stack() -> Result<&'static dyn Stack, LabError> {
    STACKS.first().copied().ok_or_else(|| LabError::failed("there is no TLS implementation"))
}

/// The chosen pairs among the measured ones, the baseline first.
fn chosen(all: &[(Subject, Contender)]) -> Vec<Contender> {
    grid::CHOSEN
        .map(grid::name)
        .iter()
        .filter_map(|name| all.iter().find(|(_, contender)| contender.name == *name))
        .map(|(_, contender)| contender.clone())
        .collect()
}

/// Classical and hybrid with one certificate.
fn one_certificate(run: &mut Run<'_>, stack: &dyn Stack) -> Result<Vec<Contender>, LabError> {
    let mut subjects = Vec::new();
    for (group, signature) in [grid::CLASSICAL, grid::HYBRID] {
        subjects.push(Subject::new(group, signature, 1)?);
    }
    let measured = play::contenders(run, stack, &subjects)?;
    Ok(measured.into_iter().map(|(_, contender)| contender).collect())
}

/// The study's algorithms at its lowest level, as far as they are compiled in, with the study's names.
fn legacy(run: &mut Run<'_>, stack: &dyn Stack) -> Result<Vec<Contender>, LabError> {
    let mut subjects = Vec::new();
    for signature in &sizes::SIGNATURES {
        for kem in &sizes::KEMS {
            let (Some(group), Some(authentication)) = (
                row(key_exchanges(), |row: &KeyExchange| row.legacy && named(row.name, kem.name)),
                row(authentications(), |row: &Authentication| {
                    row.legacy && named(row.name, signature.name)
                }),
            ) else {
                continue;
            };
            let subject = Subject::new(group.name, authentication.name, grid::CERTIFICATES)?;
            subjects.push((subject, sizes::pair(kem.name, signature.name)));
        }
    }
    let list: Vec<Subject> = subjects.iter().map(|(subject, _)| *subject).collect();
    let measured = play::contenders(run, stack, &list)?;
    Ok(measured
        .into_iter()
        .filter_map(|(subject, contender)| {
            let (_, name) = subjects.iter().find(|(one, _)| one.name() == subject.name())?;
            Some(Contender { name: name.clone(), ..contender })
        })
        .collect())
}

fn row<T>(rows: &'static [T], wanted: impl Fn(&T) -> bool) -> Option<&'static T> {
    rows.iter().find(|row| wanted(row))
}

/// Whether a row is this algorithm of the study joined with P-256, ignoring hyphens and case.
fn named(row: &str, wanted: &str) -> bool {
    let plain = |text: &str| {
        text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase()
    };
    plain(row).starts_with("p256") && plain(row).contains(&plain(wanted))
}

/// The classical handshake against itself with other losses: the interval of the ratio of means must contain 1. The same
/// seed twice would be equal whatever happens, and is no control; a paired one is that. No verdict rests on this one, and
/// a note says its resolution.
fn control(run: &mut Run<'_>, seen: &[Seen]) {
    let Some(point) = pairs::close_point(seen) else { return };
    let Some(row) = point.played.rows.first() else { return };
    let place = place_words(&point.link);
    let other = row.syn.mean - row.unpaired.value;
    let control = Control {
        what: format!(
            "{}, two seeds, means of {} handshakes ({place})",
            row.name, point.played.count
        ),
        ratio: row.syn.mean / other,
        low: (other + row.unpaired.low) / other,
        high: (other + row.unpaired.high) / other,
    };
    run.note(resolution(&control, other));
    run.control(control);
}

/// What the control can see, beside means of so many milliseconds.
fn resolution(control: &Control, mean_ms: f64) -> String {
    let share = control.resolution();
    format!(
        "The control compares unpaired means, and tells changes beyond {} % of {} ms from noise, which are {} ms{}. No verdict rests on it: \
         what a pair adds is judged by differences that are paired, flow by flow under the same losses, with intervals of their own.",
        short(100.0 * share),
        short(mean_ms),
        short(share * mean_ms),
        if control.worth() == Worth::CannotFail {
            ", so much that it cannot fail: it is not counted"
        } else {
            ""
        }
    )
}

/// The sorted times of one lossy point.
fn look_closely(run: &mut Run<'_>, seen: &[Seen]) {
    let Some(point) = pairs::close_point(seen) else { return };
    let place = place_words(&point.link);
    let rtt = rtt_ms(&point.link);
    let wanted = [grid::CLASSICAL, grid::HYBRID, grid::HYBRID_65].map(grid::name);
    let times: Vec<(String, Vec<f64>, f64)> = wanted
        .iter()
        .filter_map(|name| point.played.row(name))
        .filter_map(|row| {
            let raw = row.raw_us.as_ref()?;
            let times = sorted(raw.iter().map(|&time| play::milliseconds(time * 1000)));
            Some((row.name.clone(), times, row.retransmitted))
        })
        .collect();
    let lines: Vec<(String, Vec<f64>)> =
        times.iter().map(|(name, list, _)| (name.clone(), thinned(list))).collect();
    run.chart(jumps::chart(&lines, rtt, &place));
    let levels: Vec<(String, Vec<jumps::Level>)> =
        times.iter().map(|(name, list, _)| (name.clone(), jumps::levels(list, rtt))).collect();
    run.table(jumps::table(&levels, &place));
    if let (Some((_, levels)), Some((_, _, retransmitted))) = (levels.first(), times.first()) {
        run.finding(jumps::finding(levels, *retransmitted, study::SOURCE, &place));
    }
}

/// Keeps every nth: a chart has at most a thousand points per line.
fn thinned(sorted: &[f64]) -> Vec<f64> {
    let step = sorted.len().div_ceil(1000).max(1);
    sorted.iter().step_by(step).copied().collect()
}

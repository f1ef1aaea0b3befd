//! `handshake-cost`: time and bytes of a handshake: client, server, network; flights against the limits of TCP and
//! QUIC.

mod flights;
mod links;
mod operators;
mod published;
mod tables;
mod windows;

use std::time::Duration;

use crate::error::LabError;
use crate::experiment::{Engine, Experiment};
use crate::experiments::handshake_cost::flights::Flights;
use crate::experiments::play::{self, Contender};
use crate::run::{Run, Settings};
use crate::statistics::Estimate;
use crate::subject::{Kind, Subject, authentications, key_exchanges};
use crate::tls::rounds::{self, Measured, Part};
use crate::tls::{STACKS, Stack, WARM_UP};

/// The experiment's row.
pub const EXPERIMENT: Experiment = Experiment {
    name: "handshake-cost",
    title: "Where a handshake's time and bytes go",
    question: "What does a handshake cost the client, the server and the network, and which limits do its flights pass?",
    source: "How to tune TLS for hybrid post-quantum cryptography with Kyber, AWS Security Blog, 2022; RFC 6928 (first window), RFC 9000, \
             section 8.1 (three times what was received)",
    engines: &[Engine::Cpu, Engine::Model],
    estimate,
    run,
};

/// Pairs that are measured on every stack, for client and server separately; the baseline is first and, as the
/// control, last.
const PAIRS: [(&str, &str); 5] = [
    ("x25519", "ECDSA P-256"),
    ("X25519MLKEM768", "ECDSA P-256"),
    ("X25519MLKEM768", "ML-DSA-44"),
    ("X25519MLKEM768", "ML-DSA-65"),
    ("x25519", "ECDSA P-256"),
];
/// The server's chain: a leaf and an intermediate.
const CERTIFICATES: u8 = 2;

/// Results of one stack.
struct Costs {
    stack: &'static str,
    version: String,
    /// Flights and typical times of every subject.
    flights: Vec<(Subject, Flights)>,
    /// Client and server times of [`PAIRS`], with intervals, as far as the stack supports them.
    cpu: Option<(Vec<Subject>, Measured)>,
}

fn processes(quick: bool) -> usize {
    if quick { 2 } else { rounds::PROCESSES }
}

fn rounds_of(quick: bool) -> usize {
    if quick { 80 } else { rounds::ROUNDS }
}

fn estimate(settings: &Settings) -> Duration {
    let quick = settings.quick;
    let subjects = subjects(quick, true).map_or(0, |list| list.len())
        + 2 * subjects(quick, false).map_or(0, |list| list.len());
    let traces = play::trace_cost(quick) * u32::try_from(subjects).unwrap_or(u32::MAX);
    traces + cpu_cost(quick) * 3 + operators::estimate(quick)
}

fn cpu_cost(quick: bool) -> Duration {
    let rounds = processes(quick) * (rounds_of(quick) + WARM_UP) * PAIRS.len();
    Duration::from_micros(1500) * u32::try_from(rounds).unwrap_or(u32::MAX)
}

/// What is measured: every group and every signature on the first stack; the chosen ones on the others.
fn subjects(quick: bool, first: bool) -> Result<Vec<Subject>, LabError> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    let mut add = |pair: (&'static str, &'static str)| {
        if !names.contains(&pair) {
            names.push(pair);
        }
    };
    for pair in PAIRS {
        add(pair);
    }
    if first {
        for row in key_exchanges().iter().filter(|row| !row.legacy) {
            add((row.name, "ECDSA P-256"));
            if !quick {
                add((row.name, "ML-DSA-65"));
            }
        }
        for row in authentications().iter().filter(|row| !row.legacy) {
            add(("x25519", row.name));
            add(("X25519MLKEM768", row.name));
        }
    }
    let mut subjects = Vec::new();
    for (group, signature) in names {
        subjects.push(Subject::new(group, signature, CERTIFICATES)?);
    }
    for (group, signature) in PAIRS.iter().take(4) {
        for kind in [Kind::HelloRetry, Kind::Resumed, Kind::Mutual] {
            subjects.push(Subject::new(group, signature, CERTIFICATES)?.kind(kind));
        }
    }
    Ok(subjects)
}

fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    let mut costs = Vec::new();
    for (index, stack) in STACKS.iter().enumerate() {
        match measure(run, *stack, index == 0) {
            Ok(cost) => costs.push(cost),
            Err(error @ LabError::Unavailable { .. }) => {
                run.left_out(&format!("{} was not measured: {error}.", stack.name()));
            }
            Err(error) => return Err(error),
        }
    }
    if let Some(stack) = STACKS.first() {
        operators::run(run, *stack)?;
    }
    tables::tell(run, &costs);
    published::tell(run, &costs);
    Ok(())
}

fn measure(run: &mut Run<'_>, stack: &'static dyn Stack, first: bool) -> Result<Costs, LabError> {
    let version = stack.version()?;
    let quick = run.quick();
    let mut flights = Vec::new();
    for (subject, Contender { trace, .. }) in
        play::contenders(run, stack, &subjects(quick, first)?)?
    {
        flights.push((subject, Flights::of(trace)?));
    }
    let (settings, stop) = (run.settings(), run.stop_flag());
    let mut pairs = Vec::new();
    for (group, signature) in PAIRS {
        let subject = Subject::new(group, signature, CERTIFICATES)?;
        if stack.supports(&subject) {
            pairs.push(subject);
        }
    }
    let (processes, rounds) = (processes(quick), rounds_of(quick));
    let key = format!("cpu/{}/{processes} x {rounds}", play::stack_words(stack)?);
    let cpu = run.point(&key, cpu_cost(quick), || {
        rounds::measure(settings, stack.name(), &pairs, processes, rounds, stop)
    });
    let cpu = match cpu {
        Ok(measured) => Some((pairs, measured)),
        Err(error @ LabError::Peer { .. }) => {
            run.left_out(&format!(
                "{}: client and server apart were not measured: {error}.",
                stack.name()
            ));
            None
        }
        Err(error) => return Err(error),
    };
    Ok(Costs { stack: stack.name(), version, flights, cpu })
}

impl Costs {
    /// The flights of a full handshake of this pair.
    fn flights(&self, group: &str, signature: &str) -> Option<&Flights> {
        self.flights
            .iter()
            .find(|(subject, _)| {
                subject.kind == Kind::Full
                    && subject.key_exchange.name == group
                    && subject.authentication.name == signature
            })
            .map(|(_, flights)| flights)
    }

    /// What the hybrid adds to the processor time of client and server, in microseconds, if that was measured in turns.
    fn differences(&self, seed: u64) -> Option<[Estimate; 2]> {
        let (_, measured) = self.cpu.as_ref()?;
        let base = self.place(PAIRS[0].0, PAIRS[0].1, false)?;
        let over = self.place(PAIRS[1].0, PAIRS[1].1, false)?;
        Some([Part::Client, Part::Server].map(|part| measured.difference(over, base, part, seed)))
    }

    /// Index of this pair in the rounds; `again` for the control, which occurs a second time.
    fn place(&self, group: &str, signature: &str, again: bool) -> Option<usize> {
        let (subjects, _) = self.cpu.as_ref()?;
        let same = |subject: &Subject| {
            subject.key_exchange.name == group && subject.authentication.name == signature
        };
        let mut places = (0..subjects.len()).filter(|&index| subjects.get(index).is_some_and(same));
        if again { places.nth(1) } else { places.next() }
    }
}

#[cfg(test)]
mod tests;

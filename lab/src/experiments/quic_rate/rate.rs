//! Connections over loopback to our echo endpoint, by three clocks: wall clock, server's processor time, processor
//! time of both.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use super::{CLASSICAL, ECDSA, HYBRID, change, float, rounded};
use crate::effect;
use crate::error::LabError;
use crate::pinned::{CLIENT_CORE, Pinned, SERVER_CORE, free_address, has_two_cores, stay_on};
use crate::published::{QUIC_BIKE, QUIC_KYBER, QUIC_SIKE};
use crate::quic::client::{Client, Done, endpoint, listens};
use crate::result::{
    Axis, Chart, ClaimKind, Clock as MeasuredBy, Control, Finding, Marks, Table, Verdict,
};
use crate::run::{Run, Settings};
use crate::statistics::{Estimate, quantile_of, two_level};
use crate::subject::Subject;
use outlast_harness::agent::Programs;

/// What is compared; the second is the first again, as the control.
const COMPARED: [(&str, &str); 5] = [
    (CLASSICAL, ECDSA),
    (CLASSICAL, ECDSA),
    (HYBRID, ECDSA),
    (HYBRID, "ML-DSA-44"),
    (HYBRID, "ML-DSA-65"),
];
const CONTROL: usize = 1;
const HYBRID_AT: usize = 2;
/// Published change for Kyber, as a share.
const PUBLISHED: f64 = -QUIC_KYBER.value / 100.0;
/// Difference from the published change that counts as agreement.
const TOLERANCE: f64 = 0.03;

/// Number of server processes: the upper level of the bootstrap.
const PROCESSES: u32 = 5;
/// Connections in a turn.
const A_TURN: u32 = 20;
/// Approximate time of a connection.
const A_CONNECTION: Duration = Duration::from_micros(2200);

fn rounds(quick: bool) -> u32 {
    // 10,000 connections of each, as published.
    if quick { 14 } else { 10_000 / A_TURN / PROCESSES }
}

fn process_estimate(quick: bool) -> Duration {
    Duration::from_millis(400) + A_CONNECTION * (rounds(quick) * A_TURN * 5)
}

pub(super) fn estimate(quick: bool) -> Duration {
    process_estimate(quick) * PROCESSES
}

/// Time of a turn of connections, in nanoseconds per connection.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Turn {
    wall: f64,
    server_cpu: f64,
    client_cpu: f64,
}

/// A clock for counting connections.
struct Clock {
    name: &'static str,
    of: fn(&Turn) -> f64,
}

const CLOCKS: [Clock; 3] = [
    Clock { name: "per second of the server's CPU", of: |turn| turn.server_cpu },
    Clock { name: "per second of both CPUs", of: |turn| turn.server_cpu + turn.client_cpu },
    Clock { name: "per second of the wall clock", of: |turn| turn.wall },
];
const SERVER_CLOCK: usize = 0;
const BOTH_CLOCK: usize = 1;
const WALL_CLOCK: usize = 2;

pub(super) fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    let subjects: Vec<Subject> = COMPARED
        .iter()
        .map(|(group, signature)| Subject::new(group, signature, 2))
        .collect::<Result<_, _>>()?;
    let rounds = rounds(run.quick());
    let mut processes = Vec::new();
    for process in 0..PROCESSES {
        let (settings, stop) = (run.settings(), run.stop_flag());
        let key = format!("rate, process {process}, {rounds} rounds of {A_TURN} connections");
        processes.push(run.point(&key, process_estimate(run.quick()), || {
            measure(settings, &subjects, process, rounds, stop)
        })?);
    }
    show(run, &subjects, &processes);
    Ok(())
}

/// One process of each server, and rounds in which each subject has a turn.
fn measure(
    settings: &Settings,
    subjects: &[Subject],
    process: u32,
    rounds: u32,
    stop: &std::sync::atomic::AtomicBool,
) -> Result<Vec<Vec<Turn>>, LabError> {
    let folder = crate::temporary::folder()?;
    let mut servers: Vec<(&str, Pinned)> = Vec::new();
    let mut ready = Vec::new();
    for subject in subjects {
        let name = subject.authentication.name;
        let place = match servers.iter().position(|(known, _)| *known == name) {
            Some(place) => place,
            None => {
                servers.push((name, start(&settings.executable, folder.path(), subject)?));
                servers.len() - 1
            }
        };
        ready.push((Client::new(subject)?, place));
    }
    let turn = |client: &Client, server: &Pinned, count| -> Result<Turn, LabError> {
        let before = server.cpu()?;
        let done = on_the_clients_core(|| client.connect(server.address, count, false, stop))?;
        let spent = server.cpu()?.saturating_sub(before);
        if done.failed > 0 {
            let peer = format!("the echo endpoint at {}", server.address);
            let reason = format!("{} of {count} connections over loopback failed", done.failed);
            return Err(LabError::Peer { peer, reason });
        }
        Ok(a_connection(&done, spent))
    };
    for (client, place) in &ready {
        turn(client, &servers[*place].1, A_TURN)?;
    }
    let mut random = Pcg64Mcg::seed_from_u64(settings.seed.wrapping_add(process.into()));
    let mut order: Vec<usize> = (0..ready.len()).collect();
    (0..rounds)
        .map(|_| {
            order.shuffle(&mut random);
            let mut turns = vec![Turn { wall: 0.0, server_cpu: 0.0, client_cpu: 0.0 }; ready.len()];
            for index in &order {
                let (client, place) = &ready[*index];
                turns[*index] = turn(client, &servers[*place].1, A_TURN)?;
            }
            Ok(turns)
        })
        .collect()
}

fn start(program: &Path, folder: &Path, subject: &Subject) -> Result<Pinned, LabError> {
    let address: SocketAddr = free_address()?;
    let command = endpoint(&Programs::beside(program).service, folder, subject, address)?;
    Pinned::start_when(program, &command, SERVER_CORE, address, || listens(address.port()))
}

/// Runs it on a thread that stays on its core, if there are two.
fn on_the_clients_core<T: Send>(
    work: impl FnOnce() -> Result<T, LabError> + Send,
) -> Result<T, LabError> {
    let pinned = || {
        if has_two_cores() {
            stay_on(CLIENT_CORE)?;
        }
        work()
    };
    std::thread::scope(|scope| {
        scope.spawn(pinned).join().unwrap_or_else(|_| Err(LabError::failed("a client died")))
    })
}

fn a_connection(done: &Done, server_cpu: Duration) -> Turn {
    let count = float(done.times.len().max(1) as u64);
    Turn {
        wall: float(done.wall_ns) / count,
        server_cpu: server_cpu.as_secs_f64() * 1e9 / count,
        client_cpu: float(done.cpu_ns) / count,
    }
}

/// Number of connections that this subject makes for one of the first's, by this clock: the median over rounds.
fn ratio(processes: &[Vec<Vec<Turn>>], clock: &Clock, subject: usize, seed: u64) -> Estimate {
    let pairs: Vec<Vec<[f64; 2]>> = processes
        .iter()
        .map(|rounds| {
            let pair =
                |turns: &Vec<Turn>| Some([turns.first()?, turns.get(subject)?].map(clock.of));
            rounds.iter().filter_map(pair).collect()
        })
        .collect();
    two_level(&pairs, seed, |rounds| {
        let ratios: Vec<f64> = rounds.iter().map(|[base, other]| base / other).collect();
        quantile_of(&ratios, 0.5)
    })
}

fn show(run: &mut Run<'_>, subjects: &[Subject], processes: &[Vec<Vec<Turn>>]) {
    let seed = run.seed();
    let rate = |clock: &Clock, subject: usize| {
        let costs: Vec<f64> = processes
            .iter()
            .flatten()
            .filter_map(|turns| turns.get(subject))
            .map(clock.of)
            .collect();
        1e9 / quantile_of(&costs, 0.5)
    };
    let ratios: Vec<Vec<Estimate>> = CLOCKS
        .iter()
        .map(|clock| (0..subjects.len()).map(|at| ratio(processes, clock, at, seed)).collect())
        .collect();
    let controls: Vec<Control> = CLOCKS
        .iter()
        .zip(&ratios)
        .map(|(clock, ratios)| Control {
            what: format!("{} twice: connections {}", subjects[0].name(), clock.name),
            ratio: ratios[CONTROL].value,
            low: ratios[CONTROL].low,
            high: ratios[CONTROL].high,
        })
        .collect();
    let shown: Vec<usize> = (0..subjects.len()).filter(|at| *at != CONTROL).collect();
    let mut columns = vec!["subject".to_owned()];
    for clock in &CLOCKS {
        columns.push(format!("connections {} (1/s)", clock.name));
        columns.push(format!("change {} (% [95 % interval])", clock.name));
    }
    run.table(Table {
        name: "quic-connections".to_owned(),
        title: "Connections over loopback, one after the other, a byte each way".to_owned(),
        columns,
        rows: shown
            .iter()
            .map(|at| {
                let mut row = vec![subjects[*at].name().into()];
                for (clock, ratios) in CLOCKS.iter().zip(&ratios) {
                    row.push(rounded(rate(clock, *at), 0));
                    let text = if *at == 0 { "-".to_owned() } else { change(ratios[*at]) };
                    row.push(text.into());
                }
                row
            })
            .collect(),
        note: format!(
            "Median of {} turns of {A_TURN} connections in {PROCESSES} server processes, in random order. The server is outlast serve-echo on one thread of core {SERVER_CORE}, the client quinn on one thread{}. Changes are medians of the ratio to X25519 with ECDSA in the same round.",
            processes.iter().map(Vec::len).sum::<usize>(),
            if has_two_cores() { format!(" of core {CLIENT_CORE}") } else { ", which shares the only core".to_owned() },
        ),
    });
    run.chart(Chart {
        name: "quic-connections".to_owned(),
        title: "QUIC connections a second, by the server's CPU, both CPUs and the wall clock".to_owned(),
        x: Axis::linear("key exchange and chain"),
        y: Axis::linear("connections (1/s)"),
        marks: Marks::Bars {
            categories: shown.iter().map(|at| subjects[*at].name()).collect(),
            parts: CLOCKS
                .iter()
                .map(|clock| {
                    let rates = shown.iter().map(|at| rate(clock, *at)).collect();
                    (clock.name.to_owned(), rates)
                })
                .collect(),
            grouped: true,
        },
        rules: Vec::new(),
        caption: "Sequential connections over loopback: handshake, a byte there, the byte back. The wall clock counts waiting for the scheduler and for the kernel's loopback, too.".to_owned(),
    });
    published(run, &ratios, &controls);
    let told = |subject: usize| {
        let ratio = ratios[SERVER_CLOCK][subject];
        effect::beside(&ratio, &controls[SERVER_CLOCK]).words(&change(ratio))
    };
    run.summary(format!(
        "Over QUIC, connections {} against classical ones: with X25519MLKEM768 {}; with ML-DSA-44 certificates, too, {}; with ML-DSA-65 {}.",
        CLOCKS[SERVER_CLOCK].name,
        told(HYBRID_AT),
        told(HYBRID_AT + 1),
        told(HYBRID_AT + 2),
    ));
    for control in controls {
        run.control(control);
    }
}

fn published(run: &mut Run<'_>, ratios: &[Vec<Estimate>], controls: &[Control]) {
    let both = ratios[BOTH_CLOCK][HYBRID_AT];
    let of_the_wall = ratios[WALL_CLOCK][HYBRID_AT];
    // Like with like: published were connections in a second of the wall clock.
    let verdict = verdict(of_the_wall, &controls[WALL_CLOCK]);
    let verdict = QUIC_KYBER.clock.judge(verdict, MeasuredBy::Wall);
    run.finding(Finding {
        kind: ClaimKind::Published,
        source: QUIC_KYBER.source.to_owned(),
        claim: "A hybrid with Kyber makes fewer connections a second, one after the other with a byte each way".to_owned(),
        published: format!(
            "-{} % connections a second ({})",
            QUIC_KYBER.value,
            QUIC_KYBER.clock.words()
        ),
        measured: format!(
            "{} {}; {} {}; {} {}",
            change(of_the_wall),
            CLOCKS[WALL_CLOCK].name,
            change(both),
            CLOCKS[BOTH_CLOCK].name,
            change(ratios[SERVER_CLOCK][HYBRID_AT]),
            CLOCKS[SERVER_CLOCK].name,
        ),
        verdict,
        why: format!(
            "The verdict is by the wall clock, as the published figure is, and holds if the whole interval is within {:.0} points of it; changes by processor time are shown beside it and are not compared. Published was Kyber of round 3 (s2n-tls had its 512 size); here it is X25519MLKEM768 on rustls, whose X25519 is cheaper and whose ML-KEM-768 is larger: the ClientHello needs a second datagram. The classical connection is another one as well, and its cost is what the change is a share of. The wall clock may even have the wrong sign: the hybrid's work is tens of microseconds, a connection over loopback waits for several wake-ups of the scheduler, and a second datagram in flight changes which of those waits happen. The control of the wall clock is [{:.3}, {:.3}].",
            TOLERANCE * 100.0,
            controls[WALL_CLOCK].low,
            controls[WALL_CLOCK].high,
        ),
    });
    run.finding(Finding {
        kind: ClaimKind::Published,
        source: QUIC_KYBER.source.to_owned(),
        claim: "Hybrids with BIKE and SIKE make far fewer connections a second".to_owned(),
        published: format!("BIKE -{} %, SIKE -{} %", QUIC_BIKE.value, QUIC_SIKE.value),
        measured: "not measured".to_owned(),
        verdict: Verdict::Undecided,
        why: "Neither can be had any more: SIKE was broken in 2022, BIKE was not chosen by NIST in 2025, and s2n-tls has removed both. Their cost was CPU time (milliseconds for BIKE's decapsulation, tens of them for SIKE's), which ML-KEM does not have.".to_owned(),
    });
}

/// Whether the hybrid keeps about the published share of connections, if noise allows a judgement.
fn verdict(ratio: Estimate, control: &Control) -> Verdict {
    effect::agrees(&effect::as_change(&ratio), PUBLISHED, TOLERANCE, Some(control))
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    /// Rounds on machines of varying speed, where a hybrid costs this much more.
    fn processes(hybrid: f64, control: f64) -> Vec<Vec<Vec<Turn>>> {
        let turn = |speed: f64, factor: f64| Turn {
            wall: 3e6 * speed * factor,
            server_cpu: 1e6 * speed * factor,
            client_cpu: 1e6 * speed * factor,
        };
        let mut random = Pcg64Mcg::seed_from_u64(3);
        let mut round = || {
            let speed = random.random_range(1.0..3.0);
            let factors = [1.0, control, hybrid, hybrid * 1.1, hybrid * 1.2];
            factors.map(|factor| turn(speed, factor * random.random_range(0.99..1.01))).to_vec()
        };
        (0..5).map(|_| (0..20).map(|_| round()).collect()).collect()
    }

    fn judged(hybrid: f64, control: f64) -> (Estimate, Verdict) {
        let processes = processes(hybrid, control);
        let of = |subject| ratio(&processes, &CLOCKS[BOTH_CLOCK], subject, 1);
        let found = of(CONTROL);
        let control =
            Control { what: String::new(), ratio: found.value, low: found.low, high: found.high };
        (of(HYBRID_AT), verdict(of(HYBRID_AT), &control))
    }

    #[test]
    fn hybrid_cost_is_found_under_greater_noise() {
        let (ratio, verdict) = judged(1.0 / 0.92, 1.0);
        assert!((ratio.value - 0.92).abs() < 0.01, "{ratio:?}");
        assert_eq!(verdict, Verdict::Holds);
        assert_eq!(judged(1.02, 1.0).1, Verdict::Partly);
        assert_eq!(judged(0.9, 1.0).1, Verdict::Differs);
        // No effect is seen, and the published one would be.
        assert_eq!(judged(1.0, 1.0).1, Verdict::Differs);
        // A control that is off by three per cent decides nothing.
        assert_eq!(judged(1.0 / 0.92, 1.03).1, Verdict::Undecided);
    }

    /// The published rate is one of the wall clock: that ours agrees by processor time decides nothing.
    #[test]
    fn processor_time_does_not_decide_about_a_rate_of_the_wall_clock() {
        // By the processor 8 % fewer; by the wall clock undecided, as it was once measured: -6.1 % [-22, +8].
        let wall = Estimate { value: 0.939, low: 0.78, high: 1.08 };
        let control = Control { what: String::new(), ratio: 1.0, low: 0.98, high: 1.02 };
        assert_eq!(verdict(wall, &control), Verdict::Undecided);
        // An interval without 1 that contains the published figure and many others.
        let wide = Estimate { value: 0.92, low: 0.85, high: 0.99 };
        assert_eq!(verdict(wide, &control), Verdict::Undecided);
        let processor = Estimate { value: 0.92, low: 0.90, high: 0.94 };
        assert_eq!(verdict(processor, &control), Verdict::Holds);
        let by_processor =
            verdict(processor, &control).of_clocks(MeasuredBy::Wall, MeasuredBy::Cpu);
        assert_eq!(by_processor, Verdict::NotComparable);
    }

    #[test]
    fn full_mode_makes_as_many_connections_as_was_published() {
        assert_eq!(rounds(false) * A_TURN * PROCESSES, 10_000);
        assert!(estimate(true) < Duration::from_secs(25) && estimate(false) > estimate(true));
    }
}

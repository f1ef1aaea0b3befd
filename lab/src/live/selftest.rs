//! The properties that are promised of the emulated link, as checks.

use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::agents::prefer;
use super::clock::nanos;
use super::{Live, Proof, guard, kernel, micros, netem};
use crate::error::LabError;
use crate::link::{ClockStart, Link, Outcome, Transfer};
use crate::run::Settings;
use crate::selftest::check::{Check, Checked};
use crate::trace::{Side, Step, Trace};

/// All checks.
pub const CHECKS: &[Check] = &[
    Check {
        name: "link: error of the TCP connect's median at RTT 1 ms",
        estimate: |short| Duration::from_secs(if short { 3 } else { 8 }),
        timed: true,
        run: connect,
    },
    Check {
        name: "link: loss as asked",
        estimate: |short| Duration::from_secs(if short { 3 } else { 8 }),
        timed: false,
        run: loss,
    },
    Check {
        name: "link: a rerun with the same seed pairs",
        estimate: |short| Duration::from_secs(if short { 30 } else { 150 }),
        timed: true,
        run: pairing,
    },
    Check {
        name: "link: throughput",
        estimate: |short| Duration::from_secs(if short { 3 } else { 8 }),
        timed: true,
        run: throughput,
    },
    Check {
        name: "link: nothing is left of it",
        estimate: |_| Duration::from_secs(1),
        timed: false,
        run: clean,
    },
];

fn open<'a>(
    settings: &Settings,
    rtt: Duration,
    loss: f64,
    stop: &'a AtomicBool,
) -> Result<Live<'a>, LabError> {
    Live::open(settings, &Link::new(rtt, loss), settings.seed, stop)
}

fn connect(settings: &Settings, short: bool, stop: &AtomicBool) -> Result<Vec<Checked>, LabError> {
    let rtt = Duration::from_millis(1);
    let count = if short { 500 } else { 3000 };
    let live = open(settings, rtt, 0.0, stop)?;
    let times = live.connect_times(count)?;
    let proof = live.proof()?;
    drop(live);
    let beside = match netem::connect_times(rtt, count, stop) {
        Ok(times) => spread(&times, rtt),
        Err(error) => error.to_string(),
    };
    Ok(vec![
        Checked {
            measured: format!(
                "{}; {:+.1} µs before calibration; {}",
                spread(&times, rtt),
                proof.uncalibrated_us,
                in_words(&proof),
            ),
            limit: "below 50 µs at the median".into(),
            met: Some(error_us(&times, rtt, 50).abs() < 50.0),
        },
        Checked {
            measured: format!("the kernel's netem beside it: {beside}"),
            limit: "reported only: it cannot repeat losses".into(),
            met: None,
        },
    ])
}

/// How far this percentile is from the requested time.
fn error_us(times: &[u64], rtt: Duration, percentile: usize) -> f64 {
    let time = times.get(times.len() * percentile / 100).copied().unwrap_or(u64::MAX);
    micros(time) - micros(nanos(rtt))
}

fn spread(times: &[u64], rtt: Duration) -> String {
    let within = times.iter().filter(|time| time.abs_diff(nanos(rtt)) <= 50_000).count();
    format!(
        "{:+.1} µs at the median of {} connects, {:+.1} at p95, {} % within 50 µs",
        error_us(times, rtt, 50),
        times.len(),
        error_us(times, rtt, 95),
        within * 100 / times.len().max(1)
    )
}

fn loss(settings: &Settings, short: bool, stop: &AtomicBool) -> Result<Vec<Checked>, LabError> {
    let mut live = open(settings, Duration::from_millis(1), 0.0, stop)?;
    let mut checked = Vec::new();
    for asked in [0.01, 0.05] {
        live.set_link(&Link::new(Duration::from_millis(1), asked), settings.seed)?;
        flood(&live, if short { 50_000 } else { 400_000 }, Some(Duration::from_micros(4)))?;
        let proof = live.proof()?;
        let (packets, lost) = (float(proof.packets[0]), float(proof.lost[0]));
        let error = (asked * (1.0 - asked) / packets).sqrt();
        let got = lost / packets;
        checked.push(Checked {
            measured: format!(
                "asked {:.0} %, got {:.3} % of {packets:.0} packets: {:.1} standard errors",
                asked * 100.0,
                got * 100.0,
                (got - asked) / error
            ),
            limit: "within 3 standard errors".into(),
            met: Some((got - asked).abs() < 3.0 * error),
        });
    }
    Ok(checked)
}

fn pairing(settings: &Settings, short: bool, stop: &AtomicBool) -> Result<Vec<Checked>, LabError> {
    let link = Link::new(Duration::from_millis(5), 0.05);
    let mut live = Live::open(settings, &link, settings.seed, stop)?;
    let count = if short { 50 } else { 300 };
    let trace = handshake();
    let nothing = Transfer { request: 0, body: 0 };
    let mut run = |first: u64| live.play(&trace, nothing, first, count);
    // Other flows meet other losses, as with another seed.
    let (one, again, other) = (run(0)?, run(0)?, run(count)?);
    let paired = variance(&one, &again);
    let unpaired = variance(&one, &other);
    let ratio = unpaired / paired.max(f64::MIN_POSITIVE);
    Ok(vec![Checked {
        measured: format!(
            "standard deviation of a rerun's difference: {:.2} ms paired, {:.2} ms unpaired ({count} handshakes, RTT 5 ms, loss 5 %): variance {ratio:.0} times smaller",
            paired.sqrt() / 1e6,
            unpaired.sqrt() / 1e6
        ),
        limit: "at least 10 times".into(),
        met: Some(ratio >= 10.0),
    }])
}

fn throughput(
    settings: &Settings,
    short: bool,
    stop: &AtomicBool,
) -> Result<Vec<Checked>, LabError> {
    let mut live = open(settings, Duration::from_micros(200), 0.0, stop)?;
    let (packets, took) = flood(&live, if short { 200_000 } else { 1_000_000 }, None)?;
    let rate = float(packets) / took.as_secs_f64();
    let body = if short { 200_000_000 } else { 1_000_000_000 };
    let transfer = Transfer { request: 8, body };
    let outcomes = live.play(&handshake(), transfer, 0, 1)?;
    let bits = outcomes.first().map_or(0.0, |outcome| {
        let took = outcome.last_byte_ns - outcome.handshake_ns;
        f64::from(body) * 8.0 / float(took)
    });
    Ok(vec![
        Checked {
            measured: format!("{:.2} million packets a second of {packets} datagrams", rate / 1e6),
            limit: "0.1 million".into(),
            met: Some(rate > 1e5),
        },
        Checked {
            measured: format!("{bits:.2} Gbit/s of TCP in one connection at RTT 0.2 ms"),
            limit: "0.5 Gbit/s".into(),
            met: Some(bits > 0.5),
        },
    ])
}

fn clean(settings: &Settings, _: bool, stop: &AtomicBool) -> Result<Vec<Checked>, LabError> {
    let allowed = || std::fs::read_to_string(kernel::ALLOWED).unwrap_or_default();
    let before = allowed();
    let mut live = open(settings, Duration::from_millis(1), 0.0, stop)?;
    live.play(&handshake(), Transfer { request: 0, body: 0 }, 0, 2)?;
    let token = live.guard.token().to_owned();
    let namespaces = live.namespaces();
    drop(live);
    let mut left = Vec::new();
    for _ in 0..100 {
        // The kernel removes a process's last resources a moment after it ended.
        left = guard::remains(&token, &namespaces);
        if left.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let after = allowed();
    if before != after {
        left.push(format!(
            "tcp_allowed_congestion_control was {}, is {}",
            before.trim(),
            after.trim()
        ));
    }
    Ok(vec![Checked {
        measured: if left.is_empty() { "nothing".into() } else { left.join(", ") },
        limit: "no process, no namespace, no device, no change of tcp_allowed_congestion_control"
            .into(),
        met: Some(left.is_empty()),
    }])
}

/// A handshake of the usual sizes, without computing.
fn handshake() -> Trace {
    let step = |from, bytes| Step { from, bytes, cpu_ns: 0 };
    Trace {
        steps: vec![step(Side::Client, 1500), step(Side::Server, 6000), step(Side::Client, 80)],
        client_done: 2,
        server_after_ns: 0,
        hello_retry: false,
        resumed: false,
        cpu_spread: Vec::new(),
    }
}

/// Sends datagrams from the client's end, with a pause after each burst if one is given; returns how many the link
/// saw, and how long it took.
fn flood(
    live: &Live<'_>,
    count: u32,
    pause: Option<Duration>,
) -> Result<(u64, Duration), LabError> {
    const BURST: u32 = 64;
    let before = live.wire.counters()?.packets[0];
    let address = live.server_address(7);
    // Its buffer takes the datagrams and nobody reads them, so nothing comes back.
    let _taker =
        live.within(Side::Server, || UdpSocket::bind(address))?.map_err(LabError::failed)?;
    let begun = Instant::now();
    let sent = live.within(Side::Client, || {
        prefer();
        let socket = UdpSocket::bind((super::CLIENT, 0))?;
        socket.connect(address)?;
        for number in 0..count {
            socket.send(&[0; 64])?;
            if number % BURST == 0
                && let Some(pause) = pause
            {
                std::thread::sleep(pause * BURST);
            }
        }
        Ok::<_, std::io::Error>(())
    })?;
    sent.map_err(LabError::failed)?;
    let mut seen = live.wire.counters()?.packets[0];
    let mut took = begun.elapsed();
    loop {
        std::thread::sleep(Duration::from_millis(20));
        let now = live.wire.counters()?.packets[0];
        if now == seen {
            return Ok((seen - before, took));
        }
        (seen, took) = (now, begun.elapsed());
    }
}

/// Variance of the differences of handshake times, paired.
fn variance(one: &[Outcome], other: &[Outcome]) -> f64 {
    let time = |outcome: &Outcome| float(outcome.handshake_from(ClockStart::Syn));
    let differences: Vec<f64> =
        one.iter().zip(other).map(|(one, other)| time(one) - time(other)).collect();
    let count = float(differences.len() as u64);
    let mean = differences.iter().sum::<f64>() / count;
    differences.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / count
}

/// The emulation's report on its lateness.
fn in_words(proof: &Proof) -> String {
    let total: u64 = proof.late_counts.iter().sum();
    let share = |edge: f64| {
        let below: u64 = proof
            .late_edges_us
            .iter()
            .zip(&proof.late_counts)
            .filter(|(upper, _)| **upper <= edge)
            .map(|(_, count)| count)
            .sum();
        100.0 * float(below) / float(total.max(1))
    };
    format!(
        "of {total} packets {:.1} % left less than 5 µs late, {:.1} % less than 50 µs, {:.2} % less than 1 ms; {} may have been read more than 50 µs late; {}",
        share(5.0),
        share(50.0),
        share(1000.0),
        proof.read_late,
        if proof.real_time { "real-time priority" } else { "no real-time priority" }
    )
}

#[expect(clippy::cast_precision_loss, reason = "counts and nanoseconds below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

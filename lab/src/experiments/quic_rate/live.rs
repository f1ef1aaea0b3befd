//! The real endpoint over the emulated link, compared with virtual time.

use std::process::{Child, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{float, rounded, subjects};
use crate::error::LabError;
use crate::link::Link;
use crate::live;
use crate::quic::client::{Client, Done, endpoint, listens};
use crate::quic::in_virtual_time;
use crate::result::{Axis, Chart, Marks, Table, Value};
use crate::run::{Progress, Run, Settings};
use crate::site;
use crate::statistics::{mean, quantile, sorted};
use crate::subject::Subject;
use crate::trace::Side;
use outlast_harness::agent::Programs;

/// Round-trip time in microseconds, and loss.
const LINKS: [(u64, f64); 4] = [(5500, 0.0), (30_000, 0.0), (5500, 0.05), (30_000, 0.02)];
const PORT: u16 = 4433;
const START: Duration = Duration::from_secs(10);
/// Time to make and calibrate a link, and to start its servers.
const OPEN: Duration = Duration::from_millis(1500);

fn count(quick: bool, loss: f64) -> u32 {
    match (loss == 0.0, quick) {
        (true, true) => 6,
        (false, true) => 16,
        (true, false) => 100,
        (false, false) => 1000,
    }
}

fn point_estimate(quick: bool, rtt_us: u64, loss: f64) -> Duration {
    // Three round trips and some work; many of those that lose a packet wait for a second.
    let typical =
        Duration::from_micros(rtt_us * 3 + 4000) + Duration::from_secs(1).mul_f64(loss * 1.5);
    OPEN + typical * (count(quick, loss) * 4)
}

pub(super) fn estimate(quick: bool) -> Duration {
    if live::available().is_err() {
        return Duration::ZERO;
    }
    LINKS.iter().map(|(rtt_us, loss)| point_estimate(quick, *rtt_us, *loss)).sum()
}

/// Results over one link.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Measured {
    /// Results by subject.
    done: Vec<Done>,
    /// Error of the link's round-trip time after calibration, in microseconds.
    calibrated_us: f64,
    /// Packets that the emulation delivered more than 50 microseconds late, and all packets.
    late: [u64; 2],
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    live::available().map_err(|error| match error {
        LabError::Unavailable { needs, .. } => {
            LabError::unavailable("QUIC over the emulated link", needs)
        }
        other => other,
    })?;
    let subjects = subjects()?;
    let mut rows = Vec::new();
    let mut medians = Vec::new();
    for (rtt_us, loss) in LINKS {
        let link = Link::new(Duration::from_micros(rtt_us), loss);
        let count = count(run.quick(), loss);
        let (settings, stop, seed) = (run.settings(), run.stop_flag(), run.seed());
        let progress = run.progress();
        let key = format!("live, RTT {rtt_us} us, loss {loss}, {count} connections");
        let cost = point_estimate(run.quick(), rtt_us, loss);
        let measured =
            run.point(&key, cost, || measure(settings, &link, &subjects, count, stop, progress))?;
        for (subject, done) in subjects.iter().zip(&measured.done) {
            let virtual_count = if loss == 0.0 { 1 } else { count.max(200) };
            let dream = in_virtual_time(subject, &link, seed, virtual_count)?;
            let dreamt = [0, 1].map(|which| {
                sorted(
                    dream
                        .outcomes
                        .iter()
                        .map(|outcome| float([outcome.handshake_ns, outcome.echo_ns][which]) / 1e6),
                )
            });
            let lived = [0, 1].map(|which| Lived::new(done, which));
            let mut row: Vec<Value> = vec![
                (float(rtt_us) / 1000.0).into(),
                rounded(loss * 100.0, 2),
                subject.name().into(),
                float(done.times.len() as u64).into(),
                f64::from(done.failed).into(),
            ];
            for (dreamt, lived) in dreamt.iter().zip(&lived) {
                for share in [0.5, 0.95] {
                    row.push(rounded(quantile(dreamt, share), 2));
                    row.push(lived.at(share).cell());
                }
                row.push(rounded(mean(dreamt), 2));
                row.push(lived.mean().cell());
            }
            row.push(rounded(measured.calibrated_us, 1));
            row.push(rounded(100.0 * float(measured.late[0]) / float(measured.late[1].max(1)), 2));
            rows.push(row);
            if loss == 0.0
                && let Figure::Known(median) = lived[0].at(0.5)
            {
                let name = format!("{}, RTT {} ms", subject.name(), float(rtt_us) / 1000.0);
                medians.push((name, quantile(&dreamt[0], 0.5), median));
            }
        }
    }
    let mut columns: Vec<String> =
        ["RTT (ms)", "loss (%)", "subject", "live connections", "failed"]
            .map(str::to_owned)
            .to_vec();
    for what in ["handshake", "echo"] {
        for figure in ["p50", "p95", "mean"] {
            columns.push(format!("{what} {figure}, virtual (ms)"));
            columns.push(format!("{what} {figure}, live (ms)"));
        }
    }
    columns.extend(["link's error (µs)", "packets late (%)"].map(str::to_owned));
    run.table(Table {
        name: "quic-virtual-and-live".to_owned(),
        title: "QUIC in virtual time and over the emulated link".to_owned(),
        columns,
        rows,
        note: "Live: outlast serve-echo in one network namespace, a quinn client in the other, a port of its own for each connection. Virtual: s2n-quic at both ends, no time for processors. Losses are drawn differently, so that tails of few connections differ by chance. Live figures are of all connections that were begun: one that failed counts as infinitely late, and there is no mean then. A quantile needs three connections beyond it, and the mean as many as the 95th percentile; with fewer the cell says so.".to_owned(),
    });
    run.chart(Chart {
        name: "quic-virtual-and-live".to_owned(),
        title: "Median QUIC handshake without loss: virtual time and the real endpoint".to_owned(),
        x: Axis::linear("key exchange, chain and link"),
        y: Axis::linear("handshake (ms)"),
        marks: Marks::Bars {
            categories: medians.iter().map(|(name, ..)| name.clone()).collect(),
            parts: vec![
                ("virtual".to_owned(), medians.iter().map(|(_, dreamt, _)| *dreamt).collect()),
                ("live".to_owned(), medians.iter().map(|(.., lived)| *lived).collect()),
            ],
            grouped: true,
        },
        rules: Vec::new(),
        caption: "Virtual time has no time for processors; live connections have, and wait for the scheduler. Which of them the difference is made of was not measured. Connections that failed count as infinitely late.".to_owned(),
    });
    Ok(())
}

/// Connections beyond a quantile that it needs on its shorter side.
const BEYOND: f64 = 3.0;

/// Live times in milliseconds, sorted, with failed connections as infinitely late: without them a link would look better
/// the more connections it loses.
struct Lived(Vec<f64>);

/// A live figure, or why there is none.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Figure {
    Known(f64),
    /// It is among the connections that failed, or next to them.
    Failed,
    /// That many connections are too few for it.
    TooFew(usize),
}

impl Figure {
    fn of(value: f64) -> Self {
        if value.is_finite() { Self::Known(value) } else { Self::Failed }
    }

    fn cell(self) -> Value {
        match self {
            Self::Known(value) => rounded(value, 2),
            Self::Failed => "failed".into(),
            Self::TooFew(count) => format!("too few ({count})").into(),
        }
    }
}

impl Lived {
    /// The handshakes (0), or the whole connections (1).
    fn new(done: &Done, which: usize) -> Self {
        let times = done.times.iter().filter_map(|times| times.get(which));
        let failed = (0..done.failed).map(|_| f64::INFINITY);
        Self(sorted(times.map(|time| float(*time) / 1e6).chain(failed)))
    }

    /// Whether there are enough connections for a quantile.
    fn are_enough(&self, share: f64) -> bool {
        // Shares such as 0.95 are not exact.
        float(self.0.len() as u64) * share.min(1.0 - share) >= BEYOND - 1e-6
    }

    /// A quantile. It is interpolated, so that both of its neighbours must have succeeded.
    fn at(&self, share: f64) -> Figure {
        match self.are_enough(share) {
            true => Figure::of(quantile(&self.0, share)),
            false => Figure::TooFew(self.0.len()),
        }
    }

    /// The mean, which depends on the tail as much as the 95th percentile does.
    fn mean(&self) -> Figure {
        match self.are_enough(0.95) {
            true => Figure::of(mean(&self.0)),
            false => Figure::TooFew(self.0.len()),
        }
    }
}

fn measure(
    settings: &Settings,
    link: &Link,
    subjects: &[Subject],
    count: u32,
    stop: &AtomicBool,
    progress: &dyn Progress,
) -> Result<Measured, LabError> {
    let folder = crate::temporary::folder()?;
    let live = site::live(settings, link, settings.seed, stop, Some(progress))?;
    let address = live.server_address(PORT);
    let mut done = Vec::new();
    for subject in subjects {
        let command = endpoint(
            &Programs::beside(&settings.executable).service,
            folder.path(),
            subject,
            address,
        )?;
        let mut command = live.at(Side::Server, &command);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let failed =
            |reason: String| LabError::Peer { peer: "outlast serve-echo".to_owned(), reason };
        let mut server = Server(command.spawn().map_err(|error| failed(error.to_string()))?);
        let begun = Instant::now();
        while !live.within(Side::Server, || listens(PORT))? {
            if let Ok(Some(status)) = server.0.try_wait() {
                return Err(failed(format!("it ended at once: {status}")));
            }
            if begun.elapsed() > START {
                return Err(failed(format!("it does not listen at {address}")));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // The same numbers, and so the same losses, for each subject.
        live.number_from(0)?;
        let client = Client::new(subject)?;
        done.push(live.within(Side::Client, || client.connect(address, count, true, stop))??);
    }
    let proof = live.proof()?;
    let on_time =
        proof.late_edges_us.iter().zip(&proof.late_counts).filter(|(edge, _)| **edge <= 50.0);
    let all: u64 = proof.late_counts.iter().sum();
    let on_time: u64 = on_time.map(|(_, count)| *count).sum();
    Ok(Measured { done, calibrated_us: proof.calibrated_us, late: [all - on_time, all] })
}

/// Stopped when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lived(succeeded: u64, failed: u32) -> Lived {
        let times = (1..=succeeded).map(|time| [time * 1_000_000, time * 2_000_000]).collect();
        Lived::new(&Done { times, failed, ..Done::default() }, 0)
    }

    #[test]
    fn failed_connections_are_infinitely_late() {
        assert_eq!(lived(101, 0).at(0.5), Figure::Known(51.0));
        assert_eq!(lived(101, 0).mean(), Figure::Known(51.0));
        // The survivors are the same, and the median is later.
        assert_eq!(lived(101, 20).at(0.5), Figure::Known(61.0));
        assert_eq!(lived(101, 20).at(0.95), Figure::Failed);
        assert_eq!(lived(101, 20).mean(), Figure::Failed);
        assert_eq!(lived(101, 102).at(0.5), Figure::Failed);
        assert_eq!(lived(101, 102).at(0.5).cell(), Value::from("failed"));
    }

    #[test]
    fn too_few_connections_say_so() {
        assert_eq!(lived(6, 0).at(0.5), Figure::Known(3.5));
        assert_eq!(lived(6, 0).at(0.95), Figure::TooFew(6));
        assert_eq!(lived(16, 0).mean(), Figure::TooFew(16));
        assert_eq!(lived(16, 0).mean().cell(), Value::from("too few (16)"));
        assert_eq!(lived(5, 0).at(0.5), Figure::TooFew(5));
        assert!(matches!(lived(60, 0).at(0.95), Figure::Known(_)));
        // Failed ones count.
        assert_eq!(lived(4, 2).at(0.5), Figure::Known(3.5));
    }
}

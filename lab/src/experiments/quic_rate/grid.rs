//! Links in virtual time: round-trip time, loss, and the time of a handshake and an echo.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_lc_rs::digest;

use super::{CLASSICAL, ECDSA, HYBRID, float, rounded, subjects};
use crate::error::LabError;
use crate::link::Link;
use crate::quic::{QuicOutcome, Ready, VirtualRun};
use crate::result::{Axis, Chart, ClaimKind, Fan, Finding, Marks, Table, Value, Verdict};
use crate::run::Run;
use crate::statistics::{bootstrap, mean, quantile, sorted};
use crate::subject::{Kind, Subject};

const RTTS_US: [u64; 4] = [1000, 5500, 30_000, 100_000];
/// Link at which kinds of handshakes are compared.
const KINDS_RTT_US: u64 = 30_000;
const SHARES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];
/// Without loss all connections are the same.
const WITHOUT_LOSS: u32 = 2;
/// CPU time of a connection in virtual time.
const A_CONNECTION: Duration = Duration::from_micros(1800);

fn losses(quick: bool) -> &'static [f64] {
    if quick {
        &[0.0, 0.01, 0.02, 0.05, 0.1]
    } else {
        &[0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1]
    }
}

fn count(quick: bool, loss: f64) -> u32 {
    match (loss == 0.0, quick) {
        (true, _) => WITHOUT_LOSS,
        (false, true) => 120,
        (false, false) => 6000,
    }
}

fn point_estimate(quick: bool, loss: f64) -> Duration {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    A_CONNECTION * count(quick, loss) / u32::try_from(cores).unwrap_or(1)
}

pub(super) fn estimate(quick: bool) -> Duration {
    let one: Duration = losses(quick).iter().map(|loss| point_estimate(quick, *loss)).sum();
    // Four subjects at each round-trip time, and three kinds at one.
    one * (4 * 4 + 3)
}

/// A point of the grid.
struct Point {
    rtt_us: u64,
    loss: f64,
    subject: Subject,
    run: VirtualRun,
}

impl Point {
    fn times(&self, of: fn(&QuicOutcome) -> u64) -> Vec<f64> {
        sorted(self.run.outcomes.iter().map(|outcome| float(of(outcome)) / 1e6))
    }
}

pub(super) fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    let subjects = subjects()?;
    let mut points = Vec::new();
    for rtt_us in RTTS_US {
        measure(run, rtt_us, &subjects, &mut points)?;
    }
    let kinds = [Kind::HelloRetry, Kind::Resumed, Kind::Mutual];
    let hybrid = Subject::new(HYBRID, ECDSA, 2)?;
    let kinds: Vec<Subject> = kinds.into_iter().map(|kind| hybrid.kind(kind)).collect();
    measure(run, KINDS_RTT_US, &kinds, &mut points)?;
    table(run, &points, &subjects);
    fans(run, &points, &subjects);
    hello(run, &points);
    let runs = points.iter().map(|point| point.run.outcomes.len()).sum::<usize>();
    run.summary(format!(
        "{runs} QUIC connections ran in virtual time, real s2n-quic and rustls; SHA-256 of all their traces: {}.",
        hashed(&points)
    ));
    Ok(())
}

/// The hash of the points' hashes: the same for the same seed, version and counts.
fn hashed(points: &[Point]) -> String {
    let mut hash = digest::Context::new(&digest::SHA256);
    for point in points {
        hash.update(point.run.trace_hash.as_bytes());
    }
    hex::encode(hash.finish()).chars().take(16).collect()
}

fn measure(
    run: &mut Run<'_>,
    rtt_us: u64,
    subjects: &[Subject],
    points: &mut Vec<Point>,
) -> Result<(), LabError> {
    for subject in subjects {
        // Keys and certificates are made only if a point is to be measured.
        let mut ready: Option<Ready> = None;
        for loss in losses(run.quick()) {
            let link = Link::new(Duration::from_micros(rtt_us), *loss);
            let count = count(run.quick(), *loss);
            let key = format!(
                "virtual, RTT {rtt_us} us, loss {loss}, {count} connections, {}",
                subject.name()
            );
            let (seed, stop) = (run.seed(), run.stop_flag());
            let done = run.point(&key, point_estimate(run.quick(), *loss), || {
                let ready = match &ready {
                    Some(ready) => ready,
                    None => ready.insert(Ready::new(subject)?),
                };
                ready.run_until(&link, seed, 0, count, stop)
            })?;
            points.push(Point { rtt_us, loss: *loss, subject: *subject, run: done });
        }
    }
    Ok(())
}

fn table(run: &mut Run<'_>, points: &[Point], subjects: &[Subject]) {
    let columns = [
        "RTT (ms)",
        "loss (%)",
        "subject",
        "connections",
        "failed",
        "handshake p50 (ms)",
        "handshake p75 (ms)",
        "handshake p95 (ms)",
        "handshake p99 (ms)",
        "handshake mean (ms)",
        "difference of means to classical (ms)",
        "low (ms)",
        "high (ms)",
        "echo p50 (ms)",
        "echo p95 (ms)",
        "with a lost datagram (%)",
        "datagrams of the client",
        "datagrams of the server",
        "bytes of the client",
        "bytes of the server",
    ];
    let classical = |point: &Point| {
        points.iter().find(|other| {
            (other.rtt_us, other.loss.to_bits()) == (point.rtt_us, point.loss.to_bits())
                && subjects.first().is_some_and(|first| other.subject.name() == first.name())
        })
    };
    let rows = points
        .iter()
        .map(|point| {
            let handshakes = point.times(|outcome| outcome.handshake_ns);
            let echoes = point.times(|outcome| outcome.echo_ns);
            let average = |of: &dyn Fn(&QuicOutcome) -> u32| {
                let all: Vec<f64> =
                    point.run.outcomes.iter().map(|outcome| f64::from(of(outcome))).collect();
                rounded(mean(&all), 1)
            };
            let lossy = point.run.outcomes.iter().filter(|outcome| outcome.lost != [0; 2]).count();
            let share = float(lossy as u64) / float(point.run.outcomes.len().max(1) as u64);
            let mut row: Vec<Value> = vec![
                (float(point.rtt_us) / 1000.0).into(),
                rounded(point.loss * 100.0, 2),
                point.subject.name().into(),
                float(point.run.outcomes.len() as u64).into(),
                f64::from(point.run.failed).into(),
            ];
            row.extend(
                [0.5, 0.75, 0.95, 0.99].map(|share| rounded(quantile(&handshakes, share), 3)),
            );
            row.push(rounded(mean(&handshakes), 3));
            row.extend(match classical(point) {
                Some(base) => paired(base, point, run.seed()),
                None => ["-", "-", "-"].map(Value::from),
            });
            row.extend([0.5, 0.95].map(|share| rounded(quantile(&echoes, share), 3)));
            row.push(rounded(100.0 * share, 2));
            row.extend([
                average(&|outcome| outcome.datagrams[0]),
                average(&|outcome| outcome.datagrams[1]),
                average(&|outcome| outcome.bytes[0]),
                average(&|outcome| outcome.bytes[1]),
            ]);
            row
        })
        .collect();
    run.table(Table {
        name: "quic-virtual-grid".to_owned(),
        title: "QUIC in virtual time: round-trip time, loss, key exchange and chain".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        note: "Chains of two certificates. Times begin when the client begins; the handshake is over when the client may send data, the echo when its byte is back. Loss is independent in each direction and the same for the same flow and number of a datagram, so that differences are of pairs; their intervals are of 95 % by bootstrap. Datagrams and bytes (UDP's content) are those up to the echo, lost ones included. A connection that did not come about within two minutes of virtual time is counted as failed and is in no other figure, nor is its pair in the differences: where there are such, times and differences are too low.".to_owned(),
    });
}

/// The mean of the differences, paired by flow, with its interval; leaves out flows that failed with either.
fn paired(base: &Point, point: &Point, seed: u64) -> [Value; 3] {
    let flows = base.run.pairs(&point.run);
    let differences: Vec<f64> = flows
        .into_iter()
        .map(|(base, other)| (float(other.handshake_ns) - float(base.handshake_ns)) / 1e6)
        .collect();
    let estimate = bootstrap(&differences, seed, mean);
    [estimate.value, estimate.low, estimate.high].map(|value| rounded(value, 3))
}

fn fans(run: &mut Run<'_>, points: &[Point], subjects: &[Subject]) {
    let losses = losses(run.quick());
    for (name, what, of) in [
        (
            "quic-handshake-fans",
            "handshake",
            (|outcome| outcome.handshake_ns) as fn(&QuicOutcome) -> u64,
        ),
        ("quic-echo-fans", "handshake and echo", |outcome| outcome.echo_ns),
    ] {
        let panels = RTTS_US
            .iter()
            .map(|rtt_us| {
                let values = |subject: &Subject| -> Vec<Vec<f64>> {
                    points
                        .iter()
                        .filter(|point| {
                            point.rtt_us == *rtt_us && point.subject.name() == subject.name()
                        })
                        .map(|point| {
                            let times = point.times(of);
                            SHARES.map(|share| quantile(&times, share)).to_vec()
                        })
                        .collect()
                };
                Fan {
                    title: format!("RTT {} ms", float(*rtt_us) / 1000.0),
                    names: subjects.iter().map(Subject::name).collect(),
                    x: losses.iter().map(|loss| loss * 100.0).collect(),
                    shares: SHARES.to_vec(),
                    values: subjects.iter().map(values).collect(),
                }
            })
            .collect();
        run.chart(Chart {
            name: name.to_owned(),
            title: format!("QUIC {what} against loss, in virtual time"),
            x: Axis::linear("loss in each direction (%)"),
            y: Axis::log(format!("{what} (ms)")),
            marks: Marks::Fans { panels },
            rules: Vec::new(),
            caption: "Quantiles at 5, 25, 50, 75 and 95 %; the median is the line. What jumps to about a second has lost everything that was under way before a round-trip time was known: the timer is then 999 ms (RFC 9002, section 6.2.2).".to_owned(),
        });
    }
}

/// The loss of a ClientHello: one datagram against two.
fn hello(run: &mut Run<'_>, points: &[Point]) {
    const TIMEOUT_NS: u64 = 999_000_000;
    let mut shares: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for point in points {
        let subject = &point.subject;
        if point.loss == 0.0 || subject.authentication.name != ECDSA || subject.kind != Kind::Full {
            continue;
        }
        let late = point.run.outcomes.iter().filter(|outcome| outcome.handshake_ns >= TIMEOUT_NS);
        let share = shares.entry(subject.key_exchange.name).or_default();
        share.0 += late.count();
        share.1 += point.run.outcomes.len();
    }
    let count = |name: &str| shares.get(name).copied().unwrap_or_default();
    let percent = |name: &str| {
        let (late, all) = count(name);
        100.0 * float(late as u64) / float(all.max(1) as u64)
    };
    let (classical, hybrid) = (percent(CLASSICAL), percent(HYBRID));
    run.finding(Finding {
        kind: ClaimKind::Standard,
        source: "RFC 9002, sections 6.1 and 6.2.2".to_owned(),
        claim: "Before a round trip is known, a loss costs a timer of three times 333 ms; later packets that are acknowledged show it at once".to_owned(),
        published: "999 ms for a handshake that loses everything that is under way".to_owned(),
        measured: format!(
            "over all lossy points with ECDSA, {classical:.1} % of the classical handshakes waited for that timer and {hybrid:.1} % of the hybrid ones"
        ),
        verdict: judge(count(CLASSICAL), count(HYBRID)),
        why: "The classical ClientHello fills one datagram, and so does the server's answer to it: if one is lost nothing tells, until the timer fires. The hybrid one needs two, and if one of them is lost the other's acknowledgement tells after a round trip. More datagrams mean more losses, but cheaper ones. It holds if fewer of the hybrid handshakes waited, by more than chance (95 %).".to_owned(),
    });
    run.summary(format!(
        "On links with loss, {classical:.1} % of the classical QUIC handshakes waited a second or longer and {hybrid:.1} % of the hybrid ones, whose ClientHello has a second datagram{} (all lossy points, ECDSA).",
        match judge(count(CLASSICAL), count(HYBRID)) {
            Verdict::Holds => " that tells of the first's loss",
            Verdict::Differs => "",
            _ => "; the two cannot be told apart",
        }
    ));
}

/// Late handshakes and all, classical and hybrid: whether fewer of the hybrid's are late, by the normal interval of
/// the difference of two shares.
fn judge(classical: (usize, usize), hybrid: (usize, usize)) -> Verdict {
    let share = |(late, all): (usize, usize)| float(late as u64) / float(all.max(1) as u64);
    let error = |counts: (usize, usize)| {
        let share = share(counts);
        share * (1.0 - share) / float(counts.1.max(1) as u64)
    };
    let less = share(classical) - share(hybrid);
    let half = 1.96 * (error(classical) + error(hybrid)).sqrt();
    if less > half {
        Verdict::Holds
    } else if less < -half {
        Verdict::Differs
    } else {
        Verdict::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finding_reaches_each_verdict() {
        assert_eq!(judge((55, 1000), (23, 1000)), Verdict::Holds);
        assert_eq!(judge((23, 1000), (55, 1000)), Verdict::Differs);
        assert_eq!(judge((5, 100), (3, 100)), Verdict::Undecided);
        assert_eq!(judge((0, 0), (0, 0)), Verdict::Undecided);
    }
}

//! Findings of `requests`.

use super::{COUNTS, Measured, Way, resumption, share};
use crate::client::turns::{Cycle, Slot};
use crate::effect;
use crate::experiments::served::{
    CLASSICAL, HYBRID, ML_DSA, Who, X25519, added_us, change, distribution, warning,
};
use crate::published::{KMS_CLASSICAL, KMS_HYBRID, KMS_REUSE_CLASSICAL, KMS_REUSE_HYBRID};
use crate::result::{
    Axis, Chart, ClaimKind, Control, Finding, Marks, Rule, Series, Table, Value, Verdict,
};
use crate::run::Run;
use crate::statistics::{Estimate, mean, quantile, sorted};

const SOURCE: &str = KMS_CLASSICAL.source;
/// Requests a second: no reuse P-256, no reuse hybrid, reuse P-256, reuse hybrid.
const PUBLISHED: [f64; 4] =
    [KMS_CLASSICAL.value, KMS_HYBRID.value, KMS_REUSE_CLASSICAL.value, KMS_REUSE_HYBRID.value];
const ONCE: Cycle = Cycle::Requests(1);
/// Largest error of a formula that counts as agreement, as a share.
const CLOSE: f64 = 0.05;
/// Largest change of the rate on kept connections that does not matter, as a share: less than half of what was published
/// for new ones.
const NEGLIGIBLE: f64 = 0.01;

/// The published experiment.
pub(super) fn samples(run: &mut Run<'_>, place: &str, measured: &Measured) {
    let control = measured.control().control(format!(
        "{place}: new connection each, X25519MLKEM768 twice, requests a second (medians of {} samples)",
        measured.count()
    ));
    run.control(control.clone());
    let new = compare(measured, CLASSICAL, HYBRID, ONCE);
    let kept = compare(measured, CLASSICAL, HYBRID, Cycle::Kept);
    let (request, each) = (calm(measured, CLASSICAL, Cycle::Kept), calm(measured, CLASSICAL, ONCE));
    let theirs = 1.0 / PUBLISHED[0];
    let scaled = -new.added.value / (theirs + new.added.value) * 100.0;
    run.finding(Finding {
        kind: ClaimKind::Published,
        source: SOURCE.into(),
        claim: "Without connection reuse hybrid key exchange costs 2.3 % of the requests a second".into(),
        published: format!("{} to {} a second, -2.3 %: 216 µs more for each connection", PUBLISHED[0], PUBLISHED[1]),
        measured: format!(
            "{place}: {:.0} to {:.0} a second undisturbed, {}: {} for each connection; samples with all stalls {:.1} to {:.1} on average",
            1.0 / each,
            1.0 / calm(measured, HYBRID, ONCE),
            change(&new.rate),
            added_us(&new.added),
            rate(measured, 0),
            rate(measured, 1),
        ),
        verdict: new.verdict(&control, 1.0 - PUBLISHED[1] / PUBLISHED[0], 0.01),
        why: format!(
            "A share depends on what it is a share of: theirs is of {:.1} ms for connection and request together, ours of {:.2} ms ({:.2} ms the request, {:.2} ms the connection), since our network, client and server are others. What we saw added to their {:.1} ms would be {scaled:+.1} %. The claim holds if the whole interval is within a point of the published change.",
            theirs * 1e3,
            each * 1e3,
            request * 1e3,
            (each - request) * 1e3,
            theirs * 1e3,
        ),
    });
    run.finding(Finding {
        kind: ClaimKind::Published,
        source: SOURCE.into(),
        claim: "With connection reuse hybrid key exchange costs nothing that matters".into(),
        published: format!("{} to {} a second, -0.05 %", PUBLISHED[2], PUBLISHED[3]),
        measured: format!(
            "{place}: {:.0} to {:.0} a second undisturbed, {} (kept connections have no control of their own); samples with all stalls {:.1} to {:.1} on average",
            1.0 / request,
            1.0 / calm(measured, HYBRID, Cycle::Kept),
            change(&kept.rate),
            rate(measured, 2),
            rate(measured, 3),
        ),
        verdict: negligible(&kept.rate),
        why: format!(
            "Once the handshake is done the connections are the same, with the same cipher; what differs should be noise. No kept connection was measured twice, and the control of new connections says nothing of kept ones, so that the interval alone decides: it holds here if all of it is within {:.0} % of no change, less than half of what was published for new connections.",
            NEGLIGIBLE * 100.0
        ),
    });
    run.summary(format!(
        "{place}: requests a second with hybrid key exchange against classical: {} for a client that connects for each ({} for each connection), {} for one that keeps its connection.{}",
        new.told(&control),
        new.told_us(&control),
        kept_words(&kept.rate),
        warning(&control),
    ));
    sample_table(run, place, measured);
}

/// Seconds per undisturbed request.
fn calm(measured: &Measured, who: Who, cycle: Cycle) -> f64 {
    measured.time(measured.index(who, false, cycle), share(&[Some(who)])).value
}

/// Requests a second, averaged over the samples.
fn rate(measured: &Measured, index: usize) -> f64 {
    mean(&measured.slots(index).map(|slot| 1.0 / slot.seconds()).collect::<Vec<_>>())
}

fn compare(measured: &Measured, first: Who, second: Who, cycle: Cycle) -> super::Contrast {
    measured.compare(measured.index(first, false, cycle), measured.index(second, false, cycle))
}

/// Whether nothing that matters is lost or gained on kept connections. They have no control, so the interval decides.
fn negligible(rate: &Estimate) -> Verdict {
    effect::agrees(&effect::as_change(rate), 0.0, NEGLIGIBLE, None)
}

/// The change on kept connections in words, by the rule of the verdict.
fn kept_words(rate: &Estimate) -> String {
    let change = change(rate);
    match negligible(rate) {
        Verdict::Holds => format!("nothing that matters ({change})"),
        Verdict::Differs => change,
        _ => format!("not decided ({change})"),
    }
}

fn sample_table(run: &mut Run<'_>, place: &str, measured: &Measured) {
    let mut rows = Vec::new();
    let mut series = Vec::new();
    for (index, way) in measured.ways.iter().enumerate() {
        let rates = sorted(measured.slots(index).map(|slot| 1.0 / slot.seconds()));
        let centre = mean(&rates);
        let squares: Vec<f64> = rates.iter().map(|rate| (rate - centre).powi(2)).collect();
        let again = index + 1 == measured.ways.len();
        #[expect(clippy::cast_precision_loss, reason = "a count of samples")]
        let count = rates.len() as f64;
        let name = if again { format!("{} (again)", way.name()) } else { way.name() };
        let published = PUBLISHED.get(index);
        rows.push(vec![
            Value::from(name.clone()),
            count.into(),
            published.map_or(Value::from(""), |rate| (*rate).into()),
            centre.into(),
            mean(&squares).sqrt().into(),
            quantile(&rates, 0.05).into(),
            quantile(&rates, 0.25).into(),
            quantile(&rates, 0.5).into(),
            quantile(&rates, 0.75).into(),
            quantile(&rates, 0.95).into(),
        ]);
        series.push(distribution(name, rates));
    }
    let slot = measured.slot.as_secs_f64();
    let columns = [
        "way",
        "samples",
        "published (1/s)",
        "mean (1/s)",
        "standard deviation (1/s)",
        "p5 (1/s)",
        "p25 (1/s)",
        "median (1/s)",
        "p75 (1/s)",
        "p95 (1/s)",
    ];
    run.table(Table {
        name: "requests-samples".into(),
        title: format!("Requests a second, samples of {slot} s, {place}"),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        note: "One thread, GenerateDataKey with an audit event each; the ways take turns in random order. Here a sample is all that was done in its time over that time, stalls of the machine included, as in the publication; where ways are compared, a sample is the 10th percentile of its requests with their connections (the median where ML-DSA takes part, whose signing varies by itself), which stalls do not move.".into(),
    });
    run.chart(Chart {
        name: "requests-samples".into(),
        title: format!("Requests a second with and without reuse of connections, {place}"),
        x: Axis::linear("requests a second in a sample"),
        y: Axis::linear("share of samples"),
        marks: Marks::Steps { series },
        rules: Vec::new(),
        caption: format!("Distribution of samples of {slot} s. The control is the same as the hybrid way without reuse, measured a second time as if it were another."),
    });
}

/// Reuse, resumption, percentiles, and the formula.
pub(super) fn sweeps(run: &mut Run<'_>, sweeps: &[(String, Measured)], samples: &Measured) {
    for (place, measured) in sweeps {
        run.control(control(place, measured));
        reuse_chart(run, place, measured);
        loss_chart(run, place, measured);
    }
    latency_table(run, sweeps);
    formula_table(run, sweeps);
    if let Some((place, measured)) = sweeps.first() {
        latency_chart(run, place, measured);
        formula_finding(run, place, measured);
        let control = control(place, measured);
        resumption::tell(run, place, measured, ONCE, &control);
        let ml_dsa = compare(measured, HYBRID, ML_DSA, ONCE);
        let group = measured
            .compare(measured.index(X25519, false, ONCE), measured.index(HYBRID, false, ONCE));
        run.summary(format!(
            "{place}: an ML-DSA-65 certificate adds {} to a connection that is hybrid already; hybrid adds {} against X25519 instead of P-256.",
            ml_dsa.told_us(&control),
            group.told_us(&control),
        ));
        bytes(run, measured);
    }
    if samples.count() < 500 {
        run.note(format!(
            "Quick: {} samples of {} s instead of 500 of 1 s.",
            samples.count(),
            samples.slot.as_secs_f64()
        ));
    }
    run.note("The server is one process on the same machine, and client and server share its cores; what CPU time they spend adds up, since one waits for the other. Its data with the audit trail is in memory where there is /dev/shm: a disk's syncs take longer than a handshake, and vary more.");
}

fn control(place: &str, measured: &Measured) -> Control {
    measured.control().control(format!(
        "{place}: sweep, new connection each, X25519MLKEM768 twice, requests a second"
    ))
}

fn name_of(place: &str) -> String {
    place
        .chars()
        .map(
            |letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' },
        )
        .collect()
}

/// Seconds per request by the two-term formula.
fn predicted(measured: &Measured, who: Who, count: u32, share: f64) -> f64 {
    let request = measured.time(measured.index(who, false, Cycle::Kept), share).value;
    let handshake = measured.time(measured.index(who, false, Cycle::Handshake), share).value;
    request + handshake / f64::from(count)
}

fn reuse_chart(run: &mut Run<'_>, place: &str, measured: &Measured) {
    let mut series = Vec::new();
    for who in [CLASSICAL, HYBRID, ML_DSA] {
        let medians = COUNTS.map(|count| {
            (count, measured.time(measured.index(who, false, Cycle::Requests(count)), 0.5))
        });
        series.push(Series {
            name: who.name.into(),
            points: medians.iter().map(|(n, e)| [f64::from(*n), 1.0 / e.value]).collect(),
            band: medians.iter().map(|(_, e)| [1.0 / e.high, 1.0 / e.low]).collect(),
        });
        series.push(Series {
            name: format!("{}, predicted", who.name),
            points: COUNTS.map(|n| [f64::from(n), 1.0 / predicted(measured, who, n, 0.5)]).to_vec(),
            band: Vec::new(),
        });
    }
    let kept = measured.time(measured.index(CLASSICAL, false, Cycle::Kept), 0.5).value;
    run.chart(Chart {
        name: format!("requests-reuse-{}", name_of(place)),
        title: format!("Requests a second against requests of a connection, {place}"),
        x: Axis::log("requests of a connection"),
        y: Axis::linear("requests a second"),
        marks: Marks::Lines { series },
        rules: vec![Rule { label: "P-256 on a kept connection".into(), at: 1.0 / kept }],
        caption: "Median request with a 95 % interval of the samples' median. Predicted: 1 / (time of a request + time of a connection / requests of a connection), both terms measured apart.".into(),
    });
}

fn loss_chart(run: &mut Run<'_>, place: &str, measured: &Measured) {
    let per_cent = |value: f64| (value - 1.0) * 100.0;
    let mut series = Vec::new();
    for who in [HYBRID, ML_DSA] {
        let share = share(&[Some(who)]);
        let rates = COUNTS
            .map(|count| (count, compare(measured, CLASSICAL, who, Cycle::Requests(count)).rate));
        series.push(Series {
            name: who.name.into(),
            points: rates.iter().map(|(n, rate)| [f64::from(*n), per_cent(rate.value)]).collect(),
            band: rates.iter().map(|(_, rate)| [per_cent(rate.low), per_cent(rate.high)]).collect(),
        });
        series.push(Series {
            name: format!("{}, predicted", who.name),
            points: COUNTS
                .map(|n| {
                    let rate = predicted(measured, CLASSICAL, n, share)
                        / predicted(measured, who, n, share);
                    [f64::from(n), per_cent(rate)]
                })
                .to_vec(),
            band: Vec::new(),
        });
    }
    run.chart(Chart {
        name: format!("requests-cost-{}", name_of(place)),
        title: format!("Change of requests a second against requests of a connection, {place}"),
        x: Axis::log("requests of a connection"),
        y: Axis::linear("change of requests a second against P-256 (%)"),
        marks: Marks::Lines { series },
        rules: vec![Rule { label: "no change".into(), at: 0.0 }],
        caption: "Ratio of medians with a 95 % interval by a bootstrap over processes and rounds."
            .into(),
    });
}

const SHARES: [f64; 5] = [0.5, 0.75, 0.9, 0.95, 0.99];

fn latency_table(run: &mut Run<'_>, sweeps: &[(String, Measured)]) {
    let mut rows = Vec::new();
    for (place, measured) in sweeps {
        for (index, way) in measured.ways.iter().enumerate() {
            if index + 1 == measured.ways.len() {
                continue;
            }
            let times = sorted(measured.slots(index).flat_map(Slot::milliseconds));
            let mut row = vec![Value::from(place.clone()), way.name().into()];
            row.extend(SHARES.map(|share| Value::from(quantile(&times, share))));
            row.push(mean(&times).into());
            #[expect(clippy::cast_precision_loss, reason = "a count of requests")]
            row.push((times.len() as f64).into());
            rows.push(row);
        }
    }
    let columns = [
        "place",
        "way",
        "p50 (ms)",
        "p75 (ms)",
        "p90 (ms)",
        "p95 (ms)",
        "p99 (ms)",
        "mean (ms)",
        "requests",
    ];
    run.table(Table {
        name: "requests-latency".into(),
        title: "Time of a request by percentile".into(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        note: "The request that opens a connection has the time of the connection in it. Where nothing is asked, the time of a connection.".into(),
    });
}

fn latency_chart(run: &mut Run<'_>, place: &str, measured: &Measured) {
    let ways = [
        Way { who: CLASSICAL, resumed: false, cycle: ONCE },
        Way { who: HYBRID, resumed: false, cycle: ONCE },
        Way { who: ML_DSA, resumed: false, cycle: ONCE },
        Way { who: CLASSICAL, resumed: true, cycle: ONCE },
        Way { who: HYBRID, resumed: true, cycle: ONCE },
        Way { who: CLASSICAL, resumed: false, cycle: Cycle::Kept },
        Way { who: HYBRID, resumed: false, cycle: Cycle::Kept },
    ];
    let series = ways
        .iter()
        .map(|way| {
            let slots = measured.slots(measured.index(way.who, way.resumed, way.cycle));
            distribution(way.name(), slots.flat_map(Slot::milliseconds))
        })
        .collect();
    run.chart(Chart {
        name: "requests-latency".into(),
        title: format!("Time of a request with and without a new connection, {place}"),
        x: Axis::log("time of a request (ms)"),
        y: Axis::linear("share of requests"),
        marks: Marks::Steps { series },
        rules: Vec::new(),
        caption: "Each line is the distribution of all requests of one way of calling; the time of the connection is in it where there is a new one.".into(),
    });
}

/// A prediction and the measured value.
struct Predicted {
    who: Who,
    count: u32,
    /// Measured seconds per request.
    actual: Estimate,
    /// Prediction from a request and a connection that were measured separately.
    apart: f64,
    /// Prediction from a request on a kept connection and one with a new connection, as the published rates are read.
    read: f64,
}

impl Predicted {
    fn all(measured: &Measured) -> Vec<Self> {
        let each = |who, count| {
            let time = |cycle| calm(measured, who, cycle);
            let kept = time(Cycle::Kept);
            Self {
                who,
                count,
                actual: measured
                    .time(measured.index(who, false, Cycle::Requests(count)), share(&[Some(who)])),
                apart: predicted(measured, who, count, share(&[Some(who)])),
                read: kept + (time(ONCE) - kept) / f64::from(count),
            }
        };
        [CLASSICAL, HYBRID, ML_DSA]
            .into_iter()
            .flat_map(|who| COUNTS.map(|count| each(who, count)))
            .collect()
    }

    /// Error of a formula as a share, with the interval of what was measured.
    fn off(&self, formula: f64) -> Estimate {
        let Estimate { value, low, high } = self.actual;
        Estimate {
            value: formula / value - 1.0,
            low: formula / high - 1.0,
            high: formula / low - 1.0,
        }
    }
}

/// Whether a formula agrees, by its errors: all of their intervals are within [`CLOSE`], or one of them is beyond.
fn agreement(errors: &[Estimate]) -> Verdict {
    let verdicts: Vec<Verdict> =
        errors.iter().map(|error| effect::agrees(error, 0.0, CLOSE, None)).collect();
    if verdicts.contains(&Verdict::Differs) {
        Verdict::Differs
    } else if !verdicts.is_empty() && verdicts.iter().all(|one| *one == Verdict::Holds) {
        Verdict::Holds
    } else {
        Verdict::Undecided
    }
}

/// The verdict from that on both readings of the formula: it holds in part where only the connection's time read from the
/// rates agrees.
fn combined(apart: Verdict, read: Verdict) -> Verdict {
    match (apart, read) {
        (Verdict::Holds, _) => Verdict::Holds,
        (Verdict::Differs, Verdict::Holds) => Verdict::Partly,
        (Verdict::Differs, Verdict::Differs) => Verdict::Differs,
        _ => Verdict::Undecided,
    }
}

fn formula_table(run: &mut Run<'_>, sweeps: &[(String, Measured)]) {
    let mut rows = Vec::new();
    for (place, measured) in sweeps {
        for one in Predicted::all(measured) {
            rows.push(vec![
                Value::from(place.clone()),
                one.who.name.into(),
                f64::from(one.count).into(),
                (1.0 / one.actual.value).into(),
                (1.0 / one.apart).into(),
                (one.off(one.apart).value * 100.0).into(),
                (1.0 / one.read).into(),
                (one.off(one.read).value * 100.0).into(),
            ]);
        }
    }
    let columns = [
        "place",
        "key exchange and certificate",
        "requests of a connection",
        "measured (1/s)",
        "predicted (1/s)",
        "error of the time (%)",
        "predicted from reuse and none (1/s)",
        "error of the time from reuse and none (%)",
    ];
    run.table(Table {
        name: "requests-formula".into(),
        title: "The two-term formula beside the measurement".into(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        note: "Predicted from two times that were measured apart in the same rounds: of a request on a kept connection, and of a connection on which nothing is asked. From reuse and none: the connection's time is what a request with a new one takes longer, as the published rates are read, so that it is exact for one request.".into(),
    });
    parts_table(run, sweeps);
}

/// Milliseconds of a request with a new connection, by part.
fn parts(measured: &Measured, who: Who) -> [f64; 5] {
    let index = measured.index(who, false, ONCE);
    let each = |part: fn(&Slot) -> u64| {
        let times = measured.slots(index).map(|slot| {
            #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a slot")]
            let nanos = part(slot) as f64;
            nanos / f64::from(slot.connections.max(1)) / 1e6
        });
        quantile(&sorted(times), 0.5)
    };
    let (tcp, tls) = (each(|slot| slot.tcp_ns), each(|slot| slot.tls_ns));
    let kept = measured.time(measured.index(who, false, Cycle::Kept), 0.5).value * 1e3;
    let all = measured.time(index, 0.5).value * 1e3;
    [tcp, tls, kept, all - tcp - tls - kept, all]
}

fn parts_table(run: &mut Run<'_>, sweeps: &[(String, Measured)]) {
    let mut rows = Vec::new();
    for (place, measured) in sweeps {
        for who in [CLASSICAL, HYBRID, ML_DSA] {
            let mut row = vec![Value::from(place.clone()), who.name.into()];
            row.extend(parts(measured, who).map(Value::from));
            rows.push(row);
        }
    }
    let columns = [
        "place",
        "key exchange and certificate",
        "TCP (ms)",
        "TLS, at the client (ms)",
        "a request on a kept connection (ms)",
        "the rest (ms)",
        "all (ms)",
    ];
    run.table(Table {
        name: "requests-parts".into(),
        title: "Where the time of a request with a new connection goes".into(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        note: "The client is done with TLS when its Finished has left; the rest is what the server still does then (Finished, tickets, a task for the connection), what a first request takes longer than others, and the end of the connection.".into(),
    });
}

fn formula_finding(run: &mut Run<'_>, place: &str, measured: &Measured) {
    let all = Predicted::all(measured);
    let worst = |formula: fn(&Predicted) -> f64| {
        all.iter()
            .map(|one| (one, one.off(formula(one)).value))
            .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
    };
    let (Some((first, apart)), Some((second, read))) =
        (worst(|one| one.apart), worst(|one| one.read))
    else {
        return;
    };
    let agrees = |formula: fn(&Predicted) -> f64| {
        agreement(&all.iter().map(|one| one.off(formula(one))).collect::<Vec<_>>())
    };
    let verdict = combined(agrees(|one| one.apart), agrees(|one| one.read));
    let rest = parts(measured, HYBRID)[3];
    run.finding(Finding {
        kind: ClaimKind::Own,
        source: SOURCE.into(),
        claim: "Read from the published rates: requests a second are 1 / (time of a request + time of a connection / requests of a connection)".into(),
        published: "the formula is the lab's reading of the four published rates: 4.6 ms for each of the two, and 0.216 ms more for a hybrid connection".into(),
        measured: format!(
            "{place}: of {} predictions the worst is {:+.1} % off with the connection measured apart ({}, {} requests a connection), and {:+.1} % off with it read from reuse and none ({}, {} requests a connection)",
            all.len(),
            apart * 100.0,
            first.who.name,
            first.count,
            read * 100.0,
            second.who.name,
            second.count,
        ),
        verdict,
        why: format!(
            "A new connection is more than its handshake as the client sees it: {rest:.2} ms go into what the server still does after the client's Finished, into the first request and into the end of the connection. Reading the connection's time from the rates has that in it. It holds here if the whole interval of each error (that of the measured time) is within 5 %, and in part if one is beyond and all of those are within that are read from the rates; an interval that is neither decides nothing."
        ),
    });
}

/// Bytes of the handshakes.
fn bytes(run: &mut Run<'_>, measured: &Measured) {
    let of = |who, resumed| {
        measured.slots(measured.index(who, resumed, ONCE)).next().map(|slot: &Slot| slot.bytes)
    };
    let rows: Vec<Vec<Value>> = [
        (CLASSICAL, false),
        (X25519, false),
        (HYBRID, false),
        (ML_DSA, false),
        (CLASSICAL, true),
        (HYBRID, true),
        (ML_DSA, true),
    ]
    .into_iter()
    .filter_map(|(who, resumed)| {
        let [sent, received] = of(who, resumed)?;
        #[expect(clippy::cast_precision_loss, reason = "bytes of a handshake")]
        let (sent, received) = (sent as f64, received as f64);
        Some(vec![
            Value::from(who.name),
            (if resumed { "resumed" } else { "full" }).into(),
            sent.into(),
            received.into(),
        ])
    })
    .collect();
    run.table(Table {
        name: "requests-bytes".into(),
        title: "Bytes of the handshakes, TLS records".into(),
        columns: ["key exchange and certificate", "handshake", "from the client (bytes)", "from the server (bytes)"]
            .map(str::to_owned)
            .to_vec(),
        rows,
        note: "As sent until the client has the server's Finished; ECDSA signatures vary by a few bytes.".into(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An interval that reaches a loss as large as the one published for new connections is not "nothing".
    #[test]
    fn kept_connections_are_judged_by_the_whole_interval() {
        let rows = [
            (0.997, 1.002, Verdict::Holds, "nothing that matters"),
            (0.981, 1.019, Verdict::Undecided, "not decided"),
            (0.975, 1.004, Verdict::Undecided, "not decided"),
            (0.970, 0.980, Verdict::Differs, "-2.5 %"),
        ];
        for (low, high, verdict, words) in rows {
            let rate = Estimate { value: f64::midpoint(low, high), low, high };
            assert_eq!(negligible(&rate), verdict, "{rate:?}");
            assert!(kept_words(&rate).starts_with(words), "{}", kept_words(&rate));
        }
    }

    /// An error's interval decides; one that is wider never makes the formula hold.
    #[test]
    fn the_formula_is_judged_by_intervals() {
        let error = |low: f64, high: f64| Estimate { value: f64::midpoint(low, high), low, high };
        let (good, bad, wide) = (error(-0.01, 0.02), error(-0.09, -0.06), error(-0.06, 0.01));
        assert_eq!(agreement(&[good, good]), Verdict::Holds);
        assert_eq!(agreement(&[good, wide]), Verdict::Undecided);
        assert_eq!(agreement(&[good, wide, bad]), Verdict::Differs);
        assert_eq!(agreement(&[]), Verdict::Undecided);
        let (holds, differs, open) = (Verdict::Holds, Verdict::Differs, Verdict::Undecided);
        for (apart, read, expected) in [
            (holds, differs, holds),
            (differs, holds, Verdict::Partly),
            (differs, differs, differs),
            (differs, open, open),
            (open, holds, open),
            (open, differs, open),
        ] {
            assert_eq!(combined(apart, read), expected);
        }
        let one = Predicted {
            who: HYBRID,
            count: 1,
            actual: Estimate { value: 0.01, low: 0.008, high: 0.0125 },
            apart: 0.01,
            read: 0.02,
        };
        let off = one.off(one.apart);
        assert!((off.value).abs() < 1e-12 && (off.low + 0.2).abs() < 1e-12, "{off:?}");
        assert!((off.high - 0.25).abs() < 1e-12, "{off:?}");
    }
}

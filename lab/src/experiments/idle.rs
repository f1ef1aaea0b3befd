//! `idle`: the cost of closing idle connections for a client with bursts of requests.

use std::time::Duration;

use crate::client::Work;
use crate::client::bursts::{Bursts, Idling, Served};
use crate::effect::{self, Effect};
use crate::error::LabError;
use crate::experiment::{Engine, Experiment};
use crate::experiments::served::{CLASSICAL, HYBRID, Who, distribution, seed, warning};
use crate::link::Link;
use crate::published::{
    IDLE_LONG_CONNECTIONS, IDLE_LONG_MEDIAN, IDLE_SHORT_CONNECTIONS, IDLE_SHORT_MEDIAN,
};
use crate::result::{Axis, Chart, ClaimKind, Control, Finding, Marks, Table, Value, Verdict};
use crate::run::{Run, Settings};
use crate::site::{Site, links, note_proof, place_name};
use crate::statistics::{Estimate, mean, quantile, quantile_of, sorted, two_level};

/// The experiment's row.
pub const EXPERIMENT: Experiment = Experiment {
    name: "idle",
    title: "Idle timeouts",
    question: "What does a client that comes in bursts pay for closing its idle connections, with and without hybrid key exchange?",
    source: SOURCE,
    engines: &[Engine::Server, Engine::Live],
    estimate,
    run,
};

const SOURCE: &str = "Jarvis, How to tune TLS for hybrid post-quantum cryptography with Kyber, AWS Security Blog, 2022: idle timeouts of 1 s and 10 s, 10 threads that burst every 5 s for a minute";
const CERTIFICATES: &[&str] = &["ecdsa-p256"];
const THREADS: usize = 10;
/// Seconds of the publication: period, short timeout, long timeout.
const PERIOD: u32 = 5;
const SHORT: u32 = 1;
const LONG: u32 = 10;
/// Bursts in a minute.
const BURSTS: u32 = 12;

/// How much faster the clock runs.
fn pace(quick: bool) -> u32 {
    if quick { 5 } else { 1 }
}

/// Number of minutes.
fn minutes(quick: bool) -> u32 {
    if quick { 3 } else { 10 }
}

fn minute(quick: bool) -> Duration {
    Duration::from_secs(60) / pace(quick)
}

fn scaled(seconds: u32, quick: bool) -> Duration {
    Duration::from_secs(seconds.into()) / pace(quick)
}

/// A request on a kept connection takes about 5 ms there, as in the publication.
fn link() -> Link {
    Link::new(Duration::from_millis(4), 0.0)
}

/// The clients with their timeouts; the last one is the control.
const POOLS: [(Who, u32); 5] =
    [(CLASSICAL, SHORT), (CLASSICAL, LONG), (HYBRID, SHORT), (HYBRID, LONG), CONTROL];
const CONTROL: (Who, u32) = (HYBRID, LONG);

fn estimate(settings: &Settings) -> Duration {
    let start = Duration::from_millis(500);
    (minute(settings.quick) + start) * minutes(settings.quick) + Duration::from_secs(2)
}

fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    let quick = run.quick();
    let link = links(
        run,
        &[link()],
        "Over a link of 4 ms a new connection costs two round trips before the request; here it costs the CPU time of ten handshakes at once on the same cores.",
    );
    let link = link.first().copied().flatten();
    let place = place_name(link.as_ref());
    let mut site = Site::new(run, link, CERTIFICATES);
    let micros = |seconds| u64::try_from(scaled(seconds, quick).as_micros()).unwrap_or(u64::MAX);
    let mut all: Vec<Vec<Served>> = Vec::new();
    for number in 0..minutes(quick) {
        let bursts = Bursts {
            pools: POOLS
                .iter()
                .map(|(who, timeout)| Idling {
                    caller: who.caller(false),
                    timeout_us: micros(*timeout),
                })
                .collect(),
            threads: THREADS,
            bursts: BURSTS,
            period_us: micros(PERIOD),
            seed: seed(run.seed(), u64::from(number)),
        };
        let key = format!(
            "{place}: {BURSTS} bursts every {} ms of {} pools, minute {} of {}",
            scaled(PERIOD, quick).as_millis(),
            POOLS.len(),
            number + 1,
            minutes(quick)
        );
        let cost = minute(quick) + Duration::from_millis(500);
        all.push(run.point(&key, cost, || site.call(Work::Bursts(bursts)))?);
    }
    if link.is_some() {
        let proof =
            run.point(&format!("{place}: the link's proof"), Duration::ZERO, || site.proof())?;
        note_proof(run, &place, proof.as_ref());
    }
    tell(run, &Measured { place, minutes: all, seed: run.seed() });
    if quick {
        run.note(format!(
            "Quick: the clock runs {} times as fast: bursts every {} s, timeouts of {} s and {} s.",
            pace(quick),
            scaled(PERIOD, quick).as_secs_f64(),
            scaled(SHORT, quick).as_secs_f64(),
            scaled(LONG, quick).as_secs_f64(),
        ));
    }
    Ok(())
}

struct Measured {
    place: String,
    /// Results by minute and pool.
    minutes: Vec<Vec<Served>>,
    seed: u64,
}

impl Measured {
    fn index(&self, who: Who, timeout: u32) -> usize {
        POOLS.iter().position(|pool| *pool == (who, timeout)).unwrap_or(usize::MAX)
    }

    fn served(&self, index: usize) -> impl Iterator<Item = &Served> {
        self.minutes.iter().filter_map(move |minute| minute.get(index))
    }

    /// All times in milliseconds, sorted.
    fn times(&self, index: usize) -> Vec<f64> {
        sorted(
            self.served(index)
                .flat_map(|served| served.bursts_us.iter().flatten())
                .map(|us| f64::from(*us) / 1e3),
        )
    }

    /// The medians of each burst of the first and of the second, paired.
    fn pairs(&self, first: usize, second: usize) -> Vec<Vec<[f64; 2]>> {
        let median = |burst: &Vec<u32>| {
            quantile_of(&burst.iter().map(|us| f64::from(*us) / 1e3).collect::<Vec<_>>(), 0.5)
        };
        self.served(first)
            .zip(self.served(second))
            .map(|(a, b)| {
                let bursts = a.bursts_us.iter().zip(&b.bursts_us);
                bursts.map(|(a, b)| [median(a), median(b)]).collect()
            })
            .collect()
    }

    /// Ratio of the second's median of median times to the first's.
    fn ratio(&self, first: usize, second: usize) -> Estimate {
        two_level(&self.pairs(first, second), self.seed, |bursts| {
            let column = |index: usize| -> Vec<f64> {
                bursts.iter().map(|[a, b]| if index == 0 { *a } else { *b }).collect()
            };
            quantile_of(&column(1), 0.5) / quantile_of(&column(0), 0.5)
        })
    }

    /// The same as a difference, in milliseconds.
    fn difference(&self, first: usize, second: usize) -> Estimate {
        two_level(&self.pairs(first, second), self.seed, |bursts| {
            let column = |index: usize| -> Vec<f64> {
                bursts.iter().map(|[a, b]| if index == 0 { *a } else { *b }).collect()
            };
            quantile_of(&column(1), 0.5) - quantile_of(&column(0), 0.5)
        })
    }

    fn median(&self, index: usize) -> f64 {
        quantile(&self.times(index), 0.5)
    }

    /// Connections that were opened in a minute.
    fn handshakes(&self, index: usize) -> f64 {
        mean(&self.served(index).map(|served| f64::from(served.handshakes)).collect::<Vec<_>>())
    }
}

fn name(who: Who, timeout: u32) -> String {
    format!("{}, {timeout} s", who.name)
}

fn tell(run: &mut Run<'_>, measured: &Measured) {
    let same = measured.ratio(measured.index(CONTROL.0, CONTROL.1), POOLS.len() - 1);
    let control = Control {
        what: format!(
            "{}: {} with a timeout of {} s, twice, median time of a burst",
            measured.place, CONTROL.0.name, CONTROL.1
        ),
        ratio: same.value,
        low: same.low,
        high: same.high,
    };
    run.control(control.clone());
    finding(run, measured, &control);
    let rows = POOLS
        .iter()
        .enumerate()
        .map(|(index, (who, timeout))| {
            let times = measured.times(index);
            let again = index + 1 == POOLS.len();
            let count = u32::try_from(times.len()).unwrap_or(u32::MAX);
            vec![
                Value::from(if again { format!("{} (again)", who.name) } else { who.name.into() }),
                f64::from(*timeout).into(),
                measured.handshakes(index).into(),
                quantile(&times, 0.5).into(),
                quantile(&times, 0.9).into(),
                quantile(&times, 0.99).into(),
                mean(&times).into(),
                f64::from(count).into(),
            ]
        })
        .collect();
    let columns = [
        "key exchange",
        "idle timeout (s)",
        "connections in a minute",
        "p50 (ms)",
        "p90 (ms)",
        "p99 (ms)",
        "mean (ms)",
        "requests",
    ];
    run.table(Table {
        name: "idle".into(),
        title: format!("Bursts of {THREADS} requests every {PERIOD} s, {}", measured.place),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        note: "Timeouts and minutes are the publication's; a quick run has them shorter, all by the same factor.".into(),
    });
    charts(run, measured);
}

fn charts(run: &mut Run<'_>, measured: &Measured) {
    let shown: Vec<(usize, (Who, u32))> =
        POOLS.iter().copied().enumerate().take(POOLS.len() - 1).collect();
    let categories: Vec<String> =
        shown.iter().map(|(_, (who, timeout))| name(*who, *timeout)).collect();
    let bars = |name: &str, value: &dyn Fn(usize) -> f64| Marks::Bars {
        categories: categories.clone(),
        parts: vec![(name.to_owned(), shown.iter().map(|(index, _)| value(*index)).collect())],
        grouped: true,
    };
    run.chart(Chart {
        name: "idle-connections".into(),
        title: format!("Connections in a minute by idle timeout, {}", measured.place),
        x: Axis::linear("key exchange, idle timeout"),
        y: Axis::linear("connections in a minute"),
        marks: bars("connections", &|index| measured.handshakes(index)),
        rules: Vec::new(),
        caption: format!("{THREADS} requests at once every {PERIOD} s, {BURSTS} bursts; published: {} connections with 1 s, {} with 10 s.", IDLE_SHORT_CONNECTIONS.value, IDLE_LONG_CONNECTIONS.value),
    });
    run.chart(Chart {
        name: "idle-median".into(),
        title: format!("Median time of a request by idle timeout, {}", measured.place),
        x: Axis::linear("key exchange, idle timeout"),
        y: Axis::linear("median time of a request (ms)"),
        marks: bars("median", &|index| measured.median(index)),
        rules: Vec::new(),
        caption: format!(
            "Published: {} ms with 1 s, {} ms with 10 s.",
            IDLE_SHORT_MEDIAN.value, IDLE_LONG_MEDIAN.value
        ),
    });
    run.chart(Chart {
        name: "idle-times".into(),
        title: format!("Time of a request in a burst, {}", measured.place),
        x: Axis::log("time of a request (ms)"),
        y: Axis::linear("share of requests"),
        marks: Marks::Steps {
            series: shown
                .iter()
                .map(|(index, (who, timeout))| {
                    distribution(name(*who, *timeout), measured.times(*index))
                })
                .collect(),
        },
        rules: Vec::new(),
        caption: "All requests of all bursts. A timeout longer than the pause keeps the connections of the first."
            .into(),
    });
}

fn finding(run: &mut Run<'_>, measured: &Measured, control: &Control) {
    let (short, long) = (measured.index(HYBRID, SHORT), measured.index(HYBRID, LONG));
    let ratio = measured.ratio(long, short);
    let (many, few) = (measured.handshakes(short), measured.handshakes(long));
    let threads = f64::from(u32::try_from(THREADS).unwrap_or(u32::MAX));
    let counts = few <= threads && many >= threads * f64::from(BURSTS) * 0.8;
    let verdict = judge(counts, &ratio, control);
    run.finding(Finding {
        kind: ClaimKind::Published,
        source: IDLE_SHORT_MEDIAN.source.into(),
        claim: "An idle timeout shorter than the pause between bursts makes ten times as many hybrid connections and a median several times as long".into(),
        published: format!(
            "1 s: {} connections, {} ms; 10 s: {} connections, {} ms ({:.1} times)",
            IDLE_SHORT_CONNECTIONS.value,
            IDLE_SHORT_MEDIAN.value,
            IDLE_LONG_CONNECTIONS.value,
            IDLE_LONG_MEDIAN.value,
            IDLE_SHORT_MEDIAN.value / IDLE_LONG_MEDIAN.value,
        ),
        measured: format!(
            "{}: 1 s: {many:.0} connections, {:.1} ms; 10 s: {few:.0} connections, {:.1} ms ({:.1} times [{:.1}, {:.1}])",
            measured.place,
            measured.median(short),
            measured.median(long),
            ratio.value,
            ratio.low,
            ratio.high,
        ),
        verdict,
        why: format!(
            "Connections are bursts times threads: {BURSTS} bursts fit into a minute at one every {PERIOD} s, so that we count up to {}, and the publication's 100 are 10 bursts. A request that comes when another is done already takes over its connection, so that there may be fewer. How much longer a burst takes is two round trips and ten handshakes on the cores of both sides: their client was a JVM, their cores were others. The claim holds if the counts are as published and the whole interval of the ratio is above 2 by the control's noise.",
            BURSTS * u32::try_from(THREADS).unwrap_or_default(),
        ),
    });
    let classical = measured.difference(measured.index(CLASSICAL, SHORT), short);
    let kept = measured.difference(measured.index(CLASSICAL, LONG), long);
    run.summary(format!(
        "{}: with connections that survive the pause between bursts the median request takes {:.1} ms, with a timeout shorter than the pause {:.1} ms; hybrid key exchange adds {} to bursts that open connections and {} to those that do not.{}",
        measured.place,
        measured.median(long),
        measured.median(short),
        added(&classical, measured.median(short), control),
        added(&kept, measured.median(long), control),
        warning(control),
    ));
}

/// The time added, in milliseconds, to a burst of `median` ms, as far as it is an effect beside the control.
fn added(more: &Estimate, median: f64, control: &Control) -> String {
    let words = format!("{:+.2} ms [{:+.2}, {:+.2}]", more.value, more.low, more.high);
    let found = if control.can_judge() {
        effect::decide(more, 0.0, control.noise() * median)
    } else {
        Effect::Unjudged
    };
    found.words(&words)
}

/// Ten times the connections (`counts`), and a median several times as long: at least twice, with the whole interval and
/// the control's noise. An interval that straddles that decides nothing, nor does anything beside a control that cannot
/// judge.
fn judge(counts: bool, ratio: &Estimate, control: &Control) -> Verdict {
    let noise = control.noise();
    if !control.can_judge() {
        return Verdict::Undecided;
    }
    let (is_twice, is_less) = (ratio.low >= 2.0 + noise, ratio.high < 2.0 - noise);
    match (counts, is_twice, is_less) {
        (true, true, _) => Verdict::Holds,
        (false, true, _) => Verdict::Partly,
        (true, _, true) if ratio.low > 1.0 + noise => Verdict::Partly,
        (_, _, true) => Verdict::Differs,
        _ => Verdict::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finding_reaches_each_verdict() {
        let control = Control { what: String::new(), ratio: 1.0, low: 0.98, high: 1.02 };
        let broken = Control { what: String::new(), ratio: 1.05, low: 1.02, high: 1.08 };
        let tautology = Control { what: String::new(), ratio: 1.0, low: 1.0, high: 1.0 };
        let judge = |counts, low, high| {
            let ratio = Estimate { value: f64::midpoint(low, high), low, high };
            for control in [&broken, &tautology] {
                assert_eq!(judge(counts, &ratio, control), Verdict::Undecided);
            }
            judge(counts, &ratio, &control)
        };
        assert_eq!(judge(true, 3.1, 3.5), Verdict::Holds);
        assert_eq!(judge(true, 1.5, 1.9), Verdict::Partly);
        assert_eq!(judge(false, 3.1, 3.5), Verdict::Partly);
        assert_eq!(judge(false, 1.5, 1.9), Verdict::Differs);
        assert_eq!(judge(true, 0.9, 1.1), Verdict::Differs);
        assert_eq!(judge(true, 0.8, 3.0), Verdict::Undecided);
        // Twice or less.
        assert_eq!(judge(true, 1.5, 3.0), Verdict::Undecided);
        assert_eq!(judge(true, 2.01, 3.0), Verdict::Undecided, "within the noise of twice");
        assert_eq!(judge(true, f64::NAN, 3.0), Verdict::Undecided);
        let more = |value: f64| Estimate { value, low: value - 0.1, high: value + 0.1 };
        assert!(added(&more(0.05), 5.0, &control).starts_with("not decided"));
        assert!(added(&more(0.05), 10.0, &control).starts_with("no difference"));
        assert!(added(&more(0.15), 10.0, &control).contains("may be noise"), "within the control");
        assert!(added(&more(0.7), 5.0, &control).starts_with("+0.70"));
    }
}

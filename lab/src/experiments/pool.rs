//! `pool`: the number of connections that a client's pool needs.

use std::time::Duration;

use crate::client::Work;
use crate::client::pool::{Pools, Served, Size};
use crate::client::turns::{Cycle, Mode, Slot, Turns};
use crate::error::LabError;
use crate::experiment::{Engine, Experiment};
use crate::experiments::served::{CLASSICAL, HYBRID, Who, is_beyond, seed, told, warning};
use crate::link::Link;
use crate::published::{KMS_REUSE_HYBRID, POOL_RATE};
use crate::result::{
    Axis, Chart, ClaimKind, Control, Finding, Marks, Rule, Series, Table, Value, Verdict,
};
use crate::run::{Run, Settings};
use crate::site::{Site, links, note_proof, place_name};
use crate::statistics::{Estimate, mean, quantile, quantile_of, sorted, two_level};

/// The experiment's row.
pub const EXPERIMENT: Experiment = Experiment {
    name: "pool",
    title: "Pool size",
    question: "How many connections should a client's pool have, and does hybrid key exchange change the answer?",
    source: SOURCE,
    engines: &[Engine::Server, Engine::Live],
    estimate,
    run,
};

const SOURCE: &str = "Jarvis, How to tune TLS for hybrid post-quantum cryptography with Kyber, AWS Security Blog, 2022: maxConcurrency of the AWS CRT client at about 200 requests a second";
const CERTIFICATES: &[&str] = &["ecdsa-p256"];

/// Load of a pool with one connection in the publications: 200 requests a second, where a kept connection makes 216.
const USE: f64 = PUBLISHED_RATE / KMS_REUSE_HYBRID.value;
const PUBLISHED_RATE: f64 = POOL_RATE.value;

const fn sizes(quick: bool) -> &'static [usize] {
    if quick { &[1, 2, 3, 5, 10, 50] } else { &[1, 2, 3, 5, 10, 20, 50] }
}

fn rounds(quick: bool) -> u32 {
    if quick { 3 } else { 10 }
}

fn length(quick: bool) -> Duration {
    if quick { Duration::from_millis(800) } else { Duration::from_secs(10) }
}

/// A request on a kept connection takes 4.6 ms there, as in the publication.
fn link() -> Link {
    Link::new(Duration::from_millis(4), 0.0)
}

/// The clients with their pools; the last one is the control.
fn pools(quick: bool) -> Vec<(Who, usize)> {
    let mut pools: Vec<(Who, usize)> = [CLASSICAL, HYBRID]
        .into_iter()
        .flat_map(|who| sizes(quick).iter().map(move |size| (who, *size)))
        .collect();
    pools.push(CONTROL);
    pools
}

const CONTROL: (Who, usize) = (HYBRID, 10);

fn round_cost(quick: bool) -> Duration {
    let count = u32::try_from(pools(quick).len()).unwrap_or(1);
    (length(quick) + Duration::from_millis(60)) * count + Duration::from_millis(300)
}

const CAPACITY: Duration = Duration::from_millis(1500);

/// Time for the intervals, which resample all requests of all rounds.
fn evaluation(quick: bool) -> Duration {
    Duration::from_millis(if quick { 1500 } else { 100_000 })
}

fn estimate(settings: &Settings) -> Duration {
    round_cost(settings.quick) * rounds(settings.quick) + CAPACITY + evaluation(settings.quick)
}

fn run(run: &mut Run<'_>) -> Result<(), LabError> {
    let quick = run.quick();
    let link = links(
        run,
        &[link()],
        "Over a link of 4 ms a request takes as long as in the publication, so that 200 a second keep one connection busy. Over loopback a request takes a fraction of that, one connection is idle most of the time, and the effect is small.",
    );
    let link = link.first().copied().flatten();
    let place = place_name(link.as_ref());
    let mut site = Site::new(run, link, CERTIFICATES);
    let turns = Turns {
        modes: vec![Mode { caller: CLASSICAL.caller(false), cycle: Cycle::Kept }],
        rounds: 10,
        slot_us: 100_000,
        seed: run.seed(),
    };
    let capacity: Vec<Vec<Slot>> =
        run.point(&format!("{place}: a kept connection"), CAPACITY, || {
            site.call(Work::Turns(turns))
        })?;
    let seconds: Vec<f64> = capacity.iter().flatten().map(|slot| slot.typical(0.5)).collect();
    let kept = quantile_of(&seconds, 0.5);
    // In whole requests a second, so that the points of an interrupted run have the same rate.
    let busy = (USE / kept.max(1e-6)).round();
    let rate = if link.is_some() { busy } else { busy.min(PUBLISHED_RATE) };
    let wanted = pools(quick);
    let mut all = Vec::new();
    for round in 0..rounds(quick) {
        let part = seed(run.seed(), u64::from(round));
        let order = shuffled(wanted.len(), part);
        let pools = Pools {
            pools: order
                .iter()
                .filter_map(|index| wanted.get(*index))
                .map(|(who, connections)| Size {
                    caller: who.caller(false),
                    connections: *connections,
                })
                .collect(),
            rate,
            length_us: u64::try_from(length(quick).as_micros()).unwrap_or(u64::MAX),
            seed: part,
        };
        let key = format!(
            "{place}: {} pools, {rate} requests a second for {} ms, round {} of {}",
            wanted.len(),
            length(quick).as_millis(),
            round + 1,
            rounds(quick)
        );
        let served: Vec<Served> =
            run.point(&key, round_cost(quick), || site.call(Work::Pools(pools)))?;
        let mut placed: Vec<(usize, Served)> = order.into_iter().zip(served).collect();
        placed.sort_by_key(|(index, _)| *index);
        all.push(placed.into_iter().map(|(_, served)| served).collect());
    }
    if link.is_some() {
        let proof =
            run.point(&format!("{place}: the link's proof"), Duration::ZERO, || site.proof())?;
        note_proof(run, &place, proof.as_ref());
    }
    tell(run, &Measured { place, kept, rate, pools: wanted, rounds: all, seed: run.seed() });
    Ok(())
}

/// The numbers below `count` in random order.
fn shuffled(count: usize, seed: u64) -> Vec<usize> {
    use rand::SeedableRng;
    use rand::seq::SliceRandom;
    let mut order: Vec<usize> = (0..count).collect();
    order.shuffle(&mut rand_pcg::Pcg64Mcg::seed_from_u64(seed));
    order
}

struct Measured {
    place: String,
    kept: f64,
    rate: f64,
    pools: Vec<(Who, usize)>,
    /// Results by round and pool.
    rounds: Vec<Vec<Served>>,
    seed: u64,
}

impl Measured {
    fn index(&self, who: Who, size: usize) -> usize {
        self.pools.iter().position(|pool| *pool == (who, size)).unwrap_or(usize::MAX)
    }

    fn served(&self, index: usize) -> impl Iterator<Item = &Served> {
        self.rounds.iter().filter_map(move |round| round.get(index))
    }

    /// All times in milliseconds, sorted.
    fn times(&self, index: usize) -> Vec<f64> {
        sorted(
            self.served(index).flat_map(|served| &served.times_us).map(|us| f64::from(*us) / 1e3),
        )
    }

    /// The median of the times in milliseconds, with its interval: resamples rounds, and then the requests in them.
    fn median(&self, index: usize) -> Estimate {
        let rounds: Vec<Vec<[f64; 1]>> = self
            .served(index)
            .map(|served| served.times_us.iter().map(|us| [f64::from(*us) / 1e3]).collect())
            .collect();
        two_level(&rounds, self.seed, |times| {
            quantile_of(&times.iter().map(|[time]| *time).collect::<Vec<_>>(), 0.5)
        })
    }

    /// Ratio of the second's median time to the first's, paired by arrivals.
    fn ratio(&self, first: usize, second: usize) -> Estimate {
        let rounds: Vec<Vec<[f64; 2]>> = self
            .served(first)
            .zip(self.served(second))
            .map(|(a, b)| {
                let times = a.times_us.iter().zip(&b.times_us);
                times.map(|(a, b)| [f64::from(*a), f64::from(*b)]).collect()
            })
            .collect();
        two_level(&rounds, self.seed, |times| {
            let column = |index: usize| -> Vec<f64> {
                times.iter().map(|[a, b]| if index == 0 { *a } else { *b }).collect()
            };
            quantile_of(&column(1), 0.5) / quantile_of(&column(0), 0.5)
        })
    }

    /// What the second connection gains more than all further ones up to each larger size, in milliseconds of the median,
    /// paired by arrivals.
    fn leads(&self, who: Who) -> Vec<Estimate> {
        let larger = self.sizes().into_iter().filter(|size| *size > 2);
        larger.map(|size| self.lead([1, 2, size].map(|size| self.index(who, size)))).collect()
    }

    /// What the median falls from the first of these pools to the second, less what it falls from there to the third.
    fn lead(&self, pools: [usize; 3]) -> Estimate {
        let rounds: Vec<Vec<[f64; 3]>> = self
            .rounds
            .iter()
            .filter_map(|round| {
                let [one, two, more] = pools.map(|pool| round.get(pool));
                let times = one?.times_us.iter().zip(&two?.times_us).zip(&more?.times_us);
                Some(times.map(|((a, b), c)| [*a, *b, *c].map(|us| f64::from(us) / 1e3)).collect())
            })
            .collect();
        two_level(&rounds, self.seed, |times| {
            let median = |pool: usize| {
                let column: Vec<f64> =
                    times.iter().filter_map(|time| time.get(pool).copied()).collect();
                quantile_of(&column, 0.5)
            };
            (median(0) - median(1)) - (median(1) - median(2))
        })
    }

    fn handshakes(&self, index: usize) -> f64 {
        mean(&self.served(index).map(|served| f64::from(served.handshakes)).collect::<Vec<_>>())
    }

    fn sizes(&self) -> Vec<usize> {
        self.pools.iter().filter(|(who, _)| *who == CLASSICAL).map(|(_, size)| *size).collect()
    }
}

fn tell(run: &mut Run<'_>, measured: &Measured) {
    let last = measured.pools.len().saturating_sub(1);
    let same = measured.ratio(measured.index(CONTROL.0, CONTROL.1), last);
    let control = Control {
        what: format!(
            "{}: {} with a pool of {}, twice, median time of a request",
            measured.place, CONTROL.0.name, CONTROL.1
        ),
        ratio: same.value,
        low: same.low,
        high: same.high,
    };
    run.control(control.clone());
    finding(run, measured, &control);
    table(run, measured);
    charts(run, measured);
    run.note(format!(
        "Requests come independently of each other (Poisson) at {} a second: {:.1} % of what one kept connection does here ({:.2} ms each); the publication's 200 a second are {:.1} % of its 216. All pools of a round get the same arrivals. A request's time begins when it was due, so that waiting for a connection counts.",
        measured.rate,
        measured.rate * measured.kept * 100.0,
        measured.kept * 1e3,
        USE * 100.0,
    ));
    run.note("The pool takes the connection that was used last, lets requests wait in order when all are busy, and opens a connection when none is free and there may be more. Each pool starts empty: its handshakes are in the times.");
}

fn finding(run: &mut Run<'_>, measured: &Measured, control: &Control) {
    let at = |who, size| measured.median(measured.index(who, size));
    let sizes = measured.sizes();
    let largest = sizes.iter().copied().max().unwrap_or(2);
    let words = |who: Who| {
        format!(
            "{}: {:.2} ms with one connection, {:.2} with two, {:.2} with {}",
            who.name,
            at(who, 1).value,
            at(who, 2).value,
            at(who, sizes.last().copied().unwrap_or(2)).value,
            sizes.last().copied().unwrap_or(2),
        )
    };
    let one = |who: Who| {
        let better = measured.ratio(measured.index(who, 1), measured.index(who, 2));
        (better.value < 1.0 && is_beyond(&better, control), is_largest(&measured.leads(who)))
    };
    let verdict = judge(one(CLASSICAL), one(HYBRID));
    run.finding(Finding {
        kind: ClaimKind::Published,
        source: POOL_RATE.source.into(),
        claim: "At about 200 requests a second the largest gain of a pool is from one connection to two; more change little".into(),
        published: "largest gain from 1 to 2, then flat".into(),
        measured: format!("{}; {}; {}", measured.place, words(CLASSICAL), words(HYBRID)),
        verdict,
        why: format!(
            "A single connection is busy {:.0} % of the time here and {:.0} % in the publication. The closer that is to all of it the longer requests queue, and with a second connection hardly any waits. That is queueing, and says little of the key exchange: a pool shakes hands once for each connection that it opens, and it opens one only when none is free ({:.0} in all with the largest pool here), however many requests follow. The first gain is the largest if the interval of what it exceeds the gain up to each larger size by is above zero.{}",
            measured.rate * measured.kept * 100.0,
            USE * 100.0,
            measured.handshakes(measured.index(HYBRID, largest)),
            warning(control),
        ),
    });
    let hybrid =
        measured.ratio(measured.index(CLASSICAL, largest), measured.index(HYBRID, largest));
    run.summary(format!(
        "{}: a second connection takes the median time of a request from {:.1} to {:.1} ms (hybrid: {:.1} to {:.1}); with up to {largest} connections the median time of hybrid against classical: {}; such a pool opened {:.0} of them.{}",
        measured.place,
        at(CLASSICAL, 1).value,
        at(CLASSICAL, 2).value,
        at(HYBRID, 1).value,
        at(HYBRID, 2).value,
        told(&hybrid, control),
        measured.handshakes(measured.index(HYBRID, largest)),
        warning(control),
    ));
}

/// Whether the second connection gains more than all further ones, by the intervals of what it gains more; `None` if they
/// do not tell.
fn is_largest(leads: &[Estimate]) -> Option<bool> {
    if leads.iter().any(|lead| lead.high < 0.0) {
        Some(false)
    } else if !leads.is_empty() && leads.iter().all(|lead| lead.low > 0.0) {
        Some(true)
    } else {
        None
    }
}

/// For each key exchange: whether a second connection helps by more than noise, and by more than all later ones, if that
/// can be told.
fn judge(classical: (bool, Option<bool>), hybrid: (bool, Option<bool>)) -> Verdict {
    match (classical, hybrid) {
        ((false, _), (false, _)) | ((true, None), _) | (_, (true, None)) => Verdict::Undecided,
        ((true, Some(true)), (true, Some(true))) => Verdict::Holds,
        ((true, Some(false)), (true, Some(false))) => Verdict::Differs,
        _ => Verdict::Partly,
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes of pools and counts of requests")]
fn number(count: usize) -> f64 {
    count as f64
}

fn table(run: &mut Run<'_>, measured: &Measured) {
    let rows = measured
        .pools
        .iter()
        .enumerate()
        .map(|(index, (who, size))| {
            let times = measured.times(index);
            let again = index + 1 == measured.pools.len();
            let name = if again { format!("{} (again)", who.name) } else { who.name.into() };
            vec![
                Value::from(name),
                number(*size).into(),
                quantile(&times, 0.5).into(),
                quantile(&times, 0.9).into(),
                quantile(&times, 0.99).into(),
                mean(&times).into(),
                measured.handshakes(index).into(),
                number(times.len()).into(),
            ]
        })
        .collect();
    let columns = [
        "key exchange",
        "connections at most",
        "p50 (ms)",
        "p90 (ms)",
        "p99 (ms)",
        "mean (ms)",
        "handshakes of a round",
        "requests",
    ];
    run.table(Table {
        name: "pool".into(),
        title: format!("Time of a request by pool size, {}", measured.place),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
        note: "From when a request was due.".into(),
    });
}

fn charts(run: &mut Run<'_>, measured: &Measured) {
    let series = |value: &dyn Fn(usize) -> f64, band: &dyn Fn(usize) -> Option<[f64; 2]>| {
        [CLASSICAL, HYBRID]
            .into_iter()
            .map(|who| {
                let indices: Vec<(usize, usize)> = measured
                    .sizes()
                    .into_iter()
                    .map(|size| (size, measured.index(who, size)))
                    .collect();
                Series {
                    name: who.name.into(),
                    points: indices.iter().map(|(n, at)| [number(*n), value(*at)]).collect(),
                    band: indices.iter().filter_map(|(_, at)| band(*at)).collect(),
                }
            })
            .collect()
    };
    let interval = |index: usize| {
        let median = measured.median(index);
        Some([median.low, median.high])
    };
    run.chart(Chart {
        name: "pool-latency".into(),
        title: format!("Median time of a request by pool size, {}", measured.place),
        x: Axis::log("connections at most"),
        y: Axis::linear("median time of a request (ms)"),
        marks: Marks::Lines { series: series(&|index| measured.median(index).value, &interval) },
        rules: vec![Rule {
            label: "a request alone on a kept connection".into(),
            at: measured.kept * 1e3,
        }],
        caption: format!(
            "{} requests a second, the same arrivals for all; 95 % intervals by a bootstrap over rounds and requests.",
            measured.rate
        ),
    });
    run.chart(Chart {
        name: "pool-handshakes".into(),
        title: format!("Connections that a pool opens, by its size, {}", measured.place),
        x: Axis::log("connections at most"),
        y: Axis::linear("handshakes"),
        marks: Marks::Lines { series: series(&|index| measured.handshakes(index), &|_| None) },
        rules: Vec::new(),
        caption: "Connections that a pool opened from an empty start, mean over the rounds.".into(),
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_finding_reaches_each_verdict() {
        let (yes, no) = ((true, Some(true)), (true, Some(false)));
        assert_eq!(judge(yes, yes), Verdict::Holds);
        assert_eq!(judge(yes, no), Verdict::Partly);
        assert_eq!(judge(no, no), Verdict::Differs);
        assert_eq!(judge((false, Some(true)), (false, Some(false))), Verdict::Undecided);
        // Two gains whose intervals overlap are not ordered.
        assert_eq!(judge(yes, (true, None)), Verdict::Undecided);
        assert_eq!(judge((true, None), no), Verdict::Undecided);
    }

    /// Rounds of a pool of one connection, of two, and of five; the later gain varies with the round.
    fn measured(later: [u32; 4]) -> Measured {
        let served = |us: u32| Served { times_us: vec![us; 20], handshakes: 1 };
        Measured {
            place: String::new(),
            kept: 0.005,
            rate: 100.0,
            pools: vec![(HYBRID, 1), (HYBRID, 2), (HYBRID, 5)],
            rounds: later.map(|later| [9000, 6000, 6000 - later].map(served).to_vec()).to_vec(),
            seed: 1,
        }
    }

    #[test]
    fn gains_are_ordered_by_their_intervals() {
        let lead = |later| measured(later).lead([0, 1, 2]);
        let clear = lead([500, 400, 600, 500]);
        assert!((clear.value - 2.5).abs() < 1e-9, "{clear:?}");
        assert_eq!(is_largest(&[clear]), Some(true));
        assert_eq!(is_largest(&[lead([5000, 4900, 5100, 5000])]), Some(false));
        // By the points alone the second connection gains more.
        let open = lead([100, 200, 4900, 5000]);
        assert!(open.value > 0.0 && open.low < 0.0, "{open:?}");
        assert_eq!(is_largest(&[open]), None);
        assert_eq!(is_largest(&[clear, open]), None);
        assert_eq!(is_largest(&[]), None);
    }
}

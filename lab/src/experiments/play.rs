//! Plays traces over links by the model and summarises them: quantiles, paired and unpaired differences. Shared by
//! the experiments that compare handshakes over links; a point has all contenders, so that flow by flow they meet the
//! same losses.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::link::{ClockStart, Link, Outcome, Transfer};
use crate::model::validated::Outside;
use crate::model::{self, Profile};
use crate::plan::model_cost;
use crate::run::Run;
use crate::statistics::{Estimate, bootstrap, mean, quantile, sorted};
use crate::subject::Subject;
use crate::tls::{self, Stack};
pub use crate::trace::Contender;
use crate::trace::Trace;

/// Where to play, and how often.
#[derive(Debug, Clone, Copy)]
pub struct GridPoint<'a> {
    /// The part of the experiment, for the point's key.
    pub part: &'a str,
    /// Kernel whose TCP is modelled.
    pub profile: &'static Profile,
    /// The link.
    pub link: Link,
    /// Sizes of request and answer.
    pub transfer: Transfer,
    /// Connections of each contender.
    pub count: u64,
    /// Seed of the losses, if not the run's.
    pub seed: Option<u64>,
    /// Whether to keep every time, not only quantiles.
    pub raw: bool,
    /// Whether to include times to first and last byte.
    pub bytes: bool,
}

/// A distribution, in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Quantiles at 0, 1, ... 100 per cent.
    pub percent: Vec<f64>,
    /// The quantile at 99.9 per cent.
    pub p999: f64,
    /// Mean.
    pub mean: f64,
}

/// Results of one contender at one point; times in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the contender.
    pub name: String,
    /// Time of the handshake from the SYN.
    pub syn: Spread,
    /// Time of the handshake from when TCP was connected.
    pub connected: Spread,
    /// Time to the first byte of the answer, from the SYN.
    pub first_byte: Option<Spread>,
    /// Time to its last byte.
    pub last_byte: Option<Spread>,
    /// Share of handshakes with a retransmission, TCP's own packets included.
    pub retransmitted: f64,
    /// Mean of the differences to the baseline, paired by flow.
    pub paired: Estimate,
    /// The differences themselves.
    pub differences: Spread,
    /// Difference of the means to a baseline with other losses, from the SYN: what an unpaired experiment would find.
    pub unpaired: Estimate,
    /// The same, from when TCP was connected.
    pub unpaired_connected: Estimate,
    /// Difference to the baseline of the time to the last byte, paired by flow.
    pub paired_last: Option<Estimate>,
    /// Time of every handshake from the SYN, in microseconds, by flow.
    pub raw_us: Option<Vec<u64>>,
    /// Time until TCP was connected, in microseconds, by flow.
    pub raw_connected_us: Option<Vec<u64>>,
}

/// Results at a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Played {
    /// Connections of each contender.
    pub count: u64,
    /// The contenders, the baseline first.
    pub rows: Vec<Row>,
}

/// A point with its results.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Kernel whose TCP was modelled.
    pub profile: &'static str,
    /// The link.
    pub link: Link,
    /// Sizes of request and answer.
    pub transfer: Transfer,
    /// The results.
    pub played: Played,
}

/// Rounds of handshakes from which a typical trace is taken.
pub fn rounds(quick: bool) -> usize {
    if quick { 60 } else { 300 }
}

/// Time to measure a trace: a certificate chain and so many handshakes.
pub fn trace_cost(quick: bool) -> Duration {
    Duration::from_millis(if quick { 160 } else { 700 })
}

/// The typical traces of those subjects that the stack supports; a note names the others.
pub fn contenders(
    run: &mut Run<'_>,
    stack: &dyn Stack,
    subjects: &[Subject],
) -> Result<Vec<(Subject, Contender)>, LabError> {
    let (rounds, stop) = (rounds(run.quick()), run.stop_flag());
    let words = stack_words(stack)?;
    let (supported, others): (Vec<Subject>, Vec<Subject>) =
        subjects.iter().copied().partition(|subject| stack.supports(subject));
    let missing: Vec<String> = others.iter().map(Subject::name).collect();
    let key = |subject: &Subject| format!("trace/{words}/{}/{rounds} in turns", subject.name());
    // Those of earlier versions were measured one after the other.
    let earlier = |subject: &Subject| format!("trace/{words}/{}/{rounds}", subject.name());
    let mut keys = Vec::new();
    let mut new: Vec<Subject> = Vec::new();
    for subject in &supported {
        let (now, before) = (key(subject), earlier(subject));
        let is_known = run.has_point(&now);
        let is_old = !is_known && run.has_point(&before);
        let is_listed = new.iter().any(|other| other.name() == subject.name());
        if !is_known && !is_old && !is_listed {
            new.push(*subject);
        }
        keys.push(if is_old { before } else { now });
    }
    if keys.iter().zip(&supported).any(|(used, subject)| *used != key(subject)) {
        run.note_once(
            "Processor times of these handshakes were measured one configuration after the other. The speed of a machine changes from one second \
             to the next, here by up to a half: what differs by less than that is not a matter of the algorithms. The experiments cpu and \
             handshake-cost measure in turns.",
        );
    }
    let mut measured: HashMap<String, Trace> = HashMap::new();
    if !new.is_empty() {
        run.progress().measuring(&format!("traces of {words}"));
        let is_stopped = || stop.load(Ordering::Relaxed);
        let traces = tls::typical(stack, &new, rounds, &is_stopped)?;
        let traces = traces.ok_or(LabError::Interrupted)?;
        measured.extend(new.iter().map(key).zip(traces));
    }
    let mut found = Vec::new();
    for (subject, key) in supported.iter().zip(&keys) {
        let trace = run.point(key, trace_cost(run.quick()), || {
            measured.remove(key).ok_or_else(|| LabError::failed("a trace is missing"))
        })?;
        found.push((*subject, Contender { name: subject.name(), trace }));
    }
    if !missing.is_empty() {
        run.left_out(&format!(
            "{} does not support, and therefore left out: {}.",
            stack.name(),
            missing.join("; ")
        ));
    }
    Ok(found)
}

/// A stack with its version, for keys: an updated library is measured again.
pub fn stack_words(stack: &dyn Stack) -> Result<String, LabError> {
    Ok(format!("{} {}", stack.name(), stack.version()?))
}

/// Plays all contenders at one point; the first one is the baseline.
pub fn play(
    run: &mut Run<'_>,
    point: &GridPoint<'_>,
    contenders: &[Contender],
) -> Result<Played, LabError> {
    let (seed, stop) = (point.seed.unwrap_or(run.seed()), run.stop_flag());
    run.point(&key(point, contenders, seed)?, cost(point, contenders.len()), || {
        let played = measure(point, contenders, seed, &|| stop.load(Ordering::Relaxed));
        played.ok_or(LabError::Interrupted)
    })
}

/// Plays all contenders at each of these points.
pub fn over(
    run: &mut Run<'_>,
    points: &[GridPoint<'_>],
    contenders: &[Contender],
) -> Result<Vec<Seen>, LabError> {
    let mut seen = Vec::new();
    for point in points {
        let played = play(run, point, contenders)?;
        let (link, transfer) = (point.link, point.transfer);
        seen.push(Seen { profile: point.profile.name, link, transfer, played });
    }
    Ok(seen)
}

/// Time that a point takes on two processors.
pub fn cost(point: &GridPoint<'_>, contenders: usize) -> Duration {
    let each = model_cost(point.transfer.body) * u32::try_from(point.count).unwrap_or(u32::MAX);
    each * u32::try_from(contenders).unwrap_or(u32::MAX)
}

/// Everything that a point depends on, including the contenders and their handshakes.
fn key(point: &GridPoint<'_>, contenders: &[Contender], seed: u64) -> Result<String, LabError> {
    let Link { rtt_us, loss, rate_bps, queue_packets, jitter_us } = point.link;
    let mut key = format!(
        "model/{}/{}/rtt {} ms/loss {}",
        point.part,
        spelled(point.profile)?,
        Duration::from_micros(rtt_us).as_secs_f64() * 1e3,
        percent(loss)
    );
    if let Some(rate) = rate_bps {
        key += &format!("/{rate} bit/s, queue {queue_packets}");
    }
    if jitter_us > 0 {
        key += &format!("/jitter {jitter_us} us");
    }
    let who: Vec<(&str, &Trace)> =
        contenders.iter().map(|contender| (contender.name.as_str(), &contender.trace)).collect();
    let digest = digest_of(&who)?;
    let Transfer { request, body } = point.transfer;
    let kept = if point.raw { "/every time" } else { "" };
    Ok(key
        + &format!(
            "/{request}+{body} B/{}/seed {seed}{kept}{}/{}",
            point.count,
            if point.bytes { "/bytes" } else { "" },
            digest
        ))
}

/// The first 16 hexadecimal digits of the SHA-256 of a value's JSON, for keys.
pub fn digest_of(value: &impl Serialize) -> Result<String, LabError> {
    let json = serde_json::to_vec(value).map_err(LabError::failed)?;
    let mut digest = hex::encode(digest::digest(&digest::SHA256, &json));
    digest.truncate(16);
    Ok(digest)
}

/// A profile in a key: its name, and what it does where that is not the table's row of this name. Results that were stored
/// before clients saved metrics are not used again, so that such rows have it, too.
pub fn spelled(profile: &Profile) -> Result<String, LabError> {
    let name = profile.name;
    let is_row = Profile::by_name(name).is_some_and(|row| row.tcp == profile.tcp);
    if is_row && !profile.tcp.client_saves {
        return Ok(name.to_owned());
    }
    Ok(format!("{name} {}", digest_of(&profile.tcp)?))
}

/// A share as people write it.
pub fn percent(share: f64) -> String {
    format!("{} %", (share * 1e5).round() / 1e3)
}

/// Plays all contenders, on one thread per processor: the results do not depend on their number. `None` if it was
/// stopped.
pub fn measure(
    point: &GridPoint<'_>,
    contenders: &[Contender],
    seed: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Option<Played> {
    let first = contenders.first()?;
    let connections = |trace: &Trace, seed: u64| {
        model::connections(point.profile, &point.link, trace, point.transfer, seed, point.count)
    };
    let baseline = Baseline {
        paired: connections(&first.trace, seed),
        apart: connections(&first.trace, other(seed)),
    };
    let next = AtomicUsize::new(0);
    let work = || {
        let mut rows = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(contender) = contenders.get(index) else { return Some(rows) };
            if stop() {
                return None;
            }
            let own = if index == 0 {
                baseline.paired.clone()
            } else {
                connections(&contender.trace, seed)
            };
            rows.push((index, row(point, contender, &own, &baseline, seed)));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let parts: Vec<Option<Vec<(usize, Row)>>> = std::thread::scope(|scope| {
        let others: Vec<_> =
            (1..threads.min(contenders.len())).map(|_| scope.spawn(work)).collect();
        let mut parts = vec![work()];
        parts.extend(others.into_iter().map(|thread| thread.join().ok().flatten()));
        parts
    });
    let mut rows: Vec<(usize, Row)> =
        parts.into_iter().collect::<Option<Vec<_>>>()?.into_iter().flatten().collect();
    rows.sort_by_key(|(index, _)| *index);
    let rows = rows.into_iter().map(|(_, row)| row).collect();
    Some(Played { count: point.count, rows })
}

/// A seed for flows that are not paired.
pub fn other(seed: u64) -> u64 {
    seed ^ 0x9e37_79b9_7f4a_7c15
}

struct Baseline {
    paired: Vec<Outcome>,
    apart: Vec<Outcome>,
}

fn row(
    point: &GridPoint<'_>,
    contender: &Contender,
    own: &[Outcome],
    baseline: &Baseline,
    seed: u64,
) -> Row {
    let times = |list: &[Outcome], start| -> Vec<f64> {
        list.iter().map(|outcome| milliseconds(outcome.handshake_from(start))).collect()
    };
    let less = |one: &[f64], other: &[f64]| -> Vec<f64> {
        one.iter().zip(other).map(|(one, other)| one - other).collect()
    };
    let syn = times(own, ClockStart::Syn);
    let connected = times(own, ClockStart::Connected);
    let differences = less(&syn, &times(&baseline.paired, ClockStart::Syn));
    let last = |list: &[Outcome]| -> Vec<f64> {
        list.iter().map(|outcome| milliseconds(outcome.last_byte_ns)).collect()
    };
    let first: Vec<f64> = own.iter().map(|outcome| milliseconds(outcome.first_byte_ns)).collect();
    let again = own.iter().filter(|outcome| outcome.handshake_retransmissions > 0).count();
    let microseconds =
        |time: fn(&Outcome) -> u64| own.iter().map(|outcome| time(outcome) / 1000).collect();
    Row {
        name: contender.name.clone(),
        unpaired: apart(&syn, &times(&baseline.apart, ClockStart::Syn)),
        unpaired_connected: apart(&connected, &times(&baseline.apart, ClockStart::Connected)),
        syn: Spread::of(&syn),
        connected: Spread::of(&connected),
        first_byte: point.bytes.then(|| Spread::of(&first)),
        last_byte: point.bytes.then(|| Spread::of(&last(own))),
        retransmitted: share(again, own.len()),
        paired: interval(&differences, seed),
        differences: Spread::of(&differences),
        paired_last: point
            .bytes
            .then(|| interval(&less(&last(own), &last(&baseline.paired)), seed)),
        raw_us: point.raw.then(|| microseconds(|outcome| outcome.handshake_ns)),
        raw_connected_us: point.raw.then(|| microseconds(|outcome| outcome.connected_ns)),
    }
}

/// The mean with a bootstrap interval over the flows. Where all values are equal it has no width, which says nothing about
/// the CPU times, which the flows have in common: tables and sentences then show none.
pub fn interval(values: &[f64], seed: u64) -> Estimate {
    let constant = values.first().is_none_or(|first| values.iter().all(|value| value == first));
    let estimate = if constant {
        let value = values.first().copied().unwrap_or_default();
        Estimate { value, low: value, high: value }
    } else {
        bootstrap(values, seed, mean)
    };
    Estimate {
        value: rounded(estimate.value),
        low: rounded(estimate.low),
        high: rounded(estimate.high),
    }
}

/// Difference of the means of two independent samples, with a normal interval.
pub fn apart(one: &[f64], other: &[f64]) -> Estimate {
    let spread = |values: &[f64], middle: f64| {
        let squares: Vec<f64> = values.iter().map(|value| (value - middle).powi(2)).collect();
        mean(&squares) / length(values).max(1.0)
    };
    let (middle, others) = (mean(one), mean(other));
    let error = 1.96 * (spread(one, middle) + spread(other, others)).sqrt();
    let value = middle - others;
    Estimate { value: rounded(value), low: rounded(value - error), high: rounded(value + error) }
}

impl Spread {
    /// The distribution of values in any order.
    pub fn of(values: &[f64]) -> Self {
        let sorted = sorted(values.iter().copied());
        let percent =
            (0..=100).map(|share| rounded(quantile(&sorted, f64::from(share) / 100.0))).collect();
        Self { percent, p999: rounded(quantile(&sorted, 0.999)), mean: rounded(mean(values)) }
    }

    /// The quantile at so many per cent.
    pub fn at(&self, percent: usize) -> f64 {
        self.percent.get(percent).copied().unwrap_or_default()
    }
}

impl Row {
    /// The handshake by this clock.
    pub fn handshake(&self, start: ClockStart) -> &Spread {
        match start {
            ClockStart::Syn => &self.syn,
            ClockStart::Connected => &self.connected,
        }
    }
}

impl Played {
    /// The row of this contender.
    pub fn row(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.name == name)
    }
}

impl Seen {
    /// What of the times here is outside the model's validated range.
    pub fn outside(&self) -> Option<Outside> {
        Outside::of(&self.link)
    }
}

/// Nanoseconds as milliseconds.
pub fn milliseconds(nanoseconds: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "hours fit")]
    let nanoseconds = nanoseconds as f64;
    nanoseconds / 1e6
}

/// Rounded to ten nanoseconds: no more digits than are known.
fn rounded(milliseconds: f64) -> f64 {
    (milliseconds * 1e5).round() / 1e5
}

fn length(values: &[f64]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a length")]
    let length = values.len() as f64;
    length
}

/// How many of so many.
pub fn share(part: usize, all: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of samples")]
    let share = part as f64 / all.max(1) as f64;
    (share * 1e6).round() / 1e6
}

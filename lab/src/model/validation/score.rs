//! Scores the model against measurements: published ones, and those of a researcher.
//!
//! What is compared is the whole distribution, as far as its quantiles are given. At each of them the model's share of
//! handshakes that take no longer has a distance from the share that the quantile stands for, in standard errors of
//! both samples. Times within [`TOLERANCE`] count as equal. A point's distance is the largest of its figures.
//!
//! Points without loss are not scored: they give the processor times and their spread.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

use super::rounded;
use crate::error::LabError;
use crate::link::{ClockStart, Link, Transfer, mix};
use crate::model::validated::Outside;
use crate::model::{Profile, connections};
use crate::result::{Table, Value};
use crate::statistics::{mean, quantile, quantile_of, sorted};
use crate::trace::{Side, Step, Trace};

/// Relative error of a time that does not count.
pub const TOLERANCE: f64 = 0.03;
/// Distance up to which a point agrees, in standard errors. A point has some seven figures that are not independent, so
/// that two would be exceeded by chance at one point in ten.
pub const AGREES: f64 = 3.0;

/// A measured point.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// Name of the handshake: points with one name and round-trip time share their processor time.
    pub name: String,
    /// Line in the file, for messages.
    pub line: u64,
    /// The link.
    pub link: Link,
    /// Handshakes behind its figures.
    pub handshakes: u32,
    /// When its clock starts.
    pub clock: ClockStart,
    /// Its flights. Without any processor time, the point of its name and round-trip time without loss gives it.
    pub trace: Trace,
    /// Shares and times in milliseconds, increasing.
    pub quantiles: Vec<(f64, f64)>,
    /// Mean in milliseconds.
    pub mean_ms: Option<f64>,
}

/// A figure of a point, measured and modelled.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// `p95`, or `mean`.
    pub what: String,
    /// Measured, in milliseconds.
    pub measured_ms: f64,
    /// The model's, in milliseconds.
    pub model_ms: f64,
    /// The model's over the measured one, less one, in per cent.
    pub difference_percent: f64,
    /// The model's handshakes that take no longer than the measured figure, in per cent; none of a mean.
    pub below_percent: Option<f64>,
    /// Distance in standard errors.
    pub distance: f64,
}

/// A point's score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// Name of the handshake.
    pub name: String,
    /// Line in the file.
    pub line: u64,
    /// Round-trip time in milliseconds.
    pub rtt_ms: f64,
    /// Loss in each direction, in per cent.
    pub loss_percent: f64,
    /// Kernel whose TCP was modelled.
    pub profile: &'static str,
    /// The figures.
    pub figures: Vec<Figure>,
    /// What of them is outside the model's validated range.
    pub outside: Option<&'static str>,
}

impl Score {
    /// The largest distance of its figures.
    pub fn distance(&self) -> f64 {
        self.figures.iter().map(|figure| figure.distance).fold(0.0, f64::max)
    }

    /// Whether it agrees.
    pub fn agrees(&self) -> bool {
        self.distance() <= AGREES
    }

    /// The figure that is furthest off.
    fn worst(&self) -> Option<&Figure> {
        self.figures.iter().max_by(|one, other| one.distance.total_cmp(&other.distance))
    }
}

/// Scores all points with loss, with so many handshakes of the model for each.
pub fn score(
    points: &[Measured],
    profile: &'static Profile,
    count: u64,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Vec<Score>, LabError> {
    let mut scores = Vec::new();
    for point in points.iter().filter(|point| point.link.loss > 0.0) {
        if stop.load(Ordering::Relaxed) {
            return Err(LabError::Interrupted);
        }
        let calm = calm(points, point)?;
        let times = modelled(profile, point, calm, count, seed);
        scores.push(one(profile, point, &times));
    }
    Ok(scores)
}

/// The point without loss that gives a point its processor time; none if its own flights have it.
fn calm<'a>(points: &'a [Measured], point: &Measured) -> Result<Option<&'a Measured>, LabError> {
    if has_cpu(&point.trace) {
        return Ok(None);
    }
    let same = |other: &&Measured| {
        other.link.loss == 0.0 && other.name == point.name && other.link.rtt_us == point.link.rtt_us
    };
    match points.iter().find(same) {
        Some(calm) => Ok(Some(calm)),
        None => Err(LabError::Plan(format!(
            "line {}: {} has no cpu_ms, and no row with loss_percent 0 and this rtt_ms from which it could be taken",
            point.line, point.name
        ))),
    }
}

fn has_cpu(trace: &Trace) -> bool {
    trace.cpu_ns(Side::Client) + trace.cpu_ns(Side::Server) > 0
}

/// The middle of a distribution: its median, else the mean.
fn middle(point: &Measured) -> Option<f64> {
    at(&point.quantiles, 0.5).or(point.mean_ms)
}

/// The quantile at a share, between given ones on the line between them, beyond them the outermost; of a mean alone none.
fn at(quantiles: &[(f64, f64)], share: f64) -> Option<f64> {
    let (first, last) = (quantiles.first()?, quantiles.last()?);
    if share <= first.0 {
        return Some(first.1);
    }
    let pair = quantiles.windows(2).find(|pair| pair[0].0 <= share && share <= pair[1].0);
    Some(pair.map_or(last.1, |pair| {
        pair[0].1 + (pair[1].1 - pair[0].1) * (share - pair[0].0) / (pair[1].0 - pair[0].0)
    }))
}

/// The model's times in milliseconds, sorted.
fn modelled(
    profile: &'static Profile,
    point: &Measured,
    calm: Option<&Measured>,
    count: u64,
    seed: u64,
) -> Vec<f64> {
    let nothing = Transfer { request: 0, body: 0 };
    let run = |trace: &Trace, link: &Link, count: u64| -> Vec<f64> {
        let outcomes = connections(profile, link, trace, nothing, seed, count);
        outcomes.iter().map(|outcome| milliseconds(outcome.handshake_from(point.clock))).collect()
    };
    let Some(calm) = calm else { return sorted(run(&point.trace, &point.link, count)) };
    let lossless = Link { loss: 0.0, ..point.link };
    let bare = run(&point.trace, &lossless, 1).first().copied().unwrap_or_default();
    let usual = middle(calm).unwrap_or(bare);
    let trace = with_cpu(&point.trace, usual - bare);
    let times = run(&trace, &point.link, count);
    sorted(times.iter().zip(0..).map(|(time, flow)| {
        let extra = at(&calm.quantiles, uniform(flow)).map_or(0.0, |time| time - usual);
        // Below the median a handshake is as fast as its flights allow.
        time + extra.max(0.0)
    }))
}

/// The flights with so much processor time: a fifth for the client's key, two fifths each for the server and for the
/// client's rest.
fn with_cpu(trace: &Trace, cpu_ms: f64) -> Trace {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
    let fifth = (cpu_ms.max(0.0) * 1e6 / 5.0) as u64;
    let mut trace = trace.clone();
    let mut give = |index: Option<usize>, fifths: u64| {
        if let Some(step) = index.and_then(|index| trace.steps.get_mut(index)) {
            step.cpu_ns += fifths * fifth;
        }
    };
    let done = trace.client_done;
    give(Some(0), 1);
    give(Some(done), 2);
    let server = trace.steps.iter().position(|step| step.from == Side::Server);
    if let Some(step) = server.and_then(|index| trace.steps.get_mut(index)) {
        step.cpu_ns += 2 * fifth;
    }
    trace
}

fn one(profile: &'static Profile, point: &Measured, times: &[f64]) -> Score {
    let samples = 1.0 / f64::from(point.handshakes) + 1.0 / count(times.len()).max(1.0);
    let mut figures: Vec<Figure> = point
        .quantiles
        .iter()
        .map(|&(share, time)| {
            let error = (share * (1.0 - share) * samples).sqrt();
            let low = below(times, time * (1.0 - TOLERANCE));
            let high = below(times, time * (1.0 + TOLERANCE));
            let off = (low - share).max(share - high).max(0.0);
            let ours = quantile(times, share);
            Figure {
                what: format!("p{}", rounded(share * 100.0)),
                measured_ms: time,
                model_ms: rounded(ours),
                difference_percent: rounded(100.0 * (ours / time - 1.0)),
                below_percent: Some(rounded(100.0 * below(times, time))),
                distance: rounded(off / error),
            }
        })
        .collect();
    if let Some(theirs) = point.mean_ms {
        let ours = mean(times);
        let squares: Vec<f64> = times.iter().map(|time| (time - ours).powi(2)).collect();
        let error = (mean(&squares) * samples).sqrt();
        let off = ((ours - theirs).abs() - TOLERANCE * theirs).max(0.0);
        figures.push(Figure {
            what: "mean".to_owned(),
            measured_ms: theirs,
            model_ms: rounded(ours),
            difference_percent: rounded(100.0 * (ours / theirs - 1.0)),
            below_percent: None,
            distance: rounded(off / error.max(f64::MIN_POSITIVE)),
        });
    }
    Score {
        name: point.name.clone(),
        line: point.line,
        rtt_ms: point.link.rtt().as_secs_f64() * 1e3,
        loss_percent: rounded(point.link.loss * 100.0),
        profile: profile.name,
        figures,
        outside: Outside::of(&point.link).map(Outside::words),
    }
}

/// One row for each point.
pub fn table(name: &str, title: &str, note: &str, sets: &[(String, Vec<Score>)]) -> Table {
    let rows = sets
        .iter()
        .flat_map(|(set, scores)| scores.iter().map(move |score| (set, score)))
        .map(|(set, score)| {
            let worst = score.worst();
            let figure = |of: fn(&Figure) -> Value| worst.map_or_else(|| "-".into(), of);
            vec![
                set.as_str().into(),
                score.name.as_str().into(),
                score.rtt_ms.into(),
                score.loss_percent.into(),
                score.profile.into(),
                rounded(score.distance()).into(),
                if score.agrees() { "yes" } else { "no" }.into(),
                figure(|one| one.what.as_str().into()),
                figure(|one| one.measured_ms.into()),
                figure(|one| one.model_ms.into()),
                figure(|one| one.difference_percent.into()),
                score.outside.unwrap_or("-").into(),
            ]
        })
        .collect();
    Table {
        name: name.to_owned(),
        title: title.to_owned(),
        columns: [
            "set",
            "handshake",
            "RTT (ms)",
            "loss (%)",
            "TCP of",
            "distance (standard errors)",
            "agrees",
            "figure furthest off",
            "measured (ms)",
            "model (ms)",
            "model over measured (%)",
            crate::model::validated::COLUMN,
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
        note: format!(
            "{note} The distance of a point is the largest of its figures': how far the model's share of handshakes that take no longer than a \
             measured quantile is from the share of the quantile (of a mean: how far the means are apart), in standard errors of both samples; times \
             within {:.0} % count as equal. A point agrees up to {AGREES} standard errors. Points without loss give the processor times, and are not scored.",
            100.0 * TOLERANCE
        ),
    }
}

/// Points that agree, and the usual distance and error of the median, in a sentence.
pub fn sentence(scores: &[Score]) -> String {
    if scores.is_empty() {
        return "no points with loss".to_owned();
    }
    let distances: Vec<f64> = scores.iter().map(Score::distance).collect();
    let errors: Vec<f64> = scores
        .iter()
        .flat_map(|score| &score.figures)
        .map(|figure| figure.difference_percent.abs())
        .collect();
    format!(
        "{} of {} points agree; distance {:.1} standard errors in the median, {:.0} at most; figures off by {:.1} % in the median, by {:.1} % in nine of ten",
        scores.iter().filter(|score| score.agrees()).count(),
        scores.len(),
        quantile_of(&distances, 0.5),
        quantile_of(&distances, 1.0),
        quantile_of(&errors, 0.5),
        quantile_of(&errors, 0.9),
    )
}

/// Flights by their sizes, several writes each; without processor time.
pub fn flights(hello: &[u32], flight: &[u32], finished: u32) -> Trace {
    let step = |from, bytes: &u32| Step { from, bytes: *bytes, cpu_ns: 0 };
    let mut steps: Vec<Step> = hello.iter().map(|bytes| step(Side::Client, bytes)).collect();
    steps.extend(flight.iter().map(|bytes| step(Side::Server, bytes)));
    let client_done = steps.len();
    steps.push(step(Side::Client, &finished));
    Trace {
        steps,
        client_done,
        server_after_ns: 0,
        hello_retry: false,
        resumed: false,
        cpu_spread: Vec::new(),
    }
}

/// A number between 0 and 1 of this flow, independent of its losses.
#[expect(clippy::cast_precision_loss, reason = "53 bits are exact")]
fn uniform(flow: u64) -> f64 {
    (mix(flow ^ 0x5eed) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Share of the sorted times that are not above this one.
fn below(times: &[f64], value: f64) -> f64 {
    count(times.partition_point(|time| *time <= value)) / count(times.len()).max(1.0)
}

#[expect(clippy::cast_precision_loss, reason = "counts of some 100,000")]
fn count(len: usize) -> f64 {
    len as f64
}

#[expect(clippy::cast_precision_loss, reason = "nanoseconds of an hour at most")]
fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

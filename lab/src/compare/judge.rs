//! Judges whether figures of two runs differ by more than noise.
//!
//! What is judged is one figure of each quantity, by its logarithm in each pass of both runs. A pass that is slower as
//! a whole is not a change of its figures: each figure is taken relative to its *anchor*, the median of its column in the
//! same pass. The difference of the means is divided by its standard error (Welch's t, with the variance of few passes
//! drawn towards that of all figures: Smyth 2004, *Statistical Applications in Genetics and Molecular Biology* 3.1).
//!
//! Passes follow each other and are alike; two runs may be a day apart. What varies between runs comes from a
//! [`Baseline`] of the machine, if there is one. Besides, if most figures are further apart than their passes explain, so
//! much is added to the standard error of each, and each is multiplied by as much, whichever is larger (as DerSimonian and Laird 1986 do between trials, *Controlled Clinical
//! Trials* 7; here by the median). Of the figures that are then named, five in a hundred are expected to be noise
//! (Benjamini and Hochberg 1995, *J. R. Statist. Soc. B* 57), and none is named for less than [`LEAST_EFFECT`].
//!
//! A figure that has the same value in every pass of a run needs no test. Sizes are such by their nature. Any other figure may
//! be so because it is rounded or counted, and then that takes as many passes and as large a change as a test does.

pub(super) mod anchor;
pub(super) mod spread;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use statrs::distribution::{ContinuousCDF, StudentsT};

use self::anchor::Anchors;
use self::spread::{Prior, variance};
use super::Judgement;
use super::baseline::{Baseline, Group};
use crate::plot::rough;
use crate::statistics::{mean, quantile_of};

/// Accepted share of false discoveries among the named figures.
const FALSE_DISCOVERIES: f64 = 0.05;
/// Least number of passes of each run without a baseline of the machine.
pub(super) const LEAST_PASSES: usize = 5;
/// Least change that is named, as a share: smaller ones matter to nobody, and a run that is long enough finds them
/// everywhere.
pub(super) const LEAST_EFFECT: f64 = 0.01;
/// Fewer figures than this cannot show that the machine itself has changed.
const FEW: usize = 20;

/// What a figure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The figure by which its quantity is judged.
    Main,
    /// Another statistic of a quantity that is judged by its main figure, such as a 99th percentile.
    Tail,
    /// A count that varies, such as one of retransmissions, without an interval.
    Count,
    /// A number of bytes or packets, which no machine changes.
    Size,
    /// A difference, which may be negative. The figures that it is the difference of are judged.
    Difference,
}

/// A figure of both runs.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    /// Experiment, table and column.
    pub(super) column: String,
    /// The row's name.
    pub(super) row: String,
    /// What it is.
    pub(super) role: Role,
    /// Values in the passes of the first run, and of the second.
    pub(super) runs: [Vec<f64>; 2],
}

/// The judgements on all figures.
#[derive(Debug)]
pub(super) struct Judged {
    /// For each figure: the judgement, and its reason.
    pub(super) figures: Vec<(Judgement, String)>,
    /// Columns that changed as wholes.
    pub(super) columns: Vec<Moved>,
    /// Distance of the runs beyond the spread of their passes, as a share; 0 if there is none, or if it cannot be
    /// told.
    pub(super) drift: f64,
    /// Figures that were judged.
    pub(super) judged: usize,
}

/// A column that changed as a whole.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Moved {
    /// Experiment, table and column.
    pub column: String,
    /// How much larger the second run's is, in per cent.
    pub percent: f64,
    /// Whether that is more than noise: without a baseline of the machine it cannot be known.
    pub judgement: Judgement,
}

/// A difference of logarithms and its standard error.
#[derive(Debug, Clone, Copy)]
struct Test {
    difference: f64,
    /// Standard error by the passes.
    error: f64,
    /// Standard deviation between runs, of the difference of two, by the baseline.
    between: f64,
    df: f64,
    /// Whether the figure stands alone, without an anchor.
    alone: bool,
}

impl Test {
    fn t(&self, drift: Drift) -> f64 {
        let error = self.error.hypot(self.between.max(drift.added)).max(self.error * drift.factor);
        if self.difference == 0.0 { 0.0 } else { self.difference.abs() / error }
    }

    /// Probability that noise alone is at least as far apart.
    fn chance(&self, drift: Drift) -> f64 {
        let t = self.t(drift);
        match StudentsT::new(0.0, 1.0, self.df) {
            Ok(student) if t.is_finite() => (2.0 * student.sf(t)).min(1.0),
            _ => 0.0,
        }
    }
}

/// How much further apart the runs are than their passes explain.
#[derive(Debug, Clone, Copy)]
struct Drift {
    /// Added to each standard error, as a standard deviation: what moves all figures by as much.
    added: f64,
    /// By which each standard error is multiplied at least: what moves noisy figures more.
    factor: f64,
}

impl Drift {
    const NONE: Self = Self { added: 0.0, factor: 1.0 };

    fn max(self, other: Self) -> Self {
        Self { added: self.added.max(other.added), factor: self.factor.max(other.factor) }
    }
}

/// Why a figure is not tested, or its test.
enum Considered {
    Settled(Judgement, String),
    Tested(Test),
}

/// Judges all figures at once.
pub(super) fn all(figures: &[Figure], baseline: Option<&Baseline>) -> Judged {
    let anchors = Anchors::of(figures);
    let prior = Prior::of(figures.iter().filter(|one| one.is_tested()).flat_map(|figure| {
        [0, 1].map(|run| anchors.relative(figure, run)).into_iter().filter(|run| run.len() > 1)
    }));
    let considered: Vec<Considered> = figures
        .iter()
        .map(|figure| match figure.settled(baseline) {
            Some((judgement, reason)) => Considered::Settled(judgement, reason),
            None => Considered::Tested(test(figure, &anchors, &prior, baseline)),
        })
        .collect();
    let tests: Vec<Test> = considered.iter().filter_map(Considered::test).collect();
    let anchored: Vec<Test> = tests.iter().filter(|test| !test.alone).copied().collect();
    let drift = drift(&tests).max(drift(&anchored));
    let moves = moves(figures, &anchors, baseline);
    // A figure without an anchor moves with the machine, as columns do.
    let alone = drift.max(Drift { added: usual_move(&moves), ..Drift::NONE });
    let drift_of = |test: &Test| if test.alone { alone } else { drift };
    let chances = tests
        .iter()
        .map(|test| test.chance(drift_of(test)))
        .chain(moves.iter().filter_map(|(_, test)| Some(test.as_ref()?.chance(Drift::NONE))));
    let bound = bound(chances);
    let judge = |test: &Test, drift: Drift| {
        let named = test.chance(drift) <= bound && test.difference.abs() > LEAST_EFFECT.ln_1p();
        if named { Judgement::Outside } else { Judgement::Within }
    };
    let columns = moves
        .iter()
        .filter(|(moved, _)| moved.percent.abs() > 100.0 * LEAST_EFFECT)
        .map(|(moved, test)| Moved {
            judgement: test.as_ref().map_or(Judgement::Unknown, |test| judge(test, Drift::NONE)),
            ..moved.clone()
        })
        .collect();
    let judged = considered
        .into_iter()
        .zip(figures)
        .map(|(considered, figure)| match considered {
            Considered::Settled(judgement, reason) => (judgement, reason),
            Considered::Tested(test) => {
                let (drift, passes) = (drift_of(&test), figure.runs.each_ref().map(Vec::len));
                (judge(&test, drift), test.words(drift, passes))
            }
        })
        .collect();
    Judged { figures: judged, columns, drift: drift.added, judged: tests.len() }
}

impl Considered {
    fn test(&self) -> Option<Test> {
        match self {
            Self::Tested(test) => Some(*test),
            Self::Settled(..) => None,
        }
    }
}

impl Test {
    fn words(&self, drift: Drift, [a, b]: [usize; 2]) -> String {
        let relative = if self.alone { "" } else { " relative to its column" };
        let chance = match self.chance(drift) {
            chance if chance < 1e-6 => "noise in less than one of a million".to_owned(),
            chance => format!("noise in {} %", rough(chance * 100.0, 2.0)),
        };
        let percent = 100.0 * self.difference.exp_m1();
        format!("{a} and {b} passes, {percent:+.2} %{relative}: {chance}")
    }
}

impl Figure {
    /// Whether it has the same value in every pass of a run.
    fn is_exact(&self) -> bool {
        let same = |run: &Vec<f64>| run.iter().all(|value| Some(value) == run.first());
        self.runs.iter().all(|run| run.len() > 1 && same(run))
    }

    fn is_positive(&self) -> bool {
        self.runs.iter().flatten().all(|value| *value > 0.0 && value.is_finite())
    }

    /// Whether it can have a test, however many passes there are.
    pub(super) fn is_tested(&self) -> bool {
        self.role == Role::Main && self.is_positive() && !self.is_exact()
    }

    /// The judgement that needs no test.
    fn settled(&self, baseline: Option<&Baseline>) -> Option<(Judgement, String)> {
        let unknown = |reason: &str| Some((Judgement::Unknown, reason.to_owned()));
        let exact = |changed: bool| {
            let judgement = if changed { Judgement::Outside } else { Judgement::Within };
            Some((judgement, "the same in every pass".to_owned()))
        };
        let fewer = |least: usize| self.runs.iter().any(|run| run.len() < least);
        match self.role {
            Role::Tail => return unknown("a tail without an interval"),
            Role::Count => return unknown("a count without an interval"),
            Role::Difference => return unknown("a difference: its parts are judged"),
            Role::Size if self.is_exact() => {
                return exact(self.runs[0].first() != self.runs[1].first());
            }
            Role::Size if fewer(2) => return unknown("too few passes"),
            Role::Size => return unknown("a size that varies"),
            Role::Main if !self.is_positive() => return unknown("not above zero in every pass"),
            Role::Main => {}
        }
        if self.is_exact() && !fewer(LEAST_PASSES) {
            let change = (mean(&self.runs[1]) / mean(&self.runs[0])).ln();
            return exact(change.abs() > LEAST_EFFECT.ln_1p());
        }
        let known = baseline.is_some_and(|baseline| baseline.group(&self.column).is_some());
        if fewer(LEAST_PASSES) && !known {
            return unknown("too few passes");
        }
        None
    }
}

fn test(figure: &Figure, anchors: &Anchors, prior: &Prior, baseline: Option<&Baseline>) -> Test {
    let runs = [0, 1].map(|run| anchors.relative(figure, run));
    let group = baseline.and_then(|baseline| baseline.group(&figure.column));
    let difference = mean(&runs[1]) - mean(&runs[0]);
    let (error, df) = welch(&runs, |values| match group {
        Some(group) if values.len() < LEAST_PASSES => (group.within, group.df),
        _ => prior.drawn(variance(values), count(values.len()) - 1.0),
    });
    let between = group.map_or(0.0, |group| (2.0 * group.between).sqrt());
    let df = group.map_or(df, |group| df.min(group.df));
    let alone = !anchors.has(&figure.column);
    Test { difference, error, between, df, alone }
}

/// Standard error and degrees of freedom of the difference of two means (Welch 1947, Satterthwaite 1946).
fn welch(runs: &[Vec<f64>; 2], variance: impl Fn(&[f64]) -> (f64, f64)) -> (f64, f64) {
    let parts = runs.each_ref().map(|run| {
        let (variance, df) = variance(run);
        (variance / count(run.len()).max(1.0), df.max(1.0))
    });
    let sum: f64 = parts.iter().map(|(part, _)| part).sum();
    let below: f64 = parts.iter().map(|(part, df)| part * part / df).sum();
    let df = if below > 0.0 { sum * sum / below } else { parts[0].1 };
    (sum.sqrt(), df)
}

/// The columns that have an anchor, how far it moved, and the test of that, if the baseline knows how anchors move.
fn moves(
    figures: &[Figure],
    anchors: &Anchors,
    baseline: Option<&Baseline>,
) -> Vec<(Moved, Option<Test>)> {
    let columns: BTreeSet<&String> = figures.iter().map(|figure| &figure.column).collect();
    columns
        .into_iter()
        .filter_map(|column| {
            let runs = anchors.of_column(column)?;
            let difference = mean(&runs[1]) - mean(&runs[0]);
            let group = baseline.and_then(|baseline| baseline.group(column));
            let test = group.map(|group: &Group| {
                let (error, df) = welch(runs, |values| match values.len() {
                    0..LEAST_PASSES => (group.anchor_within, group.runs_df),
                    _ => (variance(values), count(values.len()) - 1.0),
                });
                let between = (2.0 * group.anchor_between).sqrt();
                Test { difference, error, between, df: df.min(group.runs_df), alone: false }
            });
            let moved = Moved {
                column: column.clone(),
                percent: 100.0 * difference.exp_m1(),
                judgement: Judgement::Unknown,
            };
            Some((moved, test))
        })
        .collect()
}

/// How far columns usually moved: the standard deviation of normal moves with this median.
fn usual_move(moves: &[(Moved, Option<Test>)]) -> f64 {
    let sizes: Vec<f64> =
        moves.iter().map(|(moved, _)| (moved.percent / 100.0).ln_1p().abs()).collect();
    if sizes.is_empty() { 0.0 } else { quantile_of(&sizes, 0.5) / median_of_t(1e6) }
}

/// Distance of the runs beyond the spread of their passes, such that half of the figures are where half should be.
fn drift(tests: &[Test]) -> Drift {
    // Figures that are exactly equal say nothing about the machine.
    let moved: Vec<(&Test, f64)> = tests
        .iter()
        .filter(|test| test.difference != 0.0)
        .map(|test| (test, median_of_t(test.df)))
        .collect();
    let middle = |added: f64| {
        let drift = Drift { added, ..Drift::NONE };
        let shares = moved.iter().map(|(test, expected)| test.t(drift) / expected);
        quantile_of(&shares.filter(|share| !share.is_nan()).collect::<Vec<_>>(), 0.5)
    };
    let factor = middle(0.0);
    if moved.len() < FEW || factor <= 1.0 {
        return Drift::NONE;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while middle(high) > 1.0 && high < 1e6 {
        high *= 2.0;
    }
    for _ in 0..60 {
        let added = f64::midpoint(low, high);
        if middle(added) > 1.0 { low = added } else { high = added }
    }
    Drift { added: high, factor }
}

/// Median of the absolute value of Student's t.
fn median_of_t(df: f64) -> f64 {
    StudentsT::new(0.0, 1.0, df).map_or(0.6745, |student| student.inverse_cdf(0.75))
}

/// The largest p-value at which a figure is named.
fn bound(chances: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = chances.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let all = count(sorted.len());
    let is_named =
        |(place, chance): &(usize, &f64)| **chance <= FALSE_DISCOVERIES * count(place + 1) / all;
    let named = sorted.iter().enumerate().rfind(is_named);
    // No p-value is below zero.
    named.map_or(-1.0, |(_, chance)| *chance)
}

#[expect(clippy::cast_precision_loss, reason = "lengths of lists")]
pub(super) fn count(len: usize) -> f64 {
    len as f64
}

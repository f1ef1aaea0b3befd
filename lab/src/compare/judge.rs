//! Judges whether figures of two runs differ by more than noise.
//!
//! The repetitions of a run show how much the same figure varies on the same machine; without repetitions there are
//! only intervals, which know nothing of what varies between two runs. Each difference is compared with that spread
//! (Student's t, with the spread of few repetitions drawn towards that of all figures: Smyth 2004, *Statistical
//! Applications in Genetics and Molecular Biology* 3.1). If most figures are further apart than expected, the machine
//! itself has changed between the runs: then so much is added to the spread of each (as DerSimonian and Laird 1986 do
//! between trials, *Controlled Clinical Trials* 7; here by the median). Of the figures that are then named, five in a
//! hundred are expected to be noise (Benjamini and Hochberg 1995, *J. R. Statist. Soc. B* 57).

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::gamma::digamma;

use super::Judgement;
use crate::plot::{figure, rough};
use crate::statistics::{mean, quantile_of};

/// Accepted share of false discoveries among the named figures.
const FALSE_DISCOVERIES: f64 = 0.05;
/// Fewer figures than this cannot show that the machine itself has changed.
const FEW: usize = 20;
/// Degrees of freedom of a figure that was measured once: its interval is not trusted in the tails.
const ONCE: f64 = 4.0;
/// Half-width of a 95 % interval in standard errors.
const SIDE: f64 = 1.96;

/// A figure of both runs.
#[derive(Debug, Clone)]
pub(super) struct Figure {
    /// Values in the repetitions of the first run.
    pub(super) a: Vec<f64>,
    /// Values in the repetitions of the second run.
    pub(super) b: Vec<f64>,
    /// The intervals in the first repetition: low and high of the one, then of the other.
    pub(super) ends: Option<[f64; 4]>,
}

/// The judgements on all figures.
#[derive(Debug)]
pub(super) struct Judged {
    /// For each figure: the judgement, and its reason.
    pub(super) figures: Vec<(Judgement, String)>,
    /// Distance of the runs as wholes beyond their own spread, as a share; 0 if there is none, or if it cannot be
    /// told.
    pub(super) drift: f64,
}

/// A difference and its standard error, as shares of the figure.
struct Test {
    difference: f64,
    /// Standard error of the difference.
    error: f64,
    /// Degrees of freedom.
    df: f64,
    /// The same in every repetition of a run: a size, a number of packets. No machine changes it.
    is_exact: bool,
    by: String,
}

impl Test {
    /// The difference in standard errors, without its sign; `None` if both are zero.
    fn t(&self, drift: f64) -> Option<f64> {
        let drift = if self.is_exact { 0.0 } else { drift };
        let t = self.difference.abs() / self.error.hypot(drift);
        (!t.is_nan()).then_some(t)
    }
}

impl Figure {
    fn is_repeated(&self) -> bool {
        self.a.len() > 1 && self.b.len() > 1
    }

    /// The difference of the means, as a share of both.
    fn difference(&self) -> f64 {
        (mean(&self.b) - mean(&self.a)) / self.scale()
    }

    fn scale(&self) -> f64 {
        let scale = f64::midpoint(mean(&self.a), mean(&self.b)).abs();
        if scale > 0.0 { scale } else { 1.0 }
    }

    /// Degrees of freedom of the spread.
    fn df(&self) -> f64 {
        count(self.a.len() + self.b.len()) - 2.0
    }

    /// Variance within the repetitions, as a share of both, squared.
    fn variance(&self) -> f64 {
        let sum: f64 = [&self.a, &self.b]
            .into_iter()
            .map(|values| {
                let mean = mean(values);
                values.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
            })
            .sum();
        sum / self.df() / self.scale().powi(2)
    }

    /// The test of a figure that was measured once.
    fn once(&self) -> Option<Test> {
        let [a_low, a_high, b_low, b_high] = self.ends?;
        let error = (a_high - a_low).hypot(b_high - b_low) / (2.0 * SIDE) / self.scale();
        let ends = [a_low, a_high, b_low, b_high].map(figure);
        let by = format!("[{}, {}] and [{}, {}]", ends[0], ends[1], ends[2], ends[3]);
        Some(Test { difference: self.difference(), error, df: ONCE, is_exact: false, by })
    }
}

/// Judges all figures at once.
pub(super) fn all(figures: &[Figure]) -> Judged {
    let prior = Prior::of(figures);
    let tests: Vec<Option<Test>> = figures.iter().map(|figure| test(figure, &prior)).collect();
    let drift = drift(&tests.iter().flatten().collect::<Vec<_>>());
    let chances: Vec<Option<f64>> =
        tests.iter().map(|test| Some(chance(test.as_ref()?, drift))).collect();
    let bound = bound(chances.iter().flatten().copied());
    let judged = tests.into_iter().zip(chances).map(|(test, chance)| match (test, chance) {
        (Some(test), Some(chance)) => {
            let judgement = if chance <= bound { Judgement::Outside } else { Judgement::Within };
            (judgement, format!("{}: {}", test.by, in_words(chance)))
        }
        _ => (Judgement::Unknown, "measured once, without an interval".to_owned()),
    });
    Judged { figures: judged.collect(), drift }
}

fn test(figure: &Figure, prior: &Prior) -> Option<Test> {
    if !figure.is_repeated() {
        return figure.once();
    }
    let variance = figure.variance();
    let is_exact = variance == 0.0;
    let (variance, df) = match is_exact {
        true => (0.0, figure.df()),
        false => prior.drawn(variance, figure.df()),
    };
    let both = 1.0 / count(figure.a.len()) + 1.0 / count(figure.b.len());
    let by = format!("{} and {} repetitions", figure.a.len(), figure.b.len());
    let (difference, error) = (figure.difference(), (variance * both).sqrt());
    Some(Test { difference, error, df, is_exact, by })
}

/// Distance of the runs as wholes beyond the spread of their figures, such that half of the figures are where half
/// should be.
fn drift(tests: &[&Test]) -> f64 {
    // Figures that are exactly equal, or cannot vary, say nothing about the machine.
    let moved: Vec<(&Test, f64)> = tests
        .iter()
        .filter(|test| !test.is_exact && test.difference != 0.0)
        .map(|test| (*test, median_of_t(test.df)))
        .collect();
    let middle = |drift: f64| {
        let share = |(test, expected): &(&Test, f64)| Some(test.t(drift)? / expected);
        quantile_of(&moved.iter().filter_map(share).collect::<Vec<_>>(), 0.5)
    };
    if moved.len() < FEW || middle(0.0) <= 1.0 {
        return 0.0;
    }
    // No share is larger than 2.
    let (mut low, mut high) = (0.0, 4.0);
    for _ in 0..60 {
        let drift = f64::midpoint(low, high);
        if middle(drift) > 1.0 { low = drift } else { high = drift }
    }
    high
}

/// Probability that noise alone is at least as far apart.
fn chance(test: &Test, drift: f64) -> f64 {
    // Zero divided by zero.
    let Some(t) = test.t(drift) else { return 1.0 };
    match StudentsT::new(0.0, 1.0, test.df) {
        Ok(student) if t.is_finite() => (2.0 * student.sf(t)).min(1.0),
        _ => 0.0,
    }
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

/// The spread of all figures of these runs, which few repetitions of one figure cannot show.
struct Prior {
    /// Degrees of freedom that it is worth; `None` if the figures have nothing in common.
    df: f64,
    variance: f64,
}

impl Prior {
    /// From the moments of the logarithms of the variances.
    fn of(figures: &[Figure]) -> Self {
        let spread: Vec<(f64, f64)> = figures
            .iter()
            .filter(|figure| figure.is_repeated())
            .map(|figure| (figure.variance(), figure.df()))
            .filter(|(variance, _)| *variance > 0.0 && variance.is_finite())
            .collect();
        if spread.len() < FEW {
            return Self { df: 0.0, variance: 0.0 };
        }
        let logarithms: Vec<f64> = spread
            .iter()
            .map(|(variance, df)| variance.ln() - digamma(df / 2.0) + (df / 2.0).ln())
            .collect();
        let middle = mean(&logarithms);
        let squares: Vec<f64> = logarithms.iter().map(|one| (one - middle).powi(2)).collect();
        let own = mean(&spread.iter().map(|(_, df)| trigamma(df / 2.0)).collect::<Vec<_>>());
        let more = mean(&squares) * count(spread.len()) / (count(spread.len()) - 1.0) - own;
        let df = if more > 0.0 { 2.0 * trigamma_inverse(more) } else { 100.0 }.min(100.0);
        Self { df, variance: (middle + digamma(df / 2.0) - (df / 2.0).ln()).exp() }
    }

    /// A figure's variance, drawn towards that of all figures, and its degrees of freedom.
    fn drawn(&self, variance: f64, df: f64) -> (f64, f64) {
        let all = df + self.df;
        ((df * variance + self.df * self.variance) / all, all)
    }
}

/// The derivative of digamma, by its recurrence and its asymptotic series (Abramowitz and Stegun, 6.4.6 and 6.4.12).
fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    sum + 1.0 / x + y / 2.0 + y / x * (1.0 / 6.0 - y * (1.0 / 30.0 - y / 42.0))
}

/// The argument for which trigamma, which decreases, has this value.
fn trigamma_inverse(value: f64) -> f64 {
    let (mut low, mut high) = (1e-6_f64, 1e6_f64);
    for _ in 0..200 {
        let middle = (low * high).sqrt();
        if trigamma(middle) > value { low = middle } else { high = middle }
    }
    (low * high).sqrt()
}

fn in_words(chance: f64) -> String {
    match chance {
        chance if chance < 1e-6 => "noise in less than one of a million".to_owned(),
        chance => format!("noise in {} %", rough(chance * 100.0, 2.0)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "lengths of lists")]
fn count(len: usize) -> f64 {
    len as f64
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    /// Approximately normal: the sum of twelve.
    fn normal(random: &mut Pcg64Mcg) -> f64 {
        (0..12).map(|_| random.random::<f64>()).sum::<f64>() - 6.0
    }

    /// Figures of all sizes whose noise is between a tenth of a per cent and ten per cent; the second run is a little
    /// faster as a whole, and every tenth figure of it is doubled if `changed`.
    fn runs(random: &mut Pcg64Mcg, repetitions: usize, drift: f64, changed: bool) -> Vec<Figure> {
        (0..300)
            .map(|n| {
                let size = 10_f64.powf(random.random::<f64>() * 6.0 - 2.0);
                let noise = 10_f64.powf(-1.0 - 2.0 * random.random::<f64>());
                let mut values = |factor: f64| -> Vec<f64> {
                    let value = |_| size * factor * (1.0 + noise * normal(random));
                    (0..repetitions).map(value).collect()
                };
                let a = values(1.0);
                let b = values(drift * if changed && n % 10 == 0 { 2.0 } else { 1.0 });
                let error = size * noise * SIDE;
                let ends = [a[0] - error, a[0] + error, b[0] - error, b[0] + error];
                Figure { a, b, ends: Some(ends) }
            })
            .collect()
    }

    fn named(figures: &[Figure]) -> Vec<usize> {
        let judged = all(figures);
        let outside = |(n, (judgement, _)): (usize, &(Judgement, String))| {
            (*judgement == Judgement::Outside).then_some(n)
        };
        judged.figures.iter().enumerate().filter_map(outside).collect()
    }

    /// Hardly any figure of equal runs is named, even if one of them met a slower machine.
    #[test]
    fn noise_is_not_named() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        for repetitions in [1, 2, 3, 5] {
            for drift in [1.0, 1.02, 0.9] {
                let rounds = 8;
                let count: usize = (0..rounds)
                    .map(|_| named(&runs(&mut random, repetitions, drift, false)).len())
                    .sum();
                // Five in a hundred of 300 would be 15 in each; the bound is on the share of those that are named.
                assert!(count <= 5 * rounds, "{repetitions} {drift}: {count} in {rounds}");
            }
        }
    }

    /// Doubled figures are found among noise, and few others are named with them.
    #[test]
    fn what_changed_is_named() {
        let mut random = Pcg64Mcg::seed_from_u64(2);
        for repetitions in [1, 2, 3, 5] {
            let rounds = 5;
            let found: Vec<usize> = (0..rounds)
                .flat_map(|_| named(&runs(&mut random, repetitions, 1.0, true)))
                .collect();
            let right = found.iter().filter(|n| *n % 10 == 0).count();
            let wrong = found.len() - right;
            assert!(right >= 20 * rounds, "{repetitions}: {right} of {}", 30 * rounds);
            assert!(wrong * 10 <= found.len(), "{repetitions}: {wrong} of {}", found.len());
        }
    }

    #[test]
    fn what_never_varies_is_judged_by_itself() {
        let exact = |a: f64, b: f64| Figure { a: vec![a; 3], b: vec![b; 3], ends: None };
        assert_eq!(named(&[exact(1216.0, 1216.0), exact(1216.0, 1217.0), exact(0.0, 1.0)]), [1, 2]);
        let alone = Figure { a: vec![1.0], b: vec![9.0], ends: None };
        assert_eq!(all(&[alone]).figures[0].0, Judgement::Unknown);
        assert!(all(&[]).figures.is_empty());
    }

    #[test]
    fn functions_have_their_known_values() {
        // pi^2 / 6, pi^2 / 2, and pi^2 / 6 - 1.
        for (x, value) in [(1.0, 1.644_934_066_8), (0.5, 4.934_802_200_5), (2.0, 0.644_934_066_8)] {
            assert!((trigamma(x) - value).abs() < 1e-9, "{x}");
            assert!((trigamma_inverse(value) - x).abs() < 1e-6, "{value}");
        }
        assert!((median_of_t(4.0) - 0.740_697).abs() < 1e-5);
        assert_eq!(bound([0.001, 0.02, 0.9].into_iter()), 0.02);
        assert_eq!(bound([0.5, 0.9].into_iter()), -1.0);
    }
}

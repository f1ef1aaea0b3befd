//! Statistics for noisy machines: quantiles, and bootstrap intervals.

use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A figure with its interval.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Low end of the 95 % interval.
    pub low: f64,
    /// High end.
    pub high: f64,
}

impl Estimate {
    /// Whether the interval contains `value`.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// Quantile of sorted values at this share (0 to 1), with linear interpolation; 0 if there are no values.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    #[expect(clippy::cast_precision_loss, reason = "a length")]
    let place = share.clamp(0.0, 1.0) * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to the last index"
    )]
    let below = (place.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let (low, high) = (sorted[below], sorted[above]);
    low + (high - low) * (place - place.floor())
}

/// The same values, sorted.
pub fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// Mean; 0 if there are no values.
pub fn mean(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "a length")]
    let count = values.len() as f64;
    values.iter().sum::<f64>() / count
}

/// Quantile of unsorted values at this share.
pub fn quantile_of(values: &[f64], share: f64) -> f64 {
    quantile(&sorted(values.iter().copied()), share)
}

const RESAMPLES: usize = 1000;

/// A statistic of groups of samples with its 95 % interval by a two-level bootstrap: processes are resampled, then
/// the rounds within each. `samples[process][round]` has one value for each thing compared, all from the same round,
/// so that disturbances of both cancel out.
pub fn two_level<const N: usize>(
    samples: &[Vec<[f64; N]>],
    seed: u64,
    statistic: impl Fn(&[[f64; N]]) -> f64,
) -> Estimate {
    let all: Vec<[f64; N]> = samples.iter().flatten().copied().collect();
    let value = statistic(&all);
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut drawn = Vec::with_capacity(all.len());
    let resampled = sorted((0..RESAMPLES).map(|_| {
        drawn.clear();
        for _ in 0..samples.len() {
            let Some(process) = pick(&mut random, samples) else { continue };
            drawn.extend((0..process.len()).filter_map(|_| pick(&mut random, process).copied()));
        }
        statistic(&drawn)
    }));
    Estimate { value, low: quantile(&resampled, 0.025), high: quantile(&resampled, 0.975) }
}

/// A statistic of samples with its 95 % bootstrap interval.
pub fn bootstrap(samples: &[f64], seed: u64, statistic: impl Fn(&[f64]) -> f64) -> Estimate {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let resampled = sorted((0..RESAMPLES).map(|_| {
        let drawn: Vec<f64> =
            (0..samples.len()).filter_map(|_| pick(&mut random, samples).copied()).collect();
        statistic(&drawn)
    }));
    let (low, high) = (quantile(&resampled, 0.025), quantile(&resampled, 0.975));
    Estimate { value: statistic(samples), low, high }
}

fn pick<'a, T>(random: &mut impl Rng, values: &'a [T]) -> Option<&'a T> {
    if values.is_empty() { None } else { values.get(random.random_range(0..values.len())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile(&values, 0.0), 1.0);
        assert_eq!(quantile(&values, 0.5), 2.5);
        assert_eq!(quantile(&values, 1.0), 4.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }

    #[test]
    fn a_bootstrap_repeats_and_finds_what_is_there() {
        let samples: Vec<Vec<[f64; 2]>> = (0..5)
            .map(|process| {
                (0..100)
                    .map(|round| {
                        let noise = f64::from((process * 31 + round * 17) % 10);
                        [110.0 + noise, 100.0 + noise]
                    })
                    .collect()
            })
            .collect();
        let difference =
            |rounds: &[[f64; 2]]| mean(&rounds.iter().map(|[a, b]| a - b).collect::<Vec<_>>());
        let first = two_level(&samples, 7, difference);
        assert_eq!(first, two_level(&samples, 7, difference));
        assert!((first.value - 10.0).abs() < 1e-9 && first.contains(10.0));
        let plain = bootstrap(&[1.0, 2.0, 3.0, 4.0, 5.0], 7, mean);
        assert!(plain.low < 3.0 && 3.0 < plain.high, "{plain:?}");
    }
}

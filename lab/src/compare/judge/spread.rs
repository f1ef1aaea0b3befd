//! The variance of figures between passes, and what few passes of one figure learn from all.

use statrs::function::gamma::digamma;

use super::{FEW, count};
use crate::statistics::mean;

/// The variance of some values; 0 of fewer than two.
pub(in crate::compare) fn variance(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let middle = mean(values);
    let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
    squares / (count(values.len()) - 1.0)
}

/// The spread of all figures, which few passes of one figure cannot show.
pub(super) struct Prior {
    /// Degrees of freedom that it is worth; 0 if the figures have nothing in common.
    df: f64,
    variance: f64,
}

impl Prior {
    /// From the moments of the logarithms of the variances of these lists.
    pub(super) fn of(lists: impl Iterator<Item = Vec<f64>>) -> Self {
        let spread: Vec<(f64, f64)> = lists
            .map(|values| (variance(&values), count(values.len()) - 1.0))
            .filter(|(variance, df)| *variance > 0.0 && variance.is_finite() && *df > 0.0)
            .collect();
        if spread.len() < 2 * FEW {
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

    /// A variance, drawn towards that of all figures, and its degrees of freedom.
    pub(super) fn drawn(&self, variance: f64, df: f64) -> (f64, f64) {
        let all = df + self.df;
        ((df * variance + self.df * self.variance) / all.max(f64::MIN_POSITIVE), all)
    }
}

/// The derivative of digamma, by its recurrence and its asymptotic series (Abramowitz and Stegun, 6.4.6 and 6.4.12).
pub(super) fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 10.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    sum + 1.0 / x + y / 2.0 + y / x * (1.0 / 6.0 - y * (1.0 / 30.0 - y / 42.0))
}

/// The argument for which trigamma, which decreases, has this value.
pub(super) fn trigamma_inverse(value: f64) -> f64 {
    let (mut low, mut high) = (1e-6_f64, 1e6_f64);
    for _ in 0..200 {
        let middle = (low * high).sqrt();
        if trigamma(middle) > value { low = middle } else { high = middle }
    }
    (low * high).sqrt()
}

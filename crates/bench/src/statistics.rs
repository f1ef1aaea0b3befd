//! The few statistics that the table needs.

use std::time::Duration;

/// The value below which this share of the samples lies.
pub(crate) fn quantile(samples: &mut [Duration], share: f64) -> Duration {
    samples.sort_unstable();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a length"
    )]
    let index = (share * samples.len() as f64) as usize;
    samples.get(index.min(samples.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// `a / b`
pub(crate) fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

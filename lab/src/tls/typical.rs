//! The typical cost of a handshake.

use super::implementation::{Stack, WARM_UP};
use crate::error::LabError;
use crate::statistics::{mean, quantile, quantile_of, sorted};
use crate::subject::{Kind, Subject};
use crate::trace::Trace;

/// A handshake that took longer than so many medians counts as interrupted.
const INTERRUPTED: f64 = 4.0;

/// The mean of those that were not interrupted: for costs that vary by themselves, which percentiles do not describe.
pub fn undisturbed_mean(values: &[f64]) -> f64 {
    let sorted = sorted(values.iter().copied());
    let limit = INTERRUPTED * quantile(&sorted, 0.5);
    let below = sorted.partition_point(|value| *value <= limit);
    mean(&sorted[..below])
}

/// A trace with the sizes of a handshake and the typical CPU time of each flight: the 10th percentile of `rounds`
/// handshakes, or the mean where costs vary by themselves (ML-DSA's rejection sampling). If lengths are random, the
/// longest is taken.
pub fn typical(stack: &dyn Stack, subject: &Subject, rounds: usize) -> Result<Trace, LabError> {
    let mut handshaker = stack.prepare(subject)?;
    let mut trace = handshaker.handshake()?;
    for _ in 1..WARM_UP {
        handshaker.handshake()?;
    }
    let mut spent: Vec<Vec<f64>> = vec![Vec::with_capacity(rounds); trace.steps.len() + 1];
    for _ in 0..rounds.max(1) {
        let next = handshaker.handshake()?;
        if next.steps.len() != trace.steps.len() {
            return Err(LabError::failed("handshakes of one kind differ in flights"));
        }
        for (step, other) in trace.steps.iter_mut().zip(&next.steps) {
            step.bytes = step.bytes.max(other.bytes);
        }
        let times = next.steps.iter().map(|step| step.cpu_ns).chain([next.server_after_ns]);
        for (samples, time) in spent.iter_mut().zip(times) {
            #[expect(clippy::cast_precision_loss, reason = "nanoseconds of one handshake")]
            samples.push(time as f64);
        }
    }
    // The signature is made in the last flight of the handshake.
    let varies = |step: usize| {
        subject.cost_varies()
            && (step + 1 == trace.client_done
                || step == trace.client_done && subject.kind == Kind::Mutual)
    };
    let figure = |step: usize, samples: &[f64]| {
        let figure =
            if varies(step) { undisturbed_mean(samples) } else { quantile_of(samples, 0.1) };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
        let nanos = figure.round() as u64;
        nanos
    };
    let figures: Vec<u64> =
        spent.iter().enumerate().map(|(step, samples)| figure(step, samples)).collect();
    for (step, figure) in trace.steps.iter_mut().zip(&figures) {
        step.cpu_ns = *figure;
    }
    trace.server_after_ns = figures.last().copied().unwrap_or_default();
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_interrupted_does_not_count() {
        assert!((undisturbed_mean(&[1.0, 2.0, 3.0, 100.0]) - 2.0).abs() < 1e-9);
        assert!(undisturbed_mean(&[]).abs() < 1e-9);
    }
}

//! The typical cost of a handshake.

use super::implementation::{Handshaker, Stack, WARM_UP};
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

/// Handshakes of one subject between those of the others.
const TURN: usize = 10;

/// Traces with the sizes of a handshake and the typical CPU time of each flight: the 10th percentile of `rounds`
/// handshakes, or the mean where costs vary by themselves (ML-DSA's rejection sampling). If lengths are random, the
/// longest is taken. The subjects take turns, because the speed of a machine changes from one second to the next: what is
/// measured one after the other differs by that, too. `None` if it was interrupted.
pub fn typical(
    stack: &dyn Stack,
    subjects: &[Subject],
    rounds: usize,
    stop: &dyn Fn() -> bool,
) -> Result<Option<Vec<Trace>>, LabError> {
    let mut all = Vec::with_capacity(subjects.len());
    for subject in subjects {
        all.push(Samples::prepare(stack, subject)?);
    }
    let mut left = rounds.max(1);
    while left > 0 {
        let turn = left.min(TURN);
        for samples in &mut all {
            if stop() {
                return Ok(None);
            }
            for _ in 0..turn {
                samples.add()?;
            }
        }
        // Nobody is always the next of the same one's.
        all.reverse();
        left -= turn;
    }
    if rounds.max(1).div_ceil(TURN) % 2 == 1 {
        all.reverse();
    }
    Ok(Some(all.into_iter().map(Samples::trace).collect()))
}

/// The handshakes of a subject.
struct Samples<'a> {
    subject: &'a Subject,
    handshaker: Box<dyn Handshaker>,
    trace: Trace,
    /// CPU time of each flight, and of the server afterwards, in nanoseconds.
    spent: Vec<Vec<f64>>,
}

impl<'a> Samples<'a> {
    fn prepare(stack: &dyn Stack, subject: &'a Subject) -> Result<Self, LabError> {
        let mut handshaker = stack.prepare(subject)?;
        let trace = handshaker.handshake()?;
        for _ in 1..WARM_UP {
            handshaker.handshake()?;
        }
        let spent = vec![Vec::new(); trace.steps.len() + 1];
        Ok(Self { subject, handshaker, trace, spent })
    }

    fn add(&mut self) -> Result<(), LabError> {
        let next = self.handshaker.handshake()?;
        if next.steps.len() != self.trace.steps.len() {
            return Err(LabError::failed("handshakes of one kind differ in flights"));
        }
        for (step, other) in self.trace.steps.iter_mut().zip(&next.steps) {
            step.bytes = step.bytes.max(other.bytes);
        }
        let times = next.steps.iter().map(|step| step.cpu_ns).chain([next.server_after_ns]);
        for (samples, time) in self.spent.iter_mut().zip(times) {
            #[expect(clippy::cast_precision_loss, reason = "nanoseconds of one handshake")]
            samples.push(time as f64);
        }
        Ok(())
    }

    fn trace(self) -> Trace {
        let Self { subject, mut trace, spent, .. } = self;
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
        trace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Subjects take turns, and each has its own trace.
    #[test]
    fn traces_are_in_the_order_of_their_subjects() {
        let stack = *crate::tls::STACKS.first().unwrap();
        let subject = |group| Subject::new(group, "ECDSA P-256", 1).unwrap();
        let subjects = ["x25519", "X25519MLKEM768", "secp256r1"].map(subject);
        for rounds in [1, TURN, 2 * TURN, 2 * TURN + 1] {
            let traces = typical(stack, &subjects, rounds, &|| false).unwrap().unwrap();
            let hellos: Vec<u32> = traces.iter().map(|trace| trace.steps[0].bytes).collect();
            assert!(hellos[0] < hellos[2] && hellos[2] < hellos[1], "{rounds}: {hellos:?}");
            assert!(traces.iter().all(|trace| trace.steps[0].cpu_ns > 0), "{rounds}");
        }
        assert_eq!(typical(stack, &subjects, 1, &|| true).unwrap(), None);
    }

    #[test]
    fn what_was_interrupted_does_not_count() {
        assert!((undisturbed_mean(&[1.0, 2.0, 3.0, 100.0]) - 2.0).abs() < 1e-9);
        assert!(undisturbed_mean(&[]).abs() < 1e-9);
    }
}

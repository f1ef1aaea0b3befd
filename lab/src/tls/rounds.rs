//! The measuring protocol, which makes ratios of CPU times trustworthy on a busy machine.
//!
//! Several processes, since the layout and caches of a process do not change; in each, after [`WARM_UP`], rounds in
//! which every configuration makes one handshake, in random order, so that a disturbance affects all of them. Costs
//! that do not vary by themselves are compared by their 10th percentile, those that do (ML-DSA's rejection sampling)
//! by the mean of all that were not interrupted; intervals come from a bootstrap over processes and the rounds
//! within.

use std::sync::atomic::AtomicBool;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

pub use super::helper::{ask, repeating, typical_trace};
use super::helper::{ask_process, unexpected};
use super::implementation::{Handshaker, WARM_UP};
pub use super::orders::{Cold, Offer, Times};
use super::orders::{Line, Order, Rounds};
use super::stack;
pub use super::typical::undisturbed_mean;
use crate::error::LabError;
use crate::result::Control;
use crate::run::Settings;
use crate::statistics::{Estimate, two_level};
use crate::subject::{Subject, SubjectNames};
use crate::time::thread_cpu;
use crate::trace::{Side, Trace};

/// Processes of a full run.
pub const PROCESSES: usize = 5;
/// Rounds of each process of a full run.
pub const ROUNDS: usize = 300;

/// Whose time to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The client's.
    Client,
    /// The server's.
    Server,
    /// Both together.
    Both,
}

/// Results of the rounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The order of the subjects.
    pub subjects: Vec<SubjectNames>,
    /// `samples[process][round][subject]`.
    pub samples: Vec<Vec<Vec<Times>>>,
    /// One-time costs of each process.
    pub cold: Vec<Cold>,
}

/// Measures in this many processes. A subject that occurs twice in the list is its own control: see
/// [`Measured::control`].
pub fn measure(
    settings: &Settings,
    stack: &str,
    subjects: &[Subject],
    processes: usize,
    rounds: usize,
    stop: &AtomicBool,
) -> Result<Measured, LabError> {
    let stack = super::stack(stack)?;
    let subjects: Vec<SubjectNames> = subjects.iter().map(SubjectNames::from).collect();
    let mut measured = Measured { subjects: subjects.clone(), ..Measured::default() };
    for process in 0..processes.max(1) as u64 {
        let seed = settings.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(process);
        let order = Order::Rounds(Rounds {
            stack: stack.name().to_owned(),
            subjects: subjects.clone(),
            rounds,
            seed,
        });
        let mut samples = Vec::with_capacity(rounds);
        ask_process(&settings.executable, stack, &order, stop, |line| {
            match line {
                Line::Cold(cold) => measured.cold.push(cold),
                Line::Round(round) if round.len() == subjects.len() => samples.push(round),
                _ => return Err(unexpected()),
            }
            Ok(())
        })?;
        if samples.len() != rounds {
            return Err(LabError::failed(format!("{} rounds of {rounds}", samples.len())));
        }
        measured.samples.push(samples);
    }
    Ok(measured)
}

/// The same in this process alone.
pub fn in_process(
    stack: &str,
    subjects: &[Subject],
    rounds: usize,
    seed: u64,
) -> Result<Measured, LabError> {
    let subjects: Vec<SubjectNames> = subjects.iter().map(SubjectNames::from).collect();
    let order = Rounds { stack: stack.to_owned(), subjects: subjects.clone(), rounds, seed };
    let mut measured = Measured { subjects, ..Measured::default() };
    let mut samples = Vec::new();
    perform(&order, &mut |line| {
        match line {
            Line::Cold(cold) => measured.cold.push(cold),
            Line::Round(round) => samples.push(round),
            _ => return Err(unexpected()),
        }
        Ok(())
    })?;
    measured.samples.push(samples);
    Ok(measured)
}

pub(super) fn perform(
    order: &Rounds,
    tell: &mut dyn FnMut(Line) -> Result<(), LabError>,
) -> Result<(), LabError> {
    let begun = thread_cpu();
    aws_lc_rs::rand::fill(&mut [0; 32]).map_err(LabError::failed)?;
    let entropy = thread_cpu() - begun;
    let stack = stack(&order.stack)?;
    let mut ready = order
        .subjects
        .iter()
        .map(|names| stack.prepare(&Subject::try_from(names)?))
        .collect::<Result<Vec<_>, LabError>>()?;
    let mut first = Vec::with_capacity(ready.len());
    for handshaker in &mut ready {
        first.push(once(handshaker.as_mut())?);
    }
    let entropy_ns = u64::try_from(entropy.as_nanos()).unwrap_or(u64::MAX);
    tell(Line::Cold(Cold { entropy_ns, first }))?;
    let mut random = Pcg64Mcg::seed_from_u64(order.seed);
    let mut sequence: Vec<usize> = (0..ready.len()).collect();
    for round in 0..WARM_UP + order.rounds {
        sequence.shuffle(&mut random);
        let mut times = vec![Times(0, 0); ready.len()];
        for index in &sequence {
            times[*index] = once(ready[*index].as_mut())?;
        }
        if round >= WARM_UP {
            tell(Line::Round(times))?;
        }
    }
    Ok(())
}

fn once(handshaker: &mut dyn Handshaker) -> Result<Times, LabError> {
    let trace: Trace = handshaker.handshake()?;
    Ok(Times(trace.cpu_ns(Side::Client), trace.cpu_ns(Side::Server)))
}

impl Times {
    fn micros(self, part: Part) -> f64 {
        let nanos = match part {
            Part::Client => self.0,
            Part::Server => self.1,
            Part::Both => self.0 + self.1,
        };
        #[expect(clippy::cast_precision_loss, reason = "nanoseconds of one handshake")]
        let nanos = nanos as f64;
        nanos / 1000.0
    }
}

fn typical(mut values: Vec<f64>, varies: bool) -> f64 {
    if varies { undisturbed_mean(&values) } else { tenth(&mut values) }
}

/// The 10th percentile by the same rule as `quantile`, without sorting everything: the bootstrap needs it a thousand
/// times.
fn tenth(values: &mut [f64]) -> f64 {
    let Some(last) = values.len().checked_sub(1) else { return 0.0 };
    let below = last / 10;
    let (_, low, above) = values.select_nth_unstable_by(below, f64::total_cmp);
    let low = *low;
    let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(low);
    #[expect(clippy::cast_precision_loss, reason = "below 10")]
    let rest = (last % 10) as f64 / 10.0;
    low + (high - low) * rest
}

impl Measured {
    /// Whether the cost of this subject varies by itself.
    fn varies(&self, index: usize) -> bool {
        let subject = self.subjects.get(index).map(Subject::try_from);
        subject.and_then(Result::ok).is_some_and(|subject| subject.cost_varies())
    }

    /// Times of these two in microseconds, `[process][round]`.
    fn pairs(&self, over: usize, under: usize, part: Part) -> Vec<Vec<[f64; 2]>> {
        let pair = |round: &Vec<Times>| {
            Some([round.get(over)?.micros(part), round.get(under)?.micros(part)])
        };
        self.samples.iter().map(|rounds| rounds.iter().filter_map(pair).collect()).collect()
    }

    /// Times of this subject in microseconds, in the order of measuring.
    pub fn micros(&self, index: usize, part: Part) -> Vec<f64> {
        self.pairs(index, index, part).iter().flatten().map(|pair| pair[0]).collect()
    }

    /// Cost of a handshake in microseconds: the 10th percentile, or the mean where the cost varies by itself.
    pub fn cost(&self, index: usize, part: Part, seed: u64) -> Estimate {
        let varies = self.varies(index);
        two_level(&self.pairs(index, index, part), seed, |rounds| {
            typical(rounds.iter().map(|pair| pair[0]).collect(), varies)
        })
    }

    /// The same without its interval.
    pub fn typical(&self, index: usize, part: Part) -> f64 {
        typical(self.micros(index, part), self.varies(index))
    }

    /// Ratio of the costs of two subjects, by the same statistic for both.
    pub fn ratio(&self, over: usize, under: usize, part: Part, seed: u64) -> Estimate {
        self.compare(over, under, part, seed, |over, under| over / under)
    }

    /// Difference of the costs of two subjects, in microseconds.
    pub fn difference(&self, over: usize, under: usize, part: Part, seed: u64) -> Estimate {
        self.compare(over, under, part, seed, |over, under| over - under)
    }

    fn compare(
        &self,
        over: usize,
        under: usize,
        part: Part,
        seed: u64,
        by: impl Fn(f64, f64) -> f64,
    ) -> Estimate {
        let varies = self.varies(over) || self.varies(under);
        two_level(&self.pairs(over, under, part), seed, |rounds| {
            let side =
                |index: usize| typical(rounds.iter().map(|pair| pair[index]).collect(), varies);
            by(side(0), side(1))
        })
    }

    /// Ratio of two equal subjects: the effect of noise alone.
    pub fn control(&self, what: &str, one: usize, other: usize, part: Part, seed: u64) -> Control {
        let ratio = self.ratio(one, other, part, seed);
        Control { what: what.to_owned(), ratio: ratio.value, low: ratio.low, high: ratio.high }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{quantile, sorted};

    #[test]
    fn the_tenth_is_the_quantile() {
        for len in 0..50_u32 {
            let values: Vec<f64> = (0..len).map(|index| f64::from(index * 37 % 50)).collect();
            let expected = quantile(&sorted(values.iter().copied()), 0.1);
            assert!((tenth(&mut values.clone()) - expected).abs() < 1e-9, "{len}");
        }
    }

    #[test]
    fn ratios_are_found_and_what_is_the_same_is_the_same() {
        let names = |group: &str| SubjectNames {
            key_exchange: group.to_owned(),
            authentication: "ECDSA P-256".to_owned(),
            certificates: 1,
            kind: crate::subject::Kind::Full,
        };
        let round = |index: u64| {
            let noise = index * 7919 % 97 * 1000;
            vec![
                Times(60_000 + noise, 60_000),
                Times(50_000 + noise, 50_000),
                Times(50_000 + noise, 50_000),
            ]
        };
        let measured = Measured {
            subjects: ["X25519MLKEM768", "x25519", "x25519"].map(names).to_vec(),
            samples: (0..5).map(|_| (0..100).map(round).collect()).collect(),
            cold: Vec::new(),
        };
        let ratio = measured.ratio(0, 1, Part::Server, 1);
        assert!((ratio.value - 1.2).abs() < 1e-9 && ratio.contains(1.2));
        assert!(measured.control("x25519", 1, 2, Part::Both, 1).holds());
        let more = measured.difference(0, 1, Part::Both, 1);
        assert!((more.value - 20.0).abs() < 1e-9, "{more:?}");
        assert!((measured.typical(1, Part::Server) - 50.0).abs() < 1e-9);
    }
}

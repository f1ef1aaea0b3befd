//! Shared by the experiments with a real server: the callers, the comparison of two ways of calling, and its wording.

use crate::client::Caller;
use crate::effect::{self, Effect};
use crate::result::{Control, Series, Verdict};
use crate::statistics::{Estimate, quantile_of, sorted, two_level};

/// Kinds of the servers' certificates, in the order of [`Who`]'s targets.
pub const CERTIFICATES: &[&str] = &["ecdsa-p256", "ml-dsa-65"];

/// A key exchange with a server certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who {
    /// Name in tables and legends.
    pub name: &'static str,
    group: &'static str,
    target: usize,
}

/// What the published experiments call classical.
pub const CLASSICAL: Who = Who { name: "P-256", group: "secp256r1", target: 0 };
/// The same certificate, with X25519: what most browsers and servers negotiated before hybrids.
pub const X25519: Who = Who { name: "X25519", group: "X25519", target: 0 };
/// Hybrid key exchange, classical certificate.
pub const HYBRID: Who = Who { name: "X25519MLKEM768", group: "X25519MLKEM768", target: 0 };
/// Hybrid key exchange, post-quantum certificate.
pub const ML_DSA: Who =
    Who { name: "X25519MLKEM768, ML-DSA-65", group: "X25519MLKEM768", target: 1 };

impl Who {
    /// As a caller for a client's job.
    pub fn caller(self, sessions: bool) -> Caller {
        Caller { target: self.target, group: self.group.into(), sessions }
    }
}

/// Two quantities from the same rounds: the second compared with the first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contrast {
    /// Ratio of the first's median to the second's: for times, the ratio of rates.
    pub rate: Estimate,
    /// The second's median minus the first's.
    pub added: Estimate,
}

/// Compares times; `rounds[process][round]` are those of the first and of the second.
pub fn contrast(rounds: &[Vec<[f64; 2]>], seed: u64) -> Contrast {
    let median = |rounds: &[[f64; 2]], index: usize| {
        let column: Vec<f64> =
            rounds.iter().map(|[a, b]| if index == 0 { *a } else { *b }).collect();
        quantile_of(&column, 0.5)
    };
    Contrast {
        rate: two_level(rounds, seed, |rounds| median(rounds, 0) / median(rounds, 1)),
        added: two_level(rounds, seed, |rounds| median(rounds, 1) - median(rounds, 0)),
    }
}

impl Contrast {
    /// As a control, where both are the same.
    pub fn control(&self, what: impl Into<String>) -> Control {
        Control {
            what: what.into(),
            ratio: self.rate.value,
            low: self.rate.low,
            high: self.rate.high,
        }
    }

    /// The verdict on a claim that rates fall by `published` (a share), by the interval and the control
    /// ([`effect::agrees`]).
    pub fn verdict(&self, control: &Control, published: f64, tolerance: f64) -> Verdict {
        effect::agrees(&effect::as_change(&self.rate), -published, tolerance, Some(control))
    }

    /// What the rate says about an effect, beside the control.
    pub fn effect(&self, control: &Control) -> Effect {
        effect::beside(&self.rate, control)
    }

    /// The change of the rate in words.
    pub fn told(&self, control: &Control) -> String {
        self.effect(control).words(&change(&self.rate))
    }

    /// The time added, in words. It is the same effect as that of the rate, so the rate decides about it, too.
    pub fn told_us(&self, control: &Control) -> String {
        self.effect(control).words(&added_us(&self.added))
    }

    /// Whether there is an effect beyond the noise of the control.
    pub fn is_beyond(&self, control: &Control) -> bool {
        self.effect(control) == Effect::Shown
    }
}

/// Whether a ratio differs from 1 by more than the noise of the control.
pub fn is_beyond(ratio: &Estimate, control: &Control) -> bool {
    effect::beside(ratio, control) == Effect::Shown
}

/// The change of a ratio in words, as far as it is beyond noise.
pub fn told(ratio: &Estimate, control: &Control) -> String {
    effect::beside(ratio, control).words(&change(ratio))
}

/// A warning about a control that does not hold, to append to a sentence.
pub fn warning(control: &Control) -> &'static str {
    if control.holds() {
        ""
    } else {
        " The control does not hold, so small differences here are not to be believed."
    }
}

/// The ratio of rates as a change in per cent, with its interval.
pub fn change(rate: &Estimate) -> String {
    let part = |value: f64| (value - 1.0) * 100.0;
    format!("{:+.1} % [{:+.1}, {:+.1}]", part(rate.value), part(rate.low), part(rate.high))
}

/// Seconds as microseconds with their interval.
pub fn added_us(added: &Estimate) -> String {
    let part = |value: f64| value * 1e6;
    format!("{:+.0} µs [{:+.0}, {:+.0}]", part(added.value), part(added.low), part(added.high))
}

/// A cumulative distribution as steps, thinned out to what can be seen.
pub fn distribution(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Series {
    const STEPS: usize = 400;
    let values = sorted(values);
    let every = values.len().div_ceil(STEPS).max(1);
    #[expect(clippy::cast_precision_loss, reason = "a length")]
    let total = values.len() as f64;
    let points = values
        .iter()
        .enumerate()
        .filter(|(index, _)| (index + 1) % every == 0 || index + 1 == values.len())
        .map(|(index, value)| {
            #[expect(clippy::cast_precision_loss, reason = "a length")]
            let below = (index + 1) as f64;
            [*value, below / total]
        })
        .collect();
    Series { name: name.into(), points, band: Vec::new() }
}

/// A seed for each part of an experiment, so that no two parts use the same.
pub fn seed(seed: u64, part: u64) -> u64 {
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(first: f64, second: f64) -> Vec<Vec<[f64; 2]>> {
        let noise = |index: u32| f64::from(index * 7 % 11) * 0.001;
        (0..5)
            .map(|process| {
                (0..20)
                    .map(|round| {
                        [first + noise(process + round), second + noise(process + 3 * round)]
                    })
                    .collect()
            })
            .collect()
    }

    #[test]
    fn a_contrast_says_how_much_and_whether() {
        let nothing = contrast(&rounds(1.0, 1.0), 1);
        let control = nothing.control("the same");
        assert!(control.holds() && !nothing.is_beyond(&control), "{nothing:?}");
        assert_eq!(nothing.verdict(&control, 0.0, 0.01), Verdict::Holds, "nothing is lost");
        let slower = contrast(&rounds(1.0, 1.25), 1);
        assert!((slower.rate.value - 0.8).abs() < 0.01, "{slower:?}");
        assert!((slower.added.value - 0.25).abs() < 0.01);
        assert_eq!(slower.verdict(&control, 0.2, 0.01), Verdict::Holds);
        assert_eq!(slower.verdict(&control, 0.1, 0.01), Verdict::Partly);
        assert_eq!(slower.verdict(&control, 0.02, 0.01), Verdict::Partly, "ten times as much");
        // The point alone does not make a claim hold: a wide interval contains other effects, too.
        let unsure = Estimate { low: 0.75, high: 0.85, ..slower.rate };
        let unsure = Contrast { rate: unsure, ..slower };
        assert!(unsure.is_beyond(&control));
        assert_eq!(unsure.verdict(&control, 0.2, 0.01), Verdict::Undecided);
        assert_eq!(nothing.verdict(&control, 0.2, 0.01), Verdict::Differs, "that would be seen");
        let told = slower.told(&control);
        assert!(told.starts_with("-20") || told.starts_with("-19"), "{told}");
        assert!(slower.told_us(&control).starts_with('+'), "{}", slower.told_us(&control));
        // One question, one answer: the rate and the time added are called the same.
        for contrast in [&slower, &nothing] {
            let effect = contrast.effect(&control);
            assert_eq!(contrast.told(&control), effect.words(&change(&contrast.rate)));
            assert_eq!(contrast.told_us(&control), effect.words(&added_us(&contrast.added)));
        }
        assert!(nothing.told(&control).starts_with("no difference"));
        assert_eq!(contrast(&rounds(1.25, 1.0), 1).verdict(&control, 0.2, 0.01), Verdict::Differs);
        // Noise as large as the effect decides nothing.
        let loud = Control { low: 0.7, high: 1.3, ..control };
        assert_eq!(slower.verdict(&loud, 0.2, 0.01), Verdict::Undecided);
        assert_eq!(nothing.verdict(&loud, 0.0, 0.01), Verdict::Undecided);
        let broken = Control { low: 1.1, ..loud };
        assert_eq!(slower.verdict(&broken, 0.2, 0.01), Verdict::Undecided);
        assert!(slower.told(&broken).contains("cannot be judged"));
        assert!(!warning(&broken).is_empty() && warning(&nothing.control("")).is_empty());
    }

    #[test]
    fn words_have_signs_and_units() {
        let estimate = Estimate { value: 0.977, low: 0.97, high: 0.984 };
        assert_eq!(change(&estimate), "-2.3 % [-3.0, -1.6]");
        let added = Estimate { value: 0.000_216, low: 0.000_2, high: 0.000_23 };
        assert_eq!(added_us(&added), "+216 µs [+200, +230]");
    }

    #[test]
    fn a_distribution_ends_at_one() {
        let steps = distribution("some", (0..1000).map(f64::from));
        assert!(steps.points.len() <= 401);
        assert_eq!(steps.points.last(), Some(&[999.0, 1.0]));
        assert!(steps.points.is_sorted_by(|a, b| a[0] <= b[0] && a[1] < b[1]));
        assert!(distribution("none", []).points.is_empty());
    }
}

//! Decides whether an estimate shows an effect. All experiments decide by this rule, so that a figure is not called an
//! effect in one sentence and noise in the next.
//!
//! Two things decide: the interval, and the least effect that the measurement can tell from noise, which a control
//! shows ([`Control::noise`]).

use crate::result::Control;
use crate::statistics::Estimate;

/// What an estimate says about an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The interval excludes "no effect", and the effect is larger than the least one.
    Shown,
    /// The interval excludes "no effect", but an effect of this size may be noise.
    WithinNoise,
    /// The interval contains "no effect" and nothing larger than the least effect.
    Absent,
    /// The interval contains both "no effect" and effects that would matter.
    Open,
    /// A figure is missing, or the control does not hold.
    Unjudged,
}

/// Decides about an estimate. `nothing` is its value without an effect: 1 for ratios, 0 for differences; `least` is the
/// least effect, in the unit of the estimate, 0 if the interval alone decides.
pub fn decide(estimate: &Estimate, nothing: f64, least: f64) -> Effect {
    let Estimate { value, low, high } = *estimate;
    if [value, low, high, least].iter().any(|figure| !figure.is_finite()) {
        return Effect::Unjudged;
    }
    if !estimate.contains(nothing) {
        if (value - nothing).abs() > least { Effect::Shown } else { Effect::WithinNoise }
    } else if (low - nothing).abs() <= least && (high - nothing).abs() <= least {
        Effect::Absent
    } else {
        Effect::Open
    }
}

/// Decides about a ratio beside the control that was measured with it.
pub fn beside(ratio: &Estimate, control: &Control) -> Effect {
    if control.holds() { decide(ratio, 1.0, control.noise()) } else { Effect::Unjudged }
}

impl Effect {
    /// A figure with its interval, as far as it shows an effect.
    pub fn words(self, figure: &str) -> String {
        match self {
            Self::Shown => figure.to_owned(),
            Self::WithinNoise => format!("a difference that may be noise ({figure})"),
            Self::Absent => format!("no difference beyond the noise ({figure})"),
            Self::Open => format!("not decided ({figure})"),
            Self::Unjudged => {
                format!(
                    "a change that cannot be judged, since the control does not hold ({figure})"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interval and least effect of a difference, and what they decide. Each row differs from the one before it by what
    /// turns the verdict.
    const ROWS: [(f64, f64, f64, Effect); 9] = [
        (-0.012, 0.002, 0.02, Effect::Absent),
        (-0.012, 0.002, 0.01, Effect::Open),
        (-0.024, -0.002, 0.01, Effect::Shown),
        (-0.024, -0.002, 0.02, Effect::WithinNoise),
        (-0.024, 0.002, 0.02, Effect::Open),
        (0.002, 0.024, 0.02, Effect::WithinNoise),
        (0.002, 0.024, 0.0, Effect::Shown),
        (0.0, 0.0, 0.0, Effect::Absent),
        (f64::NAN, 0.024, 0.0, Effect::Unjudged),
    ];

    fn between(low: f64, high: f64) -> Estimate {
        Estimate { value: f64::midpoint(low, high), low, high }
    }

    #[test]
    fn data_turn_the_verdict() {
        for (low, high, least, expected) in ROWS {
            // A difference, the same as a ratio, and both with the other sign.
            assert_eq!(decide(&between(low, high), 0.0, least), expected, "{low} {high} {least}");
            assert_eq!(decide(&between(-high, -low), 0.0, least), expected, "-{low} {high}");
            if least > 0.0 && !low.is_nan() {
                // As a control that shows this noise on both sides.
                let control = Control {
                    what: String::new(),
                    ratio: 1.0,
                    low: 1.0 - least,
                    high: 1.0 + least,
                };
                let ratio = between(1.0 + low, 1.0 + high);
                assert_eq!(beside(&ratio, &control), expected, "{low} {high} {least}");
            }
        }
        let broken = Control { what: String::new(), ratio: 1.05, low: 1.02, high: 1.08 };
        assert_eq!(beside(&between(0.5, 0.6), &broken), Effect::Unjudged);
    }

    /// An interval without zero is never called "no difference".
    #[test]
    fn words_do_not_contradict_the_interval() {
        for (low, high, least, _) in ROWS {
            let estimate = between(low, high);
            let words = decide(&estimate, 0.0, least).words("it");
            let excludes = low > 0.0 || high < 0.0;
            assert!(!(excludes && words.starts_with("no difference")), "{low} {high}: {words}");
        }
    }
}

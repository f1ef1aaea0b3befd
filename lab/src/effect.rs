//! Decides whether an estimate shows an effect. All experiments decide by this rule, so that a figure is not called an
//! effect in one sentence and noise in the next.
//!
//! Two things decide: the interval, and the least effect that the measurement can tell from noise, which a control
//! shows ([`Control::noise`]). Whether a figure agrees with a published one is decided here as well ([`agrees`]).

use crate::result::{Control, Verdict};
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
    /// A figure is missing, or the control does not hold or could not fail ([`Control::can_judge`]).
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
    if control.can_judge() { decide(ratio, 1.0, control.noise()) } else { Effect::Unjudged }
}

/// A ratio as a change: 0 without an effect.
pub fn as_change(ratio: &Estimate) -> Estimate {
    let Estimate { value, low, high } = *ratio;
    Estimate { value: value - 1.0, low: low - 1.0, high: high - 1.0 }
}

/// Decides whether an effect is of the claimed size. `estimate` and `target` are 0 without an effect ([`as_change`]); a
/// target within `tolerance` of 0 claims that there is none. With a control they are shares, as its noise is.
///
/// The whole interval must be within the tolerance of the target, or beyond it: an interval that straddles an end decides
/// nothing, so that more noise never makes a claim hold. Nor does it hold if the control's noise is as large as what the
/// claim is about. Beyond the tolerance it holds in part if there is an effect in the claimed direction.
pub fn agrees(
    estimate: &Estimate,
    target: f64,
    tolerance: f64,
    control: Option<&Control>,
) -> Verdict {
    let Estimate { value, low, high } = *estimate;
    let noise = match control {
        None => 0.0,
        Some(control) if control.can_judge() => control.noise(),
        Some(_) => return Verdict::Undecided,
    };
    if [value, low, high, target, tolerance, noise].iter().any(|figure| !figure.is_finite()) {
        return Verdict::Undecided;
    }
    let [least, most] = [target - tolerance, target + tolerance];
    let is_effect = target.abs() > tolerance;
    if least <= low && high <= most {
        // The smallest effect that the claim allows for, or the largest one that it calls none.
        let claimed = if is_effect { target.abs() - tolerance } else { tolerance };
        return if noise <= claimed { Verdict::Holds } else { Verdict::Undecided };
    }
    if low - most <= noise && least - high <= noise {
        return Verdict::Undecided;
    }
    let same_direction = value * target > 0.0;
    if is_effect && same_direction && decide(estimate, 0.0, noise) == Effect::Shown {
        Verdict::Partly
    } else {
        Verdict::Differs
    }
}

impl Effect {
    /// A figure with its interval, as far as it shows an effect.
    pub fn words(self, figure: &str) -> String {
        match self {
            Self::Shown => figure.to_owned(),
            Self::WithinNoise => format!("a difference that may be noise ({figure})"),
            Self::Absent => format!("no difference beyond the noise ({figure})"),
            Self::Open => format!("not decided ({figure})"),
            Self::Unjudged => format!(
                "a change that cannot be judged, since the control does not hold or could not fail ({figure})"
            ),
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

    /// Interval of a change, claimed change, tolerance, noise of the control (0: there is none), and the verdict.
    const CLAIMS: [(f64, f64, f64, f64, f64, Verdict); 14] = [
        (-0.10, -0.07, -0.08, 0.03, 0.01, Verdict::Holds),
        // The same with noise that could be the effect.
        (-0.10, -0.07, -0.08, 0.03, 0.06, Verdict::Undecided),
        // The interval contains the claimed value, and others.
        (-0.12, -0.07, -0.08, 0.03, 0.01, Verdict::Undecided),
        (-0.22, 0.08, -0.08, 0.03, 0.01, Verdict::Undecided),
        (-0.04, -0.03, -0.08, 0.03, 0.005, Verdict::Partly),
        // Less than the claimed effect by no more than noise.
        (-0.04, -0.03, -0.08, 0.03, 0.02, Verdict::Undecided),
        (-0.30, -0.20, -0.08, 0.03, 0.0, Verdict::Partly),
        (0.03, 0.04, -0.08, 0.03, 0.01, Verdict::Differs),
        // No effect, where the claimed one would be seen.
        (-0.003, 0.002, -0.08, 0.03, 0.005, Verdict::Differs),
        (-0.003, 0.004, 0.0, 0.01, 0.0, Verdict::Holds),
        (-0.003, 0.004, 0.0, 0.01, 0.02, Verdict::Undecided),
        (-0.003, 0.012, 0.0, 0.01, 0.0, Verdict::Undecided),
        (-0.03, -0.02, 0.0, 0.01, 0.0, Verdict::Differs),
        (f64::NAN, 0.004, 0.0, 0.01, 0.0, Verdict::Undecided),
    ];

    fn between(low: f64, high: f64) -> Estimate {
        Estimate { value: f64::midpoint(low, high), low, high }
    }

    /// A control that shows this noise on both sides.
    fn with_noise(noise: f64) -> Control {
        Control { what: String::new(), ratio: 1.0, low: 1.0 - noise, high: 1.0 + noise }
    }

    #[test]
    fn data_turn_the_verdict() {
        for (low, high, least, expected) in ROWS {
            // A difference, the same as a ratio, and both with the other sign.
            assert_eq!(decide(&between(low, high), 0.0, least), expected, "{low} {high} {least}");
            assert_eq!(decide(&between(-high, -low), 0.0, least), expected, "-{low} {high}");
            if least > 0.0 && !low.is_nan() {
                let ratio = between(1.0 + low, 1.0 + high);
                assert_eq!(beside(&ratio, &with_noise(least)), expected, "{low} {high} {least}");
            }
        }
        let broken = Control { what: String::new(), ratio: 1.05, low: 1.02, high: 1.08 };
        assert_eq!(beside(&between(0.5, 0.6), &broken), Effect::Unjudged);
        // The same numbers twice: noise of 0 would make everything an effect.
        assert_eq!(beside(&between(1.002, 1.024), &with_noise(0.0)), Effect::Unjudged);
    }

    #[test]
    fn intervals_decide_about_agreement() {
        for (low, high, target, tolerance, noise, expected) in CLAIMS {
            let control = (noise > 0.0).then(|| with_noise(noise));
            let verdict = agrees(&between(low, high), target, tolerance, control.as_ref());
            assert_eq!(verdict, expected, "{low} {high} {target} {noise}");
            let mirrored = agrees(&between(-high, -low), -target, tolerance, control.as_ref());
            assert_eq!(mirrored, expected, "mirrored: {low} {high} {target} {noise}");
            // Without a control that holds and could have failed nothing is decided.
            let broken = Control { what: String::new(), ratio: 1.05, low: 1.02, high: 1.08 };
            for control in [broken, with_noise(0.0)] {
                let verdict = agrees(&between(low, high), target, tolerance, Some(&control));
                assert_eq!(verdict, Verdict::Undecided);
            }
        }
    }

    /// A wider interval, more noise of the control, or a figure farther from the claimed one never makes a claim hold.
    #[test]
    fn noise_and_distance_never_make_a_claim_hold() {
        const STEPS: [f64; 4] = [0.001, 0.007, 0.04, 0.3];
        const NOISE: [Option<f64>; 4] = [None, Some(0.004), Some(0.02), Some(0.06)];
        let (tolerance, mut holding) = (0.03, 0);
        for target in [-0.08, 0.0, 0.08] {
            for (at, half) in
                (-40..=40).flat_map(|at| (0..12).map(move |half| (f64::from(at), f64::from(half))))
            {
                let (value, half) = (at * 0.0051 + 0.0003, half * 0.0041);
                let estimate = Estimate { value, low: value - half, high: value + half };
                let verdicts = NOISE.map(|noise| {
                    let control = noise.map(with_noise);
                    let judge = |one| agrees(&one, target, tolerance, control.as_ref());
                    let verdict = judge(estimate);
                    for step in STEPS {
                        let away = if value > target { step } else { -step };
                        let worse = [
                            Estimate { low: estimate.low - step, ..estimate },
                            Estimate { high: estimate.high + step, ..estimate },
                            Estimate {
                                value: value + away,
                                low: estimate.low + away,
                                high: estimate.high + away,
                            },
                        ];
                        for one in worse.into_iter().filter(|_| verdict != Verdict::Holds) {
                            assert_ne!(judge(one), Verdict::Holds, "{estimate:?} {one:?} {target}");
                        }
                    }
                    verdict
                });
                holding += verdicts.iter().filter(|one| **one == Verdict::Holds).count();
                let fails = verdicts.map(|verdict| verdict != Verdict::Holds);
                assert!(fails.is_sorted(), "{estimate:?} {verdicts:?}");
            }
        }
        assert!(holding > 100, "{holding} hold");
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

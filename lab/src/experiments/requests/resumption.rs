//! Whether resumption makes up for the cost of hybrid key exchange.

use super::Measured;
use crate::client::turns::Cycle;
use crate::effect::Effect;
use crate::experiments::served::{CLASSICAL, Contrast, HYBRID};
use crate::published::{RESUMPTION_LEAST, RESUMPTION_MOST, TUNING_ARTICLE};
use crate::result::{ClaimKind, Control, Finding, Verdict};
use crate::run::Run;

/// The finding, from connections with this cycle.
pub(super) fn tell(
    run: &mut Run<'_>,
    place: &str,
    measured: &Measured,
    cycle: Cycle,
    control: &Control,
) {
    let at = |who, resumed| measured.index(who, resumed, cycle);
    let saved = measured.compare(at(HYBRID, false), at(HYBRID, true));
    let full = measured.compare(at(CLASSICAL, false), at(HYBRID, false));
    let resumed = measured.compare(at(CLASSICAL, true), at(HYBRID, true));
    let verdict = judge_resumption(&saved, &full, &resumed, control);
    run.finding(Finding {
        kind: ClaimKind::Published,
        source: format!("{TUNING_ARTICLE}; {}", RESUMPTION_LEAST.source),
        claim: "Session resumption makes up for what hybrid key exchange costs".into(),
        published: format!(
            "no figure; in rustls' reports hybrid resumption takes {} to {} times the {} of a classical one (not read again)",
            RESUMPTION_LEAST.value,
            RESUMPTION_MOST.value,
            RESUMPTION_LEAST.clock.words()
        ),
        measured: format!(
            "{place}: requests a second of hybrid connections that are resumed, against new ones: {}; hybrid adds {} to a full handshake and {} to a resumed one",
            saved.told(control),
            full.told_us(control),
            resumed.told_us(control),
        ),
        verdict,
        why: "Resumption in TLS 1.3 (RFC 8446, section 2.2) leaves out certificate and signature, but exchanges keys all the same (psk_dhe_ke), so that the hybrid's part stays and is a larger share of less. It is decided only where the hybrid adds something to a full handshake that can be told: the claim holds if resuming makes hybrid connections faster and the interval of what is added to a resumed one excludes half of that while nothing is left that can be told, and differs if that half is exceeded, or resuming makes them slower. What is an effect is decided beside the control for the figures and for the verdict alike.".into(),
    });
}

/// Whether resumption removes what the hybrid adds: `saved` compares resumed with full handshakes, `full` and `resumed`
/// compare hybrid with classical ones. Effects are decided by the rule that words them ([`Contrast::effect`]).
fn judge_resumption(
    saved: &Contrast,
    full: &Contrast,
    resumed: &Contrast,
    control: &Control,
) -> Verdict {
    if !control.can_judge() {
        return Verdict::Undecided;
    }
    let half = full.added.value / 2.0;
    let is_changed = saved.is_beyond(control);
    if is_changed && saved.rate.value < 1.0 {
        Verdict::Differs
    } else if !full.is_beyond(control) || full.added.value < 0.0 {
        Verdict::Undecided
    } else if resumed.added.low > half {
        Verdict::Differs
    } else if resumed.added.high >= half {
        Verdict::Undecided
    } else {
        match resumed.effect(control) {
            // Something is left, or it is noise.
            Effect::WithinNoise | Effect::Unjudged => Verdict::Undecided,
            Effect::Absent | Effect::Open if is_changed => Verdict::Holds,
            Effect::Absent | Effect::Open | Effect::Shown => Verdict::Partly,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Estimate;

    fn around(value: f64, half: f64) -> Estimate {
        Estimate { value, low: value - half, high: value + half }
    }

    /// Adds this much to 1000, give or take `half`.
    fn adds(value: f64, half: f64) -> Contrast {
        Contrast { rate: around(1.0 - value / 1000.0, half / 1000.0), added: around(value, half) }
    }

    fn control(noise: f64) -> Control {
        Control { what: String::new(), ratio: 1.0, low: 1.0 - noise, high: 1.0 + noise }
    }

    #[test]
    fn resumption_reaches_each_verdict() {
        // What resuming, the hybrid in full handshakes, and the hybrid in resumed ones add.
        let rows = [
            (adds(-50.0, 10.0), adds(100.0, 10.0), adds(5.0, 20.0), Verdict::Holds),
            (adds(0.0, 10.0), adds(100.0, 10.0), adds(5.0, 20.0), Verdict::Partly),
            (adds(-50.0, 10.0), adds(100.0, 10.0), adds(30.0, 10.0), Verdict::Partly),
            (adds(-50.0, 10.0), adds(100.0, 10.0), adds(90.0, 10.0), Verdict::Differs),
            (adds(100.0, 10.0), adds(100.0, 10.0), adds(5.0, 20.0), Verdict::Differs),
            (adds(-50.0, 10.0), adds(100.0, 10.0), adds(5.0, 120.0), Verdict::Undecided),
            (adds(-50.0, 10.0), adds(23.0, 100.0), adds(17.0, 120.0), Verdict::Undecided),
        ];
        let broken = Control { what: String::new(), ratio: 1.05, low: 1.02, high: 1.08 };
        for (saved, full, resumed, expected) in rows {
            let judge = |control: &Control| judge_resumption(&saved, &full, &resumed, control);
            assert_eq!(judge(&control(0.005)), expected, "{saved:?} {full:?} {resumed:?}");
            // The same data beside a control that does not hold, or could not fail, decide nothing.
            assert_eq!(judge(&broken), Verdict::Undecided, "{saved:?} {full:?} {resumed:?}");
            assert_eq!(judge(&control(0.0)), Verdict::Undecided);
        }
    }

    /// What the text calls a difference that may be noise decides nothing.
    #[test]
    fn verdict_and_words_have_one_rule() {
        let (saved, full, resumed) = (adds(-50.0, 10.0), adds(100.0, 10.0), adds(30.0, 10.0));
        for (noise, doubtful) in [(0.04, &resumed), (0.2, &full)] {
            let control = control(noise);
            assert!(doubtful.told_us(&control).contains("may be noise"));
            let verdict = judge_resumption(&saved, &full, &resumed, &control);
            assert_eq!(verdict, Verdict::Undecided, "{noise}");
        }
    }
}

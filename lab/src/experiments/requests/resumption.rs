//! Whether resumption makes up for the cost of hybrid key exchange.

use super::Measured;
use crate::client::turns::Cycle;
use crate::effect::{self, Effect};
use crate::experiments::served::{CLASSICAL, HYBRID};
use crate::result::{ClaimKind, Control, Finding, Verdict};
use crate::run::Run;
use crate::statistics::Estimate;

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
    let verdict =
        judge_resumption(saved.is_beyond(control), &saved.rate, &full.added, &resumed.added);
    run.finding(Finding {
        kind: ClaimKind::Published,
        source: "AWS Security Blog's posts on post-quantum TLS; reports in the rustls project".into(),
        claim: "Session resumption makes up for what hybrid key exchange costs".into(),
        published: "no figure; in rustls' reports hybrid resumption takes 1.5 to 2.1 times the CPU time of a classical one".into(),
        measured: format!(
            "{place}: requests a second of hybrid connections that are resumed, against new ones: {}; hybrid adds {} to a full handshake and {} to a resumed one",
            saved.told(control),
            full.told_us(control),
            resumed.told_us(control),
        ),
        verdict,
        why: "Resumption in TLS 1.3 (RFC 8446, section 2.2) leaves out certificate and signature, but exchanges keys anew (psk_dhe_ke), so that the hybrid's part stays and is a larger share of less. It is decided only where the hybrid adds something to a full handshake that can be told: the claim holds if resuming makes hybrid connections faster and the interval of what is added to a resumed one excludes half of that, and differs if that half is exceeded, or resuming makes nothing faster.".into(),
    });
}

/// Whether resumption (`saved`: rate compared with full handshakes, `faster` if beyond the control) removes what the
/// hybrid adds.
fn judge_resumption(
    is_beyond: bool,
    saved: &Estimate,
    full: &Estimate,
    resumed: &Estimate,
) -> Verdict {
    let half = full.value / 2.0;
    let shown = |added: &Estimate| effect::decide(added, 0.0, 0.0) == Effect::Shown;
    if is_beyond && saved.value < 1.0 {
        Verdict::Differs
    } else if !shown(full) || full.value < 0.0 {
        Verdict::Undecided
    } else if resumed.low > half {
        Verdict::Differs
    } else if resumed.high >= half {
        Verdict::Undecided
    } else if is_beyond && !shown(resumed) {
        Verdict::Holds
    } else {
        Verdict::Partly
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resumption_reaches_each_verdict() {
        let around =
            |value: f64, half: f64| Estimate { value, low: value - half, high: value + half };
        let judge = |saved: f64, is_beyond, full, resumed| {
            judge_resumption(is_beyond, &around(saved, 0.01), &full, &resumed)
        };
        let full = around(100.0, 10.0);
        assert_eq!(judge(1.05, true, full, around(5.0, 20.0)), Verdict::Holds);
        assert_eq!(judge(1.0, false, full, around(5.0, 20.0)), Verdict::Partly);
        assert_eq!(judge(1.05, true, full, around(30.0, 10.0)), Verdict::Partly);
        assert_eq!(judge(1.05, true, full, around(90.0, 10.0)), Verdict::Differs);
        assert_eq!(judge(0.9, true, full, around(5.0, 20.0)), Verdict::Differs);
        assert_eq!(judge(1.05, true, full, around(5.0, 120.0)), Verdict::Undecided);
        assert_eq!(judge(1.05, true, around(23.0, 100.0), around(17.0, 120.0)), Verdict::Undecided);
    }
}

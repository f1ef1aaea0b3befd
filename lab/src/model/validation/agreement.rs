//! Judges whether the model agrees with live flows.
//!
//! By intention to treat: every flow that was begun counts, also one that the emulation itself delayed. Late flows are
//! those with many packets and many losses, so that leaving them out leaves the survivors, which lost nothing.

use crate::link::{ClockStart, Outcome};
use crate::statistics::{mean, quantile_of};

/// Least number of flows at a point with loss: with fewer, a 95th percentile is that of a handful of losses.
pub const LEAST_FLOWS: usize = 1000;
/// The same without loss, where flows differ by the machine's noise alone.
const LEAST_CALM_FLOWS: usize = 20;
/// Largest share of flows with a late packet. With more of them the machine was too busy to say what the network does.
const MOST_LATE: f64 = 0.1;
/// Largest difference of the means, and of the 95th percentiles, in per cent.
pub(super) const LIMITS_PERCENT: [f64; 2] = [10.0, 8.0];

/// The verdict that model and live agree.
pub const AGREES: &str = "yes";

/// Figures of a point, of all of its flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Agreement {
    /// Loss in each direction, as a share.
    pub loss: f64,
    /// Flows that were begun.
    pub flows: usize,
    /// Flows of which the emulation delivered a packet late.
    pub late: usize,
    /// The model's mean over the live one, less one, in per cent.
    pub mean_percent: f64,
    /// The same for the 95th percentiles.
    pub p95_percent: f64,
}

impl Agreement {
    /// Compares the same flows, live and in the model.
    pub fn of(loss: f64, live: &[Outcome], model: &[Outcome]) -> Self {
        let (real, modelled) = (times(live), times(model));
        let off = |of: &dyn Fn(&[f64]) -> f64| 100.0 * (of(&modelled) / of(&real) - 1.0);
        Self {
            loss,
            flows: live.len(),
            late: live.iter().filter(|outcome| outcome.late > 0).count(),
            mean_percent: off(&|list| mean(list)),
            p95_percent: off(&|list| quantile_of(list, 0.95)),
        }
    }

    /// Share of flows with a late packet.
    #[expect(clippy::cast_precision_loss, reason = "counts of flows")]
    pub fn late_share(&self) -> f64 {
        self.late as f64 / self.flows.max(1) as f64
    }

    /// Why there is no verdict, if there is none.
    pub fn refusal(&self) -> Option<String> {
        let least = if self.loss > 0.0 { LEAST_FLOWS } else { LEAST_CALM_FLOWS };
        let flows = self.flows;
        if flows < least {
            return Some(format!("too few flows: no verdict ({flows} of {least})"));
        }
        let late = self.late_share();
        (late > MOST_LATE).then(|| {
            format!("machine too busy: no verdict ({:.0} % of the flows late)", 100.0 * late)
        })
    }

    /// Whether model and live agree, or why that cannot be said.
    pub fn verdict(&self) -> String {
        if let Some(refusal) = self.refusal() {
            return refusal;
        }
        let [mean, p95] = LIMITS_PERCENT;
        match (self.mean_percent.abs() <= mean, self.p95_percent.abs() <= p95) {
            (true, true) => AGREES,
            (false, true) => "no: the mean",
            (true, false) => "no: the 95th percentile",
            (false, false) => "no",
        }
        .to_owned()
    }
}

/// Times of all handshakes since the SYN, in milliseconds.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of an hour at most")]
pub fn times(list: &[Outcome]) -> Vec<f64> {
    list.iter().map(|outcome| outcome.handshake_from(ClockStart::Syn) as f64 / 1e6).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(loss: f64, flows: usize, late: usize, mean: f64, p95: f64) -> String {
        Agreement { loss, flows, late, mean_percent: mean, p95_percent: p95 }.verdict()
    }

    #[test]
    fn survivors_decide_nothing() {
        // As recorded at RTT 30 ms and 2 % loss: 7, 14 and 5 of 60 flows had no late packet, and all rows said "yes".
        for left in [7, 14, 5] {
            let said = verdict(0.02, 60, 60 - left, 0.4, 1.2);
            assert_eq!(said, "too few flows: no verdict (60 of 1000)");
            let said = verdict(0.02, 1200, 20 * (60 - left), 0.4, 1.2);
            assert!(said.starts_with("machine too busy: no verdict"), "{said}");
        }
        assert_eq!(
            verdict(0.02, 1000, 883, 0.4, 1.2),
            "machine too busy: no verdict (88 % of the flows late)"
        );
        assert_eq!(verdict(0.02, 1000, 20, 0.4, 1.2), "yes");
    }

    #[test]
    fn each_figure_turns_the_verdict() {
        assert_eq!(verdict(0.02, 1000, 100, 10.0, 8.0), "yes");
        assert!(verdict(0.02, 999, 100, 10.0, 8.0).starts_with("too few flows"));
        assert!(verdict(0.02, 1000, 101, 10.0, 8.0).starts_with("machine too busy"));
        assert_eq!(verdict(0.02, 1000, 100, -10.1, 8.0), "no: the mean");
        assert_eq!(verdict(0.02, 1000, 100, 10.0, -8.1), "no: the 95th percentile");
        assert_eq!(verdict(0.02, 1000, 100, 11.0, 9.0), "no");
        // Without loss all flows are alike, and a few say enough.
        assert_eq!(verdict(0.0, 60, 0, 1.0, 1.0), "yes");
        assert_eq!(verdict(0.0, 20, 0, 1.0, 1.0), "yes");
        for flows in [0, 1, 19] {
            assert!(verdict(0.0, flows, 0, 0.0, 0.0).starts_with("too few flows"), "{flows}");
        }
    }

    /// A late flow stays in all figures.
    #[test]
    fn late_flows_are_counted() {
        let flow = |ms: u64, late: u16| Outcome {
            connected_ns: 0,
            handshake_ns: ms * 1_000_000,
            first_byte_ns: 0,
            last_byte_ns: 0,
            retransmissions: 0,
            handshake_retransmissions: 0,
            late,
        };
        let live: Vec<Outcome> = [flow(60, 0), flow(60, 0), flow(60, 0), flow(300, 3)].into();
        let model: Vec<Outcome> = [flow(60, 0), flow(60, 0), flow(60, 0), flow(180, 0)].into();
        let found = Agreement::of(0.05, &live, &model);
        assert_eq!((found.flows, found.late), (4, 1));
        assert!((found.mean_percent - -25.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.late_share(), 0.25);
    }
}

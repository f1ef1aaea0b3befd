//! Where the model's times are known to be off, or were compared with nothing: figures there are marked wherever they are
//! printed or drawn.
//!
//! Found by comparing the model with published points (docs/lab-model.md).

use crate::link::Link;

/// What of a point is outside the validated range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// All times: no published point has a round trip as short, and real connections take longer.
    Near,
    /// All times: no published point has a round trip as long.
    Far,
    /// Percentiles from the 95th on, which are between 10 % too low and 25 % too high at such points.
    Tails,
    /// Percentiles above the 95th, wherever they are: the published ones end there.
    Extremes,
}

/// Round-trip times in microseconds between which there are published points: they have 5.5 to 197 ms.
const RTTS_US: [u64; 2] = [5_000, 200_000];
/// The last published percentile.
const LAST_PERCENTILE: usize = 95;
/// Loss in each direction above which the tails are off, from this round-trip time on. The published points have 31 ms;
/// a link of 30 ms stands for them.
const TAILS: (f64, u64) = (0.1, 30_000);

impl Outside {
    /// Of handshakes over this link.
    pub fn of(link: &Link) -> Option<Self> {
        let (loss, rtt_us) = TAILS;
        let is_tail = link.loss > loss && link.rtt_us >= rtt_us;
        Self::of_rtt(link).or(is_tail.then_some(Self::Tails))
    }

    /// Of all handshakes over this link, by its round-trip time alone.
    pub fn of_rtt(link: &Link) -> Option<Self> {
        let [least, most] = RTTS_US;
        if link.rtt_us < least {
            Some(Self::Near)
        } else if link.rtt_us > most {
            Some(Self::Far)
        } else {
            None
        }
    }

    /// Of a percentile, over any link.
    pub fn of_percentile(percent: usize) -> Option<Self> {
        (percent > LAST_PERCENTILE).then_some(Self::Extremes)
    }

    /// What is outside, in a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::Near => "all times: RTT below 5 ms",
            Self::Far => "all times: RTT above 200 ms",
            Self::Tails => "p95 and above",
            Self::Extremes => "above p95",
        }
    }
}

/// Column that says which of a row's times are outside.
pub const COLUMN: &str = "outside the validated range";
/// A sentence for notes and captions of figures of which some are outside.
pub const SENTENCE: &str = "Outside the model's validated range, and marked: all times at RTTs below 5 ms and above 200 ms, since the published \
                            points have 5.5 to 197 ms (at about 1 ms the model is 10 to 40 % below real connections); percentiles above the \
                            95th, which were compared with no data; percentiles from the 95th on above 10 % loss at RTTs of 30 ms and \
                            more, where the model was found between 10 % too low and 25 % too high.";

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_range_ends_where_it_was_found_to() {
        let outside = |rtt_ms, loss| Outside::of(&Link::new(Duration::from_millis(rtt_ms), loss));
        assert_eq!(outside(31, 0.1), None);
        assert_eq!(outside(31, 0.11), Some(Outside::Tails));
        assert_eq!(outside(30, 0.2), Some(Outside::Tails));
        assert_eq!(outside(5, 0.2), None);
        // All published round trips are between these, and percentiles up to the 95th.
        for (rtt_ms, expected) in [
            (1, Some(Outside::Near)),
            (4, Some(Outside::Near)),
            (5, None),
            (200, None),
            (201, Some(Outside::Far)),
            (300, Some(Outside::Far)),
        ] {
            assert_eq!(outside(rtt_ms, 0.01), expected, "{rtt_ms}");
            let link = Link::new(Duration::from_millis(rtt_ms), 0.01);
            assert_eq!(Outside::of_rtt(&link), expected, "{rtt_ms}");
        }
        assert_eq!(outside(300, 0.2), Some(Outside::Far));
        for (percent, expected) in [(50, None), (95, None), (99, Some(Outside::Extremes))] {
            assert_eq!(Outside::of_percentile(percent), expected, "{percent}");
        }
    }
}

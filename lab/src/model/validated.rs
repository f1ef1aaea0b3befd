//! Where the model's times are known to be off, or were compared with nothing: figures there are marked wherever they are
//! printed or drawn.
//!
//! Found by comparing the model with published points that it was not made with (docs/lab-model.md).

use crate::link::Link;
use crate::trace::{Side, Trace};

/// What of a point is outside the validated range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// All times: no published point has a round trip as short, and real connections take longer.
    Near,
    /// All times: no published point has a round trip as long.
    Far,
    /// Percentiles from the 95th on, which are 4 to 14 % too low at most such points.
    Tails,
    /// All times: steps of the published times are at 2.25 round trips and 8 ms, the model's at 1.25 to 2.
    Times,
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
/// Packets of a ClientHello from which on all times are off, and the losses between which they are.
const TIMES: (u64, [f64; 2]) = (7, [0.02, 0.2]);
/// Bytes of a packet with data.
const MSS: u64 = 1448;

impl Outside {
    /// Of handshakes with so many packets in the ClientHello over this link.
    pub fn of(link: &Link, hello_packets: u64) -> Option<Self> {
        let (packets, [least, most]) = TIMES;
        let (loss, rtt_us) = TAILS;
        let known = if hello_packets >= packets && (least..=most).contains(&link.loss) {
            Some(Self::Times)
        } else if link.loss > loss && link.rtt_us >= rtt_us {
            Some(Self::Tails)
        } else {
            None
        };
        Self::of_rtt(link).or(known)
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
            Self::Times => "all times",
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
                            more, where the model was found 4 to 14 % too low; all times of handshakes with a ClientHello of seven packets and \
                            more at 2 to 20 % loss, where it repairs losses sooner than was published.";

/// Packets of the ClientHello.
pub fn hello_packets(trace: &Trace) -> u64 {
    let hello = trace.steps.iter().take_while(|step| step.from == Side::Client);
    hello.map(|step| u64::from(step.bytes)).sum::<u64>().div_ceil(MSS)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::trace::Step;

    #[test]
    fn the_range_ends_where_it_was_found_to() {
        let outside = |rtt_ms, loss, packets| {
            Outside::of(&Link::new(Duration::from_millis(rtt_ms), loss), packets)
        };
        assert_eq!(outside(31, 0.1, 1), None);
        assert_eq!(outside(31, 0.11, 1), Some(Outside::Tails));
        assert_eq!(outside(30, 0.2, 1), Some(Outside::Tails));
        assert_eq!(outside(5, 0.2, 1), None);
        // All published round trips are between these, and percentiles up to the 95th.
        for (rtt_ms, expected) in [
            (1, Some(Outside::Near)),
            (4, Some(Outside::Near)),
            (5, None),
            (200, None),
            (201, Some(Outside::Far)),
            (300, Some(Outside::Far)),
        ] {
            assert_eq!(outside(rtt_ms, 0.01, 1), expected, "{rtt_ms}");
            let link = Link::new(Duration::from_millis(rtt_ms), 0.01);
            assert_eq!(Outside::of_rtt(&link), expected, "{rtt_ms}");
        }
        assert_eq!(outside(300, 0.2, 7), Some(Outside::Far));
        for (percent, expected) in [(50, None), (95, None), (99, Some(Outside::Extremes))] {
            assert_eq!(Outside::of_percentile(percent), expected, "{percent}");
        }
        assert_eq!(outside(5, 0.02, 7), Some(Outside::Times));
        assert_eq!(outside(5, 0.09, 8), Some(Outside::Times));
        assert_eq!(outside(5, 0.02, 6), None);
        assert_eq!(outside(5, 0.01, 7), None);
        assert_eq!(outside(5, 0.21, 7), None);
        assert_eq!(outside(200, 0.15, 7), Some(Outside::Times));
    }

    #[test]
    fn packets_of_the_hello_alone_are_counted() {
        let step = |from, bytes| Step { from, bytes, cpu_ns: 0 };
        let trace = |hello| Trace {
            steps: vec![
                step(Side::Client, hello),
                step(Side::Server, 9_000),
                step(Side::Client, 74),
            ],
            client_done: 2,
            server_after_ns: 0,
            hello_retry: false,
            resumed: false,
            cpu_spread: Vec::new(),
        };
        assert_eq!(hello_packets(&trace(1_402)), 1);
        assert_eq!(hello_packets(&trace(1_449)), 2);
        // FrodoKEM-640 with a point on P-256.
        assert_eq!(hello_packets(&trace(9_616 + 65 + 180)), 7);
    }
}

//! TCP's estimate of the round-trip time (`tcp_rtt_estimator`, RFC 6298), in microseconds.

/// `TCP_RTO_MIN`: 200 ms.
pub(super) const RTO_MIN_US: u64 = 200_000;
/// Smoothed time, deviation, minimum.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Estimate {
    /// Eight times the smoothed time; 0 if unknown.
    smoothed8: i64,
    /// Four times the mean deviation.
    deviation4: i64,
    deviation_most: i64,
    /// Variation, which is added for the timeout.
    variation: i64,
    /// Sequence number whose arrival ends the round trip.
    round: u32,
    least: Option<u64>,
}

const LEAST_VARIATION: i64 = RTO_MIN_US.cast_signed();

impl Estimate {
    pub(super) fn known(&self) -> bool {
        self.smoothed8 != 0
    }

    pub(super) fn smoothed_us(&self) -> u64 {
        self.smoothed8_us() / 8
    }

    pub(super) fn smoothed8_us(&self) -> u64 {
        u64::try_from(self.smoothed8).unwrap_or_default()
    }

    /// The smallest sample; a very large value if there is none, as in the kernel.
    pub(super) fn smallest_us(&self) -> u64 {
        self.least.unwrap_or(u64::from(u32::MAX))
    }

    pub(super) fn smallest(&mut self, sample_us: u64) {
        self.least = Some(self.least.map_or(sample_us, |least| least.min(sample_us)).max(1));
    }

    /// Round-trip time plus variation.
    pub(super) fn timeout_us(&self) -> u64 {
        u64::try_from((self.smoothed8 >> 3) + self.variation).unwrap_or_default()
    }

    /// A sample, with the first unacknowledged sequence number, and the next one to be sent.
    pub(super) fn sample(&mut self, sample_us: u64, una: u32, next: u32) {
        let sample = i64::try_from(sample_us.max(1)).unwrap_or(i64::MAX / 64);
        if self.smoothed8 == 0 {
            self.smoothed8 = sample << 3;
            self.deviation4 = sample << 1;
            self.variation = self.deviation4.max(LEAST_VARIATION);
            self.deviation_most = self.variation;
            self.round = next;
            return;
        }
        let error = sample - (self.smoothed8 >> 3);
        self.smoothed8 = (self.smoothed8 + error).max(1);
        let mut change = error.abs() - (self.deviation4 >> 2);
        if error < 0 && change > 0 {
            // A drop of the round-trip time does not make TCP more patient.
            change >>= 3;
        }
        self.deviation4 += change;
        if self.deviation4 > self.deviation_most {
            self.deviation_most = self.deviation4;
            self.variation = self.variation.max(self.deviation_most);
        }
        if una > self.round {
            if self.deviation_most < self.variation {
                self.variation -= (self.variation - self.deviation_most) >> 2;
            }
            self.round = next;
            self.deviation_most = LEAST_VARIATION;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_timeout_is_three_round_trips_or_200_ms_more() {
        for (sample, timeout) in [(31_000, 231_000), (100_000, 300_000), (196_000, 588_000)] {
            let mut estimate = Estimate::default();
            estimate.sample(sample, 1, 1);
            assert_eq!((estimate.smoothed_us(), estimate.timeout_us()), (sample, timeout));
        }
    }
}

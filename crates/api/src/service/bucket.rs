//! A token bucket for everybody together: a burst, and a rate per second from then on.

use outlast_domain::limits::Rate;

/// The state of the bucket, in thousandths of a signature.
pub(super) struct Bucket {
    rate: Rate,
    left: i64,
    at_ms: i64,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, left: rate.at_once * 1000, at_ms: i64::MIN }
    }

    /// Whether a token is left.
    pub(super) fn has_one(&self, now_ms: i64) -> bool {
        self.left_at(now_ms) >= 1000
    }

    fn left_at(&self, now_ms: i64) -> i64 {
        // A clock that was set back neither adds tokens nor removes any.
        let passed = now_ms.saturating_sub(self.at_ms).max(0);
        let gained = passed.saturating_mul(self.rate.per_second);
        self.left.saturating_add(gained).min(self.rate.at_once * 1000)
    }

    /// Takes a token, if one is left.
    pub(super) fn take(&mut self, now_ms: i64) -> bool {
        self.left = self.left_at(now_ms);
        self.at_ms = now_ms;
        if self.left < 1000 {
            return false;
        }
        self.left -= 1000;
        true
    }
}

#[cfg(test)]
mod tests {
    use outlast_domain::limits;

    use super::*;

    #[test]
    fn there_is_so_much_at_once_and_so_much_each_second() {
        let rate = limits::OCSP_SIGNINGS;
        let mut bucket = Bucket::new(rate);
        let mut taken = |now_ms: i64| {
            let mut count = 0;
            loop {
                let has_one = bucket.has_one(now_ms);
                assert_eq!(bucket.take(now_ms), has_one);
                if !has_one {
                    break;
                }
                count += 1;
            }
            count
        };
        let start = 1_800_000_000_000;
        assert_eq!(taken(start), rate.at_once);
        assert_eq!(taken(start + 1000), rate.per_second);
        assert_eq!(taken(start + 1005), 0);
        assert_eq!(taken(start + 1010), 1);
        assert_eq!(taken(start), 0);
        assert_eq!(taken(start + 500), rate.per_second / 2);
        assert_eq!(taken(i64::MAX), rate.at_once);
    }
}

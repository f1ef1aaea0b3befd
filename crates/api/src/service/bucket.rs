//! How much may be done for everybody: so much at once, and so much each second from then on.

use outlast_domain::limits::Rate;

/// What is left at some time, in thousandths of a signature.
pub(super) struct Bucket {
    rate: Rate,
    left: i64,
    at_ms: i64,
}

impl Bucket {
    /// A full one.
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, left: rate.at_once * 1000, at_ms: i64::MIN }
    }

    /// Takes one, if there is one.
    pub(super) fn take(&mut self, now_ms: i64) -> bool {
        // A clock that was set back gives nothing, and takes nothing away.
        let passed = now_ms.saturating_sub(self.at_ms).max(0);
        self.at_ms = now_ms;
        let gained = passed.saturating_mul(self.rate.per_second);
        self.left = self.left.saturating_add(gained).min(self.rate.at_once * 1000);
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
            while bucket.take(now_ms) {
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

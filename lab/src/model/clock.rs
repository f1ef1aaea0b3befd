//! The kernel's clock: jiffies, and the timer wheel, because of which a timer never fires exactly when it was set
//! for.

use super::Profile;

/// Levels of the wheel: timers of less than `63 * 8^level` jiffies are kept with a granularity of `8^level` (kernel/time/timer.c,
/// since 4.8).
const LEVELS: u32 = 8;

/// Jiffies and milliseconds of a connection. Both ends share it, as in two namespaces of one machine.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Clock {
    tick_ns: u64,
    /// The kernel's clock when the connection began.
    phase_ns: u64,
}

impl Clock {
    /// A clock with a random phase at every level of the wheel that a connection uses.
    pub(super) fn new(profile: &Profile, random: u64) -> Self {
        let tick_ns = 1_000_000_000 / u64::from(profile.tcp.hz);
        // 4096 ticks are the granularity of level 4, used beyond 32,256 jiffies.
        Self { tick_ns, phase_ns: random % (tick_ns * 4096) }
    }

    /// When a timer fires that is set now for so many jiffies.
    pub(super) fn fires(&self, now_ns: u64, jiffies: u32) -> u64 {
        let jiffies = u64::from(jiffies);
        let mut shift = 0;
        while shift < 3 * LEVELS && jiffies >= 63 << shift {
            shift += 3;
        }
        let expires = (now_ns + self.phase_ns) / self.tick_ns + jiffies;
        // The next bucket, so that no timer fires early.
        ((((expires >> shift) + 1) << shift) * self.tick_ns).saturating_sub(self.phase_ns)
    }

    /// Microseconds as jiffies, rounded up.
    pub(super) fn jiffies(&self, us: u64) -> u32 {
        u32::try_from((us * 1000).div_ceil(self.tick_ns)).unwrap_or(u32::MAX)
    }

    /// Microseconds as jiffies, rounded down.
    pub(super) fn whole_jiffies(&self, us: u64) -> u32 {
        u32::try_from(us * 1000 / self.tick_ns.max(1)).unwrap_or(u32::MAX)
    }

    /// Jiffies as microseconds.
    pub(super) fn us(&self, jiffies: u32) -> u64 {
        u64::from(jiffies) * self.tick_ns / 1000
    }

    /// TCP's timestamp: milliseconds (`TCP_TS_HZ` is 1000 since 4.13).
    pub(super) fn stamp(&self, now_ns: u64) -> u64 {
        // Never 0, which means "no timestamp".
        (now_ns + self.phase_ns) / 1_000_000 + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PROFILES;

    #[test]
    fn a_timer_fires_at_the_next_bucket_of_its_level() {
        // 250 Hz: a tick is 4 ms.
        let clock = Clock::new(&PROFILES[0], 0);
        let ms = 1_000_000;
        // Level 0: at the tick after the requested one.
        assert_eq!(clock.fires(0, 50), 51 * 4 * ms);
        assert_eq!(clock.fires(3 * ms, 50), 51 * 4 * ms);
        assert_eq!(clock.fires(0, 62), 63 * 4 * ms);
        // Level 1: multiples of 8 ticks, 32 ms.
        assert_eq!(clock.fires(0, 63), 64 * 4 * ms);
        assert_eq!(clock.fires(0, 250), 1024 * ms);
        assert_eq!(clock.fires(24 * ms, 250), 1024 * ms + 32 * ms);
        assert_eq!(clock.fires(0, 503), 504 * 4 * ms);
        // Level 2: 64 ticks, 256 ms.
        assert_eq!(clock.fires(0, 504), 512 * 4 * ms);
        assert_eq!(clock.fires(0, 1000), 4096 * ms);
    }

    #[test]
    fn units() {
        let clock = Clock::new(&PROFILES[0], 0);
        assert_eq!(clock.jiffies(231_169), 58);
        assert_eq!(clock.jiffies(200_000), 50);
        assert_eq!(clock.us(58), 232_000);
        assert_eq!(clock.stamp(2_999_999), 3);
    }
}

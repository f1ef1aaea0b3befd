//! CUBIC with HyStart (net/ipv4/tcp_cubic.c, RFC 9438), as far as bodies of up to some megabytes need it.

/// State of CUBIC.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cubic {
    last_most: f64,
    epoch_us: Option<u64>,
    origin: f64,
    /// Seconds from the epoch's start to the origin.
    until_origin: f64,
    /// The window that Reno would have.
    friendly: f64,
    fraction: f64,
    // HyStart.
    round_end: u32,
    round_us: u64,
    last_us: u64,
    round_least: u64,
    samples: u32,
    least: u64,
    found: bool,
}

/// CUBIC's scale.
const C: f64 = 0.4;
/// Share of the window that remains after a loss: 717/1024.
const BETA: f64 = 717.0 / 1024.0;

impl Cubic {
    /// Threshold after a loss.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a window is a window"
    )]
    pub(super) fn reduced(&mut self, window: u32) -> u32 {
        self.epoch_us = None;
        let packets = f64::from(window);
        // Fast convergence.
        self.last_most =
            if packets < self.last_most { packets * (1.0 + BETA) / 2.0 } else { packets };
        ((packets * BETA) as u32).max(2)
    }

    /// Grows the window after an acknowledgement of `acked` packets while the window was in use.
    pub(super) fn grow(
        &mut self,
        window: u32,
        threshold: u32,
        acked: u32,
        now_us: u64,
        rtt_us: u64,
    ) -> u32 {
        let mut window = window;
        let mut acked = acked;
        if window < threshold {
            let to = window.saturating_add(acked).min(threshold);
            acked -= to - window;
            window = to;
            if acked == 0 {
                return window;
            }
        }
        let packets = f64::from(window);
        let epoch = *self.epoch_us.get_or_insert_with(|| {
            self.friendly = packets;
            self.fraction = 0.0;
            if self.last_most <= packets {
                self.until_origin = 0.0;
                self.origin = packets;
            } else {
                self.until_origin = ((self.last_most - packets) / C).cbrt();
                self.origin = self.last_most;
            }
            now_us
        });
        #[expect(clippy::cast_precision_loss, reason = "microseconds of one connection")]
        let seconds = (now_us - epoch + rtt_us) as f64 / 1e6;
        let target = self.origin + C * (seconds - self.until_origin).powi(3);
        // Reno's growth with this factor: 3 (1 - beta) / (1 + beta) a round trip.
        self.friendly += 3.0 * (1.0 - BETA) / (1.0 + BETA) * f64::from(acked) / packets;
        let target = target.max(self.friendly);
        // At most half a packet for each acknowledged one, at least one packet in a hundred windows.
        let step = ((target - packets) / packets).clamp(0.01 / packets, 0.5);
        self.fraction += step * f64::from(acked);
        while self.fraction >= 1.0 {
            self.fraction -= 1.0;
            window = window.saturating_add(1);
        }
        window
    }

    /// A sample of the round-trip time: HyStart ends slow start when a round's acknowledgements take long or come
    /// late.
    pub(super) fn sample(
        &mut self,
        sample_us: u64,
        now_us: u64,
        window: u32,
        threshold: &mut u32,
        (una, next): (u32, u32),
    ) {
        if self.least == 0 || sample_us < self.least {
            self.least = sample_us.max(1);
        }
        if self.found || window >= *threshold || window < 16 {
            return;
        }
        if una > self.round_end {
            self.round_end = next;
            self.round_us = now_us;
            self.last_us = now_us;
            self.round_least = u64::MAX;
            self.samples = 0;
        }
        if now_us - self.last_us <= 2_000 {
            self.last_us = now_us;
            if now_us - self.round_us > (self.least + 1_000) / 2 {
                self.found = true;
            }
        }
        self.round_least = self.round_least.min(sample_us);
        if self.samples < 8 {
            self.samples += 1;
        } else if self.round_least > self.least + (self.least >> 3).clamp(4_000, 16_000) {
            self.found = true;
        }
        if self.found {
            *threshold = window;
        }
    }
}

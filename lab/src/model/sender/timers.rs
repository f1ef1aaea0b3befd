//! Timeouts, tail loss probes and the wait for packets out of order (tcp_timer.c, tcp_output.c).

use super::{Kernel, NEVER, Pending, RTO_MAX_US, Sender, State};
use crate::model::estimate::RTO_MIN_US;

impl Sender {
    pub(super) fn set_rto(&mut self, kernel: Kernel) {
        self.rto = kernel.clock.jiffies(self.estimate.timeout_us().min(RTO_MAX_US));
    }

    pub(super) fn set(&mut self, kernel: Kernel, now: u64, pending: Pending, jiffies: u32) {
        self.pending = pending;
        self.due = kernel.clock.fires(now, jiffies);
    }

    /// Time until the head's timeout, counted from when it was sent (`tcp_rto_delta_us`).
    pub(super) fn until_timeout_us(&self, kernel: Kernel, now: u64) -> i64 {
        let Some(head) = self.segments.get(self.head) else { return 0 };
        let timeout = i64::try_from(kernel.clock.us(self.rto)).unwrap_or(i64::MAX);
        timeout - i64::try_from((now - head.sent) / 1000).unwrap_or(i64::MAX)
    }

    /// `tcp_rearm_rto`.
    pub(super) fn rearm(&mut self, kernel: Kernel, now: u64) {
        if self.packets_out() == 0 {
            self.pending = Pending::Nothing;
            self.due = NEVER;
            return;
        }
        let mut jiffies = self.rto;
        if matches!(self.pending, Pending::Reorder | Pending::Probe) {
            let left = self.until_timeout_us(kernel, now).max(1);
            jiffies = kernel.clock.jiffies(u64::try_from(left).unwrap_or(1));
        }
        self.set(kernel, now, Pending::Timeout, jiffies);
    }

    /// `tcp_schedule_loss_probe`.
    pub(super) fn schedule_probe(&mut self, kernel: Kernel, now: u64, advancing: bool) -> bool {
        if self.packets_out() == 0 || !matches!(self.state, State::Open | State::Cwr) {
            return false;
        }
        let clock = kernel.clock;
        let mut jiffies = if self.estimate.known() {
            let twice = 2 * self.estimate.smoothed8_us() / 8;
            if self.packets_out() == 1 {
                // The answer may be delayed.
                clock.jiffies(twice + RTO_MIN_US)
            } else {
                kernel.least(twice)
            }
        } else {
            clock.jiffies(1_000_000)
        };
        let left = if advancing {
            i64::try_from(clock.us(self.rto)).unwrap_or(i64::MAX)
        } else {
            self.until_timeout_us(kernel, now)
        };
        if left > 0 {
            jiffies = jiffies.min(clock.jiffies(u64::try_from(left).unwrap_or(u64::MAX)));
        }
        self.set(kernel, now, Pending::Probe, jiffies);
        true
    }

    /// The timer fires (`tcp_write_timer_handler`).
    pub(in crate::model) fn timer(&mut self, kernel: Kernel, now: u64) {
        self.due = NEVER;
        self.noise_ns = 0;
        match self.pending {
            Pending::Nothing => {}
            Pending::Reorder => {
                let before = (self.in_flight(), self.losses);
                self.mark_lost(kernel, now);
                if self.in_flight() != before.0 {
                    if self.state != State::Recovery {
                        self.begin_recovery();
                        self.reduce(1, self.losses - before.1, false);
                    }
                    self.resend_lost(kernel, now);
                }
                if self.pending != Pending::Timeout {
                    self.rearm(kernel, now);
                }
            }
            Pending::Probe => self.probe(kernel, now),
            Pending::Timeout => {
                self.pending = Pending::Nothing;
                self.timeout(kernel, now);
            }
        }
    }

    /// `tcp_send_loss_probe`: a probe at the time of the timeout does not back off.
    pub(super) fn probe(&mut self, kernel: Kernel, now: u64) {
        if self.next < self.written {
            self.send_new(kernel, now, self.number);
            self.probe_resent = false;
        } else if self.packets_out() == 0 || self.probe_high != 0 {
            self.rearm(kernel, now);
            return;
        } else {
            self.resend(kernel, now, self.segments.len() - 1, false);
            self.probe_resent = true;
        }
        self.probe_high = self.next;
        self.pending = Pending::Nothing;
        self.rearm(kernel, now);
    }

    /// `tcp_retransmit_timer`.
    pub(super) fn timeout(&mut self, kernel: Kernel, now: u64) {
        if self.packets_out() == 0 {
            return;
        }
        let fresh = self.state < State::Recovery;
        // tcp_timeout_mark_lost: the head, and what RACK believes lost.
        let (mut lost, mut resent) = (0, 0);
        let head = self.head;
        for (index, segment) in self.segments.iter_mut().enumerate().skip(head) {
            let recent = (now - segment.sent) / 1000 < self.rack_rtt_us;
            if segment.sacked || (index != head && recent) {
                continue;
            }
            lost += u32::from(!segment.lost);
            resent += u32::from(segment.resent);
            segment.lost = true;
            segment.resent = false;
        }
        self.lost_out += lost;
        self.resent_out -= resent;
        if self.state <= State::Disorder
            || self.high <= self.una
            || (self.state == State::Loss && self.timeouts == 0)
        {
            self.prior_threshold = self.current_threshold();
            self.prior_window = self.window;
            self.threshold = self.cubic.reduced(self.window);
            self.begin_undo();
        }
        self.window = self.in_flight() + 1;
        self.state = State::Loss;
        self.high = self.next;
        self.frto = fresh || self.timeouts > 0;
        self.timeouts += 1;
        self.resend(kernel, now, self.head, true);
        self.rto = self.rto.saturating_mul(2).min(kernel.clock.jiffies(RTO_MAX_US));
        self.set(kernel, now, Pending::Timeout, self.rto);
    }
}

impl Kernel {
    /// A time with `TCP_TIMEOUT_MIN` added as in this kernel version, in jiffies.
    pub(super) fn least(&self, us: u64) -> u32 {
        if self.profile.tcp.least_timeout_us > 0 {
            self.clock.jiffies(us + self.profile.tcp.least_timeout_us)
        } else {
            self.clock.jiffies(us) + 2
        }
    }
}

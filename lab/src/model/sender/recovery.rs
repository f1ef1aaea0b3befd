//! Detection of lost packets (RACK, tcp_recovery.c), and their retransmission while the window shrinks (proportional
//! rate reduction).

use super::{Departure, INFINITE, Kernel, Pending, Segment, Sender, State, Told};

impl Sender {
    pub(super) fn rack_advance(&mut self, now: u64, segment: &Segment) {
        let rtt_us = (now + self.noise_ns - segment.sent) / 1000;
        if segment.retransmitted() && rtt_us < self.estimate.smallest_us() {
            // It is not known which copy was answered.
            return;
        }
        self.rack_advanced = true;
        self.rack_rtt_us = rtt_us;
        if (segment.sent, segment.end) > (self.rack_sent, self.rack_end) {
            self.rack_sent = segment.sent;
            self.rack_end = segment.end;
        }
    }

    /// `tcp_rack_reo_wnd`.
    pub(super) fn reordering_us(&self, kernel: Kernel) -> u64 {
        if self.state >= State::Recovery || self.sacked_out >= self.reordering {
            return 0;
        }
        let floor = kernel.profile.tcp.reordering_floor_us;
        let window = (self.estimate.smallest_us() >> 2).max(floor);
        window.min(self.estimate.smoothed_us().max(floor))
    }

    /// `tcp_identify_packet_loss`; a timer that is set for reordering stays.
    pub(super) fn find_lost(&mut self, kernel: Kernel, now: u64, told: &mut Told) {
        if !std::mem::take(&mut self.rack_advanced) {
            return;
        }
        if let Some(wait_us) = self.mark_lost(kernel, now) {
            let jiffies = kernel.least(wait_us).min(self.rto);
            self.set(kernel, now, Pending::Reorder, jiffies);
            told.set_timer = false;
        }
    }

    /// `tcp_rack_detect_loss`: marks lost packets, and returns how long to wait for the rest.
    pub(super) fn mark_lost(&mut self, kernel: Kernel, now: u64) -> Option<u64> {
        let patience = self.rack_rtt_us + self.reordering_us(kernel);
        let newest = (self.rack_sent, self.rack_end);
        let mut wait = None;
        let (mut lost, mut resent) = (0, 0);
        for segment in self.segments.get_mut(self.head..).unwrap_or_default() {
            if segment.sacked
                || (segment.lost && !segment.resent)
                || (segment.sent, segment.end) >= newest
            {
                continue;
            }
            let waited = (now + self.noise_ns - segment.sent) / 1000;
            if waited >= patience {
                if segment.lost {
                    resent += 1;
                } else {
                    lost += 1;
                    resent += u32::from(segment.resent);
                }
                segment.lost = true;
                segment.resent = false;
            } else {
                wait = wait.max(Some(patience - waited));
            }
        }
        self.lost_out += lost;
        self.resent_out -= resent;
        self.losses += lost + resent;
        wait
    }

    pub(super) fn begin_undo(&mut self) {
        self.undo = Some(self.una);
        let probe = i64::from(self.probe_high != 0 && self.probe_resent);
        self.undo_resent = i64::from(self.resent_out) + probe;
        if self.undo_resent == 0 {
            self.undo_resent = -1;
        }
    }

    pub(super) fn begin_recovery(&mut self) {
        self.prior_threshold = 0;
        self.begin_undo();
        if !self.reducing() {
            self.prior_threshold = self.current_threshold();
            self.begin_reduction();
        }
        self.state = State::Recovery;
    }

    pub(super) fn current_threshold(&self) -> u32 {
        if self.reducing() {
            self.threshold
        } else {
            self.threshold.max((self.window >> 1) + (self.window >> 2))
        }
    }

    /// `tcp_init_cwnd_reduction`.
    pub(super) fn begin_reduction(&mut self) {
        self.high = self.next;
        self.probe_high = 0;
        self.prior_window = self.window;
        self.reduction_delivered = 0;
        self.reduction_out = 0;
        self.threshold = self.cubic.reduced(self.window);
    }

    /// `tcp_cwnd_reduction`.
    pub(super) fn reduce(&mut self, delivered: u32, lost: u32, advanced: bool) {
        if delivered == 0 || self.prior_window == 0 {
            return;
        }
        self.reduction_delivered += delivered;
        let in_flight = self.in_flight();
        let mut send = if in_flight > self.threshold {
            let share = u64::from(self.threshold) * u64::from(self.reduction_delivered);
            let due = share.div_ceil(u64::from(self.prior_window));
            i64::try_from(due).unwrap_or(i64::MAX) - i64::from(self.reduction_out)
        } else {
            let due = i64::from(self.reduction_delivered) - i64::from(self.reduction_out);
            let due = due.max(i64::from(delivered)) + i64::from(advanced && lost == 0);
            due.min(i64::from(self.threshold - in_flight))
        };
        send = send.max(i64::from(self.reduction_out == 0));
        let window = i64::from(in_flight) + send;
        self.window = u32::try_from(window.max(0)).unwrap_or(u32::MAX);
    }

    pub(super) fn end_reduction(&mut self) {
        if self.threshold < INFINITE && (self.state == State::Cwr || self.undo.is_some()) {
            self.window = self.threshold;
        }
    }

    /// `tcp_xmit_retransmit_queue`.
    pub(super) fn resend_lost(&mut self, kernel: Kernel, now: u64) {
        let mut head_resent = false;
        for index in self.head..self.segments.len() {
            if self.in_flight() >= self.window || self.resent_out >= self.lost_out {
                break;
            }
            let Some(segment) = self.segments.get(index) else { break };
            if !segment.lost || segment.sacked || segment.resent {
                continue;
            }
            self.resend(kernel, now, index, true);
            if self.reducing() {
                self.reduction_out += 1;
            }
            head_resent |= index == self.head && self.pending != Pending::Reorder;
        }
        if head_resent {
            self.set(kernel, now, Pending::Timeout, self.rto);
        }
    }

    /// Retransmits a segment; a probe does not count as a retransmission in flight.
    pub(super) fn resend(&mut self, kernel: Kernel, now: u64, index: usize, counted: bool) {
        let Some(segment) = self.segments.get_mut(index) else { return };
        segment.again += 1;
        segment.sent = now;
        self.out.push(Departure {
            start: segment.start,
            len: segment.end - segment.start,
            number: segment.number,
            again: segment.again,
            piece: segment.number,
        });
        self.resent += 1;
        if counted {
            if !segment.resent {
                segment.resent = true;
                self.resent_out += 1;
            }
            if self.resent_stamp == 0 {
                self.resent_stamp = kernel.clock.stamp(now);
            }
            self.undo_resent = self.undo_resent.max(0) + 1;
        }
    }
}

//! Processing of an acknowledgement, and its consequences (`tcp_ack`, `tcp_fastretrans_alert`).

use crate::link::mix;

use super::{Acknowledgement, Kernel, Resend, Segment, Sender, State, Told};

impl Sender {
    /// An acknowledgement (`tcp_ack`).
    pub(in crate::model) fn acknowledged(
        &mut self,
        kernel: Kernel,
        now: u64,
        what: &Acknowledgement<'_>,
    ) {
        if what.ack > self.next || what.ack < self.una {
            return;
        }
        self.read_clock();
        let before = (self.delivered, self.losses);
        let prior_una = self.una;
        let idle = self.packets_out() == 0;
        let mut told = Told { advanced: what.ack > self.una, ..Told::default() };
        if told.advanced {
            self.timeouts = 0;
        }
        self.take_blocks(now, what, &mut told);
        if idle {
            if told.duplicate {
                self.alert(kernel, now, what, prior_una, &mut told);
            }
            self.probe_answered(what.ack, &told, what.data);
            self.push(kernel, now);
            return;
        }
        self.take_segments(kernel, now, what, &mut told);
        self.probe_answered(what.ack, &told, what.data);
        let dubious = !(what.data || told.acked)
            || told.sacked
            || told.duplicate
            || self.state != State::Open;
        let resend = if dubious {
            self.alert(kernel, now, what, prior_una, &mut told)
        } else {
            Resend::Nothing
        };
        if told.set_timer && !self.schedule_probe(kernel, now, true) {
            self.rearm(kernel, now);
        }
        let delivered = self.delivered - before.0;
        if self.reducing() {
            self.reduce(delivered, self.losses - before.1, told.advanced);
        } else if told.acked && self.window_limited() {
            self.window = self.cubic.grow(
                self.window,
                self.threshold,
                delivered,
                now / 1000,
                self.estimate.smallest_us(),
            );
        }
        match resend {
            Resend::Nothing => {}
            Resend::Lost => self.resend_lost(kernel, now),
            Resend::New => {
                self.push(kernel, now);
                if self.next <= self.high {
                    self.frto = false;
                    self.resend_lost(kernel, now);
                }
            }
        }
        self.push(kernel, now);
    }

    /// A packet is processed some varying microseconds after it arrived. That decides whether the answer to a probe
    /// comes faster than the fastest before, which RACK takes for the answer to the original (`tcp_rack_advance`).
    /// The noise only affects measured round-trip times.
    pub(super) fn read_clock(&mut self) {
        self.noise = mix(self.noise);
        self.noise_ns = self.noise & 0x7fff;
    }

    /// Selective acknowledgements (`tcp_sacktag_write_queue`).
    pub(super) fn take_blocks(&mut self, now: u64, what: &Acknowledgement<'_>, told: &mut Told) {
        let mut blocks = what.blocks;
        if what.duplicate
            && let Some(((_, end), others)) = what.blocks.split_first()
        {
            told.duplicate = true;
            if self.probe_high != 0 && self.probe_resent && *end == self.probe_high {
                told.probe_duplicate = true;
            }
            if self.undo.is_some_and(|from| *end > from) && self.undo_resent > 0 {
                self.undo_resent -= 1;
            }
            blocks = others;
        }
        for (from, to) in blocks {
            for index in self.head..self.segments.len() {
                let Some(segment) = self.segments.get_mut(index) else { break };
                if segment.end > *to {
                    break;
                }
                if segment.start < *from || segment.sacked {
                    continue;
                }
                let seen = *segment;
                segment.sacked = true;
                if seen.resent {
                    if seen.lost {
                        segment.lost = false;
                        segment.resent = false;
                        self.lost_out -= 1;
                        self.resent_out -= 1;
                    }
                } else {
                    if !seen.retransmitted() {
                        told.original |= seen.end <= self.high;
                        told.first_sacked.get_or_insert(seen.sent);
                        told.last_sacked = seen.sent;
                    }
                    if seen.lost {
                        segment.lost = false;
                        self.lost_out -= 1;
                    }
                }
                told.sacked = true;
                self.sacked_out += 1;
                self.delivered += 1;
                self.rack_advance(now, &seen);
            }
        }
    }

    /// Removes what the acknowledgement covers from the queue (`tcp_clean_rtx_queue`), and gives a sample of the
    /// round-trip time.
    pub(super) fn take_segments(
        &mut self,
        kernel: Kernel,
        now: u64,
        what: &Acknowledgement<'_>,
        told: &mut Told,
    ) {
        while let Some(segment) = self.segments.get(self.head).copied() {
            if segment.end > what.ack {
                break;
            }
            self.head += 1;
            told.acked = true;
            if segment.retransmitted() {
                told.retransmitted_acked = true;
                if segment.resent {
                    self.resent_out -= 1;
                }
            } else if !segment.sacked {
                told.first_acked.get_or_insert(segment.sent);
                told.last_acked = segment.sent;
                told.original |= segment.end <= self.high;
            }
            if segment.sacked {
                self.sacked_out -= 1;
            } else {
                self.delivered += 1;
                // tcp_skb_spurious_retrans: the original was answered.
                let spurious =
                    segment.retransmitted() && what.echo < kernel.clock.stamp(segment.sent);
                if !spurious {
                    self.rack_advance(now, &segment);
                }
            }
            if segment.lost {
                self.lost_out -= 1;
            }
        }
        self.una = what.ack;
        if self.head == self.segments.len() {
            self.segments.clear();
            self.head = 0;
        }

        let noise_ns = self.noise_ns;
        let us = |sent: u64| (now + noise_ns - sent) / 1000;
        let mut sample = None;
        let mut latest = None;
        if let Some(sent) = told.first_acked
            && !told.retransmitted_acked
        {
            sample = Some(us(sent));
            latest = Some(us(told.last_acked));
        }
        let sack_sample = told.first_sacked.map(us);
        if sack_sample.is_some() {
            latest = Some(us(told.last_sacked));
        }
        sample = sample.or(sack_sample);
        if sample.is_none() && told.acked {
            // Karn's algorithm does not apply to timestamps (RFC 7323, section 4).
            let echoed = kernel.clock.stamp(now).saturating_sub(what.echo).max(1) * 1000;
            sample = Some(echoed);
            latest = sample;
        }
        if let Some(sample) = sample {
            let latest = latest.unwrap_or(sample);
            self.estimate.smallest(latest);
            self.estimate.sample(sample, self.una, self.next);
            self.set_rto(kernel);
            self.cubic.sample(
                latest,
                now / 1000,
                self.window,
                &mut self.threshold,
                (self.una, self.next),
            );
        }
        if told.acked {
            told.set_timer = true;
        } else if let (Some(sack), Some(head)) = (sack_sample, self.segments.get(self.head)) {
            // Data sent before its segment does not postpone the timeout.
            told.set_timer = sack > us(head.sent);
        }
    }

    /// `tcp_process_tlp_ack`.
    pub(super) fn probe_answered(&mut self, ack: u32, told: &Told, data: bool) {
        if self.probe_high == 0 || ack < self.probe_high {
            return;
        }
        if !self.probe_resent || told.probe_duplicate {
            self.probe_high = 0;
        } else if ack > self.probe_high {
            // The probe repaired a loss, which is a sign of congestion.
            self.begin_reduction();
            self.state = State::Cwr;
            self.end_reduction();
            self.keep_open();
        } else if !(told.advanced || told.acked || data || told.sacked) {
            self.probe_high = 0;
        }
    }

    /// `tcp_fastretrans_alert`.
    pub(super) fn alert(
        &mut self,
        kernel: Kernel,
        now: u64,
        what: &Acknowledgement<'_>,
        prior_una: u32,
        told: &mut Told,
    ) -> Resend {
        if self.state == State::Open {
            self.resent_stamp = 0;
        } else if self.una >= self.high {
            match self.state {
                State::Cwr if self.una != self.high => {
                    self.end_reduction();
                    self.state = State::Open;
                }
                State::Recovery => {
                    // tcp_try_undo_recovery.
                    if self.may_undo(kernel, what) {
                        self.undo_reduction(false);
                    }
                    self.end_reduction();
                    self.state = State::Open;
                }
                _ => {}
            }
        }
        match self.state {
            State::Recovery => {
                if self.una > prior_una && self.undo.is_some() && self.delayed(kernel, what) {
                    // tcp_try_undo_partial: the answer is to the original.
                    if self.resent_out > 0 {
                        return Resend::Nothing;
                    }
                    if !self.any_retransmitted() {
                        self.resent_stamp = 0;
                    }
                    self.undo_reduction(true);
                    self.keep_open();
                    return Resend::Nothing;
                }
                if self.undo.is_some() && self.undo_resent == 0 {
                    self.undo_reduction(false);
                    self.try_open();
                }
                self.find_lost(kernel, now, told);
                if self.state != State::Recovery {
                    if self.lost_out == 0 {
                        return Resend::Nothing;
                    }
                    self.begin_recovery();
                }
            }
            State::Loss => {
                let resend = self.after_timeout(kernel, what, told);
                let resent_before = self.resent_out;
                self.find_lost(kernel, now, told);
                if self.state != State::Open && self.resent_out >= resent_before {
                    return resend;
                }
                if self.lost_out == 0 {
                    self.try_open();
                    return resend;
                }
                self.begin_recovery();
            }
            _ => {
                if self.state <= State::Disorder && self.undo.is_some() && self.undo_resent == 0 {
                    self.undo_reduction(false);
                }
                self.find_lost(kernel, now, told);
                if self.lost_out == 0 {
                    self.try_open();
                    return Resend::Nothing;
                }
                self.begin_recovery();
            }
        }
        Resend::Lost
    }

    /// `tcp_process_loss`, with F-RTO (RFC 5682).
    pub(super) fn after_timeout(
        &mut self,
        kernel: Kernel,
        what: &Acknowledgement<'_>,
        told: &Told,
    ) -> Resend {
        let recovered = self.una >= self.high;
        if told.advanced && self.may_undo(kernel, what) {
            self.undo_loss();
            return Resend::Nothing;
        }
        if self.frto {
            if told.original {
                // A packet that was never retransmitted has arrived: the timeout was spurious.
                self.undo_loss();
                return Resend::Nothing;
            }
            if self.next > self.high {
                if told.sacked {
                    self.frto = false;
                }
            } else if told.advanced && !recovered {
                self.high = self.next;
                if self.next < self.written {
                    return Resend::New;
                }
                self.frto = false;
            }
        }
        if recovered {
            if self.may_undo(kernel, what) {
                self.undo_reduction(false);
            }
            self.state = State::Open;
            return Resend::Nothing;
        }
        Resend::Lost
    }

    pub(super) fn undo_loss(&mut self) {
        self.undo_reduction(true);
        self.timeouts = 0;
        self.state = State::Open;
    }

    /// `tcp_packet_delayed`: the answer is to a packet from before the first retransmission.
    pub(super) fn delayed(&self, _kernel: Kernel, what: &Acknowledgement<'_>) -> bool {
        self.resent_stamp != 0 && what.echo < self.resent_stamp
    }

    pub(super) fn may_undo(&self, kernel: Kernel, what: &Acknowledgement<'_>) -> bool {
        self.undo.is_some() && (self.undo_resent == 0 || self.delayed(kernel, what))
    }

    pub(super) fn undo_reduction(&mut self, unmark: bool) {
        if unmark {
            for segment in self.flying() {
                segment.lost = false;
            }
            self.lost_out = 0;
        }
        if self.prior_threshold != 0 {
            self.window = self.window.max(self.prior_window);
            self.threshold = self.threshold.max(self.prior_threshold);
        }
        self.undo = None;
        self.rack_advanced = true;
    }

    pub(super) fn any_retransmitted(&self) -> bool {
        self.resent_out > 0 || self.segments.get(self.head).is_some_and(Segment::retransmitted)
    }

    pub(super) fn try_open(&mut self) {
        if !self.any_retransmitted() {
            self.resent_stamp = 0;
        }
        if self.state != State::Cwr {
            self.keep_open();
        }
    }

    pub(super) fn keep_open(&mut self) {
        let state = if self.sacked_out + self.lost_out > 0 || self.any_retransmitted() {
            State::Disorder
        } else {
            State::Open
        };
        if self.state != state {
            self.state = state;
            self.high = self.next;
        }
    }
}

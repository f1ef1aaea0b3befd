//! The sending half of a TCP connection: what is in flight, what of it is lost, and when to send it again.
//!
//! It follows Linux's net/ipv4 (tcp_input.c, tcp_output.c, tcp_recovery.c, tcp_timer.c), whose names stand in the comments.

use super::congestion::Cubic;
use super::estimate::Estimate;
use super::{Clock, Profile};
use crate::link::mix;

/// Largest data of a packet: 1500 bytes less IPv4, TCP and timestamps.
pub(super) const MSS: u32 = 1448;
/// First congestion window (`TCP_INIT_CWND`, RFC 6928).
const FIRST_WINDOW: u32 = 10;
/// `TCP_INFINITE_SSTHRESH`.
const INFINITE: u32 = u32::MAX;
/// Packets with selective acknowledgements that start recovery at once (`tp->reordering`).
const DUPLICATES: u32 = 3;
/// `TCP_RTO_MIN`: 200 ms.
pub(super) const RTO_MIN_US: u64 = 200_000;
/// `TCP_RTO_MAX`: 120 s.
const RTO_MAX_US: u64 = 120_000_000;
/// Never.
const NEVER: u64 = u64::MAX;

/// What the kernel does besides: its clock and its version's ways.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    pub(super) profile: &'static Profile,
    pub(super) clock: Clock,
}

/// A packet with data that was sent.
#[derive(Debug, Clone, Copy)]
struct Segment {
    start: u32,
    end: u32,
    /// Number among this side's packets with something new.
    number: u32,
    /// How often it was sent again.
    again: u32,
    /// When it was sent last.
    sent: u64,
    /// Acknowledged selectively.
    sacked: bool,
    /// Believed lost.
    lost: bool,
    /// Sent again, and that copy is believed to be in flight (`TCPCB_SACKED_RETRANS`).
    resent: bool,
}

impl Segment {
    fn retransmitted(&self) -> bool {
        self.again > 0
    }
}

/// A packet to be sent now.
#[derive(Debug, Clone, Copy)]
pub(super) struct Departure {
    pub(super) start: u32,
    pub(super) len: u32,
    pub(super) number: u32,
    pub(super) again: u32,
    /// Number of the first packet of those that TCP hands over in one piece with this one.
    pub(super) piece: u32,
}

/// What an arriving packet acknowledges.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acknowledgement<'a> {
    pub(super) ack: u32,
    pub(super) blocks: &'a [(u32, u32)],
    pub(super) duplicate: bool,
    pub(super) echo: u64,
    pub(super) data: bool,
}

/// State of congestion control (`tcp_ca_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum State {
    #[default]
    Open,
    Disorder,
    Cwr,
    Recovery,
    Loss,
}

/// What the retransmission timer is set for (`icsk_pending`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Pending {
    #[default]
    Nothing,
    Timeout,
    Probe,
    Reorder,
}

/// What an acknowledgement told (the `FLAG_`s of tcp_ack).
#[derive(Debug, Clone, Copy, Default)]
struct Told {
    advanced: bool,
    acked: bool,
    sacked: bool,
    retransmitted_acked: bool,
    original: bool,
    duplicate: bool,
    probe_duplicate: bool,
    set_timer: bool,
    first_acked: Option<u64>,
    last_acked: u64,
    first_sacked: Option<u64>,
    last_sacked: u64,
}

/// What is to be sent after an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resend {
    Nothing,
    Lost,
    New,
}

/// The sending half.
#[derive(Debug, Default)]
pub(super) struct Sender {
    segments: Vec<Segment>,
    /// Index of the first segment that is not acknowledged.
    head: usize,
    /// First sequence that is not acknowledged.
    una: u32,
    /// Next sequence to be sent.
    next: u32,
    /// End of what the application has written.
    written: u32,
    /// Number of the next packet with something new.
    pub(super) number: u32,
    window: u32,
    threshold: u32,
    state: State,
    high: u32,
    sacked_out: u32,
    lost_out: u32,
    resent_out: u32,
    delivered: u32,
    losses: u32,
    estimate: Estimate,
    rto: u32,
    timeouts: u32,
    // RACK (RFC 8985).
    rack_sent: u64,
    rack_end: u32,
    rack_rtt_us: u64,
    rack_advanced: bool,
    // Tail loss probe.
    probe_high: u32,
    probe_resent: bool,
    // Proportional rate reduction (RFC 6937).
    prior_window: u32,
    reduction_delivered: u32,
    reduction_out: u32,
    // Undo.
    prior_threshold: u32,
    undo: Option<u32>,
    undo_resent: i64,
    resent_stamp: u64,
    frto: bool,
    /// State of the noise in readings of the clock, and the present reading's.
    noise: u64,
    noise_ns: u64,
    patient: bool,
    // Use of the window.
    limited: bool,
    most_out: u32,
    usage: u32,
    cubic: Cubic,
    pending: Pending,
    /// When the timer fires.
    pub(super) due: u64,
    /// What leaves now.
    pub(super) out: Vec<Departure>,
    /// Packets that were sent again.
    pub(super) resent: u32,
}

impl Sender {
    /// Ready for a connection. `patient` is whether its probes wait although the timeout is earlier.
    pub(super) fn clear(&mut self, noise: u64, patient: bool) {
        self.segments.clear();
        self.out.clear();
        *self = Self {
            segments: std::mem::take(&mut self.segments),
            out: std::mem::take(&mut self.out),
            una: 1,
            next: 1,
            written: 1,
            number: 1,
            threshold: INFINITE,
            due: NEVER,
            noise,
            patient,
            ..Self::default()
        };
    }

    /// Next sequence to be sent.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// The connection is made (`tcp_init_transfer`). `cut` is whether the SYN had to be sent more than twice, which leaves a window of one packet.
    pub(super) fn established(&mut self, kernel: Kernel, rtt_us: Option<u64>, cut: bool) {
        self.window = if cut { 1 } else { FIRST_WINDOW };
        if let Some(rtt_us) = rtt_us {
            self.read_clock();
            let rtt_us = rtt_us + self.noise_ns / 1000;
            self.estimate.sample(rtt_us, self.una, self.next);
            self.estimate.smallest(rtt_us);
            self.set_rto(kernel);
        } else {
            // RFC 6298, section 5.7.
            self.rto = kernel.clock.jiffies(3_000_000);
        }
    }

    /// The application writes.
    pub(super) fn write(&mut self, kernel: Kernel, now: u64, bytes: u32) {
        self.written = self.written.saturating_add(bytes);
        self.push(kernel, now);
    }

    /// Sends what the window allows (`tcp_write_xmit`).
    pub(super) fn push(&mut self, kernel: Kernel, now: u64) {
        let mut sent = 0;
        let mut piece = 0;
        let most = self.piece_packets();
        while self.next < self.written && self.in_flight() < self.window {
            if sent % most == 0 {
                piece = self.number;
            }
            self.send_new(kernel, now, piece);
            sent += 1;
        }
        if sent > 0 {
            if self.reducing() {
                self.reduction_out += sent;
            }
            self.schedule_probe(kernel, now, false);
            let limited = self.next < self.written && self.in_flight() >= self.window;
            self.validate(limited);
        }
    }

    /// Packets that TCP hands over in one piece (`tcp_tso_autosize`): a millisecond's worth of the pacing rate, two at least.
    fn piece_packets(&self) -> u32 {
        let ratio = if self.window < self.threshold / 2 { 200 } else { 120 };
        let smoothed_us = self.estimate.smoothed_us().max(1);
        let packets = u64::from(self.window) * ratio * 10_000 / smoothed_us / 1024;
        u32::try_from(packets.clamp(2, 44)).unwrap_or(2)
    }

    fn send_new(&mut self, kernel: Kernel, now: u64, piece: u32) {
        let len = (self.written - self.next).min(MSS);
        let idle = self.packets_out() == 0;
        let number = self.number;
        self.segments.push(Segment {
            start: self.next,
            end: self.next + len,
            number,
            again: 0,
            sent: now,
            sacked: false,
            lost: false,
            resent: false,
        });
        self.out.push(Departure { start: self.next, len, number, again: 0, piece });
        self.number += 1;
        self.next += len;
        if idle || self.pending == Pending::Probe {
            self.rearm(kernel, now);
        }
    }

    fn validate(&mut self, limited: bool) {
        let out = self.packets_out();
        if self.una >= self.usage || limited || (!self.limited && out > self.most_out) {
            self.limited = limited;
            self.most_out = out;
            self.usage = self.next;
        }
    }

    fn window_limited(&self) -> bool {
        self.limited
            || (self.window < self.threshold && self.window < self.most_out.saturating_mul(2))
    }

    fn packets_out(&self) -> u32 {
        (self.segments.len() - self.head) as u32
    }

    fn in_flight(&self) -> u32 {
        (self.packets_out() + self.resent_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    fn reducing(&self) -> bool {
        matches!(self.state, State::Cwr | State::Recovery)
    }

    fn flying(&mut self) -> &mut [Segment] {
        self.segments.get_mut(self.head..).unwrap_or_default()
    }

    // ---- Acknowledgements

    /// An acknowledgement (`tcp_ack`).
    pub(super) fn acknowledged(&mut self, kernel: Kernel, now: u64, what: &Acknowledgement<'_>) {
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

    /// A packet is handled some microseconds after it arrived, never the same. That decides whether the answer to a probe comes faster than
    /// the fastest before, which RACK takes for the answer to the original (`tcp_rack_advance`). It is in measured round-trip times only.
    fn read_clock(&mut self) {
        self.noise = mix(self.noise);
        self.noise_ns = self.noise & 0x7fff;
    }

    /// Selective acknowledgements (`tcp_sacktag_write_queue`).
    fn take_blocks(&mut self, now: u64, what: &Acknowledgement<'_>, told: &mut Told) {
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

    /// What the acknowledgement covers leaves the queue (`tcp_clean_rtx_queue`), and gives a sample of the round-trip time.
    fn take_segments(
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
            // The timeout is not put off by data sent before its segment.
            told.set_timer = sack > us(head.sent);
        }
    }

    /// `tcp_process_tlp_ack`.
    fn probe_answered(&mut self, ack: u32, told: &Told, data: bool) {
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
    fn alert(
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
    fn after_timeout(&mut self, kernel: Kernel, what: &Acknowledgement<'_>, told: &Told) -> Resend {
        let recovered = self.una >= self.high;
        if told.advanced && self.may_undo(kernel, what) {
            self.undo_loss();
            return Resend::Nothing;
        }
        if self.frto {
            if told.original {
                // Something arrived that was never sent again: the timeout was spurious.
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

    fn undo_loss(&mut self) {
        self.undo_reduction(true);
        self.timeouts = 0;
        self.state = State::Open;
    }

    /// `tcp_packet_delayed`: the answer is to something sent before the first retransmission.
    fn delayed(&self, _kernel: Kernel, what: &Acknowledgement<'_>) -> bool {
        self.resent_stamp != 0 && what.echo < self.resent_stamp
    }

    fn may_undo(&self, kernel: Kernel, what: &Acknowledgement<'_>) -> bool {
        self.undo.is_some() && (self.undo_resent == 0 || self.delayed(kernel, what))
    }

    fn undo_reduction(&mut self, unmark: bool) {
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

    fn any_retransmitted(&self) -> bool {
        self.resent_out > 0 || self.segments.get(self.head).is_some_and(Segment::retransmitted)
    }

    fn try_open(&mut self) {
        if !self.any_retransmitted() {
            self.resent_stamp = 0;
        }
        if self.state != State::Cwr {
            self.keep_open();
        }
    }

    fn keep_open(&mut self) {
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

    // ---- Finding losses (RACK)

    fn rack_advance(&mut self, now: u64, segment: &Segment) {
        let rtt_us = (now + self.noise_ns - segment.sent) / 1000;
        if segment.retransmitted() && rtt_us < self.estimate.smallest_us() {
            // Which copy was answered is not known.
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
    fn reordering_us(&self, kernel: Kernel) -> u64 {
        if self.state >= State::Recovery || self.sacked_out >= DUPLICATES {
            return 0;
        }
        let window = (self.estimate.smallest_us() >> 2).max(kernel.profile.reordering_floor_us);
        window.min(self.estimate.smoothed_us().max(kernel.profile.reordering_floor_us))
    }

    /// `tcp_identify_packet_loss`; a timer that is set for reordering stays.
    fn find_lost(&mut self, kernel: Kernel, now: u64, told: &mut Told) {
        if !std::mem::take(&mut self.rack_advanced) {
            return;
        }
        if let Some(wait_us) = self.mark_lost(kernel, now) {
            let jiffies = kernel.least(wait_us).min(self.rto);
            self.set(kernel, now, Pending::Reorder, jiffies);
            told.set_timer = false;
        }
    }

    /// `tcp_rack_detect_loss`: marks what is lost, and says how long to wait for the rest.
    fn mark_lost(&mut self, kernel: Kernel, now: u64) -> Option<u64> {
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

    // ---- Recovery

    fn begin_undo(&mut self) {
        self.undo = Some(self.una);
        let probe = i64::from(self.probe_high != 0 && self.probe_resent);
        self.undo_resent = i64::from(self.resent_out) + probe;
        if self.undo_resent == 0 {
            self.undo_resent = -1;
        }
    }

    fn begin_recovery(&mut self) {
        self.prior_threshold = 0;
        self.begin_undo();
        if !self.reducing() {
            self.prior_threshold = self.current_threshold();
            self.begin_reduction();
        }
        self.state = State::Recovery;
    }

    fn current_threshold(&self) -> u32 {
        if self.reducing() {
            self.threshold
        } else {
            self.threshold.max((self.window >> 1) + (self.window >> 2))
        }
    }

    /// `tcp_init_cwnd_reduction`.
    fn begin_reduction(&mut self) {
        self.high = self.next;
        self.probe_high = 0;
        self.prior_window = self.window;
        self.reduction_delivered = 0;
        self.reduction_out = 0;
        self.threshold = self.cubic.reduced(self.window);
    }

    /// `tcp_cwnd_reduction`.
    fn reduce(&mut self, delivered: u32, lost: u32, advanced: bool) {
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

    fn end_reduction(&mut self) {
        if self.threshold < INFINITE && (self.state == State::Cwr || self.undo.is_some()) {
            self.window = self.threshold;
        }
    }

    /// `tcp_xmit_retransmit_queue`.
    fn resend_lost(&mut self, kernel: Kernel, now: u64) {
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

    /// Sends a segment again; a probe is not counted as a retransmission in flight.
    fn resend(&mut self, kernel: Kernel, now: u64, index: usize, counted: bool) {
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

    // ---- Timers

    fn set_rto(&mut self, kernel: Kernel) {
        self.rto = kernel.clock.jiffies(self.estimate.timeout_us().min(RTO_MAX_US));
    }

    fn set(&mut self, kernel: Kernel, now: u64, pending: Pending, jiffies: u32) {
        self.pending = pending;
        self.due = kernel.clock.fires(now, jiffies);
    }

    /// How long until the head's timeout, counted from when it was sent (`tcp_rto_delta_us`).
    fn until_timeout_us(&self, kernel: Kernel, now: u64) -> i64 {
        let Some(head) = self.segments.get(self.head) else { return 0 };
        let timeout = i64::try_from(kernel.clock.us(self.rto)).unwrap_or(i64::MAX);
        timeout - i64::try_from((now - head.sent) / 1000).unwrap_or(i64::MAX)
    }

    /// `tcp_rearm_rto`.
    fn rearm(&mut self, kernel: Kernel, now: u64) {
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
    fn schedule_probe(&mut self, kernel: Kernel, now: u64, advancing: bool) -> bool {
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
        if left > 0 && !self.patient {
            jiffies = jiffies.min(clock.jiffies(u64::try_from(left).unwrap_or(u64::MAX)));
        }
        self.set(kernel, now, Pending::Probe, jiffies);
        true
    }

    /// The timer fires (`tcp_write_timer_handler`).
    pub(super) fn timer(&mut self, kernel: Kernel, now: u64) {
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

    /// `tcp_send_loss_probe`: a probe that is sent at the time of the timeout does not back off.
    fn probe(&mut self, kernel: Kernel, now: u64) {
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
    fn timeout(&mut self, kernel: Kernel, now: u64) {
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
    /// Jiffies of a time that has `TCP_TIMEOUT_MIN` added, as this version does it.
    fn least(&self, us: u64) -> u32 {
        if self.profile.least_timeout_us > 0 {
            self.clock.jiffies(us + self.profile.least_timeout_us)
        } else {
            self.clock.jiffies(us) + 2
        }
    }
}

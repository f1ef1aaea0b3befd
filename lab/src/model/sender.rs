//! The sending half of a TCP connection: what is in flight, what of it is lost, and when to retransmit it.
//!
//! It follows Linux's net/ipv4 (tcp_input.c, tcp_output.c, tcp_recovery.c, tcp_timer.c); the comments give its names.

mod acknowledge;
mod recovery;
mod timers;

use super::congestion::Cubic;
use super::estimate::{Estimate, RTO_MIN_US};
use super::{Clock, Profile};

/// Most data in a packet: 1500 bytes minus IPv4, TCP and timestamps.
pub(super) const MSS: u32 = 1448;
/// `TCP_INFINITE_SSTHRESH`.
const INFINITE: u32 = u32::MAX;
/// `TCP_RTO_MAX`: 120 s.
const RTO_MAX_US: u64 = 120_000_000;
/// A time that is never reached.
const NEVER: u64 = u64::MAX;

/// The kernel's clock, and the profile of its version.
#[derive(Clone, Copy)]
pub(super) struct Kernel {
    pub(super) profile: &'static Profile,
    pub(super) clock: Clock,
}

/// A packet with data in flight.
#[derive(Debug, Clone, Copy)]
struct Segment {
    start: u32,
    end: u32,
    /// Its number among this side's new packets.
    number: u32,
    /// How often it was retransmitted.
    again: u32,
    /// When it was last sent.
    sent: u64,
    /// Whether it is acknowledged selectively.
    sacked: bool,
    /// Whether it is believed lost.
    lost: bool,
    /// Whether a retransmitted copy is believed to be in flight (`TCPCB_SACKED_RETRANS`).
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
    /// Number of the first packet of the piece that TCP hands over with this one.
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

/// Purpose of the retransmission timer (`icsk_pending`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Pending {
    #[default]
    Nothing,
    Timeout,
    Probe,
    Reorder,
}

/// What an acknowledgement says (the `FLAG_`s of tcp_ack).
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

/// What to send after an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resend {
    Nothing,
    Lost,
    New,
}

/// What a kernel saves of connections for later ones to the same peer (`tcp_metrics.c`), as far as it is modelled.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Saved {
    /// Eight times the smoothed round-trip time (`TCP_METRIC_RTT`); 0 if none is saved.
    smoothed8_us: u64,
}

/// The sending half.
#[derive(Debug, Default)]
pub(super) struct Sender {
    segments: Vec<Segment>,
    /// Index of the first unacknowledged segment.
    head: usize,
    /// First unacknowledged sequence number.
    una: u32,
    /// Next sequence number to be sent.
    next: u32,
    /// End of what the application has written.
    written: u32,
    /// Number of the next new packet.
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
    // For undoing a reduction.
    prior_threshold: u32,
    undo: Option<u32>,
    undo_resent: i64,
    resent_stamp: u64,
    frto: bool,
    /// State of the noise in clock readings, and that of the present reading.
    noise: u64,
    noise_ns: u64,
    /// Selectively acknowledged packets that start recovery immediately (`tp->reordering`).
    reordering: u32,
    // Use of the window.
    limited: bool,
    most_out: u32,
    usage: u32,
    cubic: Cubic,
    pending: Pending,
    /// When the timer fires.
    pub(super) due: u64,
    /// Packets to be sent now.
    pub(super) out: Vec<Departure>,
    /// Number of retransmitted packets.
    pub(super) resent: u32,
}

impl Sender {
    /// A sender for a new connection, which takes packets for lost once so many after them are acknowledged selectively.
    pub(super) fn clear(&mut self, noise: u64, reordering: u32) {
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
            reordering,
            ..Self::default()
        };
    }

    /// Next sequence number to be sent.
    pub(super) fn next(&self) -> u32 {
        self.next
    }

    /// The connection is established (`tcp_init_transfer`) after a round trip of `rtt_us`. `cut` says
    /// whether the SYN had to be sent more than twice, which leaves a window of one packet.
    pub(super) fn established(&mut self, kernel: Kernel, rtt_us: u64, cut: bool, saved: Saved) {
        self.window = if cut { 1 } else { kernel.profile.tcp.first_window };
        self.read_clock();
        let rtt_us = rtt_us + self.noise_ns / 1000;
        self.estimate.sample(rtt_us, self.una, self.next);
        self.estimate.smallest(rtt_us);
        self.set_rto(kernel);
        // tcp_init_metrics: a larger saved time gives the first timeout, until there is a sample of data.
        if saved.smoothed8_us > self.estimate.smoothed8_us() {
            let clock = kernel.clock;
            let saved = clock.whole_jiffies(saved.smoothed8_us / 8);
            let more = saved.saturating_mul(2).max(clock.jiffies(RTO_MIN_US));
            self.rto = saved.saturating_add(more).min(clock.jiffies(RTO_MAX_US));
        }
    }

    /// What the kernel saves of this connection, after what it had saved of earlier ones (`tcp_update_metrics`). Where the
    /// simulation ended with the Finished, its acknowledgement, with that of the FIN, would be one more sample.
    pub(super) fn saves(&self, before: Saved, ended_with_finished: bool) -> Saved {
        let mut estimate = self.estimate;
        if ended_with_finished {
            estimate.sample(estimate.smallest_us(), self.una, self.next);
        }
        let smoothed8_us = estimate.smoothed8_us();
        // A larger time is taken at once, a smaller one by an eighth.
        let smoothed8_us = match before.smoothed8_us.checked_sub(smoothed8_us) {
            None => smoothed8_us,
            Some(excess) => before.smoothed8_us - (excess >> 3),
        };
        Saved { smoothed8_us }
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
        u32::try_from(self.segments.len() - self.head).unwrap_or(u32::MAX)
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
}

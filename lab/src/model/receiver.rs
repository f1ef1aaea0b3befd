//! The receiving half of a TCP connection: what has arrived, and when to acknowledge it.

use super::wire::{Packet, Range};
use super::{Clock, Profile};

/// Acknowledgements that are sent immediately at the beginning of a connection (`TCP_MAX_QUICKACKS`).
const QUICK: u8 = 16;
/// `TCP_ATO_MIN` and `TCP_DELACK_MIN`: 40 ms.
const DELAY_US: u64 = 40_000;
/// A time that is never reached.
const NEVER: u64 = u64::MAX;
/// The kernel's first guess of the peer's segment size (`TCP_MSS_DEFAULT`).
const FIRST_SEGMENT: u32 = 536;

/// The receiving half.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// Everything before this has arrived (`rcv_nxt`).
    pub(super) next: u32,
    /// Acknowledged up to here (`rcv_wup`).
    told: u32,
    /// Blocks that arrived out of order, the latest first.
    blocks: Vec<Range>,
    /// A block that arrived twice and was not reported yet.
    duplicate: Option<Range>,
    quick: u8,
    began: bool,
    replies: u8,
    last_data: u64,
    last_reply: u64,
    segment: u32,
    /// Whether an acknowledgement is due.
    owed: bool,
    /// When the delayed acknowledgement is due.
    pub(super) due: u64,
    /// The timestamp to echo.
    pub(super) recent: u64,
}

impl Receiver {
    pub(super) fn clear(&mut self) {
        self.blocks.clear();
        *self = Self {
            blocks: std::mem::take(&mut self.blocks),
            due: NEVER,
            segment: FIRST_SEGMENT,
            ..Self::default()
        };
    }

    /// The peer's SYN: its data begins at 1.
    pub(super) fn synchronized(&mut self, stamp: u64) {
        self.next = 1;
        self.told = 1;
        self.recent = stamp;
    }

    /// A packet with data. Returns true if an acknowledgement must be sent immediately.
    pub(super) fn data(
        &mut self,
        profile: &Profile,
        clock: &Clock,
        now: u64,
        packet: &Packet,
    ) -> bool {
        let (start, end) = (packet.start, packet.start + packet.len);
        if start <= self.told {
            self.recent = packet.stamp;
        }
        self.owed = true;
        if end <= self.next {
            // A spurious retransmission: reported immediately, so that the sender can undo (RFC 2883).
            self.duplicate = Some((start, end));
            self.quick = QUICK;
            self.replies = 0;
            return true;
        }
        self.segment = self.segment.max(packet.len);
        if !self.began {
            self.began = true;
            self.quick = QUICK;
        }
        self.last_data = now;
        let gap = !self.blocks.is_empty();
        if start > self.next {
            self.keep(start, end);
            return true;
        }
        self.next = end;
        if gap {
            self.absorb();
        }
        let interactive = self.replies >= profile.tcp.replies;
        let many = self.next - self.told > self.segment;
        if gap || many || (self.quick > 0 && !interactive) {
            return true;
        }
        if self.due == NEVER {
            self.due = clock.fires(now, clock.jiffies(DELAY_US));
        }
        false
    }

    /// The delayed acknowledgement is due: returns true if it still has to be sent.
    pub(super) fn late(&mut self) -> bool {
        self.due = NEVER;
        if self.owed {
            // There was no reply in time, so the connection is not interactive.
            self.replies = 0;
        }
        self.owed
    }

    /// Data is sent: a reply right after data arrived marks an interactive connection, in which acknowledgements
    /// travel with data.
    pub(super) fn replying(&mut self, now: u64) {
        if self.last_reply < self.last_data && now - self.last_data < DELAY_US * 1000 {
            self.replies = self.replies.saturating_add(1);
        }
        self.last_reply = now;
    }

    /// Writes the acknowledgement into a packet to be sent.
    pub(super) fn acknowledge(&mut self, packet: &mut Packet) {
        packet.ack = self.next;
        packet.echo = self.recent;
        let duplicate = self.duplicate.take();
        packet.duplicate = duplicate.is_some();
        let told = duplicate.iter().chain(&self.blocks);
        for (block, range) in packet.blocks.iter_mut().zip(told) {
            *block = *range;
            packet.block_count += 1;
        }
        if self.owed && self.quick > 0 {
            self.quick -= 1;
        }
        self.told = self.next;
        self.owed = false;
        self.due = NEVER;
    }

    /// Keeps a block that came out of order, joined with its neighbours, at the front.
    fn keep(&mut self, start: u32, end: u32) {
        let mut joined = (start, end);
        if self.blocks.iter().any(|(from, to)| *from <= start && end <= *to) {
            self.duplicate = Some((start, end));
        }
        self.blocks.retain(|(from, to)| {
            let touches = *from <= joined.1 && joined.0 <= *to;
            if touches {
                joined = (joined.0.min(*from), joined.1.max(*to));
            }
            !touches
        });
        self.blocks.insert(0, joined);
    }

    /// Takes over what now follows without a gap.
    fn absorb(&mut self) {
        // Blocks neither touch nor overlap, so at most one follows.
        if let Some(index) = self.blocks.iter().position(|(from, _)| *from <= self.next) {
            let (_, end) = self.blocks.remove(index);
            self.next = self.next.max(end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::PROFILES;

    #[test]
    fn out_of_order_data_are_told_latest_first() {
        let profile = &PROFILES[0];
        let clock = Clock::new(profile, 0);
        let mut receiver = Receiver::default();
        receiver.clear();
        receiver.synchronized(1);
        let mut told = |start: u32, len: u32| {
            let data = Packet { start, len, stamp: 5, ..Packet::default() };
            let at_once = receiver.data(profile, &clock, 1, &data);
            let mut reply = Packet::default();
            receiver.acknowledge(&mut reply);
            let blocks = reply.blocks[..usize::from(reply.block_count)].to_vec();
            (at_once, reply.ack, blocks, reply.duplicate)
        };
        assert_eq!(told(1, 100), (true, 101, vec![], false));
        assert_eq!(told(201, 100), (true, 101, vec![(201, 301)], false));
        assert_eq!(told(401, 100), (true, 101, vec![(401, 501), (201, 301)], false));
        assert_eq!(told(301, 100), (true, 101, vec![(201, 501)], false));
        assert_eq!(told(101, 100), (true, 501, vec![], false));
        assert_eq!(told(101, 100), (true, 501, vec![(101, 201)], true));
    }
}

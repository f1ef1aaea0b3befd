//! The connections that the link sees: their numbers, what was sent again, what is to be lost.

use std::collections::{BTreeMap, HashMap};

use super::draw::lost;
use super::packet::{Key, Packet, Segment, TCP};
use crate::trace::Side;

/// A packet that was lost on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Who sent it.
    pub from: Side,
    /// Its place in the connection: the TCP sequence relative to the first, or what it acknowledges if it has no data, or the
    /// number of the packet.
    pub place: u32,
    /// How often this place was sent before; from [`BARE`] on, packets without data are counted.
    pub again: u32,
}

/// What happened to a connection on the link.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    /// Its number: in the order of the first packets.
    pub number: u64,
    /// When packets were sent again, by the monotonic clock in nanoseconds.
    pub resent_ns: Vec<u64>,
    /// Packets that came late by the link's fault.
    pub late: u16,
    /// What was lost on purpose.
    pub lost: Vec<Lost>,
    /// Packets of the client, of the server.
    pub packets: [u64; 2],
    /// Bytes of IP of the client, of the server.
    pub bytes: [u64; 2],
    ways: [Way; 2],
}

/// One direction of a connection.
#[derive(Debug, Clone, Default)]
struct Way {
    first: Option<u32>,
    /// Where what was sent so far ends.
    end: u32,
    data: HashMap<u32, u32>,
    bare: HashMap<u32, u32>,
}

/// All connections that are remembered, and the number of the next one.
#[derive(Debug, Default)]
pub(super) struct Flows {
    next_number: u64,
    next_id: u64,
    mark: u64,
    known: HashMap<Key, u64>,
    flows: BTreeMap<u64, (Key, Flow)>,
}

/// What is to become of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fate {
    /// The connection, if it has one that is numbered.
    pub id: Option<u64>,
    /// Its number, for further draws.
    pub number: u64,
    /// The packet's place.
    pub place: u32,
    /// How often it was sent before.
    pub again: u32,
    /// Whether the link loses it.
    pub lost: bool,
}

impl Flows {
    /// The next connection has this number; what is seen from now on is what [`Self::collect`] tells.
    pub fn from(&mut self, number: u64) {
        self.next_number = number;
        self.mark = self.next_id;
    }

    /// The connections since [`Self::from`].
    pub fn collect(&mut self) -> Vec<Flow> {
        self.flows.range(self.mark..).map(|(_, (_, flow))| flow.clone()).collect()
    }

    /// What is to become of this packet.
    pub fn fate(
        &mut self,
        packet: &Packet,
        from: Side,
        bytes: usize,
        now_ns: u64,
        chance: &Chance,
    ) -> Fate {
        let spared = Fate { id: None, number: 0, place: 0, again: 0, lost: false };
        if (FIRST_SPARED..=LAST_SPARED).contains(&packet.key.server) {
            return spared;
        }
        let Some(id) = self.find(packet, from) else { return spared };
        let Some((_, flow)) = self.flows.get_mut(&id) else { return spared };
        let side = usize::from(from == Side::Server);
        flow.packets[side] += 1;
        flow.bytes[side] += bytes as u64;
        let count = flow.packets[side];
        let (place, again) = match &packet.segment {
            Some(segment) => {
                let other_first = flow.ways[1 - side].first.unwrap_or_default();
                let (place, again, resent) = flow.ways[side].place(segment, other_first);
                if resent && flow.resent_ns.len() < REMEMBERED {
                    flow.resent_ns.push(now_ns);
                }
                (place, again)
            }
            None => (u32::try_from(count % (1 << 32)).unwrap_or_default(), 0),
        };
        // A connection that is cut has nothing to lose any more, and a lost RST would leave the other end waiting.
        let spared = packet.segment.is_some_and(|segment| segment.rst);
        let lost = !spared && lost(chance.seed, flow.number, from, place, again, chance.loss);
        if lost && flow.lost.len() < REMEMBERED {
            flow.lost.push(Lost { from, place, again });
        }
        Fate { id: Some(id), number: flow.number, place, again, lost }
    }

    /// A packet of this connection came late.
    pub fn late(&mut self, id: u64) {
        if let Some((_, flow)) = self.flows.get_mut(&id) {
            flow.late = flow.late.saturating_add(1);
        }
    }

    /// The connection of a packet. A first one begins a connection: a SYN, or whatever is not TCP.
    fn find(&mut self, packet: &Packet, from: Side) -> Option<u64> {
        let known = self.known.get(&packet.key).copied();
        let begins = match &packet.segment {
            Some(segment) if segment.syn && !segment.ack => {
                // The same port again with another first sequence number is another connection.
                let side = usize::from(from == Side::Server);
                known
                    .and_then(|id| self.flows.get(&id))
                    .is_none_or(|(_, flow)| flow.ways[side].first != Some(segment.sequence))
            }
            Some(_) => false,
            None => known.is_none() && packet.key.protocol != TCP,
        };
        if !begins {
            return known;
        }
        let id = self.next_id;
        self.next_id += 1;
        let flow = Flow { number: self.next_number, ..Flow::default() };
        self.next_number += 1;
        self.known.insert(packet.key, id);
        self.flows.insert(id, (packet.key, flow));
        if self.flows.len() > CONNECTIONS
            && let Some((old, (key, _))) = self.flows.pop_first()
            && self.known.get(&key) == Some(&old)
        {
            self.known.remove(&key);
        }
        Some(id)
    }
}

/// What the draw depends on besides the packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Chance {
    /// The emulation's seed.
    pub seed: u64,
    /// Share of packets that is lost.
    pub loss: f64,
}

impl Way {
    /// Place in the connection, how often it was sent before, and whether the packet is one that is sent again.
    fn place(&mut self, segment: &Segment, other_first: u32) -> (u32, u32, bool) {
        let first = *self.first.get_or_insert(segment.sequence);
        let place = segment.sequence.wrapping_sub(first);
        if self.data.len() + self.bare.len() > PLACES {
            self.data.clear();
            self.bare.clear();
        }
        if segment.length == 0 {
            // Acknowledgements share the sequence number of the data that comes next: they are a count of their own.
            let acknowledged = segment.acknowledged.wrapping_sub(other_first);
            let count = self.bare.entry(acknowledged).or_default();
            *count += 1;
            return (acknowledged, BARE + *count - 1, false);
        }
        let count = self.data.entry(place).or_default();
        *count += 1;
        let again = *count - 1;
        let end = place.wrapping_add(segment.length);
        // Serial numbers: RFC 1982's comparison, as TCP does it.
        let new =
            end.wrapping_sub(self.end) < 1 << 31 && end != self.end || segment.syn && again == 0;
        if new {
            self.end = end;
        }
        (place, again, !new)
    }
}

/// From here on counts the [`Lost::again`] of packets without data.
pub const BARE: u32 = 1 << 16;

/// Connections to these ports at the server's end have no number and lose nothing: for what comes before a measurement, and the
/// last one for calibration. No other socket gets them by itself.
pub(super) const FIRST_SPARED: u16 = 60_000;
/// See [`FIRST_SPARED`].
pub(super) const LAST_SPARED: u16 = 60_099;

/// Connections that are remembered.
const CONNECTIONS: usize = 1 << 16;
/// Events of a connection that are remembered.
const REMEMBERED: usize = 4096;
/// Places of one direction of a connection that are remembered.
const PLACES: usize = 1 << 18;

//! The connections that the link sees: their numbers, retransmissions, and the packets to lose.

use std::collections::{BTreeMap, HashMap};

use super::packet::{Key, Long, Packet, Segment, TCP};
use crate::link::{PURE_ACK, lost};
use crate::trace::Side;

/// A packet that was lost on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Its sender.
    pub from: Side,
    /// Its position in the connection, as in [`lost`].
    pub packet: u32,
    /// How often it was sent before, as in [`lost`].
    pub retransmission: u32,
}

/// What the link saw of a connection.
#[derive(Debug, Clone, Default)]
pub struct Flow {
    /// Its number: in the order of the first packets.
    pub number: u64,
    /// Times of retransmissions, by the monotonic clock in nanoseconds.
    pub resent_ns: Vec<u64>,
    /// Number of packets that the link delayed, or may have delayed.
    pub late: u16,
    /// Packets that were lost on purpose.
    pub lost: Vec<Lost>,
    /// Packets of client and server.
    pub packets: [u64; 2],
    /// IP bytes of client and server.
    pub bytes: [u64; 2],
    ways: [Way; 2],
    /// Connection ids that a client's Initial of this QUIC connection may be addressed to.
    ids: Vec<u64>,
    /// When the last packet arrived.
    last_ns: u64,
}

/// One direction of a connection.
#[derive(Debug, Clone, Default)]
struct Way {
    first: Option<u32>,
    /// End of what was sent so far.
    end: u32,
    /// By relative sequence number: the packet's number, and how often it was retransmitted.
    seen: HashMap<u32, (u32, u32)>,
    /// Number of the next packet that carries something new.
    next: u32,
    /// Packets without data since the last new one.
    bare: u32,
}

/// All remembered connections, and the number of the next one.
#[derive(Debug, Default)]
pub(super) struct Flows {
    next_number: u64,
    next_id: u64,
    mark: u64,
    known: HashMap<Key, u64>,
    flows: BTreeMap<u64, (Key, Flow)>,
}

/// What happens to a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fate {
    /// Its connection, if that is numbered.
    pub id: Option<u64>,
    /// Its number, for further draws.
    pub number: u64,
    /// The packet's position.
    pub place: u32,
    /// How often it was sent before.
    pub again: u32,
    /// Whether the link loses it.
    pub lost: bool,
}

impl Flows {
    /// Numbers the next connection; from now on [`Self::collect`] returns what is seen.
    pub fn from(&mut self, number: u64) {
        self.next_number = number;
        self.mark = self.next_id;
        // Only QUIC's Initials show where another connection with the same ports begins.
        let flows = &self.flows;
        self.known.retain(|key, id| {
            key.protocol == TCP || flows.get(id).is_some_and(|(_, flow)| !flow.ids.is_empty())
        });
    }

    /// The connections since [`Self::from`].
    pub fn collect(&mut self) -> Vec<Flow> {
        self.flows.range(self.mark..).map(|(_, (_, flow))| flow.clone()).collect()
    }

    /// Decides what happens to this packet.
    pub fn fate(
        &mut self,
        packet: &Packet,
        from: Side,
        bytes: usize,
        now_ns: u64,
        chance: &Chance,
    ) -> Fate {
        let spared = Fate { id: None, number: 0, place: 0, again: 0, lost: false };
        let is_spared = |port| (FIRST_SPARED..=LAST_SPARED).contains(&port);
        if is_spared(packet.key.client) || is_spared(packet.key.server) {
            return spared;
        }
        let Some(id) = self.find(packet, from, now_ns) else { return spared };
        let Some((_, flow)) = self.flows.get_mut(&id) else { return spared };
        let side = usize::from(from == Side::Server);
        flow.last_ns = now_ns;
        if let Some(long) = &packet.long {
            flow.learn(long, from);
        }
        flow.packets[side] += 1;
        flow.bytes[side] += bytes as u64;
        let count = flow.packets[side];
        let (place, again) = match &packet.segment {
            Some(segment) => {
                let (place, again, resent) = flow.ways[side].place(segment);
                if resent && flow.resent_ns.len() < REMEMBERED {
                    flow.resent_ns.push(now_ns);
                }
                (place, again)
            }
            // Encrypted packets cannot be told apart: the count is the position, which pairs as long as both sides
            // send the same.
            None => (u32::try_from((count - 1) % (1 << 32)).unwrap_or_default(), 0),
        };
        // A connection that is reset has nothing to lose any more, and a lost RST would leave the other end waiting.
        let spared = packet.segment.is_some_and(|segment| segment.rst);
        let lost = !spared && lost(chance.seed, flow.number, from, place, again, chance.loss);
        if lost && flow.lost.len() < REMEMBERED {
            flow.lost.push(Lost { from, packet: place, retransmission: again });
        }
        Fate { id: Some(id), number: flow.number, place, again, lost }
    }

    /// Notes that a packet of this connection was late.
    pub fn late(&mut self, id: u64) {
        if let Some((_, flow)) = self.flows.get_mut(&id) {
            flow.late = flow.late.saturating_add(1);
        }
    }

    /// The connection of a packet. A new connection begins with a SYN, with any first packet that is not TCP, with a
    /// client's Initial to an unknown connection id (RFC 9000, section 7.2), and with a client's packet after a long
    /// silence that is not TCP.
    fn find(&mut self, packet: &Packet, from: Side, now_ns: u64) -> Option<u64> {
        let known = self.known.get(&packet.key).copied();
        let begins = match &packet.segment {
            Some(segment) if segment.syn && !segment.ack => {
                // The same port with another initial sequence number is another connection.
                let side = usize::from(from == Side::Server);
                known
                    .and_then(|id| self.flows.get(&id))
                    .is_none_or(|(_, flow)| flow.ways[side].first != Some(segment.sequence))
            }
            Some(_) => false,
            None if packet.key.protocol == TCP => false,
            None => known.and_then(|id| self.flows.get(&id)).is_none_or(|(_, flow)| {
                let idle = now_ns.saturating_sub(flow.last_ns) > IDLE_NS;
                let another = packet
                    .long
                    .is_some_and(|long| long.initial && !flow.ids.contains(&long.destination));
                from == Side::Client && (idle || another)
            }),
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

impl Flow {
    /// Destinations of a client's Initials: the id that it chose itself, or the server's id in its answers (or in a
    /// Retry).
    fn learn(&mut self, long: &Long, from: Side) {
        let id = match from {
            Side::Client if self.ids.is_empty() && long.initial => long.destination,
            Side::Client => return,
            Side::Server => long.source,
        };
        if self.ids.len() < IDS && !self.ids.contains(&id) {
            self.ids.push(id);
        }
    }
}

/// What a draw depends on besides the packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Chance {
    /// The emulation's seed.
    pub seed: u64,
    /// Share of packets to lose.
    pub loss: f64,
}

impl Way {
    /// The arguments `packet` and `retransmission` of [`lost`], derived from what is seen on the wire, and whether
    /// the packet is a retransmission.
    fn place(&mut self, segment: &Segment) -> (u32, u32, bool) {
        let first = *self.first.get_or_insert(segment.sequence);
        let sequence = segment.sequence.wrapping_sub(first);
        if segment.length == 0 {
            self.bare = self.bare.wrapping_add(1);
            return (self.next, PURE_ACK | (self.bare - 1), false);
        }
        let end = sequence.wrapping_add(segment.length);
        // Serial numbers: RFC 1982's comparison, as TCP does it.
        let beyond = end != self.end && end.wrapping_sub(self.end) < 1 << 31;
        self.end = if beyond { end } else { self.end };
        if let Some((number, times)) = self.seen.get_mut(&sequence) {
            *times += 1;
            return (*number, *times, true);
        }
        if self.seen.len() >= PLACES {
            self.seen.clear();
        }
        let number = self.next;
        self.seen.insert(sequence, (number, 0));
        self.next = self.next.wrapping_add(1);
        self.bare = 0;
        (number, 0, !beyond)
    }
}

/// Connections with these ports at either end have no number and lose nothing: for preparing a measurement, and the
/// last one for calibration. The kernel assigns them to no other socket.
pub(super) const FIRST_SPARED: u16 = 60_000;
/// See [`FIRST_SPARED`].
pub(super) const LAST_SPARED: u16 = 60_099;

/// Silence after which the same ports mean another connection: longer than QUIC's idle timeouts.
const IDLE_NS: u64 = 120_000_000_000;
/// Connection ids that are remembered per connection.
const IDS: usize = 16;
/// Connections that are remembered.
const CONNECTIONS: usize = 1 << 16;
/// Events that are remembered per connection.
const REMEMBERED: usize = 4096;
/// Positions that are remembered per direction of a connection.
const PLACES: usize = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::{Link, Transfer};
    use crate::live::packet::UDP;
    use crate::model::{PROFILES, emitted};
    use crate::trace::{Step, Trace};

    fn segment(sequence: u32, length: u32) -> Segment {
        Segment { sequence, length, syn: false, ack: true, rst: false }
    }

    fn packet(client: u16, segment: Segment) -> Packet {
        Packet {
            key: Key { protocol: TCP, client, server: 443 },
            segment: Some(segment),
            long: None,
        }
    }

    fn syn(first: u32) -> Segment {
        Segment { syn: true, ack: false, ..segment(first, 1) }
    }

    fn datagram(client: u16, long: Option<Long>) -> Packet {
        Packet { key: Key { protocol: UDP, client, server: 443 }, segment: None, long }
    }

    fn initial(destination: u64, source: u64) -> Option<Long> {
        Some(Long { initial: true, destination, source })
    }

    /// The model knows the numbers of its packets, the link derives them from sequence numbers: both must agree on
    /// what the model sends.
    #[test]
    fn numbers_are_those_of_the_model() {
        let step = |from, bytes| Step { from, bytes, cpu_ns: 100_000 };
        let trace = Trace {
            steps: vec![
                step(Side::Client, 1402),
                step(Side::Server, 15_600),
                step(Side::Client, 74),
                step(Side::Server, 500),
            ],
            client_done: 2,
            server_after_ns: 0,
            hello_retry: false,
            resumed: false,
            cpu_spread: Vec::new(),
        };
        let link = Link::new(std::time::Duration::from_millis(30), 0.1);
        let transfer = Transfer { request: 300, body: 200_000 };
        let (mut again_seen, mut acks_seen) = (0, 0);
        for flow in 0..200 {
            for sent in emitted(&PROFILES[0], &link, &trace, transfer, 1, flow) {
                let mut way = Way::default();
                for one in sent {
                    let length = one.len + u32::from(one.syn);
                    let sequence = 4_294_000_000_u32.wrapping_add(one.start);
                    let (place, again, resent) = way.place(&segment(sequence, length));
                    assert_eq!((place, again), (one.number, one.again), "flow {flow}: {one:?}");
                    assert_eq!(resent, again > 0 && again < PURE_ACK);
                    again_seen += usize::from(resent);
                    acks_seen += usize::from(again >= PURE_ACK);
                }
            }
        }
        assert!(again_seen > 500 && acks_seen > 5_000, "{again_seen} {acks_seen}");
    }

    #[test]
    fn a_port_that_is_used_again_is_another_connection_of_quic() {
        let mut flows = Flows::default();
        let chance = Chance { seed: 1, loss: 0.0 };
        let mut number = |from, long, second: u64| {
            flows.fate(&datagram(50_000, long), from, 1200, second * 1_000_000_000, &chance).number
        };
        let (client, server) = (Side::Client, Side::Server);
        assert_eq!(number(client, initial(1, 2), 0), 0);
        // Retransmitted; the answer; addressed to the server's own id; without a long header.
        assert_eq!(number(client, initial(1, 2), 1), 0);
        assert_eq!(number(server, initial(2, 3), 1), 0);
        assert_eq!(number(client, initial(3, 2), 1), 0);
        assert_eq!(number(client, None, 2), 0);
        // The same port, another connection.
        assert_eq!(number(client, initial(4, 5), 2), 1);
        assert_eq!(number(server, initial(5, 6), 2), 1);
        assert_eq!(number(client, initial(6, 5), 2), 1);
        // After a long silence of both.
        assert_eq!(number(server, None, 300), 1);
        assert_eq!(number(client, None, 500), 2);
        // The rest of a connection does not belong to the next count; the next Initial does.
        flows.from(7);
        let mut number = |long| {
            flows.fate(&datagram(50_000, long), Side::Client, 1200, 501_000_000_000, &chance).number
        };
        assert_eq!(number(initial(8, 9)), 7);
        flows.from(20);
        let mut number = |long| {
            flows.fate(&datagram(50_000, long), Side::Client, 1200, 502_000_000_000, &chance).number
        };
        assert_eq!(number(None), 7);
        assert_eq!(number(initial(10, 11)), 20);
        // Other datagrams have no visible beginning: after `from` they count as new.
        let other = |flows: &mut Flows| {
            flows.fate(&datagram(40_000, None), Side::Client, 64, 502_000_000_000, &chance).number
        };
        assert_eq!(other(&mut flows), 21);
        flows.from(30);
        assert_eq!(other(&mut flows), 30);
    }

    #[test]
    fn connections_are_numbered_in_order() {
        let mut flows = Flows::default();
        let chance = Chance { seed: 1, loss: 0.0 };
        flows.from(10);
        let mut number = |packet: &Packet| flows.fate(packet, Side::Client, 40, 0, &chance).number;
        assert_eq!(number(&packet(1000, syn(5))), 10);
        assert_eq!(number(&packet(2000, syn(5))), 11);
        // Sent again: the same connection.
        assert_eq!(number(&packet(1000, syn(5))), 10);
        assert_eq!(number(&packet(1000, segment(6, 100))), 10);
        // The same port, another connection.
        assert_eq!(number(&packet(1000, syn(77))), 12);
        let seen = flows.collect();
        assert_eq!(seen.iter().map(|flow| flow.number).collect::<Vec<_>>(), [10, 11, 12]);
        assert_eq!(seen[0].resent_ns.len(), 1);
        assert_eq!((seen[0].packets, seen[0].bytes), ([3, 0], [120, 0]));
        flows.from(0);
        assert!(flows.collect().is_empty());
    }

    #[test]
    fn what_is_spared_or_cut_or_unknown_is_not_lost() {
        let mut flows = Flows::default();
        let chance = Chance { seed: 1, loss: 1.0 };
        let mut lost = |packet: &Packet| flows.fate(packet, Side::Client, 40, 0, &chance).lost;
        let spared = Key { protocol: TCP, client: 1, server: FIRST_SPARED };
        assert!(!lost(&Packet { key: spared, segment: Some(syn(5)), long: None }));
        assert!(!lost(&packet(1000, segment(6, 100))));
        assert!(lost(&packet(1000, syn(5))));
        assert!(lost(&packet(1000, segment(6, 100))));
        assert!(!lost(&packet(1000, Segment { rst: true, ..segment(106, 0) })));
        let datagram = datagram(7, None);
        assert!(lost(&datagram));
    }

    #[test]
    fn only_so_many_connections_are_remembered() {
        let mut flows = Flows::default();
        let chance = Chance { seed: 1, loss: 0.0 };
        for first in 0..u32::try_from(CONNECTIONS).unwrap() + 10 {
            flows.fate(&packet(1000, syn(first)), Side::Client, 40, 0, &chance);
        }
        assert_eq!(flows.flows.len(), CONNECTIONS);
        assert_eq!(flows.known.len(), 1);
    }
}

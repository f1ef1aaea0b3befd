//! Simulates one connection from SYN to the last byte, event by event. Memory is kept between connections: an event
//! allocates nothing.

use super::receiver::Receiver;
use super::sender::{Acknowledgement, Kernel, Saved, Sender};
use super::wire::{Packet, Path, Wire};
use super::{Clock, Profile};
use crate::link::{Draw, Link, Outcome, PURE_ACK, Transfer};
use crate::trace::{Side, Trace};

/// `TCP_TIMEOUT_INIT`: 1 s.
const FIRST_TIMEOUT_US: u64 = 1_000_000;
/// `TCP_RTO_MAX`: 120 s.
const TIMEOUT_MAX_US: u64 = 120_000_000;
/// Time after which a connection is abandoned: an hour.
pub(super) const LIMIT_NS: u64 = 3_600_000_000_000;
/// Most data in one direction: more than is realistic, and far from the end of TCP's sequence numbers.
const MOST_BYTES: u64 = 1 << 30;
/// Most data of a TLS record, and its overhead: header, type, tag (RFC 8446, section 5.2).
const RECORD: u32 = 16_384;
const RECORD_ADDS: u32 = 22;
/// `tcp_reordering`, the packets that must be acknowledged selectively until those before them count as lost.
const REORDERING: u32 = 3;
/// A time that is never reached.
const NEVER: u64 = u64::MAX;

const CLIENT: usize = 0;
const SERVER: usize = 1;

/// Data that a side writes at once.
#[derive(Debug, Clone, Copy)]
struct Write {
    bytes: u32,
    /// Bytes that must have arrived from the other side before.
    needs: u32,
    /// CPU time after that.
    cpu_ns: u64,
    /// Whether it completes the client's handshake.
    done: bool,
}

/// The writes of both sides, in the units of the simulation.
#[derive(Debug)]
pub(super) struct Script {
    writes: [Vec<Write>; 2],
    /// Bytes that must have arrived at the client for the first, and for the last byte of the answer; `None` without
    /// an answer.
    answer: Option<[u32; 2]>,
}

impl Script {
    /// The script for the flights of a trace, with the transfer after them: the request is sent with the client's
    /// Finished, the answer with the server's tickets.
    pub(super) fn new(trace: &Trace, transfer: Transfer) -> Self {
        let mut writes = [Vec::new(), Vec::new()];
        let mut sent = [0_u32; 2];
        let mut tickets = (0_u32, trace.server_after_ns);
        for (index, step) in trace.steps.iter().enumerate() {
            let side = usize::from(step.from == Side::Server);
            if index > trace.client_done && side == SERVER {
                tickets.0 = add(tickets.0, u64::from(step.bytes));
                tickets.1 = tickets.1.saturating_add(step.cpu_ns);
                continue;
            }
            let mut bytes = step.bytes;
            if index == trace.client_done {
                bytes = add(bytes, records(transfer.request));
            }
            writes[side].push(Write {
                bytes,
                needs: sent[1 - side],
                cpu_ns: step.cpu_ns,
                done: index == trace.client_done,
            });
            sent[side] = add(sent[side], u64::from(bytes));
        }
        let body = add(0, records(transfer.body));
        let before = add(sent[SERVER], u64::from(tickets.0));
        let bytes = add(tickets.0, u64::from(body));
        if bytes > 0 {
            writes[SERVER].push(Write {
                bytes,
                needs: sent[CLIENT],
                cpu_ns: tickets.1,
                done: false,
            });
        }
        // A record cannot be read before all of it has arrived.
        let first = transfer.body.min(RECORD) + RECORD_ADDS;
        let answer = (transfer.body > 0)
            .then(|| [add(before, u64::from(first)), add(before, u64::from(body))]);
        Self { writes, answer }
    }
}

/// Bytes of TLS records for so much data.
fn records(data: u32) -> u64 {
    u64::from(data) + u64::from(RECORD_ADDS) * u64::from(data.div_ceil(RECORD))
}

fn add(to: u32, bytes: u64) -> u32 {
    u32::try_from((u64::from(to) + bytes).min(MOST_BYTES)).unwrap_or(u32::MAX)
}

/// State of a side's TCP handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// The client has sent a SYN; the server waits for one.
    #[default]
    Beginning,
    /// The server has answered.
    Answered,
    /// Data may flow.
    Connected,
}

/// One side.
#[derive(Debug, Default)]
struct End {
    phase: Phase,
    sender: Sender,
    receiver: Receiver,
    /// What its kernel has saved of earlier connections.
    saved: Saved,
    /// When the SYN, or SYN-ACK, is due for retransmission.
    syn_due: u64,
    /// When it was first sent, and last.
    syn_first: u64,
    syn_sent: u64,
    /// How often it was retransmitted, and how often because of the timer.
    syn_again: u32,
    syn_timeouts: u32,
    /// Packets without data since the last new packet, and that packet's number.
    acks: (u32, u32),
    /// Index of the next write, and its time, if what it needs has arrived.
    writing: usize,
    write_due: u64,
}

impl End {
    fn clear(&mut self, noise: u64, reordering: u32) {
        self.sender.clear(noise, reordering);
        self.receiver.clear();
        *self = Self {
            sender: std::mem::take(&mut self.sender),
            receiver: std::mem::take(&mut self.receiver),
            saved: self.saved,
            syn_due: NEVER,
            write_due: NEVER,
            ..Self::default()
        };
    }
}

/// The next event.
#[derive(Debug, Clone, Copy)]
enum Event {
    Arrival,
    Syn,
    Timer,
    Acknowledge,
    Write,
}

/// A link with two ends, used again for each connection. What a client's kernel saves of one is there for the next.
#[derive(Debug)]
pub(super) struct Simulation {
    profile: &'static Profile,
    path: Path,
    clock: Clock,
    ends: [End; 2],
    /// The packets of each side.
    wires: [Wire; 2],
    draws: [Draw; 2],
    outcome: Outcome,
}

impl Simulation {
    pub(super) fn new(profile: &'static Profile, link: &Link) -> Self {
        let draw = Draw::new(0, 0, Side::Client);
        Self {
            profile,
            path: Path::from(link),
            clock: Clock::default(),
            ends: [End::default(), End::default()],
            wires: [Wire::default(), Wire::default()],
            draws: [draw, draw],
            outcome: nothing(),
        }
    }

    /// Runs one connection.
    pub(super) fn run(&mut self, script: &Script, seed: u64, flow: u64) -> Outcome {
        self.draws = [Draw::new(seed, flow, Side::Client), Draw::new(seed, flow, Side::Server)];
        self.clock = Clock::new(self.profile, self.draws[CLIENT].bits(u32::MAX, 0));
        for (side, end) in self.ends.iter_mut().enumerate() {
            let reordering =
                if side == CLIENT { self.profile.tcp.client_reordering } else { REORDERING };
            end.clear(self.draws[side].bits(u32::MAX, 1), reordering);
            self.wires[side].clear();
        }
        self.outcome = nothing();
        self.send_syn(CLIENT, 0);
        let mut finished = false;
        while !finished {
            let (now, side, event) = self.next();
            if now > LIMIT_NS {
                break;
            }
            finished = self.happen(script, now, side, event);
        }
        // A connection that was abandoned does not come to its end in TIME-WAIT.
        if self.profile.tcp.client_saves && self.outcome.handshake_ns < LIMIT_NS {
            let client = &mut self.ends[CLIENT];
            client.saved = client.sender.saves(client.saved, script.answer.is_none());
        }
        let resent = self.resent();
        let outcome = &mut self.outcome;
        if outcome.handshake_ns == LIMIT_NS {
            outcome.handshake_retransmissions = resent;
        }
        if script.answer.is_none() {
            outcome.first_byte_ns = outcome.handshake_ns;
            outcome.last_byte_ns = outcome.handshake_ns;
        }
        outcome.retransmissions = resent;
        *outcome
    }

    /// The packets that each side sent in the last connection.
    #[cfg(test)]
    pub(super) fn sent(&mut self) -> [Vec<super::wire::Sent>; 2] {
        self.wires.each_mut().map(|wire| std::mem::take(&mut wire.sent))
    }

    /// The earliest event that is due.
    fn next(&self) -> (u64, usize, Event) {
        let mut first = (NEVER, CLIENT, Event::Syn);
        for side in [CLIENT, SERVER] {
            let end = &self.ends[side];
            let arrival = self.wires[1 - side].packets.front().map_or(NEVER, |one| one.arrives);
            for (at, event) in [
                (arrival, Event::Arrival),
                (end.syn_due, Event::Syn),
                (end.sender.due, Event::Timer),
                (end.receiver.due, Event::Acknowledge),
                (end.write_due, Event::Write),
            ] {
                if at < first.0 {
                    first = (at, side, event);
                }
            }
        }
        first
    }

    /// Processes one event; returns true if nothing more can be learned.
    fn happen(&mut self, script: &Script, now: u64, side: usize, event: Event) -> bool {
        let kernel = self.kernel();
        match event {
            Event::Arrival => {
                if let Some(packet) = self.wires[1 - side].packets.pop_front() {
                    self.arrive(script, now, side, &packet);
                }
            }
            Event::Syn => {
                self.ends[side].syn_timeouts += 1;
                self.ends[side].syn_again += 1;
                self.send_syn(side, now);
            }
            Event::Timer => {
                self.ends[side].sender.timer(kernel, now);
                self.flush(side, now);
            }
            Event::Acknowledge => {
                if self.ends[side].receiver.late() {
                    self.send_ack(side, now);
                }
            }
            Event::Write => {
                let end = &mut self.ends[side];
                end.write_due = NEVER;
                let Some(write) = script.writes[side].get(end.writing) else { return false };
                end.writing += 1;
                end.sender.write(kernel, now, write.bytes);
                self.flush(side, now);
                if write.done {
                    self.outcome.handshake_ns = now;
                    self.outcome.handshake_retransmissions = self.resent();
                    if script.answer.is_none() {
                        return true;
                    }
                }
                self.prepare(script, now, side);
            }
        }
        let Some([first, last]) = script.answer else { return false };
        // Sequence numbers begin at 1.
        let arrived = self.ends[CLIENT].receiver.next.saturating_sub(1);
        if arrived >= first && self.outcome.first_byte_ns == LIMIT_NS {
            self.outcome.first_byte_ns = now;
        }
        if arrived >= last {
            self.outcome.last_byte_ns = now;
            return true;
        }
        false
    }

    fn kernel(&self) -> Kernel {
        Kernel { profile: self.profile, clock: self.clock }
    }

    fn resent(&self) -> u16 {
        let all: u32 = self.ends.iter().map(|end| end.syn_again + end.sender.resent).sum();
        u16::try_from(all).unwrap_or(u16::MAX)
    }

    fn arrive(&mut self, script: &Script, now: u64, side: usize, packet: &Packet) {
        let kernel = self.kernel();
        if packet.syn {
            self.arrive_syn(script, now, side, packet);
            return;
        }
        if side == SERVER {
            match self.ends[SERVER].phase {
                // Impossible: the client only connects by the server's answer.
                Phase::Beginning => return,
                Phase::Answered => self.connected(SERVER, now, packet.echo),
                Phase::Connected => {}
            }
        }
        let end = &mut self.ends[side];
        let mut at_once = false;
        if packet.len > 0 {
            at_once = end.receiver.data(self.profile, &self.clock, now, packet);
        } else if packet.start <= end.receiver.next {
            end.receiver.recent = end.receiver.recent.max(packet.stamp);
        }
        let count = usize::from(packet.block_count);
        end.sender.acknowledged(
            kernel,
            now,
            &Acknowledgement {
                ack: packet.ack,
                blocks: packet.blocks.get(..count).unwrap_or_default(),
                duplicate: packet.duplicate,
                echo: packet.echo,
                data: packet.len > 0,
            },
        );
        self.flush(side, now);
        if at_once {
            self.send_ack(side, now);
        }
        self.prepare(script, now, side);
    }

    fn arrive_syn(&mut self, script: &Script, now: u64, side: usize, packet: &Packet) {
        match (side, self.ends[side].phase) {
            (SERVER, Phase::Beginning) => {
                let end = &mut self.ends[SERVER];
                end.phase = Phase::Answered;
                end.receiver.synchronized(packet.stamp);
                self.send_syn(SERVER, now);
            }
            (SERVER, Phase::Answered) => {
                // The client repeats its SYN: answered immediately, and the answer's timer restarts (tcp_check_req).
                self.ends[SERVER].syn_again += 1;
                self.send_syn(SERVER, now);
            }
            (SERVER, Phase::Connected) => {}
            (_, Phase::Connected) => self.send_ack(CLIENT, now),
            (_, _) => {
                self.ends[CLIENT].receiver.synchronized(packet.stamp);
                self.connected(CLIENT, now, packet.echo);
                self.outcome.connected_ns = now;
                self.send_ack(CLIENT, now);
                self.prepare(script, now, CLIENT);
            }
        }
    }

    /// A side is connected; the answer to its SYN, or SYN-ACK, has this timestamp.
    fn connected(&mut self, side: usize, now: u64, echo: u64) {
        let kernel = self.kernel();
        let end = &mut self.ends[side];
        end.phase = Phase::Connected;
        end.syn_due = NEVER;
        let rtt_us = if end.syn_again == 0 {
            (now - end.syn_sent) / 1000
        } else {
            self.clock.stamp(now).saturating_sub(echo).max(1) * 1000
        };
        // tcp_init_transfer: since 5.2 not if the answer is to the first SYN, which was not lost then.
        let spurious = end.syn_timeouts == 0 || echo == self.clock.stamp(end.syn_first);
        let cut = end.syn_again > 1 && !(self.profile.tcp.undoes_syn && spurious);
        end.sender.established(kernel, rtt_us, cut, end.saved);
    }

    /// Starts the CPU time of the next write, if what it needs has arrived.
    fn prepare(&mut self, script: &Script, now: u64, side: usize) {
        let end = &mut self.ends[side];
        if end.write_due != NEVER || end.phase != Phase::Connected {
            return;
        }
        if let Some(write) = script.writes[side].get(end.writing)
            && end.receiver.next > write.needs
        {
            end.write_due = now.saturating_add(write.cpu_ns);
        }
    }

    /// Sends a SYN, or SYN-ACK, and sets its timer.
    fn send_syn(&mut self, side: usize, now: u64) {
        let profile = self.profile;
        let end = &mut self.ends[side];
        // New kernels retransmit the first SYNs without back-off; SYN-ACKs always back off.
        let linear = if side == CLIENT { profile.tcp.linear_syns } else { 0 };
        let doublings = end.syn_timeouts.saturating_sub(linear).min(16);
        let timeout = (FIRST_TIMEOUT_US << doublings).min(TIMEOUT_MAX_US);
        end.syn_due = self.clock.fires(now, self.clock.jiffies(timeout));
        if end.syn_again == 0 {
            end.syn_first = now;
        }
        end.syn_sent = now;
        let mut packet = Packet { syn: true, stamp: self.clock.stamp(now), ..Packet::default() };
        if side == SERVER {
            end.receiver.acknowledge(&mut packet);
        }
        self.wires[side].send(&self.path, self.draws[side], now, (0, end.syn_again), packet);
    }

    /// Sends what the sender has to send.
    fn flush(&mut self, side: usize, now: u64) {
        let end = &mut self.ends[side];
        if end.sender.out.is_empty() {
            return;
        }
        end.receiver.replying(now);
        for departure in &end.sender.out {
            let mut packet = Packet {
                start: departure.start,
                len: departure.len,
                stamp: self.clock.stamp(now),
                ..Packet::default()
            };
            end.receiver.acknowledge(&mut packet);
            let number = if self.profile.tcp.pieces { departure.piece } else { departure.number };
            let key = (number, departure.again);
            self.wires[side].send(&self.path, self.draws[side], now, key, packet);
        }
        end.sender.out.clear();
    }

    /// Sends an acknowledgement without data.
    fn send_ack(&mut self, side: usize, now: u64) {
        let end = &mut self.ends[side];
        let number = end.sender.number;
        if end.acks.1 != number {
            end.acks = (0, number);
        }
        let mut packet =
            Packet { start: end.sender.next(), stamp: self.clock.stamp(now), ..Packet::default() };
        end.receiver.acknowledge(&mut packet);
        let key = (number, PURE_ACK + end.acks.0);
        end.acks.0 += 1;
        self.wires[side].send(&self.path, self.draws[side], now, key, packet);
    }
}

fn nothing() -> Outcome {
    Outcome {
        connected_ns: LIMIT_NS,
        handshake_ns: LIMIT_NS,
        first_byte_ns: LIMIT_NS,
        last_byte_ns: LIMIT_NS,
        retransmissions: 0,
        handshake_retransmissions: 0,
        late: 0,
    }
}

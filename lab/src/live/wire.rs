//! The emulated link: one thread between two TUN devices that delays, drops and limits packets, and records its
//! lateness.
//!
//! It waits in two ways: it sleeps until shortly before a packet is due, and then spins. With real-time priority it
//! never spins for long: an allowance of CPU time, which only sleep refills, keeps it below the kernel's limit for
//! throttling.
//!
//! Lateness is known on both sides: a packet that leaves has a time when it was due; a packet that is read arrived,
//! at the earliest, when its device was last seen empty and was not watched since.

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use thread_priority::unix::{
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};
use thread_priority::{ThreadPriority, ThreadPriorityValue};
use tun_rs::SyncDevice;

use super::clock::{nanos, now_ns};
use super::draw::normal;
use super::flows::{Chance, Flow, Flows};
use super::packet;
use crate::error::LabError;
use crate::time::thread_cpu;
use crate::trace::Side;

/// What the link does to packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shape {
    /// Delay by direction: from the client, from the server.
    pub delay_ns: [u64; 2],
    /// Standard deviation of the delay.
    pub jitter_ns: u64,
    /// Seed and loss.
    pub chance: Chance,
    /// Bits per second.
    pub rate_bps: Option<u64>,
    /// Packets that may wait for the bottleneck.
    pub queue_packets: usize,
}

/// Figures of the link.
#[derive(Debug, Clone, Default)]
pub(super) struct Counters {
    /// Whether its thread has real-time priority.
    pub real_time: bool,
    /// Packets from each side.
    pub packets: [u64; 2],
    /// Packets lost on purpose.
    pub lost: [u64; 2],
    /// Packets dropped because a queue was full.
    pub dropped: [u64; 2],
    /// Packets that left later than each edge of [`EDGES_NS`], and beyond the last.
    pub late: Vec<u64>,
    /// Packets that may have been read more than [`LATE_NS`] after they arrived, as an upper bound.
    pub read_late: u64,
}

/// Upper edges of the histogram of lateness.
pub(super) const EDGES_NS: [u64; 12] = [
    1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 5_000_000,
    20_000_000,
];
/// Lateness above which a packet is marked.
pub(super) const LATE_NS: u64 = 50_000;

/// A running link.
pub(super) struct Wire {
    orders: Sender<Order>,
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

enum Order {
    Shape(Shape, Sender<()>),
    Number(u64, Sender<()>),
    Collect(Sender<Vec<Flow>>),
    Count(Sender<Counters>),
    Forget,
}

/// Wakes the thread.
struct Bell {
    rung: AtomicBool,
    stop: AtomicBool,
    event: OwnedFd,
    /// Why the thread ended by itself.
    fault: OnceLock<String>,
}

impl Bell {
    fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }
}

impl Wire {
    /// Starts the thread between the client's device and the server's.
    pub fn start(devices: [SyncDevice; 2], shape: Shape) -> Result<Self, LabError> {
        for device in &devices {
            device.set_nonblocking(true).map_err(LabError::failed)?;
        }
        let event =
            eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(LabError::failed)?;
        let bell = Arc::new(Bell {
            rung: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            event,
            fault: OnceLock::new(),
        });
        let (orders, received) = channel();
        let theirs = Arc::clone(&bell);
        let thread = std::thread::Builder::new()
            .name("outlast-lab-link".into())
            .spawn(move || {
                let real_time = prefer_this_thread();
                let mut work = Work {
                    devices,
                    shape,
                    bell: theirs,
                    orders: received,
                    ways: Default::default(),
                    flows: Flows::default(),
                    counters: Counters {
                        real_time,
                        late: vec![0; EDGES_NS.len() + 1],
                        ..Counters::default()
                    },
                    spare: Vec::new(),
                    allowance: ALLOWANCE_NS,
                    since: now_ns(),
                    used: cpu_ns(),
                    spin: spin_ns(),
                    seen_ns: [now_ns(); 2],
                };
                if let Err(error) = work.run() {
                    let _ = work.bell.fault.set(error.to_string());
                }
            })
            .map_err(LabError::failed)?;
        Ok(Self { orders, bell, thread: Some(thread) })
    }

    /// Changes the shape of the link.
    pub fn shape(&self, shape: Shape) -> Result<(), LabError> {
        self.ask(|answer| Order::Shape(shape, answer))
    }

    /// Gives the next connection this number.
    pub fn number(&self, number: u64) -> Result<(), LabError> {
        self.ask(|answer| Order::Number(number, answer))
    }

    /// The connections since [`Self::number`].
    pub fn collect(&self) -> Result<Vec<Flow>, LabError> {
        self.ask(Order::Collect)
    }

    /// The figures so far.
    pub fn counters(&self) -> Result<Counters, LabError> {
        self.ask(Order::Count)
    }

    /// Starts counting from zero: what came before was calibration.
    pub fn forget(&self) {
        let _ = self.orders.send(Order::Forget);
        self.bell.ring();
    }

    fn ask<T>(&self, order: impl FnOnce(Sender<T>) -> Order) -> Result<T, LabError> {
        let (answer, answered) = channel();
        self.orders.send(order(answer)).map_err(|_| self.ended())?;
        self.bell.ring();
        answered.recv_timeout(Duration::from_secs(10)).map_err(|_| self.ended())
    }

    fn ended(&self) -> LabError {
        match self.bell.fault.get() {
            Some(fault) => LabError::failed(format!("{ENDED}: {fault}")),
            None => LabError::failed(ENDED),
        }
    }
}

const ENDED: &str = "the thread of the emulated link ended";

impl Drop for Wire {
    fn drop(&mut self) {
        self.bell.stop.store(true, Ordering::Release);
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Requests real-time priority, and turns timer coalescing off in any case.
fn prefer_this_thread() -> bool {
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let Ok(priority) = ThreadPriorityValue::try_from(PRIORITY) else { return false };
    set_thread_priority_and_policy(
        thread_native_id(),
        ThreadPriority::Crossplatform(priority),
        ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
    )
    .is_ok()
}

/// Of 100: about the middle of the real-time priorities.
const PRIORITY: u8 = 50;

/// A packet on its way.
struct Waiting {
    due_ns: u64,
    id: Option<u64>,
    length: usize,
    buffer: Box<Buffer>,
}

type Buffer = [u8; 2048];

/// One direction.
#[derive(Default)]
struct Way {
    waiting: VecDeque<Waiting>,
    /// When each packet in the bottleneck will have left it.
    leaving: VecDeque<u64>,
}

struct Work {
    devices: [SyncDevice; 2],
    shape: Shape,
    bell: Arc<Bell>,
    orders: Receiver<Order>,
    ways: [Way; 2],
    flows: Flows,
    counters: Counters,
    #[expect(clippy::vec_box, reason = "what moves between the queues and here is the box")]
    spare: Vec<Box<Buffer>>,
    /// How long the thread may still run without sleep.
    allowance: u64,
    /// Start of its present run, and the CPU time that it had used by then.
    since: u64,
    used: u64,
    /// Time before a packet is due at which it stops sleeping.
    spin: u64,
    /// When each device was last seen empty; moved on by the time in which the thread watched it and was woken in
    /// time.
    seen_ns: [u64; 2],
}

impl Work {
    fn run(&mut self) -> io::Result<()> {
        loop {
            if self.bell.rung.swap(false, Ordering::Acquire) {
                if self.bell.stop.load(Ordering::Acquire) {
                    return Ok(());
                }
                self.obey();
            }
            let mut moved = false;
            for side in [0, 1] {
                moved |= self.take(side)?;
                moved |= self.deliver(side);
            }
            let now = now_ns();
            // Reading the CPU clock is expensive: only after the other clock has passed the allowance.
            let spent = now.saturating_sub(self.since) > self.allowance
                && cpu_ns().saturating_sub(self.used) >= self.allowance;
            if moved {
                if spent {
                    self.sleep(now, Some(now + REST_NS), true)?;
                }
                continue;
            }
            let due = self
                .ways
                .iter()
                .filter_map(|way| way.waiting.front())
                .map(|first| first.due_ns)
                .min();
            match due {
                None => self.sleep(now, None, spent)?,
                Some(due) if spent => self.sleep(now, Some(due), true)?,
                Some(due) if due > now + self.spin => {
                    self.sleep(now, Some(due - self.spin), false)?;
                }
                Some(_) => std::hint::spin_loop(),
            }
        }
    }

    fn obey(&mut self) {
        let mut count = [0; 8];
        let _ = rustix::io::read(&self.bell.event, &mut count);
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Shape(shape, answer) => {
                    self.shape = shape;
                    let _ = answer.send(());
                }
                Order::Number(number, answer) => {
                    self.flows.from(number);
                    let _ = answer.send(());
                }
                Order::Collect(answer) => {
                    let _ = answer.send(self.flows.collect());
                }
                Order::Count(answer) => {
                    let _ = answer.send(self.counters.clone());
                }
                Order::Forget => {
                    self.counters = Counters {
                        real_time: self.counters.real_time,
                        late: vec![0; EDGES_NS.len() + 1],
                        ..Counters::default()
                    };
                }
            }
        }
    }

    /// Reads packets that a side has sent, some at a time.
    fn take(&mut self, side: usize) -> io::Result<bool> {
        // A packet arrived after the device was last seen empty, and not while the thread watched: watching wakes it.
        let begun = now_ns();
        let gap = begun.saturating_sub(self.seen_ns[side]);
        let late = gap > LATE_NS;
        for taken in 0..BATCH {
            let mut buffer = self.spare.pop().unwrap_or_else(|| Box::new([0; 2048]));
            match rustix::io::read(self.devices[side].as_fd(), &mut buffer[..]) {
                Ok(length) => self.accept(side, buffer, length, late),
                Err(Errno::AGAIN | Errno::INTR) => {
                    self.spare.push(buffer);
                    self.seen_ns[side] = now_ns();
                    return Ok(taken > 0);
                }
                Err(error) => return Err(error.into()),
            }
        }
        // More packets are waiting: they are as late as the first if that was late; otherwise the thread is working
        // without a pause.
        if !late {
            self.seen_ns[side] = now_ns();
        }
        Ok(true)
    }

    /// Decides what happens to a packet.
    fn accept(&mut self, side: usize, buffer: Box<Buffer>, length: usize, late: bool) {
        let from = if side == 0 { Side::Client } else { Side::Server };
        let now = now_ns();
        // Packets other than IPv4 do not belong to a measurement.
        let Some(packet) = packet::read(&buffer[..length], from) else {
            self.spare.push(buffer);
            return;
        };
        let fate = self.flows.fate(&packet, from, length, now, &self.shape.chance);
        self.counters.packets[side] += 1;
        if late {
            self.counters.read_late += 1;
            if let Some(id) = fate.id {
                self.flows.late(id);
            }
        }
        if fate.lost {
            self.counters.lost[side] += 1;
            self.spare.push(buffer);
            return;
        }
        let shape = &self.shape;
        let way = &mut self.ways[side];
        if way.waiting.len() >= WAITING {
            self.counters.dropped[side] += 1;
            self.spare.push(buffer);
            return;
        }
        let mut leaves = now;
        if let Some(rate) = shape.rate_bps {
            while way.leaving.front().is_some_and(|leaves| *leaves <= now) {
                way.leaving.pop_front();
            }
            // One packet is being sent; the others wait.
            if way.leaving.len() > shape.queue_packets {
                self.counters.dropped[side] += 1;
                self.spare.push(buffer);
                return;
            }
            let begins = way.leaving.back().copied().unwrap_or(now);
            leaves = begins + length as u64 * 8_000_000_000 / rate.max(1);
            way.leaving.push_back(leaves);
        }
        let mut due = leaves + shape.delay_ns[side];
        if shape.jitter_ns > 0 {
            let draw = normal(shape.chance.seed, fate.number, from, fate.place, fate.again);
            due = shifted(due, draw, shape.jitter_ns).max(leaves);
        }
        // Packets keep their order.
        due = due.max(way.waiting.back().map_or(0, |last| last.due_ns));
        way.waiting.push_back(Waiting { due_ns: due, id: fate.id, length, buffer });
    }

    /// Delivers the packets that are due to the other side.
    fn deliver(&mut self, side: usize) -> bool {
        let mut delivered = 0;
        while delivered < BATCH {
            let way = &mut self.ways[side];
            let now = now_ns();
            if way.waiting.front().is_none_or(|first| first.due_ns > now) {
                break;
            }
            let Some(first) = way.waiting.pop_front() else { break };
            let late = now - first.due_ns;
            let bin = EDGES_NS.iter().position(|edge| late < *edge).unwrap_or(EDGES_NS.len());
            self.counters.late[bin] += 1;
            if late > LATE_NS
                && let Some(id) = first.id
            {
                self.flows.late(id);
            }
            let written =
                rustix::io::write(self.devices[1 - side].as_fd(), &first.buffer[..first.length]);
            if written.is_err() {
                self.counters.dropped[side] += 1;
            }
            if self.spare.len() < SPARE {
                self.spare.push(first.buffer);
            }
            delivered += 1;
        }
        delivered > 0
    }

    /// Sleeps until a packet or an order comes, or until this time. After its allowance is used up it sleeps in any
    /// case.
    fn sleep(&mut self, now: u64, until: Option<u64>, spent: bool) -> io::Result<()> {
        let ran = cpu_ns().saturating_sub(self.used);
        self.allowance = self.allowance.saturating_sub(ran);
        let rest = until.map(|until| until.saturating_sub(now));
        let resting = spent || self.allowance == 0;
        if resting {
            std::thread::sleep(Duration::from_nanos(rest.unwrap_or(REST_NS).min(REST_NS)));
        } else {
            let timeout = rest.map(timespec);
            let mut sources = [
                PollFd::new(&self.devices[0], PollFlags::IN),
                PollFd::new(&self.devices[1], PollFlags::IN),
                PollFd::new(&self.bell.event, PollFlags::IN),
            ];
            match poll(&mut sources, timeout.as_ref()) {
                // Interrupted by a signal: the loop checks again.
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let broken = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
            if sources.iter().any(|source| source.revents().intersects(broken)) {
                return Err(io::Error::other("a device of the link is gone"));
            }
        }
        self.since = now_ns();
        self.used = cpu_ns();
        let slept = self.since.saturating_sub(now);
        let overslept = until.is_some_and(|until| self.since > until + LATE_NS);
        if !resting && !overslept {
            for seen in &mut self.seen_ns {
                *seen += slept;
            }
        }
        self.allowance = (self.allowance + slept * SHARE).min(ALLOWANCE_NS);
        Ok(())
    }
}

/// CPU time of this thread in nanoseconds.
fn cpu_ns() -> u64 {
    nanos(thread_cpu())
}

/// A time, moved by so many standard deviations.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a delay in nanoseconds: far below 2^53, and its sign is checked"
)]
fn shifted(due: u64, draw: f64, deviation_ns: u64) -> u64 {
    let shift = draw * deviation_ns as f64;
    if shift < 0.0 { due.saturating_sub(-shift as u64) } else { due + shift as u64 }
}

fn timespec(nanoseconds: u64) -> Timespec {
    let seconds = i64::try_from(nanoseconds / 1_000_000_000).unwrap_or(i64::MAX);
    Timespec { tv_sec: seconds, tv_nsec: (nanoseconds % 1_000_000_000).cast_signed() }
}

/// How long to spin: not at all if client and server have no other core to run on.
fn spin_ns() -> u64 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cores > 1 { SPIN_NS } else { 0 }
}

/// Time before a packet is due at which the thread stops sleeping.
const SPIN_NS: u64 = 100_000;
/// How long it may run without sleep: well below the second in which the kernel throttles at 95 %.
const ALLOWANCE_NS: u64 = 100_000_000;
/// Nanoseconds of running for each nanosecond of sleep.
const SHARE: u64 = 9;
/// How long it sleeps after its allowance is used up.
const REST_NS: u64 = 100_000;
/// Packets in a batch for one direction.
const BATCH: usize = 64;
/// Packets on their way in one direction, at most.
const WAITING: usize = 1 << 16;
/// Buffers that are kept for reuse.
const SPARE: usize = 4096;

//! Engine 2: Linux TCP in virtual time. The same seed gives the same bytes.
//!
//! A discrete-event simulation of one connection at a time, from the flights and CPU times of a trace: TCP's
//! handshake, the flights (each is sent when its sender has the whole of the other's previous flight, and has spent
//! its CPU time), then a request and its answer. docs/lab-model.md says what of Linux's TCP is modelled, what is not,
//! and how that was validated.

mod clock;
mod congestion;
mod estimate;
mod receiver;
pub mod selftest;
mod sender;
mod simulation;
pub mod validated;
pub mod validation;
mod wire;

#[cfg(test)]
mod tests;

use std::thread;

use clock::Clock;
use simulation::{Script, Simulation};

use crate::link::{Link, Outcome, Transfer, mix};
use crate::trace::Trace;

/// How a kernel's TCP behaves.
#[derive(Debug)]
pub struct Profile {
    /// Name on the command line and in plans, such as `linux-6.18`.
    pub name: &'static str,
    /// Clock ticks per second (`CONFIG_HZ`).
    pub hz: u32,
    /// SYNs that are retransmitted after one second each, before the interval doubles (`tcp_syn_linear_timeouts`).
    pub linear_syns: u32,
    /// Added to the timers of probes and reordering, in microseconds; 0 stands for two ticks (`TCP_TIMEOUT_MIN`).
    pub least_timeout_us: u64,
    /// Least time that RACK waits for packets out of order, in microseconds.
    pub reordering_floor_us: u64,
    /// Replies after which a connection counts as interactive, so that its acknowledgements are delayed
    /// (`TCP_PINGPONG_THRESH`).
    pub replies: u8,
    /// Whether a connection whose SYN was retransmitted spuriously still starts with a full window.
    pub undoes_syn: bool,
    /// Whether the emulation loses as a whole what TCP hands over in one piece. No network does that; `netem` does,
    /// unless packets are segmented before it.
    pub pieces: bool,
    /// Whether a client's probe waits for two round trips and 200 ms although the timeout is earlier: observed in
    /// published data, found in no source.
    pub patient_client: bool,
    /// Source of these values.
    pub source: &'static str,
}

/// All profiles; the first one is the default.
pub static PROFILES: &[Profile] = &[
    Profile {
        name: "linux-6.18",
        hz: 250,
        linear_syns: 4,
        least_timeout_us: 2_000,
        reordering_floor_us: 0,
        replies: 1,
        undoes_syn: true,
        pieces: false,
        patient_client: false,
        source: "net/ipv4 of Linux 6.18: tcp_syn_linear_timeouts (since 6.5), TCP_TIMEOUT_MIN_US (since 6.7), \
                 tcp_pingpong_thresh; HZ=250 as most distributions of servers configure",
    },
    Profile {
        name: "linux-6.18-1000hz",
        hz: 1000,
        linear_syns: 4,
        least_timeout_us: 2_000,
        reordering_floor_us: 0,
        replies: 1,
        undoes_syn: true,
        pieces: false,
        patient_client: false,
        source: "as linux-6.18, with HZ=1000 as Fedora, Arch and Ubuntu since 24.10 configure",
    },
    Profile {
        name: "linux-5.4",
        hz: 250,
        linear_syns: 0,
        least_timeout_us: 0,
        reordering_floor_us: 0,
        replies: 3,
        undoes_syn: true,
        pieces: false,
        patient_client: false,
        source: "net/ipv4 of Linux 5.4 (Ubuntu 20.04, HZ=250): SYNs back off from the first, TCP_TIMEOUT_MIN is two ticks, \
                 TCP_PINGPONG_THRESH is 3 (since 5.1)",
    },
    Profile {
        name: "linux-4.15",
        hz: 250,
        linear_syns: 0,
        least_timeout_us: 0,
        reordering_floor_us: 1_000,
        replies: 1,
        undoes_syn: false,
        pieces: false,
        patient_client: false,
        source: "net/ipv4 of Linux 4.15 (Ubuntu 18.04, HZ=250): as 5.4, RACK waits 1 ms at least, one reply makes a \
                 conversation",
    },
    Profile {
        name: "linux-5.0-netem",
        hz: 250,
        linear_syns: 0,
        least_timeout_us: 0,
        reordering_floor_us: 0,
        replies: 1,
        undoes_syn: false,
        pieces: true,
        patient_client: true,
        source: "net/ipv4 of Linux 5.0 (Ubuntu 18.04's later kernels, HZ=250) under netem as the study of 2019 set it up: since \
                 4.17 TCP hands over pieces of several packets whatever `ethtool -K gso off` says, and netem loses a piece whole. That it is this kernel, \
                 that pieces are lost whole and that the client's probe is patient was concluded from the data of 2019 with loss. The study \
                 of 2022 names no kernel: that this profile stands for it is an assumption",
    },
];

mod own;

pub use own::{Kernel, running};

impl Profile {
    /// The row with this name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        PROFILES.iter().find(|profile| profile.name == name)
    }
}

/// Simulates one connection. The same `seed` and `flow` lose the same packets, whatever is sent: the `flow`s of two
/// subjects pair.
///
/// A connection that is not finished after an hour of virtual time (almost everything is lost) is abandoned: times
/// that were not reached are an hour. Without a body, the times of the first and the last byte are that of the
/// handshake.
pub fn connect(
    profile: &'static Profile,
    link: &Link,
    trace: &Trace,
    transfer: Transfer,
    seed: u64,
    flow: u64,
) -> Outcome {
    let script = Script::new(&trace.of_flow(mix(flow ^ CPU_TIMES)), transfer);
    Simulation::new(profile, link).run(&script, seed, flow)
}

/// The packets that each side sends in a connection, lost or not, in order.
#[cfg(test)]
pub(crate) fn emitted(
    profile: &'static Profile,
    link: &Link,
    trace: &Trace,
    transfer: Transfer,
    seed: u64,
    flow: u64,
) -> [Vec<wire::Sent>; 2] {
    let mut simulation = Simulation::new(profile, link);
    simulation.run(&Script::new(trace, transfer), seed, flow);
    simulation.sent()
}

/// Simulates the flows 0 to `count`, on two threads if there are enough; the result does not depend on that.
pub fn connections(
    profile: &'static Profile,
    link: &Link,
    trace: &Trace,
    transfer: Transfer,
    seed: u64,
    count: u64,
) -> Vec<Outcome> {
    let script = Script::new(trace, transfer);
    let run = |from: u64, to: u64| -> Vec<Outcome> {
        let mut simulation = Simulation::new(profile, link);
        let alike = trace.cpu_spread.is_empty();
        (from..to)
            .map(|flow| match alike {
                true => simulation.run(&script, seed, flow),
                false => {
                    let own = trace.of_flow(mix(flow ^ CPU_TIMES));
                    simulation.run(&Script::new(&own, transfer), seed, flow)
                }
            })
            .collect()
    };
    if count < PARALLEL {
        return run(0, count);
    }
    let middle = count / 2;
    thread::scope(|scope| {
        let second = scope.spawn(|| run(middle, count));
        let mut outcomes = run(0, middle);
        match second.join() {
            Ok(others) => outcomes.extend(others),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        outcomes
    })
}

/// Keeps the random numbers of CPU times apart from those of losses.
const CPU_TIMES: u64 = 0x5eed;
/// Number of connections from which two threads are used: some milliseconds of work.
const PARALLEL: u64 = 2_000;

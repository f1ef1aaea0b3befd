//! Engine 2: Linux TCP in virtual time. The same seed gives the same bytes.
//!
//! A discrete-event simulation of one connection at a time, from the flights and CPU times of a trace: TCP's
//! handshake, the flights (each is sent when its sender has the whole of the other's previous flight, and has spent
//! its CPU time), then a request and its answer. docs/lab-model.md says what of Linux's TCP is modelled, what is not,
//! and how that was validated.

mod clock;
mod congestion;
mod estimate;
mod own;
mod profile;
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
pub use own::{Kernel, running};
pub use profile::{PROFILES, Profile, Tcp};
use simulation::{Script, Simulation};

use crate::link::{Link, Outcome, Transfer, mix};
use crate::trace::Trace;

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

/// Simulates the flows 0 to `count`, on two threads if there are enough; the result does not depend on the machine. Clients that
/// save metrics (`Tcp::client_saves`) have saved nothing when either half begins.
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

//! Engine 1: handshakes in memory, client and server in turns on one thread; the CPU time of each apart.

pub mod chain;
mod exchange;
mod helper;
pub mod openssl;
pub mod profile;
pub mod rounds;
pub mod rustls;
pub mod s2n;
pub mod selftest;

use std::path::Path;
use std::process::Command;

use crate::error::LabError;
use crate::statistics::quantile_of;
use crate::subject::{KeyExchange, Kind, Subject, key_exchanges};
pub(crate) use crate::tls::helper::lines;
pub use crate::tls::rustls::{client_config, server_config};
use crate::trace::Trace;

/// A TLS implementation.
pub trait Stack: Sync {
    /// Name, such as `rustls`.
    fn name(&self) -> &'static str;
    /// Its version; an error says what it needs.
    fn version(&self) -> Result<String, LabError>;
    /// The program as a command in which this implementation is there, for helper processes.
    fn command(&self, executable: &Path) -> Command {
        Command::new(executable)
    }
    /// Whether it can do this.
    fn supports(&self, subject: &Subject) -> bool;
    /// Makes keys, certificates and configurations, once.
    fn prepare(&self, subject: &Subject) -> Result<Box<dyn Handshaker>, LabError>;
}

/// A pair of client and server that is ready to shake hands.
pub trait Handshaker {
    /// One handshake, checked to be what the subject says. Resumption has its full handshake before, unmeasured.
    fn handshake(&mut self) -> Result<Trace, LabError>;
}

/// Every implementation; the first one is Outlast's.
pub static STACKS: &[&dyn Stack] = &[&rustls::Rustls, &s2n::S2n, &openssl::OpenSslStack];

/// The implementation with this name.
pub fn stack(name: &str) -> Result<&'static dyn Stack, LabError> {
    STACKS
        .iter()
        .find(|stack| stack.name().eq_ignore_ascii_case(name))
        .copied()
        .ok_or_else(|| LabError::Plan(format!("no TLS implementation is named {name}")))
}

/// The key exchange whose share a client sends in vain before it is asked for the subject's: a usual one.
pub fn wrong_group(subject: &Subject) -> Result<&'static KeyExchange, LabError> {
    key_exchanges()
        .iter()
        .filter(|row| !row.strength.is_post_quantum() && !row.legacy)
        .find(|row| row.code_point != subject.key_exchange.code_point)
        .ok_or_else(|| LabError::failed("there is no other group"))
}

/// The version of a crate in the workspace's lock file: what was compiled in.
fn locked_version(name: &str) -> String {
    const LOCK: &str = include_str!("../../Cargo.lock");
    let mut lines = LOCK.lines().skip_while(|line| *line != format!("name = \"{name}\"")).skip(1);
    let version = lines.next().and_then(|line| line.strip_prefix("version = "));
    version.unwrap_or_default().trim_matches('"').to_owned()
}

/// Handshakes before any is counted: caches, and AWS-LC's jitter entropy, which costs about 0.4 G instructions once a process.
pub const WARM_UP: usize = 20;

/// A trace with the sizes of a handshake and the typical CPU time of each flight: the 10th percentile of `rounds` handshakes, or
/// the mean where costs vary by themselves (ML-DSA's rejection sampling). Where lengths vary by chance, the longest counts.
pub fn typical(stack: &dyn Stack, subject: &Subject, rounds: usize) -> Result<Trace, LabError> {
    let mut handshaker = stack.prepare(subject)?;
    let mut trace = handshaker.handshake()?;
    for _ in 1..WARM_UP {
        handshaker.handshake()?;
    }
    let mut spent: Vec<Vec<f64>> = vec![Vec::with_capacity(rounds); trace.steps.len() + 1];
    for _ in 0..rounds.max(1) {
        let next = handshaker.handshake()?;
        if next.steps.len() != trace.steps.len() {
            return Err(LabError::failed("handshakes of one kind differ in flights"));
        }
        for (step, other) in trace.steps.iter_mut().zip(&next.steps) {
            step.bytes = step.bytes.max(other.bytes);
        }
        let times = next.steps.iter().map(|step| step.cpu_ns).chain([next.server_after_ns]);
        for (samples, time) in spent.iter_mut().zip(times) {
            #[expect(clippy::cast_precision_loss, reason = "nanoseconds of one handshake")]
            samples.push(time as f64);
        }
    }
    // Who signs does so in the last flight of the handshake.
    let varies = |step: usize| {
        subject.cost_varies()
            && (step + 1 == trace.client_done
                || step == trace.client_done && subject.kind == Kind::Mutual)
    };
    let figure = |step: usize, samples: &[f64]| {
        let figure = if varies(step) {
            rounds::undisturbed_mean(samples)
        } else {
            quantile_of(samples, 0.1)
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a time")]
        let nanos = figure.round() as u64;
        nanos
    };
    let figures: Vec<u64> =
        spent.iter().enumerate().map(|(step, samples)| figure(step, samples)).collect();
    for (step, figure) in trace.steps.iter_mut().zip(&figures) {
        step.cpu_ns = *figure;
    }
    trace.server_after_ns = figures.last().copied().unwrap_or_default();
    Ok(trace)
}

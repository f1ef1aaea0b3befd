//! Engine 2: Linux TCP in virtual time. The same seed gives the same bytes.

use crate::link::{Link, Outcome, Transfer};
use crate::trace::Trace;

/// How a kernel's TCP behaves.
#[derive(Debug)]
pub struct Profile {
    /// Name on the command line and in plans, such as `linux-6.18`.
    pub name: &'static str,
}

/// Every profile; the first one is the default.
pub static PROFILES: &[Profile] = &[Profile { name: "linux-6.18" }];

/// One connection. The same `seed` and `flow` lose the same packets, whatever is sent: the `flow`s of two subjects pair.
pub fn connect(
    profile: &Profile,
    link: &Link,
    trace: &Trace,
    transfer: Transfer,
    seed: u64,
    flow: u64,
) -> Outcome {
    let _ = (profile, link, trace, transfer, seed, flow);
    Outcome {
        connected_ns: 0,
        handshake_ns: 0,
        first_byte_ns: 0,
        last_byte_ns: 0,
        retransmissions: 0,
        handshake_retransmissions: 0,
        late: 0,
    }
}

/// Connections of the flows 0 to `count`.
pub fn connections(
    profile: &Profile,
    link: &Link,
    trace: &Trace,
    transfer: Transfer,
    seed: u64,
    count: u64,
) -> Vec<Outcome> {
    (0..count).map(|flow| connect(profile, link, trace, transfer, seed, flow)).collect()
}

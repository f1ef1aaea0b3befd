//! A siege: hostile patterns against a server of one's own, beside a client that behaves.
//!
//! A row of [`PATTERNS`] says what an attacker does. It is done by another process ([`process`]) from another loopback address,
//! while the well-behaved client ([`good`]) goes on calling, quietly and under attack in turns. What is told is the time that this client
//! waits, its failures, and the memory of the server ([`Measured`]). Nothing here attacks an address that is not loopback, and nothing
//! here prints.

mod attack;
mod calls;
mod door;
mod field;
mod good;
mod http1;
mod http2;
mod limits;
mod measured;
mod pattern;
mod patterns;
mod plain;
mod process;
mod quic;
mod run;
mod tcp;

pub use self::attack::Volume;
pub use self::door::Door;
pub use self::field::{Given, check_loopback};
pub use self::limits::{GROWTH_KIB, PEAK_KIB, RATIO};
pub use self::measured::{Compared, Measured, Memory, Times};
pub use self::pattern::Pattern;
pub use self::patterns::PATTERNS;
pub use self::process::AGENT;
pub use self::run::{Settings, Stage, run};

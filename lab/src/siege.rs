//! A siege: hostile patterns against one's own server, beside a client that behaves.
//!
//! A row of [`PATTERNS`] describes an attacker. Another process ([`process`]) attacks from another loopback address,
//! while the well-behaved client ([`good`]) keeps calling, in quiet and attacked windows by turns. The results are
//! the times and failures of this client, and the memory of the server ([`Measured`]). Nothing here attacks an
//! address that is not loopback, and nothing here prints.

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

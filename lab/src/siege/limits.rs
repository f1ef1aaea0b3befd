//! What bounds a siege, and what is demanded of a server under it.

use std::time::Duration;

/// How many times its quiet value the good client's 99th percentile may be under attack.
pub const RATIO: f64 = 5.0;
/// KiB that the server may hold under attack beyond what it had before: bodies may take 128 MiB of it
/// (`BODY_BUDGET_KIB` of the service), and thousands of connections with their TLS buffers the rest.
pub const PEAK_KIB: u64 = 256 * 1024;
/// KiB that the server may have more after the last attack than after the first: memory that is kept for each attack is a leak.
/// Attacks follow each other within seconds, so what the server keeps of one for some seconds adds up to this much at most.
pub const GROWTH_KIB: u64 = 64 * 1024;
/// Of so many attacks and more, the last is compared with the one in the middle. The first ones fill what the allocator keeps:
/// it has an arena for each thread, and what one thread frees another does not use again.
pub(super) const MANY_ATTACKS: usize = 6;

/// Seconds of a window at most.
pub(super) const MOST_SECONDS: u64 = 600;
/// The last connection of an attack has begun by then, or it is attacked with fewer.
pub(super) const RAMP: Duration = Duration::from_secs(30);
/// From the end of an attack to the next quiet window.
pub(super) const REST: Duration = Duration::from_secs(1);
/// An attack ends by itself after this long, should nobody end it.
pub(super) const LONGEST_ATTACK: Duration = Duration::from_secs(MOST_SECONDS + 60);
/// Between two looks at the server's memory.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// Open files that an attacker leaves to itself.
pub(super) const SPARE_FILES: u64 = 64;
/// The short form divides the attackers' connections by this.
pub(super) const SHORT_DIVISOR: usize = 8;
/// How long the server may take for what is needed before the siege, such as the first CRL.
pub(super) const PREPARATION: Duration = Duration::from_secs(60);
/// How long the good client waits for an answer before that counts as a failure. No shorter: a slow answer shows in the percentiles.
pub(super) const ANSWER: Duration = Duration::from_secs(60);
/// Bytes of an answer over plain HTTP or HTTP/3 that the good client reads at most.
pub(super) const MAX_ANSWER: usize = 1 << 20;

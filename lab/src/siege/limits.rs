//! The limits of a siege, and the requirements on a server under siege.

use std::time::Duration;

/// The good client's 99th percentile under attack may be at most so many times its quiet value.
pub const RATIO: f64 = 5.0;
/// Memory in KiB that the server may use under attack above what it had before: bodies may take 128 MiB of it
/// (`BODY_BUDGET_KIB` of the service), and thousands of connections with their TLS buffers the rest.
pub const PEAK_KIB: u64 = 256 * 1024;
/// Memory in KiB that the server may have more after the last attack than after the first: memory that is kept for
/// each attack is a leak. Attacks follow each other within seconds, so what the server keeps for some seconds adds up
/// to at most this much.
pub const GROWTH_KIB: u64 = 64 * 1024;
/// With so many attacks or more, the last is compared with the middle one. The first ones fill what the allocator
/// keeps: it has an arena for each thread, and memory that one thread frees is not reused by another.
pub(super) const MANY_ATTACKS: usize = 6;

/// Longest window, in seconds.
pub(super) const MOST_SECONDS: u64 = 600;
/// By then the last connection of an attack must have begun; otherwise the attack has fewer.
pub(super) const RAMP: Duration = Duration::from_secs(30);
/// Pause between the end of an attack and the next quiet window.
pub(super) const REST: Duration = Duration::from_secs(1);
/// An attack ends by itself after this time, if nobody ends it.
pub(super) const LONGEST_ATTACK: Duration = Duration::from_secs(MOST_SECONDS + 60);
/// Interval between readings of the server's memory.
pub(super) const LOOK: Duration = Duration::from_millis(100);
/// Open files that an attacker reserves for itself.
pub(super) const SPARE_FILES: u64 = 64;
/// Divisor of the attackers' connections in the short form.
pub(super) const SHORT_DIVISOR: usize = 8;
/// Timeout for the preparation of a siege, such as the first CRL.
pub(super) const PREPARATION: Duration = Duration::from_secs(60);
/// The good client's timeout, after which a call has failed. Not shorter: a slow answer shows in the percentiles.
pub(super) const ANSWER: Duration = Duration::from_secs(60);
/// Most bytes of an answer over plain HTTP or HTTP/3 that the good client reads.
pub(super) const MAX_ANSWER: usize = 1 << 20;

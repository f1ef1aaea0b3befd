//! Limits on what peers and files can make the ledger store.

/// Longest line in bytes, without its end: [`crate::Line::encode`] writes less, whatever a client sent.
pub const MAX_LINE: usize = 24 * 1024;
/// Values in a list of an offer; further values are cut off, and the line says so.
pub const MAX_VALUES: usize = 256;
/// ALPN names of an offer in a line.
pub const MAX_PROTOCOLS: usize = 16;
/// Bytes of an ALPN name in a line.
pub const MAX_PROTOCOL: usize = 64;
/// Bytes of a server name in a line: a DNS name has 253.
pub const MAX_SNI: usize = 256;
/// Bytes of a destination in a line: a host with a port.
pub const MAX_DESTINATION: usize = MAX_SNI + 8;
/// Bytes of a name-list of SSH in a line.
pub const MAX_SSH_LIST: usize = outlast_negotiate::ssh::MAX_LIST;
/// Bytes of a principal, a subject or a reason in a line.
pub const MAX_TEXT: usize = 512;
/// Bytes of the name of a listener, a policy, a kind of certificate, a fingerprint.
pub const MAX_NAME: usize = 64;

/// Bytes of lines that may wait to be written: several thousand connections.
pub const MAX_QUEUE: usize = 4 << 20;
/// Size of a segment in bytes, after which the next one is begun.
pub const SEGMENT_BYTES: u64 = 32 << 20;
/// Size of all segments of a folder in bytes; the oldest are removed first.
pub const TOTAL_BYTES: u64 = 1 << 30;
/// Least size of all segments of a folder that can be chosen: some thousand connections.
pub const MIN_TOTAL_BYTES: u64 = 1_000_000;
/// Least number of days to keep segments that can be chosen.
pub const MIN_KEEP_DAYS: u32 = 1;
/// Days to keep segments.
pub const KEEP_DAYS: u32 = 400;

/// Rows of a report: pairs of a client's name and offer.
pub const MAX_CLIENTS: usize = 100_000;
/// Different offers in a report.
pub const MAX_OFFERS: usize = 50_000;
/// Different offers in a report that first occurred in a failed handshake: anybody can make them up, so they get no
/// more room, and further ones share one row.
pub const MAX_STRANGERS: usize = 1000;
/// Connections that a report keeps until their end is read.
pub const MAX_OPEN: usize = 500_000;
/// Networks that a report names for a client.
pub const MAX_NETWORKS: usize = 8;
/// Reasons of failures that a report distinguishes.
pub const MAX_REASONS: usize = 200;
/// Hours that a report distinguishes.
pub const MAX_HOURS: usize = 20_000;

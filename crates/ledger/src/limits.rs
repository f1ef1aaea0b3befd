//! Limits on what peers and files may make the ledger hold.

/// Bytes of a line at most, without its end: what [`crate::Line::encode`] writes is shorter, whatever a client sent.
pub const MAX_LINE: usize = 24 * 1024;
/// Values of one list of an offer in a line; what a client sends beyond that is cut off, and the line says so.
pub const MAX_VALUES: usize = 256;
/// ALPN names of an offer in a line.
pub const MAX_PROTOCOLS: usize = 16;
/// Bytes of an ALPN name in a line.
pub const MAX_PROTOCOL: usize = 64;
/// Bytes of a server name in a line: a DNS name has 253.
pub const MAX_SNI: usize = 256;
/// Bytes of a principal, a subject or a reason in a line.
pub const MAX_TEXT: usize = 512;
/// Bytes of the name of a listener, a policy, a kind of certificate, a fingerprint.
pub const MAX_NAME: usize = 64;

/// Bytes of lines that wait to be written: some thousand connections.
pub const MAX_QUEUE: usize = 4 << 20;
/// Bytes of a segment, after which the next is begun.
pub const SEGMENT_BYTES: u64 = 32 << 20;
/// Bytes of all segments of a folder; the oldest go first.
pub const TOTAL_BYTES: u64 = 1 << 30;
/// Days for which segments are kept.
pub const KEEP_DAYS: u32 = 400;

/// Rows of a report: pairs of a client's name and its offer.
pub const MAX_CLIENTS: usize = 100_000;
/// Different offers in a report.
pub const MAX_OFFERS: usize = 50_000;
/// Different offers in a report of which the first to be seen failed: anybody can make such, so they get no more room,
/// and what is beyond goes into one row.
pub const MAX_STRANGERS: usize = 1000;
/// Connections that a report holds until their end is read.
pub const MAX_OPEN: usize = 500_000;
/// Networks that a report names for a client.
pub const MAX_NETWORKS: usize = 8;
/// Reasons of failures that a report tells apart.
pub const MAX_REASONS: usize = 200;
/// Hours that a report tells apart.
pub const MAX_HOURS: usize = 20_000;

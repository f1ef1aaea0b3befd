//! Limits of the store on what its callers make it do at a time.

/// Reads that wait for a database at a time; further ones fail at once. Each holds a thread, and the runtime of a server has
/// 512 of those: what needs no database must find one.
pub const WAITING_READS: usize = 448;

//! Limits of the store on concurrent work for its callers.

/// Reads that wait for a database concurrently; further ones fail at once. Each holds a thread, and the runtime of a server has
/// 512 of those: what needs no database must find one.
pub const WAITING_READS: usize = 448;

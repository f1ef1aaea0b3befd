//! Limits on concurrent work in the store.

/// Most reads that wait for a database at the same time; further ones fail at once. Each occupies a thread, and a
/// server's runtime has 512: work that needs no database must find a free one.
pub const WAITING_READS: usize = 448;

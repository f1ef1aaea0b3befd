//! The links of which operators ask.

use crate::link::Transfer;

/// Round-trip times in milliseconds: the same region, a country, an ocean, a satellite or a bad mobile network.
pub(super) const RTTS_MS: [u64; 4] = [1, 30, 100, 300];
/// Shares of packets lost in each direction.
pub(super) const LOSSES: [f64; 3] = [0.0, 0.01, 0.03];
/// A page of data after the handshake: what a client waits for.
pub(super) const TRANSFER: Transfer = Transfer { request: 200, body: 1000 };

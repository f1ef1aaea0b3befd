//! A row of the table of hostile patterns.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::io;

use super::attack::Attack;
use super::door::Door;

/// A hostile pattern.
pub struct Pattern {
    /// Name on the command line.
    pub name: &'static str,
    /// What the attacker does, in a sentence.
    pub what: &'static str,
    /// What stops it in the server.
    pub stopped_by: &'static str,
    /// The attacked door.
    pub door: Door,
    /// Whether it needs resources that only the siege's own server has.
    pub needs_own: bool,
    /// Concurrent connections.
    pub connections: usize,
    /// Open files for each.
    pub(super) files: usize,
    /// Connections that begin each second, at most.
    pub lives_per_second: u32,
    pub(super) life: Life,
}

/// One connection from its start to its end.
pub(super) type Life = fn(Arc<Attack>) -> BoxFuture<'static, io::Result<()>>;

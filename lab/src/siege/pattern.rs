//! What a row of the table of hostile patterns says.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::io;

use super::attack::Attack;
use super::door::Door;

/// What an attacker does.
pub struct Pattern {
    /// Name on the command line.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub what: &'static str,
    /// What in the server stops it.
    pub stopped_by: &'static str,
    /// What it attacks.
    pub door: Door,
    /// Whether it needs what only a server of the siege's own has.
    pub needs_own: bool,
    /// Concurrent connections.
    pub connections: usize,
    /// Open files of each.
    pub(super) files: usize,
    /// Connections that begin each second, at most.
    pub lives_per_second: u32,
    pub(super) life: Life,
}

/// One connection from its begin to its end.
pub(super) type Life = fn(Arc<Attack>) -> BoxFuture<'static, io::Result<()>>;

//! POSIX profiles.

use serde::{Deserialize, Serialize};

/// `PosixProfile`
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Posix {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// More group ids.
    pub secondary_gids: Vec<u32>,
}

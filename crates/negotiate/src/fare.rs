//! What becomes of a kind of client, in explanations and differences of policies.

use serde::Serialize;

/// Result of a kind of client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fare {
    /// Its name in [`crate::crowd::CROWD`] or [`crate::ssh::CROWD`].
    pub client: &'static str,
    /// Whether it is served.
    pub served: bool,
    /// Whether its key exchange is post-quantum.
    pub post_quantum: bool,
    /// What it gets, or why not.
    pub outcome: String,
}

/// A kind of client that is affected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Its name in [`crate::crowd::CROWD`] or [`crate::ssh::CROWD`].
    pub client: &'static str,
    /// Under the first policy: `TLSv1.3, X25519MLKEM768`, or why it is refused.
    pub before: String,
    /// Under the second.
    pub after: String,
    /// Whether it was served and no longer is.
    pub lost: bool,
}

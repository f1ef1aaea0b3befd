//! Plans: a user's own grid and endpoint, in TOML.

use serde::{Deserialize, Serialize};

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Heading of the report.
    pub title: String,
}

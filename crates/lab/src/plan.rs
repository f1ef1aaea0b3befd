//! Plans: a user's own grid and endpoint, in TOML.

use serde::{Deserialize, Serialize};

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Heading of the report.
    pub title: String,
}

impl Plan {
    /// Reads a plan.
    pub fn parse(text: &str) -> Result<Self, crate::error::LabError> {
        toml::from_str(text).map_err(|error| crate::error::LabError::Plan(error.to_string()))
    }
}

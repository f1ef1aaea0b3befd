//! Certificate Manager structures.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// `ExpiryEventsConfiguration`
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct ExpiryEvents {
    /// Days before the end of a certificate at which expiry events begin.
    pub days_before_expiry: Option<i64>,
}

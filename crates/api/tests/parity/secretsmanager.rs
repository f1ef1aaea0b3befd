//! Secrets Manager.

use std::collections::BTreeSet;

use outlast_domain::secrets::{FilterKey, ReplicaStatus, SortBy};

use super::set;

/// The values that are served of enumerations.
pub(super) fn enumerations() -> Vec<(&'static str, BTreeSet<String>)> {
    vec![
        ("FilterNameStringType", set(FilterKey::ROWS.iter().map(|row| row.0))),
        ("SortByType", set(SortBy::ROWS.iter().map(|row| row.0))),
        ("SortOrderType", set(["asc", "desc"])),
        ("StatusType", set(ReplicaStatus::ALL.iter().map(|status| status.name()))),
    ]
}

//! Roles Anywhere.

use std::collections::BTreeSet;

use outlast_domain::rolesanywhere::{CHANNELS, EVENTS, FIELDS, SOURCES};

use super::set;

/// The values that are served of enumerations.
pub(super) fn enumerations() -> Vec<(&'static str, BTreeSet<String>)> {
    vec![
        ("CertificateField", set(FIELDS.iter().copied())),
        ("NotificationChannel", set(CHANNELS.iter().copied())),
        ("NotificationEvent", set(EVENTS.iter().copied())),
        ("TrustAnchorType", set(SOURCES.iter().copied())),
    ]
}

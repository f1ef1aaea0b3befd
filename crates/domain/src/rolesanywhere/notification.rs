//! Notification settings of trust anchors: from when on events tell that certificates end ([`super::told`]).

use serde::{Deserialize, Serialize};

/// The end of an anchor's certificate.
pub(super) const CA_EXPIRY: &str = "CA_CERTIFICATE_EXPIRY";
/// The end of a certificate that begins a session.
pub(super) const WORKLOAD_EXPIRY: &str = "END_ENTITY_CERTIFICATE_EXPIRY";
/// What can be notified, AWS's spelling.
pub const EVENTS: &[&str] = &[CA_EXPIRY, WORKLOAD_EXPIRY];
/// Where to, AWS's spelling.
pub const CHANNELS: &[&str] = &["ALL"];
/// Days before the end of a certificate, by default.
const THRESHOLD: i64 = 45;

/// A setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notification {
    /// Whether it is on.
    pub enabled: bool,
    /// One of [`EVENTS`].
    pub event: String,
    /// Days before the end.
    pub threshold: i64,
    /// One of [`CHANNELS`].
    pub channel: String,
    /// Account that configured it, or the service's name for a default.
    pub configured_by: String,
}

impl Notification {
    /// A setting of an account; what is not given is the default.
    pub fn new(
        account: &str,
        enabled: bool,
        event: String,
        threshold: Option<i64>,
        channel: Option<String>,
    ) -> Self {
        Self {
            enabled,
            event,
            threshold: threshold.unwrap_or(THRESHOLD),
            channel: channel.unwrap_or_else(|| CHANNELS[0].to_owned()),
            configured_by: account.to_owned(),
        }
    }

    /// Days before the end from which on `event` is told, if this is the setting for it and it is on.
    pub(super) fn threshold_of(&self, event: &str) -> Option<i64> {
        (self.enabled && self.event == event).then_some(self.threshold)
    }

    /// Whether it is the setting for this event and channel.
    pub(super) fn is_for(&self, event: &str, channel: &str) -> bool {
        self.event == event && self.channel == channel
    }
}

/// The settings of an anchor whose owner has set none.
pub(super) fn defaults() -> Vec<Notification> {
    let of = |event: &&str| {
        Notification::new(super::SERVICE_PRINCIPAL, true, (*event).to_owned(), None, None)
    };
    EVENTS.iter().map(of).collect()
}

/// Replaces those of `settings` that are for the same event and channel.
pub(super) fn merge(settings: &mut [Notification], new: Vec<Notification>) {
    for one in new {
        let old = settings.iter_mut().find(|known| known.is_for(&one.event, &one.channel));
        if let Some(old) = old {
            *old = one;
        }
    }
}

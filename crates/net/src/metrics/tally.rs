//! Counts of events in which a limit on peers took effect. The limits are in [`crate::limits`], and enforced
//! elsewhere.

use std::sync::Arc;

use super::Metrics;
use super::table::named;

/// The limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Connections of a listener.
    Connections,
    /// Connections of one peer.
    ConnectionsByPeer,
    /// Handshakes of a listener.
    Handshakes,
    /// Handshakes of one peer.
    HandshakesByPeer,
    /// Concurrent requests to servers behind a listener.
    Requests,
    /// Such requests of one peer.
    RequestsByPeer,
    /// Memory for all bodies.
    Bodies,
    /// Memory for one peer's bodies.
    BodiesByPeer,
    /// Rate of a body.
    BodyRate,
    /// Cancelled requests.
    Cancelled,
    /// Long-running calls of one principal.
    SlowByPrincipal,
}

/// All limits and their label values.
const LIMITS: [(Limit, &str); 11] = [
    (Limit::Connections, "connections"),
    (Limit::ConnectionsByPeer, "connections_by_peer"),
    (Limit::Handshakes, "handshakes"),
    (Limit::HandshakesByPeer, "handshakes_by_peer"),
    (Limit::Requests, "requests"),
    (Limit::RequestsByPeer, "requests_by_peer"),
    (Limit::Bodies, "bodies"),
    (Limit::BodiesByPeer, "bodies_by_peer"),
    (Limit::BodyRate, "body_rate"),
    (Limit::Cancelled, "cancelled_requests"),
    (Limit::SlowByPrincipal, "slow_calls_by_principal"),
];

/// Consequence of reaching it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// A connection was closed, possibly for another one.
    Evicted,
    /// A connection or request was not served.
    Refused,
}

/// A listener's counter, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Tally(Option<(Arc<Metrics>, &'static str)>);

impl Tally {
    /// For the listener of this name.
    pub(crate) fn new(metrics: Option<Arc<Metrics>>, listener: &str) -> Self {
        Self(metrics.map(|metrics| (metrics, named(listener))))
    }

    /// Counts one event.
    pub(crate) fn count(&self, limit: Limit, action: Action) {
        let Some((metrics, listener)) = &self.0 else { return };
        let name =
            LIMITS.iter().find(|(known, _)| *known == limit).map_or(super::OTHER, |row| row.1);
        let action = match action {
            Action::Evicted => "evicted",
            Action::Refused => "refused",
        };
        metrics.limited.row([listener, name, action]).add(1);
    }
}

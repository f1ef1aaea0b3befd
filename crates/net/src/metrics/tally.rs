//! Counts of what limits on peers have ended. The limits themselves are in [`crate::limits`], and kept elsewhere.

use std::sync::Arc;

use super::Metrics;
use super::table::named;

/// What was reached.
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
    /// Requests that are with servers behind a listener.
    Requests,
    /// Such requests of one peer.
    RequestsByPeer,
    /// Memory for the bodies of all.
    Bodies,
    /// Memory for the bodies of one peer.
    BodiesByPeer,
    /// The pace of a body.
    BodyRate,
    /// Requests that were taken back.
    Cancelled,
    /// Calls of one principal that take long.
    SlowByPrincipal,
}

/// Every limit with its name as a label.
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

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// A connection made room for another one, or was closed.
    Evicted,
    /// A connection or request was not served.
    Refused,
}

/// Where a listener counts it, if it is counted.
#[derive(Clone, Default)]
pub(crate) struct Tally(Option<(Arc<Metrics>, &'static str)>);

impl Tally {
    /// For the listener of this name.
    pub(crate) fn new(metrics: Option<Arc<Metrics>>, listener: &str) -> Self {
        Self(metrics.map(|metrics| (metrics, named(listener))))
    }

    /// One more.
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

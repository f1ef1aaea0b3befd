//! A handshake in progress. The observer gets one report of its outcome in every case.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use outlast_ledger::{Handshake, Observe, Outcome};
use outlast_negotiate::{Offer, Rules, ja4};

use super::refusals::Refusals;
use crate::server::system_clock;
use crate::watch::{Watch, next_connection};

use crate::observed::Counts;

/// Common to all reports of a door.
pub(crate) struct Reporter {
    pub(crate) listener: String,
    pub(crate) rules: Rules,
    pub(crate) observer: Option<Arc<dyn Observe>>,
    pub(super) refusals: Refusals,
}

/// A handshake that has begun, over any transport. Reports how it ended; if it is dropped before that, the report
/// says that it was given up.
pub struct Handshaking {
    reporter: Arc<Reporter>,
    connection: u64,
    peer: Option<SocketAddr>,
    begun: Option<Instant>,
    offer: Option<Offer>,
    is_reported: bool,
}

impl Handshaking {
    pub(crate) fn new(reporter: Arc<Reporter>, peer: Option<SocketAddr>) -> Self {
        let connection = next_connection();
        Self { reporter, connection, peer, begun: None, offer: None, is_reported: false }
    }

    /// Id of the connection.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    /// The client has sent something. If it never does, nothing is reported, because load balancers connect only to
    /// see whether somebody listens.
    pub fn heard(&mut self) {
        self.begun.get_or_insert_with(Instant::now);
    }

    /// The client's offer has been read.
    pub fn offered(&mut self, offer: Offer) {
        self.heard();
        self.offer = Some(offer);
    }

    /// The client's offer, if it has been read.
    pub fn offer(&self) -> Option<&Offer> {
        self.offer.as_ref()
    }

    /// Ends the handshake with this outcome. Only the first call counts.
    pub fn end(&mut self, outcome: Outcome) {
        if std::mem::replace(&mut self.is_reported, true) {
            return;
        }
        if let Outcome::Refused(refusal) = &outcome {
            let Reporter { listener, rules, refusals, .. } = self.reporter.as_ref();
            refusals.log(listener, rules, self.peer, *refusal);
        }
        let Some(observer) = &self.reporter.observer else { return };
        let Some(begun) = self.begun else { return };
        let offer = self.offer.take();
        observer.handshake(&Handshake {
            connection: self.connection,
            time_ms: system_clock(),
            listener: self.reporter.listener.clone(),
            peer: self.peer,
            policy: self.reporter.rules.policy.name.to_owned(),
            mode: self.reporter.rules.mode.name().to_owned(),
            ja4: offer.as_ref().map(ja4::ja4),
            offer,
            outcome,
            micros: u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        });
    }

    /// Watch of the resulting connection, whose bytes are counted in `counts`.
    pub fn watch(&self, counts: Arc<Counts>) -> Watch {
        Watch::new(self.connection, self.reporter.observer.clone(), counts)
    }
}

impl Drop for Handshaking {
    fn drop(&mut self) {
        self.end(Outcome::Failed(GIVEN_UP.into()));
    }
}

/// The handshake was dropped: its slot was needed, or the server stopped.
const GIVEN_UP: &str = "abandoned before it ended";

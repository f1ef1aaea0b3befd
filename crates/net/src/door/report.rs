//! A handshake in progress. The observer gets one report of its outcome, whatever that is.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use outlast_ledger::{Handshake, Observe, Outcome};
use outlast_negotiate::{Offer, Rules, ja4};

use super::refusals::Refusals;
use crate::server::system_clock;
use crate::watch::{Watch, next_connection};

use crate::observed::Counts;

/// What all reports of a door have in common.
pub(crate) struct Reporter {
    pub(crate) listener: String,
    pub(crate) rules: Rules,
    pub(crate) observer: Option<Arc<dyn Observe>>,
    pub(super) refusals: Refusals,
}

/// A handshake that has begun, over whatever transport. Reports how it ended; if nobody says so before it is dropped, that
/// it was given up.
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

    /// Number of the connection.
    pub fn connection(&self) -> u64 {
        self.connection
    }

    /// The client has sent something. Where it never does, nothing is reported: load balancers connect to see whether
    /// somebody listens.
    pub fn heard(&mut self) {
        self.begun.get_or_insert_with(Instant::now);
    }

    /// The client has said what it offers.
    pub fn offered(&mut self, offer: Offer) {
        self.heard();
        self.offer = Some(offer);
    }

    /// What the client offers, if it has said so.
    pub fn offer(&self) -> Option<&Offer> {
        self.offer.as_ref()
    }

    /// The handshake has ended like this. Only the first call counts.
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

    /// For the connection that came of it, whose bytes are counted there.
    pub fn watch(&self, counts: Arc<Counts>) -> Watch {
        Watch::new(self.connection, self.reporter.observer.clone(), counts)
    }
}

impl Drop for Handshaking {
    fn drop(&mut self) {
        self.end(Outcome::Failed(GIVEN_UP.into()));
    }
}

/// The handshake was dropped: others needed its place, or the server stopped.
const GIVEN_UP: &str = "given up before it ended";

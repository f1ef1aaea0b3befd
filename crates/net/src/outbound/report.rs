//! What observers, the ledger among them, are told of a connection to a server outside: its first key exchange, in every case
//! once, and its end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use outlast_domain::transfer::connector::Endpoint;
use outlast_ledger::{End, Observe, Outgoing, SshHandshake, SshOutcome, SshServed};
use outlast_negotiate::ssh::{SshOffer, SshRefusal, SshRules, decide_ssh_server};
use outlast_ssh::{Disagreement, Negotiation};

use crate::clock::Clock;
use crate::sftp::report::{lists, served};
use crate::watch::next_connection;

/// Stands for a listener in metrics and ledgers.
const LISTENER: &str = "connectors";

/// The reports of a connection.
pub(super) struct Report {
    observer: Option<Arc<dyn Observe>>,
    clock: Clock,
    rules: SshRules,
    connection: u64,
    outgoing: Outgoing,
    peer: Option<SocketAddr>,
    begun: Option<Instant>,
    offer: Option<SshOffer>,
    /// What was negotiated; it counts when the server has proved that it has the keys, and its own key is trusted.
    served: Option<SshServed>,
    is_reported: bool,
    is_open: bool,
    pub(super) received: u64,
    pub(super) sent: u64,
}

impl Report {
    /// A connection of this connector, by these rules.
    pub(super) fn new(
        observer: Option<Arc<dyn Observe>>,
        clock: Clock,
        rules: SshRules,
        endpoint: &Endpoint,
    ) -> Self {
        let Endpoint { host, port, connector_arn, .. } = endpoint;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        let outgoing =
            Outgoing { destination: format!("{host}:{port}"), principal: connector_arn.clone() };
        Self {
            observer,
            clock,
            rules,
            connection: next_connection(),
            outgoing,
            peer: None,
            begun: None,
            offer: None,
            served: None,
            is_reported: false,
            is_open: false,
            received: 0,
            sent: 0,
        }
    }

    /// The server has taken the connection.
    pub(super) fn connected(&mut self, peer: Option<SocketAddr>) {
        self.peer = peer;
        self.begun = Some(Instant::now());
    }

    /// The first negotiation has an outcome.
    pub(super) fn negotiated(&mut self, negotiation: &Negotiation) {
        if negotiation.rekey {
            return;
        }
        let offer = SshOffer::new(&negotiation.peer_version, lists(&negotiation.offered));
        match &negotiation.outcome {
            Ok(chosen) => {
                self.served = Some(served(chosen, negotiation.strict));
                self.offer = Some(offer);
            }
            Err(none) => {
                let refusal = refusal(&self.rules, &offer, *none);
                self.offer = Some(offer);
                self.handshake(SshOutcome::Refused(refusal));
            }
        }
    }

    /// The server has the keys: it has sent a message under them.
    pub(super) fn keyed(&mut self) {
        if let Some(served) = self.served.take() {
            self.is_open = true;
            self.handshake(SshOutcome::Served(served));
        }
    }

    /// There is no connection, for this reason in a few words of ours. If keys were exchanged before, nothing is reported.
    pub(super) fn failed(&mut self, reason: &str) {
        self.handshake(SshOutcome::Failed(reason.to_owned()));
    }

    fn handshake(&mut self, outcome: SshOutcome) {
        if std::mem::replace(&mut self.is_reported, true) {
            return;
        }
        let Some(observer) = &self.observer else { return };
        let took = self.begun.map_or(0, |begun| begun.elapsed().as_micros());
        observer.ssh_handshake(&SshHandshake {
            connection: self.connection,
            time_ms: (self.clock)(),
            listener: LISTENER.to_owned(),
            peer: self.peer,
            outgoing: Some(self.outgoing.clone()),
            policy: self.rules.policy.name.to_owned(),
            mode: self.rules.mode.name().to_owned(),
            offer: self.offer.take(),
            first_guess: None,
            blind: false,
            outcome,
            micros: u64::try_from(took).unwrap_or(u64::MAX),
        });
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        self.failed(match self.begun {
            Some(_) => "the connection ended before the keys were exchanged",
            // Nobody waits any more for one that was never made.
            None => "the attempt to connect was abandoned",
        });
        let Some(observer) = self.observer.as_ref().filter(|_| self.is_open) else { return };
        observer.end(&End {
            connection: self.connection,
            time_ms: (self.clock)(),
            principal: Some(self.outgoing.principal.clone()),
            received: self.received,
            sent: self.sent,
        });
    }
}

/// Why the policy refused the server. The transport says which list had nothing; the rule also says why. A connector asks only
/// for host keys of types that it trusts, which the rule does not know.
fn refusal(rules: &SshRules, offer: &SshOffer, none: Disagreement) -> SshRefusal {
    match none {
        Disagreement::HostKey => SshRefusal::HostKey,
        Disagreement::Cipher => SshRefusal::Cipher,
        Disagreement::Mac => SshRefusal::Mac,
        Disagreement::Compression => SshRefusal::Compression,
        Disagreement::Order => SshRefusal::Order,
        Disagreement::KeyExchange => match decide_ssh_server(rules, offer) {
            Err(SshRefusal::Classical) => SshRefusal::Classical,
            _ => SshRefusal::KeyExchange,
        },
    }
}

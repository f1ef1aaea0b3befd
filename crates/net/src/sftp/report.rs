//! What observers, the ledger among them, are told of a connection: its first key exchange, in every case once, and its
//! end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use outlast_crypto::ssh::Algorithm;
use outlast_ledger::{End, Observe, SshHandshake, SshOutcome, SshServed};
use outlast_negotiate::ssh::{SshOffer, SshRefusal, SshRules, decide_ssh};
use outlast_ssh::{Chosen, Disagreement, Lists, Negotiation};

use super::LISTENER;
use crate::server::system_clock;
use crate::watch::next_connection;

/// The reports of a connection.
pub(super) struct Report {
    observer: Option<Arc<dyn Observe>>,
    rules: SshRules,
    connection: u64,
    peer: SocketAddr,
    begun: Option<Instant>,
    offer: Option<SshOffer>,
    first_guess: Option<bool>,
    blind: bool,
    /// What was negotiated; it counts when the client has proved that it has the keys.
    served: Option<SshServed>,
    is_reported: bool,
    /// Who has authenticated.
    pub(super) principal: Option<String>,
    pub(super) received: u64,
    pub(super) sent: u64,
}

impl Report {
    pub(super) fn new(
        observer: Option<Arc<dyn Observe>>,
        rules: SshRules,
        peer: SocketAddr,
    ) -> Self {
        Self {
            observer,
            rules,
            connection: next_connection(),
            peer,
            begun: None,
            offer: None,
            first_guess: None,
            blind: false,
            served: None,
            is_reported: false,
            principal: None,
            received: 0,
            sent: 0,
        }
    }

    /// The client has sent bytes. If it never does, nothing is reported: load balancers look whether somebody listens.
    pub(super) fn heard(&mut self, len: usize) {
        self.begun.get_or_insert_with(Instant::now);
        self.received = self.received.saturating_add(len as u64);
    }

    /// The client has identified itself, and perhaps sends nothing else.
    pub(super) fn identified(&mut self, version: &str) {
        if self.offer.is_none() && !self.is_reported {
            self.offer = Some(SshOffer::new(version, [""; 8]));
        }
    }

    /// The first negotiation has an outcome.
    pub(super) fn negotiated(&mut self, negotiation: &Negotiation) {
        let offer = SshOffer::new(&negotiation.peer_version, lists(&negotiation.offered));
        self.first_guess = negotiation.first_guess;
        self.blind = negotiation.blind;
        match &negotiation.outcome {
            Ok(chosen) => {
                self.served = Some(served(chosen, negotiation.strict));
                self.offer = Some(offer);
            }
            Err(why) => {
                // The transport says which list had nothing; the rule also says why.
                let refusal = match why {
                    Disagreement::Order => Some(SshRefusal::Order),
                    _ => decide_ssh(&self.rules, &offer).err(),
                };
                self.offer = Some(offer);
                self.handshake(SshOutcome::Refused(refusal.unwrap_or(SshRefusal::KeyExchange)));
            }
        }
    }

    /// The client has the keys: it has sent a message under them.
    pub(super) fn keyed(&mut self) {
        if let Some(served) = self.served.take() {
            self.handshake(SshOutcome::Served(served));
        }
    }

    fn handshake(&mut self, outcome: SshOutcome) {
        if std::mem::replace(&mut self.is_reported, true) {
            return;
        }
        let (Some(observer), Some(begun)) = (&self.observer, self.begun) else { return };
        observer.ssh_handshake(&SshHandshake {
            connection: self.connection,
            time_ms: system_clock(),
            listener: LISTENER.to_owned(),
            peer: Some(self.peer),
            outgoing: None,
            policy: self.rules.policy.name.to_owned(),
            mode: self.rules.mode.name().to_owned(),
            offer: self.offer.take(),
            first_guess: self.first_guess,
            blind: self.blind,
            outcome,
            micros: u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX),
        });
    }
}

impl Drop for Report {
    fn drop(&mut self) {
        let was_served = self.is_reported;
        self.handshake(SshOutcome::Failed(
            "the connection ended before the keys were exchanged".into(),
        ));
        let Some(observer) = self.observer.as_ref().filter(|_| was_served) else { return };
        observer.end(&End {
            connection: self.connection,
            time_ms: system_clock(),
            principal: self.principal.take(),
            received: self.received,
            sent: self.sent,
        });
    }
}

/// The name-lists of a peer, in the order of the message.
pub(crate) fn lists(lists: &Lists) -> [&str; 8] {
    [
        &lists.key_exchanges,
        &lists.host_keys,
        &lists.ciphers_to_server,
        &lists.ciphers_to_client,
        &lists.macs_to_server,
        &lists.macs_to_client,
        &lists.compressions_to_server,
        &lists.compressions_to_client,
    ]
}

/// What was negotiated, as the ledger has it.
pub(crate) fn served(chosen: &Chosen, strict: bool) -> SshServed {
    let Chosen { key_exchange, host_key, to_server, to_client } = chosen;
    SshServed {
        key_exchange: (*key_exchange).to_owned(),
        post_quantum: Algorithm::by_name(key_exchange).is_some_and(|row| row.post_quantum),
        host_key: (*host_key).to_owned(),
        cipher_to_server: to_server.cipher.to_owned(),
        cipher_to_client: to_client.cipher.to_owned(),
        mac_to_server: to_server.mac.map(str::to_owned),
        mac_to_client: to_client.mac.map(str::to_owned),
        strict,
    }
}

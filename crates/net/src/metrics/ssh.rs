//! Metrics of SSH connections: those of listeners, and those of connectors.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::KeyValue;
use outlast_crypto::ssh::Algorithm;
use outlast_ledger::known::Ability;
use outlast_ledger::{SshHandshake, SshOutcome, SshServed, known_ssh};

use super::table::{Counter, Gauge, Instrument, Readable, Spread, Table, named};
use super::{Listener, NONE, OTHER, offered_as, yes_no};

pub(super) static HANDSHAKES: Instrument<10> = Instrument {
    name: "ssh_handshakes",
    help: "First key exchanges of SSH connections that ended, well or not",
    unit: None,
    labels: [
        "listener",
        "policy",
        "mode",
        "outcome",
        "offered",
        "key_exchange",
        "post_quantum",
        "host_key",
        "cipher",
        "strict",
    ],
};

pub(super) static HANDSHAKE_SECONDS: Instrument<3> = Instrument {
    name: "ssh_handshake_duration",
    help: "Time from an SSH connection's first byte to the end of its first key exchange",
    unit: Some("seconds"),
    labels: ["listener", "outcome", "key_exchange"],
};

static OPEN: Instrument<1> = Instrument {
    name: "ssh_open_connections",
    help: "SSH connections that are open after their first key exchange",
    unit: None,
    labels: ["listener"],
};

static RECEIVED: Instrument<1> = Instrument {
    name: "ssh_received",
    help: "Bytes from SSH peers, counted when a connection ends",
    unit: Some("bytes"),
    labels: ["listener"],
};

static SENT: Instrument<1> = Instrument {
    name: "ssh_sent",
    help: "Bytes to SSH peers, counted when a connection ends",
    unit: Some("bytes"),
    labels: ["listener"],
};

/// The tables of SSH.
pub(super) struct Ssh {
    handshakes: Arc<Table<10, Counter>>,
    handshake_seconds: Arc<Table<3, Spread>>,
    open: Arc<Table<1, Gauge>>,
    received: Arc<Table<1, Counter>>,
    sent: Arc<Table<1, Counter>>,
}

impl Ssh {
    pub(super) fn new() -> Self {
        Self {
            handshakes: Arc::new(Table::new(&HANDSHAKES)),
            handshake_seconds: Arc::new(Table::new(&HANDSHAKE_SECONDS)),
            open: Arc::new(Table::new(&OPEN)),
            received: Arc::new(Table::new(&RECEIVED)),
            sent: Arc::new(Table::new(&SENT)),
        }
    }

    pub(super) fn readables(&self) -> [Arc<dyn Readable>; 5] {
        [
            self.handshakes.clone(),
            self.handshake_seconds.clone(),
            self.open.clone(),
            self.received.clone(),
            self.sent.clone(),
        ]
    }

    /// Counts a handshake. Returns the counters of its connection, if there is one, and the labels of its duration.
    pub(super) fn count(&self, handshake: &SshHandshake) -> (Option<Listener>, [KeyValue; 3]) {
        let listener = named(&handshake.listener);
        let (outcome, outcome_class, served) = match &handshake.outcome {
            SshOutcome::Served(served) => ("served", "served", Some(served)),
            SshOutcome::Refused(refusal) => {
                (named(&format!("refused:{}", refusal.name())), "refused", None)
            }
            SshOutcome::Failed(_) => ("failed", "failed", None),
        };
        let row = |read: fn(&SshServed) -> &str| served.map_or(NONE, |served| known(read(served)));
        let flag =
            |read: fn(&SshServed) -> bool| served.map_or(NONE, |served| yes_no(read(served)));
        let offer = handshake.offer.as_ref().map(known_ssh::ability);
        let key_exchange = row(|served| &served.key_exchange);
        let labels = [
            listener,
            named(&handshake.policy),
            named(&handshake.mode),
            outcome,
            match offer {
                None | Some(Ability::Unreadable) => NONE,
                Some(ability) => offered_as(ability),
            },
            key_exchange,
            flag(|served| served.post_quantum),
            // A certificate's algorithm counts as that of its key.
            row(|served| served.host_key.trim_end_matches("-cert-v01@openssh.com")),
            row(|served| &served.cipher_to_server),
            flag(|served| served.strict),
        ];
        self.handshakes.row(labels).add(1);
        let values = [listener, outcome_class, key_exchange];
        let took = Duration::from_micros(handshake.micros);
        self.handshake_seconds.row(values).record(took);
        let counters = served.map(|_| Listener {
            open: self.open.row([listener]),
            received: self.received.row([listener]),
            sent: self.sent.row([listener]),
        });
        let [a, b, c] = HANDSHAKE_SECONDS.labels;
        let pairs = [(a, values[0]), (b, values[1]), (c, values[2])];
        (counters, pairs.map(|(name, value)| KeyValue::new(name, value)))
    }
}

/// The name of an algorithm that has a row.
fn known(name: &str) -> &'static str {
    Algorithm::by_name(name).map_or(OTHER, |row| row.name)
}

//! What listeners report of connections.

mod ssh;

use std::net::SocketAddr;
use std::sync::Arc;

use outlast_negotiate::{Offer, Refusal};
use serde::{Deserialize, Serialize};

pub use self::ssh::{Outgoing, SshHandshake, SshOutcome, SshServed};

/// A handshake that has ended, successfully or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handshake {
    /// Number of the connection within this process, which its [`End`] repeats.
    pub connection: u64,
    /// When it ended, milliseconds since 1970.
    pub time_ms: i64,
    /// Name of the listener: `api`, or the proxy's name for it.
    pub listener: String,
    /// The client's address, if known.
    pub peer: Option<SocketAddr>,
    /// The policy's name.
    pub policy: String,
    /// The mode's name.
    pub mode: String,
    /// What the client offered; `None` if it sent no readable ClientHello.
    pub offer: Option<Offer>,
    /// JA4 of the offer.
    pub ja4: Option<String>,
    /// Its outcome.
    pub outcome: Outcome,
    /// From the first byte to the end, in microseconds.
    pub micros: u64,
}

/// Outcome of a handshake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// With a connection.
    Served(Served),
    /// Refused by the policy.
    Refused(Refusal),
    /// It failed for another reason, in a few words of ours.
    Failed(String),
}

/// What was negotiated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Served {
    /// `TLSv1.3`
    pub version: String,
    /// IANA name.
    pub suite: String,
    /// IANA name; `None` when a TLS 1.2 session was resumed.
    pub group: Option<String>,
    /// Whether the group is post-quantum or hybrid.
    pub post_quantum: bool,
    /// Whether there was a HelloRetryRequest.
    pub hello_retry: bool,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// IANA name of the scheme that signed the handshake; `None` if a session was resumed.
    pub scheme: Option<String>,
    /// Kind of the server's certificate: `ecdsa-p256`.
    pub certificate: Option<String>,
    /// Subject of the client's certificate, if it showed one.
    pub client: Option<String>,
}

/// A connection that ended after its handshake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// As in [`Handshake`] or [`SshHandshake`].
    pub connection: u64,
    /// When, milliseconds since 1970.
    pub time_ms: i64,
    /// Who used it, as an ARN or another name; `None` if the client did not identify itself.
    pub principal: Option<String>,
    /// Bytes from the peer, including TLS or SSH.
    pub received: u64,
    /// Bytes to the peer.
    pub sent: u64,
}

/// Receives reports. It must not block: it is called by the threads that serve handshakes.
pub trait Observe: Send + Sync {
    /// A handshake ended.
    fn handshake(&self, handshake: &Handshake);
    /// An SSH handshake ended. A connection that was served has an end, too.
    fn ssh_handshake(&self, handshake: &SshHandshake);
    /// A connection ended.
    fn end(&self, end: &End);
}

/// Several observers as one, called in this order.
pub struct Observers(pub Vec<Arc<dyn Observe>>);

impl Observe for Observers {
    fn handshake(&self, handshake: &Handshake) {
        self.0.iter().for_each(|observer| observer.handshake(handshake));
    }

    fn ssh_handshake(&self, handshake: &SshHandshake) {
        self.0.iter().for_each(|observer| observer.ssh_handshake(handshake));
    }

    fn end(&self, end: &End) {
        self.0.iter().for_each(|observer| observer.end(end));
    }
}

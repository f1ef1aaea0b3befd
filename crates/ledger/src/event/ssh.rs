//! What SSH listeners report of connections, and who connects to SSH servers outside.

use std::net::SocketAddr;

use outlast_negotiate::ssh::{SshChosen, SshOffer, SshRefusal};
use serde::{Deserialize, Serialize};

/// An SSH handshake that has ended, successfully or not: the first key exchange, not the authentication of the user.
/// Later exchanges of a connection are not reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SshHandshake {
    /// Number of the connection within this process, which its [`crate::End`] repeats.
    pub connection: u64,
    /// When it ended, milliseconds since 1970.
    pub time_ms: i64,
    /// Name of the listener: `sftp`; `connectors` for what this program connects to.
    pub listener: String,
    /// The peer's address, if known.
    pub peer: Option<SocketAddr>,
    /// Where this program connected to, as a client; `None` at a listener, whose peers are the clients.
    pub outgoing: Option<Outgoing>,
    /// The policy's name.
    pub policy: String,
    /// The mode's name.
    pub mode: String,
    /// What the peer offered. Its lists are empty if it sent no readable `SSH_MSG_KEXINIT`; `None` if not even an
    /// identification string.
    pub offer: Option<SshOffer>,
    /// Whether the client sent its share before it knew the server's list and, if so, whether it guessed the method.
    pub first_guess: Option<bool>,
    /// Whether the server sent its list before it had the client's, although the mode is `prefer`: the client waited for
    /// it too long. Then the client's order alone decided.
    pub blind: bool,
    /// Its outcome.
    pub outcome: SshOutcome,
    /// From the first byte to the end, in microseconds.
    pub micros: u64,
}

/// A connection to a server outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outgoing {
    /// Host and port, as the connector has them: `sftp.partner.example:22`.
    pub destination: String,
    /// For whom: the ARN of a connector.
    pub principal: String,
}

/// Outcome of an SSH handshake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SshOutcome {
    /// With a connection.
    Served(SshServed),
    /// Refused by the policy.
    Refused(SshRefusal),
    /// It failed for another reason, in a few words of ours.
    Failed(String),
}

/// What was negotiated, by the names on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SshServed {
    /// Key exchange method.
    pub key_exchange: String,
    /// Whether the method is post-quantum.
    pub post_quantum: bool,
    /// Host key algorithm, which may be that of a certificate.
    pub host_key: String,
    /// Cipher from the client to the server.
    pub cipher_to_server: String,
    /// Cipher from the server to the client.
    pub cipher_to_client: String,
    /// MAC from the client to the server; `None` if the cipher authenticates.
    pub mac_to_server: Option<String>,
    /// MAC from the server to the client; `None` if the cipher authenticates.
    pub mac_to_client: Option<String>,
    /// Whether both sides have strict key exchange.
    pub strict: bool,
}

impl SshServed {
    /// From a decision.
    pub fn of(chosen: &SshChosen, strict: bool) -> Self {
        let SshChosen { key_exchange, post_quantum, host_key, to_server, to_client } = chosen;
        Self {
            key_exchange: (*key_exchange).to_owned(),
            post_quantum: *post_quantum,
            host_key: (*host_key).to_owned(),
            cipher_to_server: to_server.cipher.to_owned(),
            cipher_to_client: to_client.cipher.to_owned(),
            mac_to_server: to_server.mac.map(str::to_owned),
            mac_to_client: to_client.mac.map(str::to_owned),
            strict,
        }
    }
}

//! What two peers offered each other, and the outcome: for ledgers and logs.

/// Outcome of the algorithms' negotiation (RFC 4253, section 7.1).
#[derive(Debug, Clone)]
pub struct Negotiation {
    /// Identification string of the peer, `SSH-2.0-...`, without control characters.
    pub peer_version: String,
    /// The peer's name-lists as it sent them.
    pub offered: Lists,
    /// What was chosen.
    pub outcome: Result<Chosen, Disagreement>,
    /// Whether both sides have strict key exchange (`kex-strict-c-v00@openssh.com` and `kex-strict-s-v00@openssh.com`).
    pub strict: bool,
    /// Whether the peer sent its share before it knew the algorithms, and if so, whether it guessed them.
    pub first_guess: Option<bool>,
    /// Whether the server sent its list before it had the client's, although it has preferred methods: the client waited for
    /// it too long.
    pub blind: bool,
    /// Whether a connection that has keys already gets new ones.
    pub rekey: bool,
}

/// The name-lists of a `SSH_MSG_KEXINIT`, comma-separated as on the wire.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lists {
    /// Key exchange methods, with markers such as `ext-info-c`.
    pub key_exchanges: String,
    /// Host key algorithms.
    pub host_keys: String,
    /// Ciphers from the client to the server.
    pub ciphers_to_server: String,
    /// Ciphers from the server to the client.
    pub ciphers_to_client: String,
    /// MACs from the client to the server.
    pub macs_to_server: String,
    /// MACs from the server to the client.
    pub macs_to_client: String,
    /// Compressions from the client to the server.
    pub compressions_to_server: String,
    /// Compressions from the server to the client.
    pub compressions_to_client: String,
}

impl Lists {
    /// The text whose MD5 is the client's HASSH, if these are a client's lists.
    pub fn hassh_text(&self) -> String {
        let Self {
            key_exchanges, ciphers_to_server, macs_to_server, compressions_to_server, ..
        } = self;
        format!("{key_exchanges};{ciphers_to_server};{macs_to_server};{compressions_to_server}")
    }
}

/// Chosen algorithms, by their names on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Key exchange method.
    pub key_exchange: &'static str,
    /// Host key algorithm, which may be that of a certificate.
    pub host_key: &'static str,
    /// From the client to the server.
    pub to_server: Direction,
    /// From the server to the client.
    pub to_client: Direction,
}

/// Chosen algorithms of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Direction {
    /// Cipher.
    pub cipher: &'static str,
    /// MAC; `None` if the cipher authenticates.
    pub mac: Option<&'static str>,
}

/// Why two peers have no algorithms: the first kind for which there is no common one, or else the lists' order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Disagreement {
    /// Key exchange methods.
    #[error("there is no common key exchange method")]
    KeyExchange,
    /// Host key algorithms.
    #[error("there is no common host key algorithm")]
    HostKey,
    /// Ciphers.
    #[error("there is no common cipher")]
    Cipher,
    /// MACs.
    #[error("there is no common MAC")]
    Mac,
    /// Compression: only `none` is supported.
    #[error("there is no common compression")]
    Compression,
    /// The client's list came after the server's, and its order chooses a method that the server does not prefer although it
    /// offers one that the server does. Somebody who holds the list up must not choose by that what the client gets.
    #[error("the client held its list back, and its order would make the key exchange classical")]
    Order,
}

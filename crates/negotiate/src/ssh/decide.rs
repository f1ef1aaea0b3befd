//! What an SSH client gets under a policy, and what this program gets as a client: functions of policy, mode and offer only.
//!
//! An independent rule beside the transport: of each list the client's first name that the server's list has (RFC
//! 4253, section 7.1). All methods here need a host key that signs, so that the methods do not restrict the host keys.

use outlast_crypto::ssh::{Algorithm, Kind};
use serde::{Deserialize, Serialize};

use super::offer::{SshOffer, row};
use super::rules::{SshLists, SshNothingLeft, SshRules, server_lists};

/// What a client gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SshChosen {
    /// Key exchange method.
    pub key_exchange: &'static str,
    /// Whether the method is post-quantum.
    pub post_quantum: bool,
    /// Host key algorithm. A server that has a certificate for its key may use the algorithm's certificates instead.
    pub host_key: &'static str,
    /// From the client to the server.
    pub to_server: SshDirection,
    /// From the server to the client.
    pub to_client: SshDirection,
}

/// What protects one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SshDirection {
    /// Cipher.
    pub cipher: &'static str,
    /// MAC; `None` if the cipher authenticates.
    pub mac: Option<&'static str>,
}

/// Why an SSH client is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case")]
pub enum SshRefusal {
    /// No key exchange method in common.
    #[error("no key exchange method in common")]
    KeyExchange,
    /// The peer only has classical key exchange methods, and the policy requires post-quantum ones.
    #[error("the peer has no post-quantum key exchange method, and the policy requires one")]
    Classical,
    /// No host key algorithm in common.
    #[error("no host key algorithm in common")]
    HostKey,
    /// No cipher in common.
    #[error("no cipher in common")]
    Cipher,
    /// No MAC in common.
    #[error("no MAC in common")]
    Mac,
    /// The peer insists on compression, and there is none here.
    #[error("the peer does not take uncompressed data")]
    Compression,
    /// The client's list came after the server's, in the mode `prefer`, and its order chooses a classical method although it
    /// offers a post-quantum one.
    #[error("the client's list came late, and its order chooses a classical key exchange method")]
    Order,
}

impl SshRefusal {
    /// Why each client would be refused where a policy leaves nothing.
    pub fn where_nothing_is_left(nothing: &SshNothingLeft) -> Self {
        match nothing {
            SshNothingLeft::NoSsh(_) | SshNothingLeft::NoKeyExchange(..) => Self::KeyExchange,
            SshNothingLeft::NoHostKey(_) => Self::HostKey,
            SshNothingLeft::NoCipher(_) => Self::Cipher,
        }
    }

    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::KeyExchange,
        Self::Classical,
        Self::HostKey,
        Self::Cipher,
        Self::Mac,
        Self::Compression,
        Self::Order,
    ];

    /// Name in records: `key-exchange`.
    pub fn name(self) -> &'static str {
        match self {
            Self::KeyExchange => "key-exchange",
            Self::Classical => "classical",
            Self::HostKey => "host-key",
            Self::Cipher => "cipher",
            Self::Mac => "mac",
            Self::Compression => "compression",
            Self::Order => "order",
        }
    }
}

/// Decides. The server has read the client's offer before it sends its own list, where that matters.
pub fn decide_ssh(rules: &SshRules, offer: &SshOffer) -> Result<SshChosen, SshRefusal> {
    decide(server_lists(rules, Some(offer)), offer, first)
}

/// The same for a client whose list comes after the server's, which waited for it too long.
pub fn decide_ssh_late(rules: &SshRules, offer: &SshOffer) -> Result<SshChosen, SshRefusal> {
    let chosen = decide(server_lists(rules, None), offer, first)?;
    // With the client's list the server would have left out the classical methods.
    let preferred = server_lists(rules, Some(offer)).key_exchanges.contains(&chosen.key_exchange);
    if preferred { Ok(chosen) } else { Err(SshRefusal::Order) }
}

/// The offer as if the client took plain host keys wherever it takes certificates: what decides at a server that has a certificate
/// for each of its host keys.
pub fn with_plain_host_keys(rules: &SshRules, offer: &SshOffer) -> SshOffer {
    let without = |name: &String| {
        let mut host_keys = rules.lists().host_keys.iter();
        let plain = host_keys.find(|plain| with_certificate(plain) == *name);
        plain.map_or_else(|| name.clone(), |plain| (*plain).to_owned())
    };
    let host_keys = offer.host_keys.iter().map(without).collect();
    SshOffer { host_keys, ..offer.clone() }
}

/// Whether this names a host key algorithm with a certificate.
pub fn is_certificate(name: &str) -> bool {
    name.contains("-cert")
}

/// Name of a host key algorithm with a certificate. OpenSSH 10.6 names that of the composite without a version.
pub(super) fn with_certificate(name: &str) -> String {
    match name {
        "ssh-mldsa44-ed25519" => format!("{name}-cert"),
        _ => format!("{name}-cert-v01@openssh.com"),
    }
}

/// Decides about a server with this offer, whose client this program is: the policy's order decides.
pub fn decide_ssh_server(rules: &SshRules, offer: &SshOffer) -> Result<SshChosen, SshRefusal> {
    decide(rules.lists(), offer, first_of_ours)
}

/// `first` finds the client's first name that the server has, among the peer's names and ours.
fn decide(
    lists: &SshLists,
    offer: &SshOffer,
    first: impl Fn(&[String], &[&'static str]) -> Option<&'static str>,
) -> Result<SshChosen, SshRefusal> {
    let Some(method) = first(&offer.key_exchanges, &lists.key_exchanges) else {
        let wants_more = lists
            .key_exchanges
            .iter()
            .all(|name| row(name, Kind::KeyExchange).is_some_and(|row| row.post_quantum));
        return Err(if wants_more && !offer.names_post_quantum() {
            SshRefusal::Classical
        } else {
            SshRefusal::KeyExchange
        });
    };
    let host_key = first(&offer.host_keys, &lists.host_keys).ok_or(SshRefusal::HostKey)?;
    let direction = |ciphers: &[String], macs: &[String]| {
        let cipher = first(ciphers, &lists.ciphers).ok_or(SshRefusal::Cipher)?;
        if row(cipher, Kind::Cipher).is_some_and(Algorithm::authenticates) {
            return Ok(SshDirection { cipher, mac: None });
        }
        let mac = first(macs, &lists.macs).ok_or(SshRefusal::Mac)?;
        Ok(SshDirection { cipher, mac: Some(mac) })
    };
    let to_server = direction(&offer.ciphers_to_server, &offer.macs_to_server)?;
    let to_client = direction(&offer.ciphers_to_client, &offer.macs_to_client)?;
    let plain = |list: &[String]| list.iter().any(|name| name == "none");
    if !plain(&offer.compressions_to_server) || !plain(&offer.compressions_to_client) {
        return Err(SshRefusal::Compression);
    }
    let post_quantum = row(method, Kind::KeyExchange).is_some_and(|row| row.post_quantum);
    Ok(SshChosen { key_exchange: method, post_quantum, host_key, to_server, to_client })
}

/// Our first name that the server has.
fn first_of_ours(server: &[String], ours: &[&'static str]) -> Option<&'static str> {
    ours.iter().find(|name| server.iter().any(|served| served == *name)).copied()
}

/// The client's first name that the server has.
fn first(client: &[String], server: &[&'static str]) -> Option<&'static str> {
    client.iter().find_map(|name| server.iter().find(|served| *served == name)).copied()
}

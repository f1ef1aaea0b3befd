//! Algorithms that this crate implements, by name.

use outlast_crypto::ssh::Kind;

use crate::cipher::{CIPHERS, MACS};
use crate::exchange::EXCHANGES;
use crate::signature::ALGORITHMS as SIGNATURES;

/// Signature algorithms of users' keys, the preferred first. Keys on hardware (`sk-`) sign only here.
pub static USER_KEYS: &[&str] = &[
    "ssh-mldsa44-ed25519",
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
    "rsa-sha2-512",
    "rsa-sha2-256",
];

/// Names of algorithms that one side of a connection allows, the preferred first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Algorithms {
    /// Key exchange methods.
    pub key_exchanges: Vec<&'static str>,
    /// Ciphers.
    pub ciphers: Vec<&'static str>,
    /// MACs for ciphers that do not authenticate.
    pub macs: Vec<&'static str>,
    /// Host key algorithms, without those of certificates: an algorithm allows its certificates, too.
    pub host_keys: Vec<&'static str>,
}

impl Algorithms {
    /// Everything that this crate implements.
    pub fn all() -> Self {
        Self {
            key_exchanges: EXCHANGES.iter().map(|row| row.name).collect(),
            ciphers: CIPHERS.iter().map(|row| row.name).collect(),
            macs: MACS.iter().map(|row| row.name).collect(),
            host_keys: SIGNATURES.iter().filter(|row| !row.hardware).map(|row| row.name).collect(),
        }
    }

    /// Of these names those that this crate implements, in their order: for the rows of a security policy.
    pub fn of(
        key_exchanges: &[&'static str],
        ciphers: &[&'static str],
        macs: &[&'static str],
        host_keys: &[&'static str],
    ) -> Self {
        let of = |names: &[&'static str], kind| {
            names.iter().copied().filter(|name| implements(kind, name)).collect()
        };
        Self {
            key_exchanges: of(key_exchanges, Kind::KeyExchange),
            ciphers: of(ciphers, Kind::Cipher),
            macs: of(macs, Kind::Mac),
            host_keys: of(host_keys, Kind::HostKey),
        }
    }
}

fn implements(kind: Kind, name: &str) -> bool {
    match kind {
        Kind::KeyExchange => EXCHANGES.iter().any(|row| row.name == name),
        Kind::Cipher => CIPHERS.iter().any(|row| row.name == name),
        Kind::Mac => MACS.iter().any(|row| row.name == name),
        Kind::HostKey => SIGNATURES.iter().any(|row| row.name == name && !row.hardware),
    }
}

/// Whether this crate implements the algorithm with this name, of any kind.
///
/// Policies name more: finite-field groups and Streamlined NTRU Prime are left out
/// (`docs/decisions/0039-an-own-ssh-transport.md`).
pub fn supported(name: &str) -> bool {
    [Kind::KeyExchange, Kind::Cipher, Kind::Mac, Kind::HostKey]
        .into_iter()
        .any(|kind| implements(kind, name))
        || USER_KEYS.contains(&name)
}

#[cfg(test)]
mod tests {
    use outlast_crypto::ssh::{ALGORITHMS, Algorithm, UNSERVED};

    use super::*;

    #[test]
    fn every_row_has_one_in_the_table_of_names() {
        let all = Algorithms::all();
        for (kind, names) in [
            (Kind::KeyExchange, &all.key_exchanges),
            (Kind::Cipher, &all.ciphers),
            (Kind::Mac, &all.macs),
            (Kind::HostKey, &all.host_keys),
        ] {
            for name in names {
                assert_eq!(Algorithm::by_name(name).map(|row| row.kind), Some(kind), "{name}");
                assert!(supported(name));
            }
        }
        assert!(USER_KEYS.iter().all(|name| SIGNATURES.iter().any(|row| row.name == *name)));
    }

    /// What is left out is left out by decision.
    #[test]
    fn the_rest_of_the_names_is_left_out_by_decision() {
        let left: Vec<_> =
            ALGORITHMS.iter().map(|row| row.name).filter(|name| !supported(name)).collect();
        assert_eq!(left, UNSERVED);
        let names = ["sntrup761x25519-sha512", "ecdh-sha2-nistp384", "curve25519-sha256"];
        assert_eq!(Algorithms::of(&names, &[], &[], &[]).key_exchanges, names[1..]);
    }
}

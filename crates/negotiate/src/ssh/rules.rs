//! A policy as an SSH listener applies it, and the lists that the listener sends.

use outlast_crypto::ssh::{Algorithm, Kind};
use serde::Serialize;

use super::offer::{SshOffer, row};
use crate::row::{Mode, SecurityPolicy};

/// A policy in a mode, without what the listener does not implement.
#[derive(Debug, Clone)]
pub struct SshRules {
    /// The row.
    pub policy: &'static SecurityPolicy,
    /// How its post-quantum key exchange methods are applied.
    pub mode: Mode,
    /// All methods that the mode leaves.
    all: SshLists,
    /// The same with post-quantum methods only.
    post_quantum: SshLists,
}

/// The name-lists of a server, the preferred first: what it puts into its `SSH_MSG_KEXINIT`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SshLists {
    /// Key exchange methods, without markers.
    pub key_exchanges: Vec<&'static str>,
    /// Ciphers, for both directions.
    pub ciphers: Vec<&'static str>,
    /// MACs for ciphers that do not authenticate.
    pub macs: Vec<&'static str>,
    /// Host key algorithms, without those of certificates.
    pub host_keys: Vec<&'static str>,
}

/// A policy in a mode that leaves nothing to an SSH listener: it could serve nobody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SshNothingLeft {
    /// The policy is for TLS.
    #[error("the security policy {0:?} does not cover SSH")]
    NoSsh(&'static str),
    /// None of its key exchange methods is left.
    #[error(
        "the security policy {0:?} has no key exchange method of SSH that is served here in the mode {1}"
    )]
    NoKeyExchange(&'static str, Mode),
    /// None of its host key algorithms is left.
    #[error("the security policy {0:?} has no host key algorithm of SSH that is served here")]
    NoHostKey(&'static str),
    /// None of its ciphers is left.
    #[error("the security policy {0:?} has no cipher of SSH that is served here")]
    NoCipher(&'static str),
}

impl SshRules {
    /// A policy in a mode; by default its own. `serves` says which names the listener implements and, of host key
    /// algorithms, has a key for; [`Algorithm::is_served`] if that is not known.
    ///
    /// ```
    /// use outlast_negotiate::ssh::{SshRules, server_lists, served};
    /// use outlast_negotiate::{Mode, SecurityPolicy};
    ///
    /// let policy = SecurityPolicy::by_name("2026-11").unwrap();
    /// let rules = SshRules::new(policy, Some(Mode::Require), served).unwrap();
    /// assert_eq!(server_lists(&rules, None).key_exchanges[0], "mlkem768x25519-sha256");
    /// let classical = SecurityPolicy::by_name("classical-2026-11").unwrap();
    /// assert!(SshRules::new(classical, Some(Mode::Require), served).is_err());
    /// ```
    pub fn new(
        policy: &'static SecurityPolicy,
        mode: Option<Mode>,
        serves: impl Fn(&str) -> bool,
    ) -> Result<Self, SshNothingLeft> {
        let mode = mode.unwrap_or(policy.mode);
        if !policy.has_ssh() {
            return Err(SshNothingLeft::NoSsh(policy.name));
        }
        let left = |names: &'static [&'static str]| -> Vec<&'static str> {
            names.iter().copied().filter(|name| serves(name)).collect()
        };
        let has = |name: &&'static str, post_quantum: bool| {
            row(name, Kind::KeyExchange).is_some_and(|row| row.post_quantum == post_quantum)
        };
        let mut all = SshLists {
            key_exchanges: left(policy.ssh.key_exchanges),
            ciphers: left(policy.ssh.ciphers),
            macs: left(policy.ssh.macs),
            host_keys: left(policy.ssh.host_keys),
        };
        all.key_exchanges.retain(|name| match mode {
            Mode::Require => has(name, true),
            Mode::Prefer | Mode::Allow => true,
            Mode::Off => has(name, false),
        });
        if all.key_exchanges.is_empty() {
            return Err(SshNothingLeft::NoKeyExchange(policy.name, mode));
        }
        if all.host_keys.is_empty() {
            return Err(SshNothingLeft::NoHostKey(policy.name));
        }
        if all.ciphers.is_empty() {
            return Err(SshNothingLeft::NoCipher(policy.name));
        }
        let mut post_quantum = all.clone();
        post_quantum.key_exchanges.retain(|name| has(name, true));
        Ok(Self { policy, mode, all, post_quantum })
    }

    /// Whether the server's list depends on the client's: then it is sent after the client's, which costs clients that
    /// wait for the server's identification string a round trip.
    pub fn waits(&self) -> bool {
        let methods = self.post_quantum.key_exchanges.len();
        self.mode == Mode::Prefer && methods > 0 && methods < self.all.key_exchanges.len()
    }

    /// All that a client may get.
    pub fn lists(&self) -> &SshLists {
        &self.all
    }
}

/// Whether the transport of this program has the algorithm with this name.
pub fn served(name: &str) -> bool {
    Algorithm::by_name(name).is_some_and(Algorithm::is_served)
}

/// What the server sends to a client with this offer; `None` if the client's has not been read.
///
/// In the mode `prefer` a client that offers a post-quantum method of the policy gets a list without any other, because
/// the client's order decides. Without its offer the list has all methods.
pub fn server_lists<'a>(rules: &'a SshRules, offer: Option<&SshOffer>) -> &'a SshLists {
    let common = |offer: &SshOffer| {
        offer.methods().any(|name| rules.post_quantum.key_exchanges.contains(&name))
    };
    if rules.waits() && offer.is_some_and(common) { &rules.post_quantum } else { &rules.all }
}

//! A security policy: what may be negotiated, in order of preference.

use outlast_crypto::groups::Group;
use outlast_crypto::schemes::Scheme;
use outlast_crypto::ssh::Algorithm;
use outlast_crypto::suites::Suite;
use outlast_crypto::versions::Version;

use crate::catalogue::POLICIES;
use crate::names::nearest;
pub use crate::row::{Mode, SecurityPolicy, SshRows, TlsRows};

impl SecurityPolicy {
    /// The policy with this name. The error suggests the most similar one.
    pub fn by_name(name: &str) -> Result<&'static Self, UnknownPolicy> {
        POLICIES.iter().find(|row| row.name == name).ok_or_else(|| UnknownPolicy(name.to_owned()))
    }

    /// Its groups, in order of preference.
    pub fn groups(&self) -> impl Iterator<Item = &'static Group> + use<'_> {
        self.resolved().groups[Mode::Prefer as usize].iter().copied()
    }

    /// All its lists, with their names.
    pub fn lists(&self) -> [List; 9] {
        let versions = self.tls.versions.iter().map(|version| version.name()).collect();
        let list = |name, values: &[&'static str]| List { name, values: values.to_vec() };
        [
            List { name: "versions", values: versions },
            list("groups", self.tls.groups),
            list("suites", self.tls.suites),
            list("handshake schemes", self.tls.handshake_schemes),
            list("certificate schemes", self.tls.certificate_schemes),
            list("ssh key exchanges", self.ssh.key_exchanges),
            list("ssh ciphers", self.ssh.ciphers),
            list("ssh macs", self.ssh.macs),
            list("ssh host keys", self.ssh.host_keys),
        ]
    }

    /// Whether it has a part for TLS.
    pub fn has_tls(&self) -> bool {
        !self.tls.versions.is_empty()
    }

    /// Whether it has a part for SSH.
    pub fn has_ssh(&self) -> bool {
        !self.ssh.key_exchanges.is_empty()
    }

    /// Whether it never allows a classical key exchange, in any mode.
    pub fn is_post_quantum_only(&self) -> bool {
        self.groups().all(|row| row.strength.is_post_quantum())
            && self.ssh_rows(self.ssh.key_exchanges).all(|row| row.post_quantum)
    }

    /// Whether FIPS 140-3 allows everything in it. Whether the module is validated is another question.
    pub fn is_fips(&self) -> bool {
        let resolved = self.resolved();
        let ssh = [self.ssh.key_exchanges, self.ssh.ciphers, self.ssh.macs, self.ssh.host_keys];
        self.groups().all(|row| row.fips)
            && resolved.suites.iter().all(|row| row.fips)
            && resolved.handshake_schemes.iter().all(|row| row.fips)
            && resolved.certificate_schemes.iter().all(|row| row.fips)
            && ssh.iter().all(|names| self.ssh_rows(names).all(|row| row.fips))
    }

    fn ssh_rows(&self, names: &'static [&'static str]) -> impl Iterator<Item = &'static Algorithm> {
        names.iter().filter_map(|name| Algorithm::by_name(name))
    }
}

/// One of the lists of a policy, the preferred first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// Name of the list, such as `groups`.
    pub name: &'static str,
    /// Names of algorithms.
    pub values: Vec<&'static str>,
}

/// No policy has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no security policy {0:?}")]
pub struct UnknownPolicy(pub String);

impl UnknownPolicy {
    /// The policy that was probably meant: one that has this name elsewhere, or one with a similar name.
    pub fn nearest(&self) -> Option<&'static SecurityPolicy> {
        let wanted = self.0.to_lowercase();
        if wanted.is_empty() {
            return None;
        }
        let words = |text: &str| {
            text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
                .any(|word| word.eq_ignore_ascii_case(&wanted))
        };
        let alias = POLICIES.iter().find(|row| words(row.summary));
        let like = || nearest(&wanted, POLICIES.iter().map(|row| row.name));
        alias.or_else(|| like().and_then(|name| SecurityPolicy::by_name(name).ok()))
    }
}

/// A policy as a listener applies it, which [`crate::decide()`] uses.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The row.
    pub policy: &'static SecurityPolicy,
    /// How its post-quantum groups are applied.
    pub mode: Mode,
}

impl Default for Rules {
    /// The first policy of the catalogue, in its own mode.
    fn default() -> Self {
        Self { policy: &POLICIES[0], mode: POLICIES[0].mode }
    }
}

/// A policy in a mode that leaves nothing: a listener with it could serve nobody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NothingLeft {
    /// The policy is for SSH.
    #[error("the security policy {0:?} does not cover TLS")]
    NoTls(&'static str),
    /// It has no group of the kind that the mode leaves.
    #[error("the security policy {0:?} has no {kind} groups, and the mode {1} allows no others", kind = if *.1 == Mode::Off { "classical" } else { "post-quantum" })]
    NoGroups(&'static str, Mode),
}

impl Rules {
    /// A policy in a mode; by default its own.
    ///
    /// ```
    /// use outlast_negotiate::{Mode, Rules, SecurityPolicy};
    ///
    /// let policy = SecurityPolicy::by_name("2026-11").unwrap();
    /// let rules = Rules::new(policy, Some(Mode::Require)).unwrap();
    /// assert_eq!(rules.groups().next().unwrap().name, "X25519MLKEM768");
    /// let classical = SecurityPolicy::by_name("classical-2026-11").unwrap();
    /// assert!(Rules::new(classical, Some(Mode::Require)).is_err());
    /// ```
    pub fn new(policy: &'static SecurityPolicy, mode: Option<Mode>) -> Result<Self, NothingLeft> {
        let rules = Self { policy, mode: mode.unwrap_or(policy.mode) };
        if !policy.has_tls() {
            return Err(NothingLeft::NoTls(policy.name));
        }
        if rules.groups().next().is_none() {
            return Err(NothingLeft::NoGroups(policy.name, rules.mode));
        }
        Ok(rules)
    }

    /// The policy with this name in its own mode.
    pub fn named(name: &str) -> Result<Self, UnknownPolicy> {
        let policy = SecurityPolicy::by_name(name)?;
        Ok(Self { policy, mode: policy.mode })
    }

    /// The groups in this mode, the preferred first.
    pub fn groups(&self) -> impl Iterator<Item = &'static Group> + use<> {
        self.policy.resolved().groups[self.mode as usize].iter().copied()
    }

    /// The versions, the preferred first. TLS 1.2 has no post-quantum groups, and is left out when they are required.
    pub fn versions(&self) -> impl Iterator<Item = Version> + use<> {
        let mode = self.mode;
        let versions = self.policy.tls.versions.iter().copied();
        versions.filter(move |version| mode != Mode::Require || *version == Version::Tls13)
    }

    /// The suites of a version, the preferred first.
    pub fn suites(&self, version: Version) -> impl Iterator<Item = &'static Suite> + use<> {
        let suites = self.policy.resolved().suites.iter().copied();
        suites.filter(move |row| row.version == version)
    }

    /// The schemes that may sign the handshake, the preferred first.
    pub fn handshake_schemes(&self) -> impl Iterator<Item = &'static Scheme> + use<> {
        self.policy.resolved().handshake_schemes.iter().copied()
    }

    /// The schemes that may sign certificates, the preferred first.
    pub fn certificate_schemes(&self) -> impl Iterator<Item = &'static Scheme> + use<> {
        self.policy.resolved().certificate_schemes.iter().copied()
    }
}

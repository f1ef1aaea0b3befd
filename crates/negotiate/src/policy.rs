//! A security policy: what may be negotiated, and in which order it is preferred.

use std::fmt;
use std::str::FromStr;

use outlast_crypto::groups::{Group, Strength};
use outlast_crypto::schemes::Scheme;
use outlast_crypto::suites::Suite;
use outlast_crypto::versions::Version;
use serde::{Deserialize, Serialize};

use crate::catalogue::POLICIES;

/// One dated policy. A row is never changed once released: a change is a new row with a new date.
#[derive(Debug)]
pub struct SecurityPolicy {
    /// What it is called: its date is in it.
    pub name: &'static str,
    /// Whom it is for, in a sentence.
    pub summary: &'static str,
    /// What it follows: standard and section, or AWS's page.
    pub sources: &'static [&'static str],
    /// TLS.
    pub tls: TlsRows,
    /// SSH.
    pub ssh: SshRows,
}

/// What a policy allows in TLS and QUIC, by IANA names, the preferred first.
#[derive(Debug)]
pub struct TlsRows {
    /// As in [`Version::name`].
    pub versions: &'static [Version],
    /// Names of [`outlast_crypto::groups::GROUPS`].
    pub groups: &'static [&'static str],
    /// Names of [`outlast_crypto::suites::SUITES`].
    pub suites: &'static [&'static str],
    /// Names of [`outlast_crypto::schemes::SCHEMES`], for the signature of the handshake.
    pub handshake_schemes: &'static [&'static str],
    /// The same for the signatures in certificates.
    pub certificate_schemes: &'static [&'static str],
}

/// What a policy allows in SSH, by the names of IANA's registry "SSH Protocol Parameters", the preferred first.
#[derive(Debug)]
pub struct SshRows {
    /// Key exchange methods.
    pub key_exchanges: &'static [&'static str],
    /// Ciphers.
    pub ciphers: &'static [&'static str],
    /// Message authentication codes, for ciphers that do not authenticate.
    pub macs: &'static [&'static str],
    /// Host key algorithms.
    pub host_keys: &'static [&'static str],
}

impl SecurityPolicy {
    /// The row with this name. The error says which there are.
    pub fn by_name(name: &str) -> Result<&'static Self, UnknownPolicy> {
        POLICIES.iter().find(|row| row.name == name).ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

/// There is no policy of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no security policy {0:?}")]
pub struct UnknownPolicy(pub String);

/// How a listener applies its policy's post-quantum groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Only post-quantum groups: a client that has none is refused.
    Require,
    /// A post-quantum group for each client that names one, by HelloRetryRequest if need be; else a classical one.
    #[default]
    Prefer,
    /// Both, as the client prefers; nobody is asked to try again who sent a share that will do.
    Allow,
    /// Classical groups only.
    Off,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Require, Self::Prefer, Self::Allow, Self::Off];

    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Require => "require",
            Self::Prefer => "prefer",
            Self::Allow => "allow",
            Self::Off => "off",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|mode| mode.name() == text)
            .ok_or_else(|| format!("{text:?} is not one of require, prefer, allow and off"))
    }
}

/// A policy as a listener applies it: what [`crate::decide()`] goes by.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The row.
    pub policy: &'static SecurityPolicy,
    /// How its post-quantum groups are applied.
    pub mode: Mode,
}

impl Default for Rules {
    /// The first policy of the catalogue, preferring post-quantum groups.
    fn default() -> Self {
        Self { policy: &POLICIES[0], mode: Mode::Prefer }
    }
}

impl Rules {
    /// The policy with this name in the usual mode.
    pub fn named(name: &str) -> Result<Self, UnknownPolicy> {
        Ok(Self { policy: SecurityPolicy::by_name(name)?, mode: Mode::default() })
    }

    /// The groups that the mode leaves, the preferred first.
    pub fn groups(&self) -> impl Iterator<Item = &'static Group> + use<> {
        let mode = self.mode;
        self.policy.tls.groups.iter().filter_map(|name| Group::by_name(name)).filter(move |row| {
            match mode {
                Mode::Require => row.strength.is_post_quantum(),
                Mode::Prefer | Mode::Allow => true,
                Mode::Off => row.strength == Strength::Classical,
            }
        })
    }

    /// The versions, the preferred first. TLS 1.2 has no post-quantum groups and goes when they are required.
    pub fn versions(&self) -> impl Iterator<Item = Version> + use<> {
        let mode = self.mode;
        let versions = self.policy.tls.versions.iter().copied();
        versions.filter(move |version| mode != Mode::Require || *version == Version::Tls13)
    }

    /// The suites of a version, the preferred first.
    pub fn suites(&self, version: Version) -> impl Iterator<Item = &'static Suite> + use<> {
        let suites = self.policy.tls.suites.iter().filter_map(|name| Suite::by_name(name));
        suites.filter(move |row| row.version == version)
    }

    /// The schemes that may sign the handshake, the preferred first.
    pub fn handshake_schemes(&self) -> impl Iterator<Item = &'static Scheme> + use<> {
        self.policy.tls.handshake_schemes.iter().filter_map(|name| Scheme::by_name(name))
    }

    /// The schemes that may sign certificates, the preferred first.
    pub fn certificate_schemes(&self) -> impl Iterator<Item = &'static Scheme> + use<> {
        self.policy.tls.certificate_schemes.iter().filter_map(|name| Scheme::by_name(name))
    }
}

//! Structure of a security policy.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use outlast_crypto::groups::{Group, Strength};
use outlast_crypto::schemes::Scheme;
use outlast_crypto::suites::Suite;
use outlast_crypto::versions::Version;
use serde::{Deserialize, Serialize};

/// A dated policy. A released row is never changed: a change is a new row with a new date.
#[derive(Debug)]
pub struct SecurityPolicy {
    /// Name, including the date.
    pub name: &'static str,
    /// Its users, in a sentence.
    pub summary: &'static str,
    /// Sources: standard and section, or AWS's page.
    pub sources: &'static [&'static str],
    /// Departures from the sources, and reasons for what is not obvious: one sentence each.
    pub differences: &'static [&'static str],
    /// Default mode.
    pub mode: Mode,
    /// TLS.
    pub tls: TlsRows,
    /// SSH.
    pub ssh: SshRows,
    /// Its names, resolved once.
    pub(crate) resolved: OnceLock<Resolved>,
}

/// What a policy allows in TLS and QUIC, by IANA names, the preferred first.
#[derive(Debug)]
pub struct TlsRows {
    /// Versions, see [`Version::name`].
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
    /// Whether it is for outgoing connections alone, those of connectors. The others are for both directions.
    pub for_connectors: bool,
    /// Key exchange methods.
    pub key_exchanges: &'static [&'static str],
    /// Ciphers.
    pub ciphers: &'static [&'static str],
    /// Message authentication codes, for ciphers that do not authenticate.
    pub macs: &'static [&'static str],
    /// Host key algorithms.
    pub host_keys: &'static [&'static str],
}

/// The rows that a policy's names stand for: [`crate::Rules`] uses them, because looking names up takes longer than
/// deciding.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// By mode, in the order of [`Mode::ALL`].
    pub(crate) groups: [Vec<&'static Group>; 4],
    pub(crate) suites: Vec<&'static Suite>,
    pub(crate) handshake_schemes: Vec<&'static Scheme>,
    pub(crate) certificate_schemes: Vec<&'static Scheme>,
}

impl Resolved {
    fn of(tls: &TlsRows) -> Self {
        let schemes =
            |names: &[&str]| names.iter().filter_map(|name| Scheme::by_name(name)).collect();
        let groups = |mode: Mode| {
            let rows = tls.groups.iter().filter_map(|name| Group::by_name(name));
            rows.filter(|row| mode.has(row.strength)).collect()
        };
        Self {
            groups: Mode::ALL.map(groups),
            suites: tls.suites.iter().filter_map(|name| Suite::by_name(name)).collect(),
            handshake_schemes: schemes(tls.handshake_schemes),
            certificate_schemes: schemes(tls.certificate_schemes),
        }
    }
}

impl SecurityPolicy {
    pub(crate) fn resolved(&self) -> &Resolved {
        self.resolved.get_or_init(|| Resolved::of(&self.tls))
    }
}

/// How a listener applies its policy's post-quantum groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Only post-quantum groups: clients without one are refused.
    Require,
    /// A post-quantum group for each client that offers one, by HelloRetryRequest if necessary; otherwise a classical
    /// one.
    #[default]
    Prefer,
    /// Both, by the client's preference; a client that sent a suitable share is not asked for another.
    Allow,
    /// Classical groups only.
    Off,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Require, Self::Prefer, Self::Allow, Self::Off];

    /// Whether the mode leaves groups of this strength.
    pub fn has(self, strength: Strength) -> bool {
        match self {
            Self::Require => strength.is_post_quantum(),
            Self::Prefer | Self::Allow => true,
            Self::Off => strength == Strength::Classical,
        }
    }

    /// Name on the command line.
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

//! The groups and cipher suites that a client offers, and rustls' provider for a policy.

use std::sync::Arc;

use outlast_crypto::groups::{GROUPS, Group, Strength};
use outlast_crypto::suites::Suite;
use outlast_crypto::versions::Version;
use outlast_negotiate::Rules;
use rustls::SupportedCipherSuite;
use rustls::crypto::{CryptoProvider, aws_lc_rs};

/// Groups that a client offers, in order. It sends a share of the first.
#[derive(Debug, Clone)]
pub struct Policy {
    groups: Vec<&'static Group>,
    suites: Vec<SupportedCipherSuite>,
}

impl Default for Policy {
    /// Groups of the default security policy.
    fn default() -> Self {
        Self::of(&Rules::default())
    }
}

impl Policy {
    /// Groups of a security policy, in its order.
    pub fn of(rules: &Rules) -> Self {
        let suites = rules.versions().flat_map(|version| rules.suites(version));
        Self { groups: rules.groups().collect(), suites: suites.map(|row| row.suite).collect() }
    }

    /// The groups with these IANA names, in this order. The error is an unknown name.
    pub fn named(names: &[&str]) -> Result<Self, String> {
        let row = |name: &&str| Group::by_name(name).ok_or_else(|| (*name).to_owned());
        let groups = names.iter().map(row).collect::<Result<_, _>>()?;
        Ok(Self { groups, ..Self::default() })
    }

    /// Only the classical groups, as the control in comparisons.
    pub fn classical() -> Self {
        let classical = |row: &&Group| row.strength == Strength::Classical;
        Self { groups: GROUPS.iter().filter(classical).collect(), ..Self::default() }
    }

    /// rustls' provider with all groups of the policy.
    pub fn provider(&self) -> Arc<CryptoProvider> {
        let kx_groups = self.groups.iter().map(|row| row.key_exchange).collect();
        let cipher_suites = self.suites.clone();
        Arc::new(CryptoProvider { kx_groups, cipher_suites, ..aws_lc_rs::default_provider() })
    }
}

/// rustls' provider for a server that has decided on a group, which leaves it no other choice.
///
/// rustls chooses the first common group *in the client's order*, so a client that names a classical group first
/// would get that. With a single group there is nothing to choose, and rustls asks for its share by HelloRetryRequest
/// if the client did not send it.
pub(crate) fn decided(rules: &Rules, version: Version, group: &Group) -> Arc<CryptoProvider> {
    let suites = supported(rules, version).into_iter().flat_map(|version| rules.suites(version));
    Arc::new(CryptoProvider {
        kx_groups: vec![group.key_exchange],
        cipher_suites: suites.map(|row: &Suite| row.suite).collect(),
        ..aws_lc_rs::default_provider()
    })
}

/// TLS versions of such a server's configuration. A client that gets TLS 1.2 from a server that supports TLS 1.3 must
/// be told so (RFC 8446, section 4.1.3), and rustls does that if both are enabled. Such a client offers only the
/// older version, or that would not have been the decision.
pub(crate) fn supported(rules: &Rules, version: Version) -> Vec<Version> {
    match version {
        Version::Tls13 => vec![version],
        Version::Tls12 => rules.versions().collect(),
    }
}

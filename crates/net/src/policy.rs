//! Which groups and cipher suites are negotiated, as one value for server and client.

use std::sync::Arc;

use outlast_crypto::groups::{GROUPS, Group, Strength};
use rustls::crypto::{
    ActiveKeyExchange, CompletedKeyExchange, CryptoProvider, SupportedKxGroup, aws_lc_rs,
};
use rustls::ffdhe_groups::FfdheGroup;
use rustls::{Error, NamedGroup, ProtocolVersion};

/// An ordered choice of groups.
#[derive(Debug, Clone)]
pub struct Policy {
    groups: Vec<&'static Group>,
}

impl Default for Policy {
    /// All groups, hybrids first.
    fn default() -> Self {
        Self { groups: GROUPS.iter().collect() }
    }
}

impl Policy {
    /// The groups with these IANA names, in this order. The unknown name is the error.
    pub fn named(names: &[&str]) -> Result<Self, String> {
        let row = |name: &&str| Group::by_name(name).ok_or_else(|| (*name).to_owned());
        Ok(Self { groups: names.iter().map(row).collect::<Result<_, _>>()? })
    }

    /// The classical groups only: the control group of comparisons.
    pub fn classical() -> Self {
        let classical = |row: &&Group| row.strength == Strength::Classical;
        Self { groups: GROUPS.iter().filter(classical).collect() }
    }

    /// Whether one of the code points a client names is a hybrid group of this policy.
    pub fn upgrades(&self, offered: &[NamedGroup]) -> bool {
        self.groups.iter().any(|row| {
            row.strength == Strength::Hybrid
                && offered.iter().any(|group| u16::from(*group) == row.code_point)
        })
    }

    /// rustls' provider with all groups of the policy.
    pub fn provider(&self) -> Arc<CryptoProvider> {
        provider(self.groups.iter().map(|row| row.key_exchange).collect())
    }

    /// The provider for clients that named a hybrid group: in TLS 1.3 no other group can be chosen.
    ///
    /// rustls takes the first group *in the client's order* that both sides have, so a client that names a
    /// classical group first would get it. With the classical groups out of TLS 1.3's reach the hybrid is
    /// chosen, and rustls asks for its share by HelloRetryRequest if it was not sent. TLS 1.2 has no
    /// hybrids and keeps the classical groups.
    pub fn upgrade_provider(&self) -> Arc<CryptoProvider> {
        let groups = self.groups.iter().map(|row| match row.strength {
            Strength::Hybrid => row.key_exchange,
            Strength::Classical => OLD_VERSIONS_ONLY
                .iter()
                .find(|wrapped| wrapped.0.name() == row.key_exchange.name())
                .map_or(row.key_exchange, |wrapped| wrapped as &dyn SupportedKxGroup),
        });
        provider(groups.collect())
    }
}

fn provider(kx_groups: Vec<&'static dyn SupportedKxGroup>) -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider { kx_groups, ..aws_lc_rs::default_provider() })
}

/// The classical groups, kept out of TLS 1.3.
static OLD_VERSIONS_ONLY: std::sync::LazyLock<Vec<OldVersionsOnly>> =
    std::sync::LazyLock::new(|| {
        let classical = |row: &&Group| row.strength == Strength::Classical;
        GROUPS.iter().filter(classical).map(|row| OldVersionsOnly(row.key_exchange)).collect()
    });

#[derive(Debug)]
struct OldVersionsOnly(&'static dyn SupportedKxGroup);

impl SupportedKxGroup for OldVersionsOnly {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        self.0.start()
    }

    fn start_and_complete(&self, peer: &[u8]) -> Result<CompletedKeyExchange, Error> {
        self.0.start_and_complete(peer)
    }

    fn ffdhe_group(&self) -> Option<FfdheGroup<'static>> {
        self.0.ffdhe_group()
    }

    fn name(&self) -> NamedGroup {
        self.0.name()
    }

    fn fips(&self) -> bool {
        self.0.fips()
    }

    fn usable_for_version(&self, version: ProtocolVersion) -> bool {
        version != ProtocolVersion::TLSv1_3 && self.0.usable_for_version(version)
    }
}

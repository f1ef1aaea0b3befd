//! DNS: addresses of targets, and the records of dns-01 and of domain validations.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use hickory_resolver::config::{
    LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{Resolver as Hickory, TokioResolver};
use outlast_domain::acme::Kind;

use super::Unmet;

/// DNS resolver without a cache.
pub(super) struct Resolver(TokioResolver);

impl Resolver {
    /// Uses this server, or the system's.
    pub fn new(server: Option<SocketAddr>) -> io::Result<Self> {
        let builder = match server {
            Some(server) => {
                let mut one = NameServerConfig::udp_and_tcp(server.ip());
                for connection in &mut one.connections {
                    connection.port = server.port();
                }
                let config = ResolverConfig::from_name_servers(vec![one]);
                Hickory::builder_with_config(config, TokioRuntimeProvider::default())
            }
            None => Hickory::builder_tokio().map_err(io::Error::other)?,
        };
        let is_system = server.is_none();
        let options = options(is_system);
        Ok(Self(builder.with_options(options).build().map_err(io::Error::other)?))
    }

    /// Addresses of a host, IPv6 first.
    pub async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, Unmet> {
        let found = self.0.lookup_ip(absolute(host)?).await;
        let mut found: Vec<_> =
            found.map_err(|error| unmet(host, "A or AAAA", &error))?.iter().collect();
        found.sort_by_key(IpAddr::is_ipv4);
        found.dedup();
        Ok(found)
    }

    /// Whether a TXT record has this value (RFC 8555, section 8.4).
    pub async fn has_txt(&self, name: &str, value: &str) -> Result<(), Unmet> {
        let found = self.0.lookup(absolute(name)?, RecordType::TXT).await;
        let found = found.map_err(|error| unmet(name, "TXT", &error))?;
        let mut count = 0;
        for record in found.answers() {
            let RData::TXT(txt) = &record.data else { continue };
            count += 1;
            // A value is split into strings of up to 255 octets.
            if txt.txt_data.concat() == value.as_bytes() {
                return Ok(());
            }
        }
        // Some of the provider's servers may not have it yet.
        Err(Unmet::not_yet(
            Kind::INCORRECT_RESPONSE,
            format!("None of the {count} TXT records of {name} has the expected value."),
        ))
    }

    /// Whether this name has a CNAME record that points at `value`.
    pub async fn has_cname(&self, name: &str, value: &str) -> Result<(), Unmet> {
        let owner = absolute(name)?;
        let found = self.0.lookup(owner.clone(), RecordType::CNAME).await;
        let found = found.map_err(|error| unmet(name, "CNAME", &error))?;
        let wanted = absolute(value)?;
        for record in found.answers() {
            // An answer may have records of other names, such as those that an alias leads to: their owners prove nothing.
            if let RData::CNAME(target) = &record.data
                && record.name == owner
                && target.0 == wanted
            {
                return Ok(());
            }
        }
        Err(Unmet::not_yet(
            Kind::INCORRECT_RESPONSE,
            format!("{name} has no CNAME record that points at {value}."),
        ))
    }
}

fn options(is_system: bool) -> ResolverOpts {
    let mut options = ResolverOpts::default();
    // A record that did not exist a moment ago may exist now.
    options.cache_size = 0;
    options.timeout = Duration::from_secs(3);
    options.attempts = 2;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    // With an explicit DNS server only its answers count, not this machine's hosts file.
    options.use_hosts_file = if is_system { ResolveHosts::Auto } else { ResolveHosts::Never };
    options
}

/// A name to which no search domain is appended.
fn absolute(name: &str) -> Result<Name, Unmet> {
    let mut name = Name::from_ascii(name)
        .map_err(|_| Unmet::wrong(Kind::DNS, "The name cannot be queried in DNS."))?;
    name.set_fqdn(true);
    Ok(name)
}

fn unmet(name: &str, kind: &str, error: &NetError) -> Unmet {
    let why = match error {
        NetError::Dns(DnsError::NoRecordsFound(_)) => "there is none".to_owned(),
        NetError::Timeout => "the DNS server does not answer".to_owned(),
        other => other.to_string(),
    };
    Unmet::not_yet(Kind::DNS, format!("The {kind} record of {name} was not found: {why}."))
}

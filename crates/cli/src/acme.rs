//! Settings of how ACME's targets are looked at.

use std::net::SocketAddr;

use outlast_net::acme::{IpNet, Settings};
use serde::Deserialize;

use crate::failure::Failure;

/// Flags of `server`.
#[derive(clap::Args)]
pub(crate) struct Flags {
    /// DNS server that ACME's challenges and domain validations are asked of [default: the system's].
    #[arg(long, env = "OUTLAST_ACME_DNS", value_name = "ADDRESS")]
    acme_dns: Option<SocketAddr>,
    /// Port of http-01 at the hosts that are looked at [default: 80].
    #[arg(long, env = "OUTLAST_ACME_HTTP_PORT", value_name = "PORT")]
    acme_http_port: Option<u16>,
    /// Port of tls-alpn-01 at the hosts that are looked at [default: 443].
    #[arg(long, env = "OUTLAST_ACME_TLS_PORT", value_name = "PORT")]
    acme_tls_port: Option<u16>,
    /// Network that hosts must be in to be looked at, such as 10.0.0.0/8; may be repeated [default: any
    /// but this machine's own, such as 127.0.0.0/8, which must be named].
    #[arg(long = "acme-network", env = "OUTLAST_ACME_NETWORKS", value_delimiter = ',')]
    acme_networks: Option<Vec<String>>,
}

/// `[acme]` in `outlast.toml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    dns: Option<SocketAddr>,
    http_port: Option<u16>,
    tls_port: Option<u16>,
    networks: Option<Vec<String>>,
}

/// What flags and file say together.
pub(crate) fn settings(flags: Flags, file: File) -> Result<Settings, Failure> {
    let defaults = Settings::default();
    let networks = flags.acme_networks.or(file.networks).unwrap_or_default();
    let networks = networks.iter().map(|text| {
        text.parse::<IpNet>().map_err(|_| {
            Failure::new(format!("{text} is not a network")).hint("write it as in 10.0.0.0/8")
        })
    });
    Ok(Settings {
        dns: flags.acme_dns.or(file.dns),
        http_port: flags.acme_http_port.or(file.http_port).unwrap_or(defaults.http_port),
        tls_port: flags.acme_tls_port.or(file.tls_port).unwrap_or(defaults.tls_port),
        networks: networks.collect::<Result<_, _>>()?,
    })
}

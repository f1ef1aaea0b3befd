//! How ACME's targets are validated, according to the settings.

use outlast_net::acme::{IpNet, Settings};

use crate::failure::Failure;
use crate::settings::Acme;

/// Checks the settings.
pub(crate) fn settings(said: Acme) -> Result<Settings, Failure> {
    let (http_port, tls_port) = (said.http_port(), said.tls_port());
    let networks = said.networks.unwrap_or_default();
    let networks = networks.iter().map(|text| {
        text.parse::<IpNet>().map_err(|_| {
            Failure::new(format!("{text} is not a network"))
                .hint("write it like 10.0.0.0/8")
                .about("acme.networks")
        })
    });
    Ok(Settings {
        dns: said.dns,
        http_port,
        tls_port,
        networks: networks.collect::<Result<_, _>>()?,
    })
}

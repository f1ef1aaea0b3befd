//! How a server shows itself and what it negotiates: flags, settings file, and what comes of them.

use std::net::SocketAddr;

use outlast_negotiate::{Rules, SecurityPolicy};
use outlast_net::certificate::{KINDS, Kind};

use crate::client_ca::Clients;
use crate::data;
use crate::failure::Failure;

/// Flags of a listener; the settings file has the same.
#[derive(clap::Args, Default)]
#[group(id = "tls")]
pub(crate) struct Flags {
    /// Security policy: see `outlast policy list` [default: 2026-11].
    #[arg(long, env = "OUTLAST_POLICY")]
    pub(crate) policy: Option<String>,
    /// How the policy's post-quantum groups are applied: require, prefer, allow or off [default: the policy's
    /// own, which is prefer for most].
    #[arg(long, env = "OUTLAST_MODE")]
    pub(crate) mode: Option<String>,
    /// Kind of the TLS certificate [default: ecdsa-p256; ml-dsa-65 for closed worlds].
    #[arg(long, env = "OUTLAST_TLS_CERT")]
    pub(crate) tls_cert: Option<String>,
    /// Further DNS name or address in the TLS certificate; may be repeated.
    #[arg(long = "tls-name", env = "OUTLAST_TLS_NAMES", value_delimiter = ',')]
    pub(crate) tls_names: Option<Vec<String>>,
}

/// How the server shows itself, what it negotiates, and whom it asks for a certificate.
pub(crate) struct Tls {
    /// What may be negotiated.
    pub(crate) rules: Rules,
    /// Kind of its certificate.
    pub(crate) kind: &'static Kind,
    /// Names in it.
    pub(crate) names: Vec<String>,
    /// Where it is written which clients to believe; absent where they are not asked.
    pub(crate) clients: Option<Clients>,
}

impl Default for Tls {
    fn default() -> Self {
        Self { rules: Rules::default(), kind: &KINDS[0], names: Vec::new(), clients: None }
    }
}

impl Flags {
    /// What was given here, and for the rest what was given there.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            policy: self.policy.or(other.policy),
            mode: self.mode.or(other.mode),
            tls_cert: self.tls_cert.or(other.tls_cert),
            tls_names: self.tls_names.or(other.tls_names),
        }
    }

    /// For a server that listens at this address.
    pub(crate) fn choose(
        self,
        listen: SocketAddr,
        clients: Option<Clients>,
    ) -> Result<Tls, Failure> {
        let mut names = data::default_names();
        if !listen.ip().is_unspecified() && !listen.ip().is_loopback() {
            names.push(listen.ip().to_string());
        }
        names.extend(self.tls_names.unwrap_or_default());
        let rules = rules(self.policy.as_deref(), self.mode.as_deref())?;
        Ok(Tls { rules, kind: kind(self.tls_cert.as_deref())?, names, clients })
    }
}

/// The policy and mode of these names; a policy's own mode, where none is given.
pub(crate) fn rules(policy: Option<&str>, mode: Option<&str>) -> Result<Rules, Failure> {
    let policy = match policy {
        Some(name) => self::policy(name)?,
        None => Rules::default().policy,
    };
    let mode = mode.map(str::parse).transpose().map_err(|error: String| Failure::new(error))?;
    Rules::new(policy, mode).map_err(|error| {
        Failure::new(error.to_string())
            .hint(format!("outlast policy show {} says what it has", policy.name))
    })
}

/// The policy of this name. An unknown one is an error that says which was probably meant.
pub(crate) fn policy(name: &str) -> Result<&'static SecurityPolicy, Failure> {
    SecurityPolicy::by_name(name).map_err(|error| {
        let list = "outlast policy list shows all";
        let hint = match error.nearest() {
            Some(row) => format!("did you mean {}? {list}", row.name),
            None => list.to_owned(),
        };
        Failure::new(error.to_string()).hint(hint)
    })
}

fn kind(name: Option<&str>) -> Result<&'static Kind, Failure> {
    let Some(name) = name else { return Ok(&KINDS[0]) };
    Kind::by_name(name).ok_or_else(|| {
        let known: Vec<_> = KINDS.iter().map(|row| row.name).collect();
        Failure::new(format!("{name} is not a kind of TLS certificate"))
            .hint(format!("known are {}", known.join(", ")))
    })
}

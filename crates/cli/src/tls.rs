//! Certificates and policy of a server, from the settings.

use std::net::SocketAddr;
use std::path::PathBuf;

use outlast_crypto::Secret;
use outlast_negotiate::{Rules, SecurityPolicy};
use outlast_net::certificate::{KINDS, Kind, SETS, kinds_by_name};
use outlast_net::own_certificate::{self, Own};

use crate::client_ca::Clients;
use crate::failure::Failure;
use crate::files::{self, Stamp, stamp};
use crate::settings;

/// Largest file with a chain or a key that is read, in bytes.
const MAX_FILE: usize = 1 << 20;

/// Certificates, policy, and client certificates of a server.
pub(crate) struct Tls {
    /// Policy and mode.
    pub(crate) rules: Rules,
    /// Its certificates.
    pub(crate) shows: Shows,
    /// Names in the certificates.
    pub(crate) names: Vec<String>,
    /// CAs and CRLs for client certificates; `None` if clients are not asked for one.
    pub(crate) clients: Option<Clients>,
}

impl Default for Tls {
    fn default() -> Self {
        let shows = Shows::Own(vec![&KINDS[0]]);
        Self { rules: Rules::default(), shows, names: Vec::new(), clients: None }
    }
}

/// The certificates of a server, the preferred one first.
#[derive(Debug, Clone)]
pub(crate) enum Shows {
    /// The service's own, of these kinds.
    Own(Vec<&'static Kind>),
    /// Those in files.
    Files(Vec<Files>),
}

/// A chain and its key.
#[derive(Debug, Clone)]
pub(crate) struct Files {
    chain: PathBuf,
    key: PathBuf,
}

impl Files {
    /// Reads both.
    pub(crate) fn load(&self) -> Result<Own, Failure> {
        // The key may be in the same file as the chain.
        let read = |path, setting| {
            files::read(path, MAX_FILE).map(Secret::new).map_err(|failure| failure.about(setting))
        };
        let chain = read(&self.chain, "tls_cert_file")?;
        let key = read(&self.key, "tls_key_file")?;
        own_certificate::read(chain.expose(), key.expose()).map_err(|error| {
            use own_certificate::OwnError::{Encrypted, Key, NoKey, OtherKey, Unusable};
            match error {
                Key(_) | NoKey | Unusable(_) => Failure::file(&self.key, &error)
                    .hint("--tls-key-file takes the private key of the certificate, in PEM or DER")
                    .about("tls_key_file"),
                OtherKey => Failure::file(&self.key, &error).hint(
                    "give the key that the certificate was made for; the server's own certificate comes first in its file",
                )
                .about("tls_key_file"),
                Encrypted => Failure::file(&self.key, &error)
                    .hint("decrypt it: the server cannot ask for a passphrase")
                    .about("tls_key_file"),
                _ => Failure::file(&self.chain, &error)
                    .hint("--tls-cert-file takes certificates, the server's own first")
                    .about("tls_cert_file"),
            }
        })
    }

    /// What is wrong with the validity of these certificates at `now`, in seconds since 1970.
    pub(crate) fn untimely(&self, own: &Own, now: i64) -> Option<Failure> {
        let wrong = if now > own.not_after {
            "the certificate has expired"
        } else if now < own.not_before {
            "the certificate is not valid yet"
        } else {
            return None;
        };
        Some(Failure::file(&self.chain, &wrong))
    }
}

impl Shows {
    /// The files' stamps, if there are any.
    pub(crate) fn stamp(&self) -> Vec<Option<Stamp>> {
        match self {
            Self::Own(_) => Vec::new(),
            Self::Files(list) => {
                list.iter().flat_map(|files| [stamp(&files.chain), stamp(&files.key)]).collect()
            }
        }
    }

    /// Whether there are files, which may change.
    pub(crate) fn has_files(&self) -> bool {
        matches!(self, Self::Files(_))
    }
}

impl Tls {
    /// For a server that listens at this address.
    pub(crate) fn choose(
        settings: settings::Tls,
        listen: SocketAddr,
        clients: Option<Clients>,
    ) -> Result<Self, Failure> {
        let rules = rules(Some(&settings.policy()), settings.mode.as_deref())?;
        let mut names = default_names();
        if !listen.ip().is_unspecified() && !listen.ip().is_loopback() {
            names.push(listen.ip().to_string());
        }
        names.extend(settings.tls_names.unwrap_or_default());
        let chains = settings.tls_cert_file.unwrap_or_default();
        let keys = settings.tls_key_file.unwrap_or_default();
        let shows = shows(settings.tls_cert.as_deref(), chains, keys)?;
        Ok(Self { rules, shows, names, clients })
    }
}

/// Names that every server certificate has.
pub(crate) fn default_names() -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(String::from).into();
    let node = rustix::system::uname();
    let valid = |name: &&str| {
        !name.is_empty()
            && name.len() <= 64
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte))
    };
    if let Some(name) = node.nodename().to_str().ok().filter(valid)
        && !names.iter().any(|known| known == name)
    {
        names.push(name.to_owned());
    }
    names
}

/// The policy and mode with these names; by default the policy's own mode.
pub(crate) fn rules(policy: Option<&str>, mode: Option<&str>) -> Result<Rules, Failure> {
    let policy = match policy {
        Some(name) => self::policy(name)?,
        None => Rules::default().policy,
    };
    let mode = mode.map(str::parse).transpose().map_err(|error: String| {
        Failure::new(format!("the mode {error}"))
            .hint("outlast server --help explains the modes; prefer is usual")
            .about("mode")
    })?;
    Rules::new(policy, mode).map_err(|error| {
        Failure::new(error.to_string())
            .hint(format!("to see what it contains, run: outlast policy show {}", policy.name))
            .about(if mode.is_some() { "mode" } else { "policy" })
    })
}

/// The policy with this name. The error for an unknown name suggests the most similar one.
pub(crate) fn policy(name: &str) -> Result<&'static SecurityPolicy, Failure> {
    SecurityPolicy::by_name(name).map_err(|error| {
        let list = "outlast policy list shows them";
        let hint = match error.nearest() {
            Some(row) => format!("did you mean {}? {list}", row.name),
            None => list.to_owned(),
        };
        Failure::new(error.to_string()).hint(hint).about("policy")
    })
}

/// The certificates by these settings.
pub(crate) fn shows(
    kind: Option<&str>,
    chains: Vec<PathBuf>,
    keys: Vec<PathBuf>,
) -> Result<Shows, Failure> {
    if chains.len() != keys.len() {
        return Err(Failure::new("each certificate file needs its key file")
            .hint("give --tls-cert-file and --tls-key-file the same number of times")
            .about("tls_cert_file"));
    }
    if !chains.is_empty() {
        if kind.is_some() {
            return Err(Failure::new("certificate files and --tls-cert are given together")
                .hint("give either --tls-cert-file and --tls-key-file, or --tls-cert"));
        }
        let pairs = chains.into_iter().zip(keys);
        return Ok(Shows::Files(pairs.map(|(chain, key)| Files { chain, key }).collect()));
    }
    let Some(name) = kind else { return Ok(Shows::Own(vec![&KINDS[0]])) };
    kinds_by_name(name).map(Shows::Own).ok_or_else(|| {
        let sets = SETS.iter().map(|row| row.name);
        let known: Vec<_> = KINDS.iter().map(|row| row.name).chain(sets).collect();
        Failure::new(format!("{name} is not a kind of TLS certificate"))
            .hint(format!("choose one of {}", known.join(", ")))
            .about("tls_cert")
    })
}

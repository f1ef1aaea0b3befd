//! How a server shows itself and what it negotiates: flags, settings file, and what comes of them.

use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use outlast_crypto::Secret;
use outlast_negotiate::{Rules, SecurityPolicy};
use outlast_net::certificate::{KINDS, Kind, SETS, kinds_by_name};
use outlast_net::own_certificate::{self, Own};

use crate::client_ca::Clients;
use crate::failure::Failure;
use crate::{data, files};

/// Largest file with a chain or a key that is read, in bytes.
const MAX_FILE: usize = 1 << 20;

/// Flags of a listener; the settings file has the same.
#[derive(clap::Args, Default)]
// The groups of all `Flags` would have one name.
#[group(id = "tls")]
pub(crate) struct Flags {
    /// Security policy: see `outlast policy list` [default: 2026-11].
    #[arg(long, env = "OUTLAST_POLICY")]
    pub(crate) policy: Option<String>,
    /// How the policy's post-quantum groups are applied: require, prefer, allow or off [default: the policy's
    /// own, which is prefer for most].
    #[arg(long, env = "OUTLAST_MODE")]
    pub(crate) mode: Option<String>,
    /// Kind of the TLS certificate: ecdsa-p256, ecdsa-p384, ml-dsa-44, ml-dsa-65 or ml-dsa-87 for closed worlds, or dual:
    /// ML-DSA-65 for clients that offer it, and ECDSA for the others [default: ecdsa-p256].
    #[arg(long, env = "OUTLAST_TLS_CERT")]
    pub(crate) tls_cert: Option<String>,
    /// Certificate chain to show instead of one of the service's own, leaf first; twice for two, the preferred first. Read
    /// again when the files change, and at SIGHUP.
    #[arg(long, env = "OUTLAST_TLS_CERT_FILE", value_name = "FILE", value_delimiter = ',')]
    pub(crate) tls_cert_file: Option<Vec<PathBuf>>,
    /// Its private key, not encrypted; as often as --tls-cert-file.
    #[arg(long, env = "OUTLAST_TLS_KEY_FILE", value_name = "FILE", value_delimiter = ',')]
    pub(crate) tls_key_file: Option<Vec<PathBuf>>,
    /// Further DNS name or address in the TLS certificate; may be repeated.
    #[arg(long = "tls-name", env = "OUTLAST_TLS_NAMES", value_delimiter = ',')]
    pub(crate) tls_names: Option<Vec<String>>,
}

/// How the server shows itself, what it negotiates, and whom it asks for a certificate.
pub(crate) struct Tls {
    /// What may be negotiated.
    pub(crate) rules: Rules,
    /// The certificates that it shows.
    pub(crate) shows: Shows,
    /// Names in it.
    pub(crate) names: Vec<String>,
    /// Where it is written which clients to believe; absent where they are not asked.
    pub(crate) clients: Option<Clients>,
}

impl Default for Tls {
    fn default() -> Self {
        let shows = Shows::Own(vec![&KINDS[0]]);
        Self { rules: Rules::default(), shows, names: Vec::new(), clients: None }
    }
}

/// Which certificates a server shows, the preferred one first.
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
        // The key may be in the chain's file, too.
        let chain = Secret::new(files::read(&self.chain, MAX_FILE)?);
        let key = Secret::new(files::read(&self.key, MAX_FILE)?);
        own_certificate::read(chain.expose(), key.expose()).map_err(|error| {
            use own_certificate::OwnError::{Encrypted, Key, NoKey, OtherKey, Unusable};
            match error {
                Key(_) | NoKey | Unusable(_) => Failure::file(&self.key, &error)
                    .hint("--tls-key-file takes the private key of the certificate, in PEM or DER"),
                OtherKey => Failure::file(&self.key, &error).hint(
                    "give the key that the certificate was made for; the server's own certificate comes first in its file",
                ),
                Encrypted => Failure::file(&self.key, &error)
                    .hint("decrypt it: there is nobody to ask when the server starts"),
                _ => Failure::file(&self.chain, &error)
                    .hint("--tls-cert-file takes certificates, the server's own first"),
            }
        })
    }

    /// What is wrong with these validity times at `now`, in seconds since 1970.
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

/// What tells a file from the one that was there before: whether to read it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    modified: (i64, i64),
    /// Tells of other permissions, and of files whose time of change was set.
    changed: (i64, i64),
    inode: u64,
    len: u64,
}

/// That of a file, if it is there.
pub(crate) fn stamp(path: &Path) -> Option<Stamp> {
    let found = std::fs::metadata(path).ok()?;
    Some(Stamp {
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
        inode: found.ino(),
        len: found.len(),
    })
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

    /// Whether there are files that may change.
    pub(crate) fn has_files(&self) -> bool {
        matches!(self, Self::Files(_))
    }
}

impl Flags {
    /// What was given here, and for the rest what was given there.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            policy: self.policy.or(other.policy),
            mode: self.mode.or(other.mode),
            tls_cert: self.tls_cert.or(other.tls_cert),
            tls_cert_file: self.tls_cert_file.or(other.tls_cert_file),
            tls_key_file: self.tls_key_file.or(other.tls_key_file),
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
        let chains = self.tls_cert_file.unwrap_or_default();
        let keys = self.tls_key_file.unwrap_or_default();
        let shows = shows(self.tls_cert.as_deref(), chains, keys)?;
        Ok(Tls { rules, shows, names, clients })
    }
}

/// The policy and mode of these names; a policy's own mode, where none is given.
pub(crate) fn rules(policy: Option<&str>, mode: Option<&str>) -> Result<Rules, Failure> {
    let policy = match policy {
        Some(name) => self::policy(name)?,
        None => Rules::default().policy,
    };
    let mode = mode.map(str::parse).transpose().map_err(|error: String| {
        Failure::new(format!("the mode {error}"))
            .hint("outlast server --help says what each mode is; prefer is usual")
    })?;
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

/// What is to be shown by these settings.
pub(crate) fn shows(
    kind: Option<&str>,
    chains: Vec<PathBuf>,
    keys: Vec<PathBuf>,
) -> Result<Shows, Failure> {
    if chains.len() != keys.len() {
        return Err(Failure::new("each certificate file needs its key file")
            .hint("give --tls-cert-file and --tls-key-file equally often"));
    }
    if !chains.is_empty() {
        if kind.is_some() {
            return Err(Failure::new("there are files with certificates, and a kind of its own")
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
            .hint(format!("known are {}", known.join(", ")))
    })
}

//! Whose client certificates a server believes: the settings for it, and the files that they name.

use std::path::{Path, PathBuf};

use outlast_net::client_auth::{ClientAuth, ClientAuthError, MODES, Mode};
use outlast_pki::object::{self, Kind};

use crate::failure::Failure;
use crate::{files, tls, trust};

/// Largest CRL file that is read, in bytes.
const MAX_CRL: usize = 64 << 20;

/// Flags of `server`.
#[derive(clap::Args, Default)]
pub(crate) struct ClientArguments {
    /// Ask clients for certificates, and believe those below the CAs in this PEM file or folder.
    #[arg(long, env = "OUTLAST_CLIENT_CA", value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Whether a client must have a certificate: require or request [default: require].
    #[arg(long, env = "OUTLAST_CLIENT_AUTH", value_name = "MODE")]
    client_auth: Option<String>,
    /// CRL to look clients' certificates up in; may be repeated. Read again when the file changes.
    #[arg(
        long = "client-crl",
        env = "OUTLAST_CLIENT_CRLS",
        value_delimiter = ',',
        value_name = "FILE"
    )]
    client_crls: Option<Vec<PathBuf>>,
}

/// The same from `outlast.toml`; paths are relative to the data folder.
#[derive(Default)]
pub(crate) struct Settings {
    /// `client_ca`
    pub(crate) client_ca: Option<PathBuf>,
    /// `client_auth`
    pub(crate) client_auth: Option<String>,
    /// `client_crls`
    pub(crate) client_crls: Option<Vec<PathBuf>>,
}

/// Where it is written whom to believe.
#[derive(Debug, Clone)]
pub(crate) struct Clients {
    mode: Mode,
    authorities: PathBuf,
    crls: Vec<PathBuf>,
}

impl Clients {
    /// What flags and variables say, or else the settings file of `folder`; `None` where nobody asks for certificates.
    pub(crate) fn choose(
        arguments: ClientArguments,
        settings: Settings,
        folder: &Path,
    ) -> Result<Option<Self>, Failure> {
        let inside = |path: PathBuf| folder.join(path);
        let authorities = arguments.client_ca.or(settings.client_ca.map(inside));
        let mode = arguments.client_auth.or(settings.client_auth);
        let from_file = settings.client_crls.map(|list| list.into_iter().map(inside).collect());
        let crls = arguments.client_crls.or(from_file).unwrap_or_default();
        let Some(authorities) = authorities else {
            if mode.is_some() || !crls.is_empty() {
                return Err(Failure::new("client certificates are configured without a CA")
                    .hint("say whose certificates are believed with --client-ca FILE"));
            }
            return Ok(None);
        };
        let mode = match mode.as_deref() {
            None => Mode::Require,
            Some(name) => {
                let row = MODES.iter().find(|(known, _)| *known == name);
                row.map(|(_, mode)| *mode).ok_or_else(|| {
                    Failure::new(format!("{name} is not a way to ask for client certificates"))
                        .hint("known are require and request")
                })?
            }
        };
        Ok(Some(Self { mode, authorities, crls }))
    }

    /// Reads the files.
    pub(crate) fn load(&self) -> Result<ClientAuth, Failure> {
        let roots = trust::load(&self.authorities)?;
        let mut crls = Vec::new();
        for path in &self.crls {
            let bytes = files::read(path, MAX_CRL)?;
            let objects = object::read(&bytes).map_err(|error| Failure::file(path, &error))?;
            for object in objects {
                if object.kind != Kind::Crl {
                    let wrong = format!("there is a {} in it", object.kind.name());
                    return Err(Failure::file(path, &wrong).hint("--client-crl takes CRLs only"));
                }
                crls.push(object.der.expose().to_vec());
            }
        }
        ClientAuth::new(self.mode, &roots, crls).map_err(|error| {
            let failure = Failure::file(&self.authorities, &error);
            match error {
                ClientAuthError::NoCa => {
                    failure.hint("--client-ca takes the certificates of CAs, not those of clients")
                }
                _ => failure,
            }
        })
    }

    /// The files' stamps: whether to read them again.
    pub(crate) fn stamp(&self) -> Vec<Option<tls::Stamp>> {
        let mut paths = vec![self.authorities.clone()];
        if let Ok(folder) = std::fs::read_dir(&self.authorities) {
            paths.extend(folder.flatten().map(|entry| entry.path()));
            paths.sort();
        }
        paths.extend(self.crls.iter().cloned());
        paths.iter().map(|path| tls::stamp(path)).collect()
    }
}

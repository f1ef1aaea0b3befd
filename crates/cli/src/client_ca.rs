//! Client certificates: the settings, and the files with CAs and CRLs.

use std::path::PathBuf;

use outlast_net::client_auth::{ClientAuth, ClientAuthError, MODES, Mode};
use outlast_pki::object::{self, Kind};

use crate::failure::Failure;
use crate::{files, settings, trust};

/// Largest CRL file that is read, in bytes.
const MAX_CRL: usize = 64 << 20;

/// Files with CAs and CRLs.
#[derive(Debug, Clone)]
pub(crate) struct Clients {
    mode: Mode,
    authorities: PathBuf,
    crls: Vec<PathBuf>,
}

impl Clients {
    /// Checks the settings; `None` if clients are not asked for certificates.
    pub(crate) fn choose(settings: settings::Clients) -> Result<Option<Self>, Failure> {
        let settings::Clients { client_ca: authorities, client_auth: mode, client_crls } = settings;
        let crls = client_crls.unwrap_or_default();
        let Some(authorities) = authorities else {
            if mode.is_some() || !crls.is_empty() {
                let about = if mode.is_some() { "client_auth" } else { "client_crls" };
                return Err(Failure::new("client certificates are configured without a CA")
                    .hint("name the CAs to trust with --client-ca FILE")
                    .about(about));
            }
            return Ok(None);
        };
        let mode = match mode.as_deref() {
            None => Mode::Require,
            Some(name) => {
                let row = MODES.iter().find(|(known, _)| *known == name);
                row.map(|(_, mode)| *mode).ok_or_else(|| {
                    Failure::new(format!("{name} is not a mode of asking for client certificates"))
                        .hint("use require or request")
                        .about("client_auth")
                })?
            }
        };
        Ok(Some(Self { mode, authorities, crls }))
    }

    /// Reads the files.
    pub(crate) fn load(&self) -> Result<ClientAuth, Failure> {
        let roots = trust::load(&self.authorities).map_err(|failure| failure.about("client_ca"))?;
        let mut crls = Vec::new();
        for path in &self.crls {
            let bytes = files::read(path, MAX_CRL)?;
            let objects = object::read(&bytes).map_err(|error| Failure::file(path, &error))?;
            for object in objects {
                if object.kind != Kind::Crl {
                    let wrong = format!("it contains a {}", object.kind.name());
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

    /// The files' stamps, to tell whether they have changed.
    pub(crate) fn stamp(&self) -> Vec<Option<files::Stamp>> {
        let mut paths = vec![self.authorities.clone()];
        if let Ok(folder) = std::fs::read_dir(&self.authorities) {
            paths.extend(folder.flatten().map(|entry| entry.path()));
            paths.sort();
        }
        paths.extend(self.crls.iter().cloned());
        paths.iter().map(|path| files::stamp(path)).collect()
    }
}

//! Certificate authorities, revocation lists and host certificates of SFTP, from files that are read again when they change.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use outlast_net::server::system_clock;
use outlast_net::sftp::{Authorities, ReadAuthorities};
use outlast_ssh::{Certificate, CertificateKind, Krl, MAX_KRL_LEN, PublicKey};

use crate::failure::Failure;
use crate::files::{self, Stamp};

/// Largest file with keys or certificates, in bytes.
const MAX_FILE: usize = 1 << 20;

/// How long a failure is repeated before the files are tried again although they have not changed, in milliseconds.
const RETRY_MS: i64 = 1000;

/// The files.
pub(crate) struct Files {
    pub(crate) trusted: Option<PathBuf>,
    pub(crate) revoked: Option<PathBuf>,
    pub(crate) host_certificates: Vec<PathBuf>,
}

type Stamps = Vec<Option<Stamp>>;

/// The outcome of the last time that the files were read.
struct Kept {
    /// From before they were read, so that no change is missed.
    stamps: Stamps,
    read_ms: i64,
    outcome: Result<Arc<Authorities>, String>,
}

impl Files {
    /// Reads the files now, so that a mistake ends the start of the server, and again when they change; `None` if there are none.
    pub(crate) fn reader(self) -> Result<Option<ReadAuthorities>, Failure> {
        if self.trusted.is_none() && self.revoked.is_none() && self.host_certificates.is_empty() {
            return Ok(None);
        }
        let stamps = self.stamps();
        let first = Arc::new(self.read()?);
        let kept = Mutex::new(Kept { stamps, read_ms: system_clock(), outcome: Ok(first) });
        Ok(Some(Arc::new(move || self.current(&kept))))
    }

    fn current(&self, kept: &Mutex<Kept>) -> Result<Arc<Authorities>, String> {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (stamps, now_ms) = (self.stamps(), system_clock());
        let waits = (0..RETRY_MS).contains(&now_ms.saturating_sub(kept.read_ms));
        if kept.stamps == stamps && (kept.outcome.is_ok() || waits) {
            return kept.outcome.clone();
        }
        let outcome = self.read().map(Arc::new).map_err(|failure| failure.message().to_owned());
        match &outcome {
            Ok(_) => tracing::info!("the files about certificates of SFTP were read again"),
            Err(error) => {
                tracing::error!(
                    error,
                    "public keys of SFTP users are refused until it can be read"
                );
            }
        }
        *kept = Kept { stamps, read_ms: now_ms, outcome: outcome.clone() };
        outcome
    }

    fn stamps(&self) -> Stamps {
        let single = self.trusted.iter().chain(&self.revoked);
        single.chain(&self.host_certificates).map(|path| files::stamp(path)).collect()
    }

    fn read(&self) -> Result<Authorities, Failure> {
        let mut found = Authorities::default();
        if let Some(path) = &self.trusted {
            found.trusted =
                keys(path).map_err(|failure| failure.about("sftp.trusted_user_ca_keys"))?;
        }
        if let Some(path) = &self.revoked {
            let list = files::read(path, MAX_KRL_LEN)
                .and_then(|bytes| Krl::parse(&bytes).map_err(|error| Failure::file(path, &error)));
            found.revoked = list.map_err(|failure| failure.about("sftp.revoked_keys"))?;
        }
        for path in &self.host_certificates {
            let read = host_certificate(path);
            let read = read.map_err(|failure| failure.about("sftp.host_certificates"))?;
            found.host_certificates.push(read);
        }
        Ok(found)
    }
}

/// The lines of a file that are neither empty nor comments, with their numbers.
fn lines(path: &Path) -> Result<Vec<(usize, String)>, Failure> {
    let bytes = files::read(path, MAX_FILE)?;
    let text = std::str::from_utf8(&bytes).map_err(|error| Failure::file(path, &error))?;
    let lines = (1..).zip(text.lines().map(str::trim));
    let kept = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    Ok(kept.map(|(number, line)| (number, line.to_owned())).collect())
}

fn keys(path: &Path) -> Result<Vec<PublicKey>, Failure> {
    let mut keys = Vec::new();
    for (number, line) in lines(path)? {
        keys.push(PublicKey::from_openssh_line(&line).map_err(|error| {
            Failure::file(path, &format!("line {number}: {error}")).hint(
                "each line is a public key; outlast ssh ca-key prints the one of an authority",
            )
        })?);
    }
    if keys.is_empty() {
        return Err(Failure::file(path, &"there is no key in it")
            .hint("outlast ssh ca-key prints the line of an authority"));
    }
    Ok(keys)
}

fn host_certificate(path: &Path) -> Result<Certificate, Failure> {
    let lines = lines(path)?;
    let line = lines.first().map(|(_, line)| line.as_str()).unwrap_or_default();
    let read = Certificate::from_openssh_line(line).map_err(|error| Failure::file(path, &error))?;
    if read.fields().kind != CertificateKind::Host {
        return Err(Failure::file(path, &"the certificate is a user's")
            .hint("issue one with outlast ssh sign --host"));
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_ssh::{KeyKind, PrivateKey};

    fn line() -> String {
        PrivateKey::generate(KeyKind::Ed25519).unwrap().public_key().to_openssh_line()
    }

    #[test]
    fn files_are_read_again_and_a_broken_one_lets_nobody_in() {
        let folder = tempfile::tempdir().unwrap();
        let (trusted, revoked) = (folder.path().join("trusted"), folder.path().join("revoked"));
        std::fs::write(&trusted, format!("# ours\n\n{} comment\n", line())).unwrap();
        std::fs::write(&revoked, "").unwrap();
        let files = Files {
            trusted: Some(trusted.clone()),
            revoked: Some(revoked.clone()),
            host_certificates: Vec::new(),
        };
        let read = files.reader().unwrap().unwrap();
        let first = read().unwrap();
        assert_eq!(first.trusted.len(), 1);
        assert!(Arc::ptr_eq(&first, &read().unwrap()), "nothing has changed");
        std::fs::write(&revoked, line()).unwrap();
        assert_eq!(read().unwrap().revoked.counts().keys, 1);
        std::fs::write(&revoked, "no key").unwrap();
        assert!(read().unwrap_err().contains("revoked"));
        std::fs::remove_file(&revoked).unwrap();
        assert!(read().is_err(), "a list that is gone is not an empty one");
        std::fs::write(&revoked, "").unwrap();
        assert!(read().is_ok());
        std::fs::write(&trusted, "# none\n").unwrap();
        assert!(read().is_err());
    }
}

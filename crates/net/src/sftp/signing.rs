//! Signs uploads with the operator's key, and keeps the signatures in a folder, by the digests of what was signed.
//!
//! A file may be renamed, replaced and removed while it is being signed and afterwards. What it contains has one digest
//! whatever it is called, so that no signature can be found for another content.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use outlast_api::service::Service;
use outlast_api::service::sftp::{Session, Upload};
use outlast_domain::ids;
use outlast_sftp::arrival::Signer;
use outlast_sftp::error::{Error, Result};

use crate::limits;
use crate::server::Clock;

/// The signatures of a listener's uploads.
pub(super) struct Signatures {
    folder: PathBuf,
    is_stopped: AtomicBool,
}

impl Signatures {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, is_stopped: AtomicBool::new(false) }
    }

    /// Signs nothing more; files that are being read are refused.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Keeps a signature, in place of an earlier one of the same content. It is durable then.
    fn keep(&self, digest: &[u8], signature: &[u8]) -> std::io::Result<()> {
        let name = hex::encode(digest);
        let unique = ids::uuid().map_err(std::io::Error::other)?;
        let new = self.folder.join(format!(".{unique}"));
        let kept = write_durably(&new, signature)
            .and_then(|()| fs::rename(&new, self.folder.join(format!("{name}.p7s"))))
            .and_then(|()| File::open(&self.folder)?.sync_all());
        if kept.is_err() {
            let _ = fs::remove_file(&new);
        }
        kept
    }
}

fn write_durably(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Signs the uploads of a session.
pub(super) struct Signing {
    signatures: Arc<Signatures>,
    service: Arc<Service>,
    session: Arc<Session>,
    clock: Clock,
}

impl Signing {
    pub(super) fn new(
        signatures: Arc<Signatures>,
        service: Arc<Service>,
        session: Arc<Session>,
        clock: Clock,
    ) -> Self {
        Self { signatures, service, session, clock }
    }

    fn signed(&self, name: &[u8], content: OwnedFd) -> std::result::Result<(), String> {
        // A key that cannot sign is noticed before the file is read.
        let digest = self.service.sftp_signing_digest(&self.session, (self.clock)())?;
        let begun = Instant::now();
        let (mut hash, mut size) = (digest.start(), 0_u64);
        let mut file = File::from(content);
        let mut buffer = vec![0; limits::SFTP_SIGNING_READ];
        loop {
            // A file may have a size that nobody has sent: holes are read, too.
            if begun.elapsed() > limits::SFTP_SIGNING {
                return Err(format!("it takes longer than {:?} to read", limits::SFTP_SIGNING));
            }
            if self.signatures.is_stopped.load(Ordering::Relaxed) {
                return Err("the server is stopping".to_owned());
            }
            let read = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.to_string()),
            };
            hash.update(buffer.get(..read).unwrap_or_default());
            size += read as u64;
        }
        let value = hash.finish();
        let upload = Upload { name, size, digest, value: &value };
        let signature = self.service.sftp_sign(&self.session, &upload, (self.clock)())?;
        self.signatures.keep(&value, &signature).map_err(|error| {
            format!("the signature cannot be kept in {}: {error}", self.signatures.folder.display())
        })
    }
}

impl Signer for Signing {
    fn sign(&self, name: &[u8], content: OwnedFd) -> Result<()> {
        self.signed(name, content).map_err(|reason| {
            let name = String::from_utf8_lossy(name);
            tracing::error!(user = %self.session.user_arn, %name, reason, "an upload was refused, because it cannot be signed");
            Error::failure("the server cannot sign the file at present, and keeps none that is not signed")
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    #[test]
    fn a_signature_is_found_by_the_digest_and_leaves_nothing_half_written() {
        let folder = tempfile::tempdir().unwrap();
        let signatures = Signatures::new(folder.path().to_path_buf());
        signatures.keep(&[0xab, 1], b"first").unwrap();
        signatures.keep(&[0xab, 1], b"second").unwrap();
        assert_eq!(fs::read(folder.path().join("ab01.p7s")).unwrap(), b"second");
        // A name that cannot be taken.
        fs::create_dir(folder.path().join("cd.p7s")).unwrap();
        assert!(signatures.keep(&[0xcd], b"x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}

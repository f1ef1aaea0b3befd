//! Signs uploads with the operator's key.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use outlast_api::service::Service;
use outlast_api::service::sftp::{Session, Upload};
use outlast_sftp::arrival::{Reception, Signatures, Signer};
use outlast_sftp::error::{Error, Result};
use outlast_sftp::volume::Volume;

use super::home::Buckets;
use crate::limits;
use crate::server::Clock;

/// Signs the uploads of a session.
pub(super) struct Signing {
    service: Arc<Service>,
    session: Arc<Session>,
    clock: Clock,
}

impl Signing {
    pub(super) fn new(service: Arc<Service>, session: Arc<Session>, clock: Clock) -> Self {
        Self { service, session, clock }
    }

    fn signed(&self, name: &[u8], content: OwnedFd) -> std::result::Result<Vec<u8>, String> {
        // A key that cannot sign is noticed before the file is read.
        let digest = self.service.sftp_signing_digest(&self.session, (self.clock)())?;
        let (mut hash, mut size) = (digest.start(), 0_u64);
        let mut file = File::from(content);
        let mut buffer = vec![0; limits::SFTP_SIGNING_READ];
        loop {
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
        self.service.sftp_sign(&self.session, &upload, (self.clock)())
    }
}

impl Signer for Signing {
    fn sign(&self, name: &[u8], content: OwnedFd) -> Result<Vec<u8>> {
        self.signed(name, content).map_err(|reason| {
            let name = String::from_utf8_lossy(name);
            tracing::error!(user = %self.session.user_arn, %name, reason, "an upload was refused, because it cannot be signed");
            Error::failure("the server cannot sign the file at present, and keeps none that is not signed")
        })
    }
}

/// Buckets in which users' uploads are signed, for others who write to them: no signature stays beside a file that is not the
/// one that was signed.
pub struct Keeping(pub Arc<dyn Buckets>);

impl Buckets for Keeping {
    fn open(&self, bucket: &str) -> Result<Arc<dyn Volume>> {
        let kept = Reception { inspector: None, signatures: Signatures::Kept };
        Ok(kept.guard(self.0.open(bucket)?))
    }

    fn make(&self, bucket: &str) -> Result<()> {
        self.0.make(bucket)
    }
}

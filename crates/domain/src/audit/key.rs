//! The keys that sign a log's heads: ML-DSA-44, and Ed25519 for verifiers that know no other.

use outlast_crypto::Secret;
use outlast_tlog::key::{ED25519_LOG, KeyError, ML_DSA_44};
use outlast_tlog::{Checkpoint, SignedCheckpoint, Signer, VerifierKey};
use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::work::Work;

/// Key of the sealed record with the audit log's keys and origin; every store has one from the beginning.
pub const LOG_KEY: &str = "audit/log-key";

/// The keys of a log, and its name.
pub struct LogKey {
    /// The log's name for verifiers (C2SP tlog-checkpoint).
    pub origin: String,
    signers: [Signer; 2],
    stored: Secret,
}

/// Contents of the record: keys in the stored form of `outlast_crypto::keys`, in hexadecimal.
#[derive(Serialize, Deserialize)]
struct Stored {
    origin: String,
    ml_dsa_44: String,
    ed25519: String,
}

impl LogKey {
    /// Generates keys for the log `origin`.
    ///
    /// # Errors
    /// [`Fault::Encoding`] if `origin` cannot be a key's name: 1 to 255 bytes without spaces and plus signs.
    pub fn generate(origin: &str) -> Result<Self, Fault> {
        let key = |algorithm| Signer::generate(algorithm).map_err(fault);
        let (ml_dsa_44, ed25519) = (key(&ML_DSA_44)?, key(&ED25519_LOG)?);
        let stored = Stored {
            origin: origin.to_owned(),
            ml_dsa_44: hex::encode(ml_dsa_44.expose()),
            ed25519: hex::encode(ed25519.expose()),
        };
        let bytes =
            serde_json::to_vec(&stored).map_err(|error| Fault::Encoding(error.to_string()))?;
        Self::parse(Secret::new(bytes))
    }

    /// Reads the audit log's keys of a store.
    ///
    /// # Errors
    /// [`Fault::Audit`] if they do not exist or cannot be unsealed.
    pub fn read(work: &mut Work<'_>) -> Result<Self, Fault> {
        let missing = || Fault::Audit("the key that signs the log is missing".into());
        match work.secret(LOG_KEY) {
            Err(Fault::Damaged(_)) => {
                work.root().check_current(work.store())?;
                Err(Fault::Audit("the log's key was changed".into()))
            }
            other => Self::parse(other?.ok_or_else(missing)?),
        }
    }

    /// Parses the contents of the record.
    pub(crate) fn parse(stored: Secret) -> Result<Self, Fault> {
        let damaged = || Fault::Damaged(LOG_KEY.to_owned());
        let parsed: Stored = serde_json::from_slice(stored.expose()).map_err(|_| damaged())?;
        let key = |text: &str| hex::decode(text).map(Secret::new).map_err(|_| damaged());
        let signers = [
            Signer::new(&parsed.origin, &ML_DSA_44, &key(&parsed.ml_dsa_44)?).map_err(fault)?,
            Signer::new(&parsed.origin, &ED25519_LOG, &key(&parsed.ed25519)?).map_err(fault)?,
        ];
        Ok(Self { origin: parsed.origin, signers, stored })
    }

    pub(super) fn write(&self, work: &mut Work<'_>) -> Result<(), Fault> {
        self.write_to(work, LOG_KEY)
    }

    /// Writes the keys into the sealed record of their log.
    pub(crate) fn write_to(&self, work: &mut Work<'_>, record_key: &str) -> Result<(), Fault> {
        work.put_secret(record_key, &self.stored)
    }

    /// The public keys, ML-DSA-44 first.
    pub fn verifiers(&self) -> [VerifierKey; 2] {
        self.signers.each_ref().map(|signer| signer.verifier().clone())
    }

    /// Signs a head at `now`, seconds since 1970.
    pub(crate) fn sign(&self, head: Checkpoint, now: i64) -> Result<SignedCheckpoint, Fault> {
        let signers = self.signers.each_ref();
        SignedCheckpoint::sign(head, &signers, now.unsigned_abs()).map_err(fault)
    }
}

fn fault(error: KeyError) -> Fault {
    match error {
        KeyError::Crypto(error) => error.into(),
        other => Fault::Encoding(other.to_string()),
    }
}

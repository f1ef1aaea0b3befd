//! The artifact log: a Merkle log of signatures (RFC 6962; C2SP tlog-tiles), apart from the audit trail.
//!
//! An entry ([`entry`]) says which keys have signed which digest, and when that was entered. Each [`append`] signs a new
//! head in the transaction of its entries, so that an answer has a proof that holds. The log has an origin and keys of
//! its own; they are made with the first entry. The record with the head is registered ([`crate::register`]): somebody
//! who can only write to the database can neither set the log back nor begin a new one unseen.
//!
//! Heads are cosigned later, as those of the audit trail are ([`crate::audit::cosigned`]): [`prove`] gives the proof
//! with the cosignatures once there are any.

pub mod append;
pub mod entry;
pub mod prove;
pub mod serve;

use outlast_tlog::{NoteSignature, SignedCheckpoint, VerifierKey};
use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::audit::cosigned;
use crate::audit::{Head, LogKey};
use crate::kms::Key;
use crate::work::Work;

pub use append::append;
pub use entry::LogEntry;

/// Record with the log's state: a [`State`].
pub const HEAD: &str = "artifacts/head";
/// Key of the sealed record with the log's keys and its origin.
pub const KEY: &str = "artifacts/key";
/// Prefix of the records of entries: index in 16 digits.
pub const ENTRIES: &str = "artifacts/entry/";
/// Prefix of the records of tiles: level in 2 digits, index in 16.
pub const TILES: &str = "artifacts/tile/";
/// Record with the last head that has cosignatures.
const COSIGNED: &str = "artifacts/cosigned-head";
/// What is appended to the audit log's origin.
const SUFFIX: &str = "/artifacts";

/// The state of the log.
#[derive(Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) head: Head,
    /// The head as a signed note.
    pub(crate) signed: String,
}

/// An entry as stored.
#[derive(Serialize, Deserialize)]
pub(crate) struct Stored {
    /// The entry's bytes, which are JSON.
    pub(crate) entry: String,
}

/// The log as it is.
pub struct Log {
    /// Its keys and its origin.
    pub key: LogKey,
    /// Its size and the hashes of its tree.
    pub head: Head,
    /// The same, signed.
    pub signed: SignedCheckpoint,
}

pub(crate) fn entry_key(index: u64) -> String {
    format!("{ENTRIES}{index:016}")
}

/// Reads the log; `None` if it has not begun.
///
/// # Errors
/// [`Fault::Forged`] or [`Fault::Damaged`] if somebody has removed or changed one of its records.
pub fn read(work: &mut Work<'_>) -> Result<Option<Log>, Fault> {
    let state = work.get::<State>(HEAD)?;
    let key = work.secret(KEY)?;
    let (state, key) = match (state, key) {
        (Some(state), Some(key)) => (state, LogKey::parse(key)?),
        (None, None) if !work.root().stamps().is_known(HEAD) => return Ok(None),
        (None, _) => return Err(Fault::Forged(HEAD.to_owned())),
        (Some(_), None) => return Err(Fault::Damaged(KEY.to_owned())),
    };
    let damaged = || Fault::Damaged(HEAD.to_owned());
    let signed = SignedCheckpoint::parse(state.signed.as_bytes()).map_err(|_| damaged())?;
    let checkpoint = signed.checkpoint();
    let is_same = checkpoint.origin() == key.origin
        && checkpoint.size() == state.head.size
        && *checkpoint.root() == state.head.root()?;
    if is_same { Ok(Some(Log { key, head: state.head, signed })) } else { Err(damaged()) }
}

/// The origin that a new log gets: that of the audit log, with `/artifacts`.
fn origin(work: &mut Work<'_>) -> Result<String, Fault> {
    Ok(format!("{}{SUFFIX}", LogKey::read(work)?.origin))
}

/// ARN of the log in an account's policies. The log belongs to no account; each account whose principals use it sees
/// it under an ARN of its own.
pub fn arn(work: &mut Work<'_>, account: &str) -> Result<String, Fault> {
    let origin = origin(work)?;
    Ok(format!("arn:aws:outlast::{account}:artifact-log/{origin}"))
}

/// ARN of a key as the resource of what concerns its signatures. The key's own ARN is for KMS's actions.
pub fn signatures_arn(key: &Key) -> String {
    key.scope().arn("outlast", &format!("key/{}", key.id()))
}

impl Log {
    /// The head for proofs: the last cosigned one if it covers `size` entries, else the last one.
    pub fn best_head(&self, work: &mut Work<'_>, size: u64) -> Result<SignedCheckpoint, Fault> {
        let found = cosigned::best_of(work, COSIGNED, &self.key, self.signed.clone(), size)?;
        Ok(found.unwrap_or_else(|_| self.signed.clone()))
    }
}

/// Keeps cosignatures of a head: see [`cosigned::keep`].
pub fn keep(
    work: &mut Work<'_>,
    signed: &SignedCheckpoint,
    signatures: &[NoteSignature],
    witnesses: &[VerifierKey],
) -> Result<usize, Fault> {
    cosigned::keep_in(work, COSIGNED, signed, signatures, witnesses)
}

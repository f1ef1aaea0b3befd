//! A witness of others' logs: its key, the logs that it watches, and what it last cosigned for each.
//!
//! A witness cosigns what the log's key has signed, from any sender; there are no principals here. Its records
//! of logs are sealed under the root key, bound to their record keys, so that somebody who can write to the database
//! cannot insert another head or another log's key. An older copy of the whole database is not detected: keep the
//! witness's disk apart from those of the logs that it watches.

use outlast_crypto::{Secret, digests};
use outlast_store::StoreError;
use outlast_tlog::key::{KeyError, ML_DSA_44};
use outlast_tlog::witness::{AddCheckpoint, Decision, Head, Known, decide};
use outlast_tlog::{NoteSignature, Signer, VerifierKey};
use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::work::Work;

/// Key of the sealed record with the witness's name.
const NAME: &str = "witness/name";
/// Key of the sealed record with the stored form of its key.
const KEY: &str = "witness/key";
/// Prefix of the sealed records of logs, by the hash of the origin.
const LOGS: &str = "witness/log/";
/// Most keys of one log.
const MAX_KEYS: usize = 16;
/// Logs that one read returns.
const PAGE: usize = 256;

/// Why an operation on a witness fails.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    /// An error of the store.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// An invalid key or name.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The store has a witness already.
    #[error("this store already has a witness")]
    Exists,
    /// The store has no witness.
    #[error("this store has no witness")]
    None,
    /// A key of an algorithm that logs do not sign with.
    #[error("logs do not sign with keys for signatures of kind \"{0}\"")]
    NotOfLogs(&'static str),
    /// The log has the most keys that a log may have.
    #[error("a log has at most {MAX_KEYS} keys")]
    TooManyKeys,
}

impl From<StoreError> for WitnessError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

#[derive(Serialize, Deserialize)]
struct LogRecord {
    origin: String,
    keys: Vec<String>,
    size: u64,
    /// Hexadecimal.
    root: String,
    /// When it was last cosigned, in seconds since 1970.
    time: i64,
    /// The checkpoint that was last cosigned, as it was received.
    checkpoint: Option<String>,
}

/// A log that a witness watches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// Its origin.
    pub origin: String,
    /// Its keys and the head that was last cosigned.
    pub known: Known,
    /// When that was, in seconds since 1970; `None` if it never was.
    pub time: Option<i64>,
    /// The checkpoint that was last cosigned, as it was received.
    pub checkpoint: Option<String>,
}

/// Makes the witness's key, an ML-DSA-44 key.
pub fn create(work: &mut Work<'_>, name: &str) -> Result<VerifierKey, WitnessError> {
    if work.exists(KEY)? {
        return Err(WitnessError::Exists);
    }
    let stored = Signer::generate(&ML_DSA_44)?;
    let signer = Signer::new(name, &ML_DSA_44, &stored)?;
    put(work, NAME, &name)?;
    work.put_secret(KEY, &stored)?;
    Ok(signer.verifier().clone())
}

/// The witness's key, to serve with.
pub fn signer(work: &mut Work<'_>) -> Result<Signer, WitnessError> {
    let name: String = get(work, NAME)?.ok_or(WitnessError::None)?;
    let stored = work.secret(KEY)?.ok_or(WitnessError::None)?;
    Ok(Signer::new(&name, &ML_DSA_44, &stored)?)
}

/// Watches the log whose origin is the key's name; another key of a log that is watched may sign for it as well.
/// Returns whether anything is new.
pub fn add_log(work: &mut Work<'_>, key: &VerifierKey) -> Result<bool, WitnessError> {
    if !key.algorithm().of_logs {
        return Err(WitnessError::NotOfLogs(key.algorithm().name));
    }
    let (record_key, vkey) = (record_key(key.name()), key.to_string());
    let mut record = match get::<LogRecord>(work, &record_key)? {
        Some(record) => record,
        None => {
            let Head { size, root } = Head::default();
            LogRecord {
                origin: key.name().to_owned(),
                keys: Vec::new(),
                size,
                root: hex::encode(root),
                time: 0,
                checkpoint: None,
            }
        }
    };
    if record.keys.contains(&vkey) {
        return Ok(false);
    }
    if record.keys.len() >= MAX_KEYS {
        return Err(WitnessError::TooManyKeys);
    }
    record.keys.push(vkey);
    put(work, &record_key, &record)?;
    Ok(true)
}

/// The record of the log with this origin.
pub fn log(work: &mut Work<'_>, origin: &str) -> Result<Option<Watched>, Fault> {
    let record_key = record_key(origin);
    match get::<LogRecord>(work, &record_key)? {
        Some(record) if record.origin == origin => watched(&record_key, record).map(Some),
        Some(_) => Err(Fault::Damaged(record_key)),
        None => Ok(None),
    }
}

/// All watched logs.
pub fn logs(work: &mut Work<'_>) -> Result<Vec<Watched>, Fault> {
    let mut all = Vec::new();
    let mut after = String::new();
    loop {
        let page = work.store().scan(LOGS, &after, PAGE)?;
        let Some((last, _)) = page.last() else { return Ok(all) };
        after.clone_from(last);
        for (record_key, _) in page {
            let record = get::<LogRecord>(work, &record_key)?;
            all.push(watched(
                &record_key,
                record.ok_or_else(|| Fault::Damaged(record_key.clone()))?,
            )?);
        }
    }
}

/// The decision on a request; `None` if it would be cosigned but has extension lines, which ML-DSA-44 does not sign.
/// If it is to be cosigned, its head is written to `work`: once that is committed, and only then, [`cosign`] signs,
/// with the time that this returns. A conflict in the commit means that another request came in between: start over.
pub fn add_checkpoint(
    work: &mut Work<'_>,
    request: &AddCheckpoint,
) -> Result<(Option<Decision>, u64), Fault> {
    let origin = request.checkpoint.checkpoint().origin();
    let watched = log(work, origin)?;
    let decision = decide(request, watched.as_ref().map(|log| &log.known));
    let (Decision::Cosign(head), Some(watched)) = (&decision, watched) else {
        return Ok((Some(decision), 0));
    };
    if !request.checkpoint.checkpoint().extensions().is_empty() {
        return Ok((None, 0));
    }
    // A clock that was set back must not make an older head look newer. Written even if the head is the same: two
    // simultaneous requests must not both believe that theirs is the largest.
    let time = work.now().max(watched.time.unwrap_or(0)).max(1);
    let record = LogRecord {
        origin: watched.origin,
        keys: watched.known.keys.iter().map(ToString::to_string).collect(),
        size: head.size,
        root: hex::encode(head.root),
        time,
        checkpoint: Some(request.checkpoint.to_string()),
    };
    put(work, &record_key(origin), &record)?;
    Ok((Some(decision), time.unsigned_abs()))
}

/// The cosignature of a request that has been recorded.
pub fn cosign(
    signer: &Signer,
    request: &AddCheckpoint,
    time: u64,
) -> Result<NoteSignature, KeyError> {
    signer.sign(request.checkpoint.note().text(), time)
}

fn watched(record_key: &str, record: LogRecord) -> Result<Watched, Fault> {
    let damaged = || Fault::Damaged(record_key.to_owned());
    let mut root = [0; 32];
    hex::decode_to_slice(&record.root, &mut root).map_err(|_| damaged())?;
    let keys: Result<_, _> = record.keys.iter().map(|key| key.parse()).collect();
    let known =
        Known { keys: keys.map_err(|_| damaged())?, head: Head { size: record.size, root } };
    Ok(Watched {
        origin: record.origin,
        known,
        time: Some(record.time).filter(|time| *time != 0),
        checkpoint: record.checkpoint,
    })
}

fn record_key(origin: &str) -> String {
    format!("{LOGS}{}", hex::encode(digests::sha256(origin.as_bytes())))
}

fn put<T: Serialize>(work: &mut Work<'_>, record_key: &str, value: &T) -> Result<(), Fault> {
    let bytes = serde_json::to_vec(value).map_err(|error| Fault::Encoding(error.to_string()))?;
    work.put_secret(record_key, &Secret::new(bytes))
}

fn get<T: for<'de> Deserialize<'de>>(
    work: &mut Work<'_>,
    record_key: &str,
) -> Result<Option<T>, Fault> {
    let Some(secret) = work.secret(record_key)? else { return Ok(None) };
    let value = serde_json::from_slice(secret.expose());
    value.map(Some).map_err(|_| Fault::Damaged(record_key.to_owned()))
}

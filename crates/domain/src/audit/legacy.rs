//! Stores of earlier builds: their events form a hash chain with signatures at some links. The chain is verified
//! once, and its events become the first entries of the log; the next entry describes the chain.

use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::{ML_DSA_65, Message};
use outlast_crypto::{Secret, digests};
use outlast_store::chain;
use outlast_tlog::CompactRange;
use serde::{Deserialize, Serialize};

use super::head::HEAD;
use super::key::LogKey;
use super::log;
use super::tiles::Edge;
use crate::Fault;
use crate::work::Work;

/// Key of the sealed record with the last signature of the chain.
pub(crate) const LAST: &str = "audit/last";
const CURRENT_KEY: &str = "audit/current-key";
/// Prefix of the records of signed links; the keys end with the sequence number in 20 digits.
pub(crate) const CHECKPOINTS: &str = "audit/checkpoint/";
/// Prefix of the records of the public keys that signed them.
pub(crate) const PUBLIC_KEYS: &str = "audit/public-key/";
/// Prefix of the sealed records of the private keys.
pub(crate) const KEYS: &str = "audit/key/";
/// Records that are read in one step.
const PAGE: usize = 1000;

/// A signed statement that event `sequence` has the link `chain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Sequence of the last event that it covers.
    pub sequence: u64,
    /// The event's link: 32 bytes in hexadecimal.
    pub chain: String,
    /// When it was made, milliseconds since 1970.
    pub at_ms: i64,
    /// Id of the key that signed it.
    pub key_id: String,
    /// ML-DSA-65 signature (3309 bytes) in hexadecimal.
    pub signature: String,
}

#[derive(Deserialize)]
struct Last {
    sequence: u64,
}

/// What was verified of an old chain.
#[derive(Debug)]
pub struct Adopted {
    /// Number of its events.
    pub events: u64,
    /// Number of its signed links, all of which are valid.
    pub checkpoints: u64,
    /// The last link, in hexadecimal.
    pub chain: String,
    /// The last signed link, and the DER `SubjectPublicKeyInfo` of its key in hexadecimal.
    pub last: Option<(Checkpoint, String)>,
}

/// Whether a store has an audit trail of an earlier build.
pub fn is_old(work: &mut Work<'_>) -> Result<bool, Fault> {
    Ok(!work.exists(HEAD)? && !work.exists(super::key::LOG_KEY)?)
}

/// Whether any of the old chain was signed. A store without a single signature cannot be told from one whose
/// signatures were removed.
pub fn was_signed(work: &mut Work<'_>) -> Result<bool, Fault> {
    work.exists(LAST)
}

/// Verifies the old chain and makes its events the first entries of a log with this origin. The caller appends an
/// event that describes the chain, in the same commit.
///
/// # Errors
/// [`Fault::Audit`] if the chain differs from what was signed.
pub fn adopt(
    work: &mut Work<'_>,
    origin: &str,
    progress: &mut dyn FnMut(u64),
) -> Result<Adopted, Fault> {
    let last = match work.secret(LAST) {
        Err(Fault::Damaged(_)) => {
            return audit("the record of the last checkpoint was changed".into());
        }
        other => other?,
    };
    let was_signed = last.is_some();
    let reached = last
        .map(|bytes| serde_json::from_slice::<Last>(bytes.expose()))
        .transpose()
        .map_err(|_| Fault::Damaged(LAST.into()))?
        .map_or(0, |last| last.sequence);
    let mut checkpoints = all::<Checkpoint>(work, CHECKPOINTS)?.into_iter().peekable();
    let keys = public_keys(work)?;
    // Both were created with the first checkpoint.
    if !was_signed && (!keys.is_empty() || checkpoints.peek().is_some()) {
        return audit("the record of the last checkpoint is missing".into());
    }
    let mut found =
        Adopted { events: 0, checkpoints: 0, chain: hex::encode(chain::START), last: None };
    let (mut link, mut edge, mut range) = (chain::START, Edge::empty(), CompactRange::default());
    loop {
        let page = work.store().events(found.events, PAGE)?;
        if page.is_empty() {
            break;
        }
        for event in page {
            found.events += 1;
            if event.sequence != found.events {
                return audit(format!("event {} is missing", found.events));
            }
            link = chain::next(&link, event.sequence, &event.body);
            let leaf = outlast_tlog::hash::leaf(&event.body);
            edge.append(&leaf);
            range.append(&leaf).map_err(|error| Fault::Audit(error.to_string()))?;
            while let Some((_, checkpoint)) =
                checkpoints.next_if(|(_, checkpoint)| checkpoint.sequence <= event.sequence)
            {
                let spki = verify(&checkpoint, &link, event.sequence, &keys)?;
                found.checkpoints += 1;
                found.last = Some((checkpoint, spki));
            }
        }
        progress(found.events);
    }
    found.chain = hex::encode(link);
    if checkpoints.next().is_some() || found.events < reached {
        return audit("events that were signed are missing".into());
    }
    if found.last.as_ref().map_or(0, |(checkpoint, _)| checkpoint.sequence) < reached {
        return audit(format!("the checkpoint at event {reached} is missing"));
    }
    let key = LogKey::generate(origin)?;
    key.write(work)?;
    edge.write(work, super::tiles::TILES)?;
    log::sign(work, &key, &range, 0)?;
    forget(work)?;
    Ok(found)
}

/// Removes the old records: their signatures are verified, and the log has their contents.
fn forget(work: &mut Work<'_>) -> Result<(), Fault> {
    for prefix in [CHECKPOINTS, PUBLIC_KEYS, KEYS] {
        let mut after = String::new();
        loop {
            let page = work.store().scan(prefix, &after, PAGE)?;
            let Some((last, _)) = page.last() else { break };
            after.clone_from(last);
            for (record_key, _) in page {
                work.delete(&record_key);
            }
        }
    }
    work.delete(CURRENT_KEY);
    work.delete(LAST);
    Ok(())
}

fn verify(
    checkpoint: &Checkpoint,
    link: &[u8; 32],
    sequence: u64,
    keys: &[(String, String)],
) -> Result<String, Fault> {
    let at = checkpoint.sequence;
    let wrong = |what: &str| Err(Fault::Audit(format!("the checkpoint at event {at} {what}")));
    if at != sequence || checkpoint.chain != hex::encode(link) {
        return wrong("does not fit the events: some were changed");
    }
    let Some((_, spki)) = keys.iter().find(|(id, _)| *id == checkpoint.key_id) else {
        return wrong("is signed with an unknown key");
    };
    let decoded = (hex::decode(spki), hex::decode(&checkpoint.signature));
    let (Ok(public), Ok(signature)) = decoded else { return wrong("cannot be read") };
    if ML_DSA_65.verify(&public, Message::Raw(&statement(checkpoint)), &signature).is_err() {
        return wrong("has no valid signature");
    }
    Ok(spki.clone())
}

/// The signed bytes: a label, then fields of fixed length.
fn statement(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut out = b"outlast audit checkpoint v1\0".to_vec();
    out.extend(checkpoint.sequence.to_be_bytes());
    out.extend(checkpoint.chain.as_bytes());
    out.extend(checkpoint.at_ms.to_be_bytes());
    out
}

/// Ids and public keys, derived from the private keys, which only the root key unseals.
fn public_keys(work: &mut Work<'_>) -> Result<Vec<(String, String)>, Fault> {
    let spec = KeySpec::by_name("ML_DSA_65").ok_or_else(|| Fault::Damaged("ML_DSA_65".into()))?;
    let mut keys = Vec::new();
    for (record_key, _) in work.store().scan(KEYS, "", PAGE)? {
        let seed: Secret =
            work.secret(&record_key)?.ok_or_else(|| Fault::Damaged(record_key.clone()))?;
        let key = spec.load(&seed)?;
        let spki = key.public_key().unwrap_or_default();
        keys.push((hex::encode(&digests::sha256(spki)[..16]), hex::encode(spki)));
    }
    Ok(keys)
}

fn all<T: serde::de::DeserializeOwned>(
    work: &Work<'_>,
    prefix: &str,
) -> Result<Vec<(String, T)>, Fault> {
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = work.scan::<T>(prefix, &after, PAGE)?;
        let Some((last, _)) = page.last() else { return Ok(found) };
        after.clone_from(last);
        found.extend(page);
    }
}

fn audit<T>(what: String) -> Result<T, Fault> {
    Err(Fault::Audit(what))
}

#[cfg(test)]
mod tests;

//! Checkpoints over the audit events: who holds one can tell whether the events before it were changed.
//!
//! The store links the events into a hash chain; a checkpoint signs a link with ML-DSA-65. Nobody without the
//! root key can make one, so changing an event means breaking the chain or the next checkpoint.

use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::{ML_DSA_65, Message};
use outlast_crypto::{Secret, digests};
use outlast_store::{Event, Store, chain};
use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::work::Work;

/// Events between two checkpoints.
pub const INTERVAL: u64 = 1000;
/// How long an event waits for a checkpoint at most, in milliseconds, while a server runs.
pub const MAX_AGE_MS: i64 = 60_000;
/// Checkpoints made in one step at most.
const BATCH: u64 = 64;

pub(crate) const LAST: &str = "audit/last";
const CURRENT_KEY: &str = "audit/current-key";
/// Records of checkpoints; their keys end with the sequence in 20 digits.
pub const CHECKPOINTS: &str = "audit/checkpoint/";
pub(crate) const PUBLIC_KEYS: &str = "audit/public-key/";

/// A signed statement that the event `sequence` has the link `chain`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Sequence of the last event that it covers.
    pub sequence: u64,
    /// The event's link: 32 bytes in hexadecimal.
    pub chain: String,
    /// When it was made, milliseconds since 1970.
    pub at_ms: i64,
    /// Which key signed it.
    pub key_id: String,
    /// ML-DSA-65 signature (3309 bytes) in hexadecimal.
    pub signature: String,
}

/// Where the checkpoints have got to. It is sealed, so that nobody without the root key can take checkpoints back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Last {
    /// Sequence of the last checkpoint.
    pub sequence: u64,
    /// When it was made, milliseconds since 1970.
    pub at_ms: i64,
}

/// A key that signs checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublicKey {
    /// First 16 bytes of the SHA-256 of the key, in hexadecimal.
    pub id: String,
    /// DER `SubjectPublicKeyInfo` in hexadecimal.
    pub spki: String,
}

impl PublicKey {
    /// The key with this `SubjectPublicKeyInfo`.
    pub fn new(spki: &[u8]) -> Self {
        Self { id: hex::encode(&digests::sha256(spki)[..16]), spki: hex::encode(spki) }
    }
}

impl Checkpoint {
    /// Whether `key` made it.
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        let (Ok(spki), Ok(signature)) = (hex::decode(&key.spki), hex::decode(&self.signature))
        else {
            return false;
        };
        PublicKey::new(&spki) == *key
            && self.key_id == key.id
            && ML_DSA_65.verify(&spki, Message::Raw(&statement(self)), &signature).is_ok()
    }
}

/// What is signed: a label, then fields of fixed length.
fn statement(checkpoint: &Checkpoint) -> Vec<u8> {
    let mut out = b"outlast audit checkpoint v1\0".to_vec();
    out.extend(checkpoint.sequence.to_be_bytes());
    out.extend(checkpoint.chain.as_bytes());
    out.extend(checkpoint.at_ms.to_be_bytes());
    out
}

/// What a step of making checkpoints did.
#[derive(Debug, Default)]
pub struct Step {
    /// Checkpoints made.
    pub made: u64,
    /// Whether there is more to do at once.
    pub more: bool,
}

/// Makes the checkpoints that are due: one at every [`INTERVAL`] events, and one at the end if the last is
/// older than [`MAX_AGE_MS`] or `at_end` is set.
pub fn make_checkpoints(
    work: &mut Work<'_>,
    store: &dyn Store,
    at_end: bool,
) -> Result<Step, Fault> {
    let (head, link) = store.last_event()?;
    let last = last(work)?.unwrap_or_default();
    if head <= last.sequence {
        return Ok(Step::default());
    }
    let first = (last.sequence / INTERVAL + 1) * INTERVAL;
    let count = head.checked_sub(first).map_or(0, |rest| rest / INTERVAL + 1);
    let mut made = 0;
    let mut reached = last.sequence;
    for number in 0..count.min(BATCH) {
        let sequence = first + number * INTERVAL;
        let event = store.events(sequence - 1, 1)?.into_iter().next();
        let Some(event) = event.filter(|event| event.sequence == sequence) else {
            return Err(Fault::Damaged(format!("event/{sequence}")));
        };
        sign(work, sequence, event.chain)?;
        (reached, made) = (sequence, made + 1);
    }
    let more = count > BATCH;
    // Also after the clock was set back.
    let is_old = (work.now_ms() - last.at_ms).abs() >= MAX_AGE_MS;
    if !more && reached < head && (at_end || is_old) {
        sign(work, head, link)?;
        (reached, made) = (head, made + 1);
    }
    if made > 0 {
        // The chain is covered by those that follow; only those at the intervals stay.
        if !last.sequence.is_multiple_of(INTERVAL) {
            work.delete(&checkpoint_place(last.sequence));
        }
        let last = Last { sequence: reached, at_ms: work.now_ms() };
        let bytes =
            serde_json::to_vec(&last).map_err(|error| Fault::Encoding(error.to_string()))?;
        work.put_secret(LAST, &Secret::new(bytes))?;
    }
    Ok(Step { made, more })
}

/// Where the checkpoints have got to, if there are any.
pub fn last(work: &mut Work<'_>) -> Result<Option<Last>, Fault> {
    let damaged = |_| Fault::Damaged(LAST.into());
    work.secret(LAST)?
        .map(|bytes| serde_json::from_slice(bytes.expose()).map_err(damaged))
        .transpose()
}

fn sign(work: &mut Work<'_>, sequence: u64, link: [u8; 32]) -> Result<(), Fault> {
    let (id, seed) = signing_key(work)?;
    let mut checkpoint = Checkpoint {
        sequence,
        chain: hex::encode(link),
        at_ms: work.now_ms(),
        key_id: id,
        signature: String::new(),
    };
    let key = spec()?.load(&seed)?;
    let signature = key.sign(&ML_DSA_65, Message::Raw(&statement(&checkpoint)))?;
    checkpoint.signature = hex::encode(signature);
    work.put(&checkpoint_place(sequence), &checkpoint)
}

fn checkpoint_place(sequence: u64) -> String {
    format!("{CHECKPOINTS}{sequence:020}")
}

fn spec() -> Result<&'static KeySpec, Fault> {
    KeySpec::by_name("ML_DSA_65").ok_or_else(|| Fault::Damaged("ML_DSA_65".into()))
}

/// The key that signs; made when there is none.
fn signing_key(work: &mut Work<'_>) -> Result<(String, Secret), Fault> {
    if let Some(id) = work.get::<String>(CURRENT_KEY)? {
        let place = key_place(&id);
        let seed = work.secret(&place)?.ok_or(Fault::Damaged(place))?;
        return Ok((id, seed));
    }
    let seed = spec()?.generate()?;
    let public = public_of(&seed)?;
    work.put(CURRENT_KEY, &public.id)?;
    work.put(&format!("{PUBLIC_KEYS}{}", public.id), &public)?;
    work.put_secret(&key_place(&public.id), &seed)?;
    Ok((public.id, seed))
}

/// The public half of a key that signs.
pub(crate) fn public_of(seed: &Secret) -> Result<PublicKey, Fault> {
    let key = spec()?.load(seed)?;
    Ok(PublicKey::new(key.public_key().unwrap_or_default()))
}

fn key_place(id: &str) -> String {
    format!("audit/key/{id}")
}

/// The keys that have signed checkpoints, each compared with its private half, which only the root key opens.
pub fn public_keys(work: &mut Work<'_>) -> Result<Vec<PublicKey>, Fault> {
    let found = work.scan::<PublicKey>(PUBLIC_KEYS, "", 1000)?;
    for (place, key) in &found {
        let seed = work.secret(&key_place(&key.id))?;
        let own = seed.as_ref().map(public_of).transpose()?;
        if own.as_ref() != Some(key) {
            return Err(Fault::Damaged(place.clone()));
        }
    }
    Ok(found.into_iter().map(|(_, key)| key).collect())
}

/// Checks events and checkpoints as they come, in order of sequence.
#[derive(Debug)]
pub struct Verifier {
    keys: Vec<PublicKey>,
    link: [u8; 32],
    /// Sequence of the last event.
    pub sequence: u64,
    /// Checkpoints that fit.
    pub checkpoints: u64,
    /// Last event that a checkpoint covers.
    pub covered: u64,
}

impl Verifier {
    /// Believes checkpoints of these keys; begins before the first event.
    pub fn new(keys: Vec<PublicKey>) -> Self {
        Self { keys, link: chain::START, sequence: 0, checkpoints: 0, covered: 0 }
    }

    /// Begins after an event, whose link is believed: for part of the events.
    pub fn after(keys: Vec<PublicKey>, sequence: u64, link: [u8; 32]) -> Self {
        Self { link, sequence, ..Self::new(keys) }
    }

    /// The link of the last event, in hexadecimal.
    pub fn head(&self) -> String {
        hex::encode(self.link)
    }

    /// The next event; says what is wrong with it.
    pub fn event(&mut self, event: &Event) -> Result<(), String> {
        let (before, expected) = (self.sequence, self.sequence + 1);
        let link = chain::next(&self.link, event.sequence, &event.body);
        // From what is written, so that one break is one problem.
        (self.sequence, self.link) = (event.sequence, event.chain);
        if event.sequence > expected {
            return Err(format!(
                "event {} follows event {before}: those between are missing",
                event.sequence
            ));
        }
        if event.sequence < expected {
            return Err(format!("event {} comes after event {before}", event.sequence));
        }
        if link != event.chain {
            return Err(format!(
                "event {expected} does not continue the chain: it, or one before it, was changed"
            ));
        }
        Ok(())
    }

    /// A checkpoint over the last event; says what is wrong with it.
    pub fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), String> {
        let at = checkpoint.sequence;
        if at != self.sequence {
            return Err(format!("the checkpoint at event {at} covers events that are not there"));
        }
        let Some(key) = self.keys.iter().find(|key| key.id == checkpoint.key_id) else {
            return Err(format!("the checkpoint at event {at} is signed with an unknown key"));
        };
        if !checkpoint.is_signed_by(key) {
            return Err(format!("the checkpoint at event {at} has no valid signature"));
        }
        if checkpoint.chain != self.head() {
            return Err(format!("the events up to {at} are not those that were signed"));
        }
        self.checkpoints += 1;
        self.covered = at;
        Ok(())
    }

    /// The end of a store's events, whose checkpoints had got to `last` before they were read; says what is wrong.
    pub fn end(&self, last: Option<Last>) -> Result<(), String> {
        let reached = last.unwrap_or_default().sequence;
        if reached > self.sequence {
            return Err(format!("the events up to {reached} were signed, and are missing"));
        }
        if reached > self.covered {
            return Err(format!("the checkpoint at event {reached} is missing or not valid"));
        }
        if last.is_none() && self.checkpoints > 0 {
            return Err("the record of the last checkpoint is missing".into());
        }
        Ok(())
    }
}

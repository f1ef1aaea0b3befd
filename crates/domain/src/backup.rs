//! Backups: a whole store as of one point in time, in one encrypted stream.
//!
//! Layout: [`MAGIC`], the length of the header (4 bytes, big-endian), the header (JSON), then chunks ([`stream`])
//! that are encrypted under a key of this backup alone. The header says how that key is wrapped, and every chunk is
//! bound to it. The chunks hold a list of entries ([`entry`]): the records, the events, and at the end how many of
//! each.
//!
//! Opens no file: the caller provides readers, writers and key-encryption keys.

mod entry;
mod stream;

use std::io::{Read, Write};

use outlast_crypto::{Secret, aead, random};
use outlast_store::{Event, Item, Store, StoreError, chain};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Fault;
use crate::seal::{self, Kek, RootKey};
use entry::Entry;

/// The first bytes of a backup.
pub const MAGIC: &[u8] = b"outlast-backup\n";
/// The version of the layout that this build writes. It also reads version 1, whose events have links of a hash chain
/// instead of leaf hashes.
pub const VERSION: u32 = 2;
const MAX_HEADER: u32 = 64 * 1024;
/// Context that the wrapped key of a backup is bound to.
const KEY_PLACE: &str = "backup/key";

/// The header of a backup, which is readable without its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the layout.
    pub version: u32,
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Program that made it.
    pub created_by: String,
    /// Whether the store's root keys are in it; if not, restoring it takes their key-encryption key.
    pub has_root_keys: bool,
    /// The wrapped key of the backup.
    pub key: WrappedKey,
}

/// The key of a backup, wrapped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrappedKey {
    /// Whether the store's own key-encryption key wraps it, and not one of the backup's.
    pub by_store: bool,
    /// [`Kek::provider`]
    pub provider: String,
    /// What the provider needs to find or derive its key again.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    wrapped: String,
}

/// Numbers of items in a backup.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Records.
    pub records: u64,
    /// Audit events.
    pub events: u64,
    /// Root keys.
    pub root_keys: u64,
}

/// Why a backup was not made, or not restored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The file is no backup.
    #[error("this is not a backup of an outlast store")]
    Foreign,
    /// Made by a newer version of Outlast.
    #[error(
        "the backup has version {0}, and this version of outlast reads versions up to {VERSION}"
    )]
    TooNew(u32),
    /// The key does not open the backup.
    #[error("the key does not open this backup")]
    WrongKey,
    /// It was changed, cut off or put together from several.
    #[error("the backup is damaged: {0}")]
    Damaged(String),
    /// Reading or writing the stream failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// An error of the store, or of a root key.
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl From<StoreError> for BackupError {
    fn from(error: StoreError) -> Self {
        Self::Fault(error.into())
    }
}

impl From<outlast_crypto::CryptoError> for BackupError {
    fn from(error: outlast_crypto::CryptoError) -> Self {
        Self::Fault(error.into())
    }
}

/// Properties of a new backup.
pub struct NewBackup<'a> {
    /// Milliseconds since 1970.
    pub created_ms: i64,
    /// Program that makes it.
    pub created_by: String,
    /// Wraps the key of the backup.
    pub kek: &'a dyn Kek,
    /// What the provider of `kek` needs to find or derive it again.
    pub parameters: Map<String, Value>,
    /// Whether `kek` is the one that wraps the store's root keys.
    pub by_store: bool,
    /// Whether to include the root keys, so that the backup's key alone opens everything.
    pub include_root_keys: bool,
}

/// Writes a backup of `store`, whose root keys are `root`; reports to `progress` from time to time.
pub fn write(
    store: &dyn Store,
    root: &RootKey,
    new: NewBackup<'_>,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(Counts),
) -> Result<Counts, BackupError> {
    let key = random::secret(aead::KEY_LEN)?;
    let header = Header {
        version: VERSION,
        created_ms: new.created_ms,
        created_by: new.created_by,
        has_root_keys: new.include_root_keys,
        key: WrappedKey {
            by_store: new.by_store,
            provider: new.kek.provider().to_owned(),
            parameters: new.parameters,
            wrapped: hex::encode(new.kek.wrap(KEY_PLACE, &key)?),
        },
    };
    let head = encode_header(&header)?;
    out.write_all(&head)?;
    let mut chunks = stream::Writer::new(out, key, &head);
    let mut counts = Counts::default();
    let mut seen_root = false;
    // The store's trait has its own error type: ours is kept here.
    let mut failure = None;
    let taken = store.snapshot(&mut |item| {
        let mut wanted = None;
        match &item {
            Item::Record(key, record) => {
                counts.records += 1;
                seen_root |= key == seal::ROOT;
                if new.include_root_keys && key.starts_with(seal::WRAPPED) {
                    wanted = Some((key.clone(), record.value.clone()));
                }
            }
            Item::Event(_) => counts.events += 1,
        }
        if (counts.records + counts.events).is_multiple_of(1024) {
            progress(counts);
        }
        let put = || -> Result<(), BackupError> {
            chunks.put(&Entry::Item(item).encode())?;
            if let Some((place, wrapped)) = wanted {
                let key = root.kek().unwrap(&place, &wrapped)?;
                counts.root_keys += 1;
                chunks.put(&Entry::RootKey(place, key).encode())?;
            }
            Ok(())
        };
        put().map_err(|error| stop(&mut failure, error))
    });
    if let Some(failure) = failure {
        return Err(failure);
    }
    taken?;
    if let (true, false, Some(direct)) = (new.include_root_keys, seen_root, root.kek().direct()) {
        counts.root_keys += 1;
        let direct = Secret::new(direct.expose().to_vec());
        chunks.put(&Entry::RootKey(String::new(), direct).encode())?;
    }
    chunks.put(&Entry::End(counts).encode())?;
    chunks.finish()?;
    Ok(counts)
}

/// Reads the header of a backup.
pub fn header(input: &mut dyn Read) -> Result<(Header, Vec<u8>), BackupError> {
    let mut head = vec![0; MAGIC.len() + 4];
    input.read_exact(&mut head).map_err(|_| BackupError::Foreign)?;
    let (magic, length) = head.split_at(MAGIC.len());
    if magic != MAGIC {
        return Err(BackupError::Foreign);
    }
    let length = length.iter().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    let damaged = || BackupError::Damaged("its header cannot be read".into());
    if length > MAX_HEADER {
        return Err(damaged());
    }
    let mut json = vec![0; length as usize];
    input.read_exact(&mut json).map_err(|_| damaged())?;
    let value: Value = serde_json::from_slice(&json).map_err(|_| damaged())?;
    let version = value.get("version").and_then(Value::as_u64).ok_or_else(damaged)?;
    if version > u64::from(VERSION) {
        return Err(BackupError::TooNew(u32::try_from(version).unwrap_or(u32::MAX)));
    }
    let header = serde_json::from_value(value).map_err(|_| damaged())?;
    head.extend_from_slice(&json);
    Ok((header, head))
}

/// The contents of a backup that are not in the store now.
#[derive(Default)]
pub struct Restored {
    /// Numbers of items.
    pub counts: Counts,
    /// The root keys with their record keys; the record key is empty for a key that was in the root key file.
    pub root_keys: Vec<(String, Secret)>,
}

/// Fills the empty `store` with what follows the header in `input`; `head` is the result of [`header`]. Writes
/// nothing unless everything is valid: every chunk, the counts, and the chain of the events.
pub fn restore(
    header: &Header,
    head: &[u8],
    kek: &dyn Kek,
    input: &mut dyn Read,
    store: &dyn Store,
    progress: &mut dyn FnMut(Counts),
) -> Result<Restored, BackupError> {
    let mut reading = Reading::begin(header, head, kek, input)?;
    let mut failure = None;
    let mut items = std::iter::from_fn(|| {
        let next = reading.next();
        let counts = reading.restored.counts;
        if (counts.records + counts.events).is_multiple_of(1024) {
            progress(counts);
        }
        next.map_err(|error| stop(&mut failure, error)).transpose()
    });
    let filled = store.restore(&mut items);
    if let Some(failure) = failure {
        return Err(failure);
    }
    filled?;
    Ok(reading.restored)
}

/// Reads a backup to its end as [`restore`] does, and keeps nothing: checks every chunk, the counts and the chain of
/// the events.
pub fn read_through(
    header: &Header,
    head: &[u8],
    kek: &dyn Kek,
    input: &mut dyn Read,
) -> Result<Counts, BackupError> {
    let mut reading = Reading::begin(header, head, kek, input)?;
    while reading.next()?.is_some() {}
    Ok(reading.restored.counts)
}

struct Reading<'a> {
    chunks: stream::Reader<'a>,
    last_key: Option<String>,
    /// The last link of the chain, in version 1.
    link: Option<[u8; 32]>,
    /// The last sequence.
    last_event: Option<u64>,
    restored: Restored,
}

impl<'a> Reading<'a> {
    fn begin(
        header: &Header,
        head: &[u8],
        kek: &dyn Kek,
        input: &'a mut dyn Read,
    ) -> Result<Self, BackupError> {
        let wrapped = hex::decode(&header.key.wrapped)
            .map_err(|_| BackupError::Damaged("its header cannot be read".into()))?;
        let key = match kek.unwrap(KEY_PLACE, &wrapped) {
            Ok(key) => key,
            Err(Fault::Damaged(_)) => return Err(BackupError::WrongKey),
            Err(fault) => return Err(fault.into()),
        };
        Ok(Self {
            chunks: stream::Reader::new(input, key, head)?,
            last_key: None,
            link: (header.version < 2).then_some(chain::START),
            last_event: None,
            restored: Restored::default(),
        })
    }
}

impl Reading<'_> {
    /// The next item; `None` after a valid end.
    fn next(&mut self) -> Result<Option<Item>, BackupError> {
        let damaged = |what: &str| Err(BackupError::Damaged(what.to_owned()));
        loop {
            match Entry::read(&mut self.chunks)? {
                Entry::Item(Item::Record(key, record)) => {
                    if self.last_key.as_ref().is_some_and(|last| *last >= key) {
                        return damaged("its records are out of order");
                    }
                    self.last_key = Some(key.clone());
                    self.restored.counts.records += 1;
                    return Ok(Some(Item::Record(key, record)));
                }
                Entry::Item(Item::Event(event)) => {
                    self.restored.counts.events += 1;
                    return Ok(Some(Item::Event(self.event(event)?)));
                }
                Entry::RootKey(place, key) => {
                    self.restored.counts.root_keys += 1;
                    self.restored.root_keys.push((place, key));
                }
                Entry::End(counts) if counts != self.restored.counts => {
                    return damaged("its counts do not match its contents");
                }
                Entry::End(_) if !self.chunks.is_at_end() => {
                    return damaged("there is data after its end");
                }
                Entry::End(_) => return Ok(None),
            }
        }
    }
}

impl Reading<'_> {
    /// Checks an event. The first may have any number, because earlier events may have been pruned.
    fn event(&mut self, event: Event) -> Result<Event, BackupError> {
        let follows = match (self.link, self.last_event) {
            (Some(_), None) => event.sequence == 1,
            (None, None) => event.sequence > 0,
            (_, Some(last)) => event.sequence == last + 1,
        };
        let leaf = outlast_tlog::hash::leaf(&event.body);
        let expected = match &mut self.link {
            None => leaf,
            Some(link) => {
                *link = chain::next(link, event.sequence, &event.body);
                *link
            }
        };
        if !follows || event.leaf != expected {
            let text = format!("the audit trail is broken at event {}", event.sequence);
            return Err(BackupError::Damaged(text));
        }
        self.last_event = Some(event.sequence);
        Ok(Event { leaf, ..event })
    }
}

/// Keeps our error and returns one of the store's that ends the iteration.
fn stop(place: &mut Option<BackupError>, error: BackupError) -> StoreError {
    *place = Some(error);
    StoreError::Unavailable("the copy was interrupted".into())
}

fn encode_header(header: &Header) -> Result<Vec<u8>, BackupError> {
    let json = serde_json::to_vec(header).map_err(|error| Fault::Encoding(error.to_string()))?;
    let length = u32::try_from(json.len())
        .ok()
        .filter(|length| *length <= MAX_HEADER)
        .ok_or_else(|| Fault::Encoding("the header is too long".into()))?;
    Ok([MAGIC, &length.to_be_bytes(), &json].concat())
}

#[cfg(test)]
mod tests;

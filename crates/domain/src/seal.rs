//! Root keys, under which every secret in the store is sealed, and how a sealed record names its key.
//!
//! Layout of a sealed record: `2 ‖ id of the root key (8) ‖ sealed`, where `sealed` is [`outlast_crypto::aead`]'s
//! layout with the record's key as associated data, so that it cannot be opened as another record. Records that begin
//! with 1 have the first layout: sealed directly under the key in the root key file, which has no id. They can be
//! opened until a rotation replaces them.
//!
//! Records without secrets are authenticated under the same root keys: see [`authentic`].
//!
//! Root keys are in the store themselves, wrapped by a key-encryption key ([`Kek`]) outside of it. The command line
//! decides where that comes from: a file, a passphrase, a token.

mod authentic;
mod establish;
mod kek;
pub(crate) mod layout;
pub mod migration;
pub mod rotation;
mod stamps;

use std::sync::{Arc, PoisonError, RwLock};

use outlast_crypto::{CryptoError, Secret, aead, digests, hmac, random};
use outlast_store::{Record, Store};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use kek::{Kek, SoftwareKek};
pub use layout::json;
pub use stamps::{Stamps, Written};

use crate::Fault;
use crate::records::{Protection, protection};
use layout::{DIRECT, ID_LEN, Id, NAMED};

/// Key of the record that names the current root key: a [`RootRecord`].
pub const ROOT: &str = "meta/root";
/// Prefix of the records with the wrapped root keys.
pub const WRAPPED: &str = "meta/root-key/";

/// Key of a record sealed with the root key: it opens only under the right one, and says how records are protected.
pub const CANARY: &str = "meta/canary";

/// The root keys of a store, as in the record [`ROOT`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootRecord {
    /// Id of the root key in use, in hexadecimal.
    pub current: String,
    /// Id of the previous one, while a rotation is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// [`Kek::provider`] of the key that wraps them.
    pub provider: String,
    /// What the provider needs to find or derive its key again.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
    /// When the current root key was made, milliseconds since 1970.
    pub created_ms: i64,
}

/// The root keys of a store: the key-encryption key, and the root keys that have been unwrapped so far.
pub struct RootKey {
    kek: Box<dyn Kek>,
    unwrapped: RwLock<Vec<Unwrapped>>,
    stamps: Arc<Stamps>,
}

/// A root key in memory.
struct Unwrapped {
    id: Id,
    key: Arc<Secret>,
    /// The key derived from it for the records' tags.
    tagging: Arc<hmac::Key>,
}

/// Label for deriving the key for tags from the root key.
const KEY_LABEL: &[u8] = b"outlast authenticated records v1";

/// Derives the key for tags.
fn derive(root: &Secret) -> hmac::Key {
    let key = Secret::new(hmac::sha256(root.expose(), KEY_LABEL).to_vec());
    hmac::Key::new(key.expose())
}

/// The key that a record is sealed or authenticated under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SealedUnder {
    /// The key in the root key file.
    Direct,
    /// The root key with this id, in hexadecimal.
    Id(String),
}

/// The root key that a record is sealed or authenticated under, if it is either.
pub fn protected_under(key: &str, value: &[u8]) -> Option<SealedUnder> {
    if protection(key) == Protection::Plain {
        return None;
    }
    let authentic = || layout::authentic_under(value).map(|id| SealedUnder::Id(hex::encode(id)));
    sealed_under(key, value).or_else(authentic)
}

/// The key that a record is sealed under; `None` if it is not sealed.
pub fn sealed_under(key: &str, value: &[u8]) -> Option<SealedUnder> {
    // Wrapped keys and CRLs may begin with any byte.
    if protection(key) == Protection::Plain {
        return None;
    }
    match value.split_first()? {
        (&DIRECT, _) => Some(SealedUnder::Direct),
        (&NAMED, rest) => Some(SealedUnder::Id(hex::encode(rest.get(..ID_LEN).unwrap_or(rest)))),
        _ => None,
    }
}

impl RootKey {
    /// A new random key-encryption key in memory, without root keys yet.
    pub fn generate() -> Result<Self, CryptoError> {
        Ok(Self::new(Box::new(SoftwareKek::generate()?)))
    }

    /// The root keys that `kek` unwraps.
    pub fn new(kek: Box<dyn Kek>) -> Self {
        Self { kek, unwrapped: RwLock::default(), stamps: Arc::default() }
    }

    /// The newest stamps of records that this process has seen under these keys.
    pub fn stamps(&self) -> &Arc<Stamps> {
        &self.stamps
    }

    /// The key-encryption key.
    pub fn kek(&self) -> &dyn Kek {
        self.kek.as_ref()
    }

    /// Checks that a record below [`WRAPPED`] holds the root key with this id.
    pub fn check_wrapped(&self, id: &str, wrapped: &[u8]) -> Result<(), Fault> {
        let record_key = wrapped_record_key(id);
        let key = self.kek.unwrap(&record_key, wrapped)?;
        if hex::encode(fingerprint(&key)) == id { Ok(()) } else { Err(Fault::Damaged(record_key)) }
    }

    /// Checks that the current root key can be unwrapped: it, and what wraps it, may have been replaced since this
    /// process started.
    ///
    /// # Errors
    /// [`Fault::Damaged`] if it cannot be unwrapped, and those of the store and the provider.
    pub fn check_current(&self, store: &dyn Store) -> Result<(), Fault> {
        match read_fresh(store)? {
            Some(record) => self.key(store, parse_id(&record.current)?).map(drop),
            None => Ok(()),
        }
    }

    /// Opens the sealed record with this key.
    pub fn open(&self, store: &dyn Store, key: &str, sealed: &[u8]) -> Result<Secret, Fault> {
        let damaged = |_| Fault::Damaged(key.to_owned());
        match sealed {
            [DIRECT, ..] => {
                let opened = self
                    .kek
                    .direct()
                    .map(|direct| aead::open(direct.expose(), key.as_bytes(), sealed));
                if let Some(Ok(secret)) = opened {
                    return Ok(secret);
                }
                // During a first rotation that key is in the store as the previous one.
                let previous = read_record(store)?
                    .and_then(|record| record.previous)
                    .ok_or_else(|| Fault::Damaged(key.to_owned()))?;
                let previous = self.key(store, parse_id(&previous)?)?;
                aead::open(previous.expose(), key.as_bytes(), sealed).map_err(damaged)
            }
            [NAMED, rest @ ..] => {
                let (id, body) = rest
                    .split_first_chunk::<ID_LEN>()
                    .ok_or_else(|| Fault::Damaged(key.to_owned()))?;
                let root = self.key(store, *id)?;
                aead::open(root.expose(), key.as_bytes(), body).map_err(damaged)
            }
            _ => Err(Fault::Damaged(key.to_owned())),
        }
    }

    /// Seals `secret` for the record `key` under the root key that `record` names as current.
    pub(crate) fn seal(
        &self,
        store: &dyn Store,
        record: Option<&RootRecord>,
        key: &str,
        secret: &Secret,
    ) -> Result<Vec<u8>, Fault> {
        let Some(record) = record else {
            let direct = self.kek.direct().ok_or_else(|| Fault::Damaged(ROOT.to_owned()))?;
            return Ok(aead::seal(direct.expose(), key.as_bytes(), secret.expose())?);
        };
        self.forget_others(record);
        let id = parse_id(&record.current)?;
        let body = aead::seal(self.key(store, id)?.expose(), key.as_bytes(), secret.expose())?;
        let mut out = Vec::with_capacity(1 + ID_LEN + body.len());
        out.push(NAMED);
        out.extend_from_slice(&id);
        out.extend_from_slice(&body);
        Ok(out)
    }

    /// The root key with this id: unwrapped already, or from the store.
    fn key(&self, store: &dyn Store, id: Id) -> Result<Arc<Secret>, Fault> {
        if let Some(key) = self.known(id, |known| known.key.clone()) {
            return Ok(key);
        }
        let record_key = wrapped_record_key(&hex::encode(id));
        let wrapped = store.read(&record_key)?.ok_or_else(|| Fault::Damaged(record_key.clone()))?;
        let key = self.kek.unwrap(&record_key, &wrapped.value)?;
        if fingerprint(&key) != id {
            return Err(Fault::Damaged(record_key));
        }
        Ok(self.remember(id, key))
    }

    /// The key for tags under the root key with this id: derived already, or from the store.
    fn tagging(&self, store: &dyn Store, id: Id) -> Result<Arc<hmac::Key>, Fault> {
        let direct = self.kek.direct().filter(|direct| fingerprint(direct) == id);
        let root = match direct {
            Some(direct) => self.remember(id, Secret::new(direct.expose().to_vec())),
            None => self.key(store, id)?,
        };
        Ok(self.known_tagging(id).unwrap_or_else(|| Arc::new(derive(&root))))
    }

    fn known_tagging(&self, id: Id) -> Option<Arc<hmac::Key>> {
        self.known(id, |known| known.tagging.clone())
    }

    fn known<T>(&self, id: Id, part: impl Fn(&Unwrapped) -> T) -> Option<T> {
        let unwrapped = self.unwrapped.read().unwrap_or_else(PoisonError::into_inner);
        unwrapped.iter().find(|known| known.id == id).map(part)
    }

    fn remember(&self, id: Id, key: Secret) -> Arc<Secret> {
        let tagging = Arc::new(derive(&key));
        let key = Arc::new(key);
        let mut unwrapped = self.unwrapped.write().unwrap_or_else(PoisonError::into_inner);
        unwrapped.retain(|known| known.id != id);
        unwrapped.push(Unwrapped { id, key: key.clone(), tagging });
        key
    }

    /// Drops the keys that a rotation has replaced.
    pub(crate) fn forget_others(&self, record: &RootRecord) {
        let wanted = |id: &Id| {
            let id = hex::encode(id);
            id == record.current || Some(&id) == record.previous.as_ref()
        };
        let all_wanted = {
            let unwrapped = self.unwrapped.read().unwrap_or_else(PoisonError::into_inner);
            unwrapped.iter().all(|known| wanted(&known.id))
        };
        if !all_wanted {
            let mut unwrapped = self.unwrapped.write().unwrap_or_else(PoisonError::into_inner);
            unwrapped.retain(|known| wanted(&known.id));
        }
    }
}

/// The record [`ROOT`], outside of any work and not verified: the caller has no root key yet. A store of the first
/// layout has none.
pub fn read_record(store: &dyn Store) -> Result<Option<RootRecord>, Fault> {
    decode_root(store.read(ROOT)?)
}

/// The same, read past any cache.
fn read_fresh(store: &dyn Store) -> Result<Option<RootRecord>, Fault> {
    decode_root(store.read_fresh(ROOT)?)
}

fn decode_root(record: Option<Record>) -> Result<Option<RootRecord>, Fault> {
    let Some(record) = record else { return Ok(None) };
    serde_json::from_slice(json(&record.value))
        .map(Some)
        .map_err(|_| Fault::Damaged(ROOT.to_owned()))
}

/// Record key of a wrapped root key.
fn wrapped_record_key(id: &str) -> String {
    format!("{WRAPPED}{id}")
}

fn new_key() -> Result<(Id, Secret), Fault> {
    let key = random::secret(aead::KEY_LEN)?;
    Ok((fingerprint(&key), key))
}

fn parse_id(text: &str) -> Result<Id, Fault> {
    let mut id = [0; ID_LEN];
    hex::decode_to_slice(text, &mut id).map_err(|_| Fault::Damaged(ROOT.to_owned()))?;
    Ok(id)
}

/// A name for a key that reveals nothing of it.
fn fingerprint(key: &Secret) -> Id {
    let tagged = Secret::new([b"outlast root key fingerprint".as_slice(), key.expose()].concat());
    let digest = digests::sha256(tagged.expose());
    let mut id = [0; ID_LEN];
    id.copy_from_slice(&digest[..ID_LEN]);
    id
}

#[cfg(test)]
mod tests;

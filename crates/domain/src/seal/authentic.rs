//! Records that are no secrets, and that nobody but the service may write: authenticated under the root key.
//!
//! Layout: `3 ‖ id of the root key (8) ‖ stamp (8, big-endian) ‖ tag (32) ‖ JSON`. The tag is HMAC-SHA-256 under a key
//! derived from the root key, over the record's key, its stamp and its JSON: a record that was changed or moved, or comes
//! from another store, does not verify. The stamp grows with each write of a record, so that an older one is recognised
//! by whoever has seen a newer one ([`super::stamps`]).
//!
//! All records are authenticated but for those that are sealed and those whose row in [`crate::records`] says why not.

use outlast_crypto::{Secret, hmac};
use outlast_store::Store;

use super::{ID_LEN, Id, RootKey, RootRecord, fingerprint, parse_id, read_fresh};
use crate::Fault;
use crate::records::{self, Protection};

/// First byte of an authenticated record. JSON begins with none of the first bytes that this module and its parent use.
pub(super) const AUTHENTIC: u8 = 3;
const STAMP_LEN: usize = 8;
const TAG_LEN: usize = 32;
const STAMP_AT: usize = 1 + ID_LEN;
const TAG_AT: usize = STAMP_AT + STAMP_LEN;
const JSON_AT: usize = TAG_AT + TAG_LEN;
/// What the key for the tags is derived from the root key with.
const KEY_LABEL: &[u8] = b"outlast authenticated records v1";

/// How the record `place` is protected unless it is sealed. One of no known kind is authenticated.
pub(crate) fn protection(place: &str) -> Protection {
    match records::kind(place).map(|kind| kind.protection) {
        None | Some(Protection::Sealed) => Protection::Ordered,
        Some(protection) => protection,
    }
}

/// An authenticated record in its parts; whether the tag is right is another question.
struct Parts<'a> {
    id: Id,
    stamp: [u8; STAMP_LEN],
    tag: &'a [u8],
    json: &'a [u8],
}

fn parts(value: &[u8]) -> Option<Parts<'_>> {
    let (&AUTHENTIC, rest) = value.split_first()? else { return None };
    let (id, rest) = rest.split_first_chunk()?;
    let (stamp, rest) = rest.split_first_chunk()?;
    let (tag, json) = rest.split_at_checked(TAG_LEN)?;
    Some(Parts { id: *id, stamp: *stamp, tag, json })
}

/// The stamp that a record claims, if it has one.
pub(crate) fn stamp(value: &[u8]) -> Option<u64> {
    parts(value).map(|parts| u64::from_be_bytes(parts.stamp))
}

/// The JSON of a record, authenticated or not, without a look at its tag: for those who have no root key, and for
/// records that were verified before.
pub fn json(value: &[u8]) -> &[u8] {
    parts(value).map_or(value, |parts| parts.json)
}

/// The key for the tags.
pub(super) fn derive(root: &Secret) -> hmac::Key {
    let key = Secret::new(hmac::sha256(root.expose(), KEY_LABEL).to_vec());
    hmac::Key::new(key.expose())
}

fn tag(key: &hmac::Key, place: &str, stamp: [u8; STAMP_LEN], json: &[u8]) -> [u8; TAG_LEN] {
    let length = (place.len() as u64).to_be_bytes();
    key.sign(&[&length, place.as_bytes(), &stamp, json])
}

impl RootKey {
    /// Checks that the service wrote this value for the record `place`, under a root key that is in use. Gives its
    /// stamp; records that are not authenticated have none.
    pub(crate) fn verify(
        &self,
        store: &dyn Store,
        place: &str,
        value: &[u8],
    ) -> Result<Option<u64>, Fault> {
        if protection(place) == Protection::Plain {
            return Ok(None);
        }
        let forged = || Fault::Forged(place.to_owned());
        let parts = parts(value).ok_or_else(forged)?;
        let key = match self.known_tagging(parts.id) {
            Some(key) => key,
            None if self.is_in_use(store, parts.id)? => {
                self.tagging(store, parts.id).map_err(|fault| match fault {
                    Fault::Damaged(_) => forged(),
                    fault => fault,
                })?
            }
            None => return Err(forged()),
        };
        if !hmac::equal(&tag(&key, place, parts.stamp, parts.json), parts.tag) {
            return Err(forged());
        }
        Ok(Some(u64::from_be_bytes(parts.stamp)))
    }

    /// The value of the record `place` with this JSON, under the current root key that `record` names.
    pub(crate) fn authenticate(
        &self,
        store: &dyn Store,
        record: Option<&RootRecord>,
        place: &str,
        stamp: u64,
        json: &[u8],
    ) -> Result<Vec<u8>, Fault> {
        let id = match record {
            Some(record) => {
                self.forget_others(record);
                parse_id(&record.current)?
            }
            None => self.direct_id()?,
        };
        let key = match self.known_tagging(id) {
            Some(key) => key,
            None => self.tagging(store, id)?,
        };
        let stamp = stamp.to_be_bytes();
        let mut out = Vec::with_capacity(JSON_AT + json.len());
        out.push(AUTHENTIC);
        out.extend_from_slice(&id);
        out.extend_from_slice(&stamp);
        out.extend_from_slice(&tag(&key, place, stamp, json));
        out.extend_from_slice(json);
        Ok(out)
    }

    /// Whether records may be under this root key: one that a rotation has done away with may be known to others.
    fn is_in_use(&self, store: &dyn Store, id: Id) -> Result<bool, Fault> {
        Ok(match read_fresh(store)? {
            Some(record) => {
                let id = hex::encode(id);
                record.current == id || record.previous.as_ref() == Some(&id)
            }
            None => self.direct_id()? == id,
        })
    }

    /// The id of the key in the root key file, where that is the root key.
    fn direct_id(&self) -> Result<Id, Fault> {
        self.kek.direct().map(fingerprint).ok_or_else(|| Fault::Damaged(super::ROOT.to_owned()))
    }
}

/// The id of the root key that a record is authenticated under.
pub(super) fn authentic_under(value: &[u8]) -> Option<Id> {
    parts(value).map(|parts| parts.id)
}

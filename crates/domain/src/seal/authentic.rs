//! Records without secrets that only the service may write: authenticated under the root key.
//!
//! Layout: `3 ‖ id of the root key (8) ‖ stamp (8, big-endian) ‖ tag (32) ‖ JSON`. The tag is HMAC-SHA-256 under a
//! key derived from the root key, over the record's key, its stamp and its JSON: a record that was changed or moved,
//! or comes from another store, does not verify. The stamp grows with each write of a record, so that an older one is
//! recognised by anybody who has seen a newer one ([`super::stamps`]).
//!
//! All records are authenticated, except sealed ones and those whose row in [`crate::records`] says why not.

use outlast_crypto::hmac;
use outlast_store::Store;

use super::layout::{AUTHENTIC, Id, JSON_AT, STAMP_LEN, TAG_LEN, parts};
use super::{RootKey, RootRecord, fingerprint, parse_id, read_fresh};
use crate::Fault;
use crate::records::{Protection, protection};

fn tag(key: &hmac::Key, record_key: &str, stamp: [u8; STAMP_LEN], json: &[u8]) -> [u8; TAG_LEN] {
    let length = (record_key.len() as u64).to_be_bytes();
    key.sign(&[&length, record_key.as_bytes(), &stamp, json])
}

impl RootKey {
    /// Verifies that the service wrote this value for this record key, under a root key that is in use. Returns its
    /// stamp; records that are not authenticated have none.
    pub(crate) fn verify(
        &self,
        store: &dyn Store,
        record_key: &str,
        value: &[u8],
    ) -> Result<Option<u64>, Fault> {
        if protection(record_key) == Protection::Plain {
            return Ok(None);
        }
        let forged = || Fault::Forged(record_key.to_owned());
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
        if !hmac::equal(&tag(&key, record_key, parts.stamp, parts.json), parts.tag) {
            return Err(forged());
        }
        Ok(Some(u64::from_be_bytes(parts.stamp)))
    }

    /// The value for this record key with this JSON, under the root key that `record` names as current.
    pub(crate) fn authenticate(
        &self,
        store: &dyn Store,
        record: Option<&RootRecord>,
        record_key: &str,
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
        out.extend_from_slice(&tag(&key, record_key, stamp, json));
        out.extend_from_slice(json);
        Ok(out)
    }

    /// Whether a root key is still in use: one that a rotation has replaced may be known to others.
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

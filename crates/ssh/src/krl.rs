//! Key revocation lists (OpenSSH's PROTOCOL.krl): reading, changing, writing them, and what they revoke.
//!
//! Signed lists are not supported: OpenSSH has given them up. A list that names what this code does not know is refused
//! as a whole, because it may revoke more than what would be understood of it.

mod format;

use std::collections::{BTreeMap, BTreeSet};

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};

use crate::certificate::Certificate;
use crate::limits::{MAX_KRL_ENTRIES, MAX_KRL_LEN};
use crate::public_key::{KeyError, PublicKey};

/// Why bytes are not a list that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KrlError {
    /// The bytes do not have the format.
    #[error("the revocation list is malformed: {0}")]
    Malformed(&'static str),
    /// It says something that this code does not know.
    #[error("the revocation list has {0}, which is not supported")]
    Unsupported(&'static str),
    /// It has too many entries, or too many bytes.
    #[error("the revocation list is too long")]
    TooLong,
    /// A serial number of 0, which means that a certificate has none, or a range that ends before it begins.
    #[error("serial numbers begin with 1, and a range with its lower end")]
    Serial,
    /// A line of a list of keys is not a key.
    #[error("line {0} of the list of keys: {1}")]
    Line(usize, KeyError),
}

/// What of a key or certificate is revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoked {
    /// The key itself.
    Key,
    /// The key of the certificate's authority.
    Authority,
    /// The certificate's serial number.
    Serial,
    /// The certificate's key id.
    KeyId,
}

impl Revoked {
    /// In words, after "revoked by".
    pub fn name(self) -> &'static str {
        match self {
            Self::Key => "its key",
            Self::Authority => "its authority's key",
            Self::Serial => "its serial number",
            Self::KeyId => "its key id",
        }
    }
}

/// Serial numbers and key ids of one authority's certificates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Certificates {
    /// First and last serial number of ranges, which neither overlap nor touch.
    serials: BTreeMap<u64, u64>,
    key_ids: BTreeSet<Vec<u8>>,
}

/// A key revocation list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Krl {
    /// Number of the list, which grows.
    pub version: u64,
    /// When it was made, in seconds since 1970.
    pub generated_s: u64,
    /// A comment for people.
    pub comment: String,
    /// By the blob of the authority's key; an empty one stands for all authorities.
    certificates: BTreeMap<Vec<u8>, Certificates>,
    keys: BTreeSet<Vec<u8>>,
    sha1: BTreeSet<[u8; 20]>,
    sha256: BTreeSet<[u8; 32]>,
    /// Ranges of serial numbers, key ids, keys and fingerprints.
    entries: usize,
}

/// How many entries of each kind a list has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KrlCounts {
    /// Authorities whose certificates it revokes.
    pub authorities: usize,
    /// Ranges of serial numbers; a single one is a range, too.
    pub serial_ranges: usize,
    /// Key ids.
    pub key_ids: usize,
    /// Keys, in full or by their fingerprints.
    pub keys: usize,
}

impl Krl {
    /// Reads what OpenSSH takes for its option `RevokedKeys`: a list in the binary format, or public keys as text, one a line.
    ///
    /// # Errors
    /// [`KrlError`]; nothing is taken of a list that is understood in part.
    pub fn parse(bytes: &[u8]) -> Result<Self, KrlError> {
        if bytes.len() > MAX_KRL_LEN {
            return Err(KrlError::TooLong);
        }
        if format::is_binary(bytes) {
            return format::read(bytes);
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|_| KrlError::Malformed("it is neither binary nor text"))?;
        let mut list = Self::default();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if !line.is_empty() && !line.starts_with('#') {
                let key = PublicKey::from_openssh_line(line)
                    .map_err(|error| KrlError::Line(number, error))?;
                list.revoke_key(&key)?;
            }
        }
        Ok(list)
    }

    /// The list in the binary format.
    pub fn to_bytes(&self) -> Vec<u8> {
        format::write(self)
    }

    /// Revokes a key: as a user's, a host's, and as an authority's.
    ///
    /// # Errors
    /// If there are too many entries.
    pub fn revoke_key(&mut self, key: &PublicKey) -> Result<(), KrlError> {
        self.revoke_blob(key.blob().to_vec())
    }

    /// Revokes certificates by serial numbers, from the first to the last one; of all authorities if none is named.
    ///
    /// # Errors
    /// If a number is 0 or the range ends before it begins, or there are too many entries.
    pub fn revoke_serials(
        &mut self,
        authority: Option<&PublicKey>,
        first: u64,
        last: u64,
    ) -> Result<(), KrlError> {
        self.insert_serials(authority.map_or(&[][..], PublicKey::blob), first, last)
    }

    /// Revokes certificates by their key id; of all authorities if none is named.
    ///
    /// # Errors
    /// If there are too many entries.
    pub fn revoke_key_id(
        &mut self,
        authority: Option<&PublicKey>,
        key_id: &str,
    ) -> Result<(), KrlError> {
        let authority = authority.map_or(&[][..], PublicKey::blob);
        self.insert_key_id(authority, key_id.as_bytes().to_vec())
    }

    /// Revokes a certificate as ssh-keygen does: by its serial number if it has one, else by its key id.
    ///
    /// # Errors
    /// If there are too many entries.
    pub fn revoke_certificate(&mut self, certificate: &Certificate) -> Result<(), KrlError> {
        let (fields, authority) = (certificate.fields(), Some(certificate.authority()));
        match fields.serial {
            0 => {
                let key_id = certificate.key_id_bytes().to_vec();
                self.insert_key_id(certificate.authority().blob(), key_id)
            }
            serial => self.revoke_serials(authority, serial, serial),
        }
    }

    /// Whether the key is revoked.
    pub fn revokes_key(&self, key: &PublicKey) -> bool {
        let blob = key.blob();
        let hashed = |algorithm| digest(algorithm, blob);
        self.keys.contains(blob)
            || (!self.sha256.is_empty() && self.sha256.contains(hashed(&SHA256).as_ref()))
            || (!self.sha1.is_empty()
                && self.sha1.contains(hashed(&SHA1_FOR_LEGACY_USE_ONLY).as_ref()))
    }

    /// What of a certificate is revoked, if anything is.
    pub fn revokes(&self, certificate: &Certificate) -> Option<Revoked> {
        if self.revokes_key(certificate.key()) {
            return Some(Revoked::Key);
        }
        if self.revokes_key(certificate.authority()) {
            return Some(Revoked::Authority);
        }
        let fields = certificate.fields();
        for of in [&[][..], certificate.authority().blob()] {
            let Some(found) = self.certificates.get(of) else { continue };
            if found.key_ids.contains(certificate.key_id_bytes()) {
                return Some(Revoked::KeyId);
            }
            let range = found.serials.range(..=fields.serial).next_back();
            if range.is_some_and(|(_, last)| fields.serial <= *last) {
                return Some(Revoked::Serial);
            }
        }
        None
    }

    /// How many entries there are.
    pub fn counts(&self) -> KrlCounts {
        let all = self.certificates.values();
        KrlCounts {
            authorities: self.certificates.len(),
            serial_ranges: all.clone().map(|of| of.serials.len()).sum(),
            key_ids: all.map(|of| of.key_ids.len()).sum(),
            keys: self.keys.len() + self.sha1.len() + self.sha256.len(),
        }
    }

    fn count(&mut self, is_new: bool) -> Result<(), KrlError> {
        self.entries += usize::from(is_new);
        if self.entries > MAX_KRL_ENTRIES { Err(KrlError::TooLong) } else { Ok(()) }
    }

    fn revoke_blob(&mut self, blob: Vec<u8>) -> Result<(), KrlError> {
        let is_new = self.keys.insert(blob);
        self.count(is_new)
    }

    fn insert_key_id(&mut self, authority: &[u8], key_id: Vec<u8>) -> Result<(), KrlError> {
        let of = self.certificates.entry(authority.to_vec()).or_default();
        let is_new = of.key_ids.insert(key_id);
        self.count(is_new)
    }

    fn insert_serials(
        &mut self,
        authority: &[u8],
        mut first: u64,
        mut last: u64,
    ) -> Result<(), KrlError> {
        if first == 0 || last < first {
            return Err(KrlError::Serial);
        }
        let of = self.certificates.entry(authority.to_vec()).or_default();
        // Ranges that overlap or touch become one.
        while let Some((begin, end)) = of
            .serials
            .range(..=last.saturating_add(1))
            .next_back()
            .map(|(begin, end)| (*begin, *end))
            .filter(|(_, end)| end.saturating_add(1) >= first)
        {
            of.serials.remove(&begin);
            self.entries = self.entries.saturating_sub(1);
            first = first.min(begin);
            last = last.max(end);
        }
        of.serials.insert(first, last);
        self.count(true)
    }
}

#[cfg(test)]
mod tests;

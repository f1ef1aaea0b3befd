//! Evidence records (RFC 4998): timestamps over a group of files, renewed before a certificate or an algorithm ends.
//!
//! A record holds chains of archive timestamps. Each timestamp of a chain covers those before it; each chain, with a digest
//! of its own, covers the data and all chains before it. So the first timestamp proves that the data existed, as long as
//! each is judged by what was known when the next one was made, and the last one by what is known now.
//!
//! [`EvidenceRecord::links`] checks the hashes. [`crate::trusted_time`] verifies the tokens. Encrypted data (section 6) are
//! refused.

mod asn1;
pub mod tree;

use std::collections::BTreeSet;

use der::asn1::{Any, OctetString};
use der::{Decode, Encode};
use outlast_crypto::digests::Digest;
use spki::AlgorithmIdentifierOwned;

use self::asn1::ArchiveTimestamp;
use self::tree::{Path, roots};
use crate::timestamp::Token;

/// Longest record, in bytes.
pub const MAX_LEN: usize = 16 * 1024 * 1024;

/// Most archive timestamps of a record.
pub const MAX_TIMESTAMPS: usize = 128;

/// Most hashes of one reduced hash tree.
pub const MAX_HASHES: usize = 4_096;

/// Why a record proves nothing about the data.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvidenceError {
    /// It is not a record in DER.
    #[error("not an evidence record: {0}")]
    Malformed(String),
    /// It is for encrypted data.
    #[error("the evidence record is for encrypted data, which is not supported")]
    Encrypted,
    /// An algorithm that the tables lack.
    #[error("the digest {0} of the evidence record is not supported")]
    Digest(String),
    /// The timestamps of a chain have different digests.
    #[error("the digests within a chain of the evidence record differ")]
    MixedDigests,
    /// The first archive timestamp of a chain is over other data.
    #[error("the evidence record is not for this file and this signature")]
    OtherData,
    /// An archive timestamp does not cover the one before.
    #[error("timestamp {0} of the evidence record does not cover the one before it")]
    Broken(usize),
}

/// A parsed record.
#[derive(Clone, Debug)]
pub struct EvidenceRecord {
    inner: asn1::EvidenceRecord,
    /// Digest of each chain.
    digests: Vec<&'static Digest>,
}

/// An archive timestamp whose place in the record is right. Its token is not verified.
#[derive(Clone, Debug)]
pub struct Link {
    /// Algorithm of the imprint.
    pub digest: &'static Digest,
    /// What the token's imprint must be; one of them, if there are two.
    pub imprints: Vec<Vec<u8>>,
    /// The token in DER.
    pub token: Vec<u8>,
}

impl EvidenceRecord {
    /// Parses a record in DER.
    pub fn parse(der: &[u8]) -> Result<Self, EvidenceError> {
        let wrong = |reason: &str| EvidenceError::Malformed(reason.to_owned());
        if der.len() > MAX_LEN {
            return Err(wrong("it is too long"));
        }
        let malformed = |error: der::Error| EvidenceError::Malformed(error.to_string());
        let inner = asn1::EvidenceRecord::from_der(der).map_err(malformed)?;
        if inner.version != 1 {
            return Err(EvidenceError::Malformed(format!("its version is {}", inner.version)));
        }
        if inner.encryption_info.is_some() {
            return Err(EvidenceError::Encrypted);
        }
        // Later timestamps are over this encoding.
        if inner.to_der().map_err(malformed)? != der {
            return Err(wrong("it is not in DER"));
        }
        let all = inner.sequence.iter().flatten();
        if all.clone().count() > MAX_TIMESTAMPS || inner.sequence.is_empty() {
            return Err(wrong("it has no timestamp, or too many"));
        }
        let hashes = |one: &ArchiveTimestamp| -> usize {
            one.reduced_hashtree.iter().flatten().map(Vec::len).sum()
        };
        if all.clone().any(|one| hashes(one) > MAX_HASHES) {
            return Err(wrong("a hash tree in it is too large"));
        }
        let digests = inner.sequence.iter().map(|chain| digest_of(chain));
        let digests = digests.collect::<Result<_, _>>()?;
        Ok(Self { inner, digests })
    }

    /// The record in DER.
    pub fn to_der(&self) -> Result<Vec<u8>, EvidenceError> {
        self.inner.to_der().map_err(|error| EvidenceError::Malformed(error.to_string()))
    }

    /// The digests of the data that [`EvidenceRecord::links`] needs: one for each chain, some perhaps twice.
    pub fn digests(&self) -> &[&'static Digest] {
        &self.digests
    }

    /// Number of archive timestamps.
    pub fn len(&self) -> usize {
        self.inner.sequence.iter().map(Vec::len).sum()
    }

    /// Whether there is no archive timestamp; no parsed record is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tokens in DER, oldest first.
    pub fn tokens(&self) -> Result<Vec<Vec<u8>>, EvidenceError> {
        let all = self.inner.sequence.iter().flatten();
        all.map(|one| one.token().map_err(|error| EvidenceError::Malformed(error.to_string())))
            .collect()
    }

    /// Checks that the first archive timestamp of each chain is over these data and no others, and that every other one
    /// covers the one before it (RFC 4998, section 5.3). `objects` holds, for each of [`EvidenceRecord::digests`], the digests
    /// of all files of the group.
    pub fn links(&self, objects: &[Vec<Vec<u8>>]) -> Result<Vec<Link>, EvidenceError> {
        let malformed = |error: der::Error| EvidenceError::Malformed(error.to_string());
        let mut links = Vec::new();
        for (index, chain) in self.inner.sequence.iter().enumerate() {
            let digest = *self.digests.get(index).ok_or(EvidenceError::OtherData)?;
            let objects = objects.get(index).ok_or(EvidenceError::OtherData)?;
            let data = self.covered(index, digest, objects)?;
            let mut before: Option<&ArchiveTimestamp> = None;
            for one in chain {
                let path = path_of(one);
                let imprints = match before {
                    None => imprints(digest, &path, &data, true).ok_or(EvidenceError::OtherData)?,
                    Some(before) => {
                        let hash = digest.digest(&before.token().map_err(malformed)?);
                        imprints(digest, &path, &[hash], false)
                            .ok_or(EvidenceError::Broken(links.len() + 1))?
                    }
                };
                links.push(Link { digest, imprints, token: one.token().map_err(malformed)? });
                before = Some(one);
            }
        }
        Ok(links)
    }

    /// What the first archive timestamp of a chain covers: the digests of the data, joined with that of all chains before
    /// (RFC 4998, section 5.2).
    fn covered(
        &self,
        chain: usize,
        digest: &'static Digest,
        objects: &[Vec<u8>],
    ) -> Result<Vec<Vec<u8>>, EvidenceError> {
        let before = self.inner.sequence.get(..chain).unwrap_or_default();
        if before.is_empty() {
            return Ok(objects.to_vec());
        }
        let before = before.to_vec().to_der();
        let before =
            digest.digest(&before.map_err(|error| EvidenceError::Malformed(error.to_string()))?);
        Ok(objects.iter().map(|hash| digest.digest(&[&hash[..], &before].concat())).collect())
    }

    /// What a new timestamp of the last chain must cover: every token of the chain. RFC 4998 (section 5.2) wants the last
    /// one; BouncyCastle wants all, and makes records so, too.
    pub fn tokens_to_cover(&self) -> Result<Vec<Vec<u8>>, EvidenceError> {
        let malformed = |error: der::Error| EvidenceError::Malformed(error.to_string());
        let (Some(chain), Some(digest)) = (self.inner.sequence.last(), self.digests.last()) else {
            return Err(EvidenceError::OtherData);
        };
        chain.iter().map(|one| Ok(digest.digest(&one.token().map_err(malformed)?))).collect()
    }

    /// What the first timestamp of a new chain must cover, given the digests of the data under its digest.
    pub fn data_to_cover(
        &self,
        digest: &'static Digest,
        objects: &[Vec<u8>],
    ) -> Result<Vec<Vec<u8>>, EvidenceError> {
        self.covered(self.inner.sequence.len(), digest, objects)
    }

    /// A new record: a token over the root to which the path leads.
    pub fn new(digest: &'static Digest, path: &Path, token: &[u8]) -> Result<Self, EvidenceError> {
        let one = archive_timestamp(digest, path, token)?;
        let inner = asn1::EvidenceRecord {
            version: 1,
            digest_algorithms: vec![identifier(digest)],
            crypto_infos: None,
            encryption_info: None,
            sequence: vec![vec![one]],
        };
        Ok(Self { inner, digests: vec![digest] })
    }

    /// Adds a token to the last chain (timestamp renewal), whose digest it must have.
    pub fn renew(&mut self, path: &Path, token: &[u8]) -> Result<(), EvidenceError> {
        let digest = *self.digests.last().ok_or(EvidenceError::OtherData)?;
        let one = archive_timestamp(digest, path, token)?;
        self.has_room()?;
        self.inner.sequence.last_mut().ok_or(EvidenceError::OtherData)?.push(one);
        Ok(())
    }

    /// Begins a new chain (hash-tree renewal).
    pub fn rehash(
        &mut self,
        digest: &'static Digest,
        path: &Path,
        token: &[u8],
    ) -> Result<(), EvidenceError> {
        let one = archive_timestamp(digest, path, token)?;
        self.has_room()?;
        self.inner.sequence.push(vec![one]);
        self.digests.push(digest);
        if !self.inner.digest_algorithms.iter().any(|known| known.oid == digest.oid) {
            self.inner.digest_algorithms.push(identifier(digest));
        }
        Ok(())
    }

    fn has_room(&self) -> Result<(), EvidenceError> {
        match self.len() < MAX_TIMESTAMPS {
            true => Ok(()),
            false => Err(EvidenceError::Malformed(format!(
                "it has {MAX_TIMESTAMPS} timestamps already, and takes no more"
            ))),
        }
    }
}

/// The digest of a chain, which all of its archive timestamps must have.
fn digest_of(chain: &[ArchiveTimestamp]) -> Result<&'static Digest, EvidenceError> {
    let malformed = |error: der::Error| EvidenceError::Malformed(error.to_string());
    let mut found = BTreeSet::new();
    for one in chain {
        found.insert(match &one.digest_algorithm {
            Some(algorithm) => algorithm.oid,
            None => {
                Token::parse(&one.token().map_err(malformed)?)
                    .map_err(|error| EvidenceError::Malformed(error.to_string()))?
                    .imprint()
                    .digest
                    .oid
            }
        });
    }
    let mut all = found.into_iter();
    match (all.next(), all.next()) {
        (Some(oid), None) => {
            Digest::by_oid(oid).ok_or_else(|| EvidenceError::Digest(oid.to_string()))
        }
        (None, _) => Err(EvidenceError::Malformed("a chain in it is empty".to_owned())),
        _ => Err(EvidenceError::MixedDigests),
    }
}

fn path_of(one: &ArchiveTimestamp) -> Option<Path> {
    let lists = one.reduced_hashtree.as_ref()?;
    let bytes = |hash: &OctetString| hash.as_bytes().to_vec();
    Some(lists.iter().map(|list| list.iter().map(bytes).collect()).collect())
}

/// What the token must cover, if the first list of the path holds all of `hashes`, and, if it is to be `alone`, nothing
/// else.
fn imprints(
    digest: &Digest,
    path: &Option<Path>,
    hashes: &[Vec<u8>],
    alone: bool,
) -> Option<Vec<Vec<u8>>> {
    let Some(path) = path else {
        let [only] = hashes else { return None };
        return Some(vec![only.clone()]);
    };
    let first = path.first()?;
    let holds_all = !hashes.is_empty() && hashes.iter().all(|hash| first.contains(hash));
    // A single object stands beside other leaves.
    let is_group = alone && hashes.len() > 1;
    let is_alone = !is_group || first.iter().all(|hash| hashes.contains(hash));
    (holds_all && is_alone).then(|| roots(digest, path))
}

fn archive_timestamp(
    digest: &'static Digest,
    path: &Path,
    token: &[u8],
) -> Result<ArchiveTimestamp, EvidenceError> {
    let build = || -> der::Result<ArchiveTimestamp> {
        let list = |hashes: &Vec<Vec<u8>>| {
            hashes.iter().map(|hash| OctetString::new(hash.as_slice())).collect::<der::Result<_>>()
        };
        let lists = path.iter().map(list).collect::<der::Result<Vec<_>>>()?;
        Ok(ArchiveTimestamp {
            digest_algorithm: Some(identifier(digest)),
            attributes: None,
            reduced_hashtree: Some(lists).filter(|lists| !lists.is_empty()),
            timestamp: Any::from_der(token)?,
        })
    };
    build().map_err(|error| EvidenceError::Malformed(error.to_string()))
}

fn identifier(digest: &Digest) -> AlgorithmIdentifierOwned {
    // RFC 5754, section 2: parameters are absent.
    AlgorithmIdentifierOwned { oid: digest.oid, parameters: None }
}

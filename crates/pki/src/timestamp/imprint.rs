//! What is stamped, and the number by which a client recognises the answer.

use std::fmt;

use der::asn1::{Any, Int, OctetString, Uint};
use outlast_crypto::digests::Digest;
use spki::AlgorithmIdentifierOwned;

use super::{MAX_NONCE_LEN, asn1, malformed};
use crate::PkiError;

/// The digest of what is stamped.
#[derive(Debug, Clone)]
pub struct Imprint {
    /// Its algorithm.
    pub digest: &'static Digest,
    /// The digest.
    pub value: Vec<u8>,
    /// Whether the algorithm's parameters are NULL: a token repeats them as the request had them.
    has_null: bool,
}

impl PartialEq for Imprint {
    fn eq(&self, other: &Self) -> bool {
        self.digest.oid == other.digest.oid && self.value == other.value
    }
}

impl Eq for Imprint {}

impl Imprint {
    /// From a digest that is known; its length must be the algorithm's.
    pub fn new(digest: &'static Digest, value: &[u8]) -> Result<Self, PkiError> {
        if value.len() != digest.output_len {
            return Err(PkiError::Malformed {
                what: "timestamp",
                reason: format!("{} has {} bytes", digest.name, digest.output_len),
            });
        }
        Ok(Self { digest, value: value.to_vec(), has_null: false })
    }

    /// Of data in memory.
    pub fn of(digest: &'static Digest, data: &[u8]) -> Self {
        Self { digest, value: digest.digest(data), has_null: false }
    }

    /// `Err` has the algorithm if the tables lack it, `Ok(None)` means that it is malformed.
    pub(super) fn read(
        imprint: &asn1::MessageImprint,
    ) -> Result<Option<Self>, const_oid::ObjectIdentifier> {
        let algorithm = &imprint.hash_algorithm;
        let digest = Digest::by_oid(algorithm.oid).ok_or(algorithm.oid)?;
        let has_null = match &algorithm.parameters {
            None => false,
            Some(any) if *any == Any::null() => true,
            Some(_) => return Ok(None),
        };
        let value = imprint.hashed_message.as_bytes();
        Ok(Self::new(digest, value).ok().map(|imprint| Self { has_null, ..imprint }))
    }

    pub(super) fn encode(&self) -> der::Result<asn1::MessageImprint> {
        Ok(asn1::MessageImprint {
            hash_algorithm: AlgorithmIdentifierOwned {
                oid: self.digest.oid,
                parameters: self.has_null.then(Any::null),
            },
            hashed_message: OctetString::new(self.value.as_slice())?,
        })
    }
}

/// A number that a client makes up for one request, and that the token repeats.
#[derive(Clone, PartialEq, Eq)]
pub struct Nonce(Vec<u8>);

impl Nonce {
    /// From big-endian bytes, of which a client takes at least eight random ones.
    pub fn new(bytes: &[u8]) -> Result<Self, PkiError> {
        let number = Uint::new(bytes).map(Int::from).map_err(malformed)?;
        Self::read(&number).ok_or_else(|| PkiError::Malformed {
            what: "timestamp",
            reason: format!("a nonce has at most {MAX_NONCE_LEN} bytes"),
        })
    }

    /// `None` if it is too long.
    pub(super) fn read(number: &Int) -> Option<Self> {
        let bytes = number.as_bytes();
        (bytes.len() <= MAX_NONCE_LEN).then(|| Self(bytes.to_vec()))
    }

    pub(super) fn encode(&self) -> der::Result<Int> {
        Int::new(&self.0)
    }
}

impl fmt::Display for Nonce {
    /// Hexadecimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nonce({self})")
    }
}

//! Certificate identifiers in OCSP: hashes of the issuer's name and key, and the serial number.

use const_oid::ObjectIdentifier;
use der::asn1::{Any, Int, OctetString, Uint};
use der::{Decode, Encode};
use outlast_crypto::digests::{Digest, SHA1_FOR_IDENTIFIERS};
use spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoRef};
use x509_cert::name::Name;

use super::{asn1, malformed};
use crate::PkiError;
use crate::certificate::Certificate;
use crate::crl::MAX_SERIAL_LEN;
use crate::crl::read::{integer, significant};

/// The hashes for identifiers: SHA-1, which RFC 5019 requires of all clients, and SHA-256 of RFC 6960's later
/// profiles. They identify only; nothing is signed with them.
pub fn hashes() -> impl Iterator<Item = &'static Digest> {
    [Some(&SHA1_FOR_IDENTIFIERS), Digest::by_name("sha256")].into_iter().flatten()
}

/// The hash of an issuer's name in DER.
pub fn issuer_name_hash(hash: &Digest, issuer: &Name) -> Result<Vec<u8>, PkiError> {
    Ok(hash.digest(&issuer.to_der().map_err(malformed)?))
}

/// The hash of a key: of the BIT STRING in the DER `SubjectPublicKeyInfo`, without its header.
pub fn issuer_key_hash(hash: &Digest, public_key: &[u8]) -> Result<Vec<u8>, PkiError> {
    let parsed = SubjectPublicKeyInfoRef::from_der(public_key).map_err(malformed)?;
    Ok(hash.digest(parsed.subject_public_key.raw_bytes()))
}

/// Identifies the certificate that a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertId {
    der: Vec<u8>,
    hash_algorithm: ObjectIdentifier,
    issuer_name_hash: Vec<u8>,
    issuer_key_hash: Vec<u8>,
    /// The INTEGER's bytes.
    serial: Vec<u8>,
}

impl CertId {
    /// The identifier of the certificate with `serial` (big-endian) of this issuer; `issuer_key` is a DER
    /// `SubjectPublicKeyInfo`.
    pub fn new(
        hash: &Digest,
        issuer: &Name,
        issuer_key: &[u8],
        serial: &[u8],
    ) -> Result<Self, PkiError> {
        Self::from_hashes(
            hash,
            issuer_name_hash(hash, issuer)?,
            issuer_key_hash(hash, issuer_key)?,
            serial,
        )
    }

    /// The same from known hashes: a responder makes many for one issuer.
    pub fn from_hashes(
        hash: &Digest,
        issuer_name_hash: Vec<u8>,
        issuer_key_hash: Vec<u8>,
        serial: &[u8],
    ) -> Result<Self, PkiError> {
        let build = || {
            let id = asn1::CertId {
                // RFC 5280 and OpenSSL write NULL for the SHA family here.
                hash_algorithm: AlgorithmIdentifierOwned {
                    oid: hash.oid,
                    parameters: Some(Any::null()),
                },
                issuer_name_hash: OctetString::new(issuer_name_hash.as_slice())?,
                issuer_key_hash: OctetString::new(issuer_key_hash.as_slice())?,
                serial: Int::from(Uint::new(serial)?),
            };
            id.to_der()
        };
        let der = build().map_err(malformed)?;
        let serial = integer(serial);
        Ok(Self { der, hash_algorithm: hash.oid, issuer_name_hash, issuer_key_hash, serial })
    }

    /// Parses an identifier in DER.
    pub fn parse(der: &[u8]) -> Result<Self, PkiError> {
        let id = asn1::CertId::from_der(der).map_err(malformed)?;
        let serial = id.serial.as_bytes().to_vec();
        if significant(&serial).len() > MAX_SERIAL_LEN {
            return Err(PkiError::Malformed {
                what: "OCSP object",
                reason: format!("the serial number has more than {MAX_SERIAL_LEN} bytes"),
            });
        }
        Ok(Self {
            der: der.to_vec(),
            hash_algorithm: id.hash_algorithm.oid,
            issuer_name_hash: id.issuer_name_hash.as_bytes().to_vec(),
            issuer_key_hash: id.issuer_key_hash.as_bytes().to_vec(),
            serial,
        })
    }

    /// The DER, exactly as it was received.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Its hash; `None` if it is none of [`hashes`].
    pub fn hash(&self) -> Option<&'static Digest> {
        hashes().find(|row| row.oid == self.hash_algorithm)
    }

    /// Hash of the issuer's name.
    pub fn issuer_name_hash(&self) -> &[u8] {
        &self.issuer_name_hash
    }

    /// Hash of the issuer's key.
    pub fn issuer_key_hash(&self) -> &[u8] {
        &self.issuer_key_hash
    }

    /// Serial number, big-endian without leading zeros.
    pub fn serial(&self) -> &[u8] {
        significant(&self.serial)
    }

    /// Whether it has the serial number of `certificate`.
    pub fn has_serial_of(&self, certificate: &Certificate) -> bool {
        self.serial == certificate.serial_number().as_bytes()
    }

    /// Whether it identifies a certificate of this issuer.
    pub fn is_of(&self, issuer: &Name, issuer_key: &[u8]) -> bool {
        self.hash().is_some_and(|hash| {
            issuer_name_hash(hash, issuer).is_ok_and(|name| name == self.issuer_name_hash)
                && issuer_key_hash(hash, issuer_key).is_ok_and(|key| key == self.issuer_key_hash)
        })
    }
}

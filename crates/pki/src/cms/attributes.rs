//! Signed attributes alone, before there is a message around them: what a signer is asked to sign.
//!
//! For services that show a person which file a signature will be for. Verifying a message is the work of
//! [`super::verify`].

use der::asn1::{ObjectIdentifier, OctetString};
use der::{Decode, DecodeOwned, Encode};
use outlast_crypto::digests::Digest;
use x509_cert::attr::{Attribute, Attributes};
use x509_cert::time::Time as X509Time;

use super::multiple::MULTIPLE_SIGNATURES;
use super::{
    AlgorithmProtection, CMS_ALGORITHM_PROTECTION, CONTENT_TYPE, ID_DATA, MESSAGE_DIGEST,
    SIGNING_TIME,
};
use crate::time::unix_time;

/// The file that signed attributes stand for.
#[derive(Debug, Clone)]
pub struct SignedAttributes {
    /// Digest of the file.
    pub message_digest: Vec<u8>,
    /// Algorithm of that digest, if the attributes name it (RFC 6211).
    pub digest: Option<&'static Digest>,
    /// Claimed time of signing, seconds since 1970.
    pub signing_time: Option<i64>,
    /// Whether they name other signatures of the same message (RFC 5752), without which verifiers that know the attribute
    /// refuse this one.
    pub is_joint: bool,
}

/// Why bytes are not the attributes of one file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAttributes {
    /// They are no SET at all.
    #[error("the message is not a SET of attributes")]
    Other,
    /// They are a SET, but not one that stands for a file.
    #[error("{0}")]
    Invalid(&'static str),
}

impl SignedAttributes {
    /// Reads the bytes that a signer signs: a DER SET OF Attribute (RFC 5652, section 5.4) with contentType `id-data` and
    /// one messageDigest.
    ///
    /// # Errors
    /// [`NotAttributes::Other`] if no verifier of CMS could take the bytes for attributes.
    pub fn parse(bytes: &[u8]) -> Result<Self, NotAttributes> {
        if !is_set(bytes) {
            return Err(NotAttributes::Other);
        }
        let invalid =
            |_| NotAttributes::Invalid("the message is a SET, but not of attributes in DER");
        let attributes = Attributes::from_der(bytes).map_err(invalid)?;
        if attributes.to_der().map_err(invalid)? != bytes {
            return Err(NotAttributes::Invalid("the signed attributes are not in DER"));
        }
        let content_type: ObjectIdentifier = one(&attributes, CONTENT_TYPE)?
            .ok_or(NotAttributes::Invalid("the signed attributes have no contentType"))?;
        if content_type != ID_DATA {
            return Err(NotAttributes::Invalid(
                "the contentType of the signed attributes is not id-data",
            ));
        }
        let octets: OctetString = one(&attributes, MESSAGE_DIGEST)?
            .ok_or(NotAttributes::Invalid("the signed attributes have no messageDigest"))?;
        let protection: Option<AlgorithmProtection> = one(&attributes, CMS_ALGORITHM_PROTECTION)?;
        let digest = match protection {
            None => None,
            Some(protection) => Some(
                Digest::by_oid(protection.digest_algorithm.oid)
                    .ok_or(NotAttributes::Invalid("the digest algorithm is not known"))?,
            ),
        };
        let time: Option<X509Time> = one(&attributes, SIGNING_TIME)?;
        Ok(Self {
            message_digest: octets.as_bytes().to_vec(),
            digest,
            signing_time: time.map(|time| unix_time(&time)),
            is_joint: attributes.iter().any(|attribute| attribute.oid == MULTIPLE_SIGNATURES),
        })
    }
}

/// The only value of an attribute that occurs once at most.
fn one<T: DecodeOwned>(
    attributes: &Attributes,
    oid: ObjectIdentifier,
) -> Result<Option<T>, NotAttributes> {
    let mut found = attributes.iter().filter(|attribute| attribute.oid == oid);
    let Some(attribute) = found.next() else { return Ok(None) };
    if found.next().is_some() {
        return Err(NotAttributes::Invalid("a signed attribute occurs twice"));
    }
    value(attribute).map(Some)
}

fn value<T: DecodeOwned>(attribute: &Attribute) -> Result<T, NotAttributes> {
    let invalid =
        || NotAttributes::Invalid("a signed attribute has not exactly one value of its type");
    let mut values = attribute.values.iter();
    let (Some(value), None) = (values.next(), values.next()) else { return Err(invalid()) };
    let der = value.to_der().map_err(|_| invalid())?;
    T::from_der(&der).map_err(|_| invalid())
}

/// Whether the bytes could be read as a BER SET: verifiers differ in how strict they are, so that a signature over such bytes could
/// be moved into a message. A text that begins with the digit 1 (0x31) is none, because its next byte is not its length.
fn is_set(bytes: &[u8]) -> bool {
    let Some((0x31, rest)) = bytes.split_first() else { return false };
    let Some((&first, rest)) = rest.split_first() else { return false };
    match first {
        0x80 => true,
        0..0x80 => usize::from(first) == rest.len(),
        _ => {
            let count = usize::from(first & 0x7f);
            let Some((length, rest)) = rest.split_at_checked(count) else { return false };
            // Leading zeros are valid BER.
            let length = length.iter().skip_while(|byte| **byte == 0);
            let wanted = rest.len().to_be_bytes();
            length.eq(wanted.iter().skip_while(|byte| **byte == 0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_no_set() {
        for text in [&b""[..], b"1", b"1.0.2 is the version", b"\x30\x00", b"1\x05abcdef"] {
            let refused = SignedAttributes::parse(text).unwrap_err();
            assert_eq!(refused, NotAttributes::Other, "{text:?}");
        }
        for set in [&b"\x31\x00"[..], b"\x31\x80\x00\x00", b"\x31\x81\x00", b"\x31\x82\x00\x01\x05"]
        {
            let refused = SignedAttributes::parse(set);
            assert!(matches!(refused, Err(NotAttributes::Invalid(_))), "{set:?}");
        }
    }
}

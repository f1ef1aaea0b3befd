//! PKCS #8 (RFC 5958): checked on import, and written for the types that are stored in another form.
//!
//! Handles only the outer structure and the choice of private-key forms that ML-DSA and ML-KEM share; AWS-LC parses
//! the contents of RSA and EC keys.

use const_oid::ObjectIdentifier;
use der::asn1::{AnyRef, OctetStringRef};
use der::{Decode, Encode, Sequence, Tag, TagNumber, Tagged};
use pkcs8::PrivateKeyInfoRef;
use spki::{AlgorithmIdentifierOwned, AlgorithmIdentifierRef, SubjectPublicKeyInfoOwned};
use zeroize::Zeroizing;

use super::key::{Form, Imported};
use crate::{CryptoError, Secret, hmac};

/// Parses the outer structure; the algorithm must be `oid`. Trailing bytes are an error.
pub(super) fn parse(
    material: &[u8],
    oid: ObjectIdentifier,
) -> Result<PrivateKeyInfoRef<'_>, CryptoError> {
    let info = PrivateKeyInfoRef::from_der(material).map_err(|_| CryptoError::InvalidKey)?;
    if info.algorithm.oid == oid { Ok(info) } else { Err(CryptoError::InvalidKey) }
}

/// Like [`parse`], for algorithms whose parameters must be absent (RFC 9881, RFC 9909, RFC 9935).
pub(super) fn parse_without_parameters(
    material: &[u8],
    oid: ObjectIdentifier,
) -> Result<PrivateKeyInfoRef<'_>, CryptoError> {
    let info = parse(material, oid)?;
    if info.algorithm.parameters.is_none() { Ok(info) } else { Err(CryptoError::InvalidKey) }
}

/// Whether the optional public key of `info` is absent or equals `public_key`.
pub(super) fn public_key_fits(info: &PrivateKeyInfoRef<'_>, public_key: &[u8]) -> bool {
    info.public_key.is_none_or(|key| key.as_bytes() == Some(public_key))
}

/// Writes version 1 without parameters; `private_key` becomes the content of the OCTET STRING.
pub(super) fn encode(oid: ObjectIdentifier, private_key: &[u8]) -> Result<Secret, CryptoError> {
    let library = |_| CryptoError::Library;
    let info = PrivateKeyInfoRef::new(
        AlgorithmIdentifierRef { oid, parameters: None },
        OctetStringRef::new(private_key).map_err(library)?,
    );
    info.to_der().map(Secret::new).map_err(library)
}

/// A DER `SubjectPublicKeyInfo` whose parameters are absent.
pub(super) fn spki(oid: ObjectIdentifier, public_key: &[u8]) -> Result<Vec<u8>, CryptoError> {
    let library = |_| CryptoError::Library;
    SubjectPublicKeyInfoOwned {
        algorithm: AlgorithmIdentifierOwned { oid, parameters: None },
        subject_public_key: der::asn1::BitString::from_bytes(public_key).map_err(library)?,
    }
    .to_der()
    .map_err(library)
}

/// Key pair of a stored seed or expanded key.
pub(super) struct Expanded {
    /// The expanded private key.
    pub private_key: Secret,
    /// The raw public key.
    pub public_key: Vec<u8>,
}

/// Imports one of the three forms of RFC 9881, section 6, and RFC 9935, section 6. `expand` takes a seed of
/// `seed_len` bytes or an expanded key, and returns an error if it is not valid.
pub(super) fn import_seed_or_expanded(
    material: &[u8],
    oid: ObjectIdentifier,
    seed_len: usize,
    expand: impl Fn(&[u8]) -> Result<Expanded, CryptoError>,
) -> Result<Imported, CryptoError> {
    let invalid = |_| CryptoError::InvalidKey;
    let info = parse_without_parameters(material, oid)?;
    // AnyRef instead of Choice: exactly one element and no trailing bytes.
    let any = AnyRef::from_der(info.private_key.as_bytes()).map_err(invalid)?;
    let (stored, form, claimed) = match any.tag() {
        Tag::ContextSpecific { constructed: false, number: TagNumber(0) } => {
            (any.value(), Form::Seed, None)
        }
        Tag::OctetString => (any.value(), Form::Expanded, None),
        Tag::Sequence => {
            let both: Both<'_> = any.decode_as().map_err(invalid)?;
            (both.seed.as_bytes(), Form::Both, Some(both.expanded_key.as_bytes()))
        }
        _ => return Err(CryptoError::InvalidKey),
    };
    if (stored.len() == seed_len) != (form != Form::Expanded) {
        return Err(CryptoError::InvalidKey);
    }
    let expanded = expand(stored)?;
    // RFC 9881, section 8.2: if both forms are present, the reader checks that they are the same key.
    if claimed.is_some_and(|claimed| !hmac::equal(claimed, expanded.private_key.expose()))
        || !public_key_fits(&info, &expanded.public_key)
    {
        return Err(CryptoError::InvalidKey);
    }
    Ok(Imported { stored: Secret::new(stored.to_vec()), form })
}

/// Encodes the seed form: `seed` in a `[0] IMPLICIT OCTET STRING`.
pub(super) fn encode_seed(oid: ObjectIdentifier, seed: &[u8]) -> Result<Secret, CryptoError> {
    let len = u8::try_from(seed.len()).map_err(|_| CryptoError::InvalidKey)?;
    if len > 0x7f {
        return Err(CryptoError::InvalidKey);
    }
    encode(oid, &Zeroizing::new([&[0x80, len], seed].concat()))
}

/// Encodes the expanded form: `key` in an OCTET STRING.
pub(super) fn encode_expanded(oid: ObjectIdentifier, key: &[u8]) -> Result<Secret, CryptoError> {
    let inner = OctetStringRef::new(key).and_then(|key| key.to_der());
    encode(oid, &Zeroizing::new(inner.map_err(|_| CryptoError::Library)?))
}

/// Encodes the form with both the seed and its expanded key.
pub(super) fn encode_both(
    oid: ObjectIdentifier,
    seed: &[u8],
    expanded: &[u8],
) -> Result<Secret, CryptoError> {
    let library = |_| CryptoError::Library;
    let both = Both {
        seed: OctetStringRef::new(seed).map_err(library)?,
        expanded_key: OctetStringRef::new(expanded).map_err(library)?,
    };
    encode(oid, &Zeroizing::new(both.to_der().map_err(library)?))
}

/// Writes `stored` (a seed of `seed_len` bytes or an expanded key) in a form of RFC 9881 or RFC 9935. An expanded key
/// cannot be turned back into its seed.
pub(super) fn encode_form(
    oid: ObjectIdentifier,
    stored: &[u8],
    seed_len: usize,
    form: Form,
    expand: impl Fn(&[u8]) -> Result<Expanded, CryptoError>,
) -> Result<Secret, CryptoError> {
    let expanded = expand(stored)?.private_key;
    let has_seed = stored.len() == seed_len;
    match form {
        Form::Seed if has_seed => encode_seed(oid, stored),
        Form::Both if has_seed => encode_both(oid, stored, expanded.expose()),
        Form::Expanded => encode_expanded(oid, expanded.expose()),
        _ => Err(CryptoError::UnsupportedAlgorithm),
    }
}

/// ```text
/// both SEQUENCE { seed OCTET STRING, expandedKey OCTET STRING }
/// ```
#[derive(Sequence)]
struct Both<'a> {
    seed: &'a OctetStringRef,
    expanded_key: &'a OctetStringRef,
}

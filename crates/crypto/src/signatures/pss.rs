//! Parameters of RSASSA-PSS in X.509 (RFC 4055, section 3.1): encoded and parsed, for the hashes of the rows.

use const_oid::ObjectIdentifier;
use der::asn1::AnyRef;
use der::{Decode, Encode, Sequence};
use spki::AlgorithmIdentifierRef;

use crate::CryptoError;
use crate::digests::Digest;

/// `id-RSASSA-PSS`
pub(super) const OID: ObjectIdentifier = const_oid::db::rfc5912::ID_RSASSA_PSS;

/// RSASSA-PSS-params. Absent fields mean SHA-1, MGF1 with SHA-1, 20 and 1; only the last of these fits a row.
#[derive(Sequence)]
struct Params<'a> {
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    hash: Option<AlgorithmIdentifierRef<'a>>,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    mask_generation: Option<AlgorithmIdentifierRef<'a>>,
    #[asn1(context_specific = "2", tag_mode = "EXPLICIT", optional = "true")]
    salt_len: Option<u8>,
    #[asn1(context_specific = "3", tag_mode = "EXPLICIT", optional = "true")]
    trailer: Option<u8>,
}

/// Parameters with this hash, MGF1 with the same hash, and a salt of the hash's length.
pub(super) fn encode(digest: &str) -> Result<Vec<u8>, CryptoError> {
    let digest = Digest::by_name(digest).ok_or(CryptoError::UnsupportedAlgorithm)?;
    let failed = |_| CryptoError::UnsupportedAlgorithm;
    // RFC 4055, section 2.1: both NULL and absent are legal; the RFC's own identifiers use NULL.
    let hash = AlgorithmIdentifierRef { oid: digest.oid, parameters: Some(AnyRef::NULL) };
    let inner = hash.to_der().map_err(failed)?;
    let mask_generation = AlgorithmIdentifierRef {
        oid: const_oid::db::rfc5912::ID_MGF_1,
        parameters: Some(AnyRef::from_der(&inner).map_err(failed)?),
    };
    let salt_len = u8::try_from(digest.output_len).map_err(|_| CryptoError::InvalidLength)?;
    Params {
        hash: Some(hash),
        mask_generation: Some(mask_generation),
        salt_len: Some(salt_len),
        trailer: None,
    }
    .to_der()
    .map_err(failed)
}

/// Whether the parameters mean the same as those of [`encode`].
pub(super) fn fits(digest: &str, der: &[u8]) -> bool {
    let Some(row) = Digest::by_name(digest) else { return false };
    let Ok(params) = Params::from_der(der) else { return false };
    let is_hash = |id: &AlgorithmIdentifierRef<'_>| {
        id.oid == row.oid && id.parameters.is_none_or(AnyRef::is_null)
    };
    let is_mask = |id: &AlgorithmIdentifierRef<'_>| {
        let hash = id.parameters.and_then(|any| any.decode_as::<AlgorithmIdentifierRef<'_>>().ok());
        id.oid == const_oid::db::rfc5912::ID_MGF_1 && hash.as_ref().is_some_and(is_hash)
    };
    params.hash.as_ref().is_some_and(is_hash)
        && params.mask_generation.as_ref().is_some_and(is_mask)
        && params.salt_len.map(usize::from) == Some(row.output_len)
        && params.trailer.is_none_or(|trailer| trailer == 1)
}

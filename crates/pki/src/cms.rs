//! CMS signatures (RFC 5652) with ML-DSA by RFC 9882: detached ones over files, and those that contain what they sign.
//!
//! [`sign`] makes them, [`verify`] verifies those of any software; [`attributes`] reads what is to be signed. The size of the file does not matter: only its
//! digest is needed here.

pub mod attach;
pub mod attributes;
pub mod embedded;
pub(crate) mod ess;
mod limits;
mod message;
mod multiple;
pub mod sign;
pub mod verify;

use const_oid::ObjectIdentifier;
use der::Sequence;
use der::asn1::ObjectIdentifier as Oid;
use spki::AlgorithmIdentifierOwned;

/// Longest CMS message that is read, in bytes: room for hundreds of certificates.
pub const MAX_MESSAGE_LEN: usize = 16 * 1024 * 1024;

const ID_DATA: Oid = const_oid::db::rfc5911::ID_DATA;
const ID_SIGNED_DATA: Oid = const_oid::db::rfc5911::ID_SIGNED_DATA;
const CONTENT_TYPE: Oid = const_oid::db::rfc5911::ID_CONTENT_TYPE;
const MESSAGE_DIGEST: Oid = const_oid::db::rfc5911::ID_MESSAGE_DIGEST;
const SIGNING_TIME: Oid = const_oid::db::rfc5911::ID_SIGNING_TIME;
/// RFC 6211
const CMS_ALGORITHM_PROTECTION: Oid = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.52");

/// `CMSAlgorithmProtection` (RFC 6211, section 2): makes the algorithms part of what is signed.
#[derive(Clone, Debug, Eq, PartialEq, Sequence)]
struct AlgorithmProtection {
    digest_algorithm: AlgorithmIdentifierOwned,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    signature_algorithm: Option<AlgorithmIdentifierOwned>,
    #[asn1(context_specific = "2", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    mac_algorithm: Option<AlgorithmIdentifierOwned>,
}

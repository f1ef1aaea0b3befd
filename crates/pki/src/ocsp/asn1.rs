//! The ASN.1 of RFC 6960, appendix B.1, for `der`. Parts that must be reproduced byte by byte are kept raw (`Any`).

use const_oid::ObjectIdentifier;
use der::asn1::{Any, BitString, GeneralizedTime, Int, Null, OctetString};
use der::{Choice, Enumerated, Sequence};
use spki::AlgorithmIdentifierOwned;
use x509_cert::ext::Extension;
use x509_cert::name::Name;

use crate::crl::reason::CrlReasonCode;

/// `id-pkix-ocsp-basic`
pub const BASIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.1");
/// `id-pkix-ocsp-nonce`
pub const NONCE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.2");
/// `id-pkix-ocsp-response`: the kinds of response that the client accepts; all clients accept the basic one.
pub const ACCEPTABLE_RESPONSES: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.4");
/// `id-pkix-ocsp-nocheck`
pub const NO_CHECK: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.5");
/// `id-pkix-ocsp-pref-sig-algs`
pub const PREFERRED_SIGNATURES: ObjectIdentifier =
    ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.8");

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Enumerated)]
#[asn1(type = "INTEGER")]
#[repr(u8)]
pub enum Version {
    #[default]
    V1 = 0,
}

#[derive(Debug, Sequence)]
pub struct OcspRequest {
    pub to_be_signed: TbsRequest,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    pub signature: Option<Any>,
}

#[derive(Debug, Sequence)]
pub struct TbsRequest {
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", default = "Default::default")]
    pub version: Version,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    pub requestor: Option<Any>,
    pub list: Vec<SingleRequest>,
    #[asn1(context_specific = "2", tag_mode = "EXPLICIT", optional = "true")]
    pub extensions: Option<Vec<Extension>>,
}

#[derive(Debug, Sequence)]
pub struct SingleRequest {
    /// A [`CertId`], as it was received.
    pub id: Any,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    pub extensions: Option<Vec<Extension>>,
}

#[derive(Debug, Sequence)]
pub struct CertId {
    pub hash_algorithm: AlgorithmIdentifierOwned,
    pub issuer_name_hash: OctetString,
    pub issuer_key_hash: OctetString,
    pub serial: Int,
}

#[derive(Debug, Sequence)]
pub struct OcspResponse {
    pub status: ResponseStatus,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    pub bytes: Option<ResponseBytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Enumerated)]
#[repr(u8)]
pub enum ResponseStatus {
    Successful = 0,
    MalformedRequest = 1,
    InternalError = 2,
    TryLater = 3,
    SigRequired = 5,
    Unauthorized = 6,
}

#[derive(Debug, Sequence)]
pub struct ResponseBytes {
    pub kind: ObjectIdentifier,
    pub response: OctetString,
}

#[derive(Debug, Sequence)]
pub struct BasicResponse {
    /// [`ResponseData`], as it was received, since that is what is signed.
    pub data: Any,
    pub algorithm: AlgorithmIdentifierOwned,
    pub signature: BitString,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    pub certificates: Option<Vec<Any>>,
}

#[derive(Debug, Sequence)]
pub struct ResponseData {
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", default = "Default::default")]
    pub version: Version,
    pub responder: ResponderId,
    pub produced_at: GeneralizedTime,
    pub responses: Vec<SingleResponse>,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    pub extensions: Option<Vec<Extension>>,
}

#[derive(Debug, Choice)]
pub enum ResponderId {
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", constructed = "true")]
    Name(Name),
    #[asn1(context_specific = "2", tag_mode = "EXPLICIT", constructed = "true")]
    Key(OctetString),
}

#[derive(Debug, Sequence)]
pub struct SingleResponse {
    /// A [`CertId`].
    pub id: Any,
    pub status: CertStatus,
    pub this_update: GeneralizedTime,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    pub next_update: Option<GeneralizedTime>,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    pub extensions: Option<Vec<Extension>>,
}

#[derive(Debug, Choice)]
pub enum CertStatus {
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT")]
    Good(Null),
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", constructed = "true")]
    Revoked(RevokedInfo),
    #[asn1(context_specific = "2", tag_mode = "IMPLICIT")]
    Unknown(Null),
}

#[derive(Debug, Sequence)]
pub struct RevokedInfo {
    pub revoked_at: GeneralizedTime,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    pub reason: Option<CrlReasonCode>,
}

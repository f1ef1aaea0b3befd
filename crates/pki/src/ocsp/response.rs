//! Builds OCSP responses (RFC 6960, section 4.2).

use der::asn1::{Any, BitString, GeneralizedTime, Null, OctetString};
use der::{DateTime, Decode, Encode};
use outlast_crypto::digests::SHA1_FOR_IDENTIFIERS;
use outlast_crypto::signatures::SignatureAlgorithm;
use spki::AlgorithmIdentifierOwned;

use super::cert_id::issuer_key_hash;
use super::request::nonce_extension;
use super::{CertId, asn1, malformed};
use crate::PkiError;
use crate::certificate::algorithm_identifier;
use crate::crl::reason::{CrlReasonCode, Reason};

/// The status of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Not revoked.
    Good,
    /// Revoked.
    Revoked {
        /// When, seconds since 1970.
        at: i64,
        /// The reason; [`crate::crl::reason::UNSPECIFIED`] is left out.
        reason: &'static Reason,
    },
    /// The responder has no record of it.
    Unknown,
}

/// The status of one certificate.
#[derive(Debug, Clone)]
pub struct Single {
    /// The identifier exactly as it was in the request: clients compare it.
    pub id: CertId,
    /// The status.
    pub status: Status,
    /// When the status was known to be right, seconds since 1970.
    pub this_update: i64,
    /// When newer information will be available, seconds since 1970.
    pub next_update: Option<i64>,
}

/// Contents of a response.
#[derive(Debug)]
pub struct Content<'a> {
    /// The responder's DER `SubjectPublicKeyInfo`, from which its identifier is made (byKey).
    pub responder_key: &'a [u8],
    /// When it is signed, seconds since 1970.
    pub produced_at: i64,
    /// A status for each certificate.
    pub responses: Vec<Single>,
    /// The request's nonce, to be returned. Responses that are made in advance have none.
    pub nonce: Option<Vec<u8>>,
}

/// A response without its signature.
#[derive(Debug)]
pub struct Unsigned {
    /// The bytes to sign.
    pub to_be_signed: Vec<u8>,
    algorithm: AlgorithmIdentifierOwned,
}

/// Why there is no response about the certificates. Error responses are not signed (RFC 6960, section 2.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// The request is malformed.
    MalformedRequest,
    /// The responder has failed.
    InternalError,
    /// The responder is busy.
    TryLater,
    /// The request must be signed.
    SigRequired,
    /// The responder does not answer for this issuer (RFC 5019, section 2.2.3).
    Unauthorized,
}

impl Failure {
    /// The response in DER.
    pub fn to_der(self) -> Vec<u8> {
        let status = match self {
            Self::MalformedRequest => asn1::ResponseStatus::MalformedRequest,
            Self::InternalError => asn1::ResponseStatus::InternalError,
            Self::TryLater => asn1::ResponseStatus::TryLater,
            Self::SigRequired => asn1::ResponseStatus::SigRequired,
            Self::Unauthorized => asn1::ResponseStatus::Unauthorized,
        };
        // SEQUENCE { ENUMERATED }: nothing in it can fail to encode.
        asn1::OcspResponse { status, bytes: None }.to_der().unwrap_or_default()
    }
}

impl Content<'_> {
    /// Encodes the contents.
    pub fn prepare(self, algorithm: &SignatureAlgorithm) -> Result<Unsigned, PkiError> {
        // RFC 6960, section 4.2.1: KeyHash is the SHA-1 of the responder's key, whatever the other hashes are.
        let key_hash = issuer_key_hash(&SHA1_FOR_IDENTIFIERS, self.responder_key)?;
        let data = asn1::ResponseData {
            version: asn1::Version::V1,
            responder: asn1::ResponderId::Key(OctetString::new(key_hash).map_err(malformed)?),
            produced_at: generalized(self.produced_at)?,
            responses: self.responses.iter().map(single).collect::<Result<_, _>>()?,
            extensions: nonce_extension(self.nonce.as_deref())?,
        };
        Ok(Unsigned {
            to_be_signed: data.to_der().map_err(malformed)?,
            algorithm: algorithm_identifier(algorithm)?,
        })
    }
}

impl Unsigned {
    /// Adds the signature and returns the whole response in DER. `certificates` (DER) lead from the responder's
    /// certificate to the issuer; empty if the issuer itself signs.
    pub fn assemble(self, signature: &[u8], certificates: &[Vec<u8>]) -> Result<Vec<u8>, PkiError> {
        let build = || {
            let certificates = certificates
                .iter()
                .map(|der| Any::from_der(der))
                .collect::<Result<Vec<_>, der::Error>>()?;
            let basic = asn1::BasicResponse {
                data: Any::from_der(&self.to_be_signed)?,
                algorithm: self.algorithm,
                signature: BitString::from_bytes(signature)?,
                certificates: Some(certificates).filter(|list| !list.is_empty()),
            };
            let bytes = asn1::ResponseBytes {
                kind: asn1::BASIC,
                response: OctetString::new(basic.to_der()?)?,
            };
            asn1::OcspResponse { status: asn1::ResponseStatus::Successful, bytes: Some(bytes) }
                .to_der()
        };
        build().map_err(malformed)
    }
}

fn single(single: &Single) -> Result<asn1::SingleResponse, PkiError> {
    let status = match single.status {
        Status::Good => asn1::CertStatus::Good(Null),
        Status::Unknown => asn1::CertStatus::Unknown(Null),
        Status::Revoked { at, reason } => asn1::CertStatus::Revoked(asn1::RevokedInfo {
            revoked_at: generalized(at)?,
            reason: Some(CrlReasonCode(reason.code)).filter(|code| code.0 != 0),
        }),
    };
    Ok(asn1::SingleResponse {
        id: Any::from_der(single.id.der()).map_err(malformed)?,
        status,
        this_update: generalized(single.this_update)?,
        next_update: single.next_update.map(generalized).transpose()?,
        extensions: None,
    })
}

/// OCSP always uses GeneralizedTime (RFC 6960, section 4.2.2.1).
fn generalized(unix: i64) -> Result<GeneralizedTime, PkiError> {
    let seconds = u64::try_from(unix).map_err(|_| PkiError::Time)?;
    DateTime::from_unix_duration(std::time::Duration::from_secs(seconds))
        .map(GeneralizedTime::from_date_time)
        .map_err(|_| PkiError::Time)
}

//! Parses OCSP responses and decides whether to accept them (RFC 6960, section 3.2).

use der::asn1::GeneralizedTime;
use der::{Decode, Encode};
use outlast_crypto::digests::SHA1_FOR_IDENTIFIERS;
use outlast_crypto::signatures::Message;
use spki::AlgorithmIdentifierOwned;

use super::asn1::{self, NO_CHECK, NONCE, ResponderId};
use super::cert_id::issuer_key_hash;
use super::request::read_nonce;
use super::{CertId, Failure, MAX_CERT_IDS, MAX_RESPONSE_LEN, Single, Status, malformed};
use crate::PkiError;
use crate::certificate::{Certificate, signature_row};
use crate::crl::reason::{Reason, UNSPECIFIED, invalidity_date};
use crate::seen::Seen;
use crate::templates::OCSP_SIGNING;
use crate::time::rfc3339;
use crate::validate::names;

/// How far a responder's clock may be ahead, in seconds.
pub const CLOCK_SKEW_SECONDS: i64 = 300;

/// Certificates of a response that are examined, at most.
const MAX_CERTIFICATES: usize = 8;

/// Why a response is not accepted for a certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OcspError {
    /// An error response.
    #[error("the responder answered {0:?}")]
    Failure(Failure),
    /// It is not about the certificate.
    #[error("the response is not about this certificate")]
    OtherCertificate,
    /// It has another nonce.
    #[error("the response's nonce is not the request's")]
    Nonce,
    /// It is from the future or too old.
    #[error("the response is valid from {this_update} to {next_update}, not at {at}")]
    Time {
        /// Start of its validity.
        this_update: String,
        /// End of its validity.
        next_update: String,
        /// Time of the check.
        at: String,
    },
    /// Its signer is not authorized.
    #[error("the responder is not authorised: {0}")]
    Responder(&'static str),
    /// The signature is invalid.
    #[error("the signature on the response is not valid")]
    Signature,
    /// It cannot be parsed.
    #[error(transparent)]
    Malformed(#[from] PkiError),
}

/// A parsed response. Parsing does not verify its signature: see [`Response::verify`].
#[derive(Debug, Clone)]
pub struct Response {
    /// The status of each certificate.
    pub responses: Vec<Single>,
    /// When it was signed, seconds since 1970.
    pub produced_at: i64,
    /// The nonce, if it has one.
    pub nonce: Option<Vec<u8>>,
    /// The certificates in it.
    pub certificates: Vec<Certificate>,
    der: Vec<u8>,
    /// The invalidity date of each of `responses`.
    invalid_since: Vec<Option<i64>>,
    responder: Responder,
    signed: Vec<u8>,
    algorithm: AlgorithmIdentifierOwned,
    signature: Vec<u8>,
}

#[derive(Debug, Clone)]
enum Responder {
    Name(x509_cert::name::Name),
    Key(Vec<u8>),
}

/// A response that was verified.
#[derive(Debug, Clone)]
pub struct Verified {
    /// The status of the certificate.
    pub status: Status,
    /// Since when the key of a revoked certificate is not to be believed (`invalidityDate`), seconds since 1970.
    pub invalid_since: Option<i64>,
    /// Start of its validity, seconds since 1970.
    pub this_update: i64,
    /// End of its validity, seconds since 1970.
    pub next_update: Option<i64>,
    /// Whether it has the request's nonce. Responders that make responses in advance return none (RFC 9654, section
    /// 2.1).
    pub nonce_echoed: bool,
    /// The responder's own certificate, if the issuer delegated.
    pub delegate: Option<Certificate>,
}

impl Response {
    /// Parses a response in DER; an error response is [`OcspError::Failure`].
    pub fn parse(der: &[u8]) -> Result<Self, OcspError> {
        let refused =
            |reason: &str| PkiError::Malformed { what: "OCSP response", reason: reason.into() };
        if der.len() > MAX_RESPONSE_LEN {
            return Err(refused("it is too long").into());
        }
        let response = asn1::OcspResponse::from_der(der).map_err(malformed)?;
        if let Some(failure) = failure(response.status) {
            return Err(OcspError::Failure(failure));
        }
        let bytes = response.bytes.ok_or_else(|| refused("it has no content"))?;
        if bytes.kind != asn1::BASIC {
            return Err(refused("it is not a basic response").into());
        }
        let basic = asn1::BasicResponse::from_der(bytes.response.as_bytes()).map_err(malformed)?;
        let signed = basic.data.to_der().map_err(malformed)?;
        let data = asn1::ResponseData::from_der(&signed).map_err(malformed)?;
        if data.responses.is_empty() || data.responses.len() > MAX_CERT_IDS {
            return Err(refused("it has no answer or too many").into());
        }
        let mut nonce = None;
        for extension in data.extensions.iter().flatten() {
            match extension.extn_id {
                NONCE => nonce = Some(read_nonce(extension)?),
                _ if extension.critical => {
                    return Err(refused("it has an unknown critical extension").into());
                }
                _ => {}
            }
        }
        let certificates = basic
            .certificates
            .iter()
            .flatten()
            .take(MAX_CERTIFICATES)
            .map(|any| Certificate::parse(&any.to_der().map_err(malformed)?))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            responses: data.responses.iter().map(single).collect::<Result<_, _>>()?,
            invalid_since: data
                .responses
                .iter()
                .map(|one| invalidity_date(one.extensions.as_deref().unwrap_or_default()))
                .collect(),
            der: der.to_vec(),
            produced_at: unix(data.produced_at),
            nonce,
            certificates,
            responder: match data.responder {
                ResponderId::Name(name) => Responder::Name(name),
                ResponderId::Key(hash) => Responder::Key(hash.as_bytes().to_vec()),
            },
            signature: basic
                .signature
                .as_bytes()
                .ok_or_else(|| refused("its signature is not a whole number of bytes"))?
                .to_vec(),
            algorithm: basic.algorithm,
            signed,
        })
    }

    /// The DER that was parsed.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The verified status, at `at` (seconds since 1970), of `certificate`, which `issuer` issued.
    ///
    /// The signer must be the issuer, or a responder with a certificate from the issuer itself, for OCSP signing and
    /// with ocsp-nocheck: without ocsp-nocheck the revocation of that certificate would have to be checked first (RFC
    /// 6960, section 4.2.2.2.1), and such responders are refused. If the request had `nonce`, a response with another
    /// one is refused.
    pub fn verify(
        &self,
        issuer: &Certificate,
        certificate: &Certificate,
        nonce: Option<&[u8]>,
        at: i64,
    ) -> Result<Verified, OcspError> {
        self.verify_seen(issuer, certificate, nonce, at, None)
    }

    /// [`Response::verify`], without verifying again what has been `seen`.
    pub(crate) fn verify_seen(
        &self,
        issuer: &Certificate,
        certificate: &Certificate,
        nonce: Option<&[u8]>,
        at: i64,
        seen: Option<&Seen>,
    ) -> Result<Verified, OcspError> {
        let issuer_key = issuer.public_key()?;
        let wanted = |single: &&Single| {
            single.id.has_serial_of(certificate) && single.id.is_of(issuer.subject(), &issuer_key)
        };
        let found = self.responses.iter().position(|single| wanted(&single));
        let found = found.ok_or(OcspError::OtherCertificate)?;
        let single = self.responses.get(found).ok_or(OcspError::OtherCertificate)?;
        if nonce.is_some() && self.nonce.is_some() && self.nonce.as_deref() != nonce {
            return Err(OcspError::Nonce);
        }
        // Without nextUpdate newer information is always available (RFC 6960, section 4.2.2.1); a response that was
        // just made is accepted for as long as clocks may differ.
        let end = single.next_update.unwrap_or(single.this_update + CLOCK_SKEW_SECONDS);
        if single.this_update > at + CLOCK_SKEW_SECONDS || end < at {
            return Err(OcspError::Time {
                this_update: rfc3339(single.this_update),
                next_update: rfc3339(end),
                at: rfc3339(at),
            });
        }
        let delegate = self.signer(issuer, &issuer_key, at, seen)?;
        Ok(Verified {
            status: single.status,
            invalid_since: self.invalid_since.get(found).copied().flatten(),
            this_update: single.this_update,
            next_update: single.next_update,
            nonce_echoed: nonce.is_some() && self.nonce.as_deref() == nonce,
            delegate,
        })
    }

    /// Verifies the signature; returns the responder's certificate, or `None` if the issuer itself signed.
    fn signer(
        &self,
        issuer: &Certificate,
        issuer_key: &[u8],
        at: i64,
        seen: Option<&Seen>,
    ) -> Result<Option<Certificate>, OcspError> {
        if self.is_responder(issuer, issuer_key)? {
            return self.check_signature(issuer_key, seen).map(|()| None);
        }
        for delegate in &self.certificates {
            let key = delegate.public_key()?;
            if !self.is_responder(delegate, &key)? {
                continue;
            }
            check_delegate(delegate, issuer, at, seen)?;
            return self.check_signature(&key, seen).map(|()| Some(delegate.clone()));
        }
        Err(OcspError::Responder(
            "it is not the issuer, and the response does not contain its certificate",
        ))
    }

    fn is_responder(&self, certificate: &Certificate, key: &[u8]) -> Result<bool, OcspError> {
        Ok(match &self.responder {
            Responder::Name(name) => names::same(name, certificate.subject()),
            Responder::Key(hash) => *hash == issuer_key_hash(&SHA1_FOR_IDENTIFIERS, key)?,
        })
    }

    fn check_signature(&self, key: &[u8], seen: Option<&Seen>) -> Result<(), OcspError> {
        let row = signature_row(&self.algorithm)?;
        let verify = || row.verify(key, Message::Raw(&self.signed), &self.signature).is_ok();
        match Seen::or_verify(seen, key, &self.der, verify) {
            true => Ok(()),
            false => Err(OcspError::Signature),
        }
    }
}

/// RFC 6960, section 4.2.2.2: issued directly by the CA of the certificate in question, for OCSP signing.
fn check_delegate(
    delegate: &Certificate,
    issuer: &Certificate,
    at: i64,
    seen: Option<&Seen>,
) -> Result<(), OcspError> {
    let refuse = |reason| Err(OcspError::Responder(reason));
    if delegate.extended_key_usage().is_none_or(|(_, list)| !list.contains(&OCSP_SIGNING)) {
        return refuse("its certificate is not for OCSP signing");
    }
    if delegate.key_usage().is_some_and(|(_, usage)| !usage.digital_signature()) {
        return refuse("its certificate's key usage lacks digitalSignature");
    }
    if at < delegate.not_before() || at > delegate.not_after() {
        return refuse("its certificate is not valid at this time");
    }
    if !delegate.extensions().iter().any(|extension| extension.extn_id == NO_CHECK) {
        return refuse(
            "its certificate lacks ocsp-nocheck, and its own revocation status is unknown",
        );
    }
    if !delegate.signed_by_seen(issuer, seen) {
        return refuse("its certificate was not issued by the CA itself");
    }
    Ok(())
}

fn failure(status: asn1::ResponseStatus) -> Option<Failure> {
    Some(match status {
        asn1::ResponseStatus::Successful => return None,
        asn1::ResponseStatus::MalformedRequest => Failure::MalformedRequest,
        asn1::ResponseStatus::InternalError => Failure::InternalError,
        asn1::ResponseStatus::TryLater => Failure::TryLater,
        asn1::ResponseStatus::SigRequired => Failure::SigRequired,
        asn1::ResponseStatus::Unauthorized => Failure::Unauthorized,
    })
}

fn single(single: &asn1::SingleResponse) -> Result<Single, PkiError> {
    if single.extensions.iter().flatten().any(|extension| extension.critical) {
        return Err(PkiError::Malformed {
            what: "OCSP response",
            reason: "it has an unknown critical extension".into(),
        });
    }
    Ok(Single {
        id: CertId::parse(&single.id.to_der().map_err(malformed)?)?,
        status: match &single.status {
            asn1::CertStatus::Good(_) => Status::Good,
            asn1::CertStatus::Unknown(_) => Status::Unknown,
            asn1::CertStatus::Revoked(info) => Status::Revoked {
                at: unix(info.revoked_at),
                reason: info.reason.and_then(|code| Reason::by_code(code.0)).unwrap_or(UNSPECIFIED),
            },
        },
        this_update: unix(single.this_update),
        next_update: single.next_update.map(unix),
    })
}

fn unix(time: GeneralizedTime) -> i64 {
    i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX)
}

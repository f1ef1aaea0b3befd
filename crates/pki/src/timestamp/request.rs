//! Requests (RFC 3161, section 2.4.1).

use const_oid::ObjectIdentifier;
use der::asn1::Int;
use der::{Decode, Encode};

use super::{Failure, Imprint, MAX_NONCE_LEN, MAX_REQUEST_LEN, Nonce, asn1, malformed};
use crate::PkiError;

/// A request for a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What to stamp.
    pub imprint: Imprint,
    /// The policy under which the token must be; any if there is none.
    pub policy: Option<ObjectIdentifier>,
    /// The number that the token repeats.
    pub nonce: Option<Nonce>,
    /// Whether the token must contain the authority's certificates.
    pub wants_certificates: bool,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct RequestError {
    /// What to answer.
    pub failure: Failure,
    /// The reason, for people.
    pub text: String,
}

impl RequestError {
    /// A refusal with a reason for people.
    pub fn new(failure: Failure, text: impl Into<String>) -> Self {
        Self { failure, text: text.into() }
    }
}

impl Request {
    /// A request for a token with certificates under any policy.
    pub fn new(imprint: Imprint, nonce: Option<Nonce>) -> Self {
        Self { imprint, policy: None, nonce, wants_certificates: true }
    }

    /// Parses a request in DER.
    pub fn parse(der: &[u8]) -> Result<Self, RequestError> {
        if der.len() > MAX_REQUEST_LEN {
            let text = format!("the request is longer than {MAX_REQUEST_LEN} bytes");
            return Err(RequestError::new(Failure::BadRequest, text));
        }
        let request = asn1::TimeStampReq::from_der(der).map_err(|error| {
            let text = format!("the request is not a TimeStampReq in DER: {error}");
            RequestError::new(Failure::BadDataFormat, text)
        })?;
        if request.version.as_bytes() != [1] {
            let text = "only version 1 of requests exists";
            return Err(RequestError::new(Failure::BadRequest, text));
        }
        // RFC 3161, section 2.4.1: an extension that the server does not recognise is refused, critical or not.
        if let Some(extensions) = &request.extensions {
            let name = extensions.first().map(|extension| extension.extn_id.to_string());
            let text =
                format!("the extension {} is not supported", name.as_deref().unwrap_or("list"));
            return Err(RequestError::new(Failure::UnacceptedExtension, text));
        }
        let imprint = match Imprint::read(&request.message_imprint) {
            Ok(Some(imprint)) => imprint,
            Ok(None) => {
                let text = "the message imprint does not have the form of its algorithm";
                return Err(RequestError::new(Failure::BadDataFormat, text));
            }
            Err(oid) => {
                let name = crate::oid_name(oid).map_or_else(|| oid.to_string(), str::to_owned);
                let text = format!(
                    "the digest {name} is too weak or unknown: use SHA-256, SHA-384, SHA-512, SHA-3 or SHAKE"
                );
                return Err(RequestError::new(Failure::BadAlg, text));
            }
        };
        let nonce = match &request.nonce {
            None => None,
            Some(number) => Some(Nonce::read(number).ok_or_else(|| {
                let text = format!("the nonce is longer than {MAX_NONCE_LEN} bytes");
                RequestError::new(Failure::BadRequest, text)
            })?),
        };
        Ok(Self {
            imprint,
            policy: request.req_policy,
            nonce,
            wants_certificates: request.cert_req,
        })
    }

    /// The request in DER.
    pub fn to_der(&self) -> Result<Vec<u8>, PkiError> {
        let build = || {
            asn1::TimeStampReq {
                version: Int::new(&[1])?,
                message_imprint: self.imprint.encode()?,
                req_policy: self.policy,
                nonce: self.nonce.as_ref().map(Nonce::encode).transpose()?,
                cert_req: self.wants_certificates,
                extensions: None,
            }
            .to_der()
        };
        build().map_err(malformed)
    }
}

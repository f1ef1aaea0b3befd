//! OCSP requests (RFC 6960, section 4.1).

use der::asn1::{Any, OctetString};
use der::{Decode, Encode};
use outlast_crypto::digests::SHA1_FOR_IDENTIFIERS;
use x509_cert::ext::Extension;

use super::asn1::{ACCEPTABLE_RESPONSES, NONCE, PREFERRED_SIGNATURES};
use super::{CertId, MAX_CERT_IDS, MAX_NONCE_LEN, MAX_REQUEST_LEN, asn1, malformed};
use crate::PkiError;
use crate::certificate::Certificate;
use crate::extension::extension;

/// An OCSP request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The certificates that it is about, in order; at least one.
    pub ids: Vec<CertId>,
    /// The nonce: 1 to 128 bytes.
    pub nonce: Option<Vec<u8>>,
}

impl Request {
    /// A request about `certificate`, which `issuer` issued, with the hash that every responder knows.
    pub fn new(
        issuer: &Certificate,
        certificate: &Certificate,
        nonce: Option<&[u8]>,
    ) -> Result<Self, PkiError> {
        let id = CertId::new(
            &SHA1_FOR_IDENTIFIERS,
            issuer.subject(),
            &issuer.public_key()?,
            certificate.serial(),
        )?;
        Ok(Self { ids: vec![id], nonce: nonce.map(<[u8]>::to_vec) })
    }

    /// Parses a request. Any failure is to be answered with [`super::Failure::MalformedRequest`].
    pub fn parse(der: &[u8]) -> Result<Self, PkiError> {
        if der.len() > MAX_REQUEST_LEN {
            return Err(refused(format!("it is longer than {MAX_REQUEST_LEN} bytes")));
        }
        let request = asn1::OcspRequest::from_der(der).map_err(malformed)?.to_be_signed;
        if request.list.is_empty() || request.list.len() > MAX_CERT_IDS {
            return Err(refused(format!("it must ask about 1 to {MAX_CERT_IDS} certificates")));
        }
        let mut nonce = None;
        for extension in request.extensions.iter().flatten() {
            match extension.extn_id {
                NONCE if nonce.is_some() => return Err(refused("there are two nonces".into())),
                NONCE => nonce = Some(read_nonce(extension)?),
                ACCEPTABLE_RESPONSES | PREFERRED_SIGNATURES => {}
                other => ignore(extension.critical, other)?,
            }
        }
        let mut ids = Vec::with_capacity(request.list.len());
        for single in &request.list {
            for extension in single.extensions.iter().flatten() {
                ignore(extension.critical, extension.extn_id)?;
            }
            ids.push(CertId::parse(&single.id.to_der().map_err(malformed)?)?);
        }
        Ok(Self { ids, nonce })
    }

    /// The request in DER.
    pub fn to_der(&self) -> Result<Vec<u8>, PkiError> {
        let single = |id: &CertId| {
            Ok(asn1::SingleRequest {
                id: Any::from_der(id.der()).map_err(malformed)?,
                extensions: None,
            })
        };
        let to_be_signed = asn1::TbsRequest {
            version: asn1::Version::V1,
            requestor: None,
            list: self.ids.iter().map(single).collect::<Result<_, PkiError>>()?,
            extensions: nonce_extension(self.nonce.as_deref())?,
        };
        asn1::OcspRequest { to_be_signed, signature: None }.to_der().map_err(malformed)
    }
}

/// The nonce in its extension. RFC 9654, section 2.1: 1 to 128 bytes, anything else is a malformed request.
pub(super) fn read_nonce(extension: &Extension) -> Result<Vec<u8>, PkiError> {
    let nonce = OctetString::from_der(extension.extn_value.as_bytes()).map_err(malformed)?;
    if nonce.as_bytes().is_empty() || nonce.as_bytes().len() > MAX_NONCE_LEN {
        return Err(refused(format!("a nonce must have 1 to {MAX_NONCE_LEN} bytes")));
    }
    Ok(nonce.as_bytes().to_vec())
}

/// The list of extensions with a nonce.
pub(super) fn nonce_extension(nonce: Option<&[u8]>) -> Result<Option<Vec<Extension>>, PkiError> {
    let Some(nonce) = nonce else { return Ok(None) };
    if nonce.is_empty() || nonce.len() > MAX_NONCE_LEN {
        return Err(refused(format!("a nonce must have 1 to {MAX_NONCE_LEN} bytes")));
    }
    let value = OctetString::new(nonce).map_err(malformed)?;
    Ok(Some(vec![extension(NONCE, false, &value)?]))
}

/// Unknown extensions are ignored unless they are critical (RFC 6960, section 4.4).
fn ignore(critical: bool, oid: const_oid::ObjectIdentifier) -> Result<(), PkiError> {
    if critical {
        return Err(refused(format!("it has the unknown critical extension {oid}")));
    }
    Ok(())
}

fn refused(reason: String) -> PkiError {
    PkiError::Malformed { what: "OCSP request", reason }
}

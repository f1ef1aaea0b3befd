//! The contents of a certificate request, whether its signature is valid or not.

use const_oid::ObjectIdentifier;
use der::{Decode, Encode};
use x509_cert::ext::Extension;
use x509_cert::request::{CertReq, ExtensionReq};

use crate::PkiError;
use crate::csr::CertificateRequest;

/// The contents of a certificate request, and whether its signature verifies.
#[derive(Debug, Clone)]
pub struct Request {
    /// Subject (RFC 4514).
    pub subject: String,
    /// DER `SubjectPublicKeyInfo`.
    pub public_key: Vec<u8>,
    /// Requested extensions.
    pub extensions: Vec<Extension>,
    /// Signature algorithm.
    pub signature_algorithm: ObjectIdentifier,
    /// Why the request would be refused, if it would: for its signature, or for its contents.
    pub refused: Option<PkiError>,
}

/// Parses a request in DER.
pub fn request(der: &[u8]) -> Result<Request, PkiError> {
    let malformed = |error: der::Error| PkiError::malformed("certificate request", &error);
    let parsed = CertReq::from_der(der).map_err(malformed)?;
    let mut extensions = Vec::new();
    for attribute in parsed.info.attributes.iter() {
        if attribute.oid == const_oid::db::rfc5912::ID_EXTENSION_REQ {
            for value in attribute.values.iter() {
                extensions.extend(value.decode_as::<ExtensionReq>().map_err(malformed)?.0);
            }
        }
    }
    Ok(Request {
        subject: parsed.info.subject.to_string(),
        public_key: parsed.info.public_key.to_der().map_err(malformed)?,
        extensions,
        signature_algorithm: parsed.algorithm.oid,
        refused: CertificateRequest::parse_and_verify(der).err(),
    })
}

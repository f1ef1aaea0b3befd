//! PKCS #10 certificate requests (RFC 2986).

use der::asn1::{Any, BitString, SetOfVec};
use der::{Decode, Encode};
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use spki::SubjectPublicKeyInfoOwned;
use x509_cert::attr::Attribute;
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::name::Name;
use x509_cert::request::{CertReq, CertReqInfo, ExtensionReq, Version};

use crate::certificate::{algorithm_identifier, raw_tbs};
use crate::templates::SUBJECT_ALT_NAME;
use crate::{PkiError, pem};

/// A certificate request whose signature has been checked: there is no other way to have one.
#[derive(Debug)]
pub struct CertificateRequest {
    /// Subject asked for.
    pub subject: Name,
    /// DER `SubjectPublicKeyInfo`.
    pub public_key: Vec<u8>,
    /// Extensions asked for.
    pub extensions: Vec<Extension>,
}

impl CertificateRequest {
    /// Reads a request in PEM or DER and verifies the proof of possession that its signature is.
    pub fn parse_and_verify(bytes: &[u8]) -> Result<Self, PkiError> {
        let malformed = |error: der::Error| PkiError::malformed("certificate request", &error);
        let der = pem::read_certificate_request(bytes)?;
        let request = CertReq::from_der(&der).map_err(malformed)?;
        let algorithm = SignatureAlgorithm::by_oid(request.algorithm.oid)
            .ok_or_else(|| PkiError::UnsupportedAlgorithm(request.algorithm.oid.to_string()))?;
        let public_key = request.info.public_key.to_der().map_err(malformed)?;
        let signed = raw_tbs(&der).ok_or(PkiError::RequestSignature)?;
        let signature = request.signature.as_bytes().ok_or(PkiError::RequestSignature)?;
        algorithm
            .verify(&public_key, Message::Raw(signed), signature)
            .map_err(|_| PkiError::RequestSignature)?;
        let mut extensions = Vec::new();
        for attribute in request.info.attributes.iter() {
            if attribute.oid == const_oid::db::rfc5912::ID_EXTENSION_REQ {
                for value in attribute.values.iter() {
                    extensions.extend(value.decode_as::<ExtensionReq>().map_err(malformed)?.0);
                }
            }
        }
        check_extensions(&extensions)?;
        Ok(Self { subject: request.info.subject, public_key, extensions })
    }
}

/// What is copied into certificates must be well-formed and there once (RFC 5280, section 4.2).
fn check_extensions(extensions: &[Extension]) -> Result<(), PkiError> {
    let malformed = |reason: String| PkiError::Malformed { what: "certificate request", reason };
    for (index, extension) in extensions.iter().enumerate() {
        if extensions[..index].iter().any(|earlier| earlier.extn_id == extension.extn_id) {
            return Err(malformed(format!("the extension {} occurs twice", extension.extn_id)));
        }
        if extension.extn_id == SUBJECT_ALT_NAME {
            let names = SubjectAltName::from_der(extension.extn_value.as_bytes())
                .map_err(|error| malformed(format!("the subject alternative name: {error}")))?;
            if names.0.is_empty() {
                return Err(malformed("the subject alternative name is empty".into()));
            }
        }
    }
    Ok(())
}

/// A request that waits for its signature.
pub struct Unsigned {
    info: CertReqInfo,
    /// The bytes to sign.
    pub to_be_signed: Vec<u8>,
}

impl Unsigned {
    /// A request for `subject` with the key `public_key` (DER `SubjectPublicKeyInfo`).
    pub fn new(
        subject: Name,
        public_key: &[u8],
        extensions: Vec<Extension>,
    ) -> Result<Self, PkiError> {
        let malformed = |error: der::Error| PkiError::malformed("certificate request", &error);
        let mut attributes = SetOfVec::new();
        if !extensions.is_empty() {
            let value = Any::encode_from(&ExtensionReq(extensions)).map_err(malformed)?;
            attributes
                .insert(Attribute {
                    oid: const_oid::db::rfc5912::ID_EXTENSION_REQ,
                    values: SetOfVec::try_from(vec![value]).map_err(malformed)?,
                })
                .map_err(malformed)?;
        }
        let info = CertReqInfo {
            version: Version::V1,
            subject,
            public_key: SubjectPublicKeyInfoOwned::from_der(public_key).map_err(malformed)?,
            attributes,
        };
        let to_be_signed = info.to_der().map_err(malformed)?;
        Ok(Self { info, to_be_signed })
    }

    /// Adds the signature and gives the request in DER.
    pub fn assemble(
        self,
        algorithm: &SignatureAlgorithm,
        signature: &[u8],
    ) -> Result<Vec<u8>, PkiError> {
        let malformed = |error: der::Error| PkiError::malformed("certificate request", &error);
        CertReq {
            info: self.info,
            algorithm: algorithm_identifier(algorithm)?,
            signature: BitString::from_bytes(signature).map_err(malformed)?,
        }
        .to_der()
        .map_err(malformed)
    }
}

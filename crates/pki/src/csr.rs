//! PKCS #10 certificate requests (RFC 2986): parsing, and building around a signer elsewhere.
//!
//! A key that can sign signs its own request. For one that cannot, such as ML-KEM's, the key of a signature
//! certificate of the same subject signs: `possession.rs`.

use der::asn1::{Any, BitString, SetOfVec};
use der::{Decode, Encode};
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use spki::SubjectPublicKeyInfoOwned;
use x509_cert::attr::Attribute;
use x509_cert::ext::Extension;
use x509_cert::name::Name;
use x509_cert::request::{CertReq, CertReqInfo, ExtensionReq, Version};

use crate::certificate::{algorithm_identifier, raw_tbs, signature_row};
use crate::public_key::Kind;
use crate::{PkiError, extensions, pem};

mod possession;

pub use possession::{Possession, WithStatement};

/// Longest request, in bytes of DER: as PEM it has the 65,536 that the Private CA API takes.
pub const MAX_LEN: usize = 48_000;
/// Extensions in one request at most.
pub const MAX_EXTENSIONS: usize = 100;

/// A certificate request whose signature was verified: the type has no other constructor.
#[derive(Debug)]
pub struct CertificateRequest {
    /// Requested subject.
    pub subject: Name,
    /// DER `SubjectPublicKeyInfo`, of a kind and strength that can be certified.
    pub public_key: Vec<u8>,
    /// Requested extensions.
    pub extensions: Vec<Extension>,
    /// The certificate whose key signed the request, where the requested key cannot sign.
    pub possession: Option<Possession>,
    _verified: Verified,
}

/// Made only by this module, after a signature was verified.
#[derive(Debug)]
struct Verified;

/// A parsed request.
#[derive(Debug)]
pub enum Received {
    /// Signed with the key that it requests a certificate for.
    Verified(Box<CertificateRequest>),
    /// Signed with another key, which the caller must look up first.
    Statement(Box<WithStatement>),
}

impl CertificateRequest {
    /// Parses a request in PEM or DER and verifies the signature that proves possession of the key. A request with a
    /// statement of possession is refused: [`Received::read`] accepts both.
    pub fn parse_and_verify(bytes: &[u8]) -> Result<Self, PkiError> {
        match Received::read(bytes)? {
            Received::Verified(request) => Ok(*request),
            Received::Statement(_) => Err(PkiError::Possession(
                "the certificate that it refers to was not looked up".into(),
            )),
        }
    }
}

impl Received {
    /// Parses a request in PEM or DER, and verifies its signature if the requested key made it.
    pub fn read(bytes: &[u8]) -> Result<Self, PkiError> {
        let malformed = |error: der::Error| PkiError::malformed("certificate request", &error);
        // PEM has four bytes for three, and line ends.
        if bytes.len() > 2 * MAX_LEN {
            return Err(too_long(bytes.len()));
        }
        let der = pem::read_certificate_request(bytes)?;
        if der.len() > MAX_LEN {
            return Err(too_long(der.len()));
        }
        let request = CertReq::from_der(&der).map_err(malformed)?;
        let algorithm = signature_row(&request.algorithm)?;
        let public_key = request.info.public_key.to_der().map_err(malformed)?;
        let kind = Kind::check(&public_key)?;
        let mut extensions = Vec::new();
        let mut possession = None;
        for attribute in request.info.attributes.iter() {
            if attribute.oid == const_oid::db::rfc5912::ID_EXTENSION_REQ {
                for value in attribute.values.iter() {
                    extensions.extend(value.decode_as::<ExtensionReq>().map_err(malformed)?.0);
                }
            }
            if attribute.oid == possession::STATEMENT {
                if possession.is_some() {
                    return Err(PkiError::Possession("it occurs twice".into()));
                }
                possession = Some(Possession::from_attribute(attribute)?);
            }
        }
        check_extensions(&extensions)?;
        let signed = raw_tbs(&der).ok_or(PkiError::RequestSignature)?;
        let signature = request.signature.as_bytes().ok_or(PkiError::RequestSignature)?;
        let request = CertificateRequest {
            subject: request.info.subject,
            public_key,
            extensions,
            possession: None,
            _verified: Verified,
        };
        match possession {
            // RFC 9883, section 4: the attribute MUST NOT be used to obtain a signature certificate.
            Some(_) if kind.signs() => {
                Err(PkiError::Possession("the requested key can sign the request itself".into()))
            }
            Some(possession) => Ok(Self::Statement(Box::new(WithStatement {
                possession,
                request,
                algorithm,
                signed: signed.to_vec(),
                signature: signature.to_vec(),
            }))),
            None if !kind.signs() => Err(PkiError::Possession(format!(
                "{} keys cannot sign, so the request needs one (RFC 9883)",
                kind.name
            ))),
            None => {
                algorithm
                    .verify(&request.public_key, Message::Raw(signed), signature)
                    .map_err(|_| PkiError::RequestSignature)?;
                Ok(Self::Verified(Box::new(request)))
            }
        }
    }
}

fn too_long(len: usize) -> PkiError {
    PkiError::Malformed {
        what: "certificate request",
        reason: format!("it has {len} bytes, at most {MAX_LEN} are accepted"),
    }
}

/// Extensions that are copied into certificates must be well-formed and occur once (RFC 5280, section 4.2).
fn check_extensions(extensions: &[Extension]) -> Result<(), PkiError> {
    let malformed = |reason: String| PkiError::Malformed { what: "certificate request", reason };
    if extensions.len() > MAX_EXTENSIONS {
        return Err(malformed(format!("it has more than {MAX_EXTENSIONS} extensions")));
    }
    for (index, extension) in extensions.iter().enumerate() {
        if extensions[..index].iter().any(|earlier| earlier.extn_id == extension.extn_id) {
            return Err(malformed(format!("the extension {} occurs twice", extension.extn_id)));
        }
        extensions::check(extension)?;
    }
    Ok(())
}

/// A request without its signature.
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
        Self::with_statement(subject, public_key, extensions, None)
    }

    /// The same as [`Unsigned::new`], for a key that cannot sign: the holder of `possession`'s certificate signs.
    pub fn with_statement(
        subject: Name,
        public_key: &[u8],
        extensions: Vec<Extension>,
        possession: Option<&Possession>,
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
        if let Some(possession) = possession {
            attributes.insert(possession.to_attribute()?).map_err(malformed)?;
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

    /// Adds the signature and returns the request in DER.
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

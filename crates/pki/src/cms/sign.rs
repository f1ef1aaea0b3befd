//! Makes a detached signature in two steps: attributes out, signature in.

use cms::cert::{CertificateChoices, IssuerAndSerialNumber};
use cms::content_info::{CmsVersion, ContentInfo};
use cms::signed_data::{
    CertificateSet, EncapsulatedContentInfo, SignedData, SignerIdentifier, SignerInfo, SignerInfos,
};
use der::asn1::{Any, ObjectIdentifier, OctetString, OctetStringRef, SetOfVec};
use der::{Decode, Encode};
use outlast_crypto::digests::Digest;
use outlast_crypto::signatures::SignatureAlgorithm;
use spki::AlgorithmIdentifierOwned;
use x509_cert::attr::{Attribute, Attributes};

use super::{
    AlgorithmProtection, CMS_ALGORITHM_PROTECTION, CONTENT_TYPE, ID_DATA, ID_SIGNED_DATA,
    MESSAGE_DIGEST, SIGNING_TIME,
};
use crate::PkiError;
use crate::certificate::{Certificate, algorithm_identifier};
use crate::time::x509_time;

/// The parts of a signature.
pub struct Request<'a> {
    /// Digest of the file.
    pub message_digest: &'a [u8],
    /// Algorithm of that digest.
    pub digest: &'static Digest,
    /// Algorithm of the signature to come.
    pub algorithm: &'static SignatureAlgorithm,
    /// Claimed time of signing, seconds since 1970.
    pub signing_time: i64,
    /// The signer's certificate.
    pub signer: &'a Certificate,
    /// Further certificates to include (DER): the chain without the root.
    pub chain: &'a [Vec<u8>],
}

/// A message without its signature.
pub struct Unsigned {
    signed_attributes: Attributes,
    digest_algorithm: AlgorithmIdentifierOwned,
    signature_algorithm: AlgorithmIdentifierOwned,
    signer: SignerIdentifier,
    certificates: CertificateSet,
    /// The bytes to sign: the attributes as a plain DER SET OF (RFC 5652, section 5.4); less than 256 bytes, whatever
    /// the size of the file.
    pub to_be_signed: Vec<u8>,
}

impl Unsigned {
    /// Builds the signed attributes contentType, signingTime, messageDigest and CMSAlgorithmProtection.
    pub fn new(request: &Request<'_>) -> Result<Self, PkiError> {
        let signature_algorithm = algorithm_identifier(request.algorithm)?;
        // RFC 9882, section 3.3, and RFC 5754: parameters are absent.
        let digest_algorithm =
            AlgorithmIdentifierOwned { oid: request.digest.oid, parameters: None };
        let protection = AlgorithmProtection {
            digest_algorithm: digest_algorithm.clone(),
            signature_algorithm: Some(signature_algorithm.clone()),
            mac_algorithm: None,
        };
        let build = || -> der::Result<_> {
            let time = x509_time(request.signing_time).map_err(|_| der::ErrorKind::DateTime)?;
            let digest = OctetStringRef::new(request.message_digest)?;
            let attributes = SetOfVec::try_from(vec![
                attribute(CONTENT_TYPE, &ID_DATA)?,
                attribute(SIGNING_TIME, &time)?,
                attribute(MESSAGE_DIGEST, &digest)?,
                attribute(CMS_ALGORITHM_PROTECTION, &protection)?,
            ])?;
            let to_be_signed = attributes.to_der()?;
            let mut certificates = SetOfVec::new();
            for der in
                std::iter::once(request.signer.der()).chain(request.chain.iter().map(Vec::as_slice))
            {
                let certificate = x509_cert::Certificate::from_der(der)?;
                certificates.insert(CertificateChoices::Certificate(certificate))?;
            }
            Ok((attributes, to_be_signed, CertificateSet(certificates)))
        };
        let (signed_attributes, to_be_signed, certificates) =
            build().map_err(|error| PkiError::malformed("CMS message", &error))?;
        Ok(Self {
            signed_attributes,
            digest_algorithm,
            signature_algorithm,
            signer: SignerIdentifier::IssuerAndSerialNumber(IssuerAndSerialNumber {
                issuer: request.signer.issuer().clone(),
                serial_number: request.signer.serial_number().clone(),
            }),
            certificates,
            to_be_signed,
        })
    }

    /// Adds the signature and returns the `ContentInfo` in DER.
    pub fn assemble(self, signature: &[u8]) -> Result<Vec<u8>, PkiError> {
        let build = || -> der::Result<Vec<u8>> {
            let signer = SignerInfo {
                version: CmsVersion::V1,
                sid: self.signer,
                digest_alg: self.digest_algorithm.clone(),
                signed_attrs: Some(self.signed_attributes),
                signature_algorithm: self.signature_algorithm,
                signature: OctetString::new(signature)?,
                unsigned_attrs: None,
            };
            let signed_data = SignedData {
                version: CmsVersion::V1,
                digest_algorithms: SetOfVec::try_from(vec![self.digest_algorithm])?,
                encap_content_info: EncapsulatedContentInfo {
                    econtent_type: ID_DATA,
                    econtent: None,
                },
                certificates: Some(self.certificates),
                crls: None,
                signer_infos: SignerInfos(SetOfVec::try_from(vec![signer])?),
            };
            ContentInfo { content_type: ID_SIGNED_DATA, content: Any::encode_from(&signed_data)? }
                .to_der()
        };
        build().map_err(|error| PkiError::malformed("CMS message", &error))
    }
}

fn attribute(oid: ObjectIdentifier, value: &(impl Encode + der::Tagged)) -> der::Result<Attribute> {
    Ok(Attribute { oid, values: SetOfVec::try_from(vec![Any::from_der(&value.to_der()?)?])? })
}

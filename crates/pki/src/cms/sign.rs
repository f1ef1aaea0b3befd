//! Makes a signature in two steps: attributes out, signatures in.

use der::asn1::{Any, ObjectIdentifier, OctetString, OctetStringRef, SetOfVec};
use der::{Decode, Encode};
use outlast_crypto::digests::Digest;
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::SignatureAlgorithm;
use spki::AlgorithmIdentifierOwned;
use x509_cert::attr::{Attribute, Attributes};

use super::message::{
    ContentInfo, EncapsulatedContentInfo, IssuerAndSerialNumber, SignedData, SignerIdentifier,
    SignerInfo,
};
use super::multiple::{self, Party};
use super::{
    AlgorithmProtection, CMS_ALGORITHM_PROTECTION, CONTENT_TYPE, ID_DATA, ID_SIGNED_DATA,
    MESSAGE_DIGEST, SIGNING_TIME, embedded,
};
use crate::PkiError;
use crate::certificate::{Certificate, algorithm_identifier};
use crate::crl::Crl;
use crate::ocsp::Response;
use crate::time::x509_time;

/// One signer of a message.
#[derive(Clone, Copy)]
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

/// The signature algorithm and digest for a type of key; RFC 9882 prefers SHA-512. `None` if `digest` does not suit it, or
/// if it cannot sign CMS messages.
pub fn suitable(
    spec: &KeySpec,
    digest: Option<&'static Digest>,
) -> Option<(&'static SignatureAlgorithm, &'static Digest)> {
    let rows = || spec.signing.iter().copied().filter(|row| row.oid.is_some());
    let suiting = |name: &'static str| {
        rows().find(|row| row.cms_digests.contains(&name)).map(|row| (row, name))
    };
    let found = match digest {
        Some(digest) => suiting(digest.name),
        None => suiting("sha512")
            .or_else(|| rows().next().and_then(|row| Some((row, *row.cms_digests.first()?)))),
    };
    found.and_then(|(row, name)| Some((row, Digest::by_name(name)?)))
}

/// A message without its signatures.
pub struct Unsigned {
    signers: Vec<Part>,
    content_type: ObjectIdentifier,
    content: Option<Vec<u8>>,
    certificates: Option<SetOfVec<Any>>,
    revocation: Option<SetOfVec<Any>>,
    has_ocsp: bool,
    /// The bytes that each signer signs, in the order of the requests: the attributes as a plain DER SET OF (RFC 5652,
    /// section 5.4); less than 512 bytes, whatever the size of the file.
    pub to_be_signed: Vec<Vec<u8>>,
}

/// What a message contains, if it is not detached from its file.
pub(crate) struct Content<'a> {
    /// Type of the content.
    pub content_type: ObjectIdentifier,
    /// The content.
    pub bytes: &'a [u8],
    /// Further attributes that the signer signs.
    pub attributes: Vec<Attribute>,
    /// Whether the message contains certificates.
    pub with_certificates: bool,
}

/// A signer without its signature.
struct Part {
    attributes: Attributes,
    digest_algorithm: AlgorithmIdentifierOwned,
    signature_algorithm: AlgorithmIdentifierOwned,
    identifier: SignerIdentifier,
}

impl Unsigned {
    /// Builds the signed attributes contentType, signingTime, messageDigest and CMSAlgorithmProtection of each signer;
    /// of several, each also names the others (RFC 5752).
    pub fn new(requests: &[Request<'_>]) -> Result<Self, PkiError> {
        let part = |request| Part::new(request, ID_DATA, Vec::new());
        let mut parts = requests.iter().map(part).collect::<Result<Vec<_>, _>>()?;
        let parties: Vec<_> = parts
            .iter()
            .zip(requests)
            .map(|(part, request)| Party {
                digest: request.digest,
                digest_algorithm: &part.digest_algorithm,
                signature_algorithm: &part.signature_algorithm,
                certificate: request.signer.der(),
                attributes: &part.attributes,
            })
            .collect();
        let bound = multiple::bound(&parties).map_err(malformed)?;
        for (part, attributes) in parts.iter_mut().zip(bound) {
            part.attributes = attributes;
        }
        let certificates = Some(certificates(requests).map_err(malformed)?);
        Self::of(parts, (ID_DATA, None), certificates)
    }

    /// The same for one signer of a message that contains what is signed: `request` has its digest.
    pub(crate) fn containing(
        request: &Request<'_>,
        content: Content<'_>,
    ) -> Result<Self, PkiError> {
        let part = Part::new(request, content.content_type, content.attributes)?;
        let certificates = match content.with_certificates {
            true => Some(certificates(&[*request]).map_err(malformed)?),
            false => None,
        };
        let inside = (content.content_type, Some(content.bytes.to_vec()));
        Self::of(vec![part], inside, certificates)
    }

    fn of(
        signers: Vec<Part>,
        (content_type, content): (ObjectIdentifier, Option<Vec<u8>>),
        certificates: Option<SetOfVec<Any>>,
    ) -> Result<Self, PkiError> {
        let to_be_signed =
            signers.iter().map(|part| part.attributes.to_der()).collect::<der::Result<_>>();
        Ok(Self {
            to_be_signed: to_be_signed.map_err(malformed)?,
            signers,
            content_type,
            content,
            certificates,
            revocation: None,
            has_ocsp: false,
        })
    }

    /// Puts CRLs and OCSP responses (RFC 5940) into the message. No signature covers them, since each has its own.
    pub fn with_revocation(mut self, crls: &[Crl], ocsp: &[Response]) -> Result<Self, PkiError> {
        self.revocation = embedded::choices(crls, ocsp).map_err(malformed)?;
        self.has_ocsp = !ocsp.is_empty();
        Ok(self)
    }

    /// Adds the signatures, in the order of the requests, and returns the `ContentInfo` in DER.
    pub fn assemble(self, signatures: &[Vec<u8>]) -> Result<Vec<u8>, PkiError> {
        if signatures.len() != self.signers.len() {
            return Err(PkiError::Malformed {
                what: "CMS message",
                reason: format!("{} signers, {} signatures", self.signers.len(), signatures.len()),
            });
        }
        let build = || -> der::Result<Vec<u8>> {
            let mut digest_algorithms = SetOfVec::new();
            let mut signer_infos = SetOfVec::new();
            for (part, signature) in self.signers.into_iter().zip(signatures) {
                if !digest_algorithms.iter().any(|known| *known == part.digest_algorithm) {
                    digest_algorithms.insert(part.digest_algorithm.clone())?;
                }
                signer_infos.insert(SignerInfo {
                    version: 1,
                    sid: part.identifier,
                    digest_algorithm: part.digest_algorithm,
                    signed_attributes: Some(part.attributes),
                    signature_algorithm: part.signature_algorithm,
                    signature: OctetString::new(signature.as_slice())?,
                    unsigned_attributes: None,
                })?;
            }
            let signed_data = SignedData {
                // RFC 5652, section 5.1: version 5 for other revocation information than CRLs, 3 for other content
                // than data.
                version: match (self.has_ocsp, self.content_type) {
                    (true, _) => 5,
                    (false, ID_DATA) => 1,
                    (false, _) => 3,
                },
                digest_algorithms,
                encap_content_info: EncapsulatedContentInfo {
                    econtent_type: self.content_type,
                    econtent: match self.content {
                        Some(bytes) => Some(Any::encode_from(&OctetString::new(bytes)?)?),
                        None => None,
                    },
                },
                certificates: self.certificates,
                crls: self.revocation,
                signer_infos,
            };
            ContentInfo { content_type: ID_SIGNED_DATA, content: Any::encode_from(&signed_data)? }
                .to_der()
        };
        build().map_err(malformed)
    }
}

impl Part {
    fn new(
        request: &Request<'_>,
        content_type: ObjectIdentifier,
        further: Vec<Attribute>,
    ) -> Result<Self, PkiError> {
        let signature_algorithm = algorithm_identifier(request.algorithm)?;
        // RFC 9882, section 3.3, and RFC 5754: parameters are absent.
        let digest_algorithm =
            AlgorithmIdentifierOwned { oid: request.digest.oid, parameters: None };
        let protection = AlgorithmProtection {
            digest_algorithm: digest_algorithm.clone(),
            signature_algorithm: Some(signature_algorithm.clone()),
            mac_algorithm: None,
        };
        let time = x509_time(request.signing_time)?;
        let build = || -> der::Result<_> {
            let digest = OctetStringRef::new(request.message_digest)?;
            let mut all = vec![
                attribute(CONTENT_TYPE, &content_type)?,
                attribute(SIGNING_TIME, &time)?,
                attribute(MESSAGE_DIGEST, &digest)?,
                attribute(CMS_ALGORITHM_PROTECTION, &protection)?,
            ];
            all.extend(further);
            SetOfVec::try_from(all)
        };
        Ok(Self {
            attributes: build().map_err(malformed)?,
            digest_algorithm,
            signature_algorithm,
            identifier: SignerIdentifier::IssuerAndSerialNumber(IssuerAndSerialNumber {
                issuer: request.signer.issuer().clone(),
                serial_number: request.signer.serial_number().clone(),
            }),
        })
    }
}

/// The certificates of all signers, each once.
fn certificates(requests: &[Request<'_>]) -> der::Result<SetOfVec<Any>> {
    let mut set: SetOfVec<Any> = SetOfVec::new();
    for request in requests {
        let chain = request.chain.iter().map(Vec::as_slice);
        for der in std::iter::once(request.signer.der()).chain(chain) {
            let any = Any::from_der(der)?;
            if !set.iter().any(|known| *known == any) {
                set.insert(any)?;
            }
        }
    }
    Ok(set)
}

fn attribute(oid: ObjectIdentifier, value: &(impl Encode + der::Tagged)) -> der::Result<Attribute> {
    Ok(Attribute { oid, values: SetOfVec::try_from(vec![Any::from_der(&value.to_der()?)?])? })
}

fn malformed(error: der::Error) -> PkiError {
    PkiError::malformed("CMS message", &error)
}

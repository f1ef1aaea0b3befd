//! Parses a detached signature and verifies it against a file's digests and a trust store.
//!
//! DER is read as it is. BER (indefinite lengths, as BouncyCastle and `openssl cms -stream` write them) is decoded by
//! `rasn` and encoded again as DER, which is also the form that is signed (RFC 5652, section 5.4).

use der::asn1::{Any, ObjectIdentifier, OctetString, OctetStringRef, SetOfVec};
use der::{AnyRef, Choice, Decode, DecodeOwned, DerOrd, Encode, Sequence, ValueOrd};
use outlast_crypto::digests::Digest;
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use spki::AlgorithmIdentifierOwned;
use x509_cert::attr::Attributes;
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::time::Time;

use super::{
    AlgorithmProtection, CMS_ALGORITHM_PROTECTION, CONTENT_TYPE, ID_SIGNED_DATA, MAX_MESSAGE_LEN,
    MESSAGE_DIGEST, SIGNING_TIME,
};
use crate::PkiError;
use crate::certificate::Certificate;
use crate::path::{PathError, verify_code_signing};
use crate::pem;
use crate::time::{rfc3339, unix_time};

/// How far a signer's clock may be ahead of ours, in seconds.
pub const CLOCK_SKEW_SECONDS: i64 = 300;

/// Most signers in one message.
const MAX_SIGNERS: usize = 16;

/// Why a signature was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The bytes are not a CMS message, or only part of one.
    #[error("not a CMS signature: {0}")]
    NotCms(String),
    /// Bytes after the message, which no signature covers.
    #[error("data follows the signature")]
    TrailingData,
    /// A CMS message of another type.
    #[error("the CMS message is not SignedData (its type is {0})")]
    NotSignedData(ObjectIdentifier),
    /// SignedData without a signer, or with more than are verified.
    #[error("the message has {0} signers, and 1 to {MAX_SIGNERS} are accepted")]
    Signers(usize),
    /// A signer without signed attributes.
    #[error("the signer has no signed attributes; sign with them (the default of every tool)")]
    NoSignedAttributes,
    /// A signed attribute that must occur once is missing, repeated or malformed.
    #[error("the signed attribute {0} is missing, repeated or malformed")]
    Attribute(&'static str),
    /// An algorithm that the tables lack.
    #[error("the algorithm {0} is not supported")]
    UnsupportedAlgorithm(ObjectIdentifier),
    /// A digest that is too weak for the signature algorithm (RFC 9882, section 3.3).
    #[error("the digest {digest} is not suitable for {signature:?} (RFC 9882, section 3.3)")]
    UnsuitableDigest {
        /// Name of the digest.
        digest: &'static str,
        /// The signature algorithm.
        signature: &'static SignatureAlgorithm,
    },
    /// CMSAlgorithmProtection differs from the algorithms used.
    #[error("the algorithms were changed after signing (CMSAlgorithmProtection does not match)")]
    AlgorithmProtection,
    /// The file differs from the one that was signed.
    #[error("the file is not the one that was signed: its digest does not match")]
    DigestMismatch,
    /// The message contains content of its own that differs from the file.
    #[error("the content inside the message is not the file")]
    ContentMismatch,
    /// The signature over the attributes is wrong.
    #[error("the signature is not valid for the signer's certificate")]
    Signature,
    /// The signer's certificate is not in the message.
    #[error("the signer's certificate is not in the message; give it with --certificates")]
    NoCertificate,
    /// No time of signing to validate the chain at.
    #[error("the signature has no signing time")]
    NoSigningTime,
    /// A time of signing in the future.
    #[error("the signing time {0} is in the future")]
    FutureSigningTime(String),
    /// The certificate chain is not valid.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// The time at which the certificates must be valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValidAt {
    /// The time that the signer claims, which must not be after `now`.
    SigningTime {
        /// Seconds since 1970.
        now: i64,
    },
    /// At this time, whatever the signer claims.
    Time(i64),
}

/// What was verified of a signer.
#[derive(Debug, Clone)]
pub struct Signer {
    /// The signer's certificate.
    pub certificate: Certificate,
    /// Algorithm of the signature.
    pub algorithm: &'static SignatureAlgorithm,
    /// Digest over the file.
    pub digest: &'static Digest,
    /// Claimed time of signing, seconds since 1970.
    pub signing_time: Option<i64>,
    /// Time at which the chain was validated, seconds since 1970.
    pub valid_at: i64,
}

/// A parsed CMS message, not verified yet.
#[derive(Debug)]
pub struct SignedMessage {
    signers: Vec<SignerInfo>,
    /// All certificates in the message, in DER.
    pub certificates: Vec<Vec<u8>>,
    content: Option<Vec<u8>>,
    content_type: ObjectIdentifier,
}

impl SignedMessage {
    /// Parses a message in DER, BER or PEM of at most [`MAX_MESSAGE_LEN`] bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, VerifyError> {
        if bytes.len() > MAX_MESSAGE_LEN {
            return Err(VerifyError::NotCms(format!("it is longer than {MAX_MESSAGE_LEN} bytes")));
        }
        let ber = pem::read_cms(bytes).map_err(|error| match error {
            PkiError::Malformed { reason, .. } => VerifyError::NotCms(reason),
            other => VerifyError::NotCms(other.to_string()),
        })?;
        match Self::parse_der(&ber) {
            Err(VerifyError::NotCms(reason)) => match der_from_ber(&ber) {
                Some((_, rest)) if rest > 0 => Err(VerifyError::TrailingData),
                Some((der, _)) => Self::parse_der(&der),
                None => Err(VerifyError::NotCms(reason)),
            },
            other => other,
        }
    }

    fn parse_der(bytes: &[u8]) -> Result<Self, VerifyError> {
        let not_cms = |error: der::Error| VerifyError::NotCms(error.to_string());
        let outer = ContentInfo::from_der(bytes).map_err(not_cms)?;
        if outer.content_type != ID_SIGNED_DATA {
            return Err(VerifyError::NotSignedData(outer.content_type));
        }
        let data = outer.content.decode_as::<SignedData>().map_err(not_cms)?;
        let content = data
            .encap_content_info
            .econtent
            .map(|any| any.decode_as::<&OctetStringRef>().map(|octets| octets.as_bytes().to_vec()))
            .transpose()
            .map_err(not_cms)?;
        let certificates = data
            .certificates
            .iter()
            .flat_map(|set| set.iter())
            // Other kinds of CertificateChoices (attribute certificates) carry a context-specific tag.
            .filter(|any| der::Tagged::tag(*any) == der::Tag::Sequence)
            .map(Encode::to_der)
            .collect::<der::Result<_>>()
            .map_err(not_cms)?;
        let signers: Vec<_> = data.signer_infos.into_vec();
        if signers.is_empty() || signers.len() > MAX_SIGNERS {
            return Err(VerifyError::Signers(signers.len()));
        }
        let content_type = data.encap_content_info.econtent_type;
        Ok(Self { signers, certificates, content, content_type })
    }

    /// The digests of the file that [`SignedMessage::verify`] needs.
    pub fn digests(&self) -> Result<Vec<&'static Digest>, VerifyError> {
        let mut out: Vec<&'static Digest> = Vec::new();
        for signer in &self.signers {
            let digest = digest_row(&signer.digest_algorithm)?;
            if !out.iter().any(|known| known.oid == digest.oid) {
                out.push(digest);
            }
        }
        Ok(out)
    }

    /// Verifies every signer: digest, attributes, signature, certificate chain, and that the certificate is for code
    /// signing. `file_digests` are the file's, in the order of [`SignedMessage::digests`]; `roots` and
    /// `extra_certificates` (signers or CAs that the message does not contain) are DER.
    pub fn verify(
        &self,
        file_digests: &[Vec<u8>],
        roots: &[Vec<u8>],
        extra_certificates: &[Vec<u8>],
        valid_at: ValidAt,
    ) -> Result<Vec<Signer>, VerifyError> {
        let algorithms = self.digests()?;
        let digest_of = |row: &Digest| {
            algorithms
                .iter()
                .position(|known| known.oid == row.oid)
                .and_then(|at| file_digests.get(at))
        };
        let certificates: Vec<_> =
            self.certificates.iter().chain(extra_certificates).cloned().collect();
        self.signers
            .iter()
            .map(|signer| {
                let digest = digest_row(&signer.digest_algorithm)?;
                let file_digest = digest_of(digest).ok_or(VerifyError::DigestMismatch)?;
                if let Some(content) = &self.content
                    && digest.digest(content) != *file_digest
                {
                    return Err(VerifyError::ContentMismatch);
                }
                let certificate = signer.certificate_among(&certificates)?;
                let (algorithm, signing_time) =
                    signer.verify(&certificate, self.content_type, digest, file_digest)?;
                let at = match valid_at {
                    ValidAt::Time(at) => at,
                    ValidAt::SigningTime { now } => {
                        let time = signing_time.ok_or(VerifyError::NoSigningTime)?;
                        if time > now.saturating_add(CLOCK_SKEW_SECONDS) {
                            return Err(VerifyError::FutureSigningTime(rfc3339(time)));
                        }
                        time
                    }
                };
                verify_code_signing(&certificate, &certificates, roots, at)?;
                Ok(Signer { certificate, algorithm, digest, signing_time, valid_at: at })
            })
            .collect()
    }

    /// The signers' own claims, for display: nothing is verified.
    pub fn claims(&self) -> Vec<Claim> {
        self.signers
            .iter()
            .map(|signer| Claim {
                certificate: signer.certificate_among(&self.certificates).ok(),
                digest: signer.digest_algorithm.oid,
                signature: signer.signature_algorithm.oid,
                signature_len: signer.signature.as_bytes().len(),
                signing_time: signer.signing_time().ok().flatten(),
                message_digest: signer
                    .attribute::<OctetString>(MESSAGE_DIGEST, "messageDigest")
                    .map(|octets| octets.as_bytes().to_vec())
                    .ok(),
            })
            .collect()
    }

    /// The content, if it is inside the message.
    pub fn content(&self) -> Option<&[u8]> {
        self.content.as_deref()
    }
}

/// The claims of a signer.
#[derive(Debug, Clone)]
pub struct Claim {
    /// The certificate in the message that the signer names.
    pub certificate: Option<Certificate>,
    /// Digest algorithm.
    pub digest: ObjectIdentifier,
    /// Signature algorithm.
    pub signature: ObjectIdentifier,
    /// Length of the signature in bytes.
    pub signature_len: usize,
    /// Claimed time of signing, seconds since 1970.
    pub signing_time: Option<i64>,
    /// Digest of the content.
    pub message_digest: Option<Vec<u8>>,
}

// The structures of RFC 5652. Certificates stay raw bytes, because their signatures are over exactly these.

#[derive(Sequence)]
struct ContentInfo {
    content_type: ObjectIdentifier,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT")]
    content: Any,
}

#[derive(Sequence)]
struct EncapsulatedContentInfo {
    econtent_type: ObjectIdentifier,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    econtent: Option<Any>,
}

#[derive(Sequence)]
struct SignedData {
    // Ignored: every version is parsed alike.
    version: u8,
    // Ignored: each signer names its own digest.
    digest_algorithms: SetOfVec<AlgorithmIdentifierOwned>,
    encap_content_info: EncapsulatedContentInfo,
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    certificates: Option<SetOfVec<Any>>,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    // Ignored: revocation is not checked by what is inside the message.
    crls: Option<SetOfVec<Any>>,
    signer_infos: SetOfVec<SignerInfo>,
}

#[derive(Clone, Debug, PartialEq, Eq, Sequence, ValueOrd)]
struct IssuerAndSerialNumber {
    issuer: Name,
    serial_number: SerialNumber,
}

#[derive(Clone, Debug, PartialEq, Eq, Choice)]
enum SignerIdentifier {
    IssuerAndSerialNumber(IssuerAndSerialNumber),
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT")]
    SubjectKeyIdentifier(OctetString),
}

impl ValueOrd for SignerIdentifier {
    fn value_cmp(&self, other: &Self) -> der::Result<std::cmp::Ordering> {
        self.to_der()?.der_cmp(&other.to_der()?)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Sequence, ValueOrd)]
struct SignerInfo {
    version: u8,
    sid: SignerIdentifier,
    digest_algorithm: AlgorithmIdentifierOwned,
    #[asn1(context_specific = "0", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    signed_attributes: Option<Attributes>,
    signature_algorithm: AlgorithmIdentifierOwned,
    signature: OctetString,
    #[asn1(context_specific = "1", tag_mode = "IMPLICIT", constructed = "true", optional = "true")]
    unsigned_attributes: Option<Attributes>,
}

impl SignerInfo {
    /// The certificate that the signer names, among `certificates` (DER).
    fn certificate_among(&self, certificates: &[Vec<u8>]) -> Result<Certificate, VerifyError> {
        certificates
            .iter()
            .filter_map(|der| Certificate::parse(der).ok())
            .find(|certificate| match &self.sid {
                SignerIdentifier::IssuerAndSerialNumber(id) => {
                    certificate.issuer() == &id.issuer
                        && certificate.serial_number() == &id.serial_number
                }
                SignerIdentifier::SubjectKeyIdentifier(id) => {
                    certificate.subject_key_identifier().as_deref() == Some(id.as_bytes())
                }
            })
            .ok_or(VerifyError::NoCertificate)
    }

    /// The one value of an attribute that must be there exactly once (RFC 5652, section 11).
    fn attribute<T: DecodeOwned>(
        &self,
        oid: ObjectIdentifier,
        name: &'static str,
    ) -> Result<T, VerifyError> {
        self.optional_attribute(oid, name)?.ok_or(VerifyError::Attribute(name))
    }

    fn optional_attribute<T: DecodeOwned>(
        &self,
        oid: ObjectIdentifier,
        name: &'static str,
    ) -> Result<Option<T>, VerifyError> {
        let wrong = || VerifyError::Attribute(name);
        let attributes = self.signed_attributes.as_ref().ok_or(VerifyError::NoSignedAttributes)?;
        let mut found = attributes.iter().filter(|attribute| attribute.oid == oid);
        let Some(attribute) = found.next() else { return Ok(None) };
        if found.next().is_some() || attribute.values.len() != 1 {
            return Err(wrong());
        }
        let value = attribute.values.get(0).ok_or_else(wrong)?;
        let der = value.to_der().map_err(|_| wrong())?;
        T::from_der(&der).map(Some).map_err(|_| wrong())
    }

    fn signing_time(&self) -> Result<Option<i64>, VerifyError> {
        Ok(self
            .optional_attribute::<Time>(SIGNING_TIME, "signingTime")?
            .map(|time| unix_time(&time)))
    }

    /// Verifies attributes, digest and signature; not the certificate.
    fn verify(
        &self,
        certificate: &Certificate,
        content_type: ObjectIdentifier,
        digest: &'static Digest,
        file_digest: &[u8],
    ) -> Result<(&'static SignatureAlgorithm, Option<i64>), VerifyError> {
        let oid = self.signature_algorithm.oid;
        let algorithm = signature_row(oid, digest)?;
        if !algorithm.cms_digests.contains(&digest.name) {
            return Err(VerifyError::UnsuitableDigest {
                digest: digest.name,
                signature: algorithm,
            });
        }
        // RFC 5652, section 5.3: it must equal the encapContentInfo's type.
        if self.attribute::<ObjectIdentifier>(CONTENT_TYPE, "contentType")? != content_type {
            return Err(VerifyError::Attribute("contentType"));
        }
        let signed_digest = self.attribute::<OctetString>(MESSAGE_DIGEST, "messageDigest")?;
        let signing_time = self.signing_time()?;
        if let Some(protection) = self.optional_attribute::<AlgorithmProtection>(
            CMS_ALGORITHM_PROTECTION,
            "CMSAlgorithmProtection",
        )? {
            let same = protection.digest_algorithm.oid == self.digest_algorithm.oid
                && protection.signature_algorithm.as_ref().map(|id| id.oid) == Some(oid)
                && protection.mac_algorithm.is_none();
            if !same {
                return Err(VerifyError::AlgorithmProtection);
            }
        }
        let attributes = self.signed_attributes.as_ref().ok_or(VerifyError::NoSignedAttributes)?;
        let signed = attributes.to_der().map_err(|error| VerifyError::NotCms(error.to_string()))?;
        let spki = certificate.public_key().map_err(|_| VerifyError::NoCertificate)?;
        algorithm
            .verify(&spki, Message::Raw(&signed), self.signature.as_bytes())
            .map_err(|_| VerifyError::Signature)?;
        if signed_digest.as_bytes() != file_digest {
            return Err(VerifyError::DigestMismatch);
        }
        Ok((algorithm, signing_time))
    }
}

fn digest_row(id: &AlgorithmIdentifierOwned) -> Result<&'static Digest, VerifyError> {
    Digest::by_oid(id.oid).ok_or(VerifyError::UnsupportedAlgorithm(id.oid))
}

/// The signature row for an OID. In CMS, RSA may be named by its key OID, the hash being the digest's
/// (RFC 3370, section 3.2).
fn signature_row(
    oid: ObjectIdentifier,
    digest: &Digest,
) -> Result<&'static SignatureAlgorithm, VerifyError> {
    use outlast_crypto::signatures as rows;
    if oid == const_oid::db::rfc5912::RSA_ENCRYPTION {
        return [&rows::RSA_PKCS1_SHA_256, &rows::RSA_PKCS1_SHA_384, &rows::RSA_PKCS1_SHA_512]
            .into_iter()
            .find(|row| row.digest == Some(digest.name))
            .ok_or(VerifyError::UnsupportedAlgorithm(oid));
    }
    SignatureAlgorithm::by_oid(oid).ok_or(VerifyError::UnsupportedAlgorithm(oid))
}

/// BER decoded and encoded again as DER, and how many bytes follow it; `None` if it is not CMS SignedData.
fn der_from_ber(ber: &[u8]) -> Option<(Vec<u8>, usize)> {
    let (outer, rest): (rasn_cms::ContentInfo, _) = rasn::ber::decode_with_remainder(ber).ok()?;
    let (data, inside): (rasn_cms::SignedData, _) =
        rasn::ber::decode_with_remainder(outer.content.as_bytes()).ok()?;
    let inner = rasn::der::encode(&data).ok()?;
    let content_type = {
        let arcs: Vec<String> = outer.content_type.iter().map(ToString::to_string).collect();
        ObjectIdentifier::new(&arcs.join(".")).ok()?
    };
    let content = Any::from(AnyRef::try_from(inner.as_slice()).ok()?);
    let der = cms::content_info::ContentInfo { content_type, content }.to_der().ok()?;
    Some((der, rest.len() + inside.len()))
}

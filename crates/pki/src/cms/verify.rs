//! Parses a signature and verifies it against a file's digests and a trust store.
//!
//! DER is read as it is. BER (indefinite lengths, as BouncyCastle and `openssl cms -stream` write them) is decoded by
//! `rasn` and encoded again as DER, which is also the form that is signed (RFC 5652, section 5.4).

mod alone;
mod pinned;

use std::borrow::Cow;

use der::asn1::{ObjectIdentifier, OctetString, OctetStringRef};
use der::{Decode, DecodeOwned, Encode};
use outlast_crypto::digests::Digest;
use outlast_crypto::signatures::{Message, SignatureAlgorithm};
use spki::AlgorithmIdentifierOwned;
use x509_cert::time::Time as X509Time;

use super::embedded::Embedded;
use super::limits::{self, Excess, MAX_ATTRIBUTES, MAX_SIGNERS, MAX_VALUES};
use super::message::{ContentInfo, SignedData, SignerIdentifier, SignerInfo, der_from_ber};
use super::multiple::{self, Fault};
use super::{
    AlgorithmProtection, CMS_ALGORITHM_PROTECTION, CONTENT_TYPE, ID_SIGNED_DATA, MAX_MESSAGE_LEN,
    MESSAGE_DIGEST, SIGNING_TIME,
};
use crate::PkiError;
use crate::certificate::Certificate;
use crate::crl::Crl;
use crate::ocsp::Response;
use crate::path::{Chain, PathError, SignerCheck, verify_signer};
use crate::pem;
use crate::seen::{MAX_MESSAGE_SIGNATURES, Seen};
use crate::templates::CODE_SIGNING;
use crate::time::{rfc3339, unix_time};
use crate::validate::{Proof, Revocation, SignatureTime, Standing};

/// How far a signer's clock may be ahead of ours, in seconds.
pub const CLOCK_SKEW_SECONDS: i64 = 300;

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
    /// A signer with more attributes, or an attribute with more values, than are parsed.
    #[error(
        "a signer has more than {MAX_ATTRIBUTES} attributes of a kind, or an attribute more than {MAX_VALUES} values"
    )]
    TooManyAttributes,
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
    /// A signer names another one that is not in the message (RFC 5752).
    #[error(
        "a signature is missing: the message was signed with {algorithm}, too, and that signature is not there as \
         it was made (RFC 5752)"
    )]
    SignerMissing {
        /// Algorithm of the missing signature.
        algorithm: String,
    },
    /// The signer's certificate is not in the message.
    #[error("the signer's certificate is not in the message; give it with --certificates")]
    NoCertificate,
    /// No time of signing to validate the chain at.
    #[error("the signature has no signing time")]
    NoSigningTime,
    /// A time of signing in the future.
    #[error("the signing time {0} is in the future")]
    FutureSigningTime(String),
    /// A timestamp that states a time in the future.
    #[error("the signature has a timestamp of {0}, which is in the future")]
    FutureTimestamp(String),
    /// A message that takes too long to verify.
    #[error(
        "verifying it takes more than {MAX_MESSAGE_SIGNATURES} signatures, with those of its timestamps, evidence record, \
         certificates, CRLs and OCSP responses"
    )]
    TooManySignatures,
    /// The certificate chain is not valid.
    #[error(transparent)]
    Path(#[from] PathError),
}

/// When a signature was made, and who says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Time {
    /// Seconds since 1970.
    pub at: i64,
    /// Who says so.
    pub source: TimeSource,
}

/// Who says when a signature was made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeSource {
    /// The signer, in the signed attribute signingTime. A thief of the key can claim any time.
    Signer,
    /// The verifier, who knows that the signature existed then.
    Verifier,
    /// Nobody: the signature is here now, and its format has no time.
    Present,
    /// A time-stamping authority, in a token in the message (RFC 3161).
    Timestamp,
    /// A time-stamping authority, in an evidence record (RFC 4998).
    EvidenceRecord,
}

impl From<Excess> for VerifyError {
    fn from(excess: Excess) -> Self {
        match excess {
            Excess::NotDer(error) => Self::NotCms(error.to_string()),
            Excess::Signers(count) => Self::Signers(count),
            Excess::Attributes => Self::TooManyAttributes,
        }
    }
}

impl TimeSource {
    /// Whether somebody else than the signer says so.
    pub fn is_trusted(&self) -> bool {
        !matches!(self, Self::Signer | Self::Present)
    }

    /// Whether it is certain that the signature existed then, so that later revocations do not touch it.
    pub fn proves_existence(&self) -> bool {
        !matches!(self, Self::Signer)
    }

    /// A name for people and programs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Signer => "signer's claim",
            Self::Verifier => "verifier",
            Self::Present => "present",
            Self::Timestamp => "timestamp",
            Self::EvidenceRecord => "evidence record",
        }
    }
}

/// What a message is verified with.
#[derive(Debug, Clone, Default)]
pub struct Verifier<'a> {
    /// Trusted roots, in DER.
    pub roots: &'a [Vec<u8>],
    /// What the signers' certificates must be for (extended key usage); code signing if there is none.
    pub purpose: Option<ObjectIdentifier>,
    /// Certificates of signers and CAs that the message may lack, in DER.
    pub certificates: &'a [Vec<u8>],
    /// The verifier's clock, seconds since 1970.
    pub now: i64,
    /// When the signatures were made, as a trusted source says; without one, each signer's own claim counts.
    pub time: Option<Time>,
    /// Whether revocation is checked, by what is in the message and by `crls` and `ocsp`.
    pub revocation: Revocation,
    /// CRLs that the verifier has.
    pub crls: &'a [Crl],
    /// OCSP responses that the verifier has.
    pub ocsp: &'a [Response],
    /// Signatures of certificates, CRLs and OCSP responses that need not be verified again, and how many more may be verified
    /// for the message ([`Seen::for_message`]).
    pub seen: Option<&'a Seen>,
}

/// Evidence of revocation, and where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// In the message.
    Embedded(Proof),
    /// Among the verifier's, with its index there.
    Given(Proof),
}

/// What is known about the revocation of a certificate of a signer's chain.
#[derive(Debug, Clone)]
pub struct Status {
    /// The certificate.
    pub certificate: Certificate,
    /// What is known.
    pub standing: Standing,
    /// The evidence, if the status is known.
    pub evidence: Option<Evidence>,
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
    /// The time for which chain and revocation were checked.
    pub time: Time,
    /// From the signer's certificate to the root.
    pub chain: Vec<Certificate>,
    /// Revocation of each certificate below the root; empty if it was not checked.
    pub statuses: Vec<Status>,
}

/// A signer whose signature is right. Whether its certificate can be trusted is another question.
#[derive(Debug, Clone)]
pub struct Authentic {
    /// The signer's certificate.
    pub certificate: Certificate,
    /// Algorithm of the signature.
    pub algorithm: &'static SignatureAlgorithm,
    /// Digest over the file.
    pub digest: &'static Digest,
    /// Claimed time of signing, seconds since 1970.
    pub signing_time: Option<i64>,
    /// The signature, which timestamps are over.
    pub signature: Vec<u8>,
    /// Timestamps of the signature (RFC 3161, appendix A), in DER; not verified.
    pub tokens: Vec<Vec<u8>>,
}

/// A parsed CMS message, not verified yet.
#[derive(Debug)]
pub struct SignedMessage {
    signers: Vec<SignerInfo>,
    /// All certificates in the message, in DER.
    pub certificates: Vec<Vec<u8>>,
    /// The CRLs and OCSP responses in the message.
    pub embedded: Embedded,
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

    /// The certificates that come with signatures in another format, such as DSSE: a message without signers, which
    /// serves [`SignedMessage::trust`].
    pub fn of_certificates(certificates: Vec<Vec<u8>>) -> Self {
        Self {
            signers: Vec::new(),
            certificates,
            embedded: Embedded::read(None),
            content: None,
            content_type: super::ID_DATA,
        }
    }

    fn parse_der(bytes: &[u8]) -> Result<Self, VerifyError> {
        let not_cms = |error: der::Error| VerifyError::NotCms(error.to_string());
        let outer = ContentInfo::from_der(bytes).map_err(not_cms)?;
        if outer.content_type != ID_SIGNED_DATA {
            return Err(VerifyError::NotSignedData(outer.content_type));
        }
        limits::check(outer.content.to_ref())?;
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
        let content_type = data.encap_content_info.econtent_type;
        let embedded = Embedded::read(data.crls.as_ref());
        Ok(Self { signers, certificates, embedded, content, content_type })
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

    /// Verifies every signer: digest, attributes, signature, certificate chain, revocation, that the certificate is for
    /// code signing, and that no signer is missing. `file_digests` are the file's, in the order of
    /// [`SignedMessage::digests`].
    pub fn verify(
        &self,
        file_digests: &[Vec<u8>],
        verifier: &Verifier<'_>,
    ) -> Result<Vec<Signer>, VerifyError> {
        let authentic = self.authenticate(file_digests, verifier.certificates)?;
        authentic.iter().map(|signer| self.trust(signer, verifier)).collect()
    }

    /// The part of [`SignedMessage::verify`] that needs no trust: every signature belongs to the certificate that its
    /// signer names and to the file, and none is missing. Says nothing about whose certificates they are.
    pub fn authenticate(
        &self,
        file_digests: &[Vec<u8>],
        certificates: &[Vec<u8>],
    ) -> Result<Vec<Authentic>, VerifyError> {
        let algorithms = self.digests()?;
        let certificates: Vec<_> = self.certificates.iter().chain(certificates).cloned().collect();
        self.none_is_missing(&certificates)?;
        let mut out = Vec::with_capacity(self.signers.len());
        for signer in &self.signers {
            let digest = digest_row(&signer.digest_algorithm)?;
            let file_digest = algorithms
                .iter()
                .position(|known| known.oid == digest.oid)
                .and_then(|at| file_digests.get(at))
                .ok_or(VerifyError::DigestMismatch)?;
            if let Some(content) = &self.content
                && digest.digest(content) != *file_digest
            {
                return Err(VerifyError::ContentMismatch);
            }
            let certificate = signer.certificate_among(&certificates)?;
            let (algorithm, signing_time) =
                signer.verify(&certificate, self.content_type, digest, file_digest)?;
            out.push(Authentic {
                certificate,
                algorithm,
                digest,
                signing_time,
                signature: signer.signature.as_bytes().to_vec(),
                tokens: signer.tokens(),
            });
        }
        Ok(out)
    }

    /// Refuses a message in which a signer names another one that is not there. `certificates` are those of the signers,
    /// among others, in DER.
    fn none_is_missing(&self, certificates: &[Vec<u8>]) -> Result<(), VerifyError> {
        let own = |signer: &SignerInfo| {
            signer.certificate_among(certificates).ok().map(|found| found.der().to_vec())
        };
        let own: Vec<_> = self.signers.iter().map(own).collect();
        multiple::check(&self.signers, &own).map_err(|fault| match fault {
            Fault::Malformed => VerifyError::Attribute("multipleSignatures"),
            Fault::Missing(oid) => {
                VerifyError::SignerMissing { algorithm: crate::describe::algorithm_name(oid) }
            }
        })
    }

    /// Checks a certificate at `time`, with the evidence of the message and that of the verifier.
    fn with_check<T>(
        &self,
        time: &Time,
        purpose: ObjectIdentifier,
        verifier: &Verifier<'_>,
        check: impl FnOnce(&SignerCheck<'_>) -> T,
    ) -> T {
        check(&SignerCheck {
            at: time.at,
            purpose,
            signature: SignatureTime {
                is_trusted: time.source.proves_existence(),
                now: verifier.now,
            },
            revocation: verifier.revocation,
            crls: &joined(&self.embedded.crls, verifier.crls),
            ocsp: &joined(&self.embedded.ocsp, verifier.ocsp),
            seen: verifier.seen,
        })
    }

    /// The other part: the signer's chain, its revocation, and what its certificate is for.
    pub fn trust(
        &self,
        signer: &Authentic,
        verifier: &Verifier<'_>,
    ) -> Result<Signer, VerifyError> {
        let Authentic { certificate, algorithm, digest, signing_time, .. } = signer.clone();
        let certificates: Vec<_> =
            self.certificates.iter().chain(verifier.certificates).cloned().collect();
        let time = verifier.time_of(signing_time)?;
        let purpose = verifier.purpose.unwrap_or(CODE_SIGNING);
        let found = self.with_check(&time, purpose, verifier, |check| {
            verify_signer(&certificate, &certificates, verifier.roots, check)
        });
        let Chain { path: chain, standings } =
            found.map_err(|error| match Seen::is_used_up(verifier.seen) {
                true => VerifyError::TooManySignatures,
                false => error.into(),
            })?;
        let statuses = chain
            .iter()
            .zip(standings)
            .map(|(certificate, standing)| Status {
                certificate: certificate.clone(),
                evidence: self.evidence(&standing),
                standing,
            })
            .collect();
        Ok(Signer { certificate, algorithm, digest, signing_time, time, chain, statuses })
    }

    /// Where the evidence was: the message's own comes first among what is checked.
    fn evidence(&self, standing: &Standing) -> Option<Evidence> {
        let Standing::Known { by, .. } = standing else { return None };
        let (own, index) = match by {
            Proof::Crl(index) => (self.embedded.crls.len(), *index),
            Proof::Ocsp(index) => (self.embedded.ocsp.len(), *index),
        };
        Some(match (index.checked_sub(own), by) {
            (None, proof) => Evidence::Embedded(*proof),
            (Some(index), Proof::Crl(_)) => Evidence::Given(Proof::Crl(index)),
            (Some(index), Proof::Ocsp(_)) => Evidence::Given(Proof::Ocsp(index)),
        })
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
                value: signer.signature.as_bytes().to_vec(),
                tokens: signer.tokens(),
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

    /// Type of the content.
    pub fn content_type(&self) -> ObjectIdentifier {
        self.content_type
    }

    /// How many signers it has; at least one.
    pub fn signers(&self) -> usize {
        self.signers.len()
    }

    /// The value of an attribute that the signer at `index` signed, if there is one; `name` is for the error.
    pub(crate) fn signed_attribute<T: DecodeOwned>(
        &self,
        index: usize,
        oid: ObjectIdentifier,
        name: &'static str,
    ) -> Result<Option<T>, VerifyError> {
        self.signers.get(index).map_or(Ok(None), |signer| signer.optional_attribute(oid, name))
    }
}

impl Verifier<'_> {
    /// The time for which a signer's chain is checked, given its claim.
    pub fn time_of(&self, signing_time: Option<i64>) -> Result<Time, VerifyError> {
        if let Some(time) = &self.time {
            return Ok(time.clone());
        }
        let at = signing_time.ok_or(VerifyError::NoSigningTime)?;
        if at > self.now.saturating_add(CLOCK_SKEW_SECONDS) {
            return Err(VerifyError::FutureSigningTime(rfc3339(at)));
        }
        Ok(Time { at, source: TimeSource::Signer })
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
    /// The signature, which timestamps are over.
    pub value: Vec<u8>,
    /// Timestamps of the signature, in DER.
    pub tokens: Vec<Vec<u8>>,
    /// Claimed time of signing, seconds since 1970.
    pub signing_time: Option<i64>,
    /// Digest of the content.
    pub message_digest: Option<Vec<u8>>,
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
            .optional_attribute::<X509Time>(SIGNING_TIME, "signingTime")?
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

/// Both lists in one; a long list of the verifier's alone is not copied.
fn joined<'a, T: Clone>(own: &[T], given: &'a [T]) -> Cow<'a, [T]> {
    match own {
        [] => Cow::Borrowed(given),
        own => own.iter().chain(given).cloned().collect(),
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

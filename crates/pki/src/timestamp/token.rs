//! Parses tokens and verifies them (RFC 3161, section 2.4.2).

use const_oid::ObjectIdentifier;
use der::{Decode, Encode};
use outlast_crypto::digests::Digest;
use outlast_crypto::signatures::SignatureAlgorithm;

use super::{
    Accuracy, Imprint, MAX_RESPONSE_LEN, MAX_SERIAL_LEN, Nonce, Request, Response, TST_INFO, asn1,
    gen_time,
};
use crate::certificate::Certificate;
use crate::cms::ess::{
    SIGNING_CERTIFICATE, SIGNING_CERTIFICATE_V2, SigningCertificate, SigningCertificateV2,
};
use crate::cms::verify::{
    Authentic, CLOCK_SKEW_SECONDS, SignedMessage, Status, Time, TimeSource, Verifier, VerifyError,
};
use crate::crl::{Crl, read::significant};
use crate::general_name::GeneralName;
use crate::ocsp;
use crate::seen::Seen;
use crate::templates::TIME_STAMPING;
use crate::time::rfc3339;
use crate::validate::Revocation;
use crate::{PkiError, pem};

/// Why a token is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimestampError {
    /// The bytes are neither a token nor a response.
    #[error("not a timestamp: {0}")]
    Malformed(String),
    /// A response without a token; what the authority says.
    #[error("the time-stamping authority refused: {0}")]
    Refused(String),
    /// RFC 3161 allows one signer only.
    #[error("the timestamp has {0} signers instead of one")]
    Signers(usize),
    /// A digest that is too weak or that the tables lack.
    #[error("the timestamp is over a digest that is not accepted ({0})")]
    Digest(ObjectIdentifier),
    /// It stamps something else.
    #[error("the timestamp is for other data: its message imprint does not match")]
    OtherData,
    /// The imprint of the data was computed with another algorithm.
    #[error("the timestamp is over a {found} digest, and the data's was computed with {given}")]
    OtherDigest {
        /// Name of the token's.
        found: &'static str,
        /// Name of the caller's.
        given: &'static str,
    },
    /// Its nonce is not the request's: it may be the answer to an older request.
    #[error("the timestamp's nonce is not the request's: it answers another request")]
    Nonce,
    /// A policy that was not asked for.
    #[error("the timestamp is under the policy {0}, which is not accepted")]
    Policy(ObjectIdentifier),
    /// An extension that must be understood.
    #[error("the timestamp has the unknown critical extension {0}")]
    Extension(ObjectIdentifier),
    /// The signed attributes name no certificate, or another one.
    #[error(
        "the timestamp does not name its signer's certificate: {0} (RFC 5816, signingCertificateV2)"
    )]
    Certificate(&'static str),
    /// The name of the authority is not one of its certificate's.
    #[error("the timestamp names an authority that its certificate does not: {0}")]
    Authority(String),
    /// The time is in the future.
    #[error("the time of the timestamp, {0}, is in the future")]
    Future(String),
    /// The certificate was not valid when another token says that this one existed.
    #[error("the timestamp's own time, {0}, is later than the time by which it is known to exist")]
    Late(String),
    /// Signature, certificates or revocation.
    #[error("the timestamp cannot be accepted: {0}")]
    Message(VerifyError),
}

/// A parsed token, not verified yet.
#[derive(Debug)]
pub struct Token {
    message: SignedMessage,
    der: Vec<u8>,
    imprint: Imprint,
    policy: ObjectIdentifier,
    serial: Vec<u8>,
    time_ms: i64,
    accuracy: Option<Accuracy>,
    ordering: bool,
    nonce: Option<Nonce>,
    tsa: Option<GeneralName>,
}

/// What a token is verified with.
#[derive(Debug, Clone, Default)]
pub struct Trust<'a> {
    /// Trusted roots, in DER.
    pub roots: &'a [Vec<u8>],
    /// Certificates of authorities and CAs that the token may lack, in DER.
    pub certificates: &'a [Vec<u8>],
    /// The verifier's clock, seconds since 1970.
    pub now: i64,
    /// When the token is known to have existed, seconds since 1970, as another token proves. Its certificate is then
    /// judged at that time, and a later revocation does not touch it whatever its reason. Without, only the authority
    /// itself says when it signed, so that a revocation for a compromise of its key ends all its tokens (RFC 3161,
    /// section 4).
    pub existed_at: Option<i64>,
    /// The policies that are accepted; any if there are none.
    pub policies: &'a [ObjectIdentifier],
    /// The nonce of the request, if the token is to answer one.
    pub nonce: Option<&'a Nonce>,
    /// Whether revocation is checked, by what is in the token and by `crls` and `ocsp`.
    pub revocation: Revocation,
    /// CRLs that the verifier has.
    pub crls: &'a [Crl],
    /// OCSP responses that the verifier has.
    pub ocsp: &'a [ocsp::Response],
    /// Signatures of certificates, CRLs and OCSP responses that need not be verified again.
    pub seen: Option<&'a Seen>,
}

/// What was verified of a token.
#[derive(Debug, Clone)]
pub struct Verified {
    /// The time, milliseconds since 1970.
    pub time_ms: i64,
    /// How far that may be off, if the authority says so.
    pub accuracy: Option<Accuracy>,
    /// Serial number, big-endian without leading zeros.
    pub serial: Vec<u8>,
    /// Policy.
    pub policy: ObjectIdentifier,
    /// Whether all tokens of the authority can be ordered by their times.
    pub ordering: bool,
    /// The authority's certificate.
    pub certificate: Certificate,
    /// Algorithm of the signature.
    pub algorithm: &'static SignatureAlgorithm,
    /// Digest over the content.
    pub digest: &'static Digest,
    /// From the authority's certificate to the root.
    pub chain: Vec<Certificate>,
    /// Revocation of each certificate below the root; empty if it was not checked.
    pub statuses: Vec<Status>,
}

impl Token {
    /// Parses a token in DER, BER or PEM of at most [`MAX_RESPONSE_LEN`] bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, TimestampError> {
        if bytes.len() > MAX_RESPONSE_LEN {
            return Err(wrong(format!("it is longer than {MAX_RESPONSE_LEN} bytes")));
        }
        let message = SignedMessage::parse(bytes).map_err(|error| match error {
            VerifyError::NotCms(reason) => wrong(reason),
            other => TimestampError::Message(other),
        })?;
        if message.content_type() != TST_INFO {
            return Err(wrong(format!("its content is of type {}", message.content_type())));
        }
        if message.signers() != 1 {
            return Err(TimestampError::Signers(message.signers()));
        }
        let content = message.content().ok_or_else(|| wrong("it has no content".into()))?;
        let info = asn1::TstInfo::from_der(content)
            .map_err(|error| wrong(format!("its content is not a TSTInfo: {error}")))?;
        if info.version.as_bytes() != [1] {
            return Err(wrong("only version 1 of tokens exists".into()));
        }
        let unknown = |extension: &&x509_cert::ext::Extension| extension.critical;
        if let Some(extension) = info.extensions.iter().flatten().find(unknown) {
            return Err(TimestampError::Extension(extension.extn_id));
        }
        let imprint =
            Imprint::read(&info.message_imprint).map_err(TimestampError::Digest)?.ok_or_else(
                || wrong("its message imprint does not have the algorithm's form".into()),
            )?;
        let nonce = match &info.nonce {
            Some(number) => {
                Some(Nonce::read(number).ok_or_else(|| wrong("its nonce is too long".into()))?)
            }
            None => None,
        };
        let serial = significant(info.serial_number.as_bytes());
        if serial.len() > MAX_SERIAL_LEN {
            return Err(wrong(format!("its serial number exceeds {MAX_SERIAL_LEN} bytes")));
        }
        let accuracy = match &info.accuracy {
            Some(accuracy) => {
                Some(accuracy.value().ok_or_else(|| wrong("its accuracy is out of range".into()))?)
            }
            None => None,
        };
        let time_ms = gen_time::read(&info.gen_time)
            .ok_or_else(|| wrong("its time is not a GeneralizedTime of RFC 3161".into()))?;
        let tsa = match &info.tsa {
            Some(any) => {
                let der = any.to_der().map_err(|error| wrong(error.to_string()))?;
                let name = GeneralName::from_der(&der);
                Some(name.map_err(|error: PkiError| wrong(error.to_string()))?)
            }
            None => None,
        };
        Ok(Self {
            der: pem::read_cms(bytes).unwrap_or_else(|_| bytes.to_vec()),
            imprint,
            policy: info.policy,
            serial: serial.to_vec(),
            time_ms,
            accuracy,
            ordering: info.ordering,
            nonce,
            tsa,
            message,
        })
    }

    /// Parses a response with a token, or a token alone: what authorities send, and what `openssl ts -reply -token_out`
    /// writes.
    pub fn parse_response(bytes: &[u8]) -> Result<Self, TimestampError> {
        match Response::parse(bytes) {
            Ok(response) => match &response.token {
                Some(token) => Self::parse(token),
                None => Err(TimestampError::Refused(response.explanation())),
            },
            Err(_) => Self::parse(bytes),
        }
    }

    /// The token as it was parsed, in DER or BER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// What it stamps: the data's digest must be computed with this one's algorithm. Not verified.
    pub fn imprint(&self) -> &Imprint {
        &self.imprint
    }

    /// Its time, milliseconds since 1970. Not verified.
    pub fn time_ms(&self) -> i64 {
        self.time_ms
    }

    /// How far its time may be off. Not verified.
    pub fn accuracy(&self) -> Option<Accuracy> {
        self.accuracy
    }

    /// Its policy. Not verified.
    pub fn policy(&self) -> ObjectIdentifier {
        self.policy
    }

    /// Its serial number, big-endian without leading zeros. Not verified.
    pub fn serial(&self) -> &[u8] {
        &self.serial
    }

    /// Its nonce. Not verified.
    pub fn nonce(&self) -> Option<&Nonce> {
        self.nonce.as_ref()
    }

    /// The certificates in it, in DER. Not verified.
    pub fn certificates(&self) -> &[Vec<u8>] {
        &self.message.certificates
    }

    /// Whether it is what `request` asked for: the same imprint and nonce, the policy, and certificates if they were
    /// asked for. A client checks this first when it receives a token. It verifies no signature.
    pub fn answers(&self, request: &Request) -> Result<(), TimestampError> {
        self.is_for(&request.imprint)?;
        if self.nonce != request.nonce {
            return Err(TimestampError::Nonce);
        }
        if request.policy.is_some_and(|policy| policy != self.policy) {
            return Err(TimestampError::Policy(self.policy));
        }
        if request.wants_certificates && self.message.certificates.is_empty() {
            return Err(TimestampError::Message(VerifyError::NoCertificate));
        }
        Ok(())
    }

    fn is_for(&self, imprint: &Imprint) -> Result<(), TimestampError> {
        if imprint.digest.oid != self.imprint.digest.oid {
            return Err(TimestampError::OtherDigest {
                found: self.imprint.digest.name,
                given: imprint.digest.name,
            });
        }
        if *imprint != self.imprint {
            return Err(TimestampError::OtherData);
        }
        Ok(())
    }

    /// Verifies the signature, that it is by the certificate that the token names, and that the token stamps the data
    /// with this imprint. Says nothing about whose certificate it is.
    pub fn authenticate(
        &self,
        imprint: &Imprint,
        certificates: &[Vec<u8>],
    ) -> Result<Authentic, TimestampError> {
        self.is_for(imprint)?;
        let message = &self.message;
        let content = message.content().unwrap_or_default();
        let digests = message.digests().map_err(TimestampError::Message)?;
        let digests: Vec<_> = digests.iter().map(|digest| digest.digest(content)).collect();
        let signers =
            message.authenticate(&digests, certificates).map_err(TimestampError::Message)?;
        let signer =
            signers.into_iter().next().ok_or_else(|| TimestampError::Signers(message.signers()))?;
        self.names(&signer.certificate)?;
        Ok(signer)
    }

    /// Verifies all that RFC 3161 asks for: [`Token::authenticate`], the nonce and the policy, and that the certificate
    /// is one for time stamping, valid at the time of the token under one of the trusted roots.
    pub fn verify(&self, imprint: &Imprint, trust: &Trust<'_>) -> Result<Verified, TimestampError> {
        self.trust_signer(&self.authenticate(imprint, trust.certificates)?, trust)
    }

    /// The rest of [`Token::verify`], after [`Token::authenticate`] has found the signer.
    pub(crate) fn trust_signer(
        &self,
        signer: &Authentic,
        trust: &Trust<'_>,
    ) -> Result<Verified, TimestampError> {
        if trust.nonce.is_some() && self.nonce.as_ref() != trust.nonce {
            return Err(TimestampError::Nonce);
        }
        if !trust.policies.is_empty() && !trust.policies.contains(&self.policy) {
            return Err(TimestampError::Policy(self.policy));
        }
        let at = self.time_ms.div_euclid(1000);
        if at > trust.now.saturating_add(CLOCK_SKEW_SECONDS) {
            return Err(TimestampError::Future(rfc3339(at)));
        }
        let (time, source) = match trust.existed_at {
            Some(proven) if proven.saturating_add(CLOCK_SKEW_SECONDS) < at => {
                return Err(TimestampError::Late(rfc3339(at)));
            }
            Some(proven) => (proven, TimeSource::Verifier),
            None => (at, TimeSource::Signer),
        };
        let verifier = Verifier {
            roots: trust.roots,
            purpose: Some(TIME_STAMPING),
            certificates: trust.certificates,
            now: trust.now,
            time: Some(Time { at: time, source }),
            revocation: trust.revocation,
            crls: trust.crls,
            ocsp: trust.ocsp,
            seen: trust.seen,
        };
        if at < signer.certificate.not_before() {
            let error = crate::path::PathError::NotYetValid {
                subject: signer.certificate.subject().to_string(),
                not_before: rfc3339(signer.certificate.not_before()),
                at: rfc3339(at),
            };
            return Err(TimestampError::Message(error.into()));
        }
        let found = self.message.trust(signer, &verifier).map_err(TimestampError::Message)?;
        Ok(Verified {
            time_ms: self.time_ms,
            accuracy: self.accuracy,
            serial: self.serial.clone(),
            policy: self.policy,
            ordering: self.ordering,
            certificate: found.certificate,
            algorithm: found.algorithm,
            digest: found.digest,
            chain: found.chain,
            statuses: found.statuses,
        })
    }

    /// RFC 5816, section 2.2.1, and RFC 3161, section 2.4.2: the signed attributes and the name of the authority.
    fn names(&self, certificate: &Certificate) -> Result<(), TimestampError> {
        let v2: Option<SigningCertificateV2> = self
            .message
            .signed_attribute(0, SIGNING_CERTIFICATE_V2, "signingCertificateV2")
            .map_err(TimestampError::Message)?;
        let v1: Option<SigningCertificate> = self
            .message
            .signed_attribute(0, SIGNING_CERTIFICATE, "signingCertificate")
            .map_err(TimestampError::Message)?;
        if v1.is_none() && v2.is_none() {
            return Err(TimestampError::Certificate("the attribute is missing"));
        }
        let fits = v2.is_none_or(|value| value.names(certificate))
            && v1.is_none_or(|value| value.names(certificate));
        if !fits {
            return Err(TimestampError::Certificate("the attribute is another certificate's"));
        }
        let is_its_own = |name: &GeneralName| match name {
            GeneralName::DirectoryName(name) if name == certificate.subject() => true,
            other => certificate.general_names().contains(other),
        };
        match &self.tsa {
            Some(name) if !is_its_own(name) => Err(TimestampError::Authority(name.to_string())),
            _ => Ok(()),
        }
    }
}

fn wrong(reason: String) -> TimestampError {
    TimestampError::Malformed(reason)
}

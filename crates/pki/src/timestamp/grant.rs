//! Makes a token in two steps: attributes out, signature in.

use const_oid::ObjectIdentifier;
use der::asn1::{Any, Int, Uint};
use der::{Decode, Encode};
use outlast_crypto::digests::Digest;
use outlast_crypto::signatures::SignatureAlgorithm;

use super::{Accuracy, Request, TST_INFO, asn1, gen_time, malformed};
use crate::PkiError;
use crate::certificate::Certificate;
use crate::cms::ess;
use crate::cms::sign::{self, Content};
use crate::general_name::GeneralName;

/// What an authority says in a token.
#[derive(Clone, Copy)]
pub struct Grant<'a> {
    /// The request.
    pub request: &'a Request,
    /// The policy of the token.
    pub policy: ObjectIdentifier,
    /// Serial number, big-endian: unique among the tokens of the authority.
    pub serial: &'a [u8],
    /// The time, milliseconds since 1970.
    pub time_ms: i64,
    /// How far that may be off.
    pub accuracy: Option<Accuracy>,
    /// Whether all tokens of the authority can be ordered by their times, whatever the accuracy.
    pub ordering: bool,
    /// Whether the token names the authority: by the subject of `signer`.
    pub names_authority: bool,
    /// The authority's certificate.
    pub signer: &'a Certificate,
    /// Further certificates to include (DER): the chain without the root.
    pub chain: &'a [Vec<u8>],
    /// Digest of the content.
    pub digest: &'static Digest,
    /// Algorithm of the signature to come.
    pub algorithm: &'static SignatureAlgorithm,
}

/// A token without its signature.
pub struct Unsigned(sign::Unsigned);

impl Grant<'_> {
    /// Builds the content and the signed attributes: contentType, signingTime, messageDigest, CMSAlgorithmProtection,
    /// and signingCertificateV2 (RFC 5816).
    pub fn prepare(&self) -> Result<Unsigned, PkiError> {
        let content = self.content().map_err(malformed)?;
        let digest = self.digest.digest(&content);
        let request = sign::Request {
            message_digest: &digest,
            digest: self.digest,
            algorithm: self.algorithm,
            signing_time: self.time_ms.div_euclid(1000),
            signer: self.signer,
            chain: self.chain,
        };
        let content = Content {
            content_type: TST_INFO,
            bytes: &content,
            attributes: vec![ess::signing_certificate(self.signer.der()).map_err(malformed)?],
            // RFC 3161, section 2.4.1: certificates are there exactly if they were asked for.
            with_certificates: self.request.wants_certificates,
        };
        sign::Unsigned::containing(&request, content).map(Unsigned)
    }

    /// `TSTInfo` in DER.
    fn content(&self) -> der::Result<Vec<u8>> {
        let tsa = match self.names_authority {
            true => {
                let name = GeneralName::DirectoryName(self.signer.subject().clone()).to_der();
                Some(Any::from_der(&name.map_err(|_| der::ErrorKind::Failed)?)?)
            }
            false => None,
        };
        asn1::TstInfo {
            version: Int::new(&[1])?,
            policy: self.policy,
            message_imprint: self.request.imprint.encode()?,
            serial_number: Int::from(Uint::new(self.serial)?),
            gen_time: gen_time::write(self.time_ms)?,
            accuracy: self.accuracy.map(asn1::Accuracy::of),
            ordering: self.ordering,
            nonce: self.request.nonce.as_ref().map(super::Nonce::encode).transpose()?,
            tsa,
            extensions: None,
        }
        .to_der()
    }
}

impl Unsigned {
    /// What the authority's key signs: less than 512 bytes.
    pub fn to_be_signed(&self) -> &[u8] {
        self.0.to_be_signed.first().map_or(&[], Vec::as_slice)
    }

    /// Adds the signature and returns the token in DER.
    pub fn assemble(self, signature: &[u8]) -> Result<Vec<u8>, PkiError> {
        self.0.assemble(&[signature.to_vec()])
    }
}

//! What a row of the table of signature algorithms says, and verification by it.

use aws_lc_rs::digest as aws_digest;
use aws_lc_rs::signature::{UnparsedPublicKey, VerificationAlgorithm};
use const_oid::ObjectIdentifier;

use crate::CryptoError;
use crate::digests::Digest;

/// What is signed.
#[derive(Clone, Copy)]
pub enum Message<'a> {
    /// The message itself.
    Raw(&'a [u8]),
    /// Its digest, made with the algorithm's own hash.
    Digest(&'a [u8]),
    /// The 64-byte message representative of ML-DSA (FIPS 204, algorithm 7, line 6).
    ExternalMu(&'a [u8]),
}

/// The `parameters` of an X.509 `AlgorithmIdentifier`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameters {
    /// Not encoded: ECDSA (RFC 5758, 3.2), ML-DSA (RFC 9881, section 2).
    Absent,
    /// ASN.1 NULL: RSA PKCS #1 v1.5 (RFC 4055, section 5).
    Null,
    /// `RSASSA-PSS-params` with the row's hash, MGF1 with the same, and a salt as long (RFC 4055, section 3.1).
    Pss,
}

/// The kind of key that an algorithm signs with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// ML-DSA of one parameter set.
    MlDsa,
    /// SLH-DSA of one parameter set.
    SlhDsa,
    /// ML-DSA joined with another.
    Composite,
    /// ECDSA on a curve of NIST or secp256k1.
    Ec,
    /// Ed25519.
    Ed25519,
    /// RSA.
    Rsa,
}

/// One signature algorithm.
pub struct SignatureAlgorithm {
    /// KMS `SigningAlgorithm`. The three ML-DSA parameter sets share one.
    pub kms_name: &'static str,
    /// Private CA `SigningAlgorithm`, where certificates can be signed with it.
    pub pca_name: Option<&'static str>,
    /// OID and parameters in X.509 and CMS; `None` for those that Outlast does not put in certificates.
    pub oid: Option<ObjectIdentifier>,
    /// Parameters that go with `oid`.
    pub parameters: Parameters,
    /// Kind of key.
    pub family: Family,
    /// The hash inside; `None` for those that have no digest form: ML-DSA (HashML-DSA is not used, RFC 9881,
    /// section 2) and Ed25519.
    pub digest: Option<&'static str>,
    /// Digests that CMS may use with it: the first is what Outlast prefers.
    /// For ML-DSA: RFC 9882, section 3.3, table 1.
    pub cms_digests: &'static [&'static str],
    /// Whether a signature takes so long that others must not wait for it: SLH-DSA's up to half a second.
    pub slow: bool,
    pub(super) verify: Verify,
    /// What AWS-LC verifies it with, one for each size of key.
    pub(super) verifiers: &'static [&'static dyn VerificationAlgorithm],
    /// Verifies over ML-DSA's message representative.
    pub(super) verify_mu: Option<VerifyMu>,
}

/// (row, public key, message, signature) to validity
pub(super) type Verify =
    fn(&SignatureAlgorithm, &[u8], Message<'_>, &[u8]) -> Result<bool, CryptoError>;

/// (public key, mu, signature) to validity
pub(super) type VerifyMu = fn(&[u8], &[u8], &[u8]) -> Result<bool, CryptoError>;

impl std::fmt::Debug for SignatureAlgorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.pca_name.unwrap_or(self.kms_name))
    }
}

impl PartialEq for SignatureAlgorithm {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for SignatureAlgorithm {}

impl SignatureAlgorithm {
    /// Verifies `signature` over `message` with the key in `spki`, a DER `SubjectPublicKeyInfo`.
    ///
    /// A key of another kind is an invalid signature, too: whoever asks wants to know whether this key made it.
    pub fn verify(
        &self,
        spki: &[u8],
        message: Message<'_>,
        signature: &[u8],
    ) -> Result<(), CryptoError> {
        if (self.verify)(self, spki, message, signature)? {
            Ok(())
        } else {
            Err(CryptoError::InvalidSignature)
        }
    }

    /// Length in bytes of the digest that [`Message::Digest`] takes, if the algorithm has one.
    pub fn digest_len(&self) -> Option<usize> {
        self.digest.and_then(Digest::by_name).map(|row| row.output_len)
    }

    /// Wraps a finished digest for AWS-LC.
    pub(crate) fn import_digest(&self, bytes: &[u8]) -> Result<aws_digest::Digest, CryptoError> {
        let algorithm = match self.digest {
            Some("sha256") => &aws_digest::SHA256,
            Some("sha384") => &aws_digest::SHA384,
            Some("sha512") => &aws_digest::SHA512,
            _ => return Err(CryptoError::UnsupportedAlgorithm),
        };
        aws_digest::Digest::import_less_safe(bytes, algorithm)
            .map_err(|_| CryptoError::InvalidLength)
    }
}

/// Verifies with what AWS-LC has for the row.
pub(super) fn by_aws_lc(
    row: &SignatureAlgorithm,
    spki: &[u8],
    message: Message<'_>,
    signature: &[u8],
) -> Result<bool, CryptoError> {
    match message {
        Message::Raw(message) => Ok(row.verifiers.iter().any(|verifier| {
            UnparsedPublicKey::new(*verifier, spki).verify(message, signature).is_ok()
        })),
        Message::Digest(digest) => {
            let digest = row.import_digest(digest)?;
            Ok(row.verifiers.iter().any(|verifier| {
                UnparsedPublicKey::new(*verifier, spki).verify_digest(&digest, signature).is_ok()
            }))
        }
        Message::ExternalMu(mu) => {
            let verify = row.verify_mu.ok_or(CryptoError::UnsupportedAlgorithm)?;
            verify(spki, mu, signature)
        }
    }
}

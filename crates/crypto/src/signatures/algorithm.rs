//! A row of the table of signature algorithms, and verification with it.

use aws_lc_rs::digest as aws_digest;
use aws_lc_rs::signature::{UnparsedPublicKey, VerificationAlgorithm};
use const_oid::ObjectIdentifier;

use crate::CryptoError;
use crate::digests::Digest;

/// Message, or a digest of it, to sign or verify.
#[derive(Clone, Copy)]
pub enum Message<'a> {
    /// The message itself.
    Raw(&'a [u8]),
    /// Digest of the message, computed with the algorithm's own hash.
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
    /// `RSASSA-PSS-params` with the row's hash, MGF1 with the same hash, and a salt of the hash's length (RFC 4055,
    /// section 3.1).
    Pss,
}

/// Kind of key of a signature algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// ML-DSA with one parameter set.
    MlDsa,
    /// SLH-DSA with one parameter set.
    SlhDsa,
    /// ML-DSA combined with a classical algorithm.
    Composite,
    /// ECDSA on a NIST curve or secp256k1.
    Ec,
    /// Ed25519.
    Ed25519,
    /// RSA.
    Rsa,
}

/// A signature algorithm.
pub struct SignatureAlgorithm {
    /// KMS `SigningAlgorithm`. The three ML-DSA parameter sets share one.
    pub kms_name: &'static str,
    /// Private CA `SigningAlgorithm`, if certificates can be signed with it.
    pub pca_name: Option<&'static str>,
    /// OID in X.509 and CMS; `None` for algorithms that Outlast does not use in certificates.
    pub oid: Option<ObjectIdentifier>,
    /// Parameters that belong to `oid`.
    pub parameters: Parameters,
    /// Kind of key.
    pub family: Family,
    /// Hash of the algorithm; `None` if it cannot sign a digest: ML-DSA (HashML-DSA is not used, RFC 9881, section 2)
    /// and Ed25519.
    pub digest: Option<&'static str>,
    /// Digests that CMS allows with it; Outlast prefers the first. For ML-DSA: RFC 9882, section 3.3, table 1.
    pub cms_digests: &'static [&'static str],
    /// Whether signing takes so long (up to half a second for SLH-DSA) that other requests must not wait for it.
    pub slow: bool,
    pub(super) verify: Verify,
    /// AWS-LC's verifiers, one for each key size.
    pub(super) verifiers: &'static [&'static dyn VerificationAlgorithm],
    /// Verifies a signature over ML-DSA's message representative.
    pub(super) verify_mu: Option<VerifyMu>,
}

/// (row, public key, message, signature) → validity
pub(super) type Verify =
    fn(&SignatureAlgorithm, &[u8], Message<'_>, &[u8]) -> Result<bool, CryptoError>;

/// (public key, mu, signature) → validity
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
    /// A key of another kind is an invalid signature too: callers ask whether this key made the signature.
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

    /// Length in bytes of the digest in [`Message::Digest`], if the algorithm can sign digests.
    pub fn digest_len(&self) -> Option<usize> {
        self.digest.and_then(Digest::by_name).map(|row| row.output_len)
    }

    /// Turns a finished digest into AWS-LC's type.
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

/// Verifies with the row's AWS-LC verifiers.
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

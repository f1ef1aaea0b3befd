//! Errors of the primitives. They never say more than the caller may know.

/// Error of a cryptographic operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CryptoError {
    /// The bytes are not a key of the stated type.
    #[error("the key material is not a valid key of this type")]
    InvalidKey,
    /// The signature does not verify.
    #[error("the signature is not valid")]
    InvalidSignature,
    /// The message authentication code does not match the message.
    #[error("the message authentication code is not valid")]
    InvalidMac,
    /// The ciphertext does not authenticate: wrong key, wrong associated data or damaged bytes.
    #[error("the ciphertext is not valid")]
    InvalidCiphertext,
    /// The algorithm cannot take a message or digest of this length.
    #[error("the input has the wrong length for this algorithm")]
    InvalidLength,
    /// The key cannot be used with this algorithm.
    #[error("the algorithm does not fit the key")]
    UnsupportedAlgorithm,
    /// The operation would take long, and the caller asked for a quick one ([`crate::pace`]). Nothing was done.
    #[error("the operation takes long")]
    TakesLong,
    /// The library failed for a reason that the caller does not control (out of memory, no entropy).
    #[error("the cryptographic library failed")]
    Library,
}

impl From<aws_lc_rs::error::Unspecified> for CryptoError {
    fn from(_: aws_lc_rs::error::Unspecified) -> Self {
        Self::Library
    }
}

impl From<aws_lc_rs::error::KeyRejected> for CryptoError {
    fn from(_: aws_lc_rs::error::KeyRejected) -> Self {
        Self::InvalidKey
    }
}

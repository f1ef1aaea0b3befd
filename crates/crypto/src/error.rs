//! What can go wrong inside a primitive. Never says more than the caller may know.

/// An error of this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CryptoError {
    /// The key bytes do not form a key of the stated type.
    #[error("the key material is not a valid key of this type")]
    InvalidKey,
    /// A signature did not verify.
    #[error("the signature is not valid")]
    InvalidSignature,
    /// A message authentication code is not the message's.
    #[error("the message authentication code is not valid")]
    InvalidMac,
    /// A ciphertext did not authenticate: wrong key, wrong associated data, or damaged.
    #[error("the ciphertext is not valid")]
    InvalidCiphertext,
    /// A message or digest has a length that the algorithm cannot take.
    #[error("the input has the wrong length for this algorithm")]
    InvalidLength,
    /// The algorithm does not fit the key.
    #[error("the algorithm does not fit the key")]
    UnsupportedAlgorithm,
    /// It would take long, and was asked for in haste ([`crate::pace`]). Nothing was done.
    #[error("it takes long")]
    TakesLong,
    /// The library failed for no reason that the caller controls (out of memory, no entropy).
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

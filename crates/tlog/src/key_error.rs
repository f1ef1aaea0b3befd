//! Errors of keys and signatures.

use outlast_crypto::CryptoError;

/// Why a key or a signature was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not `name+id+key`.
    #[error(
        "this is not a verifier key: name, plus sign, eight hexadecimal digits, plus sign, base64"
    )]
    Form,
    /// An invalid name.
    #[error("a key's name has 1 to 255 bytes and neither spaces nor plus signs")]
    Name,
    /// An unknown type of signature.
    #[error("signatures of kind {0:#04x} are unknown; known kinds are 0x01, 0x04 and 0x06")]
    Algorithm(u8),
    /// The key's length does not match its type.
    #[error("the public key has the wrong length")]
    Length,
    /// The id does not match the key.
    #[error("the verifier key's id is not that of its name and key")]
    Id,
    /// The signature is another key's, or invalid.
    #[error("the signature is not valid")]
    Signature,
    /// The text to sign is not a checkpoint, or has extension lines, which ML-DSA signatures do not cover.
    #[error("this is not a checkpoint that can be signed")]
    Message,
    /// The time is larger than 2^63 - 1.
    #[error("the time is too large")]
    Time,
    /// The key could not be used.
    #[error(transparent)]
    Crypto(#[from] CryptoError),
}

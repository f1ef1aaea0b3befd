//! Key-encryption keys, which wrap root keys and live outside the store.

use outlast_crypto::{CryptoError, Secret, aead, random};

use super::fingerprint;
use crate::Fault;

/// Text before the hexadecimal digits in a root key file.
const FILE_PREFIX: &str = "outlast-root-key-v1:";

/// A key-encryption key, in memory or inside a token.
pub trait Kek: Send + Sync {
    /// Its kind: `file`, `passphrase`, `pkcs11`.
    fn provider(&self) -> &'static str;

    /// Wraps `key` for this record key; under another record key it cannot be unwrapped.
    fn wrap(&self, record_key: &str, key: &Secret) -> Result<Vec<u8>, Fault>;

    /// Reverses [`Kek::wrap`]; [`Fault::Damaged`] if another key wrapped it, or for another record key.
    fn unwrap(&self, record_key: &str, wrapped: &[u8]) -> Result<Secret, Fault>;

    /// The key itself, for stores of the first layout, which were sealed directly under it.
    fn direct(&self) -> Option<&Secret> {
        None
    }
}

/// A key-encryption key in this process's memory.
pub struct SoftwareKek {
    provider: &'static str,
    key: Secret,
}

impl SoftwareKek {
    /// The provider of keys in files.
    pub const FILE: &'static str = "file";
    /// The provider of keys derived from passphrases.
    pub const PASSPHRASE: &'static str = "passphrase";

    /// A new random key, to be kept in a file.
    pub fn generate() -> Result<Self, CryptoError> {
        random::secret(aead::KEY_LEN).map(|key| Self { provider: Self::FILE, key })
    }

    /// The key derived from a passphrase.
    pub fn from_passphrase(key: Secret) -> Result<Self, CryptoError> {
        Ok(Self { provider: Self::PASSPHRASE, ..Self::from_key(key)? })
    }

    /// An existing key, to be kept in a file.
    pub fn from_key(key: Secret) -> Result<Self, CryptoError> {
        if key.len() != aead::KEY_LEN {
            return Err(CryptoError::InvalidKey);
        }
        Ok(Self { provider: Self::FILE, key })
    }

    /// Parses the form that [`SoftwareKek::to_file`] writes.
    pub fn from_file(text: &str) -> Result<Self, CryptoError> {
        let digits = text.trim().strip_prefix(FILE_PREFIX).ok_or(CryptoError::InvalidKey)?;
        Self::from_key(Secret::new(hex::decode(digits).map_err(|_| CryptoError::InvalidKey)?))
    }

    /// One line of text, for a file that only the service can read.
    pub fn to_file(&self) -> Secret {
        let mut out = FILE_PREFIX.as_bytes().to_vec();
        // Reserved once: a reallocation would leave copies of the key behind.
        out.reserve_exact(2 * self.key.len() + 1);
        for byte in self.key.expose() {
            out.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
        }
        out.push(b'\n');
        Secret::new(out)
    }

    /// A name for the key that reveals nothing of it: 16 hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        Self::fingerprint_of(&self.key)
    }

    /// The same of any key.
    pub fn fingerprint_of(key: &Secret) -> String {
        hex::encode(fingerprint(key))
    }
}

impl Kek for SoftwareKek {
    fn provider(&self) -> &'static str {
        self.provider
    }

    fn wrap(&self, record_key: &str, key: &Secret) -> Result<Vec<u8>, Fault> {
        Ok(aead::seal(self.key.expose(), record_key.as_bytes(), key.expose())?)
    }

    fn unwrap(&self, record_key: &str, wrapped: &[u8]) -> Result<Secret, Fault> {
        aead::open(self.key.expose(), record_key.as_bytes(), wrapped)
            .map_err(|_| Fault::Damaged(record_key.to_owned()))
    }

    fn direct(&self) -> Option<&Secret> {
        (self.provider == Self::FILE).then_some(&self.key)
    }
}

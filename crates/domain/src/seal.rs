//! The root key, under which every secret in the store is sealed.

use outlast_crypto::{CryptoError, Secret, aead, digests};

/// 32 bytes that live outside the database.
pub struct RootKey(Secret);

/// Text before the hexadecimal digits in a root key file.
const FILE_PREFIX: &str = "outlast-root-key-v1:";

impl RootKey {
    /// A new random root key.
    pub fn generate() -> Result<Self, CryptoError> {
        outlast_crypto::random::secret(aead::KEY_LEN).map(Self)
    }

    /// Reads the form that [`RootKey::to_file`] writes.
    pub fn from_file(text: &str) -> Result<Self, CryptoError> {
        let digits = text.trim().strip_prefix(FILE_PREFIX).ok_or(CryptoError::InvalidKey)?;
        let bytes = Secret::new(hex::decode(digits).map_err(|_| CryptoError::InvalidKey)?);
        if bytes.len() != aead::KEY_LEN {
            return Err(CryptoError::InvalidKey);
        }
        Ok(Self(bytes))
    }

    /// One line of text, to be kept in a file that only the service can read.
    pub fn to_file(&self) -> Secret {
        let mut out = FILE_PREFIX.as_bytes().to_vec();
        // Grown once: a growing buffer would leave copies of the key behind.
        out.reserve_exact(2 * self.0.len() + 1);
        for byte in self.0.expose() {
            out.extend([byte >> 4, byte & 15].map(|digit| b"0123456789abcdef"[usize::from(digit)]));
        }
        out.push(b'\n');
        Secret::new(out)
    }

    /// A name for the key that tells nothing of it: 16 hexadecimal digits.
    pub fn fingerprint(&self) -> String {
        let tagged = [b"outlast root key fingerprint".as_slice(), self.0.expose()].concat();
        let tagged = Secret::new(tagged);
        hex::encode(&digests::sha256(tagged.expose())[..8])
    }

    /// Seals `secret` for the record `key`: it opens nowhere else.
    pub fn seal(&self, key: &str, secret: &[u8]) -> Result<Vec<u8>, CryptoError> {
        aead::seal(self.0.expose(), key.as_bytes(), secret)
    }

    /// Reverses [`RootKey::seal`].
    pub fn open(&self, key: &str, sealed: &[u8]) -> Result<Secret, CryptoError> {
        aead::open(self.0.expose(), key.as_bytes(), sealed)
    }
}

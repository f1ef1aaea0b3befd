//! Wrapping of imported key material: the algorithms of KMS `GetParametersForImport`, by AWS-LC.
//!
//! The wrapping key pairs come from the RSA rows of [`crate::keys::KEY_SPECS`].

use aws_lc_rs::key_wrap::{AES_256, AesKek, KeyWrapPadded};
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OAEP_SHA256_MGF1SHA256, OaepAlgorithm, OaepPrivateDecryptingKey,
    OaepPublicEncryptingKey, Pkcs1PrivateDecryptingKey, Pkcs1PublicEncryptingKey,
    PrivateDecryptingKey, PublicEncryptingKey,
};
use zeroize::Zeroizing;

use crate::{CryptoError, Secret, random};

/// A way to wrap key material for an RSA key.
pub struct WrappingAlgorithm {
    /// KMS `WrappingAlgorithm`.
    pub name: &'static str,
    padding: Padding,
    /// Whether RSA encrypts an AES-256 key, which wraps the material with AES-KWP (RFC 5649).
    by_aes: bool,
}

/// All wrapping algorithms.
pub static WRAPPING: &[WrappingAlgorithm] = &[
    WrappingAlgorithm { name: "RSAES_OAEP_SHA_256", padding: OAEP_SHA_256, by_aes: false },
    WrappingAlgorithm { name: "RSAES_OAEP_SHA_1", padding: OAEP_SHA_1, by_aes: false },
    WrappingAlgorithm { name: "RSA_AES_KEY_WRAP_SHA_256", padding: OAEP_SHA_256, by_aes: true },
    WrappingAlgorithm { name: "RSA_AES_KEY_WRAP_SHA_1", padding: OAEP_SHA_1, by_aes: true },
    WrappingAlgorithm { name: "RSAES_PKCS1_V1_5", padding: Padding::Pkcs1, by_aes: false },
];

#[derive(Clone, Copy)]
enum Padding {
    /// RSAES-OAEP (RFC 8017, section 7.1) without a label.
    Oaep(&'static OaepAlgorithm, usize),
    /// RSAES-PKCS1-v1_5 (RFC 8017, section 7.2).
    Pkcs1,
}

const OAEP_SHA_1: Padding = Padding::Oaep(&OAEP_SHA1_MGF1SHA1, 20);
const OAEP_SHA_256: Padding = Padding::Oaep(&OAEP_SHA256_MGF1SHA256, 32);
const AES_LEN: usize = 32;

impl WrappingAlgorithm {
    /// The row with this KMS name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        WRAPPING.iter().find(|row| row.name == name)
    }

    /// Whether unwrapping detects that the wrapped material was changed.
    pub fn detects_changes(&self) -> bool {
        !matches!(self.padding, Padding::Pkcs1)
    }

    /// Length in bytes of the longest material for a wrapping key of `key_bits`; `None` if the key sets no limit.
    pub fn max_material(&self, key_bits: usize) -> Option<usize> {
        (!self.by_aes).then(|| (key_bits / 8).saturating_sub(self.padding.overhead()))
    }

    /// Wraps `material` for the RSA key in `public_spki`, a DER `SubjectPublicKeyInfo`.
    pub fn wrap(&self, public_spki: &[u8], material: &[u8]) -> Result<Vec<u8>, CryptoError> {
        let key = PublicEncryptingKey::from_der(public_spki)?;
        if material.is_empty()
            || self.max_material(key.key_size_bits()).is_some_and(|max| material.len() > max)
        {
            return Err(CryptoError::InvalidLength);
        }
        if !self.by_aes {
            return self.padding.encrypt(key, material);
        }
        let aes = random::secret(AES_LEN)?;
        let mut out = self.padding.encrypt(key, aes.expose())?;
        // RFC 5649, section 4.1: the material padded to a multiple of eight, plus eight bytes.
        let mut wrapped = vec![0; material.len().next_multiple_of(8) + 8];
        out.extend_from_slice(
            AesKek::new(&AES_256, aes.expose())?.wrap_with_padding(material, &mut wrapped)?,
        );
        Ok(out)
    }

    /// Reverses [`WrappingAlgorithm::wrap`] with the private key in PKCS #8 DER. Every failure is
    /// [`CryptoError::InvalidCiphertext`], so that the caller cannot learn where it failed.
    pub fn unwrap(&self, private_pkcs8: &Secret, ciphertext: &[u8]) -> Result<Secret, CryptoError> {
        self.open(private_pkcs8, ciphertext).map_err(|_| CryptoError::InvalidCiphertext)
    }

    fn open(&self, private_pkcs8: &Secret, ciphertext: &[u8]) -> Result<Secret, CryptoError> {
        let key = PrivateDecryptingKey::from_pkcs8(private_pkcs8.expose())?;
        if !self.by_aes {
            return self.padding.decrypt(key, ciphertext);
        }
        let (wrapped_key, wrapped) = ciphertext
            .split_at_checked(key.key_size_bytes())
            .ok_or(CryptoError::InvalidCiphertext)?;
        let aes = self.padding.decrypt(key, wrapped_key)?;
        let mut out = Zeroizing::new(vec![0; wrapped.len()]);
        let material =
            AesKek::new(&AES_256, aes.expose())?.unwrap_with_padding(wrapped, &mut out)?;
        Ok(Secret::new(material.to_vec()))
    }
}

impl Padding {
    /// Bytes of the modulus that cannot hold material.
    const fn overhead(self) -> usize {
        match self {
            Self::Oaep(_, digest_len) => 2 * digest_len + 2,
            Self::Pkcs1 => 11,
        }
    }

    fn encrypt(self, key: PublicEncryptingKey, plaintext: &[u8]) -> Result<Vec<u8>, CryptoError> {
        let mut out = vec![0; key.key_size_bytes()];
        match self {
            Self::Oaep(algorithm, _) => {
                OaepPublicEncryptingKey::new(key)?.encrypt(algorithm, plaintext, &mut out, None)?;
            }
            Self::Pkcs1 => {
                Pkcs1PublicEncryptingKey::new(key)?.encrypt(plaintext, &mut out)?;
            }
        }
        Ok(out)
    }

    fn decrypt(self, key: PrivateDecryptingKey, ciphertext: &[u8]) -> Result<Secret, CryptoError> {
        let mut out = Zeroizing::new(vec![0; key.key_size_bytes()]);
        let plaintext = match self {
            Self::Oaep(algorithm, _) => OaepPrivateDecryptingKey::new(key)?
                .decrypt(algorithm, ciphertext, &mut out, None)?,
            Self::Pkcs1 => Pkcs1PrivateDecryptingKey::new(key)?.decrypt(ciphertext, &mut out)?,
        };
        Ok(Secret::new(plaintext.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeySpec;

    #[test]
    fn every_row_unwraps_only_what_was_wrapped() {
        let spec = KeySpec::by_name("RSA_2048").unwrap();
        let (private, other) = (spec.generate().unwrap(), spec.generate().unwrap());
        let key = spec.load(&private).unwrap();
        let spki = key.public_key().unwrap();
        for row in WRAPPING {
            let longest = row.max_material(2048).unwrap_or(3200);
            for len in [1, 7, 8, 28, 32, 64, longest] {
                let material = vec![0xa5; len];
                let wrapped = row.wrap(spki, &material).unwrap();
                assert_eq!(row.unwrap(&private, &wrapped).unwrap().expose(), material);
                let fails = |key: &Secret, ciphertext: &[u8]| {
                    // PKCS #1 v1.5 has no check value: one in 2^16 random ciphertexts decrypts to something.
                    match row.unwrap(key, ciphertext) {
                        Err(error) => assert_eq!(error, CryptoError::InvalidCiphertext),
                        Ok(other) => {
                            assert!(row.padding.overhead() == 11 && other.expose() != material);
                        }
                    }
                };
                fails(&other, &wrapped);
                fails(&private, b"");
                fails(&private, &wrapped[1..]);
                fails(&private, &wrapped[..wrapped.len() - 1]);
                fails(&private, &[wrapped.as_slice(), b"\0"].concat());
                fails(&Secret::new(vec![1, 2, 3]), &wrapped);
                for at in [0, 255, wrapped.len() - 1] {
                    let mut bad = wrapped.clone();
                    bad[at] ^= 1;
                    fails(&private, &bad);
                }
            }
            for len in [0, longest + 1] {
                let outcome = row.wrap(spki, &vec![0; len]);
                let refused = len == 0 || row.max_material(2048).is_some();
                assert_eq!(
                    outcome == Err(CryptoError::InvalidLength),
                    refused,
                    "{} {len}",
                    row.name
                );
            }
            assert_eq!(row.wrap(b"no key", b"material"), Err(CryptoError::InvalidKey));
            assert!(std::ptr::eq(WrappingAlgorithm::by_name(row.name).unwrap(), row));
        }
    }

    /// NIST CAVP, KWP_AE_256 (plaintext lengths 8 and 248), from aws-lc-rs: (KEK, material, wrapped). RFC 5649's
    /// example has a KEK of 192 bits, which neither KMS nor aws-lc-rs supports.
    const KWP: &[[&str; 3]] = &[
        [
            "95da2700ca6fd9a52554ee2a8df1386f5b94a1a60ed8a4aef60a8d61ab5f225a",
            "d1",
            "06ba7ae6f3248cfdcf267507fa001bc4",
        ],
        [
            "e9bb7f44c7baafbf392ab912589a2f8db53268106eafb74689bb1833136e6113",
            "ffe952604834bff899e63658f34246815c91597eb40a21729e0a8a959b61f2",
            "15b9f06fbc765e5e3d55d6b824616f21921d2a6918ee7bf1406b524274e170b4a78333ca5ee92af5",
        ],
    ];

    #[test]
    fn aes_key_wrap_with_padding_has_its_known_answers() {
        let spec = KeySpec::by_name("RSA_2048").unwrap();
        let private = spec.generate().unwrap();
        let key = spec.load(&private).unwrap();
        for row in WRAPPING.iter().filter(|row| row.by_aes) {
            for [kek, material, wrapped] in KWP {
                let public = PublicEncryptingKey::from_der(key.public_key().unwrap()).unwrap();
                let mut ciphertext =
                    row.padding.encrypt(public, &hex::decode(kek).unwrap()).unwrap();
                ciphertext.extend(hex::decode(wrapped).unwrap());
                let unwrapped = row.unwrap(&private, &ciphertext).unwrap();
                assert_eq!(hex::encode(unwrapped.expose()), *material, "{}", row.name);
            }
        }
    }
}

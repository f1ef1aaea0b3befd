//! Symmetric keys: AES-256-GCM for `SYMMETRIC_DEFAULT`, and HMAC (FIPS 198-1) by AWS-LC.

use aws_lc_rs::hmac as aws;

use super::key::{Form, Imported, Key};
use crate::{CryptoError, Secret, aead, random};

/// A kind of symmetric key: its length and its algorithm.
pub struct Kind {
    len: usize,
    /// KMS `MacAlgorithm`; `None` for encryption.
    mac: Option<(&'static str, aws::Algorithm)>,
}

/// Key of 32 bytes for [`aead`].
pub static AES_256: Kind = Kind { len: aead::KEY_LEN, mac: None };
/// Key of 28 bytes; codes of 28 bytes.
pub static HMAC_224: Kind = Kind { len: 28, mac: Some(("HMAC_SHA_224", aws::HMAC_SHA224)) };
/// Key of 32 bytes; codes of 32 bytes.
pub static HMAC_256: Kind = Kind { len: 32, mac: Some(("HMAC_SHA_256", aws::HMAC_SHA256)) };
/// Key of 48 bytes; codes of 48 bytes.
pub static HMAC_384: Kind = Kind { len: 48, mac: Some(("HMAC_SHA_384", aws::HMAC_SHA384)) };
/// Key of 64 bytes; codes of 64 bytes.
pub static HMAC_512: Kind = Kind { len: 64, mac: Some(("HMAC_SHA_512", aws::HMAC_SHA512)) };

impl Kind {
    pub(super) fn generate(&self) -> Result<Secret, CryptoError> {
        random::secret(self.len)
    }

    pub(super) fn load(&self, stored: &Secret) -> Result<Box<dyn Key>, CryptoError> {
        if stored.len() != self.len {
            return Err(CryptoError::InvalidKey);
        }
        Ok(match self.mac {
            None => Box::new(Aes(Secret::new(stored.expose().to_vec()))),
            Some((name, algorithm)) => {
                Box::new(Hmac { name, key: aws::Key::new(algorithm, stored.expose()) })
            }
        })
    }

    pub(super) fn import(&self, material: &[u8]) -> Result<Imported, CryptoError> {
        if material.len() != self.len {
            return Err(CryptoError::InvalidKey);
        }
        Ok(Imported { stored: Secret::new(material.to_vec()), form: Form::Raw })
    }
}

struct Aes(Secret);

impl Key for Aes {
    fn encrypt(&self, _: &str, aad: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, CryptoError> {
        aead::seal(self.0.expose(), aad, plaintext)
    }

    fn decrypt(&self, _: &str, aad: &[u8], ciphertext: &[u8]) -> Result<Secret, CryptoError> {
        aead::open(self.0.expose(), aad, ciphertext)
    }
}

struct Hmac {
    name: &'static str,
    key: aws::Key,
}

impl Key for Hmac {
    fn mac(&self, algorithm: &str, message: &[u8]) -> Result<Vec<u8>, CryptoError> {
        if algorithm != self.name {
            return Err(CryptoError::UnsupportedAlgorithm);
        }
        Ok(aws::sign(&self.key, message).as_ref().to_vec())
    }

    fn verify_mac(&self, algorithm: &str, message: &[u8], mac: &[u8]) -> Result<(), CryptoError> {
        if algorithm != self.name {
            return Err(CryptoError::UnsupportedAlgorithm);
        }
        aws::verify(&self.key, message, mac).map_err(|_| CryptoError::InvalidMac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2. Its key is shorter than KMS allows.
    const WHAT: &[u8] = b"what do ya want for nothing?";
    const ANSWERS: &[(&Kind, &str)] = &[
        (&HMAC_224, "a30e01098bc6dbbf45690f3a7e9e6d0f8bbea2a39e6148008fd05e44"),
        (&HMAC_256, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        (
            &HMAC_384,
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
        ),
        (
            &HMAC_512,
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
        ),
    ];

    #[test]
    fn every_hmac_has_its_known_answer() {
        for (kind, expected) in ANSWERS {
            let (name, algorithm) = kind.mac.unwrap();
            let key = Hmac { name, key: aws::Key::new(algorithm, b"Jefe") };
            let mac = key.mac(name, WHAT).unwrap();
            assert_eq!(hex::encode(&mac), *expected, "{name}");
            key.verify_mac(name, WHAT, &mac).unwrap();
            assert_eq!(key.verify_mac(name, b"no", &mac), Err(CryptoError::InvalidMac));
            assert_eq!(
                key.verify_mac(name, WHAT, &mac[..mac.len() - 1]),
                Err(CryptoError::InvalidMac)
            );
            assert_eq!(key.mac("HMAC_SHA_1", WHAT), Err(CryptoError::UnsupportedAlgorithm));
            assert_eq!(mac.len(), kind.len);
        }
    }
}

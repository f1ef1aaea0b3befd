//! Key types as rows: what a key of each AWS `KeySpec` can do, how it is made, stored and used.
//!
//! Stored forms: the 32-byte seed for ML-DSA (FIPS 204, algorithm 1), PKCS #8 DER for EC and RSA, the key
//! itself for symmetric ones.

pub mod ec;
pub mod ml_dsa;
pub mod rsa;
pub mod symmetric;

use crate::signatures::{self as sig, Message, SignatureAlgorithm};
use crate::{CryptoError, Secret};

/// What a KMS key is for; the names are AWS's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUsage {
    /// `SIGN_VERIFY`
    SignVerify,
    /// `ENCRYPT_DECRYPT`
    EncryptDecrypt,
    /// `GENERATE_VERIFY_MAC`
    GenerateVerifyMac,
}

impl KeyUsage {
    /// AWS's spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SignVerify => "SIGN_VERIFY",
            Self::EncryptDecrypt => "ENCRYPT_DECRYPT",
            Self::GenerateVerifyMac => "GENERATE_VERIFY_MAC",
        }
    }

    /// Reverses [`KeyUsage::name`].
    pub fn by_name(name: &str) -> Option<Self> {
        [Self::SignVerify, Self::EncryptDecrypt, Self::GenerateVerifyMac]
            .into_iter()
            .find(|usage| usage.name() == name)
    }
}

/// One key type.
pub struct KeySpec {
    /// KMS `KeySpec`.
    pub name: &'static str,
    /// Private CA `KeyAlgorithm`, where a CA can have such a key.
    pub pca_name: Option<&'static str>,
    /// Usages it can be created for. The first is the default only for `SYMMETRIC_DEFAULT`.
    pub usages: &'static [KeyUsage],
    /// Signature algorithms under `SIGN_VERIFY`.
    pub signing: &'static [&'static SignatureAlgorithm],
    /// KMS `EncryptionAlgorithms` under `ENCRYPT_DECRYPT`.
    pub encryption: &'static [&'static str],
    /// KMS `MacAlgorithms` under `GENERATE_VERIFY_MAC`.
    pub mac: &'static [&'static str],
    generate: fn() -> Result<Secret, CryptoError>,
    load: fn(&Secret) -> Result<Box<dyn Key>, CryptoError>,
    to_pkcs8: fn(&Secret) -> Result<Secret, CryptoError>,
}

impl std::fmt::Debug for KeySpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A key that has been loaded for use. An operation that its type lacks is
/// [`CryptoError::UnsupportedAlgorithm`].
pub trait Key: Send + Sync {
    /// DER `SubjectPublicKeyInfo`; `None` for a symmetric key.
    fn public_key(&self) -> Option<&[u8]> {
        None
    }

    /// Signs. The signature has X.509's form: a DER `ECDSA-Sig-Value` for ECDSA, raw bytes otherwise.
    fn sign(&self, _: &SignatureAlgorithm, _: Message<'_>) -> Result<Vec<u8>, CryptoError> {
        Err(CryptoError::UnsupportedAlgorithm)
    }

    /// Encrypts under the KMS algorithm name given, which must be one of the row's `encryption`.
    fn encrypt(&self, _: &str, _aad: &[u8], _: &[u8]) -> Result<Vec<u8>, CryptoError> {
        Err(CryptoError::UnsupportedAlgorithm)
    }

    /// Reverses [`Key::encrypt`].
    fn decrypt(&self, _: &str, _aad: &[u8], _: &[u8]) -> Result<Secret, CryptoError> {
        Err(CryptoError::UnsupportedAlgorithm)
    }
}

const SIGN: &[KeyUsage] = &[KeyUsage::SignVerify];
const SIGN_OR_ENCRYPT: &[KeyUsage] = &[KeyUsage::SignVerify, KeyUsage::EncryptDecrypt];
const RSA_SIGNING: &[&SignatureAlgorithm] = &[
    &sig::RSA_PSS_SHA_256,
    &sig::RSA_PSS_SHA_384,
    &sig::RSA_PSS_SHA_512,
    &sig::RSA_PKCS1_SHA_256,
    &sig::RSA_PKCS1_SHA_384,
    &sig::RSA_PKCS1_SHA_512,
];
const RSA_ENCRYPTION: &[&str] = &["RSAES_OAEP_SHA_1", "RSAES_OAEP_SHA_256"];

const NONE: KeySpec = KeySpec {
    name: "",
    pca_name: None,
    usages: &[],
    signing: &[],
    encryption: &[],
    mac: &[],
    generate: || Err(CryptoError::UnsupportedAlgorithm),
    load: |_| Err(CryptoError::UnsupportedAlgorithm),
    to_pkcs8: |_| Err(CryptoError::UnsupportedAlgorithm),
};

/// Every key type.
pub static KEY_SPECS: &[KeySpec] = &[
    KeySpec {
        name: "SYMMETRIC_DEFAULT",
        usages: &[KeyUsage::EncryptDecrypt],
        encryption: &["SYMMETRIC_DEFAULT"],
        generate: || symmetric::generate(32),
        load: symmetric::load,
        ..NONE
    },
    KeySpec {
        name: "ML_DSA_44",
        pca_name: Some("ML_DSA_44"),
        usages: SIGN,
        signing: &[&sig::ML_DSA_44],
        generate: ml_dsa::generate,
        load: |seed| ml_dsa::ML_DSA_44.load(seed),
        to_pkcs8: |seed| ml_dsa::ML_DSA_44.to_pkcs8(seed),
        ..NONE
    },
    KeySpec {
        name: "ML_DSA_65",
        pca_name: Some("ML_DSA_65"),
        usages: SIGN,
        signing: &[&sig::ML_DSA_65],
        generate: ml_dsa::generate,
        load: |seed| ml_dsa::ML_DSA_65.load(seed),
        to_pkcs8: |seed| ml_dsa::ML_DSA_65.to_pkcs8(seed),
        ..NONE
    },
    KeySpec {
        name: "ML_DSA_87",
        pca_name: Some("ML_DSA_87"),
        usages: SIGN,
        signing: &[&sig::ML_DSA_87],
        generate: ml_dsa::generate,
        load: |seed| ml_dsa::ML_DSA_87.load(seed),
        to_pkcs8: |seed| ml_dsa::ML_DSA_87.to_pkcs8(seed),
        ..NONE
    },
    KeySpec {
        name: "ECC_NIST_P256",
        pca_name: Some("EC_prime256v1"),
        usages: SIGN,
        signing: &[&sig::ECDSA_SHA_256],
        generate: || ec::P256.generate(),
        load: |pkcs8| ec::P256.load(pkcs8),
        to_pkcs8: already_pkcs8,
        ..NONE
    },
    KeySpec {
        name: "ECC_NIST_P384",
        pca_name: Some("EC_secp384r1"),
        usages: SIGN,
        signing: &[&sig::ECDSA_SHA_384],
        generate: || ec::P384.generate(),
        load: |pkcs8| ec::P384.load(pkcs8),
        to_pkcs8: already_pkcs8,
        ..NONE
    },
    KeySpec {
        name: "ECC_NIST_P521",
        pca_name: Some("EC_secp521r1"),
        usages: SIGN,
        signing: &[&sig::ECDSA_SHA_512],
        generate: || ec::P521.generate(),
        load: |pkcs8| ec::P521.load(pkcs8),
        to_pkcs8: already_pkcs8,
        ..NONE
    },
    KeySpec {
        name: "RSA_2048",
        pca_name: Some("RSA_2048"),
        usages: SIGN_OR_ENCRYPT,
        signing: RSA_SIGNING,
        encryption: RSA_ENCRYPTION,
        generate: || rsa::generate(aws_lc_rs::rsa::KeySize::Rsa2048),
        load: rsa::load,
        to_pkcs8: already_pkcs8,
        ..NONE
    },
    KeySpec {
        name: "RSA_3072",
        pca_name: Some("RSA_3072"),
        usages: SIGN_OR_ENCRYPT,
        signing: RSA_SIGNING,
        encryption: RSA_ENCRYPTION,
        generate: || rsa::generate(aws_lc_rs::rsa::KeySize::Rsa3072),
        load: rsa::load,
        to_pkcs8: already_pkcs8,
        ..NONE
    },
    KeySpec {
        name: "RSA_4096",
        pca_name: Some("RSA_4096"),
        usages: SIGN_OR_ENCRYPT,
        signing: RSA_SIGNING,
        encryption: RSA_ENCRYPTION,
        generate: || rsa::generate(aws_lc_rs::rsa::KeySize::Rsa4096),
        load: rsa::load,
        to_pkcs8: already_pkcs8,
        ..NONE
    },
    KeySpec {
        name: "HMAC_256",
        usages: &[KeyUsage::GenerateVerifyMac],
        mac: &["HMAC_SHA_256"],
        generate: || symmetric::generate(32),
        load: symmetric::load,
        ..NONE
    },
    KeySpec {
        name: "HMAC_384",
        usages: &[KeyUsage::GenerateVerifyMac],
        mac: &["HMAC_SHA_384"],
        generate: || symmetric::generate(48),
        load: symmetric::load,
        ..NONE
    },
    KeySpec {
        name: "HMAC_512",
        usages: &[KeyUsage::GenerateVerifyMac],
        mac: &["HMAC_SHA_512"],
        generate: || symmetric::generate(64),
        load: symmetric::load,
        ..NONE
    },
];

impl KeySpec {
    /// The row with this KMS name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        KEY_SPECS.iter().find(|row| row.name == name)
    }

    /// The row with this Private CA `KeyAlgorithm`.
    pub fn by_pca_name(name: &str) -> Option<&'static Self> {
        KEY_SPECS.iter().find(|row| row.pca_name == Some(name))
    }

    /// Makes a new key and gives its stored form.
    pub fn generate(&self) -> Result<Secret, CryptoError> {
        (self.generate)()
    }

    /// Loads a key from its stored form.
    pub fn load(&self, stored: &Secret) -> Result<Box<dyn Key>, CryptoError> {
        (self.load)(stored)
    }

    /// The private key as PKCS #8 DER, from its stored form; ML-DSA's is the form with the seed.
    pub fn to_pkcs8(&self, stored: &Secret) -> Result<Secret, CryptoError> {
        (self.to_pkcs8)(stored)
    }

    /// The row of this key type with the given KMS `SigningAlgorithm`.
    pub fn signing_algorithm(&self, kms_name: &str) -> Option<&'static SignatureAlgorithm> {
        self.signing.iter().copied().find(|row| row.kms_name == kms_name)
    }
}

fn already_pkcs8(stored: &Secret) -> Result<Secret, CryptoError> {
    Ok(Secret::new(stored.expose().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every key type with every algorithm of its row: signs, verifies, and refuses what was changed.
    #[test]
    fn every_row_signs_verifies_and_encrypts() {
        for spec in KEY_SPECS {
            let stored = spec.generate().unwrap();
            let key = spec.load(&stored).unwrap();
            for algorithm in spec.signing {
                let spki = key.public_key().expect("a signing key has a public half");
                let mut signature = key.sign(algorithm, Message::Raw(b"message")).unwrap();
                algorithm.verify(spki, Message::Raw(b"message"), &signature).unwrap();
                assert_eq!(
                    algorithm.verify(spki, Message::Raw(b"massage"), &signature),
                    Err(CryptoError::InvalidSignature)
                );
                if let Some(name) = algorithm.digest {
                    let digest = Digest::by_name(name).unwrap().digest(b"message");
                    algorithm.verify(spki, Message::Digest(&digest), &signature).unwrap();
                    let second = key.sign(algorithm, Message::Digest(&digest)).unwrap();
                    algorithm.verify(spki, Message::Raw(b"message"), &second).unwrap();
                    assert!(key.sign(algorithm, Message::Digest(&digest[1..])).is_err());
                }
                *signature.last_mut().unwrap() ^= 1;
                assert!(algorithm.verify(spki, Message::Raw(b"message"), &signature).is_err());
            }
            for name in spec.encryption {
                let sealed = key.encrypt(name, b"", b"plaintext").unwrap();
                assert_eq!(key.decrypt(name, b"", &sealed).unwrap().expose(), b"plaintext");
                let mut bad = sealed.clone();
                bad[20] ^= 1;
                assert!(key.decrypt(name, b"", &bad).is_err(), "{} {name}", spec.name);
            }
            assert!(!spec.usages.is_empty());
            assert!(spec.load(&Secret::new(vec![1, 2, 3])).is_err(), "{}", spec.name);
        }
    }

    use crate::digests::Digest;
}

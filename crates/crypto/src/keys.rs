//! Key types as rows: what a key of each AWS `KeySpec` can do and how it is generated, stored and used.
//!
//! Stored forms: for ML-DSA the seed (32 bytes; FIPS 204, algorithm 1) and for ML-KEM the seed (64 bytes; FIPS 203,
//! algorithm 16), or the expanded key if it was imported without its seed (the length tells them apart); PKCS #8 DER
//! for EC, Ed25519 and RSA; the key bytes for all others.

pub mod composite;
pub mod ec;
pub mod ed25519;
mod key;
pub mod ml_dsa;
pub mod ml_kem;
mod pkcs8;
pub mod rsa;
pub mod slh_dsa;
pub mod symmetric;

pub use key::{Form, Imported, Key};

use crate::signatures::{self as sig, SignatureAlgorithm};
use crate::{CryptoError, Secret};

/// Purpose of a KMS key; the names are AWS's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUsage {
    /// `SIGN_VERIFY`
    SignVerify,
    /// `ENCRYPT_DECRYPT`
    EncryptDecrypt,
    /// `GENERATE_VERIFY_MAC`
    GenerateVerifyMac,
    /// `KEY_AGREEMENT`
    KeyAgreement,
    /// `ENCAPSULATE_DECAPSULATE`, for ML-KEM; AWS does not have it.
    EncapsulateDecapsulate,
}

impl KeyUsage {
    /// All usages.
    pub const ALL: &[Self] = &[
        Self::SignVerify,
        Self::EncryptDecrypt,
        Self::GenerateVerifyMac,
        Self::KeyAgreement,
        Self::EncapsulateDecapsulate,
    ];

    /// AWS's spelling.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SignVerify => "SIGN_VERIFY",
            Self::EncryptDecrypt => "ENCRYPT_DECRYPT",
            Self::GenerateVerifyMac => "GENERATE_VERIFY_MAC",
            Self::KeyAgreement => "KEY_AGREEMENT",
            Self::EncapsulateDecapsulate => "ENCAPSULATE_DECAPSULATE",
        }
    }

    /// Reverses [`KeyUsage::name`].
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|usage| usage.name() == name)
    }
}

/// A key type.
pub struct KeySpec {
    /// KMS `KeySpec`.
    pub name: &'static str,
    /// Private CA `KeyAlgorithm`, if a CA can have such a key.
    pub pca_name: Option<&'static str>,
    /// Usages that a key can be created for. Only for `SYMMETRIC_DEFAULT` is the first one the default.
    pub usages: &'static [KeyUsage],
    /// Signature algorithms under `SIGN_VERIFY`.
    pub signing: &'static [&'static SignatureAlgorithm],
    /// KMS `EncryptionAlgorithms` under `ENCRYPT_DECRYPT`.
    pub encryption: &'static [&'static str],
    /// KMS `MacAlgorithms` under `GENERATE_VERIFY_MAC`.
    pub mac: &'static [&'static str],
    /// KMS `KeyAgreementAlgorithms` under `KEY_AGREEMENT`.
    pub key_agreement: &'static [&'static str],
    /// Algorithms under `ENCAPSULATE_DECAPSULATE`.
    pub encapsulation: &'static [&'static str],
    /// Whether its specification is a draft, so that the format of keys and signatures may still change.
    pub draft: bool,
    /// Whether KMS `GenerateDataKeyPair` can generate it.
    pub data_key_pair: bool,
    /// Whether generating a key takes so long (up to seconds for RSA) that other requests must not wait for it.
    pub slow: bool,
    generate: fn() -> Result<Secret, CryptoError>,
    import: fn(&[u8]) -> Result<Imported, CryptoError>,
    load: fn(&Secret) -> Result<Box<dyn Key>, CryptoError>,
    to_pkcs8: fn(&Secret) -> Result<Secret, CryptoError>,
    to_form: fn(&Secret, Form) -> Result<Secret, CryptoError>,
}

impl std::fmt::Debug for KeySpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const SIGN: &[KeyUsage] = &[KeyUsage::SignVerify];
const SIGN_OR_AGREE: &[KeyUsage] = &[KeyUsage::SignVerify, KeyUsage::KeyAgreement];
const MAC: &[KeyUsage] = &[KeyUsage::GenerateVerifyMac];
const ENCAPSULATE: &[KeyUsage] = &[KeyUsage::EncapsulateDecapsulate];
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
    key_agreement: &[],
    encapsulation: &[],
    draft: false,
    data_key_pair: false,
    slow: false,
    generate: || Err(CryptoError::UnsupportedAlgorithm),
    import: |_| Err(CryptoError::UnsupportedAlgorithm),
    load: |_| Err(CryptoError::UnsupportedAlgorithm),
    to_pkcs8: |_| Err(CryptoError::UnsupportedAlgorithm),
    to_form: |_, _| Err(CryptoError::UnsupportedAlgorithm),
};

/// All key types.
pub static KEY_SPECS: &[KeySpec] = &[
    KeySpec {
        name: "SYMMETRIC_DEFAULT",
        usages: &[KeyUsage::EncryptDecrypt],
        encryption: &["SYMMETRIC_DEFAULT"],
        generate: || symmetric::AES_256.generate(),
        import: |key| symmetric::AES_256.import(key),
        load: |key| symmetric::AES_256.load(key),
        ..NONE
    },
    KeySpec {
        name: "ML_DSA_44",
        pca_name: Some("ML_DSA_44"),
        usages: SIGN,
        signing: &[&sig::ML_DSA_44],
        generate: ml_dsa::generate,
        import: |pkcs8| ml_dsa::ML_DSA_44.import(pkcs8),
        load: |stored| ml_dsa::ML_DSA_44.load(stored),
        to_pkcs8: |stored| ml_dsa::ML_DSA_44.to_pkcs8(stored),
        to_form: |stored, form| ml_dsa::ML_DSA_44.to_form(stored, form),
        ..NONE
    },
    KeySpec {
        name: "ML_DSA_65",
        pca_name: Some("ML_DSA_65"),
        usages: SIGN,
        signing: &[&sig::ML_DSA_65],
        generate: ml_dsa::generate,
        import: |pkcs8| ml_dsa::ML_DSA_65.import(pkcs8),
        load: |stored| ml_dsa::ML_DSA_65.load(stored),
        to_pkcs8: |stored| ml_dsa::ML_DSA_65.to_pkcs8(stored),
        to_form: |stored, form| ml_dsa::ML_DSA_65.to_form(stored, form),
        ..NONE
    },
    KeySpec {
        name: "ML_DSA_87",
        pca_name: Some("ML_DSA_87"),
        usages: SIGN,
        signing: &[&sig::ML_DSA_87],
        generate: ml_dsa::generate,
        import: |pkcs8| ml_dsa::ML_DSA_87.import(pkcs8),
        load: |stored| ml_dsa::ML_DSA_87.load(stored),
        to_pkcs8: |stored| ml_dsa::ML_DSA_87.to_pkcs8(stored),
        to_form: |stored, form| ml_dsa::ML_DSA_87.to_form(stored, form),
        ..NONE
    },
    KeySpec {
        name: "SLH_DSA_SHA2_128S",
        pca_name: Some("SLH_DSA_SHA2_128S"),
        usages: SIGN,
        signing: &[&sig::SLH_DSA_SHA2_128S],
        slow: true,
        generate: || slh_dsa::SHA2_128S.generate(),
        import: |pkcs8| slh_dsa::SHA2_128S.import(pkcs8),
        load: |stored| slh_dsa::SHA2_128S.load(stored),
        to_pkcs8: |stored| slh_dsa::SHA2_128S.to_pkcs8(stored),
        ..NONE
    },
    KeySpec {
        name: "SLH_DSA_SHA2_256S",
        pca_name: Some("SLH_DSA_SHA2_256S"),
        usages: SIGN,
        signing: &[&sig::SLH_DSA_SHA2_256S],
        slow: true,
        generate: || slh_dsa::SHA2_256S.generate(),
        import: |pkcs8| slh_dsa::SHA2_256S.import(pkcs8),
        load: |stored| slh_dsa::SHA2_256S.load(stored),
        to_pkcs8: |stored| slh_dsa::SHA2_256S.to_pkcs8(stored),
        ..NONE
    },
    KeySpec {
        name: "ML_DSA_65_ECDSA_P256",
        pca_name: Some("ML_DSA_65_ECDSA_P256"),
        usages: SIGN,
        signing: &[&sig::ML_DSA_65_ECDSA_P256_SHA512],
        draft: true,
        generate: composite::generate,
        import: composite::import,
        load: composite::load,
        to_pkcs8: composite::to_pkcs8,
        ..NONE
    },
    KeySpec {
        name: "ML_KEM_512",
        usages: ENCAPSULATE,
        encapsulation: &["ML_KEM"],
        data_key_pair: true,
        generate: ml_kem::generate,
        import: |pkcs8| ml_kem::ML_KEM_512.import(pkcs8),
        load: |stored| ml_kem::ML_KEM_512.load(stored),
        to_pkcs8: |stored| ml_kem::ML_KEM_512.to_pkcs8(stored),
        to_form: |stored, form| ml_kem::ML_KEM_512.to_form(stored, form),
        ..NONE
    },
    KeySpec {
        name: "ML_KEM_768",
        usages: ENCAPSULATE,
        encapsulation: &["ML_KEM"],
        data_key_pair: true,
        generate: ml_kem::generate,
        import: |pkcs8| ml_kem::ML_KEM_768.import(pkcs8),
        load: |stored| ml_kem::ML_KEM_768.load(stored),
        to_pkcs8: |stored| ml_kem::ML_KEM_768.to_pkcs8(stored),
        to_form: |stored, form| ml_kem::ML_KEM_768.to_form(stored, form),
        ..NONE
    },
    KeySpec {
        name: "ML_KEM_1024",
        usages: ENCAPSULATE,
        encapsulation: &["ML_KEM"],
        data_key_pair: true,
        generate: ml_kem::generate,
        import: |pkcs8| ml_kem::ML_KEM_1024.import(pkcs8),
        load: |stored| ml_kem::ML_KEM_1024.load(stored),
        to_pkcs8: |stored| ml_kem::ML_KEM_1024.to_pkcs8(stored),
        to_form: |stored, form| ml_kem::ML_KEM_1024.to_form(stored, form),
        ..NONE
    },
    KeySpec {
        name: "ECC_NIST_P256",
        pca_name: Some("EC_prime256v1"),
        usages: SIGN_OR_AGREE,
        signing: &[&sig::ECDSA_SHA_256],
        key_agreement: &["ECDH"],
        data_key_pair: true,
        generate: || ec::P256.generate(),
        import: |pkcs8| ec::P256.import(pkcs8),
        load: |pkcs8| ec::P256.load(pkcs8),
        to_pkcs8: already_pkcs8,
        ..NONE
    },
    KeySpec {
        name: "ECC_NIST_P384",
        pca_name: Some("EC_secp384r1"),
        usages: SIGN_OR_AGREE,
        signing: &[&sig::ECDSA_SHA_384],
        key_agreement: &["ECDH"],
        data_key_pair: true,
        generate: || ec::P384.generate(),
        import: |pkcs8| ec::P384.import(pkcs8),
        load: |pkcs8| ec::P384.load(pkcs8),
        to_pkcs8: already_pkcs8,
        ..NONE
    },
    KeySpec {
        name: "ECC_NIST_P521",
        pca_name: Some("EC_secp521r1"),
        usages: SIGN_OR_AGREE,
        signing: &[&sig::ECDSA_SHA_512],
        key_agreement: &["ECDH"],
        data_key_pair: true,
        generate: || ec::P521.generate(),
        import: |pkcs8| ec::P521.import(pkcs8),
        load: |pkcs8| ec::P521.load(pkcs8),
        to_pkcs8: already_pkcs8,
        ..NONE
    },
    KeySpec {
        name: "ECC_SECG_P256K1",
        usages: SIGN,
        signing: &[&sig::ECDSA_SHA_256],
        data_key_pair: true,
        generate: || ec::P256K1.generate(),
        import: |pkcs8| ec::P256K1.import(pkcs8),
        load: |pkcs8| ec::P256K1.load(pkcs8),
        to_pkcs8: already_pkcs8,
        ..NONE
    },
    KeySpec {
        name: "ECC_NIST_EDWARDS25519",
        usages: SIGN,
        signing: &[&sig::ED25519, &sig::ED25519_PH],
        data_key_pair: true,
        generate: ed25519::generate,
        import: ed25519::import,
        load: ed25519::load,
        to_pkcs8: already_pkcs8,
        ..NONE
    },
    KeySpec {
        name: "RSA_2048",
        pca_name: Some("RSA_2048"),
        usages: SIGN_OR_ENCRYPT,
        signing: RSA_SIGNING,
        encryption: RSA_ENCRYPTION,
        data_key_pair: true,
        slow: true,
        generate: || rsa::generate(aws_lc_rs::rsa::KeySize::Rsa2048),
        import: |pkcs8| rsa::import(pkcs8, 2048),
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
        data_key_pair: true,
        slow: true,
        generate: || rsa::generate(aws_lc_rs::rsa::KeySize::Rsa3072),
        import: |pkcs8| rsa::import(pkcs8, 3072),
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
        data_key_pair: true,
        slow: true,
        generate: || rsa::generate(aws_lc_rs::rsa::KeySize::Rsa4096),
        import: |pkcs8| rsa::import(pkcs8, 4096),
        load: rsa::load,
        to_pkcs8: already_pkcs8,
        ..NONE
    },
    KeySpec {
        name: "HMAC_224",
        usages: MAC,
        mac: &["HMAC_SHA_224"],
        generate: || symmetric::HMAC_224.generate(),
        import: |key| symmetric::HMAC_224.import(key),
        load: |key| symmetric::HMAC_224.load(key),
        ..NONE
    },
    KeySpec {
        name: "HMAC_256",
        usages: MAC,
        mac: &["HMAC_SHA_256"],
        generate: || symmetric::HMAC_256.generate(),
        import: |key| symmetric::HMAC_256.import(key),
        load: |key| symmetric::HMAC_256.load(key),
        ..NONE
    },
    KeySpec {
        name: "HMAC_384",
        usages: MAC,
        mac: &["HMAC_SHA_384"],
        generate: || symmetric::HMAC_384.generate(),
        import: |key| symmetric::HMAC_384.import(key),
        load: |key| symmetric::HMAC_384.load(key),
        ..NONE
    },
    KeySpec {
        name: "HMAC_512",
        usages: MAC,
        mac: &["HMAC_SHA_512"],
        generate: || symmetric::HMAC_512.generate(),
        import: |key| symmetric::HMAC_512.import(key),
        load: |key| symmetric::HMAC_512.load(key),
        ..NONE
    },
];

impl KeySpec {
    /// The row with this KMS name.
    ///
    /// ```
    /// use outlast_crypto::keys::KeySpec;
    /// use outlast_crypto::signatures::Message;
    ///
    /// let spec = KeySpec::by_name("ML_DSA_65").unwrap();
    /// let key = spec.load(&spec.generate().unwrap()).unwrap();
    /// let algorithm = spec.signing[0];
    /// let signature = key.sign(algorithm, Message::Raw(b"release 1")).unwrap();
    /// assert_eq!(signature.len(), 3309); // FIPS 204, table 2
    /// ```
    pub fn by_name(name: &str) -> Option<&'static Self> {
        KEY_SPECS.iter().find(|row| row.name == name)
    }

    /// The row with this Private CA `KeyAlgorithm`.
    pub fn by_pca_name(name: &str) -> Option<&'static Self> {
        KEY_SPECS.iter().find(|row| row.pca_name == Some(name))
    }

    /// Generates a key and returns its stored form.
    ///
    /// # Errors
    /// [`CryptoError::TakesLong`] inside [`crate::pace::quickly`].
    pub fn generate(&self) -> Result<Secret, CryptoError> {
        if self.slow {
            crate::pace::take_long()?;
        }
        (self.generate)()
    }

    /// Whether keys of this type have no public key.
    pub const fn is_symmetric(&self) -> bool {
        self.signing.is_empty() && self.key_agreement.is_empty() && self.encapsulation.is_empty()
    }

    /// Checks imported key material and returns its stored form. Symmetric keys are raw bytes of the length that KMS
    /// requires, all others PKCS #8 DER without trailing bytes. Any fault is [`CryptoError::InvalidKey`].
    pub fn import(&self, material: &[u8]) -> Result<Imported, CryptoError> {
        (self.import)(material)
    }

    /// Loads a key from its stored form.
    pub fn load(&self, stored: &Secret) -> Result<Box<dyn Key>, CryptoError> {
        (self.load)(stored)
    }

    /// Converts the stored form to PKCS #8 DER. ML-DSA and ML-KEM keys are written in the seed form, unless only the
    /// expanded key is known.
    pub fn to_pkcs8(&self, stored: &Secret) -> Result<Secret, CryptoError> {
        (self.to_pkcs8)(stored)
    }

    /// Converts the stored form to PKCS #8 DER of the given form. Only ML-DSA and ML-KEM have several forms, and an
    /// expanded key cannot be turned back into its seed: everything else is [`CryptoError::UnsupportedAlgorithm`].
    pub fn to_form(&self, stored: &Secret, form: Form) -> Result<Secret, CryptoError> {
        match form {
            Form::Pkcs8 => self.to_pkcs8(stored),
            form => (self.to_form)(stored, form),
        }
    }

    /// Row of this key type with the given KMS `SigningAlgorithm`.
    pub fn signing_algorithm(&self, kms_name: &str) -> Option<&'static SignatureAlgorithm> {
        self.signing.iter().copied().find(|row| row.kms_name == kms_name)
    }
}

fn already_pkcs8(stored: &Secret) -> Result<Secret, CryptoError> {
    Ok(Secret::new(stored.expose().to_vec()))
}

#[cfg(test)]
mod tests;

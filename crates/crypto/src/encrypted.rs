//! Private keys encrypted with a passphrase: PKCS #8 `EncryptedPrivateKeyInfo` with PBES2 (RFC 5958, RFC 8018, RFC
//! 7914).
//!
//! Writes scrypt with AES-256-CBC, which OpenSSL, Go and Java can read. Reads scrypt or PBKDF2 with AES, but not the
//! older schemes (PBES1, DES), because their passphrases can be found by search.

use der::Decode;
use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::pkcs5::pbes2::{Kdf, Parameters};
use pkcs8::{EncryptedPrivateKeyInfoRef, PrivateKeyInfoRef};

use crate::random::AwsLcRng;
use crate::{CryptoError, Secret, random};

/// PBKDF2 iterations when writing (OWASP Password Storage Cheat Sheet, for HMAC-SHA256).
const PBKDF2_ITERATIONS: u32 = 600_000;
/// Most PBKDF2 iterations accepted when reading, so that a file cannot occupy the machine for minutes.
const MAX_ITERATIONS: u32 = 20_000_000;
/// Most memory accepted for scrypt, in bytes (128 * N * r: RFC 7914, section 2).
const MAX_SCRYPT_MEMORY: u64 = 1 << 30;
/// Most parallel lanes accepted for scrypt; each costs as much as one lane alone.
const MAX_SCRYPT_LANES: u16 = 16;

/// Why an encrypted key was not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecryptError {
    /// Not an `EncryptedPrivateKeyInfo`, or one with an unsupported scheme.
    #[error("its encryption is damaged, or its scheme is not supported (PBES2 with AES is)")]
    Scheme,
    /// Its key derivation asks for more time or memory than a key file may use.
    #[error("its key derivation needs more time or memory than is allowed for a key file")]
    Costs,
    /// The passphrase is wrong or the content is damaged.
    #[error("the passphrase is wrong, or the key is damaged")]
    Passphrase,
}

/// Encrypts a PKCS #8 key with a passphrase; returns the DER of the `EncryptedPrivateKeyInfo`.
pub fn encrypt(pkcs8: &Secret, passphrase: &Secret) -> Result<Vec<u8>, CryptoError> {
    let info = PrivateKeyInfoRef::from_der(pkcs8.expose()).map_err(|_| CryptoError::InvalidKey)?;
    let envelope = info
        .encrypt_with_rng(&mut AwsLcRng, passphrase.expose())
        .map_err(|_| CryptoError::Library)?;
    Ok(envelope.as_bytes().to_vec())
}

/// Like [`encrypt`], but with PBKDF2-HMAC-SHA256 instead of scrypt, for older software.
pub fn encrypt_pbkdf2(pkcs8: &Secret, passphrase: &Secret) -> Result<Vec<u8>, CryptoError> {
    let info = PrivateKeyInfoRef::from_der(pkcs8.expose()).map_err(|_| CryptoError::InvalidKey)?;
    let (salt, iv) = (random::bytes::<16>()?, random::bytes::<16>()?);
    let parameters = Parameters::generate_pbkdf2_sha256_aes256cbc(PBKDF2_ITERATIONS, &salt, iv)
        .map_err(|_| CryptoError::Library)?;
    let envelope = info
        .encrypt_with_params(parameters, passphrase.expose())
        .map_err(|_| CryptoError::Library)?;
    Ok(envelope.as_bytes().to_vec())
}

/// Name of the protection, for people: `scrypt and AES-256-CBC`. `None` if `der` is not an `EncryptedPrivateKeyInfo`.
pub fn scheme(der: &[u8]) -> Option<String> {
    let info = EncryptedPrivateKeyInfoRef::from_der(der).ok()?;
    Some(match &info.encryption_algorithm {
        EncryptionScheme::Pbes2(parameters) => {
            let kdf = match &parameters.kdf {
                Kdf::Pbkdf2(kdf) => format!("PBKDF2, {} rounds", kdf.iteration_count),
                Kdf::Scrypt(kdf) => format!("scrypt, N = {}", kdf.cost_parameter),
                _ => "an unknown key derivation".to_owned(),
            };
            let oid = parameters.encryption.oid();
            let cipher = const_oid::db::DB.by_oid(&oid).map_or(oid.to_string(), str::to_owned);
            format!("PBES2: {kdf}; {cipher}")
        }
        other => format!("PBES1 ({})", other.oid()),
    })
}

/// Decrypts an `EncryptedPrivateKeyInfo`; returns PKCS #8 DER.
pub fn decrypt(der: &[u8], passphrase: &Secret) -> Result<Secret, DecryptError> {
    let info = EncryptedPrivateKeyInfoRef::from_der(der).map_err(|_| DecryptError::Scheme)?;
    let parameters = info.encryption_algorithm.pbes2().ok_or(DecryptError::Scheme)?;
    if !bearable(parameters) {
        return Err(DecryptError::Costs);
    }
    let opened = info.decrypt(passphrase.expose()).map_err(|_| DecryptError::Passphrase)?;
    Ok(Secret::new(opened.as_bytes().to_vec()))
}

fn bearable(parameters: &Parameters) -> bool {
    match &parameters.kdf {
        Kdf::Pbkdf2(kdf) => kdf.iteration_count <= MAX_ITERATIONS,
        Kdf::Scrypt(kdf) => {
            let memory = kdf.cost_parameter.saturating_mul(128 * u64::from(kdf.block_size));
            memory <= MAX_SCRYPT_MEMORY && kdf.parallelization <= MAX_SCRYPT_LANES
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeySpec;

    #[test]
    fn what_was_encrypted_opens_with_its_passphrase_only() {
        let spec = KeySpec::by_name("ML_DSA_65").unwrap();
        let key = spec.to_pkcs8(&spec.generate().unwrap()).unwrap();
        let passphrase = Secret::new(b"correct horse battery".to_vec());
        let envelope = encrypt(&key, &passphrase).unwrap();
        assert!(scheme(&envelope).unwrap().contains("scrypt"), "{:?}", scheme(&envelope));
        assert_eq!(decrypt(&envelope, &passphrase).unwrap().expose(), key.expose());
        let wrong = Secret::new(b"correct horse batterz".to_vec());
        assert_eq!(decrypt(&envelope, &wrong).err(), Some(DecryptError::Passphrase));
        assert_eq!(decrypt(&envelope[1..], &passphrase).err(), Some(DecryptError::Scheme));
        assert_eq!(decrypt(key.expose(), &passphrase).err(), Some(DecryptError::Scheme));
        assert!(encrypt(&Secret::new(b"no key".to_vec()), &passphrase).is_err());
        let envelope = encrypt_pbkdf2(&key, &passphrase).unwrap();
        assert!(scheme(&envelope).unwrap().contains("PBKDF2"), "{:?}", scheme(&envelope));
        assert_eq!(decrypt(&envelope, &passphrase).unwrap().expose(), key.expose());
    }

    #[test]
    fn monstrous_costs_are_refused_before_they_are_paid() {
        let salt = [7; 16];
        let info = |parameters: Parameters| EncryptedPrivateKeyInfoRef {
            encryption_algorithm: parameters.into(),
            encrypted_data: der::asn1::OctetStringRef::new(&[0; 32]).unwrap(),
        };
        let parameters =
            Parameters::generate_pbkdf2_sha256_aes256cbc(MAX_ITERATIONS + 1, &salt, [0; 16]);
        let envelope = der::Encode::to_der(&info(parameters.unwrap())).unwrap();
        let passphrase = Secret::new(b"x".to_vec());
        assert_eq!(decrypt(&envelope, &passphrase).err(), Some(DecryptError::Costs));
    }
}

//! ML-KEM (FIPS 203): AWS-LC encapsulates and decapsulates, the `ml-kem` crate expands the seed.
//!
//! AWS-LC's safe interface cannot load a seed and cannot return the public key of a private key that it has loaded.
//! `ml-kem` makes the expanded key, which contains both; the tests compare the two libraries.

use aws_lc_rs::kem::{self, AlgorithmId, Ciphertext, DecapsulationKey, EncapsulationKey};
use const_oid::ObjectIdentifier;
use der::Decode;
use spki::SubjectPublicKeyInfoRef;

use self::expanded::{check_expanded, expand_seed};
use super::key::{Form, Imported, Key};
use super::pkcs8::{self, Expanded};
use crate::{CryptoError, Secret, hmac, random};

/// Length of the seed (d ‖ z of FIPS 203, algorithm 16), in bytes.
pub const SEED_LEN: usize = 64;
/// Length of the shared secret, in bytes.
pub const SHARED_SECRET_LEN: usize = 32;

/// A parameter set of ML-KEM.
pub struct ParameterSet {
    oid: ObjectIdentifier,
    algorithm: &'static kem::Algorithm<AlgorithmId>,
    /// Length of the encapsulation key ek in bytes.
    public_len: usize,
    /// Length of the expanded decapsulation key in bytes: dk_PKE ‖ ek ‖ H(ek) ‖ z (FIPS 203, algorithm 16, line 3).
    expanded_len: usize,
    ciphertext_len: usize,
    expand_seed: fn(&[u8]) -> Result<Secret, CryptoError>,
    check_expanded: fn(&[u8]) -> Result<(), CryptoError>,
}

/// Security category 1; public key 800 bytes, ciphertext 768.
pub static ML_KEM_512: ParameterSet = ParameterSet {
    oid: ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.4.1"),
    algorithm: &kem::ML_KEM_512,
    public_len: 800,
    expanded_len: 1632,
    ciphertext_len: 768,
    expand_seed: expand_seed::<ml_kem::ml_kem_512::DecapsulationKey>,
    check_expanded: check_expanded::<ml_kem::ml_kem_512::DecapsulationKey>,
};
/// Security category 3; public key 1184 bytes, ciphertext 1088.
pub static ML_KEM_768: ParameterSet = ParameterSet {
    oid: ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.4.2"),
    algorithm: &kem::ML_KEM_768,
    public_len: 1184,
    expanded_len: 2400,
    ciphertext_len: 1088,
    expand_seed: expand_seed::<ml_kem::ml_kem_768::DecapsulationKey>,
    check_expanded: check_expanded::<ml_kem::ml_kem_768::DecapsulationKey>,
};
/// Security category 5; public key 1568 bytes, ciphertext 1568.
pub static ML_KEM_1024: ParameterSet = ParameterSet {
    oid: ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.4.3"),
    algorithm: &kem::ML_KEM_1024,
    public_len: 1568,
    expanded_len: 3168,
    ciphertext_len: 1568,
    expand_seed: expand_seed::<ml_kem::ml_kem_1024::DecapsulationKey>,
    check_expanded: check_expanded::<ml_kem::ml_kem_1024::DecapsulationKey>,
};

static SETS: &[&ParameterSet] = &[&ML_KEM_512, &ML_KEM_768, &ML_KEM_1024];

/// Generates a seed; it has the same length for all three parameter sets.
pub(super) fn generate() -> Result<Secret, CryptoError> {
    random::secret(SEED_LEN)
}

/// Encapsulates to the public key in `spki`, a DER `SubjectPublicKeyInfo`. Needs no private key.
pub fn encapsulate(spki: &[u8]) -> Result<(Secret, Vec<u8>), CryptoError> {
    let spki = SubjectPublicKeyInfoRef::from_der(spki).map_err(|_| CryptoError::InvalidKey)?;
    // RFC 9935, section 3: the parameters are absent.
    let set = SETS
        .iter()
        .find(|set| set.oid == spki.algorithm.oid && spki.algorithm.parameters.is_none())
        .ok_or(CryptoError::InvalidKey)?;
    let key = spki.subject_public_key.as_bytes().ok_or(CryptoError::InvalidKey)?;
    let key = EncapsulationKey::new(set.algorithm, key)?;
    // FIPS 203, section 7.2: only the check of the encapsulation key can fail.
    encapsulate_to(&key).map_err(|_| CryptoError::InvalidKey)
}

impl ParameterSet {
    pub(super) fn load(&'static self, stored: &Secret) -> Result<Box<dyn Key>, CryptoError> {
        let expanded = self.expand(stored.expose())?;
        Ok(Box::new(MlKemKey {
            set: self,
            spki: pkcs8::spki(self.oid, &expanded.public_key)?,
            encapsulation: EncapsulationKey::new(self.algorithm, &expanded.public_key)?,
            decapsulation: DecapsulationKey::new(self.algorithm, expanded.private_key.expose())?,
        }))
    }

    pub(super) fn to_pkcs8(&'static self, stored: &Secret) -> Result<Secret, CryptoError> {
        self.expand(stored.expose())?;
        if stored.len() == SEED_LEN {
            pkcs8::encode_seed(self.oid, stored.expose())
        } else {
            pkcs8::encode_expanded(self.oid, stored.expose())
        }
    }

    pub(super) fn import(&'static self, material: &[u8]) -> Result<Imported, CryptoError> {
        let imported = pkcs8::import_seed_or_expanded(material, self.oid, SEED_LEN, |stored| {
            self.expand(stored)
        })?;
        // FIPS 203, section 7.1, pair-wise consistency: an expanded key may combine halves of two keys.
        let key = self.load(&imported.stored)?;
        let (secret, ciphertext) = key.encapsulate()?;
        if hmac::equal(key.decapsulate(&ciphertext)?.expose(), secret.expose()) {
            Ok(imported)
        } else {
            Err(CryptoError::InvalidKey)
        }
    }

    pub(super) fn to_form(
        &'static self,
        stored: &Secret,
        form: Form,
    ) -> Result<Secret, CryptoError> {
        pkcs8::encode_form(self.oid, stored.expose(), SEED_LEN, form, |stored| self.expand(stored))
    }

    fn expand(&self, stored: &[u8]) -> Result<Expanded, CryptoError> {
        let private_key = if stored.len() == SEED_LEN {
            (self.expand_seed)(stored)?
        } else {
            (self.check_expanded)(stored)?;
            Secret::new(stored.to_vec())
        };
        let end = self.expanded_len - 64;
        let public_key = private_key
            .expose()
            .get(end - self.public_len..end)
            .ok_or(CryptoError::InvalidKey)?
            .to_vec();
        Ok(Expanded { private_key, public_key })
    }
}

struct MlKemKey {
    set: &'static ParameterSet,
    spki: Vec<u8>,
    encapsulation: EncapsulationKey<AlgorithmId>,
    decapsulation: DecapsulationKey<AlgorithmId>,
}

impl Key for MlKemKey {
    fn public_key(&self) -> Option<&[u8]> {
        Some(&self.spki)
    }

    fn encapsulate(&self) -> Result<(Secret, Vec<u8>), CryptoError> {
        encapsulate_to(&self.encapsulation)
    }

    fn decapsulate(&self, ciphertext: &[u8]) -> Result<Secret, CryptoError> {
        if ciphertext.len() != self.set.ciphertext_len {
            return Err(CryptoError::InvalidCiphertext);
        }
        let secret = self.decapsulation.decapsulate(Ciphertext::from(ciphertext))?;
        Ok(Secret::new(secret.as_ref().to_vec()))
    }
}

fn encapsulate_to(key: &EncapsulationKey<AlgorithmId>) -> Result<(Secret, Vec<u8>), CryptoError> {
    let (ciphertext, secret) = key.encapsulate()?;
    Ok((Secret::new(secret.as_ref().to_vec()), ciphertext.as_ref().to_vec()))
}

#[expect(deprecated, reason = "AWS-LC and the expanded form of RFC 9935 accept nothing else")]
mod expanded {
    use ml_kem::array::Array;
    use ml_kem::{ExpandedKeyEncoding, Seed};
    use zeroize::Zeroizing;

    use super::{CryptoError, Secret};

    pub(super) fn expand_seed<K>(seed: &[u8]) -> Result<Secret, CryptoError>
    where
        K: From<Seed> + ExpandedKeyEncoding,
    {
        let seed = Zeroizing::new(Seed::try_from(seed).map_err(|_| CryptoError::InvalidKey)?);
        Ok(Secret::new(K::from(*seed).to_expanded_bytes().to_vec()))
    }

    /// FIPS 203, section 7.3: checks the length, and that the stored hash is the hash of ek.
    pub(super) fn check_expanded<K: ExpandedKeyEncoding>(key: &[u8]) -> Result<(), CryptoError> {
        let key = Array::try_from(key).map_err(|_| CryptoError::InvalidKey)?;
        K::from_expanded_bytes(&key).map(|_| ()).map_err(|_| CryptoError::InvalidKey)
    }
}

//! ML-DSA (FIPS 204): AWS-LC for messages, the `ml-dsa` crate for external mu.
//!
//! AWS-LC's safe interface does not take a message representative (mu). A signature over mu is an ordinary ML-DSA
//! signature and verifies with either library; the tests show this.

use aws_lc_rs::encoding::AsRawBytes;
use aws_lc_rs::signature::{
    KeyPair, ML_DSA_44_SIGNING, ML_DSA_65_SIGNING, ML_DSA_87_SIGNING, PqdsaKeyPair,
    PqdsaSigningAlgorithm,
};
use const_oid::ObjectIdentifier;
use der::Decode;
use ml_dsa::common::array::{Array, sizes::U64};
use ml_dsa::{
    EncodedVerifyingKey, ExpandedSigningKey, ExpandedSigningKeyBytes, MlDsaParams, Signature,
    VerifyingKey,
};
use sha3::digest::{ExtendableOutput, Update, XofReader};
use spki::SubjectPublicKeyInfoRef;
use zeroize::Zeroizing;

use super::key::{Form, Imported, Key};
use super::pkcs8::{self, Expanded};
use crate::random::AwsLcRng;
use crate::signatures::algorithm::{Family, Message, SignatureAlgorithm};
use crate::{CryptoError, Secret, random};

/// Length of the seed (xi of FIPS 204, algorithm 1), in bytes.
pub const SEED_LEN: usize = 32;
/// Length of the message representative mu, in bytes.
pub const MU_LEN: usize = 64;

/// (seed or expanded key, mu) → signature
type SignMu = fn(&[u8], &[u8]) -> Result<Vec<u8>, CryptoError>;
/// (public key, mu, signature) → validity
type VerifyMu = fn(&[u8], &[u8], &[u8]) -> Result<bool, CryptoError>;

/// A parameter set of ML-DSA.
pub struct ParameterSet {
    oid: ObjectIdentifier,
    algorithm: &'static PqdsaSigningAlgorithm,
    sign_mu: SignMu,
    verify_mu: VerifyMu,
}

/// Security category 2; public key 1312 bytes, signature 2420.
pub static ML_DSA_44: ParameterSet = ParameterSet {
    oid: ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.3.17"),
    algorithm: &ML_DSA_44_SIGNING,
    sign_mu: sign_mu::<ml_dsa::MlDsa44>,
    verify_mu: verify_mu::<ml_dsa::MlDsa44>,
};
/// Security category 3; public key 1952 bytes, signature 3309.
pub static ML_DSA_65: ParameterSet = ParameterSet {
    oid: ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.3.18"),
    algorithm: &ML_DSA_65_SIGNING,
    sign_mu: sign_mu::<ml_dsa::MlDsa65>,
    verify_mu: verify_mu::<ml_dsa::MlDsa65>,
};
/// Security category 5; public key 2592 bytes, signature 4627.
pub static ML_DSA_87: ParameterSet = ParameterSet {
    oid: ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.3.19"),
    algorithm: &ML_DSA_87_SIGNING,
    sign_mu: sign_mu::<ml_dsa::MlDsa87>,
    verify_mu: verify_mu::<ml_dsa::MlDsa87>,
};

/// Generates a seed; it has the same length for all three parameter sets.
pub(super) fn generate() -> Result<Secret, CryptoError> {
    random::secret(SEED_LEN)
}

/// mu of a message without a context: [`external_mu_in_context`].
pub fn external_mu(spki: &[u8], message: &[u8]) -> Result<[u8; MU_LEN], CryptoError> {
    external_mu_in_context(spki, b"", message)
}

/// mu = SHAKE256(SHAKE256(pk, 64) ‖ 0x00 ‖ len(context) ‖ context ‖ message, 64): FIPS 204, algorithms 2 and 7.
/// `spki` is the DER `SubjectPublicKeyInfo` of the ML-DSA key; a context has at most 255 bytes.
pub fn external_mu_in_context(
    spki: &[u8],
    context: &[u8],
    message: &[u8],
) -> Result<[u8; MU_LEN], CryptoError> {
    mu(raw_public_key(spki)?, context, message)
}

/// Like [`external_mu_in_context`], with the raw public key.
pub(crate) fn mu(
    public_key: &[u8],
    context: &[u8],
    message: &[u8],
) -> Result<[u8; MU_LEN], CryptoError> {
    let context_len = u8::try_from(context.len()).map_err(|_| CryptoError::InvalidLength)?;
    let mut tr = [0; 64];
    let mut hash = sha3::Shake256::default();
    hash.update(public_key);
    hash.finalize_xof().read(&mut tr);
    let mut mu = [0; MU_LEN];
    let mut hash = sha3::Shake256::default();
    hash.update(&tr);
    hash.update(&[0, context_len]);
    hash.update(context);
    hash.update(message);
    hash.finalize_xof().read(&mut mu);
    Ok(mu)
}

impl ParameterSet {
    pub(super) fn load(&'static self, stored: &Secret) -> Result<Box<dyn Key>, CryptoError> {
        let pair = self.pair(stored.expose())?;
        // RFC 9881, section 2: the parameters are absent.
        let spki = pkcs8::spki(self.oid, pair.public_key().as_ref())?;
        let stored = Secret::new(stored.expose().to_vec());
        Ok(Box::new(MlDsaKey { set: self, pair, stored, spki }))
    }

    pub(super) fn to_pkcs8(&'static self, stored: &Secret) -> Result<Secret, CryptoError> {
        self.pair(stored.expose())?;
        if stored.len() == SEED_LEN {
            pkcs8::encode_seed(self.oid, stored.expose())
        } else {
            pkcs8::encode_expanded(self.oid, stored.expose())
        }
    }

    pub(super) fn import(&'static self, material: &[u8]) -> Result<Imported, CryptoError> {
        pkcs8::import_seed_or_expanded(material, self.oid, SEED_LEN, |stored| self.expand(stored))
    }

    pub(super) fn to_form(
        &'static self,
        stored: &Secret,
        form: Form,
    ) -> Result<Secret, CryptoError> {
        pkcs8::encode_form(self.oid, stored.expose(), SEED_LEN, form, |stored| self.expand(stored))
    }

    fn expand(&self, stored: &[u8]) -> Result<Expanded, CryptoError> {
        let pair = self.pair(stored)?;
        let private_key = pair.private_key().as_raw_bytes()?;
        Ok(Expanded {
            private_key: Secret::new(private_key.as_ref().to_vec()),
            public_key: pair.public_key().as_ref().to_vec(),
        })
    }

    /// Loads the key pair from a seed or an expanded key. For an expanded key AWS-LC checks the ranges of s1 and s2
    /// and recomputes t0 and tr.
    fn pair(&self, stored: &[u8]) -> Result<PqdsaKeyPair, CryptoError> {
        Ok(if stored.len() == SEED_LEN {
            PqdsaKeyPair::from_seed(self.algorithm, stored)?
        } else {
            PqdsaKeyPair::from_raw_private_key(self.algorithm, stored)?
        })
    }

    pub(crate) fn verify_mu(
        &self,
        spki: &[u8],
        mu: &[u8],
        signature: &[u8],
    ) -> Result<bool, CryptoError> {
        if SubjectPublicKeyInfoRef::from_der(spki).map(|spki| spki.algorithm.oid) != Ok(self.oid) {
            return Ok(false);
        }
        (self.verify_mu)(raw_public_key(spki)?, mu, signature)
    }
}

struct MlDsaKey {
    set: &'static ParameterSet,
    pair: PqdsaKeyPair,
    /// Seed or expanded key.
    stored: Secret,
    spki: Vec<u8>,
}

impl Key for MlDsaKey {
    fn public_key(&self) -> Option<&[u8]> {
        Some(&self.spki)
    }

    fn sign(
        &self,
        algorithm: &SignatureAlgorithm,
        message: Message<'_>,
    ) -> Result<Vec<u8>, CryptoError> {
        if algorithm.family != Family::MlDsa || algorithm.oid != Some(self.set.oid) {
            return Err(CryptoError::UnsupportedAlgorithm);
        }
        match message {
            Message::Raw(message) => {
                let mut signature = vec![0; self.set.algorithm.signature_len()];
                let len = self.pair.sign(message, &mut signature)?;
                signature.truncate(len);
                Ok(signature)
            }
            Message::ExternalMu(mu) => (self.set.sign_mu)(self.stored.expose(), mu),
            Message::Digest(_) => Err(CryptoError::UnsupportedAlgorithm),
        }
    }
}

fn raw_public_key(spki: &[u8]) -> Result<&[u8], CryptoError> {
    SubjectPublicKeyInfoRef::from_der(spki)
        .ok()
        .and_then(|spki| spki.subject_public_key.as_bytes())
        .ok_or(CryptoError::InvalidKey)
}

pub(crate) fn sign_mu<P: MlDsaParams>(stored: &[u8], mu: &[u8]) -> Result<Vec<u8>, CryptoError> {
    let mu = Array::<u8, U64>::try_from(mu).map_err(|_| CryptoError::InvalidLength)?;
    let key = match <&[u8; SEED_LEN]>::try_from(stored) {
        Ok(seed) => ExpandedSigningKey::<P>::from_seed(&(*seed).into()),
        Err(_) => from_expanded(stored)?,
    };
    let signature = key.sign_mu_randomized(&mu, &mut AwsLcRng).map_err(|_| CryptoError::Library)?;
    Ok(signature.encode().to_vec())
}

/// Only for a key that AWS-LC accepted: `ml-dsa` may panic on others.
#[expect(deprecated, reason = "the expanded form of RFC 9881 does not contain the seed")]
fn from_expanded<P: MlDsaParams>(key: &[u8]) -> Result<ExpandedSigningKey<P>, CryptoError> {
    let key = ExpandedSigningKeyBytes::<P>::try_from(key).map_err(|_| CryptoError::InvalidKey)?;
    Ok(ExpandedSigningKey::from_expanded(&Zeroizing::new(key)))
}

pub(crate) fn verify_mu<P: MlDsaParams>(
    public_key: &[u8],
    mu: &[u8],
    signature: &[u8],
) -> Result<bool, CryptoError> {
    let mu = Array::<u8, U64>::try_from(mu).map_err(|_| CryptoError::InvalidLength)?;
    let key =
        EncodedVerifyingKey::<P>::try_from(public_key).map_err(|_| CryptoError::InvalidKey)?;
    let Ok(signature) = Signature::<P>::try_from(signature) else { return Ok(false) };
    Ok(VerifyingKey::<P>::decode(&key).verify_mu(&mu, &signature))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signatures as sig;

    #[test]
    fn a_signature_from_mu_is_an_ordinary_signature() {
        for (set, algorithm) in [
            (&ML_DSA_44, &sig::ML_DSA_44),
            (&ML_DSA_65, &sig::ML_DSA_65),
            (&ML_DSA_87, &sig::ML_DSA_87),
        ] {
            let key = set.load(&generate().unwrap()).unwrap();
            let spki = key.public_key().unwrap();
            let mu = external_mu(spki, b"hello").unwrap();
            let from_mu = key.sign(algorithm, Message::ExternalMu(&mu)).unwrap();
            algorithm.verify(spki, Message::Raw(b"hello"), &from_mu).unwrap();
            let from_message = key.sign(algorithm, Message::Raw(b"hello")).unwrap();
            algorithm.verify(spki, Message::ExternalMu(&mu), &from_message).unwrap();
            let other = external_mu(spki, b"hullo").unwrap();
            assert!(algorithm.verify(spki, Message::ExternalMu(&other), &from_mu).is_err());
            assert!(key.sign(algorithm, Message::ExternalMu(&mu[1..])).is_err());
        }
    }
}

//! ML-DSA (FIPS 204): AWS-LC for messages, the `ml-dsa` crate for external mu.
//!
//! AWS-LC's safe interface takes no message representative (mu) from outside; a signature made from mu is
//! an ordinary ML-DSA signature and verifies with either library, which the tests show.

use aws_lc_rs::signature::{
    KeyPair, ML_DSA_44_SIGNING, ML_DSA_65_SIGNING, ML_DSA_87_SIGNING, PqdsaKeyPair,
    PqdsaSigningAlgorithm,
};
use const_oid::ObjectIdentifier;
use der::{Decode, Encode};
use ml_dsa::common::array::{Array, sizes::U64};
use ml_dsa::signature::rand_core::{TryCryptoRng, TryRng};
use ml_dsa::{EncodedVerifyingKey, ExpandedSigningKey, MlDsaParams, Signature, VerifyingKey};
use sha3::digest::{ExtendableOutput, Update, XofReader};
use spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned, SubjectPublicKeyInfoRef};

use super::Key;
use crate::signatures::{Family, Message, SignatureAlgorithm};
use crate::{CryptoError, Secret, random};

/// Length of the seed (xi of FIPS 204, algorithm 1), in bytes.
pub const SEED_LEN: usize = 32;
/// Length of the message representative mu, in bytes.
pub const MU_LEN: usize = 64;

/// (seed, mu) to signature
type SignMu = fn(&[u8], &[u8]) -> Result<Vec<u8>, CryptoError>;
/// (public key, mu, signature) to validity
type VerifyMu = fn(&[u8], &[u8], &[u8]) -> Result<bool, CryptoError>;

/// One parameter set of ML-DSA.
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

/// A new seed; all three parameter sets take the same.
pub(super) fn generate() -> Result<Secret, CryptoError> {
    random::secret(SEED_LEN)
}

/// mu = SHAKE256(SHAKE256(pk, 64) ‖ 0x00 ‖ 0x00 ‖ message, 64): FIPS 204, algorithms 2 and 7, with an empty
/// context. `spki` is the DER `SubjectPublicKeyInfo` of the ML-DSA key.
pub fn external_mu(spki: &[u8], message: &[u8]) -> Result<[u8; MU_LEN], CryptoError> {
    let mut tr = [0; 64];
    let mut hash = sha3::Shake256::default();
    hash.update(raw_public_key(spki)?);
    hash.finalize_xof().read(&mut tr);
    let mut mu = [0; MU_LEN];
    let mut hash = sha3::Shake256::default();
    hash.update(&tr);
    hash.update(&[0, 0]);
    hash.update(message);
    hash.finalize_xof().read(&mut mu);
    Ok(mu)
}

impl ParameterSet {
    pub(super) fn load(&'static self, seed: &Secret) -> Result<Box<dyn Key>, CryptoError> {
        let pair = PqdsaKeyPair::from_seed(self.algorithm, seed.expose())?;
        // RFC 9881, section 2: the parameters are absent.
        let spki = SubjectPublicKeyInfoOwned {
            algorithm: AlgorithmIdentifierOwned { oid: self.oid, parameters: None },
            subject_public_key: der::asn1::BitString::from_bytes(pair.public_key().as_ref())
                .map_err(|_| CryptoError::Library)?,
        }
        .to_der()
        .map_err(|_| CryptoError::Library)?;
        let seed = Secret::new(seed.expose().to_vec());
        Ok(Box::new(MlDsaKey { set: self, pair, seed, spki }))
    }

    pub(super) fn to_pkcs8(&'static self, seed: &Secret) -> Result<Secret, CryptoError> {
        let pair = PqdsaKeyPair::from_seed(self.algorithm, seed.expose())?;
        Ok(Secret::new(pair.to_pkcs8v1()?.as_ref().to_vec()))
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
    seed: Secret,
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
            Message::ExternalMu(mu) => (self.set.sign_mu)(self.seed.expose(), mu),
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

fn sign_mu<P: MlDsaParams>(seed: &[u8], mu: &[u8]) -> Result<Vec<u8>, CryptoError> {
    let seed = seed.try_into().map_err(|_| CryptoError::InvalidKey)?;
    let mu = Array::<u8, U64>::try_from(mu).map_err(|_| CryptoError::InvalidLength)?;
    let key = ExpandedSigningKey::<P>::from_seed(&seed);
    let signature = key.sign_mu_randomized(&mu, &mut AwsLcRng).map_err(|_| CryptoError::Library)?;
    Ok(signature.encode().to_vec())
}

fn verify_mu<P: MlDsaParams>(
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

/// AWS-LC's generator in the form that the RustCrypto crates take.
struct AwsLcRng;

impl TryRng for AwsLcRng {
    type Error = CryptoError;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        random::bytes().map(u32::from_le_bytes)
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        random::bytes().map(u64::from_le_bytes)
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Self::Error> {
        random::fill(out)
    }
}

impl TryCryptoRng for AwsLcRng {}

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

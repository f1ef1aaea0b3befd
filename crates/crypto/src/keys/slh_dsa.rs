//! SLH-DSA (FIPS 205), the small parameter sets with SHA-2, by the `slh-dsa` crate, because AWS-LC does not have it.
//!
//! Stored form: SK.seed ‖ SK.prf ‖ PK.seed ‖ PK.root (FIPS 205, figure 15).

use const_oid::ObjectIdentifier;
use der::Decode;
use ml_dsa::signature::{Keypair, RandomizedSigner, Verifier};
use slh_dsa::{Signature, SigningKey, VerifyingKey};
use spki::SubjectPublicKeyInfoRef;
use zeroize::Zeroizing;

use super::key::{Form, Imported, Key};
use super::pkcs8;
use crate::random::AwsLcRng;
use crate::signatures::algorithm::{Family, Message, SignatureAlgorithm};
use crate::{CryptoError, Secret, hmac, random};

/// (private key, message) → signature
type Sign = fn(&[u8], &[u8]) -> Result<Vec<u8>, CryptoError>;
/// (public key, message, signature) → validity
type Verify = fn(&[u8], &[u8], &[u8]) -> Result<bool, CryptoError>;

/// A parameter set of SLH-DSA.
pub struct ParameterSet {
    oid: ObjectIdentifier,
    /// n of FIPS 205, table 2, in bytes.
    n: usize,
    from_seeds: fn(&[u8], usize) -> Secret,
    sign: Sign,
    verify: Verify,
}

/// Security category 1; public key 32 bytes, private 64, signature 7856.
pub static SHA2_128S: ParameterSet = ParameterSet {
    oid: const_oid::db::fips205::ID_SLH_DSA_SHA_2_128_S,
    n: 16,
    from_seeds: from_seeds::<slh_dsa::Sha2_128s>,
    sign: sign::<slh_dsa::Sha2_128s>,
    verify: verify::<slh_dsa::Sha2_128s>,
};
/// Security category 5; public key 64 bytes, private 128, signature 29792.
pub static SHA2_256S: ParameterSet = ParameterSet {
    oid: const_oid::db::fips205::ID_SLH_DSA_SHA_2_256_S,
    n: 32,
    from_seeds: from_seeds::<slh_dsa::Sha2_256s>,
    sign: sign::<slh_dsa::Sha2_256s>,
    verify: verify::<slh_dsa::Sha2_256s>,
};

impl ParameterSet {
    pub(super) fn generate(&self) -> Result<Secret, CryptoError> {
        let seeds = random::secret(3 * self.n)?;
        Ok((self.from_seeds)(seeds.expose(), self.n))
    }

    pub(super) fn load(&'static self, stored: &Secret) -> Result<Box<dyn Key>, CryptoError> {
        // RFC 9909, section 4: the public key is PK.seed ‖ PK.root; the parameters are absent.
        let public_key = self.public_key(stored.expose())?;
        let spki = pkcs8::spki(self.oid, public_key)?;
        Ok(Box::new(SlhDsaKey { set: self, private: Secret::new(stored.expose().to_vec()), spki }))
    }

    pub(super) fn to_pkcs8(&'static self, stored: &Secret) -> Result<Secret, CryptoError> {
        self.public_key(stored.expose())?;
        // RFC 9909, section 6: the raw bytes without an inner structure.
        pkcs8::encode(self.oid, stored.expose())
    }

    pub(super) fn import(&'static self, material: &[u8]) -> Result<Imported, CryptoError> {
        let info = pkcs8::parse_without_parameters(material, self.oid)?;
        let private = info.private_key.as_bytes();
        if !pkcs8::public_key_fits(&info, self.public_key(private)?) {
            return Err(CryptoError::InvalidKey);
        }
        // FIPS 205, section 3.1: recomputes PK.root, because with a wrong one no signature would verify.
        let made = (self.from_seeds)(private, self.n);
        if !hmac::equal(made.expose(), private) {
            return Err(CryptoError::InvalidKey);
        }
        Ok(Imported { stored: made, form: Form::Pkcs8 })
    }

    pub(crate) fn verify(
        &self,
        spki: &[u8],
        message: Message<'_>,
        signature: &[u8],
    ) -> Result<bool, CryptoError> {
        let Message::Raw(message) = message else {
            return Err(CryptoError::UnsupportedAlgorithm);
        };
        match SubjectPublicKeyInfoRef::from_der(spki) {
            Ok(spki) if spki.algorithm.oid == self.oid => {
                let key = spki.subject_public_key.as_bytes().unwrap_or_default();
                (self.verify)(key, message, signature)
            }
            _ => Ok(false),
        }
    }

    fn public_key<'a>(&self, private: &'a [u8]) -> Result<&'a [u8], CryptoError> {
        if private.len() != 4 * self.n {
            return Err(CryptoError::InvalidKey);
        }
        Ok(&private[2 * self.n..])
    }
}

struct SlhDsaKey {
    set: &'static ParameterSet,
    private: Secret,
    spki: Vec<u8>,
}

impl Key for SlhDsaKey {
    fn public_key(&self) -> Option<&[u8]> {
        Some(&self.spki)
    }

    fn sign(
        &self,
        algorithm: &SignatureAlgorithm,
        message: Message<'_>,
    ) -> Result<Vec<u8>, CryptoError> {
        match message {
            Message::Raw(message)
                if algorithm.family == Family::SlhDsa && algorithm.oid == Some(self.set.oid) =>
            {
                if algorithm.slow {
                    crate::pace::take_long()?;
                }
                (self.set.sign)(self.private.expose(), message)
            }
            _ => Err(CryptoError::UnsupportedAlgorithm),
        }
    }
}

/// FIPS 205, algorithm 18, from seeds of `n` bytes each; trailing bytes are ignored.
fn from_seeds<P: slh_dsa::ParameterSet>(seeds: &[u8], n: usize) -> Secret {
    let key =
        SigningKey::<P>::slh_keygen_internal(&seeds[..n], &seeds[n..2 * n], &seeds[2 * n..3 * n]);
    Secret::new(Zeroizing::new(key.to_bytes()).to_vec())
}

/// Signs in the hedged form (FIPS 205, algorithm 22) without a context.
fn sign<P: slh_dsa::ParameterSet>(private: &[u8], message: &[u8]) -> Result<Vec<u8>, CryptoError> {
    let key = SigningKey::<P>::try_from(private).map_err(|_| CryptoError::InvalidKey)?;
    let signature =
        key.try_sign_with_rng(&mut AwsLcRng, message).map_err(|_| CryptoError::Library)?;
    // In a tree of hashes many faults can reveal the key (FIPS 205, section 3.1).
    key.verifying_key().verify(message, &signature).map_err(|_| CryptoError::Library)?;
    Ok(signature.to_vec())
}

fn verify<P: slh_dsa::ParameterSet>(
    public_key: &[u8],
    message: &[u8],
    signature: &[u8],
) -> Result<bool, CryptoError> {
    let (Ok(key), Ok(signature)) =
        (VerifyingKey::<P>::try_from(public_key), Signature::<P>::try_from(signature))
    else {
        return Ok(false);
    };
    Ok(key.verify(message, &signature).is_ok())
}

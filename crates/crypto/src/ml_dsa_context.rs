//! ML-DSA-44 with a context string (FIPS 204, section 5.2), which AWS-LC's safe interface does not take.
//!
//! Keys and signatures are raw bytes, as SSH carries them.

use ::ml_dsa::MlDsa44;
use aws_lc_rs::signature::{KeyPair, ML_DSA_44_SIGNING, PqdsaKeyPair};

use crate::keys::ml_dsa;
use crate::{CryptoError, Secret};

pub use ml_dsa::SEED_LEN;

/// Length of a public key in bytes.
pub const PUBLIC_KEY_LEN: usize = 1312;
/// Length of a signature in bytes.
pub const SIGNATURE_LEN: usize = 2420;

/// The public key of a seed of [`SEED_LEN`] bytes.
pub fn public_key(seed: &Secret) -> Result<Vec<u8>, CryptoError> {
    let pair = PqdsaKeyPair::from_seed(&ML_DSA_44_SIGNING, seed.expose())?;
    Ok(pair.public_key().as_ref().to_vec())
}

/// Signs with the key of a seed. A context has at most 255 bytes.
pub fn sign(
    seed: &Secret,
    public_key: &[u8],
    context: &[u8],
    message: &[u8],
) -> Result<Vec<u8>, CryptoError> {
    if seed.len() != SEED_LEN {
        return Err(CryptoError::InvalidKey);
    }
    let mu = ml_dsa::mu(public_key, context, message)?;
    ml_dsa::sign_mu::<MlDsa44>(seed.expose(), &mu)
}

/// Whether the signature is this key's.
pub fn verify(public_key: &[u8], context: &[u8], message: &[u8], signature: &[u8]) -> bool {
    ml_dsa::mu(public_key, context, message)
        .and_then(|mu| ml_dsa::verify_mu::<MlDsa44>(public_key, &mu, signature))
        .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_bound_to_their_context() {
        let seed = Secret::new(vec![7; SEED_LEN]);
        let key = public_key(&seed).unwrap();
        assert_eq!(key.len(), PUBLIC_KEY_LEN);
        let signature = sign(&seed, &key, b"context", b"message").unwrap();
        assert_eq!(signature.len(), SIGNATURE_LEN);
        assert!(verify(&key, b"context", b"message", &signature));
        assert!(!verify(&key, b"", b"message", &signature));
        assert!(!verify(&key, b"context", b"another", &signature));
        assert!(!verify(&key[1..], b"context", b"message", &signature));
        assert!(!verify(&key, b"context", b"message", &signature[1..]));
        assert!(sign(&Secret::new(vec![7; 33]), &key, b"", b"").is_err());
    }
}

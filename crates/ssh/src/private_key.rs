//! Private keys: generating, signing, and what their public half is.

use aws_lc_rs::encoding::{AsBigEndian, AsDer, EcPrivateKeyBin, Pkcs8V1Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{self, KeySize};
use aws_lc_rs::signature::{
    self as aws, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair, RsaEncoding,
};
use der::asn1::UintRef;
use der::{Decode, Sequence};
use outlast_crypto::{Secret, ml_dsa_context, random};

use crate::public_key::{Curve, KeyError, Material, P256, P384, P521, PublicKey};
use crate::signature::{Algorithm, COMPOSITE_LABEL, composite_message};
use crate::wire::Writer;

/// A kind of key that can be generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyKind {
    /// `ssh-mldsa44-ed25519`.
    MlDsa44Ed25519,
    /// `ssh-ed25519`.
    Ed25519,
    /// `ecdsa-sha2-nistp256`.
    EcdsaP256,
    /// `ecdsa-sha2-nistp384`.
    EcdsaP384,
    /// `ecdsa-sha2-nistp521`.
    EcdsaP521,
    /// `ssh-rsa` with 2048 bits.
    Rsa2048,
    /// `ssh-rsa` with 3072 bits.
    Rsa3072,
    /// `ssh-rsa` with 4096 bits.
    Rsa4096,
}

pub(crate) enum Inner {
    Ed25519(Ed25519KeyPair),
    Ecdsa(&'static Curve, EcdsaKeyPair),
    Rsa(rsa::KeyPair),
    Composite { ml_dsa_seed: Secret, ed25519: Ed25519KeyPair },
}

/// A private key. It has no `Debug` and no `Clone`; the library erases its memory.
pub struct PrivateKey {
    inner: Inner,
    public: PublicKey,
}

impl PrivateKey {
    /// Generates a key. RSA takes a second or more.
    pub fn generate(kind: KeyKind) -> Result<Self, KeyError> {
        let failed = |_| KeyError::Invalid;
        let ecdsa = |curve| {
            let pair = EcdsaKeyPair::generate(signing(curve)).map_err(failed)?;
            Ok::<_, KeyError>(Inner::Ecdsa(curve, pair))
        };
        let rsa = |size| rsa::KeyPair::generate(size).map(Inner::Rsa).map_err(failed);
        let inner = match kind {
            KeyKind::Ed25519 => Inner::Ed25519(Ed25519KeyPair::generate().map_err(failed)?),
            KeyKind::EcdsaP256 => ecdsa(&P256)?,
            KeyKind::EcdsaP384 => ecdsa(&P384)?,
            KeyKind::EcdsaP521 => ecdsa(&P521)?,
            KeyKind::Rsa2048 => rsa(KeySize::Rsa2048)?,
            KeyKind::Rsa3072 => rsa(KeySize::Rsa3072)?,
            KeyKind::Rsa4096 => rsa(KeySize::Rsa4096)?,
            KeyKind::MlDsa44Ed25519 => Inner::Composite {
                ml_dsa_seed: random::secret(ml_dsa_context::SEED_LEN)
                    .map_err(|_| KeyError::Invalid)?,
                ed25519: Ed25519KeyPair::generate().map_err(failed)?,
            },
        };
        Self::new(inner)
    }

    pub(crate) fn new(inner: Inner) -> Result<Self, KeyError> {
        let ed25519 = |pair: &Ed25519KeyPair| {
            <[u8; 32]>::try_from(pair.public_key().as_ref()).map_err(|_| KeyError::Invalid)
        };
        let material = match &inner {
            Inner::Ed25519(pair) => Material::Ed25519(ed25519(pair)?),
            Inner::Ecdsa(curve, pair) => {
                Material::Ecdsa(curve, pair.public_key().as_ref().to_vec())
            }
            Inner::Rsa(pair) => {
                let public = RsaPublicKey::from_der(pair.public_key().as_ref())
                    .map_err(|_| KeyError::Invalid)?;
                Material::Rsa { n: public.n.as_bytes().to_vec(), e: public.e.as_bytes().to_vec() }
            }
            Inner::Composite { ml_dsa_seed, ed25519: pair } => {
                let mut key =
                    ml_dsa_context::public_key(ml_dsa_seed).map_err(|_| KeyError::Invalid)?;
                key.extend_from_slice(&ed25519(pair)?);
                Material::Composite(key)
            }
        };
        Ok(Self { inner, public: PublicKey::new(material) })
    }

    /// The public half.
    pub fn public_key(&self) -> &PublicKey {
        &self.public
    }

    /// Whether the algorithm of this name, or its certificates', fits the key.
    pub fn signs_with(&self, algorithm: &str) -> bool {
        Algorithm::by_name(algorithm).is_some_and(|(row, _)| row.key_type == self.public.key_type())
    }

    /// Signs with the algorithm of this name, and returns a signature blob (RFC 4253, section 6.6). `None` if the
    /// algorithm does not fit the key.
    pub fn sign(&self, algorithm: &str, message: &[u8]) -> Option<Vec<u8>> {
        let (row, _) = Algorithm::by_name(algorithm)?;
        if row.key_type != self.public.key_type() {
            return None;
        }
        let signature = match &self.inner {
            Inner::Ed25519(pair) => pair.try_sign(message).ok()?.as_ref().to_vec(),
            Inner::Ecdsa(curve, pair) => {
                let fixed = pair.sign(&SystemRandom::new(), message).ok()?;
                let (r, s) = fixed.as_ref().split_at_checked(curve.len)?;
                let mut signature = Vec::new();
                signature.put_unsigned(r);
                signature.put_unsigned(s);
                signature
            }
            Inner::Rsa(pair) => {
                let padding: &'static dyn RsaEncoding = if row.name == "rsa-sha2-512" {
                    &aws::RSA_PKCS1_SHA512
                } else {
                    &aws::RSA_PKCS1_SHA256
                };
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(padding, &SystemRandom::new(), message, &mut signature).ok()?;
                signature
            }
            Inner::Composite { ml_dsa_seed, ed25519 } => {
                let Material::Composite(key) = self.public.material() else { return None };
                let message = composite_message(message);
                let key = key.get(..ml_dsa_context::PUBLIC_KEY_LEN)?;
                let mut signature =
                    ml_dsa_context::sign(ml_dsa_seed, key, COMPOSITE_LABEL, &message).ok()?;
                signature.extend_from_slice(ed25519.try_sign(&message).ok()?.as_ref());
                signature
            }
        };
        let mut blob = Vec::with_capacity(signature.len() + 40);
        blob.put_string(row.name.as_bytes());
        blob.put_string(&signature);
        Some(blob)
    }

    /// The algorithm that signs best with this key: for RSA `rsa-sha2-512`.
    pub fn algorithm(&self) -> &'static str {
        match self.public.key_type() {
            crate::public_key::RSA => "rsa-sha2-512",
            other => other,
        }
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }
}

/// The library's algorithm of a curve (RFC 5656, section 6.2.1).
pub(crate) fn signing(curve: &Curve) -> &'static EcdsaSigningAlgorithm {
    match curve.len {
        32 => &aws::ECDSA_P256_SHA256_FIXED_SIGNING,
        48 => &aws::ECDSA_P384_SHA384_FIXED_SIGNING,
        _ => &aws::ECDSA_P521_SHA512_FIXED_SIGNING,
    }
}

/// Private scalar of a key, big-endian, as long as the curve's coordinates.
pub(crate) fn scalar(pair: &EcdsaKeyPair) -> Result<EcPrivateKeyBin<'static>, KeyError> {
    pair.private_key().as_be_bytes().map_err(|_| KeyError::Invalid)
}

/// PKCS #8 of an RSA key.
pub(crate) fn rsa_pkcs8(pair: &rsa::KeyPair) -> Result<Pkcs8V1Der<'static>, KeyError> {
    pair.as_der().map_err(|_| KeyError::Invalid)
}

/// `RSAPublicKey` (RFC 8017, appendix A.1.1).
#[derive(Sequence)]
struct RsaPublicKey<'a> {
    n: UintRef<'a>,
    e: UintRef<'a>,
}

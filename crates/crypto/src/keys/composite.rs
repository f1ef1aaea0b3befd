//! ML-DSA-65 with ECDSA P-256 (draft-ietf-lamps-pq-composite-sigs, `id-MLDSA65-ECDSA-P256-SHA512`): both signatures
//! must verify. This file only joins and splits bytes; the two algorithms make the signatures.
//!
//! Stored form and private key in PKCS #8: ML-DSA seed (32) ‖ `ECPrivateKey` without a public key (51).

use ::ml_dsa::MlDsa65;
use aws_lc_rs::encoding::{AsBigEndian, EcPrivateKeyBin};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair,
    ML_DSA_65_SIGNING, PqdsaKeyPair, UnparsedPublicKey,
};
use const_oid::ObjectIdentifier;
use const_oid::db::rfc5912::SECP_256_R_1;
use der::asn1::{BitStringRef, OctetStringRef};
use der::{Decode, Encode, Sequence};
use spki::SubjectPublicKeyInfoRef;
use zeroize::Zeroizing;

use super::key::{Form, Imported, Key};
use super::ml_dsa::{self, SEED_LEN};
use super::pkcs8;
use crate::digests::Digest;
use crate::signatures::algorithm::{Family, Message, SignatureAlgorithm};
use crate::{CryptoError, Secret, random};

/// id-MLDSA65-ECDSA-P256-SHA512; public key 1952 + 65 bytes, signature 3309 and a DER `ECDSA-Sig-Value`.
pub(crate) const OID: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.6.45");
/// Start of every message representative.
const PREFIX: &[u8] = b"CompositeAlgorithmSignatures2025";
/// Label of the pair, which ML-DSA also gets as its context.
const LABEL: &[u8] = b"COMPSIG-MLDSA65-ECDSA-P256-SHA512";
/// The pre-hash PH.
const DIGEST: &str = "sha512";
const ML_DSA_PUBLIC_LEN: usize = 1952;
const ML_DSA_SIGNATURE_LEN: usize = 3309;
/// Length of an uncompressed point in bytes.
const EC_PUBLIC_LEN: usize = 65;

pub(super) fn generate() -> Result<Secret, CryptoError> {
    let seed = random::secret(SEED_LEN)?;
    encode(seed.expose(), &EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING)?)
}

pub(super) fn load(stored: &Secret) -> Result<Box<dyn Key>, CryptoError> {
    Ok(Box::new(CompositeKey::new(stored.expose())?))
}

pub(super) fn to_pkcs8(stored: &Secret) -> Result<Secret, CryptoError> {
    CompositeKey::new(stored.expose())?;
    pkcs8::encode(OID, stored.expose())
}

pub(super) fn import(material: &[u8]) -> Result<Imported, CryptoError> {
    let info = pkcs8::parse_without_parameters(material, OID)?;
    let key = CompositeKey::new(info.private_key.as_bytes())?;
    if !pkcs8::public_key_fits(&info, &key.public_key) {
        return Err(CryptoError::InvalidKey);
    }
    Ok(Imported { stored: encode(key.seed.expose(), &key.ec)?, form: Form::Pkcs8 })
}

/// Verifies both signatures, without an application context.
pub(crate) fn verify(
    _: &SignatureAlgorithm,
    spki: &[u8],
    message: Message<'_>,
    signature: &[u8],
) -> Result<bool, CryptoError> {
    verify_in_context(spki, b"", message, signature)
}

/// Verifies both signatures, with an application context of at most 255 bytes. `spki` is the DER
/// `SubjectPublicKeyInfo` of the composite key.
pub fn verify_in_context(
    spki: &[u8],
    context: &[u8],
    message: Message<'_>,
    signature: &[u8],
) -> Result<bool, CryptoError> {
    let representative = representative(context, message)?;
    let Some(public_key) = SubjectPublicKeyInfoRef::from_der(spki)
        .ok()
        .filter(|spki| spki.algorithm.oid == OID)
        .and_then(|spki| spki.subject_public_key.as_bytes())
    else {
        return Ok(false);
    };
    let (Some((ml_dsa_key, ec_key)), Some((ml_dsa, ecdsa))) = (
        public_key.split_at_checked(ML_DSA_PUBLIC_LEN),
        signature.split_at_checked(ML_DSA_SIGNATURE_LEN),
    ) else {
        return Ok(false);
    };
    // Requires an uncompressed point of this length, because AWS-LC also takes other forms of a key.
    if ec_key.len() != EC_PUBLIC_LEN {
        return Ok(false);
    }
    let mu = ml_dsa::mu(ml_dsa_key, LABEL, &representative)?;
    Ok(ml_dsa::verify_mu::<MlDsa65>(ml_dsa_key, &mu, ml_dsa)?
        && UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, ec_key)
            .verify(&representative, ecdsa)
            .is_ok())
}

struct CompositeKey {
    seed: Secret,
    ec: EcdsaKeyPair,
    /// ML-DSA public key ‖ uncompressed point.
    public_key: Vec<u8>,
    spki: Vec<u8>,
}

impl CompositeKey {
    fn new(private: &[u8]) -> Result<Self, CryptoError> {
        let (seed, ec) = private.split_at_checked(SEED_LEN).ok_or(CryptoError::InvalidKey)?;
        // AWS-LC would accept bytes after the structure.
        EcPrivateKey::from_der(ec).map_err(|_| CryptoError::InvalidKey)?;
        let ec = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_ASN1_SIGNING, ec)?;
        let ml_dsa = PqdsaKeyPair::from_seed(&ML_DSA_65_SIGNING, seed)?;
        let public_key = [ml_dsa.public_key().as_ref(), ec.public_key().as_ref()].concat();
        let spki = pkcs8::spki(OID, &public_key)?;
        Ok(Self { seed: Secret::new(seed.to_vec()), ec, public_key, spki })
    }
}

impl Key for CompositeKey {
    fn public_key(&self) -> Option<&[u8]> {
        Some(&self.spki)
    }

    fn sign(
        &self,
        algorithm: &SignatureAlgorithm,
        message: Message<'_>,
    ) -> Result<Vec<u8>, CryptoError> {
        if algorithm.family != Family::Composite {
            return Err(CryptoError::UnsupportedAlgorithm);
        }
        let representative = representative(b"", message)?;
        let mu = ml_dsa::mu(&self.public_key[..ML_DSA_PUBLIC_LEN], LABEL, &representative)?;
        let mut signature = ml_dsa::sign_mu::<MlDsa65>(self.seed.expose(), &mu)?;
        let ecdsa = self.ec.sign(&SystemRandom::new(), &representative)?;
        signature.extend_from_slice(ecdsa.as_ref());
        Ok(signature)
    }
}

/// M' = prefix ‖ label ‖ len(context) ‖ context ‖ PH(message).
fn representative(context: &[u8], message: Message<'_>) -> Result<Vec<u8>, CryptoError> {
    let hash = Digest::by_name(DIGEST).ok_or(CryptoError::Library)?;
    let digest = match message {
        Message::Raw(message) => hash.digest(message),
        Message::Digest(digest) => digest.to_vec(),
        Message::ExternalMu(_) => return Err(CryptoError::UnsupportedAlgorithm),
    };
    if digest.len() != hash.output_len {
        return Err(CryptoError::InvalidLength);
    }
    let context_len = u8::try_from(context.len()).map_err(|_| CryptoError::InvalidLength)?;
    Ok([PREFIX, LABEL, &[context_len], context, &digest].concat())
}

/// Encodes the stored form.
fn encode(seed: &[u8], ec: &EcdsaKeyPair) -> Result<Secret, CryptoError> {
    let scalar: EcPrivateKeyBin<'_> = ec.private_key().as_be_bytes()?;
    let library = |_| CryptoError::Library;
    let ec = EcPrivateKey {
        version: 1,
        private_key: OctetStringRef::new(scalar.as_ref()).map_err(library)?,
        parameters: Some(SECP_256_R_1),
        public_key: None,
    };
    let ec = Zeroizing::new(ec.to_der().map_err(library)?);
    Ok(Secret::new([seed, ec.as_slice()].concat()))
}

/// `ECPrivateKey` of RFC 5915, section 3.
#[derive(Sequence)]
struct EcPrivateKey<'a> {
    version: u8,
    private_key: &'a OctetStringRef,
    #[asn1(context_specific = "0", tag_mode = "EXPLICIT", optional = "true")]
    parameters: Option<ObjectIdentifier>,
    #[asn1(context_specific = "1", tag_mode = "EXPLICIT", optional = "true")]
    public_key: Option<BitStringRef<'a>>,
}

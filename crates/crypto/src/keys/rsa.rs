//! RSA signatures and RSAES-OAEP, by AWS-LC.

use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{
    KeySize, OAEP_SHA1_MGF1SHA1, OAEP_SHA256_MGF1SHA256, OaepAlgorithm, OaepPrivateDecryptingKey,
    OaepPublicEncryptingKey, PrivateDecryptingKey, PublicEncryptingKey,
};
use aws_lc_rs::signature::{
    KeyPair, RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
    RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};

use super::key::{Form, Imported, Key};
use super::pkcs8;
use crate::signatures::{self, Message, SignatureAlgorithm};
use crate::{CryptoError, Secret};

pub(super) fn generate(size: KeySize) -> Result<Secret, CryptoError> {
    let pair = RsaKeyPair::generate(size)?;
    let pkcs8: Pkcs8V1Der<'_> = pair.as_der()?;
    Ok(Secret::new(pkcs8.as_ref().to_vec()))
}

pub(super) fn load(pkcs8: &Secret) -> Result<Box<dyn Key>, CryptoError> {
    let pair = RsaKeyPair::from_pkcs8(pkcs8.expose())?;
    let spki: PublicKeyX509Der<'_> = pair.public_key().as_der()?;
    let spki = spki.as_ref().to_vec();
    let decryptor =
        OaepPrivateDecryptingKey::new(PrivateDecryptingKey::from_pkcs8(pkcs8.expose())?)?;
    let encryptor = OaepPublicEncryptingKey::new(PublicEncryptingKey::from_der(&spki)?)?;
    Ok(Box::new(RsaKey { pair, spki, decryptor, encryptor }))
}

/// AWS-LC checks that the numbers of the key are consistent.
pub(super) fn import(material: &[u8], bits: usize) -> Result<Imported, CryptoError> {
    pkcs8::parse(material, const_oid::db::rfc5912::RSA_ENCRYPTION)?;
    let pair = RsaKeyPair::from_pkcs8(material)?;
    if PrivateDecryptingKey::from_pkcs8(material)?.key_size_bits() != bits {
        return Err(CryptoError::InvalidKey);
    }
    let pkcs8: Pkcs8V1Der<'_> = pair.as_der()?;
    Ok(Imported { stored: Secret::new(pkcs8.as_ref().to_vec()), form: Form::Pkcs8 })
}

struct RsaKey {
    pair: RsaKeyPair,
    spki: Vec<u8>,
    decryptor: OaepPrivateDecryptingKey,
    encryptor: OaepPublicEncryptingKey,
}

/// AWS-LC's encoding of each signature row.
const ENCODINGS: &[(&SignatureAlgorithm, &dyn RsaEncoding)] = &[
    (&signatures::RSA_PSS_SHA_256, &RSA_PSS_SHA256),
    (&signatures::RSA_PSS_SHA_384, &RSA_PSS_SHA384),
    (&signatures::RSA_PSS_SHA_512, &RSA_PSS_SHA512),
    (&signatures::RSA_PKCS1_SHA_256, &RSA_PKCS1_SHA256),
    (&signatures::RSA_PKCS1_SHA_384, &RSA_PKCS1_SHA384),
    (&signatures::RSA_PKCS1_SHA_512, &RSA_PKCS1_SHA512),
];

fn oaep(name: &str) -> Result<&'static OaepAlgorithm, CryptoError> {
    match name {
        "RSAES_OAEP_SHA_1" => Ok(&OAEP_SHA1_MGF1SHA1),
        "RSAES_OAEP_SHA_256" => Ok(&OAEP_SHA256_MGF1SHA256),
        _ => Err(CryptoError::UnsupportedAlgorithm),
    }
}

impl Key for RsaKey {
    fn public_key(&self) -> Option<&[u8]> {
        Some(&self.spki)
    }

    fn sign(
        &self,
        algorithm: &SignatureAlgorithm,
        message: Message<'_>,
    ) -> Result<Vec<u8>, CryptoError> {
        let (_, encoding) = ENCODINGS
            .iter()
            .find(|(row, _)| *row == algorithm)
            .ok_or(CryptoError::UnsupportedAlgorithm)?;
        let mut signature = vec![0; self.pair.public_modulus_len()];
        match message {
            Message::Raw(message) => {
                self.pair.sign(*encoding, &SystemRandom::new(), message, &mut signature)?;
            }
            Message::Digest(digest) => {
                let digest = algorithm.import_digest(digest)?;
                self.pair.sign_digest(*encoding, &digest, &mut signature)?;
            }
            Message::ExternalMu(_) => return Err(CryptoError::UnsupportedAlgorithm),
        }
        Ok(signature)
    }

    fn encrypt(&self, name: &str, _: &[u8], plaintext: &[u8]) -> Result<Vec<u8>, CryptoError> {
        let algorithm = oaep(name)?;
        if plaintext.len() > self.encryptor.max_plaintext_size(algorithm) {
            return Err(CryptoError::InvalidLength);
        }
        let mut out = vec![0; self.encryptor.ciphertext_size()];
        let len = self.encryptor.encrypt(algorithm, plaintext, &mut out, None)?.len();
        out.truncate(len);
        Ok(out)
    }

    fn decrypt(&self, name: &str, _: &[u8], ciphertext: &[u8]) -> Result<Secret, CryptoError> {
        let algorithm = oaep(name)?;
        let mut out = zeroize::Zeroizing::new(vec![0; self.decryptor.min_output_size()]);
        let plaintext = self
            .decryptor
            .decrypt(algorithm, ciphertext, &mut out, None)
            .map_err(|_| CryptoError::InvalidCiphertext)?;
        Ok(Secret::new(plaintext.to_vec()))
    }
}

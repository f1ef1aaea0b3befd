//! Tries keys out: whether they load, work, and belong to a public key.

use outlast_crypto::keys::{KEY_SPECS, Key, KeySpec};
use outlast_crypto::signatures::Message;
use outlast_crypto::{CryptoError, Secret};
use outlast_pki::certificate::Certificate;

/// The public key of a certificate.
pub(super) fn certificate_key(pem: &str) -> Option<Vec<u8>> {
    Certificate::parse_one(pem.as_bytes()).and_then(|found| found.public_key()).ok()
}

/// Loads a key and uses it.
pub(super) fn try_out(spec: &KeySpec, secret: &Secret) -> Result<Box<dyn Key>, &'static str> {
    const TEXT: &[u8] = b"outlast store check";
    let key = spec.load(secret).map_err(|_| "the key material is not one of the key's type")?;
    if let (Some(algorithm), Some(public_key)) = (spec.signing.first(), key.public_key()) {
        key.sign(algorithm, Message::Raw(TEXT))
            .and_then(|signature| algorithm.verify(public_key, Message::Raw(TEXT), &signature))
            .map_err(|_| "what the key signs does not verify")?;
    }
    if let Some(algorithm) = spec.encryption.first() {
        let opened = key
            .encrypt(algorithm, b"", TEXT)
            .and_then(|sealed| key.decrypt(algorithm, b"", &sealed))
            .map_err(|_| "what the key encrypts does not decrypt")?;
        if opened.expose() != TEXT {
            return Err("what the key encrypts does not decrypt");
        }
    }
    if let Some(algorithm) = spec.mac.first() {
        key.mac(algorithm, TEXT)
            .and_then(|mac| key.verify_mac(algorithm, TEXT, &mac))
            .map_err(|_| "what the key authenticates does not verify")?;
    }
    match key.encapsulate() {
        Err(CryptoError::UnsupportedAlgorithm) => {}
        outcome => {
            let same = outcome.and_then(|(secret, ciphertext)| {
                Ok(key.decapsulate(&ciphertext)?.expose() == secret.expose())
            });
            if same != Ok(true) {
                return Err("what the key encapsulates does not decapsulate");
            }
        }
    }
    Ok(key)
}

/// The key type for which `secret` is the private key of this public key.
pub(super) fn fitting(secret: &Secret, public_key: &[u8]) -> Option<&'static KeySpec> {
    KEY_SPECS
        .iter()
        .find(|spec| spec.load(secret).is_ok_and(|key| same_key(key.as_ref(), public_key).is_ok()))
}

/// Whether the private key belongs to this public key.
pub(super) fn same_key(key: &dyn Key, public_key: &[u8]) -> Result<(), &'static str> {
    if key.public_key() == Some(public_key) {
        return Ok(());
    }
    Err("the private key is not the certificate's")
}

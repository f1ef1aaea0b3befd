//! Private host keys, in OpenSSH's format.
//!
//! Source: OpenSSH's PROTOCOL.key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use outlast_crypto::keys::KeySpec;
use outlast_crypto::{CryptoError, Secret, random};

use super::TransferError;
use super::ssh_key::PublicKey;
use crate::Fault;

/// A private key with its public one.
pub(super) struct Material {
    /// The public key.
    pub public: PublicKey,
    /// OpenSSH's private key file.
    pub private: Secret,
}

/// Algorithms of the keys that a server gets if it is created without one.
pub(super) static GENERATED: &[&str] = &["ssh-ed25519"];

const MAGIC: &[u8] = b"openssh-key-v1\0";
const BEGIN: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const END: &str = "-----END OPENSSH PRIVATE KEY-----";

/// A new key.
pub(super) fn generate(_: &str) -> Result<Material, Fault> {
    let spec =
        KeySpec::by_name("ECC_NIST_EDWARDS25519").ok_or(CryptoError::UnsupportedAlgorithm)?;
    let stored = spec.generate()?;
    let key = spec.load(&stored)?;
    let spki = key.public_key().ok_or(CryptoError::UnsupportedAlgorithm)?;
    let encoding = || Fault::Encoding("an Ed25519 key".into());
    let public = spki.len().checked_sub(32).and_then(|at| spki.get(at..)).ok_or_else(encoding)?;
    let seed = stored.expose().get(16..48).ok_or_else(encoding)?;
    let mut blob = Vec::new();
    string(&mut blob, b"ssh-ed25519");
    string(&mut blob, public);
    let check = random::bytes::<4>()?;
    let mut section = [check, check].concat();
    string(&mut section, b"ssh-ed25519");
    string(&mut section, public);
    string(&mut section, &[seed, public].concat());
    string(&mut section, b"");
    let mut padding = 0;
    while section.len() % 8 != 0 {
        padding += 1;
        section.push(padding);
    }
    let section = Secret::new(section);
    let mut file = MAGIC.to_vec();
    for part in [&b"none"[..], b"none", b""] {
        string(&mut file, part);
    }
    file.extend(1_u32.to_be_bytes());
    string(&mut file, &blob);
    string(&mut file, section.expose());
    let file = Secret::new(file);
    let text = format!("{BEGIN}\n{}\n{END}\n", STANDARD.encode(file.expose()));
    let public = PublicKey::parse(&blob).map_err(|_| encoding())?;
    Ok(Material { public, private: Secret::new(text.into_bytes()) })
}

/// Reads a private key that is not encrypted.
pub(super) fn parse(text: &str) -> Result<Material, TransferError> {
    let invalid = || TransferError::invalid("Unsupported or invalid private host key format");
    let inner = text.trim().strip_prefix(BEGIN).and_then(|rest| rest.trim_end().strip_suffix(END));
    let inner: String = inner.ok_or_else(invalid)?.split_ascii_whitespace().collect();
    let file = Secret::new(STANDARD.decode(inner).map_err(|_| invalid())?);
    let mut rest = file.expose().strip_prefix(MAGIC).ok_or_else(invalid)?;
    for _ in 0..2 {
        if take(&mut rest).ok_or_else(invalid)? != b"none" {
            return Err(TransferError::invalid("The host key is encrypted: remove its passphrase"));
        }
    }
    take(&mut rest).ok_or_else(invalid)?;
    rest = rest.strip_prefix(&[0, 0, 0, 1]).ok_or_else(invalid)?;
    let blob = take(&mut rest).ok_or_else(invalid)?;
    let public =
        PublicKey::parse(blob).map_err(|error| TransferError::InvalidRequest(error.to_string()))?;
    Ok(Material { public, private: Secret::new(text.trim().as_bytes().to_vec()) })
}

fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(bytes);
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let (found, after) =
        after.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    *rest = after;
    Some(found)
}

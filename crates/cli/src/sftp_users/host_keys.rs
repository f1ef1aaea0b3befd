//! Host keys: from files, or made at the first start and kept in a folder that only its owner can enter.

use std::path::Path;

use outlast_crypto::Secret;
use outlast_domain::transfer::ServedHostKey;
use outlast_ssh::{KeyKind, PrivateKey};

use crate::failure::Failure;
use crate::files;

/// Largest private key file, in bytes.
const MAX_KEY: usize = 64 * 1024;

/// Those that are made, with the names of their files: the ones that a server of the API gets.
const MADE: &[(&str, KeyKind)] = &[
    ("ssh_host_mldsa44_ed25519_key", KeyKind::MlDsa44Ed25519),
    ("ssh_host_ed25519_key", KeyKind::Ed25519),
    ("ssh_host_ecdsa_key", KeyKind::EcdsaP256),
];

/// Reads a private key file.
pub(super) fn read(path: &Path) -> Result<ServedHostKey, Failure> {
    let bytes = Secret::new(files::read(path, MAX_KEY)?);
    let failed = |error: &dyn std::fmt::Display| {
        Failure::file(path, &format!("it is no host key that can be used: {error}")).hint(
            "host keys are private key files without a passphrase, as ssh-keygen -N '' makes them",
        )
    };
    let text = std::str::from_utf8(bytes.expose()).map_err(|error| failed(&error))?;
    let key = PrivateKey::from_pem(text).map_err(|error| failed(&error))?;
    let public = key.public_key();
    Ok(ServedHostKey {
        id: path.display().to_string(),
        kind: public.key_type().to_owned(),
        fingerprint: public.fingerprint(),
        private: bytes,
    })
}

/// The keys of a folder; they are made if there are none.
pub(super) fn kept(folder: &Path) -> Result<Vec<ServedHostKey>, Failure> {
    files::make_private_folder(folder)?;
    let mut all = Vec::new();
    for (name, kind) in MADE {
        let path = folder.join(name);
        if !files::exists(&path)? {
            let made = PrivateKey::generate(*kind).and_then(|key| key.to_openssh_pem(""));
            let made = made.map_err(|error| Failure::file(&path, &error))?;
            files::write_absent(&path, made.expose(), 0o600)?;
        }
        all.push(read(&path)?);
    }
    Ok(all)
}

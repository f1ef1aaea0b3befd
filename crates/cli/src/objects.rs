//! Reads certificates, requests, CRLs, keys and the like from files.

use std::path::Path;

use outlast_crypto::encrypted;
use outlast_pki::object::{self, Kind, Object};

use crate::failure::Failure;
use crate::files;
use crate::root_key::Source;

/// Largest file that is read, in bytes: CRLs can be long.
pub(crate) const MAX_FILE: usize = 64 << 20;

/// All objects of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<Object>, Failure> {
    let bytes = outlast_crypto::Secret::new(files::read(path, MAX_FILE)?);
    object::read(bytes.expose()).map_err(|error| Failure::file(path, &error))
}

/// The certificates of a file, which must contain at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let found: Vec<_> = read(path)?
        .iter()
        .filter(|object| object.kind == Kind::Certificate)
        .map(|object| object.der.expose().to_vec())
        .collect();
    if found.is_empty() {
        return Err(Failure::file(path, &"there is no certificate in it"));
    }
    Ok(found)
}

/// Opens an encrypted key; other objects stay as they are.
pub(crate) fn opened(object: Object, passphrase: Option<&Source>) -> Result<Object, Failure> {
    let (Kind::EncryptedPrivateKey, Some(source)) = (object.kind, passphrase) else {
        return Ok(object);
    };
    let der = encrypted::decrypt(object.der.expose(), &source.read_for_key()?)
        .map_err(|error| Failure::new(error.to_string()))?;
    Ok(Object { kind: Kind::PrivateKey, der })
}

/// Source of a passphrase, as an argument.
pub(crate) fn source(text: &str) -> Result<Source, String> {
    Source::parse(text).map_err(|failure| failure.message().to_owned())
}

//! Aigis-enc and Aigis-sig of the Chinese competition, from PQMagic's library, if it is installed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use outlast_native::Missing;
use outlast_native::pqmagic as native;
use outlast_native::pqmagic::{FILE_NAME, PqMagic};

use super::kem::{Kem, Mechanism};
use super::signature::{Algorithm, Secret, Signature};
use crate::error::LabError;
use crate::trusted::trusted;

/// Whether the library must not be used.
static NOWHERE: AtomicBool = AtomicBool::new(false);
/// Where to look, before the usual places.
static PLACES: OnceLock<Vec<PathBuf>> = OnceLock::new();

/// Sets where the library may be: files, or folders that contain it. To be called before the first use of a row; has
/// no effect later.
pub fn look_in(places: Vec<PathBuf>) {
    let _ = PLACES.set(places);
}

/// Stops using the library: valgrind does not know every instruction that it was compiled with.
pub fn look_nowhere() {
    NOWHERE.store(true, Ordering::Relaxed);
}

/// Where pip installs it, below the given folders (a virtual environment, the user's `~/.local`) and the system's.
pub fn usual_places(folders: &[PathBuf]) -> Vec<PathBuf> {
    let system = ["/usr/local", "/usr"].map(PathBuf::from);
    let mut places: Vec<PathBuf> = folders.to_vec();
    for folder in folders.iter().chain(&system) {
        places.extend(site_packages(&folder.join("lib")));
        places.push(folder.join("lib"));
    }
    places
}

/// `python3.11/site-packages/pqmagic` and the like; Debian calls them `dist-packages`.
fn site_packages(lib: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(lib) else { return Vec::new() };
    let python = |path: &PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with("python3"))
    };
    let mut versions: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(python).collect();
    versions.sort();
    let packages = |version: PathBuf| {
        ["site-packages", "dist-packages"].map(|folder| version.join(folder).join("pqmagic"))
    };
    versions.into_iter().rev().flat_map(packages).collect()
}

/// The library, or why it cannot be used.
pub fn library() -> Result<&'static PqMagic, &'static Missing> {
    static LIBRARY: LazyLock<Result<PqMagic, Missing>> = LazyLock::new(|| {
        if NOWHERE.load(Ordering::Relaxed) {
            return Err(Missing {
                library: FILE_NAME.to_owned(),
                reason: "told to do without".to_owned(),
            });
        }
        let mut places = PLACES.get().cloned().unwrap_or_default();
        places.extend(usual_places(&[]));
        PqMagic::load(&safe(&places)?)
    });
    LIBRARY.as_ref()
}

/// The files that exist; one that others may write to is an error, because somebody meant it to be used.
fn safe(places: &[PathBuf]) -> Result<Vec<PathBuf>, Missing> {
    let file = |place: &PathBuf| if place.is_dir() { place.join(FILE_NAME) } else { place.clone() };
    let files = places.iter().map(file).filter(|file| file.is_file());
    files
        .map(|file| {
            trusted(&file).map_err(|error| Missing {
                library: FILE_NAME.to_owned(),
                reason: error.to_string(),
            })
        })
        .collect()
}

const SOURCE: &str = "PQMagic, portable C";

/// Levels by the quantum security that the submission claims (100, 147, 213 bits for sets 1, 2, 4 of Aigis-enc),
/// since it names none of NIST's; set 3 has the sizes of AKCN-MLWE's recommended set.
const KEMS: &[(&str, u8)] =
    &[("aigis_enc_1", 1), ("aigis_enc_2", 2), ("aigis_enc_3", 3), ("aigis_enc_4", 5)];

/// As for Dilithium's three sets of round 2, to which they correspond.
const SIGNATURES: &[(&str, u8)] = &[("aigis_sig1", 1), ("aigis_sig2", 2), ("aigis_sig3", 3)];

/// Aigis-enc, if the library is installed.
pub(super) fn kems() -> Vec<Kem> {
    let Ok(library) = library() else { return Vec::new() };
    let row = |(name, level): &(&str, u8)| {
        let sizes = native::KEMS.iter().find(|row| row.name == *name)?;
        Some(Kem {
            name: sizes.name,
            level: *level,
            public_key_len: sizes.public_key,
            secret_key_len: sizes.secret_key,
            ciphertext_len: sizes.ciphertext,
            source: SOURCE,
            mechanism: Box::leak(Box::new(library.kem(*sizes).ok()?)),
        })
    };
    KEMS.iter().filter_map(row).collect()
}

/// Aigis-sig, if the library is installed.
pub(super) fn signatures() -> Vec<Signature> {
    let Ok(library) = library() else { return Vec::new() };
    let row = |(name, level): &(&str, u8)| {
        let sizes = native::SIGNATURES.iter().find(|row| row.name == *name)?;
        Some(Signature {
            name: sizes.name,
            level: *level,
            public_key_len: sizes.public_key,
            secret_key_len: sizes.secret_key,
            signature_len: sizes.signature,
            source: SOURCE,
            algorithm: Box::leak(Box::new(Aigis(Arc::new(library.signature(*sizes).ok()?)))),
        })
    };
    SIGNATURES.iter().filter_map(row).collect()
}

impl Mechanism for native::Kem {
    fn generate(&self) -> Result<(Vec<u8>, Vec<u8>), LabError> {
        native::Kem::generate(self).map_err(LabError::failed)
    }

    fn encapsulate(&self, public_key: &[u8]) -> Result<(Vec<u8>, Vec<u8>), LabError> {
        native::Kem::encapsulate(self, public_key).map_err(LabError::failed)
    }

    fn decapsulate(&self, secret_key: &[u8], ciphertext: &[u8]) -> Result<Vec<u8>, LabError> {
        native::Kem::decapsulate(self, secret_key, ciphertext).map_err(LabError::failed)
    }
}

/// Aigis-sig with an empty context.
#[derive(Debug)]
struct Aigis(Arc<native::Signature>);

struct AigisSecret {
    algorithm: Arc<native::Signature>,
    key: Vec<u8>,
}

impl Algorithm for Aigis {
    fn generate(&self) -> Result<(Vec<u8>, Arc<dyn Secret>), LabError> {
        let (public, key) = self.0.generate().map_err(LabError::failed)?;
        Ok((public, Arc::new(AigisSecret { algorithm: self.0.clone(), key })))
    }

    fn verify(&self, public_key: &[u8], message: &[u8], signature: &[u8]) -> bool {
        self.0.verify(public_key, message, b"", signature)
    }
}

impl Secret for AigisSecret {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, LabError> {
        self.algorithm.sign(&self.key, message, b"").map_err(LabError::failed)
    }
}

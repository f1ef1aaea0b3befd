//! Files: written whole or not at all.

use std::fs::{self, File, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::failure::Failure;

/// Writes `bytes` to `path` by way of a temporary file beside it, synced, with these permissions.
pub(crate) fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    let attempt = || -> std::io::Result<()> {
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        temporary.write_all(bytes)?;
        temporary.as_file().set_permissions(Permissions::from_mode(mode))?;
        temporary.as_file().sync_all()?;
        temporary.persist(path).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()
    };
    attempt().map_err(|error| Failure::file(path, &error))
}

/// Reads a file of at most `max` bytes.
pub(crate) fn read(path: &Path, max: usize) -> Result<Vec<u8>, Failure> {
    let attempt = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(max as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = attempt().map_err(|error| Failure::file(path, &error))?;
    if bytes.len() > max {
        return Err(Failure::file(path, &format!("the file is longer than {max} bytes")));
    }
    Ok(bytes)
}

/// Makes a folder that only its owner can enter, with its parents.
pub(crate) fn make_private_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path)
        .and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o700)))
        .map_err(|error| Failure::file(path, &error))
}

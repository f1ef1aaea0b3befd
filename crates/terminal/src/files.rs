//! Files, written completely or not at all.

use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::temporary::Pending;

/// Writes `bytes` to `path` through a temporary file in the same folder, synced, with these permissions.
pub fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    put(path, bytes, mode, true).map_err(|error| io_failure(path, &error))
}

/// The same as [`write`], except that an existing file stays, and is an error.
pub fn write_absent(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    put(path, bytes, mode, false).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => exists_already(path),
        _ => io_failure(path, &error),
    })
}

/// A file that is not replaced without `--force`.
pub fn exists_already(path: &Path) -> Failure {
    Failure::file(path, &"the file exists already")
        .hint("choose another name, or replace it with --force")
}

fn put(path: &Path, bytes: &[u8], mode: u32, replace: bool) -> std::io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let (_pending, mut temporary) = temporary_in(folder)?;
    temporary.write_all(bytes)?;
    temporary.as_file().set_permissions(Permissions::from_mode(mode))?;
    temporary.as_file().sync_all()?;
    if replace { temporary.persist(path) } else { temporary.persist_noclobber(path) }
        .map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

fn temporary_in(folder: &Path) -> std::io::Result<(Pending, NamedTempFile)> {
    Pending::create(|| NamedTempFile::new_in(folder)).map_err(nameless)
}

/// The error without the name of the temporary file, which says nothing to anybody.
fn nameless(error: std::io::Error) -> std::io::Error {
    let text = error.to_string();
    match text.split_once(" at path ") {
        Some((reason, _)) => std::io::Error::new(error.kind(), reason.to_owned()),
        None => error,
    }
}

/// Lets `fill` write a new file, which appears completely or not at all; it does not replace an existing file. Only
/// the owner can read it.
pub fn write_new<T>(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let failed = |error: &std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => Failure::file(path, &"the file exists already")
            .hint("choose another name; nothing is overwritten"),
        _ => io_failure(path, error),
    };
    if path.exists() {
        return Err(failed(&ErrorKind::AlreadyExists.into()));
    }
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // Only the owner can read temporary files.
    let (_pending, mut temporary) = temporary_in(folder).map_err(|error| failed(&error))?;
    let result = fill(temporary.as_file_mut())?;
    temporary.as_file().sync_all().map_err(|error| failed(&error))?;
    temporary.persist_noclobber(path).map_err(|error| failed(&error.error))?;
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(result)
}

/// Advice when the system denies permission.
pub const NOT_PERMITTED: &str =
    "run the command as the user that the file or folder belongs to, or change its owner or mode";

/// Whether something exists at a path. A path that may not be examined is an error, not an absence.
pub fn exists(path: &Path) -> Result<bool, Failure> {
    path.try_exists().map_err(|error| io_failure(path, &error))
}

/// A path in a report for programs. JSON is UTF-8, and a path need not be: what is not is replaced.
pub fn json_path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Failure to read or write a file, with advice on what to do.
pub fn io_failure(path: &Path, error: &std::io::Error) -> Failure {
    // `tempfile` adds the name of a temporary file, which nobody has asked for.
    let text = error.to_string();
    let text = text.split(" at path ").next().unwrap_or(&text);
    let failure = Failure::file(path, &text);
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            failure.hint("make room on the disk and try again; nothing was changed")
        }
        ErrorKind::PermissionDenied => failure.hint(NOT_PERMITTED),
        ErrorKind::NotFound => failure.hint("check the path: there is nothing there"),
        ErrorKind::NotADirectory => {
            failure.hint("check the path: there is a file where a folder is expected")
        }
        ErrorKind::IsADirectory => {
            failure.hint("check the path: there is a folder where a file is expected")
        }
        _ => failure,
    }
}

/// Reads a file of at most `max` bytes.
pub fn read(path: &Path, max: usize) -> Result<Vec<u8>, Failure> {
    let attempt = || -> std::io::Result<Vec<u8>> {
        let file = File::open(path)?;
        // Reserves the final size, because a growing buffer leaves copies of secrets behind.
        let len = usize::try_from(file.metadata()?.len()).unwrap_or(max).min(max);
        let mut bytes = Vec::with_capacity(len + 1);
        file.take(max as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = attempt().map_err(|error| io_failure(path, &error))?;
    if bytes.len() > max {
        return Err(Failure::file(path, &format!("the file is longer than {max} bytes")));
    }
    Ok(bytes)
}

/// Creates a folder that only its owner can enter, with its parents.
pub fn make_private_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path)
        .and_then(|()| fs::set_permissions(path, Permissions::from_mode(0o700)))
        .map_err(|error| io_failure(path, &error))
}

/// Identifies a version of a file, to decide whether to read it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    modified: (i64, i64),
    /// Also changes with permissions, and when a file's modification time is set.
    changed: (i64, i64),
    inode: u64,
    len: u64,
}

/// Stamp of a file, if it exists.
pub fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::metadata(path).ok()?;
    Some(Stamp {
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
        inode: found.ino(),
        len: found.len(),
    })
}

//! Folders to which other users may write: what is found there may be a FIFO, a link or a device, and may change at any time.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::process::geteuid;
use tempfile::NamedTempFile;

use super::FileSettings;

/// Names of temporary files: this, and then letters and digits.
const PREFIX: &str = ".outlast-";
/// Letters and digits of such a name.
const RANDOM: usize = 12;

/// Folder of a file.
pub(super) fn of(path: &Path) -> &Path {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Opens a regular file to read it. Anything else is an error at once: opening a FIFO would wait for its other end, and
/// a link would lead to a file that the owner of the folder cannot read.
pub(super) fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    // Of the descriptor: the path may be something else by now.
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    Ok((file, found))
}

/// A temporary file, which only this process can read. It is locked for as long as it is open: so another agent knows that
/// it is in use.
pub(super) fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    let file = tempfile::Builder::new().prefix(PREFIX).rand_bytes(RANDOM).tempfile_in(folder)?;
    // A file system without locks only loses the clean-up.
    let _ = flock(file.as_file(), FlockOperation::NonBlockingLockExclusive);
    Ok(file)
}

/// Removes what an agent that was killed while it wrote left beside these files.
pub(in crate::agent) fn remove_leftovers(files: &[FileSettings]) {
    let mut folders: Vec<&Path> = files.iter().map(|file| of(&file.path)).collect();
    folders.sort_unstable();
    folders.dedup();
    for folder in folders {
        // A folder that is not there is reported when its file is written.
        let Ok(entries) = std::fs::read_dir(folder) else { continue };
        for entry in
            entries.filter_map(Result::ok).filter(|entry| is_ours(entry.file_name().as_bytes()))
        {
            let path = entry.path();
            let Ok((file, found)) = open(&path) else { continue };
            // The owner changes before the file gets its name.
            let owners =
                files.iter().filter(|file| of(&file.path) == folder).filter_map(|file| file.uid);
            let is_owned = owners.chain([geteuid().as_raw()]).any(|owner| owner == found.uid());
            if !is_owned || flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
                continue;
            }
            match std::fs::remove_file(&path) {
                Ok(()) => tracing::info!(path = %path.display(), "an unfinished file was removed"),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "an unfinished file cannot be removed");
                }
            }
        }
    }
}

/// Whether a name is one that [`temporary`] gives.
fn is_ours(name: &[u8]) -> bool {
    let random = name.strip_prefix(PREFIX.as_bytes());
    random.is_some_and(|rest| rest.len() == RANDOM && rest.iter().all(u8::is_ascii_alphanumeric))
}

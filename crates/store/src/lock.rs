//! A lock that allows one process per data folder.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;

use crate::StoreError;

/// Holds an advisory lock on a file for as long as it lives; the kernel drops it when the process dies.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "held for its lock")] File);

impl FolderLock {
    /// Locks `path`, creating the file if necessary. Fails at once if another process holds the lock.
    pub fn acquire(path: &Path) -> Result<Self, StoreError> {
        let unavailable =
            |error: std::io::Error| StoreError::Unavailable(format!("{}: {error}", path.display()));
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .truncate(false)
            .open(path)
            .map_err(unavailable)?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => {
                let folder = path.parent().unwrap_or(path);
                Err(StoreError::InUse(folder.display().to_string()))
            }
            Err(TryLockError::Error(error)) => Err(unavailable(error)),
        }
    }
}

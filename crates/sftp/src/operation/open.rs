//! What a handle stands for.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use super::Record;
use crate::error::{Error, Result, Status};
use crate::handles::Held;
use crate::path::RemotePath;
use crate::volume::{File, Listing, OpenHow};

/// An open file or folder, behind a handle.
pub struct Open {
    /// Its path when it was opened.
    pub path: RemotePath,
    pub(super) what: What,
    /// When it was opened, in seconds since 1970.
    pub(super) since: i64,
    pub(super) bytes_read: AtomicU64,
    pub(super) bytes_written: AtomicU64,
    /// Whether something that the client has sent could not be written.
    pub(super) is_broken: AtomicBool,
    /// Why it could not be made durable, the first time.
    pub(super) unsynced: OnceLock<Error>,
    /// Whether a read or write was denied.
    pub(super) was_denied: AtomicBool,
    /// Whether what was written is not visible. The file itself is not asked when the session ends: it may be busy for long.
    pub(super) is_apart: AtomicBool,
    /// Its place among those that may be open.
    _held: Option<Held>,
}

pub(super) enum What {
    File(Box<dyn File>, OpenHow),
    Folder(Mutex<Box<dyn Listing>>),
}

impl Open {
    pub(super) fn new(path: RemotePath, what: What, since: i64, held: Option<Held>) -> Self {
        let is_apart = matches!(&what, What::File(file, _) if file.is_apart());
        Self {
            is_apart: AtomicBool::new(is_apart),
            path,
            what,
            since,
            bytes_read: AtomicU64::new(0),
            bytes_written: AtomicU64::new(0),
            is_broken: AtomicBool::new(false),
            unsynced: OnceLock::new(),
            was_denied: AtomicBool::new(false),
            _held: held,
        }
    }

    pub(super) fn file(&self) -> Result<(&dyn File, &OpenHow)> {
        match &self.what {
            What::File(file, how) => Ok((&**file, how)),
            What::Folder(_) => Err(Error::failure("the handle is that of a folder")),
        }
    }

    /// Clients close, and before that sync, a file that they could not write: it must not take the place of a whole one.
    pub(super) fn refuse_broken(&self, file: &dyn File) -> Result<()> {
        if !file.is_apart() {
            return Ok(());
        }
        if self.is_broken.load(Ordering::Relaxed) {
            return Err(Error::failure("part of the file could not be written: it was not stored"));
        }
        self.unsynced.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Something was written, or tried to be. Only some storages know at once that they will write.
    pub(super) fn note_apart(&self, file: &dyn File) {
        if !self.is_apart.load(Ordering::Relaxed) && file.is_apart() {
            self.is_apart.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the client opened it for writing.
    #[must_use]
    pub fn writes(&self) -> bool {
        matches!(&self.what, What::File(_, how) if how.changes())
    }

    /// Bytes that were read and written so far.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes_read.load(Ordering::Relaxed), self.bytes_written.load(Ordering::Relaxed))
    }

    pub(super) fn ended(&self, kind: &'static str) -> Record {
        let kind = match self.what {
            What::File(..) => kind,
            What::Folder(_) => "closedir",
        };
        let (bytes_read, bytes_written) = self.bytes();
        let path = Some(self.path.clone());
        let writes = self.writes();
        let status = Status::Ok;
        let (since, text) = (self.since, "".into());
        let is_apart = self.is_apart.load(Ordering::Relaxed);
        let is_broken = self.is_broken.load(Ordering::Relaxed);
        Record {
            kind,
            path,
            to: None,
            target: None,
            attributes: None,
            how: None,
            writes,
            is_apart,
            is_broken,
            is_repeated: false,
            bytes_read,
            bytes_written,
            since,
            status,
            text,
        }
    }

    /// What is known of it when the session ends without a close.
    #[must_use]
    pub fn abandoned(&self) -> Record {
        self.ended("abandon")
    }
}

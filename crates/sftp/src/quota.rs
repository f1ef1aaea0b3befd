//! Bytes and files that a home may contain.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::volume::{File, FileId, Inode, Space};

/// What a home contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of its files, by their sizes.
    pub bytes: u64,
    /// Files; folders and links count, too.
    pub files: u64,
}

impl Usage {
    /// Both together.
    #[must_use]
    pub fn and(self, more: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(more.bytes),
            files: self.files.saturating_add(more.files),
        }
    }
}

/// What a name counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    pub(crate) used: Usage,
    /// The file that has no other name, if its storage keeps it while it is open.
    pub(crate) file: Option<FileId>,
    /// In S3 a name can be that of a folder, too, which stays when its file comes or goes.
    pub(crate) is_folder: bool,
}

/// A file that sessions have open.
#[derive(Debug, Default)]
struct Held {
    handles: u64,
    /// Its name is gone, but it still counts.
    is_gone: bool,
}

/// A quota, shared by all sessions of its home. A file whose name is removed or replaced while it is open counts until its last
/// handle is closed, because the disk has it until then. What other programs change in the home is not noticed until the usage
/// is measured for a new quota ([`crate::view::View::measure`]).
#[derive(Debug)]
pub struct Quota {
    limits: Mutex<(Option<u64>, Option<u64>)>,
    used: Mutex<Usage>,
    /// The files that are open, as far as their storage keeps files without a name. Locked before `used`.
    open: Mutex<HashMap<FileId, Held>>,
    /// Held while something changes in the home: what is counted before it must still be there after it.
    changing: Mutex<()>,
    /// Whether a rename that has failed has left a copy.
    has_copies: AtomicBool,
}

impl Quota {
    /// A quota of bytes, of files or of both, with what the home contains now.
    #[must_use]
    pub fn new(bytes: Option<u64>, files: Option<u64>, used: Usage) -> Self {
        let limits = Mutex::new((bytes, files));
        Self {
            limits,
            used: Mutex::new(used),
            open: Mutex::default(),
            changing: Mutex::new(()),
            has_copies: AtomicBool::new(false),
        }
    }

    /// Changes how many bytes and files the home may contain; what it contains already stays.
    pub fn limit(&self, bytes: Option<u64>, files: Option<u64>) {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner) = (bytes, files);
    }

    fn limits(&self) -> (Option<u64>, Option<u64>) {
        *self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Usage now.
    #[must_use]
    pub fn used(&self) -> Usage {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes changes of the home take turns. Without it, a client with two handles of a file could write what has not been
    /// counted.
    pub(crate) fn gate(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds usage without asking whether it fits: it is there already.
    pub(crate) fn add(&self, more: Usage) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = used.and(more);
    }

    /// Adds usage, if it fits.
    ///
    /// # Errors
    /// `quota exceeded`; nothing was added.
    pub fn take(&self, more: Usage) -> Result<()> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = used.and(more);
        let exceeds = |limit: Option<u64>, sum: u64, more: u64| {
            more > 0 && limit.is_some_and(|limit| sum > limit)
        };
        let (bytes, files) = self.limits();
        if exceeds(bytes, sum.bytes, more.bytes) {
            return Err(exceeded(bytes, "bytes"));
        }
        if exceeds(files, sum.files, more.files) {
            return Err(exceeded(files, "files"));
        }
        *used = sum;
        Ok(())
    }

    /// Refuses a rename that may leave a copy, if one has left a copy before and there is more than there may be.
    pub(crate) fn refuse_more_copies(&self) -> Result<()> {
        if !self.has_copies.load(Ordering::Relaxed) {
            return Ok(());
        }
        let (used, (bytes, files)) = (self.used(), self.limits());
        match bytes.is_some_and(|most| used.bytes > most) {
            true => Err(exceeded(bytes, "bytes")),
            false if files.is_some_and(|most| used.files > most) => Err(exceeded(files, "files")),
            false => Ok(()),
        }
    }

    /// Counts what a name has `now`, after something has failed, instead of what it had; if nobody can say, nothing changes.
    pub(crate) fn correct(&self, before: Option<Usage>, now: Option<Usage>) {
        if let Some((before, now)) = before.zip(now).filter(|(before, now)| before != now) {
            self.add(now);
            self.give(before);
        }
    }

    /// The same for both names of a rename that has failed, which may have left a copy.
    pub(crate) fn correct_names(&self, before: [Option<Usage>; 2], now: [Option<Usage>; 2]) {
        let [before_from, before_to] = before;
        let [from, to] = now;
        if to.zip(before_to).is_some_and(|(now, before)| now != before) {
            self.has_copies.store(true, Ordering::Relaxed);
        }
        self.correct(before_to, to);
        self.correct(before_from, from);
    }

    /// The space of a file system as a user with this quota has it: what is left of the quota, unless the file system has less.
    #[must_use]
    pub fn space(&self, of: Space) -> Space {
        let (used, (bytes, files)) = (self.used(), self.limits());
        let mut space = of;
        if let Some(limit) = bytes {
            let unit = of.fragment_size.max(1);
            space.blocks = limit / unit;
            let left = limit.saturating_sub(used.bytes) / unit;
            space.free_blocks = left.min(of.free_blocks);
            space.available_blocks = left.min(of.available_blocks);
        }
        if let Some(limit) = files {
            space.files = limit;
            let left = limit.saturating_sub(used.files);
            space.free_files = left.min(of.free_files);
            space.available_files = left.min(of.available_files);
        }
        space
    }

    fn open(&self) -> MutexGuard<'_, HashMap<FileId, Held>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a file has been opened; [`Quota::release`] has to follow. None if its storage keeps no files without a name.
    ///
    /// # Errors
    /// It has been removed since it was opened.
    pub(crate) fn hold(&self, file: &dyn File) -> Result<Option<FileId>> {
        // `gone` comes after the removal: either it finds the file here, or the file has no name here.
        let mut open = self.open();
        let Some(Inode { id, names }) = file.inode()? else { return Ok(None) };
        match open.entry(id) {
            // What it counted has been given back already.
            Entry::Vacant(_) if names == 0 => return Err(Error::not_found()),
            held => held.or_default().handles += 1,
        }
        Ok(Some(id))
    }

    /// Subtracts what a name counted that has been removed or replaced; if its file is open, its last handle will.
    pub(crate) fn gone(&self, name: Counted) {
        let mut open = self.open();
        match name.file.and_then(|file| open.get_mut(&file)) {
            Some(held) => held.is_gone = true,
            None => self.give(name.used),
        }
    }

    /// Notes that a handle is being closed, while it still keeps its file. The last one of a file without a name subtracts what the
    /// file counts.
    pub(crate) fn release(&self, file: FileId, used: impl FnOnce() -> Usage) {
        let mut open = self.open();
        let Entry::Occupied(mut held) = open.entry(file) else { return };
        held.get_mut().handles -= 1;
        if held.get().handles == 0 && held.remove().is_gone {
            self.give(used());
        }
    }

    /// Subtracts usage.
    pub fn give(&self, less: Usage) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.bytes = used.bytes.saturating_sub(less.bytes);
        used.files = used.files.saturating_sub(less.files);
    }
}

fn exceeded(limit: Option<u64>, what: &str) -> Error {
    let limit = limit.unwrap_or_default();
    Error::failure(format!("quota exceeded: {limit} {what} may be stored here; remove some"))
}

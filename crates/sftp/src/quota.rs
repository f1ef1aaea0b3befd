//! Bytes and files that a home may contain.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::volume::Space;

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

/// A quota, shared by all sessions of its home. What other programs change in the home is not noticed until the usage
/// is measured again ([`crate::view::View::measure`]).
#[derive(Debug)]
pub struct Quota {
    limits: Mutex<(Option<u64>, Option<u64>)>,
    used: Mutex<Usage>,
    /// Held while something changes in the home: what is counted before it must still be there after it.
    changing: Mutex<()>,
}

impl Quota {
    /// A quota of bytes, of files or of both, with what the home contains now.
    #[must_use]
    pub fn new(bytes: Option<u64>, files: Option<u64>, used: Usage) -> Self {
        let limits = Mutex::new((bytes, files));
        Self { limits, used: Mutex::new(used), changing: Mutex::new(()) }
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

    /// Replaces the usage by a measured one.
    pub fn set(&self, used: Usage) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = used;
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

//! Bytes and files that a home may contain.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// What a home contains.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of its files, by their sizes.
    pub bytes: u64,
    /// Files; folders and links count, too.
    pub files: u64,
}

/// A quota, shared by all sessions of its home. What other programs change in the home is not noticed until the usage
/// is measured again ([`crate::view::View::measure`]).
#[derive(Debug)]
pub struct Quota {
    bytes: Option<u64>,
    files: Option<u64>,
    used: Mutex<Usage>,
    /// Held while something changes in the home: what is counted before it must still be there after it.
    changing: Mutex<()>,
}

impl Quota {
    /// A quota of bytes, of files or of both, with what the home contains now.
    #[must_use]
    pub fn new(bytes: Option<u64>, files: Option<u64>, used: Usage) -> Self {
        Self { bytes, files, used: Mutex::new(used), changing: Mutex::new(()) }
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
        used.bytes = used.bytes.saturating_add(more.bytes);
        used.files = used.files.saturating_add(more.files);
    }

    /// Adds usage, if it fits.
    ///
    /// # Errors
    /// `quota exceeded`; nothing was added.
    pub fn take(&self, more: Usage) -> Result<()> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = Usage {
            bytes: used.bytes.saturating_add(more.bytes),
            files: used.files.saturating_add(more.files),
        };
        let exceeds = |limit: Option<u64>, sum: u64, more: u64| {
            more > 0 && limit.is_some_and(|limit| sum > limit)
        };
        if exceeds(self.bytes, sum.bytes, more.bytes) {
            return Err(exceeded(self.bytes, "bytes"));
        }
        if exceeds(self.files, sum.files, more.files) {
            return Err(exceeded(self.files, "files"));
        }
        *used = sum;
        Ok(())
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

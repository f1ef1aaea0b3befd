//! A listing with entries that only the view has.

use std::collections::{BTreeSet, VecDeque};

use crate::error::Result;
use crate::volume::{Entry, Listing};

/// Entries of the view, then those of a volume that are not hidden.
pub(super) struct Merged {
    pub(super) first: VecDeque<Entry>,
    pub(super) inner: Option<Box<dyn Listing>>,
    /// Names that are left out of the volume's entries.
    pub(super) hidden: BTreeSet<Vec<u8>>,
}

impl Listing for Merged {
    fn next(&mut self) -> Result<Option<Entry>> {
        if let Some(entry) = self.first.pop_front() {
            return Ok(Some(entry));
        }
        let Some(inner) = &mut self.inner else { return Ok(None) };
        while let Some(entry) = inner.next()? {
            if !self.hidden.contains(&entry.name) {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}

//! The names in a folder of a bucket, page by page.

use std::collections::VecDeque;

use outlast_sftp::error::{Error, Result};
use outlast_sftp::volume::{Entry, Listing};

use super::memory::Share;
use super::{Shared, attributes, folder};
use crate::limits;
use crate::s3::objects::Page;

pub(super) struct Names {
    shared: Shared,
    prefix: String,
    entries: VecDeque<Entry>,
    /// Where the next page begins; none after the last.
    next: Option<String>,
    /// Memory of the entries.
    share: Share,
}

impl Names {
    /// Reads the first page.
    pub(super) fn begin(shared: Shared, prefix: String) -> Result<Self> {
        let page = shared.wait(shared.bucket.list(&prefix, None, limits::S3_PAGE))?;
        let is_empty = page.objects.is_empty() && page.prefixes.is_empty() && page.next.is_none();
        if is_empty && !prefix.is_empty() {
            return Err(Error::not_found());
        }
        let share = Share::default();
        let mut names = Self { shared, prefix, entries: VecDeque::new(), next: None, share };
        names.take(page)?;
        Ok(names)
    }

    fn take(&mut self, page: Page) -> Result<()> {
        let Page { objects, prefixes, next } = page;
        for prefix in prefixes {
            let Some(name) = prefix.strip_prefix(&self.prefix) else { continue };
            let name = name.strip_suffix('/').unwrap_or(name);
            if can_be_named(name) {
                let attributes = folder(None);
                self.entries.push_back(Entry { name: name.into(), attributes, links: 2 });
            }
        }
        for object in objects {
            let Some(name) = object.key.strip_prefix(&self.prefix) else { continue };
            if can_be_named(name) {
                let attributes = attributes(object.size, object.modified);
                self.entries.push_back(Entry { name: name.into(), attributes, links: 1 });
            }
        }
        self.next = next;
        // It counts as the user's: a client may leave many folders open without reading on.
        let held = |entry: &Entry| size_of::<Entry>() + entry.name.capacity();
        self.share = Share::default();
        self.shared.memory.grow(&mut self.share, self.entries.iter().map(held).sum())?;
        Ok(())
    }
}

/// Whether a client can say the name: not that of the folder's own marker, and none that only S3 tells apart from other paths.
fn can_be_named(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

impl Listing for Names {
    fn next(&mut self) -> Result<Option<Entry>> {
        for _ in 0..limits::S3_EMPTY_PAGES {
            if let Some(entry) = self.entries.pop_front() {
                return Ok(Some(entry));
            }
            let Some(after) = &self.next else { return Ok(None) };
            let page = self.shared.bucket.list(&self.prefix, Some(after), limits::S3_PAGE);
            let page = self.shared.wait(page)?;
            self.take(page)?;
        }
        Err(Error::failure("the storage lists pages without names"))
    }
}

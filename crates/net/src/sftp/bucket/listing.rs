//! The names in a folder of a bucket, page by page.

use std::collections::VecDeque;

use outlast_sftp::error::{Error, Result};
use outlast_sftp::volume::{Entry, Listing};

use super::memory::{Memory, Share};
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

    /// Takes over a page when the last one has been read to its end. If there is no memory for it, it is forgotten, and asked for again.
    fn take(&mut self, page: Page) -> Result<()> {
        let Page { objects, prefixes, next } = page;
        let mut entries = VecDeque::new();
        for prefix in prefixes {
            let Some(name) = prefix.strip_prefix(&self.prefix) else { continue };
            let name = name.strip_suffix('/').unwrap_or(name);
            if can_be_named(name) {
                let attributes = folder(None);
                entries.push_back(Entry { name: name.into(), attributes, links: 2 });
            }
        }
        for object in objects {
            let Some(name) = object.key.strip_prefix(&self.prefix) else { continue };
            if can_be_named(name) {
                let attributes = attributes(object.size, object.modified);
                entries.push_back(Entry { name: name.into(), attributes, links: 1 });
            }
        }
        // The last page's memory is free first.
        self.share = Share::default();
        self.share = counted(&self.shared.memory, &entries)?;
        (self.entries, self.next) = (entries, next);
        Ok(())
    }
}

/// Counts entries as the user's memory: a client may leave many folders open without reading on.
fn counted(memory: &Memory, entries: &VecDeque<Entry>) -> Result<Share> {
    let bytes = |entry: &Entry| size_of::<Entry>() + entry.name.capacity();
    let mut share = Share::default();
    memory.grow(&mut share, entries.iter().map(bytes).sum())?;
    Ok(share)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A client opens a folder of the longest names again and again, and reads none of them to its end.
    #[test]
    fn listings_that_are_not_read_end_with_the_users_memory() {
        let entry = || Entry { name: vec![b'n'; 1024], attributes: folder(None), links: 1 };
        let page: VecDeque<Entry> = (0..limits::S3_PAGE).map(|_| entry()).collect();
        let memory = Memory::default();
        let (greedy, other) = (memory.of_user("greedy"), memory.of_user("other"));
        let mut open = Vec::new();
        while let Ok(share) = counted(&greedy, &page) {
            open.push(share);
        }
        let bytes = open.len() * limits::S3_PAGE as usize * 1024;
        assert!(bytes <= limits::S3_MEMORY / 2, "{bytes}");
        assert!(counted(&other, &page).is_ok());
        open.pop();
        assert!(counted(&greedy, &page).is_ok());
    }
}

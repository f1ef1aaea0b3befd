//! Checks the store's own counts of records, which quotas rely on.

use outlast_store::{Store, StoreError};

use super::Look;

/// Attempts to read a count that others are changing.
const TRIES: usize = 5;
/// Records that one read returns.
const PAGE: usize = 1000;

impl Look<'_> {
    /// Compares the counts of the check with the store's.
    pub(super) fn counts(&mut self) -> Result<(), StoreError> {
        for (prefix, found) in std::mem::take(&mut self.counts) {
            // A record that was made or deleted since the snapshot is no problem.
            if self.store.count(&prefix)? == found {
                continue;
            }
            if let Some((kept, found)) = difference(self.store, &prefix)? {
                self.problem(
                    &prefix,
                    format!(
                        "the store counts {kept} records below it, but there are {found}: limits are checked against \
                         the wrong number; restoring a backup counts the records again"
                    ),
                );
            }
        }
        Ok(())
    }
}

/// The store's count and the number of records, if they differ while nobody changes them.
fn difference(store: &dyn Store, prefix: &str) -> Result<Option<(u64, u64)>, StoreError> {
    for _ in 0..TRIES {
        let before = store.count(prefix)?;
        let (mut found, mut after) = (0, String::new());
        loop {
            let page = store.scan(prefix, &after, PAGE)?;
            found += page.len() as u64;
            match page.into_iter().next_back() {
                Some((last, _)) => after = last,
                None => break,
            }
        }
        if found == before {
            return Ok(None);
        }
        if store.count(prefix)? == before {
            return Ok(Some((before, found)));
        }
    }
    Ok(None)
}

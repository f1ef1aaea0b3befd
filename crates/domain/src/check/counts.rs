//! Whether the store's own numbers of records are right: limits are held against them.

use outlast_store::{Store, StoreError};

use super::Look;

/// Attempts at reading a number that others change meanwhile.
const TRIES: usize = 5;
/// Records of one read.
const PAGE: usize = 1000;

impl Look<'_> {
    /// Compares what was found with what the store says.
    pub(super) fn counts(&mut self) -> Result<(), StoreError> {
        for (prefix, found) in std::mem::take(&mut self.counts) {
            // What was made or deleted since the snapshot is no fault.
            if self.store.count(&prefix)? == found {
                continue;
            }
            if let Some((kept, found)) = difference(self.store, &prefix)? {
                self.problem(
                    &prefix,
                    format!(
                        "the store says that there are {kept} records below it, and there are {found}: limits are held \
                         against the wrong number; a backup that is restored is counted anew"
                    ),
                );
            }
        }
        Ok(())
    }
}

/// What the store says, and what there is, if that differs and nobody is changing it just now.
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

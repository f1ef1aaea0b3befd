//! What a volume contains, counted for a quota.

use crate::attributes::Attributes;
use crate::error::Result;
use crate::limits::MAX_DEPTH;
use crate::path::RemotePath;
use crate::quota::Usage;
use crate::volume::{Entry, Volume};

/// Counts what a volume contains. It reads every folder.
///
/// # Errors
/// A folder cannot be read.
pub fn measure(volume: &dyn Volume) -> Result<Usage> {
    let mut used = Usage::default();
    let mut folders = vec![(RemotePath::root(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let mut listing = volume.list(&folder)?;
        while let Some(Entry { name, attributes, .. }) = listing.next()? {
            if name == b"." || name == b".." {
                continue;
            }
            used = used.and(usage_of(&attributes));
            if attributes.is_folder() && depth < MAX_DEPTH {
                folders.push((folder.join(&name), depth + 1));
            }
        }
    }
    Ok(used)
}

/// What one name counts.
pub(super) fn usage_of(attributes: &Attributes) -> Usage {
    let size = if attributes.is_regular() { attributes.size } else { None };
    Usage { bytes: size.unwrap_or(0), files: 1 }
}

//! What a volume contains, counted for a quota.

use crate::attributes::Attributes;
use crate::error::Result;
use crate::path::RemotePath;
use crate::quota::{Counted, Usage};
use crate::volume::{Entry, Name, Volume};

/// Counts what a volume contains. Folders that cannot be read count alone: a user who makes one must not lock everybody out.
///
/// # Errors
/// The volume cannot be read.
pub fn measure(volume: &dyn Volume) -> Result<Usage> {
    let mut used = Usage::default();
    let mut folders = vec![RemotePath::root()];
    while let Some(folder) = folders.pop() {
        let mut listing = match volume.list(&folder) {
            Ok(listing) => listing,
            Err(error) if folder.is_root() => return Err(error),
            Err(_) => continue,
        };
        while let Some(Entry { name, attributes, .. }) = listing.next()? {
            if name == b"." || name == b".." {
                continue;
            }
            used = used.and(usage_of(&attributes));
            if attributes.is_folder() {
                folders.push(folder.join(&name));
            }
        }
    }
    Ok(used)
}

/// What the name at a path counts; none if it does not exist.
///
/// # Errors
/// Nobody can say.
pub(super) fn look(volume: &dyn Volume, path: &RemotePath) -> Result<Option<Counted>> {
    Ok(Name::find(volume, path)?.as_ref().map(count))
}

/// What a name counts.
pub(super) fn count(name: &Name) -> Counted {
    // Each name of a file counts. One of several counts no more when it is removed: the file counts under the others.
    let inode = name.inode.filter(|inode| inode.names == 1);
    let is_folder = name.attributes.is_folder();
    Counted { used: usage_of(&name.attributes), file: inode.map(|inode| inode.id), is_folder }
}

/// The same, but for folders: none if it is one.
pub(super) fn look_for_file(volume: &dyn Volume, path: &RemotePath) -> Result<Option<Counted>> {
    look(volume, path).map(|found| found.filter(|name| !name.is_folder))
}

/// Usage of a name that may not exist.
pub(super) fn of(name: Option<Counted>) -> Usage {
    name.map_or(Usage::default(), |name| name.used)
}

/// The same for one that was looked up; none if nobody can say.
pub(super) fn used(found: &Result<Option<Counted>>) -> Option<Usage> {
    found.as_ref().ok().map(|name| of(*name))
}

/// What one name with these attributes counts.
fn usage_of(attributes: &Attributes) -> Usage {
    let size = if attributes.is_regular() { attributes.size } else { None };
    Usage { bytes: size.unwrap_or(0), files: 1 }
}

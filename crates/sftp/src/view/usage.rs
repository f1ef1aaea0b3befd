//! What a volume contains, counted for a quota.

use crate::attributes::Attributes;
use crate::error::{Result, Status};
use crate::path::RemotePath;
use crate::quota::{Counted, Usage};
use crate::volume::{Entry, Follow, Volume};

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
pub(super) fn counted(volume: &dyn Volume, path: &RemotePath) -> Option<Counted> {
    let used = usage_of(&volume.attributes(path, Follow::No).ok()?);
    // Each name of a file counts. One of several counts no more when it is removed: the file counts under the others.
    let inode = volume.inode(path).ok().flatten().filter(|inode| inode.names == 1);
    Some(Counted { used, file: inode.map(|inode| inode.id) })
}

/// What a name counts after something has failed; none if nobody can say.
pub(super) fn counted_after(volume: &dyn Volume, path: &RemotePath) -> Option<Usage> {
    match volume.attributes(path, Follow::No) {
        Ok(attributes) => Some(usage_of(&attributes)),
        Err(error) if error.status == Status::NoSuchFile => Some(Usage::default()),
        Err(_) => None,
    }
}

/// What one name with these attributes counts.
fn usage_of(attributes: &Attributes) -> Usage {
    let size = if attributes.is_regular() { attributes.size } else { None };
    Usage { bytes: size.unwrap_or(0), files: 1 }
}

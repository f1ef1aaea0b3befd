//! What a user of a file sees, as a view of opened folders.

use std::sync::Arc;

use outlast_sftp::arrival::Reception;
use outlast_sftp::below::Below;
use outlast_sftp::error::{Error, Result};
use outlast_sftp::local::{Folder, FolderOptions};
use outlast_sftp::rights::Rights;
use outlast_sftp::view::View;
use outlast_sftp::volume::Volume;

use super::home::Storage;
use super::quotas::Quotas;
use super::roster::{Mount, Place, Tree};

/// The view of a user. It opens, and for buckets makes, the folders; those with a quota are measured if they have not been.
///
/// # Errors
/// A folder cannot be opened.
pub(super) fn view(
    tree: &Tree,
    account: &str,
    storage: &Storage,
    quotas: &Quotas,
    reception: &Reception,
    now: fn() -> i64,
) -> Result<View> {
    let mut view = View::new(now);
    for Mount { at, place, .. } in &tree.mounts {
        let volume = open(place, account, storage)?;
        let quota = quotas.of(place, &*volume)?;
        view = view.mount_with(at.clone(), reception.guard(volume), quota);
    }
    for (at, rights) in &tree.rules {
        view = view.rule(at.clone(), *rights);
    }
    for name in &tree.hidden {
        view = view.hide(name.as_bytes());
    }
    Ok(if tree.read_only { view.only(Rights::READ_ONLY) } else { view })
}

fn open(place: &Place, account: &str, storage: &Storage) -> Result<Arc<dyn Volume>> {
    match place {
        Place::Folder(path) => {
            let options = FolderOptions { atomic_uploads: storage.atomic_uploads };
            // Users may have put a link there since the file was read, if it is in a folder of theirs.
            let folder = Folder::open_canonical(path, options).map_err(|error| {
                tracing::error!(folder = %path.display(), %error, "a folder of an SFTP user cannot be opened");
                Error::failure("a folder of the home cannot be opened")
            })?;
            Ok(Arc::new(folder))
        }
        Place::Bucket(bucket, path) => {
            if !storage.sink.may_use(account, bucket) {
                return Err(Error::denied("the account may not use this bucket"));
            }
            storage.buckets.make(bucket)?;
            let below = Below::new(storage.buckets.open(bucket)?, path.clone());
            below.make()?;
            Ok(Arc::new(below))
        }
    }
}

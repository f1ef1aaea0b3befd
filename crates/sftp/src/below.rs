//! A folder of a volume as a volume of its own, which has no links: for storages whose volumes are whole buckets.
//!
//! Paths are normal ([`RemotePath`]), so that none leads above the folder.

use std::sync::Arc;

use crate::attributes::Attributes;
use crate::error::{Error, Result, Status};
use crate::path::RemotePath;
use crate::volume::{File, Follow, Inode, Listing, OpenHow, Renaming, Space, Volume};

/// A folder of a volume that follows no links.
pub struct Below {
    volume: Arc<dyn Volume>,
    folder: RemotePath,
}

impl Below {
    /// The folder at a path of `volume`.
    #[must_use]
    pub fn new(volume: Arc<dyn Volume>, folder: RemotePath) -> Self {
        Self { volume: volume.without_links(), folder }
    }

    /// Makes the folder, with those above it, as far as they do not exist.
    ///
    /// # Errors
    /// One of them cannot be made.
    pub fn make(&self) -> Result<()> {
        let mut folder = RemotePath::root();
        for name in self.folder.components() {
            folder = folder.join(name);
            match self.volume.attributes(&folder, Follow::No) {
                Ok(_) => {}
                Err(error) if error.status == Status::NoSuchFile => {
                    // Another session may make it at the same time.
                    let _ = self.volume.make_folder(&folder, None);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn at(&self, path: &RemotePath) -> RemotePath {
        self.folder.append(path)
    }

    /// What removes or renames a name must not touch the folder itself.
    fn inside(&self, path: &RemotePath) -> Result<RemotePath> {
        if path.is_root() {
            return Err(Error::denied("this is the root folder"));
        }
        Ok(self.at(path))
    }
}

impl Volume for Below {
    fn open(&self, path: &RemotePath, how: &OpenHow) -> Result<Box<dyn File>> {
        self.volume.open(&self.at(path), how)
    }

    fn attributes(&self, path: &RemotePath, follow: Follow) -> Result<Attributes> {
        self.volume.attributes(&self.at(path), follow)
    }

    fn set_attributes(&self, path: &RemotePath, to: &Attributes, follow: Follow) -> Result<()> {
        self.volume.set_attributes(&self.at(path), to, follow)
    }

    fn list(&self, path: &RemotePath) -> Result<Box<dyn Listing>> {
        self.volume.list(&self.at(path))
    }

    fn remove(&self, path: &RemotePath) -> Result<()> {
        self.volume.remove(&self.inside(path)?)
    }

    fn make_folder(&self, path: &RemotePath, mode: Option<u32>) -> Result<()> {
        self.volume.make_folder(&self.at(path), mode)
    }

    fn remove_folder(&self, path: &RemotePath) -> Result<()> {
        self.volume.remove_folder(&self.inside(path)?)
    }

    fn rename(&self, from: &RemotePath, to: &RemotePath, replace: bool) -> Result<()> {
        self.volume.rename(&self.inside(from)?, &self.inside(to)?, replace)
    }

    fn renaming(&self, from: RemotePath, to: RemotePath, replace: bool) -> Result<Renaming<'_>> {
        self.volume.renaming(self.inside(&from)?, self.inside(&to)?, replace)
    }

    fn read_link(&self, path: &RemotePath) -> Result<Vec<u8>> {
        self.volume.read_link(&self.at(path))
    }

    fn symlink(&self, _: &[u8], _: &RemotePath) -> Result<()> {
        Err(Error::unsupported("buckets have no symbolic links"))
    }

    fn hard_link(&self, _: &RemotePath, _: &RemotePath) -> Result<()> {
        Err(Error::unsupported("buckets have no hard links"))
    }

    fn space(&self, path: &RemotePath) -> Result<Space> {
        self.volume.space(&self.at(path))
    }

    fn inode(&self, path: &RemotePath) -> Result<Option<Inode>> {
        self.volume.inode(&self.at(path))
    }

    fn needs_folders(&self) -> bool {
        self.volume.needs_folders()
    }

    fn changes_apart(&self) -> bool {
        self.volume.changes_apart()
    }

    fn writes_apart(&self) -> bool {
        self.volume.writes_apart()
    }

    fn without_links(self: Arc<Self>) -> Arc<dyn Volume> {
        self
    }
}

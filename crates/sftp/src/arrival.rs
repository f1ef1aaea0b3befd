//! Uploads that somebody decides about before they appear, and those that are signed.
//!
//! [`Guarded`] wraps a volume whose uploads become visible when they are closed. Before that, an [`Inspector`] sees the content,
//! then a [`Signer`], and nothing can be written any more. `fsync@openssh.com` shows the content, too, so that it is inspected
//! then, and what a client writes afterwards is refused. Sizes are changed by handles only: by its path a client would change
//! a file that was inspected.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::path::RemotePath;
use crate::volume::{File, Follow, Inode, Listing, Name, OpenHow, Renaming, Space, Tags, Volume};

/// Decides whether an upload may appear.
pub trait Inspector: Send + Sync {
    /// Inspects the content of a file that is about to appear. It may take long.
    ///
    /// # Errors
    /// Why it must not appear, for the client.
    fn inspect(&self, name: &[u8], content: OwnedFd) -> Result<()>;

    /// Ends inspections, those that are running included: all are refused from now on.
    fn stop(&self) {}
}

/// Signs uploads.
pub trait Signer: Send + Sync {
    /// Signs the content of a file that is about to appear, and keeps the signature where it is found by the content: the
    /// file's name may be another one soon. It may take long.
    ///
    /// # Errors
    /// Why there is no signature, for the client. The file must not appear then.
    fn sign(&self, name: &[u8], content: OwnedFd) -> Result<()>;
}

/// Who sees uploads before they appear.
#[derive(Clone, Default)]
pub struct Reception {
    /// Decides whether they appear; all of them if there is none.
    pub inspector: Option<Arc<dyn Inspector>>,
    /// Signs them; nobody if there is none.
    pub signer: Option<Arc<dyn Signer>>,
}

impl Reception {
    /// The volume, with uploads as they are received here.
    #[must_use]
    pub fn guard(&self, volume: Arc<dyn Volume>) -> Arc<dyn Volume> {
        if self.inspector.is_none() && self.signer.is_none() {
            return volume;
        }
        Arc::new(Guarded { volume, reception: self.clone() })
    }
}

/// A volume whose uploads are inspected or signed.
struct Guarded {
    volume: Arc<dyn Volume>,
    reception: Reception,
}

impl Volume for Guarded {
    fn open(&self, path: &RemotePath, how: &OpenHow) -> Result<Box<dyn File>> {
        let file = self.volume.open(path, how)?;
        if !how.changes() {
            return Ok(file);
        }
        if !file.is_apart() {
            return Err(Error::unsupported(
                "uploads are inspected or signed here, and this storage shows them before they are complete",
            ));
        }
        Ok(Box::new(Arriving {
            file,
            name: path.name().unwrap_or_default().to_vec(),
            inspector: self.reception.inspector.clone(),
            signer: self.reception.signer.clone(),
            is_settled: RwLock::new(false),
            verdict: Mutex::new(None),
        }))
    }

    fn attributes(&self, path: &RemotePath, follow: Follow) -> Result<Attributes> {
        self.volume.attributes(path, follow)
    }

    fn set_attributes(&self, path: &RemotePath, to: &Attributes, follow: Follow) -> Result<()> {
        if to.size.is_some() {
            return Err(Error::unsupported(
                "uploads are inspected or signed here: open the file to change its size",
            ));
        }
        self.volume.set_attributes(path, to, follow)
    }

    fn list(&self, path: &RemotePath) -> Result<Box<dyn Listing>> {
        self.volume.list(path)
    }

    fn remove(&self, path: &RemotePath) -> Result<()> {
        self.volume.remove(path)
    }

    fn make_folder(&self, path: &RemotePath, mode: Option<u32>) -> Result<()> {
        self.volume.make_folder(path, mode)
    }

    fn remove_folder(&self, path: &RemotePath) -> Result<()> {
        self.volume.remove_folder(path)
    }

    fn rename(&self, from: &RemotePath, to: &RemotePath, replace: bool) -> Result<()> {
        self.volume.rename(from, to, replace)
    }

    fn renaming(&self, from: RemotePath, to: RemotePath, replace: bool) -> Result<Renaming<'_>> {
        self.volume.renaming(from, to, replace)
    }

    fn read_link(&self, path: &RemotePath) -> Result<Vec<u8>> {
        self.volume.read_link(path)
    }

    fn symlink(&self, target: &[u8], link: &RemotePath) -> Result<()> {
        self.volume.symlink(target, link)
    }

    fn hard_link(&self, from: &RemotePath, to: &RemotePath) -> Result<()> {
        self.volume.hard_link(from, to)
    }

    fn space(&self, path: &RemotePath) -> Result<Space> {
        self.volume.space(path)
    }

    fn tags(&self, path: &RemotePath) -> Result<Tags> {
        self.volume.tags(path)
    }

    fn set_tags(&self, path: &RemotePath, tags: &Tags, only: Option<&str>) -> Result<bool> {
        self.volume.set_tags(path, tags, only)
    }

    fn entity_tag(&self, path: &RemotePath) -> Result<Option<String>> {
        self.volume.entity_tag(path)
    }

    fn remove_same(&self, path: &RemotePath, entity_tag: &str) -> Result<bool> {
        self.volume.remove_same(path, entity_tag)
    }

    fn inode(&self, path: &RemotePath) -> Result<Option<Inode>> {
        self.volume.inode(path)
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
        let volume = Arc::clone(&self.volume).without_links();
        Arc::new(Self { volume, reception: self.reception.clone() })
    }
}

/// An upload that has not been inspected yet, or has been.
struct Arriving {
    file: Box<dyn File>,
    name: Vec<u8>,
    inspector: Option<Arc<dyn Inspector>>,
    signer: Option<Arc<dyn Signer>>,
    /// Whether the content is final. Held for reading while it changes.
    is_settled: RwLock<bool>,
    verdict: Mutex<Option<Result<()>>>,
}

impl Arriving {
    fn changing<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let is_settled = self.is_settled.read().unwrap_or_else(PoisonError::into_inner);
        if *is_settled {
            return Err(Error::denied(
                "the file was inspected or signed; open it again to change it",
            ));
        }
        act()
    }

    fn receive(&self) -> Result<()> {
        if let Some(inspector) = &self.inspector {
            inspector.inspect(&self.name, self.file.content()?)?;
        }
        if let Some(signer) = &self.signer {
            signer.sign(&self.name, self.file.content()?)?;
        }
        Ok(())
    }
}

impl File for Arriving {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        self.file.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.changing(|| self.file.write_at(offset, bytes))
    }

    fn attributes(&self) -> Result<Attributes> {
        self.file.attributes()
    }

    fn entity_tag(&self) -> Result<Option<String>> {
        self.file.entity_tag()
    }

    fn is_same(&self, entity_tag: &str) -> Result<bool> {
        self.file.is_same(entity_tag)
    }

    fn inode(&self) -> Result<Option<Inode>> {
        self.file.inode()
    }

    fn set_attributes(&self, to: &Attributes) -> Result<()> {
        if to.size.is_none() {
            return self.file.set_attributes(to);
        }
        self.changing(|| self.file.set_attributes(to))
    }

    fn sync(&self) -> Result<()> {
        self.settle()?;
        self.file.sync()
    }

    fn space(&self) -> Result<Space> {
        self.file.space()
    }

    fn replaces(&self, volume: &dyn Volume, path: &RemotePath) -> Result<Option<Name>> {
        self.file.replaces(volume, path)
    }

    fn is_apart(&self) -> bool {
        self.file.is_apart()
    }

    fn writes_apart(&self) -> bool {
        self.file.writes_apart()
    }

    fn settle(&self) -> Result<()> {
        let mut verdict = self.verdict.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(verdict) = &*verdict {
            return verdict.clone();
        }
        // Waits for writes that are running; later ones see it.
        *self.is_settled.write().unwrap_or_else(PoisonError::into_inner) = true;
        let found = self.file.settle().and_then(|()| self.receive());
        verdict.insert(found).clone()
    }

    fn content(&self) -> Result<OwnedFd> {
        self.file.content()
    }

    fn close(&self) -> Result<()> {
        self.settle()?;
        self.file.close()
    }
}

//! Uploads that somebody decides about before they appear, and those that are signed.
//!
//! [`Guarded`] wraps a volume whose uploads become visible when they are closed. Before that, an [`Inspector`] sees the content,
//! then a [`Signer`], and nothing can be written any more. `fsync@openssh.com` shows the content, too, so that it is inspected
//! then, and what a client writes afterwards is refused. Sizes are changed by handles only: by its path a client would change
//! a file that was inspected.
//!
//! The signature is a file of its own beside the upload, with the suffix [`SIGNATURE`], and is there before the upload
//! appears. Clients can read and list it, but only an upload writes it; it is renamed and removed with its file.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::attributes::Attributes;
use crate::error::{Error, Result, Status};
use crate::path::RemotePath;
use crate::volume::{File, Follow, Listing, OpenHow, Space, Tags, Volume};

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
    /// Signs the content of a file that is about to appear. It may take long.
    ///
    /// # Errors
    /// Why there is no signature, for the client. The file must not appear then.
    fn sign(&self, name: &[u8], content: OwnedFd) -> Result<Vec<u8>>;
}

/// What the name of a signature ends with, after that of the file.
pub const SIGNATURE: &[u8] = b".received.p7s";

/// Who sees uploads before they appear.
#[derive(Clone, Default)]
pub struct Reception {
    /// Decides whether they appear; all of them if there is none.
    pub inspector: Option<Arc<dyn Inspector>>,
    /// What happens to signatures.
    pub signatures: Signatures,
}

/// What happens to signatures when files are written, renamed and removed.
#[derive(Clone, Default)]
pub enum Signatures {
    /// There are none.
    #[default]
    None,
    /// Others make them: a file that is written again has none, and its old one goes.
    Kept,
    /// Each upload gets one.
    Made(Arc<dyn Signer>),
}

impl Signatures {
    fn are_there(&self) -> bool {
        !matches!(self, Self::None)
    }
}

impl Reception {
    /// The volume, with uploads as they are received here.
    #[must_use]
    pub fn guard(&self, volume: Arc<dyn Volume>) -> Arc<dyn Volume> {
        if self.inspector.is_none() && !self.signatures.are_there() {
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

/// The path of a file's signature.
fn signature_of(path: &RemotePath) -> Option<RemotePath> {
    let name = path.name()?;
    Some(path.parent().join(&[name, SIGNATURE].concat()))
}

impl Guarded {
    /// Refuses to change a signature.
    fn may_change(&self, path: &RemotePath) -> Result<()> {
        let is_signature = path.name().is_some_and(|name| name.ends_with(SIGNATURE));
        if self.reception.signatures.are_there() && is_signature {
            return Err(Error::denied(
                "names that end with .received.p7s are those of the server's signatures",
            ));
        }
        Ok(())
    }

    /// The signature that goes with a file, if files are signed here.
    fn companion(&self, path: &RemotePath) -> Option<RemotePath> {
        self.reception.signatures.are_there().then(|| signature_of(path)).flatten()
    }
}

/// Nothing to be done is no failure.
fn if_there(done: Result<()>) -> Result<()> {
    match done {
        Err(error) if error.status == Status::NoSuchFile => Ok(()),
        done => done,
    }
}

impl Volume for Guarded {
    fn open(&self, path: &RemotePath, how: &OpenHow) -> Result<Box<dyn File>> {
        if how.changes() {
            self.may_change(path)?;
        }
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
            beside: self.companion(path).map(|path| Beside {
                signer: match &self.reception.signatures {
                    Signatures::Made(signer) => Some(Arc::clone(signer)),
                    Signatures::None | Signatures::Kept => None,
                },
                path,
                volume: Arc::clone(&self.volume),
            }),
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
        self.may_change(path)?;
        self.volume.set_attributes(path, to, follow)
    }

    fn list(&self, path: &RemotePath) -> Result<Box<dyn Listing>> {
        self.volume.list(path)
    }

    fn remove(&self, path: &RemotePath) -> Result<()> {
        self.may_change(path)?;
        self.volume.remove(path)?;
        // A signature without its file says nothing; one of a file that stays does.
        self.companion(path).map_or(Ok(()), |signature| if_there(self.volume.remove(&signature)))
    }

    fn make_folder(&self, path: &RemotePath, mode: Option<u32>) -> Result<()> {
        self.may_change(path)?;
        self.volume.make_folder(path, mode)
    }

    fn remove_folder(&self, path: &RemotePath) -> Result<()> {
        self.volume.remove_folder(path)
    }

    fn rename(&self, from: &RemotePath, to: &RemotePath, replace: bool) -> Result<()> {
        self.may_change(from)?;
        self.may_change(to)?;
        self.volume.rename(from, to, replace)?;
        let (Some(old), Some(new)) = (self.companion(from), self.companion(to)) else {
            return Ok(());
        };
        // A signature that is left over at the new name would be that of another file.
        match self.volume.rename(&old, &new, true) {
            Err(error) if error.status == Status::NoSuchFile => if_there(self.volume.remove(&new)),
            done => done,
        }
    }

    fn read_link(&self, path: &RemotePath) -> Result<Vec<u8>> {
        self.volume.read_link(path)
    }

    fn symlink(&self, target: &[u8], link: &RemotePath) -> Result<()> {
        self.may_change(link)?;
        self.volume.symlink(target, link)
    }

    fn hard_link(&self, from: &RemotePath, to: &RemotePath) -> Result<()> {
        self.may_change(from)?;
        self.may_change(to)?;
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
        self.may_change(path)?;
        if !self.volume.remove_same(path, entity_tag)? {
            return Ok(false);
        }
        let signature = self.companion(path);
        signature.map_or(Ok(()), |signature| if_there(self.volume.remove(&signature)))?;
        Ok(true)
    }

    fn needs_folders(&self) -> bool {
        self.volume.needs_folders()
    }

    fn without_links(self: Arc<Self>) -> Arc<dyn Volume> {
        let volume = Arc::clone(&self.volume).without_links();
        Arc::new(Self { volume, reception: self.reception.clone() })
    }
}

/// The signature of an upload.
struct Beside {
    signer: Option<Arc<dyn Signer>>,
    path: RemotePath,
    volume: Arc<dyn Volume>,
}

impl Beside {
    /// Puts the signature beside the file that is about to appear, or removes that of the file that was there.
    fn settle(&self, name: &[u8], file: &dyn File) -> Result<()> {
        let Some(signer) = &self.signer else { return if_there(self.volume.remove(&self.path)) };
        let signature = signer.sign(name, file.content()?)?;
        let how = OpenHow { write: true, create: true, truncate: true, ..OpenHow::default() };
        let file = self.volume.open(&self.path, &how)?;
        file.write_at(0, &signature)?;
        file.settle()?;
        // On the disk before the upload that it belongs to.
        file.sync()?;
        file.close()
    }
}

/// An upload that has not been inspected yet, or has been.
struct Arriving {
    file: Box<dyn File>,
    name: Vec<u8>,
    inspector: Option<Arc<dyn Inspector>>,
    beside: Option<Beside>,
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
        if let Some(beside) = &self.beside {
            beside.settle(&self.name, &*self.file)?;
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

    fn is_apart(&self) -> bool {
        self.file.is_apart()
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

//! Storage behind a view. All calls may block.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use crate::attributes::Attributes;
use crate::error::{Error, Result, Status};
use crate::path::RemotePath;

/// How a file is opened (draft-ietf-secsh-filexfer-02, section 6.3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenHow {
    /// The client will read.
    pub read: bool,
    /// The client will write.
    pub write: bool,
    /// Each write goes to the end, wherever the client says.
    pub append: bool,
    /// A missing file is created.
    pub create: bool,
    /// An existing file is emptied.
    pub truncate: bool,
    /// An existing file is an error; only with `create`.
    pub exclusive: bool,
    /// Permissions of a new file.
    pub mode: Option<u32>,
}

impl OpenHow {
    /// For reading only.
    #[must_use]
    pub fn reading() -> Self {
        Self { read: true, ..Self::default() }
    }

    /// Whether it may change the volume.
    #[must_use]
    pub fn changes(&self) -> bool {
        self.write || self.append || self.create || self.truncate
    }
}

/// Whether a symbolic link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    /// To the file that it leads to.
    Yes,
    /// The operation concerns the link itself.
    No,
}

/// One name of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name, of any bytes but `/` and zero.
    pub name: Vec<u8>,
    /// Attributes; those of a link, not of its target.
    pub attributes: Attributes,
    /// Hard links.
    pub links: u64,
}

/// Space and files of a volume: the members of POSIX' `statvfs`, in the order of `statvfs@openssh.com`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Space {
    /// Bytes of a block.
    pub block_size: u64,
    /// Bytes of the unit in which the next three are counted.
    pub fragment_size: u64,
    /// Size.
    pub blocks: u64,
    /// Free.
    pub free_blocks: u64,
    /// Free for users without privilege.
    pub available_blocks: u64,
    /// Files that can exist.
    pub files: u64,
    /// Files that can be created.
    pub free_files: u64,
    /// Files that users without privilege can create.
    pub available_files: u64,
    /// Identifier of the file system.
    pub id: u64,
    /// Whether nothing can be written.
    pub read_only: bool,
    /// Longest name in bytes.
    pub max_name: u64,
}

/// What tells a file of this machine from all others: its device and its number. Another file can get them when it has no name
/// any more and nobody has it open.
pub type FileId = (u64, u64);

/// A file of this machine, whatever its names are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inode {
    /// Which one it is.
    pub id: FileId,
    /// How many names it has.
    pub names: u64,
}

/// A rename that has been prepared, see [`Volume::renaming`].
pub type Renaming<'a> = Box<dyn FnOnce() -> Result<()> + 'a>;

/// Tags of a file, as S3 has them: keys with values.
pub type Tags = Vec<(String, String)>;

fn no_tags() -> Error {
    Error::unsupported("this storage keeps no tags")
}

/// A place where files are. Paths begin at the volume's root, and nothing outside of it can be reached by any path.
pub trait Volume: Send + Sync {
    /// Opens a regular file.
    ///
    /// # Errors
    /// Why it cannot be opened.
    fn open(&self, path: &RemotePath, how: &OpenHow) -> Result<Box<dyn File>>;

    /// Attributes of a file.
    ///
    /// # Errors
    /// It does not exist, or cannot be reached.
    fn attributes(&self, path: &RemotePath, follow: Follow) -> Result<Attributes>;

    /// Sets those attributes that are given.
    ///
    /// # Errors
    /// One of them cannot be set; others may be.
    fn set_attributes(&self, path: &RemotePath, to: &Attributes, follow: Follow) -> Result<()>;

    /// Begins to list a folder.
    ///
    /// # Errors
    /// It cannot be opened.
    fn list(&self, path: &RemotePath) -> Result<Box<dyn Listing>>;

    /// Removes a file or link.
    ///
    /// # Errors
    /// It cannot be removed; folders cannot.
    fn remove(&self, path: &RemotePath) -> Result<()>;

    /// Makes a folder.
    ///
    /// # Errors
    /// It cannot be made, or the name exists.
    fn make_folder(&self, path: &RemotePath, mode: Option<u32>) -> Result<()>;

    /// Removes an empty folder.
    ///
    /// # Errors
    /// It cannot be removed.
    fn remove_folder(&self, path: &RemotePath) -> Result<()>;

    /// Renames a file, link or folder. `replace` lets it take the place of an existing one.
    ///
    /// # Errors
    /// It cannot be renamed.
    fn rename(&self, from: &RemotePath, to: &RemotePath, replace: bool) -> Result<()>;

    /// Does of a rename what takes long and nobody sees; what is returned renames the file, and forgets that if it is dropped.
    ///
    /// # Errors
    /// It cannot be renamed.
    fn renaming(&self, from: RemotePath, to: RemotePath, replace: bool) -> Result<Renaming<'_>> {
        Ok(Box::new(move || self.rename(&from, &to, replace)))
    }

    /// Target of a symbolic link, as its author wrote it.
    ///
    /// # Errors
    /// It is none, or cannot be read.
    fn read_link(&self, path: &RemotePath) -> Result<Vec<u8>>;

    /// Makes a symbolic link. An absolute target begins at the volume's root.
    ///
    /// # Errors
    /// It cannot be made, or would lead out of the volume.
    fn symlink(&self, target: &[u8], link: &RemotePath) -> Result<()>;

    /// Makes a second name of a file.
    ///
    /// # Errors
    /// It cannot be made.
    fn hard_link(&self, from: &RemotePath, to: &RemotePath) -> Result<()>;

    /// Space of the file system that contains a path.
    ///
    /// # Errors
    /// It cannot be found out.
    fn space(&self, path: &RemotePath) -> Result<Space>;

    /// The tags of a file.
    ///
    /// # Errors
    /// It does not exist, or the storage keeps no tags.
    fn tags(&self, path: &RemotePath) -> Result<Tags> {
        let _ = path;
        Err(no_tags())
    }

    /// Gives a file these tags, in place of those that it has. They are durable then. With `only`, an entity tag, a file with
    /// another content keeps its tags, and the result is false.
    ///
    /// # Errors
    /// It does not exist, or the storage keeps no tags, or not so many.
    fn set_tags(&self, path: &RemotePath, tags: &Tags, only: Option<&str>) -> Result<bool> {
        let _ = (path, tags, only);
        Err(no_tags())
    }

    /// What identifies the content of a file, if the storage knows that. It changes when the file is replaced or written.
    ///
    /// # Errors
    /// It does not exist.
    fn entity_tag(&self, path: &RemotePath) -> Result<Option<String>> {
        let _ = path;
        Ok(None)
    }

    /// Removes a file that has the content with this entity tag, durably; one that is gone counts as removed. A file with another
    /// content stays, and the result is false.
    ///
    /// # Errors
    /// It cannot be removed, or the storage knows no entity tags.
    fn remove_same(&self, path: &RemotePath, entity_tag: &str) -> Result<bool> {
        let _ = (path, entity_tag);
        Err(Error::unsupported("this storage does not tell one content of a file from another"))
    }

    /// The file that a name stands for; links are not followed. None if this storage keeps nothing of a file that is removed
    /// while it is open.
    ///
    /// # Errors
    /// It does not exist, or cannot be reached.
    fn inode(&self, path: &RemotePath) -> Result<Option<Inode>> {
        let _ = path;
        Ok(None)
    }

    /// Whether a file needs the folders on the way to it.
    fn needs_folders(&self) -> bool {
        true
    }

    /// Whether a file that is opened for changes is apart ([`File::is_apart`]) at once, a copy of the visible one if it is not truncated.
    fn changes_apart(&self) -> bool {
        false
    }

    /// Whether files of it are opened without a change, and each keeps what is written to itself ([`File::writes_apart`]).
    fn writes_apart(&self) -> bool {
        false
    }

    /// The same volume for one user, if its open files use up what all users share: the files of one user then leave some of
    /// that to others.
    fn of_user(&self, user: &str) -> Option<Arc<dyn Volume>> {
        let _ = user;
        None
    }

    /// The same volume, which follows no symbolic link: what one folder of it allows then does not apply to
    /// another one that a link leads to.
    fn without_links(self: Arc<Self>) -> Arc<dyn Volume>;
}

/// What has a name.
pub struct Name {
    /// Its attributes; links are not followed.
    pub attributes: Attributes,
    /// The file that it stands for, see [`Volume::inode`].
    pub inode: Option<Inode>,
}

impl Name {
    /// What has a name in a volume, if it exists.
    ///
    /// # Errors
    /// Nobody can say.
    pub fn find(volume: &dyn Volume, path: &RemotePath) -> Result<Option<Self>> {
        match volume.attributes(path, Follow::No) {
            Ok(attributes) => {
                Ok(Some(Self { attributes, inode: volume.inode(path).ok().flatten() }))
            }
            Err(error) if error.status == Status::NoSuchFile => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// An open file. What is written becomes final with `close`; a file that is dropped without it, because the
/// connection is lost, may keep what was written or forget all of it, as its volume promises.
pub trait File: Send + Sync {
    /// Reads from an offset into a buffer. The number of bytes is smaller than the buffer only at the end of the file, and 0 is
    /// the end.
    ///
    /// # Errors
    /// It cannot be read.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize>;

    /// Fills a buffer from an offset if that needs no waiting for a disk or a peer, and returns whether it did. The bytes are
    /// those that [`File::read_at`] would read.
    fn read_now(&self, offset: u64, into: &mut [u8]) -> bool {
        let _ = (offset, into);
        false
    }

    /// Writes all bytes at an offset.
    ///
    /// # Errors
    /// They were not written, or not all of them.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Its attributes.
    ///
    /// # Errors
    /// They cannot be read.
    fn attributes(&self) -> Result<Attributes>;

    /// What identifies its content, see [`Volume::entity_tag`]; none if the storage does not know it, or not yet.
    ///
    /// # Errors
    /// It cannot be read.
    fn entity_tag(&self) -> Result<Option<String>> {
        Ok(None)
    }

    /// Whether it still has the content with this entity tag.
    ///
    /// # Errors
    /// It cannot be read.
    fn is_same(&self, entity_tag: &str) -> Result<bool> {
        Ok(self.entity_tag()?.as_deref() == Some(entity_tag))
    }

    /// Which file it is, see [`Volume::inode`].
    ///
    /// # Errors
    /// It cannot be found out.
    fn inode(&self) -> Result<Option<Inode>> {
        Ok(None)
    }

    /// Sets those attributes that are given.
    ///
    /// # Errors
    /// One of them cannot be set; others may be.
    fn set_attributes(&self, to: &Attributes) -> Result<()>;

    /// Makes what was written, and the file's name, outlive a crash of the machine (`fsync@openssh.com`).
    ///
    /// # Errors
    /// It is not certain that they do.
    fn sync(&self) -> Result<()>;

    /// Space of its file system.
    ///
    /// # Errors
    /// It cannot be found out.
    fn space(&self) -> Result<Space> {
        Err(Error::unsupported("this storage does not know its space"))
    }

    /// Whether what is written is not visible under the file's name yet.
    fn is_apart(&self) -> bool {
        false
    }

    /// Whether nothing that is written becomes visible before [`File::sync`] or [`File::close`], so that nobody else changes the size
    /// that this file has. Nothing need be written yet.
    fn writes_apart(&self) -> bool {
        self.is_apart()
    }

    /// What has the name that the content will have when it becomes visible. The file was opened at this path of this volume; its folder may have
    /// another path by now.
    ///
    /// # Errors
    /// Nobody can say.
    fn replaces(&self, volume: &dyn Volume, path: &RemotePath) -> Result<Option<Name>> {
        Name::find(volume, path)
    }

    /// Does what may take long and has to happen before the content becomes visible. A caller that holds a lock during `sync` or
    /// `close` calls it before.
    ///
    /// # Errors
    /// The content must not become visible.
    fn settle(&self) -> Result<()> {
        Ok(())
    }

    /// The content for another program: a descriptor of its own, which cannot write.
    ///
    /// # Errors
    /// The storage has no descriptors, or it cannot be opened.
    fn content(&self) -> Result<OwnedFd> {
        Err(Error::unsupported("other programs cannot read files of this storage"))
    }

    /// Ends writing. It is called at most once, and nothing but [`File::entity_tag`] afterwards.
    ///
    /// # Errors
    /// What was written may be lost.
    fn close(&self) -> Result<()>;
}

/// The entries of an open folder, in no order.
pub trait Listing: Send {
    /// The next entry; none at the end.
    ///
    /// # Errors
    /// The folder cannot be read.
    fn next(&mut self) -> Result<Option<Entry>>;
}

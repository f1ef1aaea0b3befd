//! A local folder as a volume.
//!
//! The kernel confines every path: `openat2` with RESOLVE_IN_ROOT resolves it as if the folder were the root of the file
//! system, so that neither `..` nor a symbolic link leads out, even while somebody changes the folders on the way.
//! RESOLVE_BENEATH would confine as well, but refuse absolute links; to a client the folder is `/`, and a link to
//! `/in/file` means that file. RESOLVE_NO_MAGICLINKS keeps `/proc` harmless where it is mounted below.
//! What acts on a name (remove, rename and so on) opens the folder that contains it in this way, and then passes the
//! single name, which the kernel does not follow.
//!
//! Needs Linux 5.8: `openat2` is of 5.6, setting times of an open link of 5.8.

mod errno;
mod file;
mod identity;
mod listing;
mod metadata;
mod tags;
mod upload;

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, fstat, fstatvfs, linkat,
    mkdirat, openat, openat2, readlinkat, renameat, renameat_with, statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use self::file::Plain;
use self::metadata::{attributes, kept_mode};
use self::upload::Upload;
use crate::attributes::Attributes;
use crate::error::{Error, Result, Status};
use crate::limits::RESOLVE_TRIES;
use crate::path::RemotePath;
use crate::volume::{File, Follow, Inode, Listing, OpenHow, Space, Tags, Volume};

/// How a folder is served.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FolderOptions {
    /// A file that a client writes becomes visible, under its name, when the client closes it: whole, and on disk. If the
    /// connection or the process ends before, nothing changes.
    pub atomic_uploads: bool,
}

/// A local folder.
#[derive(Debug, Clone)]
pub struct Folder {
    root: Arc<OwnedFd>,
    options: FolderOptions,
    /// Whether links are followed.
    follows: bool,
    /// Whether it is the root of the file system: then links need not be kept inside.
    is_system_root: bool,
    /// Whether open files have names below `/proc`.
    has_proc: bool,
}

/// Flags that all files are opened with. Without NONBLOCK a FIFO would block until somebody opens its other end.
const COMMON: OFlags = OFlags::CLOEXEC.union(OFlags::NOCTTY).union(OFlags::NONBLOCK);

/// Flags for a folder whose names are used.
const NAMES: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Folder {
    /// Opens a folder of the machine; its path is resolved as usual, links included.
    ///
    /// # Errors
    /// It cannot be opened, or the kernel is too old.
    pub fn open(path: &Path, options: FolderOptions) -> std::io::Result<Self> {
        Self::of(openat(CWD, path, NAMES, Mode::empty())?, options)
    }

    /// Opens a folder of the machine whose path has no symbolic links: one that somebody has put there meanwhile is not followed.
    ///
    /// # Errors
    /// It cannot be opened, there is a link on its path, or the kernel is too old.
    pub fn open_canonical(path: &Path, options: FolderOptions) -> std::io::Result<Self> {
        match openat2(CWD, path, NAMES, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(root) => Self::of(root, options),
            Err(Errno::NOSYS) => Err(too_old()),
            Err(error) => Err(error.into()),
        }
    }

    fn of(root: OwnedFd, options: FolderOptions) -> std::io::Result<Self> {
        let system = rustix::fs::stat("/")?;
        let own = fstat(&root)?;
        let by_proc = rustix::fs::stat(proc_path(&root));
        let has_proc = by_proc.is_ok_and(|by_proc| is_same(&by_proc, &own));
        let folder = Self {
            root: Arc::new(root),
            options,
            follows: true,
            is_system_root: is_same(&system, &own),
            has_proc,
        };
        match folder.resolve(b".", NAMES, Mode::empty()) {
            Ok(_) => Ok(folder),
            Err(Errno::NOSYS) => Err(too_old()),
            Err(error) => Err(error.into()),
        }
    }

    /// A folder of this one, as a volume of its own; it is made, with its parents, if `create` is set.
    ///
    /// # Errors
    /// It cannot be opened or made.
    pub fn below(&self, path: &RemotePath, create: bool) -> Result<Self> {
        if create {
            let mut folder = RemotePath::root();
            for name in path.components() {
                folder = folder.join(name);
                let (parent, name) = self.parent(&folder)?;
                match mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        let root = self.resolve(path.relative(), NAMES, Mode::empty())?;
        Ok(Self { root: Arc::new(root), is_system_root: false, ..self.clone() })
    }

    /// Opens a relative path within the root.
    fn resolve(
        &self,
        path: &[u8],
        flags: OFlags,
        mode: Mode,
    ) -> std::result::Result<OwnedFd, Errno> {
        let mut how = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        if !self.follows {
            how |= ResolveFlags::NO_SYMLINKS;
        }
        let mut last = Errno::AGAIN;
        for _ in 0..RESOLVE_TRIES {
            match openat2(&self.root, path, flags | OFlags::CLOEXEC, mode, how) {
                // Somebody renamed a folder meanwhile, so that the kernel cannot tell whether `..` stays inside.
                Err(Errno::AGAIN | Errno::INTR) => last = Errno::AGAIN,
                other => return other,
            }
        }
        Err(last)
    }

    /// The folder that contains a path's last name, and the name.
    fn parent<'a>(&self, path: &'a RemotePath) -> Result<(OwnedFd, &'a [u8])> {
        refuse_temporary(path)?;
        let name = path.name().ok_or_else(|| Error::failure("this is the root folder"))?;
        Ok((self.resolve(path.parent().relative(), NAMES, Mode::empty())?, name))
    }

    /// A file without access to its content, for what concerns the file itself.
    fn locate(&self, path: &RemotePath, follow: Follow) -> Result<OwnedFd> {
        refuse_temporary(path)?;
        let last = if follow == Follow::No { OFlags::NOFOLLOW } else { OFlags::empty() };
        Ok(self.resolve(path.relative(), OFlags::PATH | last, Mode::empty())?)
    }

    /// Opens a regular file; anything else is refused.
    fn open_regular(&self, path: &RemotePath, flags: OFlags, mode: Mode) -> Result<OwnedFd> {
        let file = self.resolve(path.relative(), flags | COMMON, mode).map_err(|error| {
            // What NONBLOCK gives for a FIFO without a reader, and for a socket.
            if error == Errno::NXIO { not_regular() } else { error.into() }
        })?;
        refuse_irregular(&fstat(&file)?)?;
        Ok(file)
    }

    /// Makes the names on the way to a file durable: those in its folder, and in the folders above it, which may be new as well.
    /// A folder may have been renamed since it was opened, even out of the root; the way up ends at the top then.
    fn sync_upwards(&self, folder: &OwnedFd) -> Result<()> {
        let root = fstat(&self.root)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut folder = openat(folder, ".", flags, Mode::empty())?;
        loop {
            rustix::fs::fsync(&folder)?;
            let here = fstat(&folder)?;
            if is_same(&here, &root) {
                return Ok(());
            }
            let above = openat(&folder, "..", flags, Mode::empty())?;
            if is_same(&fstat(&above)?, &here) {
                return Ok(());
            }
            folder = above;
        }
    }

    /// How many folders an opened one is below the root. Its path does not say so: a link on it may lead up or down.
    fn depth(&self, folder: &OwnedFd) -> Result<usize> {
        let root = fstat(&self.root)?;
        let mut folder = openat(folder, ".", NAMES, Mode::empty())?;
        let mut depth = 0;
        loop {
            let here = fstat(&folder)?;
            if is_same(&here, &root) {
                return Ok(depth);
            }
            folder = openat(&folder, "..", NAMES, Mode::empty())?;
            if is_same(&fstat(&folder)?, &here) {
                return Err(Error::failure("the folder has been moved away"));
            }
            depth += 1;
        }
    }

    /// The target of a new link, as it is stored: nothing that other programs on this machine could follow out of the root, from
    /// the folder `parent`.
    fn kept_inside<'a>(
        &self,
        target: &'a [u8],
        parent: &OwnedFd,
    ) -> Result<std::borrow::Cow<'a, [u8]>> {
        if target.is_empty() || target.contains(&0) {
            return Err(Error::failure("a link needs a target"));
        }
        // Unfinished uploads do not exist for clients.
        if target.split(|byte| *byte == b'/').any(|name| name.starts_with(TEMPORARY)) {
            return Err(Error::not_found());
        }
        if self.is_system_root {
            return Ok(target.into());
        }
        let mut depth = self.depth(parent)?;
        if target[0] == b'/' {
            // The same target from the link's folder: outside of SFTP an absolute one would name another file.
            let inside = RemotePath::parse(target, &RemotePath::root())?;
            let mut relative = b"../".repeat(depth);
            relative.extend_from_slice(inside.relative());
            return Ok(relative.into());
        }
        let mut has_name = false;
        for name in target.split(|byte| *byte == b'/') {
            match name {
                b"" | b"." => {}
                // The name may be that of a link, now or later: what is above its target, the text does not say.
                b".." if has_name => {
                    return Err(Error::denied(
                        "the link could lead out of the root folder: .. behind a name is refused",
                    ));
                }
                b".." => {
                    depth = depth.checked_sub(1).ok_or_else(|| {
                        Error::denied("the link would lead out of the root folder")
                    })?;
                }
                _ => has_name = true,
            }
        }
        Ok(target.into())
    }
}

impl Volume for Folder {
    fn open(&self, path: &RemotePath, how: &OpenHow) -> Result<Box<dyn File>> {
        refuse_temporary(path)?;
        if how.exclusive && !how.create {
            return Err(Error::failure("exclusive is only possible when a file is created"));
        }
        if how.changes() && self.options.atomic_uploads {
            return Ok(Box::new(Upload::begin(self, path, how)?));
        }
        let access = match (how.read, how.write) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            _ => OFlags::RDONLY,
        };
        let flag = |is_set: bool, flag: OFlags| if is_set { flag } else { OFlags::empty() };
        let flags = access
            | flag(how.create, OFlags::CREATE)
            | flag(how.exclusive, OFlags::EXCL)
            | flag(how.truncate, OFlags::TRUNC)
            | flag(how.append, OFlags::APPEND);
        let mode = if how.create { new_mode(how.mode, 0o666) } else { Mode::empty() };
        let file = self.open_regular(path, flags, mode).map_err(errno::of_creation(how))?;
        if how.truncate {
            tags::clear(&file)?;
        }
        Ok(Box::new(Plain::new(file, self.clone(), path.clone())))
    }

    fn attributes(&self, path: &RemotePath, follow: Follow) -> Result<Attributes> {
        Ok(attributes(&fstat(self.locate(path, follow)?)?))
    }

    fn set_attributes(&self, path: &RemotePath, to: &Attributes, follow: Follow) -> Result<()> {
        if let Some(size) = to.size {
            let last = if follow == Follow::No { OFlags::NOFOLLOW } else { OFlags::empty() };
            let file = self.open_regular(path, OFlags::WRONLY | last, Mode::empty())?;
            tags::clear(&file)?;
            rustix::fs::ftruncate(&file, size)?;
        }
        let file = self.locate(path, follow)?;
        metadata::set_located(&file, to)
    }

    fn list(&self, path: &RemotePath) -> Result<Box<dyn Listing>> {
        refuse_temporary(path)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let folder = self.resolve(path.relative(), flags, Mode::empty())?;
        Ok(Box::new(listing::Names::new(folder)?))
    }

    fn remove(&self, path: &RemotePath) -> Result<()> {
        let (parent, name) = self.parent(path)?;
        unlinkat(parent, name, AtFlags::empty()).map_err(|error| {
            if error == Errno::ISDIR { Error::failure("it is a folder") } else { error.into() }
        })
    }

    fn make_folder(&self, path: &RemotePath, mode: Option<u32>) -> Result<()> {
        let (parent, name) = self.parent(path)?;
        Ok(mkdirat(parent, name, new_mode(mode, 0o777))?)
    }

    fn remove_folder(&self, path: &RemotePath) -> Result<()> {
        let (parent, name) = self.parent(path)?;
        Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
    }

    fn rename(&self, from: &RemotePath, to: &RemotePath, replace: bool) -> Result<()> {
        let ((from_parent, from), (to_parent, to)) = (self.parent(from)?, self.parent(to)?);
        if replace {
            return Ok(renameat(from_parent, from, to_parent, to)?);
        }
        match renameat_with(&from_parent, from, &to_parent, to, RenameFlags::NOREPLACE) {
            // Not all file systems can. Between the two calls another process may create the name.
            Err(Errno::INVAL | Errno::NOSYS) => {
                match statat(&to_parent, to, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => Err(Errno::EXIST.into()),
                    Err(Errno::NOENT) => Ok(renameat(from_parent, from, to_parent, to)?),
                    Err(error) => Err(error.into()),
                }
            }
            other => Ok(other?),
        }
    }

    fn read_link(&self, path: &RemotePath) -> Result<Vec<u8>> {
        let (parent, name) = self.parent(path)?;
        let target = readlinkat(parent, name, Vec::new()).map_err(|error| {
            if error == Errno::INVAL {
                Error::failure("it is not a symbolic link")
            } else {
                error.into()
            }
        })?;
        Ok(target.into_bytes())
    }

    fn symlink(&self, target: &[u8], link: &RemotePath) -> Result<()> {
        let (parent, name) = self.parent(link)?;
        let target = self.kept_inside(target, &parent)?;
        Ok(symlinkat(&*target, parent, name)?)
    }

    fn hard_link(&self, from: &RemotePath, to: &RemotePath) -> Result<()> {
        let ((from_parent, from), (to_parent, to)) = (self.parent(from)?, self.parent(to)?);
        let stat = statat(&from_parent, from, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            return Err(Error::failure("a folder cannot have a second name"));
        }
        Ok(linkat(from_parent, from, to_parent, to, AtFlags::empty())?)
    }

    fn space(&self, path: &RemotePath) -> Result<Space> {
        Ok(metadata::space(&fstatvfs(self.locate(path, Follow::Yes)?)?))
    }

    fn tags(&self, path: &RemotePath) -> Result<Tags> {
        refuse_temporary(path)?;
        tags::read(&self.open_regular(path, OFlags::RDONLY, Mode::empty())?)
    }

    fn set_tags(&self, path: &RemotePath, tags: &Tags, only: Option<&str>) -> Result<bool> {
        refuse_temporary(path)?;
        let file = self.open_regular(path, OFlags::RDONLY, Mode::empty())?;
        if let Some(only) = only
            && !identity::is_same(only, &identity::entity_tag(&file, b"")?)
        {
            return Ok(false);
        }
        tags::write(&file, tags)?;
        Ok(true)
    }

    fn entity_tag(&self, path: &RemotePath) -> Result<Option<String>> {
        let file = self.locate(path, Follow::Yes)?;
        refuse_irregular(&fstat(&file)?)?;
        Ok(Some(identity::entity_tag(&file, b"")?))
    }

    /// Another process may replace the file in the moment between the comparison and the removal: Linux removes names, not files.
    fn remove_same(&self, path: &RemotePath, entity_tag: &str) -> Result<bool> {
        let (parent, name) = match self.parent(path) {
            // Its folder is gone, too.
            Err(error) if error.status == Status::NoSuchFile => return Ok(true),
            parent => parent?,
        };
        match identity::entity_tag(&parent, name) {
            Ok(now) if !identity::is_same(entity_tag, &now) => return Ok(false),
            Ok(_) => match unlinkat(&parent, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            },
            // It may have been removed a moment ago, by a server that was killed before that was on the disk.
            Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat(&parent, ".", flags, Mode::empty()) {
            Ok(folder) => rustix::fs::fsync(&folder)?,
            // A folder that cannot be read cannot be opened to be synchronised.
            Err(_) => rustix::fs::sync(),
        }
        Ok(true)
    }

    fn inode(&self, path: &RemotePath) -> Result<Option<Inode>> {
        Ok(Some(metadata::inode(&fstat(self.locate(path, Follow::No)?)?)))
    }

    fn changes_apart(&self) -> bool {
        self.options.atomic_uploads
    }

    fn without_links(self: Arc<Self>) -> Arc<dyn Volume> {
        Arc::new(Self { follows: false, ..(*self).clone() })
    }
}

/// Beginning of the names of uploads that have no name yet. Clients neither see nor reach such names.
const TEMPORARY: &[u8] = b".outlast-upload-";

fn refuse_temporary(path: &RemotePath) -> Result<()> {
    if path.components().any(|name| name.starts_with(TEMPORARY)) {
        return Err(Error::not_found());
    }
    Ok(())
}

fn refuse_irregular(stat: &Stat) -> Result<()> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(Error::failure("it is a folder")),
        _ => Err(not_regular()),
    }
}

fn not_regular() -> Error {
    Error::failure("it is not a regular file")
}

/// Permissions of something new: those that the client asks for, without set-user-ID and its like. The process's umask applies.
fn new_mode(asked: Option<u32>, default: u32) -> Mode {
    Mode::from_raw_mode(asked.map_or(default, kept_mode))
}

fn too_old() -> std::io::Error {
    std::io::Error::other("this kernel has no openat2: serving folders needs Linux 5.8 or later")
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// Name of an open file below `/proc`, by which it can be linked and changed although it has been opened without access
/// to its content, or has no name of its own.
fn proc_path(file: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

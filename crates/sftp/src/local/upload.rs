//! An upload that becomes visible whole or not at all.
//!
//! The content is written to a file without a name (O_TMPFILE). Closing it makes it durable and gives it its name in one step, so
//! that a process that is killed leaves nothing behind. Replacing an existing file takes a second name for a moment,
//! because Linux cannot link over one; a process that is killed in that moment leaves the complete content under a
//! temporary name, which clients do not see. So does every unfinished upload on file systems without O_TMPFILE.
//!
//! A file that is opened without truncating it (`reput`, `put -a`) is copied first: the visible file remains as it was until
//! the close. `fsync@openssh.com` gives the file its name as well, because what is acknowledged as durable must be found
//! after a crash; what is written afterwards goes to the visible file.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, Stat, copy_file_range, fchmod, fchown, fstat, fstatvfs, fsync,
    linkat, openat, renameat, statat, syncfs, unlinkat,
};
use rustix::io::Errno;
use rustix::process::getpid;

use super::file::{read_at, write_at};
use super::{Folder, NAMES, TEMPORARY, identity, metadata, new_mode, proc_path, refuse_irregular};
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::limits::COPY_BUFFER;
use crate::path::RemotePath;
use crate::volume::{File, Inode, Name, OpenHow, Space, Volume};

pub(super) struct Upload {
    file: OwnedFd,
    /// The folder that will contain it.
    parent: OwnedFd,
    folder: Folder,
    path: RemotePath,
    appends: bool,
    exclusive: bool,
    state: Mutex<State>,
}

enum State {
    /// The file has no name.
    Unnamed,
    /// It has a temporary one.
    Temporary(Vec<u8>),
    /// It is in its place.
    Published,
}

impl Upload {
    pub(super) fn begin(folder: &Folder, path: &RemotePath, how: &OpenHow) -> Result<Self> {
        let name = path.name().ok_or_else(|| Error::failure("it is a folder"))?;
        let parent = folder.resolve(path.parent().relative(), NAMES, Mode::empty());
        let parent = parent.map_err(Error::from).map_err(super::errno::of_creation(how))?;
        let existing = existing(folder, path, how)?;
        if existing.is_none() && !how.create {
            return Err(Error::not_found());
        }
        // A dangling link is not followed: the upload takes its place.
        if how.exclusive && statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return Err(Errno::EXIST.into());
        }
        let mode = new_mode(how.mode, 0o666);
        let (file, state) = unnamed(folder, &parent, mode)?;
        let upload = Self {
            file,
            parent,
            folder: folder.clone(),
            path: path.clone(),
            appends: how.append,
            exclusive: how.exclusive,
            state: Mutex::new(state),
        };
        if let Some((old, stat)) = existing {
            if !how.truncate {
                copy(&old, &upload.file)?;
            }
            upload.take_over(&stat)?;
        }
        Ok(upload)
    }

    /// The new file has the owner and the permissions of the one that it replaces.
    fn take_over(&self, stat: &Stat) -> Result<()> {
        let (user, group) =
            (rustix::fs::Uid::from_raw(stat.st_uid), rustix::fs::Gid::from_raw(stat.st_gid));
        // Only a privileged process can give files away; others replace files of their own.
        match fchown(&self.file, Some(user), Some(group)) {
            Ok(()) | Err(Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(fchmod(&self.file, Mode::from_raw_mode(metadata::kept_mode(stat.st_mode)))?)
    }

    /// Makes the content durable and gives it its name, durably.
    fn publish(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        fsync(&self.file)?;
        let name = self.path.name().ok_or_else(Error::not_found)?;
        match &*state {
            State::Published => {}
            State::Unnamed => match self.link(name) {
                Err(Errno::EXIST) if !self.exclusive => {
                    let temporary = free_name(|name| self.link(name))?;
                    self.replace(&temporary, name)?;
                }
                other => other?,
            },
            State::Temporary(temporary) if self.exclusive => {
                linkat(&self.parent, &**temporary, &self.parent, name, AtFlags::empty())?;
                unlinkat(&self.parent, &**temporary, AtFlags::empty())?;
            }
            State::Temporary(temporary) => self.replace(temporary, name)?,
        }
        *state = State::Published;
        // A folder that cannot be read cannot be opened to be synchronised.
        self.folder.sync_upwards(&self.parent).or_else(|_| Ok(syncfs(&self.file)?))
    }

    /// Gives the file without a name one.
    fn link(&self, name: &[u8]) -> std::result::Result<(), Errno> {
        linkat(CWD, proc_path(&self.file), &self.parent, name, AtFlags::SYMLINK_FOLLOW)
    }

    fn replace(&self, temporary: &[u8], name: &[u8]) -> Result<()> {
        renameat(&self.parent, temporary, &self.parent, name).map_err(|error| {
            let _ = unlinkat(&self.parent, temporary, AtFlags::empty());
            error.into()
        })
    }
}

/// The file that the upload will replace, if there is one; the client must be allowed to write it.
fn existing(folder: &Folder, path: &RemotePath, how: &OpenHow) -> Result<Option<(OwnedFd, Stat)>> {
    let access = if how.truncate { OFlags::WRONLY } else { OFlags::RDWR };
    match folder.resolve(path.relative(), access | super::COMMON, Mode::empty()) {
        Ok(file) => {
            let stat = fstat(&file)?;
            refuse_irregular(&stat)?;
            Ok(Some((file, stat)))
        }
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::NXIO) => Err(super::not_regular()),
        Err(error) => Err(error.into()),
    }
}

/// A file without a name, or with a temporary one.
fn unnamed(folder: &Folder, parent: &OwnedFd, mode: Mode) -> Result<(OwnedFd, State)> {
    if folder.has_proc {
        match openat(parent, ".", OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
            Ok(file) => return Ok((file, State::Unnamed)),
            // The file system, or the kernel, has no such files.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut made = None;
    let name = free_name(|name| {
        made = Some(openat(parent, name, flags, mode)?);
        Ok(())
    })?;
    let file = made.ok_or_else(Error::not_found)?;
    Ok((file, State::Temporary(name)))
}

/// Calls `make` with temporary names until one is free.
fn free_name(mut make: impl FnMut(&[u8]) -> std::result::Result<(), Errno>) -> Result<Vec<u8>> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Killed processes may have left names; each attempt takes another number.
    const ATTEMPTS: usize = 10_000;
    for _ in 0..ATTEMPTS {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let process = getpid().as_raw_nonzero();
        let name = [TEMPORARY, format!("{process}-{number}").as_bytes()].concat();
        match make(&name) {
            Ok(()) => return Ok(name),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Errno::EXIST.into())
}

/// Copies a whole file; file systems that can share the blocks.
fn copy(from: &OwnedFd, to: &OwnedFd) -> Result<()> {
    let (mut read_from, mut write_to) = (0, 0);
    loop {
        let most = 1 << 30;
        match copy_file_range(from, Some(&mut read_from), to, Some(&mut write_to), most) {
            Ok(0) => return Ok(()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::XDEV | Errno::NOSYS | Errno::OPNOTSUPP | Errno::INVAL) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let mut buffer = vec![0; COPY_BUFFER];
    loop {
        let read = read_at(from, read_from, &mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        write_at(to, read_from, &buffer[..read])?;
        read_from += read as u64;
    }
}

impl File for Upload {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        read_at(&self.file, offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let offset = if self.appends {
            u64::try_from(fstat(&self.file)?.st_size).unwrap_or(0)
        } else {
            offset
        };
        write_at(&self.file, offset, bytes)
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(metadata::attributes(&fstat(&self.file)?))
    }

    fn inode(&self) -> Result<Option<Inode>> {
        Ok(Some(metadata::inode(&fstat(&self.file)?)))
    }

    fn set_attributes(&self, to: &Attributes) -> Result<()> {
        metadata::set_open(&self.file, to)
    }

    fn entity_tag(&self) -> Result<Option<String>> {
        Ok(Some(identity::entity_tag(&self.file, b"")?))
    }

    /// Most of what is to be durable, so that little is left when it becomes visible.
    fn settle(&self) -> Result<()> {
        Ok(fsync(&self.file)?)
    }

    fn sync(&self) -> Result<()> {
        self.publish()
    }

    fn space(&self) -> Result<Space> {
        Ok(metadata::space(&fstatvfs(&self.file)?))
    }

    fn content(&self) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        match &*self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Temporary(name) => {
                Ok(openat(&self.parent, &**name, flags | OFlags::NOFOLLOW, Mode::empty())?)
            }
            State::Unnamed | State::Published => {
                Ok(openat(CWD, proc_path(&self.file), flags, Mode::empty())?)
            }
        }
    }

    /// The folder takes its uploads with it.
    fn replaces(&self, _: &dyn Volume, _: &RemotePath) -> Result<Option<Name>> {
        let name = self.path.name().ok_or_else(Error::not_found)?;
        match statat(&self.parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(Name {
                attributes: metadata::attributes(&stat),
                inode: Some(metadata::inode(&stat)),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn is_apart(&self) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        !matches!(*state, State::Published)
    }

    fn close(&self) -> Result<()> {
        self.publish()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let State::Temporary(name) = state {
            let _ = unlinkat(&self.parent, &**name, AtFlags::empty());
        }
    }
}

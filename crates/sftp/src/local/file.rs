//! An open file that is read and written where it is.

use std::io::IoSliceMut;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, fstat, fstatvfs, fsync, syncfs};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2, pwrite};

use super::{Folder, identity, metadata, tags};
use crate::attributes::Attributes;
use crate::error::{Error, Result};
use crate::path::RemotePath;
use crate::volume::{File, Inode, Space};

pub(super) struct Plain {
    file: OwnedFd,
    folder: Folder,
    path: RemotePath,
    /// Whether the content was changed, and the tags of the former one were taken away.
    is_changed: AtomicBool,
}

impl Plain {
    pub(super) fn new(file: OwnedFd, folder: Folder, path: RemotePath) -> Self {
        Self { file, folder, path, is_changed: AtomicBool::new(false) }
    }

    /// Called before each change of the content.
    fn changing(&self) -> Result<()> {
        if !self.is_changed.load(Ordering::Relaxed) {
            tags::clear(&self.file)?;
            self.is_changed.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// Reads until the buffer is full or the file ends.
pub(super) fn read_at(file: &OwnedFd, offset: u64, into: &mut [u8]) -> Result<usize> {
    let mut done = 0;
    while done < into.len() {
        let Some(at) = offset.checked_add(done as u64).filter(|at| *at <= i64::MAX as u64) else {
            break;
        };
        match pread(file, &mut into[done..], at) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(done)
}

/// Writes all bytes.
pub(super) fn write_at(file: &OwnedFd, offset: u64, bytes: &[u8]) -> Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let at = offset.checked_add(done as u64).filter(|at| *at <= i64::MAX as u64);
        let at = at.ok_or_else(|| Error::failure("the offset is too large"))?;
        match pwrite(file, &bytes[done..], at) {
            Ok(0) => return Err(Errno::IO.into()),
            Ok(written) => done += written,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl File for Plain {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        read_at(&self.file, offset, into)
    }

    fn read_now(&self, offset: u64, into: &mut [u8]) -> bool {
        let wanted = into.len();
        let is_small = offset.checked_add(wanted as u64).is_some_and(|end| end <= i64::MAX as u64);
        // The kernel has the bytes in memory, or says that it does not. Fewer bytes may be the end of the file or of what is
        // in memory.
        let mut read =
            || preadv2(&self.file, &mut [IoSliceMut::new(into)], offset, ReadWriteFlags::NOWAIT);
        is_small && wanted > 0 && read() == Ok(wanted)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.changing()?;
        write_at(&self.file, offset, bytes)
    }

    fn attributes(&self) -> Result<Attributes> {
        Ok(metadata::attributes(&fstat(&self.file)?))
    }

    fn inode(&self) -> Result<Option<Inode>> {
        Ok(Some(metadata::inode(&fstat(&self.file)?)))
    }

    fn set_attributes(&self, to: &Attributes) -> Result<()> {
        if to.size.is_some() {
            self.changing()?;
        }
        metadata::set_open(&self.file, to)
    }

    fn entity_tag(&self) -> Result<Option<String>> {
        Ok(Some(identity::entity_tag(&self.file, b"")?))
    }

    fn is_same(&self, entity_tag: &str) -> Result<bool> {
        Ok(identity::is_same(entity_tag, &identity::entity_tag(&self.file, b"")?))
    }

    fn sync(&self) -> Result<()> {
        fsync(&self.file)?;
        match self.folder.resolve(self.path.parent().relative(), super::NAMES, Mode::empty()) {
            Ok(parent) => self.folder.sync_upwards(&parent),
            // Somebody has renamed the folder: the whole file system is written instead.
            Err(_) => Ok(syncfs(&self.file)?),
        }
    }

    fn space(&self) -> Result<Space> {
        Ok(metadata::space(&fstatvfs(&self.file)?))
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}

//! Attributes of local files.

use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, Stat, StatVfs, StatVfsMountFlags, Timespec, Timestamps, Uid,
    chmod, chownat, fchmod, fchown, fstat, ftruncate, futimens, utimensat,
};
use rustix::io::Errno;

use super::proc_path;
use crate::attributes::{Attributes, FOLDER, TYPE};
use crate::error::Result;
use crate::volume::{Inode, Space};

/// Permissions that clients can set. Set-user-ID, set-group-ID and sticky bits are not among them: a file with content of a
/// stranger would run as its owner.
pub(super) fn kept_mode(asked: u32) -> u32 {
    asked & 0o777
}

/// Attributes of a file.
pub(super) fn attributes(stat: &Stat) -> Attributes {
    // Version 3 has 32 bits; a time before 1970 or after 2106 is cut off at the ends.
    let seconds = |time: i64| u32::try_from(time.max(0)).unwrap_or(u32::MAX);
    Attributes {
        size: Some(u64::try_from(stat.st_size).unwrap_or(0)),
        owner: Some((stat.st_uid, stat.st_gid)),
        mode: Some(stat.st_mode),
        times: Some((seconds(stat.st_atime), seconds(stat.st_mtime))),
    }
}

/// Which file it is.
pub(super) fn inode(stat: &Stat) -> Inode {
    #[allow(clippy::useless_conversion, reason = "it has 32 bits on Arm")]
    let names = stat.st_nlink.into();
    Inode { id: (stat.st_dev, stat.st_ino), names }
}

/// Space of a file system.
pub(super) fn space(from: &StatVfs) -> Space {
    Space {
        block_size: from.f_bsize,
        fragment_size: from.f_frsize,
        blocks: from.f_blocks,
        free_blocks: from.f_bfree,
        available_blocks: from.f_bavail,
        files: from.f_files,
        free_files: from.f_ffree,
        available_files: from.f_favail,
        id: from.f_fsid,
        read_only: from.f_flag.contains(StatVfsMountFlags::RDONLY),
        max_name: from.f_namemax,
    }
}

/// The bits of a mode that a change keeps. A folder's set-group-ID and sticky bits are its administrator's choice.
fn changed_mode(before: u32, asked: u32) -> Mode {
    let special = if before & TYPE == FOLDER { before & 0o7000 } else { 0 };
    Mode::from_raw_mode(special | kept_mode(asked))
}

fn times(of: (u32, u32)) -> Timestamps {
    let time = |seconds: u32| Timespec { tv_sec: seconds.into(), tv_nsec: 0 };
    Timestamps { last_access: time(of.0), last_modification: time(of.1) }
}

fn owner(of: (u32, u32)) -> (Option<Uid>, Option<Gid>) {
    // All ones means "unchanged" to the kernel, and is no valid number.
    let valid = |id: u32| (id != u32::MAX).then_some(id);
    (valid(of.0).map(Uid::from_raw), valid(of.1).map(Gid::from_raw))
}

/// Sets attributes of an open file; the size, too.
pub(super) fn set_open(file: &OwnedFd, to: &Attributes) -> Result<()> {
    if let Some(size) = to.size {
        ftruncate(file, size)?;
    }
    // The owner first: a change of the owner clears bits of the mode.
    if let Some((user, group)) = to.owner.map(owner) {
        fchown(file, user, group)?;
    }
    if let Some(mode) = to.mode {
        fchmod(file, changed_mode(fstat(file)?.st_mode, mode))?;
    }
    if let Some(of) = to.times {
        futimens(file, &times(of))?;
    }
    Ok(())
}

/// Sets attributes, but for the size, of a file that was opened without access to its content.
pub(super) fn set_located(file: &OwnedFd, to: &Attributes) -> Result<()> {
    if let Some((user, group)) = to.owner.map(owner) {
        chownat(file, "", user, group, AtFlags::EMPTY_PATH)?;
    }
    if let Some(mode) = to.mode {
        let before = fstat(file)?.st_mode;
        if FileType::from_raw_mode(before) == FileType::Symlink {
            // Linux has no permissions of links.
            return Err(Errno::OPNOTSUPP.into());
        }
        // There is no other way to do it by such a descriptor before Linux 6.6.
        chmod(proc_path(file), changed_mode(before, mode))?;
    }
    if let Some(of) = to.times {
        utimensat(file, "", &times(of), AtFlags::EMPTY_PATH)?;
    }
    Ok(())
}

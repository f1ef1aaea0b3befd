//! What tells one content of a local file from another: an entity tag of the file's identity, its size and its time of modification.
//!
//! A file that is replaced has another inode; the time at which it was made tells it from one that had the same number before. One
//! that is written in its place has another size or time. TAG steps and changes of permissions leave all of it as it is, which the
//! time of the last change of state (ctime) would not.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, Statx, StatxFlags, statx};
use rustix::io::Errno;

/// The entity tag of a file: that of the path below an open folder, or of the open file itself if the path is empty.
pub(super) fn entity_tag(at: impl AsFd, path: &[u8]) -> Result<String, Errno> {
    let empty = if path.is_empty() { AtFlags::EMPTY_PATH } else { AtFlags::empty() };
    let flags = AtFlags::SYMLINK_NOFOLLOW | empty;
    let found = statx(at, path, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
    Ok(written(&found))
}

fn written(found: &Statx) -> String {
    let has_birth = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    let nanoseconds = |time: rustix::fs::StatxTimestamp| {
        i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec)
    };
    let birth = if has_birth { nanoseconds(found.stx_btime) } else { 0 };
    let modified = nanoseconds(found.stx_mtime);
    let device = u64::from(found.stx_dev_major) << 32 | u64::from(found.stx_dev_minor);
    format!("{device:x}.{:x}.{birth:x}.{:x}.{modified:x}", found.stx_ino, found.stx_size)
}

/// Whether a content that had one entity tag has the other one now. A client that keeps the times of its files sets them after the
/// upload, in whole seconds, which changes no content.
pub(super) fn is_same(before: &str, now: &str) -> bool {
    let (Some((one, _)), Some((other, modified))) = (before.rsplit_once('.'), now.rsplit_once('.'))
    else {
        return false;
    };
    let is_set = i128::from_str_radix(modified, 16).is_ok_and(|time| time % 1_000_000_000 == 0);
    before == now || one == other && is_set
}

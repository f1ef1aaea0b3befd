//! Tags of local files: one extended attribute with a line for each tag, a tab between its key and its value.
//!
//! They belong to the content, as in S3: an upload that replaces a file has none, and neither has a file that is written in its place.

use std::os::fd::OwnedFd;

use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr, fsync};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::volume::Tags;

/// Name of the attribute.
const NAME: &str = "user.outlast.tags";
/// Bytes of an attribute, at most (Linux: `XATTR_SIZE_MAX`).
const MAX: usize = 65_536;

/// The tags of an open file.
pub(super) fn read(file: &OwnedFd) -> Result<Tags> {
    let mut value = vec![0_u8; MAX];
    let len = match fgetxattr(file, NAME, value.as_mut_slice()) {
        Ok(len) => len,
        // A file system without attributes has no tags either.
        Err(Errno::NODATA | Errno::OPNOTSUPP) => return Ok(Tags::new()),
        Err(error) => return Err(error.into()),
    };
    let text = value.get(..len).and_then(|bytes| std::str::from_utf8(bytes).ok());
    let tags = text.and_then(|text| {
        let tag = |line: &str| line.split_once('\t').map(|(key, value)| (key.into(), value.into()));
        text.lines().map(tag).collect()
    });
    tags.ok_or_else(|| Error::failure("the tags of the file are damaged"))
}

/// Takes the tags away from a file whose content changes, which is open for writing.
pub(super) fn clear(file: &OwnedFd) -> Result<()> {
    match fremovexattr(file, NAME) {
        Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Gives an open file these tags, durably.
pub(super) fn write(file: &OwnedFd, tags: &Tags) -> Result<()> {
    let is_odd = |text: &str| text.chars().any(char::is_control);
    if tags.iter().any(|(key, value)| is_odd(key) || is_odd(value)) {
        return Err(Error::failure("a tag has no control characters"));
    }
    let lines: String = tags.iter().map(|(key, value)| format!("{key}\t{value}\n")).collect();
    let set = match lines.is_empty() {
        true => return clear(file).and_then(|()| Ok(fsync(file)?)),
        false => fsetxattr(file, NAME, lines.as_bytes(), XattrFlags::empty()),
    };
    set.map_err(|error| match error {
        Errno::OPNOTSUPP => Error::unsupported(
            "the file system keeps no tags: it has no extended attributes of users",
        ),
        Errno::NOSPC | Errno::TOOBIG | Errno::RANGE => {
            Error::failure("the file system has no room for so many tags of a file")
        }
        other => other.into(),
    })?;
    Ok(fsync(file)?)
}

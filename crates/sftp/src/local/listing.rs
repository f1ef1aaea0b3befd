//! The names of a local folder, read as clients ask for them.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, fstat, statat};
use rustix::io::Errno;

use super::TEMPORARY;
use super::metadata::attributes;
use crate::error::Result;
use crate::volume::{Entry, Listing};

pub(super) struct Names(Dir);

impl Names {
    pub(super) fn new(folder: OwnedFd) -> Result<Self> {
        Ok(Self(Dir::new(folder)?))
    }
}

impl Listing for Names {
    fn next(&mut self) -> Result<Option<Entry>> {
        while let Some(entry) = self.0.read() {
            let entry = entry?;
            let name = entry.file_name();
            if name.to_bytes().starts_with(TEMPORARY) {
                continue;
            }
            let folder = self.0.fd()?;
            // The folder above the root is none of the client's business: `..` looks like `.` everywhere.
            let stat = match name.to_bytes() {
                b"." | b".." => fstat(folder),
                _ => statat(folder, name, AtFlags::SYMLINK_NOFOLLOW),
            };
            match stat {
                Ok(stat) => {
                    #[allow(clippy::useless_conversion, reason = "it has 32 bits on Arm")]
                    let links = stat.st_nlink.into();
                    let name = name.to_bytes().to_vec();
                    return Ok(Some(Entry { name, attributes: attributes(&stat), links }));
                }
                // Removed meanwhile.
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }
}

//! Errors of the operating system, as clients see them.

use rustix::io::Errno;

use crate::error::{Error, Status};
use crate::volume::OpenHow;

impl From<Errno> for Error {
    fn from(errno: Errno) -> Self {
        // OpenSSH's `errno_to_portable` has the same codes, but for INVAL and NAMETOOLONG, which it calls bad messages.
        let (status, text) = match errno {
            Errno::NOENT => (Status::NoSuchFile, "no such file"),
            Errno::NOTDIR => (Status::NoSuchFile, "a part of the path is not a folder"),
            Errno::LOOP => {
                (Status::NoSuchFile, "symbolic links lead in a circle, or are not followed here")
            }
            Errno::ACCESS | Errno::PERM => (Status::PermissionDenied, "permission denied"),
            Errno::ROFS => (Status::PermissionDenied, "the file system is read-only"),
            Errno::NOSYS | Errno::OPNOTSUPP => {
                (Status::OpUnsupported, "the file system does not support it")
            }
            Errno::EXIST => (Status::Failure, "the file exists already"),
            Errno::ISDIR => (Status::Failure, "it is a folder"),
            Errno::NOTEMPTY => (Status::Failure, "the folder is not empty"),
            Errno::XDEV => (Status::Failure, "the two paths are on different file systems"),
            Errno::NOSPC => (Status::Failure, "no space left on the disk"),
            Errno::DQUOT => {
                (Status::Failure, "quota exceeded: the disk quota of the owner is used up")
            }
            Errno::FBIG => (Status::Failure, "the file would be too large for the file system"),
            Errno::NAMETOOLONG => (Status::Failure, "the name or path is too long"),
            Errno::INVAL => (Status::Failure, "the file system refuses the argument"),
            Errno::BUSY | Errno::TXTBSY => (Status::Failure, "the file is in use"),
            Errno::MLINK => {
                (Status::Failure, "the file has too many names, or the folder too many folders")
            }
            Errno::MFILE | Errno::NFILE => {
                (Status::Failure, "the server has too many open files; try again later")
            }
            Errno::AGAIN => (Status::Failure, "folders on the path are being renamed; try again"),
            Errno::IO => {
                (Status::Failure, "input or output failed; the server's log of the kernel says why")
            }
            _ => (Status::Failure, "the operating system refuses it"),
        };
        Self::new(status, text)
    }
}

/// Explains a failure to create a file.
pub(super) fn of_creation(how: &OpenHow) -> impl Fn(Error) -> Error {
    let creates = how.create;
    move |error| match error.status {
        Status::NoSuchFile if creates => {
            Error::new(Status::NoSuchFile, "no such folder: make it first")
        }
        _ => error,
    }
}

//! What an operation did, for those who audit it.

use std::borrow::Cow;

use bytes::Bytes;

use crate::attributes::Attributes;
use crate::error::Status;
use crate::path::RemotePath;
use crate::request::Request;
use crate::volume::OpenHow;

/// What an operation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Kind of the operation, see [`crate::operation::Operation::kind`]; `abandon` for a file that was not closed, `closedir` for a
    /// folder.
    pub kind: &'static str,
    /// Path of the file, as in the user's view.
    pub path: Option<RemotePath>,
    /// New path of renames and hard links, target of copies.
    pub to: Option<RemotePath>,
    /// What a symbolic link contains, as the client wrote it.
    pub target: Option<Bytes>,
    /// Attributes that were to be set on an existing file.
    pub attributes: Option<Attributes>,
    /// How a file was opened, by `open`.
    pub how: Option<OpenHow>,
    /// Whether a file was opened for writing.
    pub writes: bool,
    /// Whether what was written to the file is not visible under its name, see [`crate::volume::File::is_apart`].
    pub is_apart: bool,
    /// Whether something that the client has sent could not be written: of a request, that it is the first of its handle; of the end
    /// of a handle, that there was one.
    pub is_broken: bool,
    /// Whether an earlier read or write of the handle was denied, as this one is.
    pub is_repeated: bool,
    /// Bytes read: of this request, or of the whole life of a handle that is closed.
    pub bytes_read: u64,
    /// Bytes written, likewise.
    pub bytes_written: u64,
    /// When its file was opened, in seconds since 1970; for requests without a handle the time of the request.
    pub since: i64,
    /// Status that the client got.
    pub status: Status,
    /// Explanation that the client got, if it failed.
    pub text: Cow<'static, str>,
}

/// The target of a symbolic link and the attributes to set that a request has.
pub(super) fn details(request: &Request) -> (Option<Bytes>, Option<Attributes>) {
    match request {
        Request::Symlink { target, .. } => (Some(target.clone()), None),
        Request::SetStat { attributes, .. }
        | Request::LSetStat { attributes, .. }
        | Request::FSetStat { attributes, .. } => (None, Some(*attributes)),
        _ => (None, None),
    }
}

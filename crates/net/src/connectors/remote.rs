//! What is done on a remote server without a file of a bucket.

use bytes::Bytes;
use outlast_domain::transfer::connector::{Failure, FailureCode};
use outlast_sftp::error::{Error, Status};
use outlast_sftp::reply::Reply;
use outlast_sftp::request::Request;

use crate::outbound::{Broken, Remote};

/// What a remote server said, for people.
pub(super) fn said(error: &Error) -> String {
    let clean = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let text: String = error.text.chars().take(256).map(clean).collect();
    let text = if text.is_empty() { error.status.name() } else { &text };
    format!("the remote server says: {text}")
}

/// The failure of a job: with the code of `missing` if there is no such file, and otherwise of `other`.
pub(super) fn failure(broken: Broken, missing: FailureCode, other: FailureCode) -> Failure {
    match broken {
        Broken::Session(failure) => failure,
        Broken::Changed => Failure::new(other, "the file changed"),
        Broken::Refused(error) => {
            let code = match error.status {
                Status::NoSuchFile => missing,
                Status::OpUnsupported => FailureCode::UnsupportedOperation,
                _ => other,
            };
            Failure::new(code, said(&error))
        }
    }
}

/// Opens a file or a folder.
pub(super) async fn open(remote: &mut Remote, request: Request) -> Result<Bytes, Broken> {
    match remote.call(&request).await? {
        Reply::Handle(handle) => Ok(handle),
        // The client lets no other reply pass.
        _ => Err(Broken::Refused(Error::failure("there is no handle"))),
    }
}

/// Closes what is open under a handle.
pub(super) async fn close(remote: &mut Remote, handle: Bytes) -> Result<(), Broken> {
    remote.call(&Request::Close { handle }).await.map(|_| ())
}

/// Deletes a file, a link or an empty directory.
pub(super) async fn delete(remote: &mut Remote, path: &str) -> Result<(), Failure> {
    let path = Bytes::from(path.to_owned());
    let failure = |broken| failure(broken, FailureCode::FileNotFound, FailureCode::Delete);
    let is_folder = match remote.call(&Request::LStat { path: path.clone() }).await {
        Ok(Reply::Attributes(found)) => found.is_folder(),
        // Who may not look may be allowed to delete.
        Err(Broken::Refused(error)) if error.status != Status::NoSuchFile => false,
        Err(broken) => return Err(failure(broken)),
        Ok(_) => false,
    };
    let request = if is_folder { Request::RmDir { path } } else { Request::Remove { path } };
    remote.call(&request).await.map(|_| ()).map_err(failure)
}

/// Moves or renames.
pub(super) async fn rename(remote: &mut Remote, from: &str, to: &str) -> Result<(), Failure> {
    let (from, to) = (Bytes::from(from.to_owned()), Bytes::from(to.to_owned()));
    let request = remote.sftp.rename(from.clone(), to);
    let Err(broken) = remote.call(&request).await else { return Ok(()) };
    let is_missing =
        matches!(&broken, Broken::Refused(error) if error.status == Status::NoSuchFile);
    // "No such file" may be said of either path.
    let missing = if is_missing && remote.call(&Request::LStat { path: from }).await.is_ok() {
        FailureCode::PathNotFound
    } else {
        FailureCode::FileNotFound
    };
    Err(failure(broken, missing, FailureCode::Rename))
}

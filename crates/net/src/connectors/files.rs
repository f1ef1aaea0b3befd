//! One file, from a bucket to a remote server or back.

use bytes::Bytes;
use outlast_domain::transfer::connector::{Failure, FailureCode};
use outlast_sftp::attributes::Attributes;
use outlast_sftp::client::{Download, Upload};
use outlast_sftp::error::{Error, Status};
use outlast_sftp::reply::Reply;
use outlast_sftp::request::Request;
use outlast_sftp::volume::OpenHow;
use tokio::sync::mpsc;

use super::local::Local;
use super::remote::{close, open, said};
use crate::outbound::{Broken, Remote};

/// The result of a file, and whether the session is over.
pub(super) type Outcome = (Result<u64, Failure>, bool);

/// Why a file was not transferred.
enum Wrong {
    /// At the remote server.
    There(Broken),
    /// In the bucket.
    Here(Error),
    /// Between both.
    Otherwise(Failure),
}

impl From<Broken> for Wrong {
    fn from(broken: Broken) -> Self {
        Self::There(broken)
    }
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Self {
        Self::Here(error)
    }
}

/// Codes of failures, by what was missing or failed.
struct Codes {
    missing_here: FailureCode,
    missing_there: FailureCode,
    here: FailureCode,
    there: FailureCode,
}

const SEND: Codes = Codes {
    missing_here: FailureCode::SendFileNotFound,
    missing_there: FailureCode::WriteFile,
    here: FailureCode::ReadFile,
    there: FailureCode::WriteFile,
};

const RETRIEVE: Codes = Codes {
    missing_here: FailureCode::WriteFile,
    missing_there: FailureCode::RetrieveFileNotFound,
    here: FailureCode::WriteFile,
    there: FailureCode::ReadFile,
};

impl Codes {
    fn outcome(&self, result: Result<u64, Wrong>) -> Outcome {
        let is_missing = |error: &Error| error.status == Status::NoSuchFile;
        match result {
            Ok(bytes) => (Ok(bytes), false),
            Err(Wrong::Here(error)) => {
                let code = if is_missing(&error) { self.missing_here } else { self.here };
                (Err(Failure::new(code, format!("the file of the bucket: {error}"))), false)
            }
            Err(Wrong::There(Broken::Refused(error))) => {
                let code = if is_missing(&error) { self.missing_there } else { self.there };
                (Err(Failure::new(code, said(&error))), false)
            }
            Err(Wrong::There(Broken::Changed)) => {
                let text = "the file of the remote server changed while it was read";
                (Err(Failure::new(self.there, text)), false)
            }
            Err(Wrong::There(Broken::Session(failure))) => (Err(failure), true),
            Err(Wrong::Otherwise(failure)) => (Err(failure), false),
        }
    }
}

/// The last part of a path; nothing if it names a directory.
fn name(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    (!matches!(name, "" | "." | "..")).then_some(name)
}

/// Sends a file of a bucket to a directory, under its own name from the beginning, as AWS does.
pub(super) async fn send(
    remote: &mut Remote,
    local: &Local,
    path: &str,
    to: Option<&str>,
) -> Outcome {
    let Some(name) = name(path) else {
        let text = format!("{path} does not end with the name of a file");
        return (Err(Failure::new(FailureCode::SendFileNotFound, text)), false);
    };
    let to = match to {
        // Where sessions of the server begin.
        None | Some("") => name.to_owned(),
        Some(folder) => format!("{}/{name}", folder.trim_end_matches('/')),
    };
    SEND.outcome(sent(remote, local, path, to.into()).await)
}

async fn sent(remote: &mut Remote, local: &Local, path: &str, to: Bytes) -> Result<u64, Wrong> {
    let mut pieces = local.read(path).await?;
    let how = OpenHow { write: true, create: true, truncate: true, ..OpenHow::default() };
    let handle =
        open(remote, Request::Open { path: to, how, attributes: Attributes::default() }).await?;
    let mut upload = Upload::new(handle.clone());
    let outcome = written(remote, &mut upload, &mut pieces).await;
    let bytes = match outcome {
        Ok(bytes) => bytes,
        Err(wrong) => {
            if !matches!(wrong, Wrong::There(Broken::Session(_))) {
                // The first failure is the one to report.
                let _ = close(remote, handle).await;
            }
            return Err(wrong);
        }
    };
    if remote.sftp.has_fsync() {
        match remote.call(&Request::FSync { handle: handle.clone() }).await {
            // It is offered, and yet some storages cannot.
            Err(Broken::Refused(error)) if error.status == Status::OpUnsupported => {}
            Err(broken) => {
                if !matches!(broken, Broken::Session(_)) {
                    let _ = close(remote, handle).await;
                }
                return Err(broken.into());
            }
            Ok(_) => {}
        }
    }
    // Servers that cannot tell the size are believed.
    let found = match remote.call(&Request::FStat { handle: handle.clone() }).await {
        Ok(Reply::Attributes(found)) => found.size,
        Err(Broken::Session(failure)) => return Err(Broken::Session(failure).into()),
        _ => None,
    };
    close(remote, handle).await?;
    if found.is_some_and(|size| size != bytes) {
        let text = "the remote file has another size than what was written";
        return Err(Wrong::Otherwise(Failure::new(FailureCode::WriteFile, text)));
    }
    Ok(bytes)
}

/// Writes pieces as they come; returns how many bytes they have.
async fn written(
    remote: &mut Remote,
    upload: &mut Upload,
    pieces: &mut mpsc::Receiver<Result<Bytes, Error>>,
) -> Result<u64, Wrong> {
    let mut has_more = true;
    loop {
        upload.send(&mut remote.sftp);
        if has_more && upload.has_room() {
            tokio::select! {
                piece = pieces.recv() => match piece {
                    Some(piece) => upload.write(&mut remote.sftp, piece?),
                    None => has_more = false,
                },
                answer = remote.reply(), if upload.is_waiting() => {
                    let (id, reply) = answer?;
                    upload.take(id, reply).map_err(Broken::from)?;
                }
            }
        } else if upload.is_waiting() {
            let (id, reply) = remote.reply().await?;
            upload.take(id, reply).map_err(Broken::from)?;
        } else {
            return Ok(upload.written());
        }
    }
}

/// Retrieves a file of the remote server into a directory of a bucket.
pub(super) async fn retrieve(remote: &mut Remote, local: &Local, path: &str, to: &str) -> Outcome {
    let Some(name) = name(path) else {
        let text = format!("{path} does not end with the name of a file");
        return (Err(Failure::new(FailureCode::RetrieveFileNotFound, text)), false);
    };
    RETRIEVE.outcome(retrieved(remote, local, path, to, name.as_bytes()).await)
}

async fn retrieved(
    remote: &mut Remote,
    local: &Local,
    path: &str,
    to: &str,
    name: &[u8],
) -> Result<u64, Wrong> {
    let (path, how) = (Bytes::from(path.to_owned()), OpenHow::reading());
    let handle =
        open(remote, Request::Open { path, how, attributes: Attributes::default() }).await?;
    let outcome = received(remote, local, handle.clone(), to, name).await;
    if !matches!(outcome, Err(Wrong::There(Broken::Session(_)))) {
        // What was read is complete, whatever the server says now.
        let _ = close(remote, handle).await;
    }
    outcome
}

async fn received(
    remote: &mut Remote,
    local: &Local,
    handle: Bytes,
    to: &str,
    name: &[u8],
) -> Result<u64, Wrong> {
    let size = match remote.call(&Request::FStat { handle: handle.clone() }).await {
        Ok(Reply::Attributes(found)) if found.is_folder() => {
            let text = "the path leads to a directory of the remote server";
            return Err(Wrong::Otherwise(Failure::new(FailureCode::ReadFile, text)));
        }
        Ok(Reply::Attributes(found)) => found.size,
        Err(Broken::Refused(_)) | Ok(_) => None,
        Err(broken) => return Err(broken.into()),
    };
    let most = local.max_file;
    if size.is_some_and(|size| size > most) {
        return Err(too_large(most));
    }
    let mut file = local.write(to, name).await?;
    let mut download = Download::new(handle, size);
    let bytes = loop {
        download.ask(&mut remote.sftp);
        if let Some(bytes) = download.done().map_err(Broken::from)? {
            break bytes;
        }
        let (id, reply) = remote.reply().await?;
        if let Some((offset, data)) = download.take(id, reply).map_err(Broken::from)? {
            // A server need not tell the size before.
            if offset.saturating_add(data.len() as u64) > most {
                return Err(too_large(most));
            }
            file.write(offset, data).await?;
        }
    };
    file.finish().await?;
    Ok(bytes)
}

fn too_large(most: u64) -> Wrong {
    let text = format!(
        "the file of the remote server has more than {} GiB, the most that a connector retrieves",
        most >> 30
    );
    Wrong::Otherwise(Failure::new(FailureCode::ReadFile, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_a_file_by_its_last_part() {
        for (path, expected) in [
            ("/a/b/c.txt", Some("c.txt")),
            ("c.txt", Some("c.txt")),
            ("/a/b/", None),
            ("", None),
            ("/", None),
            ("/a/..", None),
            ("/a/.", None),
            ("/a/...", Some("...")),
        ] {
            assert_eq!(name(path), expected, "{path}");
        }
    }
}

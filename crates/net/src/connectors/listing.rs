//! The list of a remote directory, and the file that it is written to.

use bytes::Bytes;
use outlast_domain::transfer::connector::{Failure, FailureCode, Finish};
use outlast_sftp::attributes::Attributes;
use outlast_sftp::error::{Error, Status};
use outlast_sftp::reply::{Name, Reply};
use outlast_sftp::request::Request;
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::local::Local;
use super::remote::{close, failure, open};
use crate::limits;
use crate::outbound::{Broken, Remote};

/// What the file contains. Source: Transfer Family User Guide, "List contents of a remote directory".
#[derive(Debug, Default, Serialize)]
pub(super) struct Listed {
    files: Vec<ListedFile>,
    paths: Vec<ListedPath>,
    truncated: bool,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedFile {
    file_path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_timestamp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
}

#[derive(Debug, Serialize)]
struct ListedPath {
    path: String,
}

impl Listed {
    fn len(&self) -> usize {
        self.files.len() + self.paths.len()
    }

    /// Writes the list to a file of a bucket.
    pub(super) async fn store(self, local: &Local, output: &str) -> Result<Finish, Failure> {
        let wrong = |error: Error| {
            Failure::new(FailureCode::WriteFile, format!("the list cannot be written: {error}"))
        };
        let bytes = serde_json::to_vec(&self)
            .map_err(|error| Failure::new(FailureCode::Internal, error.to_string()))?;
        let mut file = local.write_at(output).await.map_err(wrong)?;
        file.write(0, bytes.into()).await.map_err(wrong)?;
        file.finish().await.map_err(wrong)?;
        Ok(Finish::Listed { items: self.len() as u64, is_truncated: self.truncated })
    }
}

/// Lists a directory.
pub(super) async fn list(
    remote: &mut Remote,
    from: &str,
    max_items: u32,
) -> Result<Listed, Failure> {
    let failure =
        |broken| failure(broken, FailureCode::DirectoryNotFound, FailureCode::ListDirectory);
    let path = Bytes::from(from.to_owned());
    let handle = open(remote, Request::OpenDir { path }).await.map_err(failure)?;
    let listed = read(remote, &handle, from, max_items as usize).await.map_err(failure)?;
    close(remote, handle).await.map_err(failure)?;
    Ok(listed)
}

async fn read(
    remote: &mut Remote,
    handle: &Bytes,
    from: &str,
    most: usize,
) -> Result<Listed, Broken> {
    let mut listed = Listed::default();
    let (mut bytes, mut skipped) = (0, 0);
    loop {
        let names = match remote.call(&Request::ReadDir { handle: handle.clone() }).await {
            Ok(Reply::Names(names)) => names,
            Err(Broken::Refused(error)) if error.status == Status::Eof => return Ok(listed),
            Err(broken) => return Err(broken),
            Ok(_) => return Err(Broken::Refused(Error::failure("there are no names"))),
        };
        for Name { name, attributes, .. } in names {
            if matches!(&name[..], b"." | b"..") {
                // A server sends them twice in all, unless it wants to go on for ever.
                bytes += from.len() + name.len();
                if bytes > limits::MAX_CONNECTOR_NAMES {
                    listed.truncated = true;
                    return Ok(listed);
                }
                continue;
            }
            if name.is_empty() || name.contains(&b'/') || name.contains(&0) {
                return Err(Broken::Refused(Error::failure("a name of the directory is none")));
            }
            let path = [from.trim_end_matches('/').as_bytes(), b"/", &name].concat();
            bytes += path.len();
            let found = resolved(remote, &path, attributes).await?;
            // What is not listed takes time too.
            skipped += usize::from(found.is_none());
            let is_long = bytes > limits::MAX_CONNECTOR_NAMES;
            if is_long || skipped > limits::MAX_CONNECTOR_SKIPPED {
                listed.truncated = true;
                return Ok(listed);
            }
            let Some(found) = found else { continue };
            if listed.len() == most {
                listed.truncated = true;
                return Ok(listed);
            }
            let path = String::from_utf8_lossy(&path).into_owned();
            if found.is_folder() {
                listed.paths.push(ListedPath { path });
            } else {
                let time = found.times.and_then(|(_, seconds)| {
                    OffsetDateTime::from_unix_timestamp(seconds.into()).ok()?.format(&Rfc3339).ok()
                });
                listed.files.push(ListedFile {
                    file_path: path,
                    modified_timestamp: time,
                    size: found.size,
                });
            }
        }
    }
}

/// The attributes of a file or directory, those of its target if it is a link. None if it is neither, or leads nowhere.
async fn resolved(
    remote: &mut Remote,
    path: &[u8],
    found: Attributes,
) -> Result<Option<Attributes>, Broken> {
    let found = if found.mode.is_some() && !found.is_link() {
        found
    } else {
        match remote.call(&Request::Stat { path: Bytes::copy_from_slice(path) }).await {
            Ok(Reply::Attributes(found)) => found,
            Err(Broken::Session(failure)) => return Err(Broken::Session(failure)),
            _ => return Ok(None),
        }
    };
    Ok((found.is_folder() || found.is_regular()).then_some(found))
}

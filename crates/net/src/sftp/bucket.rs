//! A bucket of S3 as a volume: an object is a file, and a folder is what keys share up to a slash.
//!
//! A folder exists while there are keys below it. One without files is an empty object whose key ends with a slash, as S3's
//! console and AWS Transfer Family make them. S3 has no permissions, links and times that could be set, and cannot rename folders:
//! AWS Transfer Family refuses the same ("Available SFTP/FTPS/FTP Commands").

mod download;
mod listing;
mod memory;
mod upload;
mod user;

use std::sync::Arc;

use outlast_sftp::attributes::{Attributes, FOLDER, REGULAR};
use outlast_sftp::error::{Error, Result, Status};
use outlast_sftp::path::RemotePath;
use outlast_sftp::volume::{File, Follow, Listing, OpenHow, Renaming, Space, Tags, Volume};
use tokio::runtime::Handle;

use self::download::Download;
use self::memory::Memory;
use self::upload::Upload;
pub(crate) use self::user::OfUser;
use super::home::Buckets;
use crate::limits;
use crate::s3::objects::{Bucket, Head, part_range};
use crate::s3::{Client, Failure, Only};

/// The buckets behind an S3 endpoint.
pub struct S3Buckets {
    client: Client,
    runtime: Handle,
    memory: Memory,
}

impl S3Buckets {
    /// Requests run on the runtime of `runtime`.
    #[must_use]
    pub fn new(client: Client, runtime: Handle) -> Self {
        Self { client, runtime, memory: Memory::default() }
    }
}

impl Buckets for S3Buckets {
    /// Asks nothing: whether the bucket exists shows when something in it is used.
    fn open(&self, bucket: &str) -> Result<Arc<dyn Volume>> {
        if bucket.is_empty() || bucket.contains('/') || bucket.starts_with('.') {
            return Err(Error::not_found());
        }
        let bucket = Bucket::new(self.client.clone(), bucket);
        let (runtime, memory) = (self.runtime.clone(), self.memory.clone());
        Ok(Arc::new(S3Volume(Shared { bucket, runtime, memory })))
    }

    /// Buckets of S3 have owners, policies and costs: who administers them makes them.
    fn make(&self, _: &str) -> Result<()> {
        Ok(())
    }
}

/// What the open files of a bucket share with it.
#[derive(Clone)]
struct Shared {
    bucket: Bucket,
    runtime: Handle,
    memory: Memory,
}

impl Shared {
    /// Waits for a request. Must not be called on a thread that runs futures.
    fn wait<T>(&self, request: impl Future<Output = std::result::Result<T, Failure>>) -> Result<T> {
        self.runtime.block_on(request).map_err(|failure| told(&failure))
    }
}

struct S3Volume(Shared);

/// What is at a path.
enum Found {
    File(Head),
    /// Time of its marker.
    Folder(Option<i64>),
}

impl S3Volume {
    fn find(&self, path: &RemotePath) -> Result<Option<Found>> {
        if !path.is_root() {
            let key = key(path)?;
            if let Some(head) = self.0.wait(self.0.bucket.head(&key))? {
                return Ok(Some(Found::File(head)));
            }
        }
        // A key that has just room for a file has none for a folder.
        let Ok(prefix) = prefix(path) else { return Ok(None) };
        let page = self.0.wait(self.0.bucket.list(&prefix, None, 1))?;
        let marker = page.objects.iter().find(|object| object.key == prefix);
        let modified = marker.and_then(|marker| marker.modified);
        let is_there = path.is_root() || !(page.objects.is_empty() && page.prefixes.is_empty());
        Ok(is_there.then_some(Found::Folder(modified)))
    }

    fn file(&self, path: &RemotePath) -> Result<Option<Head>> {
        match self.find(path)? {
            Some(Found::File(head)) => Ok(Some(head)),
            Some(Found::Folder(_)) => Err(Error::failure("it is a folder")),
            None => Ok(None),
        }
    }

    /// What a rename has to do; nothing if both names are the same.
    fn plan(&self, from: &RemotePath, to: &RemotePath, replace: bool) -> Result<Option<Plan>> {
        let (source, target) = (key(from)?, key(to)?);
        let head = match self.find(from)?.ok_or_else(Error::not_found)? {
            Found::File(head) => head,
            Found::Folder(_) => {
                return Err(Error::unsupported(
                    "S3 cannot rename folders: make the new one and move the files",
                ));
            }
        };
        let there = match self.find(to)? {
            Some(Found::Folder(_)) => return Err(Error::failure("the new name is a folder")),
            Some(Found::File(_)) if !replace => return Err(exists()),
            Some(Found::File(head)) => Some(head.etag),
            None => None,
        };
        if source == target {
            return Ok(None);
        }
        let only = if replace { Only::Always } else { Only::Absent };
        Ok(Some(Plan { source, target, head, there, only }))
    }

    /// Copies an object part by part, with its type, metadata and tags; the copy does not appear yet.
    fn copy_parts(&self, plan: &Plan) -> Result<Copied> {
        let Plan { source, target, head, .. } = plan;
        if head.size > limits::S3_MAX_OBJECT {
            return Err(Error::failure("the file is too large to be renamed: at most 1.7 TiB"));
        }
        let bucket = &self.0.bucket;
        self.0.wait(async {
            let described = bucket.described(source, &head.etag).await?;
            let upload = bucket.begin_as(target, described).await?;
            let mut copy = Copied {
                shared: self.0.clone(),
                key: target.clone(),
                upload: Some(upload.clone()),
                parts: Vec::new(),
            };
            let ranges = (0..).map_while(part_range);
            for (index, range) in ranges.take_while(|part| part.start < head.size).enumerate() {
                let range = range.start..range.end.min(head.size);
                let from = (source.as_str(), head.etag.as_str(), range);
                let etag = bucket.copy_part(target, &upload, index + 1, from).await?;
                copy.parts.push((index + 1, etag));
            }
            Ok(copy)
        })
    }

    /// Makes the copy appear, and removes its source. While parts were copied, somebody else may have renamed, removed or written one of
    /// both files.
    fn move_to(&self, plan: &Plan, copy: Option<Copied>) -> Result<()> {
        let Plan { source, target, head, there, only } = plan;
        let bucket = &self.0.bucket;
        let etag = match copy {
            Some(copy) => {
                let now = self.0.wait(bucket.head(source))?;
                if now.is_none_or(|now| now.etag != head.etag) {
                    return Err(replaced());
                }
                copy.complete(&there.clone().map_or(Only::Absent, Only::Same))?
            }
            None => self.0.wait(bucket.copy(source, head, target, only))?,
        };
        let removed = self.0.runtime.block_on(bucket.remove_once(source, &head.etag));
        removed.map_err(|failure| self.undo_copy(&failure, (target, &etag), there.is_some()))
    }

    /// Removes the object with this entity tag. One that is gone counts as removed; another one stays, and the result is false.
    fn remove_if_same(&self, key: &str, etag: &str) -> Result<bool> {
        let bucket = &self.0.bucket;
        match self.0.runtime.block_on(bucket.remove_same(key, etag)) {
            // A first attempt whose answer was lost may have removed it.
            Err(Failure::Refused { status: 409 | 412, .. }) => {
                Ok(self.0.wait(bucket.head(key))?.is_none())
            }
            outcome => outcome.map(|()| true).map_err(|failure| told(&failure)),
        }
    }

    /// What a client is told of a rename whose source could not be removed. No event tells of the copy: it is removed again, unless it
    /// may be all that is left, because the source is perhaps gone or the copy has replaced another object.
    fn undo_copy(&self, failure: &Failure, (target, etag): (&str, &str), replaces: bool) -> Error {
        let error = told(failure);
        let is_refused = matches!(failure, Failure::Refused { status: 400..=499, .. });
        if is_refused && !replaces && self.remove_if_same(target, etag).is_ok() {
            return error;
        }
        Error::new(error.status, format!("{}; a copy has the new name", error.text))
    }
}

/// A rename of an object.
struct Plan {
    source: String,
    target: String,
    head: Head,
    /// Entity tag of the object under the new key.
    there: Option<String>,
    only: Only,
}

/// A copy of an object in parts, which is forgotten unless it is completed.
struct Copied {
    shared: Shared,
    key: String,
    upload: Option<String>,
    parts: Vec<(usize, String)>,
}

impl Copied {
    /// Makes it appear; its entity tag.
    fn complete(mut self, only: &Only) -> Result<String> {
        let upload = self.upload.clone().unwrap_or_default();
        let parts = std::mem::take(&mut self.parts).into_iter();
        let etag =
            self.shared.wait(self.shared.bucket.complete(&self.key, &upload, parts, only))?;
        self.upload = None;
        Ok(etag)
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        let Some(upload) = self.upload.take() else { return };
        let (bucket, key) = (self.shared.bucket.clone(), std::mem::take(&mut self.key));
        self.shared.runtime.spawn(async move {
            if let Err(failure) = bucket.abort(&key, &upload).await {
                tracing::warn!(%failure, "a copy that was interrupted stays in S3 until its lifecycle rules remove it");
            }
        });
    }
}

impl Volume for S3Volume {
    fn open(&self, path: &RemotePath, how: &OpenHow) -> Result<Box<dyn File>> {
        let name = key(path)?;
        let found = self.file(path)?;
        if !how.changes() {
            let head = found.ok_or_else(Error::not_found)?;
            return Ok(Box::new(Download::new(self.0.clone(), name, head)));
        }
        match &found {
            Some(_) if how.create && how.exclusive => return Err(exists()),
            None if !how.create => return Err(Error::not_found()),
            _ => {}
        }
        Ok(Box::new(Upload::new(self.0.clone(), name, how, found)))
    }

    fn attributes(&self, path: &RemotePath, _: Follow) -> Result<Attributes> {
        match self.find(path)?.ok_or_else(Error::not_found)? {
            Found::File(head) => Ok(attributes(head.size, head.modified)),
            Found::Folder(modified) => Ok(folder(modified)),
        }
    }

    fn set_attributes(&self, path: &RemotePath, to: &Attributes, _: Follow) -> Result<()> {
        self.find(path)?.ok_or_else(Error::not_found)?;
        if *to == Attributes::default() { Ok(()) } else { Err(no_attributes()) }
    }

    fn list(&self, path: &RemotePath) -> Result<Box<dyn Listing>> {
        let prefix = prefix(path)?;
        Ok(Box::new(listing::Names::begin(self.0.clone(), prefix)?))
    }

    fn remove(&self, path: &RemotePath) -> Result<()> {
        let head = self.file(path)?.ok_or_else(Error::not_found)?;
        match self.remove_if_same(&key(path)?, &head.etag)? {
            true => Ok(()),
            false => Err(replaced()),
        }
    }

    fn make_folder(&self, path: &RemotePath, _: Option<u32>) -> Result<()> {
        let marker = prefix(path)?;
        if self.find(path)?.is_some() {
            return Err(exists());
        }
        self.0.wait(self.0.bucket.write(&marker, bytes::Bytes::new(), &Only::Always)).map(drop)
    }

    fn remove_folder(&self, path: &RemotePath) -> Result<()> {
        if path.is_root() {
            return Err(Error::denied("a bucket cannot be removed here"));
        }
        let marker = prefix(path)?;
        let page = self.0.wait(self.0.bucket.list(&marker, None, 2))?;
        if page.objects.is_empty() && page.prefixes.is_empty() {
            return Err(match self.find(path)? {
                Some(_) => Error::failure("it is a file"),
                None => Error::not_found(),
            });
        }
        let is_empty = page.prefixes.is_empty() && page.objects.iter().all(|one| one.key == marker);
        if !is_empty {
            return Err(Error::failure("the folder is not empty"));
        }
        self.0.wait(self.0.bucket.remove(&marker))
    }

    /// S3 copies and removes: a server that is killed between them leaves both names.
    fn rename(&self, from: &RemotePath, to: &RemotePath, replace: bool) -> Result<()> {
        let Some(plan) = self.plan(from, to, replace)? else { return Ok(()) };
        let is_large = plan.head.size > limits::S3_MAX_COPY;
        let copy = is_large.then(|| self.copy_parts(&plan)).transpose()?;
        self.move_to(&plan, copy)
    }

    /// What has more than one part is copied before: it may take minutes.
    fn renaming(&self, from: RemotePath, to: RemotePath, replace: bool) -> Result<Renaming<'_>> {
        let Some(plan) = self.plan(&from, &to, replace)? else { return Ok(Box::new(|| Ok(()))) };
        let is_large = part_range(0).is_none_or(|first| plan.head.size > first.end);
        let copy = is_large.then(|| self.copy_parts(&plan)).transpose()?;
        Ok(Box::new(move || self.move_to(&plan, copy)))
    }

    fn read_link(&self, _: &RemotePath) -> Result<Vec<u8>> {
        Err(Error::failure("it is not a symbolic link"))
    }

    fn symlink(&self, _: &[u8], _: &RemotePath) -> Result<()> {
        Err(Error::unsupported("buckets have no symbolic links"))
    }

    fn hard_link(&self, _: &RemotePath, _: &RemotePath) -> Result<()> {
        Err(Error::unsupported("buckets have no hard links"))
    }

    fn space(&self, _: &RemotePath) -> Result<Space> {
        Err(Error::unsupported("buckets have no limit on space"))
    }

    fn tags(&self, path: &RemotePath) -> Result<Tags> {
        self.0.wait(self.0.bucket.tags(&key(path)?))
    }

    /// S3 sets no tags of one content only: another one that is written in this moment may get them, and the result is false.
    fn set_tags(&self, path: &RemotePath, tags: &Tags, only: Option<&str>) -> Result<bool> {
        let is_other =
            |only: &str| self.entity_tag(path).map(|found| found.as_deref() != Some(only));
        if only.map(is_other).transpose()? == Some(true) {
            return Ok(false);
        }
        self.0.wait(self.0.bucket.set_tags(&key(path)?, tags))?;
        Ok(only.map(is_other).transpose()? != Some(true))
    }

    fn entity_tag(&self, path: &RemotePath) -> Result<Option<String>> {
        let head = self.file(path)?.ok_or_else(Error::not_found)?;
        Ok(Some(bare(&head.etag)))
    }

    fn remove_same(&self, path: &RemotePath, entity_tag: &str) -> Result<bool> {
        let Some(head) = self.file(path)? else { return Ok(true) };
        if bare(&head.etag) != entity_tag {
            return Ok(false);
        }
        self.remove_if_same(&key(path)?, &head.etag)
    }

    fn needs_folders(&self) -> bool {
        false
    }

    fn writes_apart(&self) -> bool {
        true
    }

    fn of_user(&self, user: &str) -> Option<Arc<dyn Volume>> {
        let memory = self.0.memory.of_user(user);
        Some(Arc::new(Self(Shared { memory, ..self.0.clone() })))
    }

    fn without_links(self: Arc<Self>) -> Arc<dyn Volume> {
        // There are none.
        self
    }
}

/// An entity tag without the quotes of its header.
fn bare(etag: &str) -> String {
    etag.trim_matches('"').to_owned()
}

/// Key of a file.
fn key(path: &RemotePath) -> Result<String> {
    if path.is_root() {
        return Err(Error::failure("it is a folder"));
    }
    text(path.relative())
}

/// What the keys in a folder begin with, and the key of its marker.
fn prefix(path: &RemotePath) -> Result<String> {
    if path.is_root() {
        return Ok(String::new());
    }
    text(&[path.relative(), b"/"].concat())
}

fn text(key: &[u8]) -> Result<String> {
    if key.len() > limits::S3_MAX_KEY {
        return Err(Error::failure("the path is too long for S3: at most 1,024 bytes"));
    }
    String::from_utf8(key.to_vec())
        .map_err(|_| Error::failure("S3 takes only names in UTF-8: rename the file"))
}

fn exists() -> Error {
    Error::failure("the file exists already")
}

fn replaced() -> Error {
    Error::failure("somebody else has written the file in the meantime")
}

fn no_attributes() -> Error {
    Error::unsupported("S3 keeps neither permissions nor times of the client's choice")
}

fn attributes(size: u64, modified: Option<i64>) -> Attributes {
    let size = Some(size);
    Attributes { size, owner: None, mode: Some(REGULAR | 0o644), times: times(modified) }
}

fn folder(modified: Option<i64>) -> Attributes {
    Attributes { size: Some(0), owner: None, mode: Some(FOLDER | 0o755), times: times(modified) }
}

fn times(modified: Option<i64>) -> Option<(u32, u32)> {
    let seconds = u32::try_from(modified?).ok()?;
    Some((seconds, seconds))
}

/// What a client is told of a failure. What concerns the operator is in the log.
fn told(failure: &Failure) -> Error {
    let Failure::Refused { status, code, .. } = failure else {
        tracing::warn!(%failure, "S3 cannot be used for SFTP");
        return Error::failure("the storage does not answer; try again later");
    };
    match (*status, code.as_str()) {
        (_, "NoSuchBucket") => {
            tracing::warn!(%failure, "an SFTP user needs a bucket that S3 does not have");
            Error::new(Status::NoSuchFile, "there is no such bucket")
        }
        (_, "NoSuchUpload") => {
            Error::failure("the storage has forgotten the upload: send it again")
        }
        (404, _) => Error::not_found(),
        // No range is asked for beyond the end that the object had.
        (409 | 412 | 416, _) => replaced(),
        (_, "EntityTooLarge") => Error::failure("the file is too large for S3"),
        (429 | 503, _) => Error::failure("the storage has too much to do; try again later"),
        (401 | 403, "" | "AccessDenied" | "AllAccessDisabled") => {
            tracing::warn!(%failure, "S3 denies access to what an SFTP user needs");
            Error::denied("the storage does not allow it")
        }
        _ => {
            tracing::error!(%failure, "S3 refuses a request for SFTP");
            Error::failure("the storage refuses it; the server's log says why")
        }
    }
}

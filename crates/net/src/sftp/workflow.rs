//! The steps of workflows that touch files: with the rights of the execution role, and never with those of a user.
//!
//! Each may be carried out twice, because a server may be killed before it could record the first time: a copy with the same
//! content counts as made, and a file that is gone as removed.

use std::sync::Arc;

use outlast_api::service::Sink;
use outlast_domain::transfer::{Access, Cause, Deed, FileLocation, Job, StepError};
use outlast_sftp::error::{Error, Status};
use outlast_sftp::path::RemotePath;
use outlast_sftp::volume::{File, Follow, OpenHow, Tags, Volume};

use super::home::Buckets;
use crate::limits;
use crate::server::Clock;

/// Where workflows find the files.
#[derive(Clone)]
pub struct WorkflowFiles {
    /// Where buckets are. What is written there must become visible whole, or not at all.
    pub buckets: Arc<dyn Buckets>,
    /// Decides which accounts may use which buckets.
    pub sink: Arc<dyn Sink>,
    /// The time, by which the role's policies decide.
    pub clock: Clock,
}

type Result<T> = std::result::Result<T, StepError>;

/// A file, and the bucket that contains it.
struct Place<'a> {
    at: &'a FileLocation,
    path: RemotePath,
    bucket: Arc<dyn Volume>,
}

impl WorkflowFiles {
    /// Carries out a step that is none of a function. It may block.
    ///
    /// # Errors
    /// Why it has failed.
    pub fn carry_out(&self, job: &Job) -> Result<()> {
        match &job.step.what {
            Deed::Copy { overwrite, .. } => {
                let to = job.copy.as_ref().ok_or_else(nothing)?;
                self.copy(job, to, overwrite.unwrap_or_default())
            }
            Deed::Tag(tags) => {
                self.may(job, Access::PutTags, &job.source)?;
                let file = self.place(job, &job.source)?;
                file.bucket.set_tags(&file.path, tags).map_err(failed)
            }
            Deed::Delete => {
                self.may(job, Access::Delete, &job.source)?;
                let file = self.place(job, &job.source)?;
                match file.bucket.remove(&file.path) {
                    // As with S3, what is not there is removed.
                    Err(error) if error.status == Status::NoSuchFile => Ok(()),
                    outcome => outcome.map_err(failed),
                }
            }
            Deed::Custom { .. } => Err(nothing()),
        }
    }

    /// What identifies the content of the file of a job, for the event of its function; none if it is not known.
    pub fn entity_tag(&self, job: &Job) -> Option<String> {
        let file = self.place(job, &job.source).ok()?;
        file.bucket.entity_tag(&file.path).ok().flatten()
    }

    fn may(&self, job: &Job, access: Access, at: &FileLocation) -> Result<()> {
        let decided = job.rights.decide(access, &at.bucket, at.key.as_bytes(), (self.clock)());
        decided.map_err(|denied| StepError::new(Cause::PermissionDenied, denied.to_string()))
    }

    fn may_use(&self, job: &Job, bucket: &str) -> Result<()> {
        let account = &job.execution.scope().account;
        if self.sink.may_use(account, bucket) {
            return Ok(());
        }
        let text = format!("the account {account} may not use the bucket {bucket}");
        Err(StepError::new(Cause::PermissionDenied, text))
    }

    fn place<'a>(&self, job: &Job, at: &'a FileLocation) -> Result<Place<'a>> {
        self.may_use(job, &at.bucket)?;
        let path = RemotePath::parse(at.key.as_bytes(), &RemotePath::root()).map_err(failed)?;
        if path.relative() != at.key.as_bytes() {
            return Err(StepError::new(Cause::BadRequest, "the key is not the path of a file"));
        }
        let bucket = self.buckets.open(&at.bucket).map_err(failed)?;
        Ok(Place { at, path, bucket })
    }

    fn copy(&self, job: &Job, to: &FileLocation, overwrite: bool) -> Result<()> {
        self.may(job, Access::Get, &job.source)?;
        self.may(job, Access::Put, to)?;
        let from = self.place(job, &job.source)?;
        if job.source == *to {
            return Err(StepError::new(Cause::BadRequest, "the copy would replace its source"));
        }
        let tags = match from.bucket.tags(&from.path) {
            Err(error) if error.status == Status::OpUnsupported => Tags::new(),
            tags => tags.map_err(failed)?,
        };
        if !tags.is_empty() {
            self.may(job, Access::GetTags, from.at)?;
            self.may(job, Access::PutTags, to)?;
        }
        let file = from.bucket.open(&from.path, &OpenHow::reading()).map_err(failed)?;
        self.may_use(job, &to.bucket)?;
        // The workflow names the bucket, as an administrator does for homes.
        self.buckets.make(&to.bucket).map_err(failed)?;
        let to = self.place(job, to)?;
        make_folders(&to)?;
        let how = OpenHow {
            write: true,
            create: true,
            truncate: true,
            exclusive: !overwrite,
            ..OpenHow::default()
        };
        let copied = to.bucket.open(&to.path, &how).and_then(|copy| {
            pour(&*file, &*copy)?;
            copy.settle()?;
            copy.close()
        });
        if let Err(error) = copied {
            let is_there = !overwrite && to.bucket.attributes(&to.path, Follow::No).is_ok();
            match is_there {
                // The copy that this step has made before the server was killed.
                true if job.is_again && is_same(&*file, &to)? => {}
                true => {
                    let text = format!("there is a file {} in {}", to.at.key, to.at.bucket);
                    return Err(StepError::new(Cause::AlreadyExists, text));
                }
                false => return Err(failed(error)),
            }
        }
        match tags.is_empty() {
            true => Ok(()),
            false => to.bucket.set_tags(&to.path, &tags).map_err(failed),
        }
    }
}

/// Makes the folders on the way to a file. S3 needs none.
fn make_folders(to: &Place<'_>) -> Result<()> {
    let mut folder = RemotePath::root();
    for name in to.path.parent().components() {
        folder = folder.join(name);
        match to.bucket.attributes(&folder, Follow::No) {
            Ok(_) => {}
            Err(error) if error.status == Status::NoSuchFile => {
                // Another step may make it at the same time; the file itself shows whether it is there.
                let _ = to.bucket.make_folder(&folder, None);
            }
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

/// Copies the content, up to the length that the file has at the beginning.
fn pour(from: &dyn File, to: &dyn File) -> outlast_sftp::error::Result<()> {
    let mut left = from.attributes()?.size.unwrap_or(u64::MAX);
    let (mut buffer, mut at) = (vec![0; limits::WORKFLOW_BUFFER], 0);
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let read = from.read_at(at, &mut buffer[..most])?;
        if read == 0 {
            break;
        }
        to.write_at(at, &buffer[..read])?;
        at += read as u64;
        left -= read as u64;
    }
    Ok(())
}

/// Whether a file has the same content.
fn is_same(one: &dyn File, place: &Place<'_>) -> Result<bool> {
    let other = place.bucket.open(&place.path, &OpenHow::reading()).map_err(failed)?;
    let size = |file: &dyn File| file.attributes().map(|found| found.size).map_err(failed);
    if size(one)? != size(&*other)? {
        return Ok(false);
    }
    let (mut first, mut second) =
        (vec![0; limits::WORKFLOW_BUFFER], vec![0; limits::WORKFLOW_BUFFER]);
    let mut at = 0;
    loop {
        let read = one.read_at(at, &mut first).map_err(failed)?;
        let also = other.read_at(at, &mut second).map_err(failed)?;
        if first[..read] != second[..also] {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
        at += read as u64;
    }
}

/// The failure of a step.
fn failed(error: Error) -> StepError {
    let cause = match error.status {
        Status::NoSuchFile => Cause::NotFound,
        // The role was asked before: the storage itself refuses.
        Status::PermissionDenied => Cause::PermissionDenied,
        Status::OpUnsupported => Cause::BadRequest,
        _ => Cause::InternalServerError,
    };
    StepError::new(cause, error.text)
}

/// A step that touches no file.
fn nothing() -> StepError {
    StepError::new(Cause::InternalServerError, "the step touches no file")
}

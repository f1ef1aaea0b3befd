//! The steps of workflows that touch files: with the rights of the execution role, and never with those of a user.
//!
//! Each may be carried out twice, because a server may be killed before it could record the first time: a copy with the same
//! content counts as made, and a file that is gone as removed. Each concerns the content that the first step has found
//! ([`WorkflowFiles::look`]): if another upload has taken its place, the step fails, and that one has an execution of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_api::service::Sink;
use outlast_domain::transfer::{
    Access, Cause, Content, Deed, FileLocation, Job, Rights, StepError,
};
use outlast_sftp::error::{Error, Status};
use outlast_sftp::path::RemotePath;
use outlast_sftp::volume::{File, Follow, OpenHow, Tags, Volume};

use super::bucket::OfUser;
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
    /// Set when the server stops: copies end then, unfinished.
    pub stopped: Arc<AtomicBool>,
    /// Set when another server may carry out the step: nothing is changed then any more.
    pub lost: Arc<AtomicBool>,
}

type Result<T> = std::result::Result<T, StepError>;

/// A file, and the bucket that contains it.
struct Place<'a> {
    at: &'a FileLocation,
    path: RemotePath,
    bucket: Arc<dyn Volume>,
}

impl WorkflowFiles {
    /// The same for one step, which ends without a change when `lost` is set.
    #[must_use]
    pub fn of_step(&self, lost: Arc<AtomicBool>) -> Self {
        Self { lost, ..self.clone() }
    }

    /// Carries out a step that is none of a function, on the content that the job says and with the rights that its role has now; the
    /// content of the copy, if it makes one. It may block.
    ///
    /// # Errors
    /// Why it has failed.
    pub fn carry_out(&self, job: &Job, rights: &Rights) -> Result<Option<Content>> {
        match &job.step.what {
            Deed::Copy { overwrite, .. } => {
                let to = job.copy.as_ref().ok_or_else(nothing)?;
                self.copy(job, rights, to, overwrite.unwrap_or_default()).map(Some)
            }
            Deed::Tag(tags) => {
                self.may(rights, Access::PutTags, &job.source)?;
                let file = self.place(job, &job.source)?;
                let only = Some(expected(job)?);
                self.goes_on().map_err(failed)?;
                match file.bucket.set_tags(&file.path, tags, only).map_err(failed)? {
                    true => Ok(None),
                    false => Err(replaced(&job.source)),
                }
            }
            Deed::Delete => {
                self.may(rights, Access::Delete, &job.source)?;
                let file = self.place(job, &job.source)?;
                let only = expected(job)?;
                self.goes_on().map_err(failed)?;
                match file.bucket.remove_same(&file.path, only).map_err(failed)? {
                    true => Ok(None),
                    false => Err(replaced(&job.source)),
                }
            }
            Deed::Custom { .. } => Err(nothing()),
        }
    }

    /// What the file of a job is now. It may block.
    ///
    /// # Errors
    /// It cannot be found out.
    pub fn look(&self, job: &Job) -> Result<Content> {
        let file = self.place(job, &job.source);
        match file.and_then(|file| file.bucket.entity_tag(&file.path).map_err(failed)) {
            Ok(Some(tag)) => Ok(Content::Tag(tag)),
            Ok(None) => Err(StepError::new(
                Cause::BadRequest,
                "the storage does not tell one content of a file from another",
            )),
            Err(error) if error.cause == Cause::NotFound => Ok(Content::Absent),
            Err(error) => Err(error),
        }
    }

    /// Whether the name of a function's file still leads to what it was when a step first looked at it, or to nothing.
    ///
    /// # Errors
    /// It is another one, or it cannot be found out.
    pub fn check(&self, job: &Job) -> Result<()> {
        let file = self.place(job, &job.source)?;
        match (file.bucket.open(&file.path, &OpenHow::reading()), job.content.get()) {
            (Ok(found), Some(Content::Tag(tag))) => still(&*found, tag, &job.source),
            // An upload that never appeared may have left the one before.
            (Ok(_), _) => Ok(()),
            (Err(error), _) if error.status == Status::NoSuchFile => Ok(()),
            (Err(error), _) => Err(failed(error)),
        }
    }

    fn goes_on(&self) -> outlast_sftp::error::Result<()> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Error::failure("the server stops"));
        }
        match self.lost.load(Ordering::Relaxed) {
            true => Err(Error::failure("another server may carry out the step")),
            false => Ok(()),
        }
    }

    fn may(&self, rights: &Rights, access: Access, at: &FileLocation) -> Result<()> {
        let decided = rights.decide(access, &at.bucket, at.key.as_bytes(), (self.clock)());
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
        // The workflows of one account leave memory to those of others.
        let account = job.execution.scope().account.as_str();
        let buckets = OfUser::new(self.buckets.clone(), account);
        let bucket = buckets.open(&at.bucket).map_err(failed)?;
        Ok(Place { at, path, bucket })
    }

    fn copy(
        &self,
        job: &Job,
        rights: &Rights,
        to: &FileLocation,
        overwrite: bool,
    ) -> Result<Content> {
        self.may(rights, Access::Get, &job.source)?;
        self.may(rights, Access::Put, to)?;
        let from = self.place(job, &job.source)?;
        if job.source == *to {
            return Err(StepError::new(Cause::BadRequest, "the copy would replace its source"));
        }
        let expected = expected(job)?;
        let file = from.bucket.open(&from.path, &OpenHow::reading()).map_err(failed)?;
        still(&*file, expected, from.at)?;
        let tags = match from.bucket.tags(&from.path) {
            Err(error) if error.status == Status::OpUnsupported => Tags::new(),
            tags => tags.map_err(failed)?,
        };
        if !tags.is_empty() {
            self.may(rights, Access::GetTags, from.at)?;
            self.may(rights, Access::PutTags, to)?;
        }
        // Tags are read by the name: it must still have been that of the open file.
        let named = from.bucket.open(&from.path, &OpenHow::reading()).map_err(failed)?;
        still(&*named, expected, from.at)?;
        self.may_use(job, &to.bucket)?;
        // The workflow names the bucket, as an administrator does for homes.
        self.buckets.make(&to.bucket).map_err(failed)?;
        let to = self.place(job, to)?;
        if to.bucket.needs_folders() {
            make_folders(&to)?;
        }
        let how = OpenHow {
            write: true,
            create: true,
            truncate: true,
            exclusive: !overwrite,
            ..OpenHow::default()
        };
        let mut is_open = false;
        let copied = to.bucket.open(&to.path, &how).map_err(failed).and_then(|copy| {
            is_open = true;
            self.pour(&*file, &*copy).map_err(failed)?;
            // A file that was written in its place meanwhile is half of one and half of the other.
            still(&*file, expected, from.at)?;
            copy.settle().map_err(failed)?;
            let tag = copy.entity_tag().map_err(failed)?;
            self.goes_on().map_err(failed)?;
            copy.close().map_err(failed)?;
            // S3 says it when the copy is there; by its name, it could be that of another file.
            if tag.is_none() { copy.entity_tag().map_err(failed) } else { Ok(tag) }
        });
        let mut tag = None;
        match copied {
            Ok(found) => tag = found,
            Err(error) => {
                let may_be_made = is_open || (job.is_again && !overwrite);
                let is_there =
                    (is_open || !overwrite) && to.bucket.attributes(&to.path, Follow::No).is_ok();
                match is_there {
                    _ if error.cause == Cause::NotFound => return Err(error),
                    // The copy that this step has made before the server was killed, or now, although the storage's answer was lost.
                    true if may_be_made && self.is_same(&*file, &to)? => {}
                    true if !overwrite => {
                        let text = format!("there is a file {} in {}", to.at.key, to.at.bucket);
                        return Err(StepError::new(Cause::AlreadyExists, text));
                    }
                    _ => return Err(error),
                }
            }
        }
        let tag = match tag {
            Some(tag) => tag,
            None => to.bucket.entity_tag(&to.path).map_err(failed)?.ok_or_else(nothing)?,
        };
        if !tags.is_empty() {
            self.goes_on().map_err(failed)?;
            if !to.bucket.set_tags(&to.path, &tags, Some(&tag)).map_err(failed)? {
                return Err(replaced(to.at));
            }
        }
        Ok(Content::Tag(tag))
    }

    /// Copies the content, up to the length that the file has at the beginning.
    fn pour(&self, from: &dyn File, to: &dyn File) -> outlast_sftp::error::Result<()> {
        let mut left = from.attributes()?.size.unwrap_or(u64::MAX);
        let (mut buffer, mut at) = (vec![0; limits::WORKFLOW_BUFFER], 0);
        while left > 0 {
            self.goes_on()?;
            let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let read = from.read_at(at, &mut buffer[..most])?;
            if read == 0 {
                return Err(Error::failure("the file became shorter while it was copied"));
            }
            to.write_at(at, &buffer[..read])?;
            at += read as u64;
            left -= read as u64;
        }
        Ok(())
    }

    /// Whether a file has the same content.
    fn is_same(&self, one: &dyn File, place: &Place<'_>) -> Result<bool> {
        let other = place.bucket.open(&place.path, &OpenHow::reading()).map_err(failed)?;
        let size = |file: &dyn File| file.attributes().map(|found| found.size).map_err(failed);
        if size(one)? != size(&*other)? {
            return Ok(false);
        }
        let (mut first, mut second) =
            (vec![0; limits::WORKFLOW_BUFFER], vec![0; limits::WORKFLOW_BUFFER]);
        let mut at = 0;
        loop {
            self.goes_on().map_err(failed)?;
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

/// The entity tag of the content that a step concerns.
fn expected(job: &Job) -> Result<&str> {
    match job.content.get() {
        Some(Content::Tag(tag)) => Ok(tag),
        Some(Content::Absent) => {
            Err(StepError::new(Cause::NotFound, "the file was not there when the workflow began"))
        }
        None => Err(nothing()),
    }
}

/// Whether an open file has the content that a step concerns.
fn still(file: &dyn File, tag: &str, at: &FileLocation) -> Result<()> {
    match file.is_same(tag).map_err(failed)? {
        true => Ok(()),
        false => Err(replaced(at)),
    }
}

fn replaced(at: &FileLocation) -> StepError {
    let text = format!(
        "the file {} in {} was replaced or written since the workflow began",
        at.key, at.bucket
    );
    StepError::new(Cause::NotFound, text)
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

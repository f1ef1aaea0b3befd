//! Requests of jobs, and their results for the caller.

use super::config::Connector;
use super::record::{
    self, FileRecord, FileResult, JobKey, JobRecord, Order, Unended, absolute, output_name,
};
use crate::identity::action::StartsJob;
use crate::identity::{Permit, action};
use crate::transfer::TransferError;
use crate::transfer::home::{is_bucket, plain};
use crate::work::{Page, Work};
use crate::{ids, limits, quotas};

/// What is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// `StartFileTransfer` with `SendFilePaths`.
    Send {
        /// `SendFilePaths`
        files: Vec<String>,
        /// `RemoteDirectoryPath`
        to: Option<String>,
    },
    /// `StartFileTransfer` with `RetrieveFilePaths`.
    Retrieve {
        /// `RetrieveFilePaths`
        files: Vec<String>,
        /// `LocalDirectoryPath`
        to: String,
    },
    /// `StartDirectoryListing`
    List {
        /// `RemoteDirectoryPath`
        from: String,
        /// `MaxItems`
        max_items: Option<i64>,
        /// `OutputDirectoryPath`
        to: String,
    },
    /// `StartRemoteDelete`
    Delete {
        /// `DeletePath`
        path: String,
    },
    /// `StartRemoteMove`
    Move {
        /// `SourcePath`
        from: String,
        /// `TargetPath`
        to: String,
    },
}

/// A job that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// Its id.
    pub id: String,
    /// `OutputFileName` of a listing.
    pub output: String,
}

impl Request {
    fn order(self) -> Result<Order, TransferError> {
        Ok(match self {
            Self::Send { files, to } => {
                files.iter().try_for_each(|path| object("SendFilePaths", path))?;
                to.iter().try_for_each(|path| remote("RemoteDirectoryPath", path))?;
                Order::Send { files: file_records(files)?, to }
            }
            Self::Retrieve { files, to } => {
                files.iter().try_for_each(|path| remote("RetrieveFilePaths", path))?;
                folder("LocalDirectoryPath", &to)?;
                Order::Retrieve { files: file_records(files)?, to }
            }
            Self::List { from, max_items, to } => {
                remote("RemoteDirectoryPath", &from)?;
                folder("OutputDirectoryPath", &to)?;
                let most = limits::MAX_LISTED_ITEMS;
                let max_items = match max_items {
                    None => limits::DEFAULT_LISTED_ITEMS,
                    Some(given) => {
                        let given = u32::try_from(given).ok();
                        given.filter(|given| (1..=most).contains(given)).ok_or_else(|| {
                            TransferError::invalid(format!("MaxItems must be between 1 and {most}"))
                        })?
                    }
                };
                Order::List { from, max_items, to }
            }
            Self::Delete { path } => {
                remote("DeletePath", &path)?;
                Order::Delete { path }
            }
            Self::Move { from, to } => {
                remote("SourcePath", &from)?;
                remote("TargetPath", &to)?;
                Order::Move { from, to }
            }
        })
    }
}

fn file_records(paths: Vec<String>) -> Result<Vec<FileRecord>, TransferError> {
    let most = limits::MAX_TRANSFER_FILES;
    if paths.is_empty() || paths.len() > most {
        return Err(TransferError::invalid(format!("A transfer has between 1 and {most} files")));
    }
    let of = |path| Ok(FileRecord { id: ids::uuid()?, path, result: None });
    paths.into_iter().map(of).collect()
}

/// Checks a path of the remote server, which that server interprets.
fn remote(member: &str, path: &str) -> Result<(), TransferError> {
    if path.chars().any(char::is_control) {
        return Err(TransferError::invalid(format!("{member}: a path has no control characters")));
    }
    Ok(())
}

/// The components of a path in a bucket, of which the first is the bucket.
fn within(member: &str, path: &str) -> Result<usize, TransferError> {
    let parts =
        plain(&absolute(path)).filter(|parts| parts.first().is_some_and(|name| is_bucket(name)));
    parts.map(|parts| parts.len()).ok_or_else(|| {
        TransferError::invalid(format!(
            "{member}: {} is not /BUCKET/PATH without empty components, \".\" and \"..\"",
            path.chars().take(128).collect::<String>()
        ))
    })
}

fn object(member: &str, path: &str) -> Result<(), TransferError> {
    if path.ends_with('/') || within(member, path)? < 2 {
        return Err(TransferError::invalid(format!(
            "{member}: {} names no file of a bucket: use /BUCKET/KEY",
            path.chars().take(128).collect::<String>()
        )));
    }
    Ok(())
}

fn folder(member: &str, path: &str) -> Result<(), TransferError> {
    within(member, path).map(|_| ())
}

/// Accepts a job, which is begun when the connector has a connection for it. The permit allows it for this connector.
pub fn start<A: StartsJob>(
    work: &mut Work<'_>,
    connector: &Connector,
    request: Request,
    permit: &Permit<A>,
) -> Result<Started, TransferError> {
    permit.opens(&connector.arn())?;
    if connector.secret().is_none() {
        return Err(TransferError::invalid(
            "The connector has no UserSecretId: name the secret with UpdateConnector first",
        ));
    }
    if connector.trusted_host_keys().is_empty() {
        return Err(TransferError::invalid(
            "The connector has no TrustedHostKeys: get the server's key with TestConnection, compare it with one that its \
             operator has told you, and add it with UpdateConnector",
        ));
    }
    let scope = connector.scope();
    let order = request.order()?;
    work.admit::<TransferError>(
        &quotas::JOBS_PER_CONNECTOR,
        &[&scope.account, &scope.region, connector.id()],
    )?;
    work.admit::<TransferError>(&quotas::CONNECTOR_JOBS, &[&scope.account, &scope.region])?;
    // Ids begin with the time, so that jobs are begun in the order of their requests.
    let id = ids::event_id(work.now_ms())?;
    let key = JobKey { scope: scope.clone(), connector: connector.id().to_owned(), id };
    let requested_ms = work.now_ms();
    let job =
        JobRecord { requested_ms, began_ms: None, attempts: 0, ended_ms: None, used: None, order };
    work.put(&key.job(), &job)?;
    work.put(&key.task(), &Unended {})?;
    Ok(Started { output: output_name(&key), id: key.id })
}

/// What came of a file, for the caller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStatus {
    /// `FilePath`
    pub path: String,
    /// `StatusCode`
    pub status: &'static str,
    /// `FailureCode` and `FailureMessage`
    pub failure: Option<(String, String)>,
}

/// Values of `StatusCode`.
pub const STATUSES: [&str; 4] = ["QUEUED", "IN_PROGRESS", "COMPLETED", "FAILED"];

/// Lists what came of the files of a transfer, after the marker of the previous page.
pub fn results(
    work: &mut Work<'_>,
    connector: &Connector,
    transfer: &str,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::transfer::ListFileTransferResults>,
) -> Result<Page<FileStatus>, TransferError> {
    permit.opens(&connector.arn())?;
    let unknown = || TransferError::not_found("Unknown transfer", "Transfer", transfer);
    if ids::uuid_bytes(transfer).map(ids::uuid_text).as_deref() != Some(transfer) {
        return Err(unknown());
    }
    let key = JobKey {
        scope: connector.scope().clone(),
        connector: connector.id().to_owned(),
        id: transfer.to_owned(),
    };
    let kept_since_ms = work.now_ms().saturating_sub(limits::CONNECTOR_RESULTS_MS);
    let job = record::load(work, &key)?.filter(|job| job.requested_ms > kept_since_ms);
    let job = job.ok_or_else(unknown)?;
    let files = job.order.files();
    if files.is_empty() {
        return Err(unknown());
    }
    let first = match marker {
        None => 0,
        Some(text) => {
            let index = text.parse::<usize>().ok().filter(|index| *index < files.len());
            index.ok_or_else(|| TransferError::invalid("NextToken is not one of this list"))?
        }
    };
    let [queued, running, completed, failed] = STATUSES;
    let of = |file: &FileRecord| {
        let (status, failure) = match &file.result {
            None if job.began_ms.is_none() => (queued, None),
            None => (running, None),
            Some(FileResult::Completed { .. }) => (completed, None),
            Some(FileResult::Failed { code, message }) => {
                (failed, Some((code.clone(), message.clone())))
            }
        };
        FileStatus { path: file.path.clone(), status, failure }
    };
    let items: Vec<_> = files.iter().skip(first).take(limit).map(of).collect();
    let next = first + items.len();
    Ok(Page { items, next: (next < files.len()).then(|| next.to_string()) })
}

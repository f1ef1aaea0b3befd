//! What came of a file or of a job, for the audit trail and for programs outside.

use super::config::Connector;
use super::job::{Failure, Finish};
use super::record::{FileResult, JobKey, JobRecord, Order, Used, absolute, output_name, shortened};
use crate::Fault;
use crate::arn::Scope;
use crate::events::{self, Fact, Kind, Told};
use crate::work::Work;

/// What came of a file or of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Account and Region.
    pub scope: Scope,
    /// ARN of the connector.
    pub connector_arn: String,
    /// ARN of the access role.
    pub access_role: String,
    /// What was done: `FileSend`, `FileRetrieve`, `DirectoryListing`, `RemoteDelete` or `RemoteMove`.
    pub activity: &'static str,
    /// Whether it changes nothing on the remote server.
    pub read_only: bool,
    /// The kind of event.
    pub kind: &'static Kind,
    /// What it says.
    pub facts: Vec<(Fact, Told)>,
    /// Paths on the remote server that the event for programs has no member for.
    pub paths: Vec<(&'static str, String)>,
}

impl Report {
    /// Puts the event into the outbox.
    pub(super) fn tell(&self, work: &mut Work<'_>) -> Result<(), Fault> {
        let resources = vec![self.connector_arn.clone()];
        events::tell(work, self.kind, &self.scope, resources, self.facts.iter().cloned())
    }
}

/// What all reports have.
fn common(
    connector: &Connector,
    used: &Used,
    failure: Option<(&str, &str)>,
    since_ms: i64,
    now_ms: i64,
) -> Vec<(Fact, Told)> {
    let status = if failure.is_none() { "COMPLETED" } else { "FAILED" };
    let mut facts = vec![
        (Fact::Connector, connector.id().into()),
        (Fact::Url, used.url.as_str().into()),
        (Fact::Status, status.into()),
        (Fact::Begun, Told::Time(since_ms)),
        (Fact::Ended, Told::Time(now_ms)),
    ];
    if let Some((code, message)) = failure {
        facts.push((Fact::FailureCode, code.into()));
        facts.push((Fact::FailureMessage, message.into()));
    }
    facts
}

/// A file of a bucket by its path, `/bucket/key`.
fn object(path: &str) -> Told {
    let inner = path.strip_prefix('/').unwrap_or(path);
    let (bucket, key) = inner.split_once('/').unwrap_or((inner, ""));
    Told::Object { bucket: bucket.to_owned(), key: key.to_owned() }
}

/// What came of the file at an index, whose result is recorded; `None` if there is no such file.
pub(super) fn of_file(
    connector: &Connector,
    key: &JobKey,
    job: &JobRecord,
    index: usize,
    since_ms: i64,
    now_ms: i64,
) -> Option<Report> {
    let file = job.order.files().get(index)?;
    let (bytes, failure) = match file.result.as_ref()? {
        FileResult::Completed { bytes } => (*bytes, None),
        FileResult::Failed { code, message } => (0, Some((code.as_str(), message.as_str()))),
    };
    let used = job.used.clone().unwrap_or_else(|| Used::of(connector));
    let mut facts = common(connector, &used, failure, since_ms, now_ms);
    facts.push((Fact::Transfer, key.id.as_str().into()));
    facts.push((Fact::FileTransfer, file.id.as_str().into()));
    facts.push((Fact::File, file.path.as_str().into()));
    facts.push((Fact::Bytes, i64::try_from(bytes).unwrap_or(i64::MAX).into()));
    let (kinds, activity) = match &job.order {
        Order::Send { to, .. } => {
            facts.push((Fact::Operation, "SEND".into()));
            facts.push((Fact::RemoteDirectory, to.as_deref().unwrap_or_default().into()));
            facts.push((Fact::LocalFile, object(&file.path)));
            ([&events::SEND_COMPLETED, &events::SEND_FAILED], "FileSend")
        }
        Order::Retrieve { to, .. } => {
            let name = file.path.rsplit('/').next().unwrap_or_default();
            facts.push((Fact::Operation, "RETRIEVE".into()));
            facts.push((Fact::LocalDirectory, to.as_str().into()));
            facts.push((Fact::LocalFile, object(&format!("{}/{name}", absolute(to)))));
            ([&events::RETRIEVE_COMPLETED, &events::RETRIEVE_FAILED], "FileRetrieve")
        }
        _ => return None,
    };
    Some(Report {
        scope: connector.scope().clone(),
        connector_arn: connector.arn(),
        access_role: used.access_role,
        activity,
        read_only: activity == "FileRetrieve",
        kind: kinds[usize::from(failure.is_some())],
        facts,
        paths: Vec::new(),
    })
}

/// What came of a job that is no transfer of files; `None` if it is one.
pub(super) fn of_job(
    connector: &Connector,
    key: &JobKey,
    job: &JobRecord,
    result: &Result<Finish, Failure>,
    since_ms: i64,
    now_ms: i64,
) -> Option<Report> {
    let message = result.as_ref().err().map(|failure| shortened(&failure.message));
    let failure = result.as_ref().err().map(|failure| failure.code.name()).zip(message.as_deref());
    let used = job.used.clone().unwrap_or_else(|| Used::of(connector));
    let mut facts = common(connector, &used, failure, since_ms, now_ms);
    let mut paths = Vec::new();
    let id = || Told::from(key.id.as_str());
    let (kinds, activity) = match &job.order {
        Order::Send { .. } | Order::Retrieve { .. } => return None,
        Order::List { from, max_items, to } => {
            facts.push((Fact::Listing, id()));
            facts.push((Fact::MaxItems, i64::from(*max_items).into()));
            facts.push((Fact::OutputDirectory, to.as_str().into()));
            facts.push((Fact::RemoteDirectory, from.as_str().into()));
            if let Ok(Finish::Listed { items, is_truncated }) = result {
                facts.push((Fact::Items, i64::try_from(*items).unwrap_or(i64::MAX).into()));
                facts.push((Fact::IsTruncated, (*is_truncated).into()));
                let output = format!("{}/{}", absolute(to), output_name(key));
                facts.push((Fact::OutputFile, object(&output)));
            }
            ([&events::LISTING_COMPLETED, &events::LISTING_FAILED], "DirectoryListing")
        }
        Order::Delete { path } => {
            facts.push((Fact::DeleteId, id()));
            paths.push(("delete-path", path.clone()));
            let kinds = [&events::REMOTE_DELETE_COMPLETED, &events::REMOTE_DELETE_FAILED];
            (kinds, "RemoteDelete")
        }
        Order::Move { from, to } => {
            facts.push((Fact::MoveId, id()));
            paths.push(("source-path", from.clone()));
            paths.push(("target-path", to.clone()));
            ([&events::REMOTE_MOVE_COMPLETED, &events::REMOTE_MOVE_FAILED], "RemoteMove")
        }
    };
    Some(Report {
        scope: connector.scope().clone(),
        connector_arn: connector.arn(),
        access_role: used.access_role,
        activity,
        read_only: activity == "DirectoryListing",
        kind: kinds[usize::from(failure.is_some())],
        facts,
        paths,
    })
}

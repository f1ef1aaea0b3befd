//! Jobs as stored, with their results.
//!
//! A job has one record from the request until its results are swept, and a second one, which only says that it has not ended,
//! so that a search for work does not read what is done.

use serde::{Deserialize, Serialize};

use super::config::Connector;
use super::job::{Failure, FileTask, Task};
use crate::Fault;
use crate::arn::Scope;
use crate::limits;
use crate::work::Work;

/// Prefix of the records of jobs, by account, Region, connector and job.
pub(super) const JOBS: &str = "transfer/connector-job/";
/// Prefix of the notes of jobs that have not ended, by the same.
pub(super) const TASKS: &str = "transfer/connector-task/";

/// Names of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobKey {
    pub(super) scope: Scope,
    pub(super) connector: String,
    pub(super) id: String,
}

impl JobKey {
    /// Reads the key of a record below a prefix.
    pub(super) fn read(record_key: &str, prefix: &str) -> Option<Self> {
        let mut parts = record_key.strip_prefix(prefix)?.split('/').map(str::to_owned);
        let scope = Scope { account: parts.next()?, region: parts.next()? };
        let (connector, id) = (parts.next()?, parts.next()?);
        parts.next().is_none().then_some(Self { scope, connector, id })
    }

    fn below(&self, prefix: &str) -> String {
        let Scope { account, region } = &self.scope;
        format!("{prefix}{account}/{region}/{}/{}", self.connector, self.id)
    }

    /// Key of the job's record.
    pub(super) fn job(&self) -> String {
        self.below(JOBS)
    }

    /// Key of the note that it has not ended.
    pub(super) fn task(&self) -> String {
        self.below(TASKS)
    }
}

/// The note that a job has not ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Unended {}

/// A job as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct JobRecord {
    /// When it was requested, milliseconds since 1970.
    pub(super) requested_ms: i64,
    /// When it was first begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) began_ms: Option<i64>,
    /// How often it was begun.
    #[serde(default)]
    pub(super) attempts: u32,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended_ms: Option<i64>,
    /// With what it was last begun: the connector may have other settings by now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) used: Option<Used>,
    pub(super) order: Order,
}

/// Settings of a connector that the results of a job name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Used {
    pub(super) url: String,
    pub(super) access_role: String,
}

impl Used {
    pub(super) fn of(connector: &Connector) -> Self {
        Self { url: connector.url().to_owned(), access_role: connector.access_role().to_owned() }
    }
}

/// What was requested.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Order {
    Send { files: Vec<FileRecord>, to: Option<String> },
    Retrieve { files: Vec<FileRecord>, to: String },
    List { from: String, max_items: u32, to: String },
    Delete { path: String },
    Move { from: String, to: String },
}

/// A file of a transfer as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FileRecord {
    /// `file-transfer-id`, a UUID.
    pub(super) id: String,
    /// As the request has it.
    pub(super) path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<FileResult>,
}

/// What came of a file, as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum FileResult {
    Completed { bytes: u64 },
    Failed { code: String, message: String },
}

impl FileResult {
    pub(super) fn of(result: &Result<u64, Failure>) -> Self {
        match result {
            Ok(bytes) => Self::Completed { bytes: *bytes },
            Err(failure) => {
                let (code, message) = (failure.code.name().to_owned(), shortened(&failure.message));
                Self::Failed { code, message }
            }
        }
    }
}

/// A message of a failure: a remote server may have written some of it.
pub(super) fn shortened(message: &str) -> String {
    let clean = message.chars().map(|c| if c.is_control() { ' ' } else { c });
    clean.take(limits::MAX_FAILURE_MESSAGE).collect()
}

impl Order {
    /// The files of a transfer.
    pub(super) fn files(&self) -> &[FileRecord] {
        match self {
            Self::Send { files, .. } | Self::Retrieve { files, .. } => files,
            _ => &[],
        }
    }

    /// The same, to record results.
    pub(super) fn files_mut(&mut self) -> &mut [FileRecord] {
        match self {
            Self::Send { files, .. } | Self::Retrieve { files, .. } => files,
            _ => &mut [],
        }
    }

    /// Whether it can be done a second time without harm, if nobody knows whether it was done.
    pub(super) fn is_repeatable(&self) -> bool {
        !matches!(self, Self::Delete { .. } | Self::Move { .. })
    }

    /// Connections that it can use.
    pub(super) fn connections(&self) -> u32 {
        let open = self.files().iter().filter(|file| file.result.is_none()).count();
        u32::try_from(open).unwrap_or(u32::MAX).max(1)
    }

    /// The task for a runner.
    pub(super) fn task(&self, key: &JobKey) -> Task {
        let file =
            |file: &FileRecord, path: String| FileTask { path, is_done: file.result.is_some() };
        match self {
            Self::Send { files, to } => Task::Send {
                files: files.iter().map(|one| file(one, absolute(&one.path))).collect(),
                to: to.clone(),
            },
            Self::Retrieve { files, to } => Task::Retrieve {
                files: files.iter().map(|one| file(one, one.path.clone())).collect(),
                to: absolute(to),
            },
            Self::List { from, max_items, to } => Task::List {
                from: from.clone(),
                max_items: *max_items,
                output: format!("{}/{}", absolute(to), output_name(key)),
            },
            Self::Delete { path } => Task::Delete { path: path.clone() },
            Self::Move { from, to } => Task::Move { from: from.clone(), to: to.clone() },
        }
    }
}

/// `OutputFileName`
pub(super) fn output_name(key: &JobKey) -> String {
    format!("{}-{}.json", key.connector, key.id)
}

/// A path in a bucket as one of a home: with a slash at its begin, and none at its end. AWS's documentation has both.
pub(super) fn absolute(path: &str) -> String {
    let inner = path.strip_prefix('/').unwrap_or(path);
    format!("/{}", inner.strip_suffix('/').unwrap_or(inner))
}

/// Reads the record of a job.
pub(super) fn load(work: &mut Work<'_>, key: &JobKey) -> Result<Option<JobRecord>, Fault> {
    work.get::<JobRecord>(&key.job())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_short_line() {
        assert_eq!(shortened("a\r\n\u{1b}[31mb"), "a   [31mb");
        assert_eq!(shortened(&"x".repeat(5000)).len(), limits::MAX_FAILURE_MESSAGE);
    }

    #[test]
    fn keys_have_four_names() {
        let key = JobKey::read("transfer/connector-job/1/us-east-1/c-2/3", JOBS).unwrap();
        assert_eq!(key.job(), "transfer/connector-job/1/us-east-1/c-2/3");
        assert_eq!(key.task(), "transfer/connector-task/1/us-east-1/c-2/3");
        for wrong in ["transfer/connector-job/1/2/3", "transfer/connector-job/1/2/3/4/5", "x"] {
            assert_eq!(JobKey::read(wrong, JOBS), None, "{wrong}");
        }
    }
}

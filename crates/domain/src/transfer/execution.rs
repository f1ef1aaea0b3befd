//! Executions of workflows: one for each upload to a server that names a workflow.
//!
//! An execution begins in the transaction of the event of its upload, so that an upload that the client was told of has one. It
//! ends by [`task`], one step at a time. Executions that have ended are shown for a day.

mod task;

use serde::{Deserialize, Serialize};

use super::workflow::{self, Attachment, Step};
use super::{SERVER, TransferError, WORKFLOW, server};
use crate::arn::Scope;
use crate::identity::{Permit, action};
use crate::work::{Page, Sweep, Work};
use crate::{Fault, ids, limits};

pub use task::{Answered, Job, Outcome, Placed, answer, called, claim, complete, due, pin, renew};

use task::Running;

/// Prefix of the records of executions.
const EXECUTIONS: &str = "transfer/execution/";

fn record_key(scope: &Scope, workflow: &str, id: &str) -> String {
    format!("{EXECUTIONS}{}/{}/{workflow}/{id}", scope.account, scope.region)
}

/// A file in a bucket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileLocation {
    /// Name of the bucket.
    pub bucket: String,
    /// Path in it, without a slash at the beginning.
    pub key: String,
}

/// What a file was when a step first looked at it. Every later step concerns this content and no other, even if another one is uploaded
/// under the same name meanwhile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Content {
    /// There was none.
    Absent,
    /// One with this entity tag.
    Tag(String),
}

/// State of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Its steps are carried out.
    #[serde(rename = "IN_PROGRESS")]
    InProgress,
    /// All steps have succeeded.
    #[serde(rename = "COMPLETED")]
    Completed,
    /// A step has failed, and nothing more happens.
    #[serde(rename = "EXCEPTION")]
    Exception,
    /// A step has failed; the steps for exceptions are carried out.
    #[serde(rename = "HANDLING_EXCEPTION")]
    HandlingException,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::InProgress, Self::Completed, Self::Exception, Self::HandlingException];

    /// AWS's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::InProgress => "IN_PROGRESS",
            Self::Completed => "COMPLETED",
            Self::Exception => "EXCEPTION",
            Self::HandlingException => "HANDLING_EXCEPTION",
        }
    }
}

/// Why a step has failed: AWS's `ExecutionErrorType`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// The execution role does not allow it.
    #[serde(rename = "PERMISSION_DENIED")]
    PermissionDenied,
    /// The function has failed, or says so.
    #[serde(rename = "CUSTOM_STEP_FAILED")]
    CustomStepFailed,
    /// There is a file where the copy should be.
    #[serde(rename = "ALREADY_EXISTS")]
    AlreadyExists,
    /// There is no such file or bucket.
    #[serde(rename = "NOT_FOUND")]
    NotFound,
    /// The storage, or the name of the file, does not allow it.
    #[serde(rename = "BAD_REQUEST")]
    BadRequest,
    /// The function did not say in time how it went.
    #[serde(rename = "TIMEOUT")]
    Timeout,
    /// Everything else.
    #[serde(rename = "INTERNAL_SERVER_ERROR")]
    InternalServerError,
}

impl Cause {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::PermissionDenied,
        Self::CustomStepFailed,
        Self::AlreadyExists,
        Self::NotFound,
        Self::BadRequest,
        Self::Timeout,
        Self::InternalServerError,
    ];

    /// AWS's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::CustomStepFailed => "CUSTOM_STEP_FAILED",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::NotFound => "NOT_FOUND",
            Self::BadRequest => "BAD_REQUEST",
            Self::Timeout => "TIMEOUT",
            Self::InternalServerError => "INTERNAL_SERVER_ERROR",
        }
    }
}

/// The failure of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepError {
    /// `Type`
    pub cause: Cause,
    /// `Message`
    pub message: String,
}

impl StepError {
    /// A failure with an explanation.
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
        Self { cause, message: message.into() }
    }
}

/// Result of a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepResult {
    /// `StepType`
    pub kind: String,
    /// The tags that it has set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<(String, String)>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StepError>,
}

/// An execution as stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    id: String,
    workflow: String,
    server: String,
    user: String,
    session: String,
    /// The file as it was uploaded.
    original: FileLocation,
    /// Whether its key is exact: that of a name that is not UTF-8 is not.
    is_exact: bool,
    /// Its content; none before a step has looked at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original_content: Option<Content>,
    /// The file that the next step uses.
    file: FileLocation,
    /// Its content, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<Content>,
    /// Canonical ARN of the execution role.
    role: String,
    logging_role: Option<String>,
    steps: Vec<Step>,
    on_exception: Vec<Step>,
    status: Status,
    results: Vec<StepResult>,
    exception_results: Vec<StepResult>,
    /// The step that is carried out, if one has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    running: Option<Running>,
    begun_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended_ms: Option<i64>,
}

/// An execution that was found.
#[derive(Debug, Clone)]
pub struct Execution {
    scope: Scope,
    record: Record,
}

impl Execution {
    /// Account and Region.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Id, a UUID.
    pub fn id(&self) -> &str {
        &self.record.id
    }

    /// Id of the workflow.
    pub fn workflow(&self) -> &str {
        &self.record.workflow
    }

    /// ARN of the workflow.
    pub fn workflow_arn(&self) -> String {
        WORKFLOW.arn(&self.scope, &self.record.workflow)
    }

    /// Id of the server.
    pub fn server(&self) -> &str {
        &self.record.server
    }

    /// Name of the user.
    pub fn user(&self) -> &str {
        &self.record.user
    }

    /// Id of the session in which the file was uploaded.
    pub fn session(&self) -> &str {
        &self.record.session
    }

    /// The file as it was uploaded.
    pub fn original(&self) -> &FileLocation {
        &self.record.original
    }

    /// ARN of the execution role.
    pub fn role(&self) -> &str {
        &self.record.role
    }

    /// ARN of the server's `LoggingRole`.
    pub fn logging_role(&self) -> Option<&str> {
        self.record.logging_role.as_deref()
    }

    /// State.
    pub fn status(&self) -> Status {
        self.record.status
    }

    /// Results of the steps that have ended.
    pub fn results(&self) -> &[StepResult] {
        &self.record.results
    }

    /// Results of the steps for exceptions that have ended.
    pub fn exception_results(&self) -> &[StepResult] {
        &self.record.exception_results
    }
}

/// What has happened to an execution, for the audit trail.
#[derive(Debug, Clone)]
pub struct Happened {
    /// The event.
    pub what: Event,
    /// The execution as it is now.
    pub execution: Execution,
}

/// The events of executions, with the names of AWS's log.
#[derive(Debug, Clone)]
pub enum Event {
    /// It has begun.
    Started,
    /// It did not begin, because the workflow has too many.
    Throttled,
    /// A step has succeeded.
    StepCompleted {
        /// The step.
        step: Step,
        /// The file that it has made or used.
        file: FileLocation,
    },
    /// A step has failed.
    StepErrored {
        /// The step.
        step: Step,
        /// The reason of the failure.
        error: StepError,
    },
    /// All steps have succeeded.
    Completed,
    /// A step had failed; the steps for exceptions are over.
    Errored,
}

impl Event {
    /// AWS's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Started => "ExecutionStarted",
            Self::Throttled => "ExecutionThrottled",
            Self::StepCompleted { .. } => "StepCompleted",
            Self::StepErrored { .. } => "StepErrored",
            Self::Completed => "ExecutionCompleted",
            Self::Errored => "ExecutionErrored",
        }
    }
}

/// An upload that has ended.
#[derive(Debug, Clone)]
pub struct Uploaded<'a> {
    /// Account and Region of the server.
    pub scope: &'a Scope,
    /// Id of the server.
    pub server: &'a str,
    /// Name of the user.
    pub user: &'a str,
    /// Id of the session.
    pub session: &'a str,
    /// `bucket/path` of the file.
    pub target: &'a [u8],
    /// Whether the connection was lost before the client has closed the file.
    pub is_partial: bool,
    /// Whether what was written never appeared under the name of the file, so that another file may have it.
    pub is_apart: bool,
}

/// Begins the execution of the workflow that the server names for such an upload, if it names one. It has begun when the
/// transaction of `work` is durable.
pub fn begin(work: &mut Work<'_>, uploaded: &Uploaded<'_>) -> Result<Option<Happened>, Fault> {
    let scope = uploaded.scope;
    let server_key = SERVER.record_key(scope, uploaded.server);
    let Some(server) = work.get::<server::Record>(&server_key)? else { return Ok(None) };
    let attached = match uploaded.is_partial {
        false => server.workflows.on_upload,
        true => server.workflows.on_partial_upload,
    };
    let Some(Attachment { workflow, role }) = attached else { return Ok(None) };
    let workflow_key = WORKFLOW.record_key(scope, &workflow);
    let Some(found) = work.get::<workflow::Record>(&workflow_key)? else {
        // It may have been detached and deleted since the server was read: that is a conflict.
        work.get::<server::Record>(&server_key)?;
        return Err(Fault::Damaged(workflow_key));
    };
    let text = String::from_utf8_lossy(uploaded.target);
    let (bucket, key) = text.split_once('/').unwrap_or((&text, ""));
    let original = FileLocation { bucket: bucket.to_owned(), key: key.to_owned() };
    let absent = (uploaded.is_partial && uploaded.is_apart).then_some(Content::Absent);
    let id = ids::uuid()?;
    let record = Record {
        id: id.clone(),
        workflow: workflow.clone(),
        server: uploaded.server.to_owned(),
        user: uploaded.user.to_owned(),
        session: uploaded.session.to_owned(),
        file: original.clone(),
        original,
        original_content: absent.clone(),
        content: absent,
        is_exact: std::str::from_utf8(uploaded.target).is_ok(),
        role,
        logging_role: server.logging_role,
        steps: found.steps,
        on_exception: found.on_exception,
        status: Status::InProgress,
        results: Vec::new(),
        exception_results: Vec::new(),
        running: None,
        begun_ms: work.now_ms(),
        ended_ms: None,
    };
    let stored = work.store().count(&record_key(scope, &workflow, ""))?;
    let what = if stored < limits::EXECUTIONS_PER_WORKFLOW {
        work.create(&record_key(scope, &workflow, &id), &record)?;
        task::begin(work, scope, &record)?;
        Event::Started
    } else {
        Event::Throttled
    };
    Ok(Some(Happened { what, execution: Execution { scope: scope.clone(), record } }))
}

fn missing(id: &str) -> TransferError {
    TransferError::not_found("Unknown execution", "Execution", id)
}

/// Finds an execution of a workflow.
pub fn find_execution(
    work: &mut Work<'_>,
    scope: &Scope,
    workflow: &str,
    id: &str,
) -> Result<Execution, TransferError> {
    // Ids have one spelling.
    let is_id = ids::uuid_bytes(id).is_some_and(|bytes| ids::uuid_text(bytes) == id);
    if !is_id || !workflow::is_workflow_id(workflow) {
        return Err(missing(id));
    }
    let record =
        work.get::<Record>(&record_key(scope, workflow, id))?.ok_or_else(|| missing(id))?;
    Ok(Execution { scope: scope.clone(), record })
}

/// Lists the executions of a workflow, after the marker of the previous page.
pub fn executions(
    work: &Work<'_>,
    workflow: &workflow::Workflow,
    marker: Option<&str>,
    limit: usize,
    permit: &Permit<action::transfer::ListExecutions>,
) -> Result<Page<Execution>, TransferError> {
    permit.opens(&workflow.arn())?;
    let scope = workflow.scope();
    let page = work.page::<Record>(&record_key(scope, workflow.id(), ""), marker, limit)?;
    let of = |record| Execution { scope: scope.clone(), record };
    Ok(Page { items: page.items.into_iter().map(of).collect(), next: page.next })
}

/// Forgets executions that have ended a day ago.
pub const FORGET_EXECUTIONS: Sweep = Sweep {
    find: |work, after, limit| work.due(EXECUTIONS, after, limit, is_over),
    handle: |work, record_key, _| {
        let now_ms = work.now_ms();
        if work.get::<Record>(record_key)?.is_some_and(|record| is_over(&record, now_ms)) {
            work.delete(record_key);
        }
        Ok(())
    },
};

fn is_over(record: &Record, now_ms: i64) -> bool {
    record.ended_ms.is_some_and(|ended| now_ms.saturating_sub(ended) >= limits::EXECUTION_KEPT_MS)
}

//! Workflows in tests: servers that name one, uploads, and the steps that are due.
#![allow(dead_code, reason = "each test file uses its own part")]

use outlast_api::service::sftp::{Decision, FileEvent, Session, Subject};
use outlast_domain::transfer::{Cause, Job, Outcome, Rights, StepError};
use outlast_store::Store;
use serde_json::{Value, json};

use crate::common::{ACCOUNT, Fixture, NOW, Who, policy, text};
use crate::transfer_support::{Shown, connection, role, trust};

pub const FUNCTION: &str = "arn:aws:lambda:eu-west-1:123456789012:function:scan";

pub fn copy(key: &str) -> Value {
    json!({ "Type": "COPY", "CopyStepDetails": {
        "Name": "copy", "DestinationFileLocation": { "S3FileLocation": { "Bucket": "archive", "Key": key } },
    } })
}

pub fn tag() -> Value {
    json!({ "Type": "TAG", "TagStepDetails": { "Tags": [{ "Key": "state", "Value": "seen" }] } })
}

pub fn delete(source: &str) -> Value {
    json!({ "Type": "DELETE", "DeleteStepDetails": { "SourceFileLocation": source } })
}

pub fn custom(seconds: u32) -> Value {
    json!({ "Type": "CUSTOM", "CustomStepDetails": {
        "Name": "scan", "Target": FUNCTION, "TimeoutSeconds": seconds, "SourceFileLocation": "${original.file}",
    } })
}

/// A service with a server that names a workflow, and a user who is logged in.
pub struct World {
    pub fixture: Fixture,
    pub server: String,
    pub workflow: String,
    pub role: String,
    pub session: Session,
}

/// A role that may do everything with files, and call functions.
pub fn execution_role(fixture: &Fixture, name: &str) -> String {
    let all = policy(json!([
        { "Effect": "Allow", "Action": ["s3:*", "lambda:InvokeFunction", "transfer:SendWorkflowStepState"], "Resource": "*" },
    ]));
    fixture.role(ACCOUNT, name, &trust(&json!({})), &[all])
}

#[track_caller]
pub fn workflow(fixture: &Fixture, steps: Value, on_exception: Value) -> String {
    let new = json!({ "Steps": steps, "OnExceptionSteps": on_exception });
    text(&fixture.transfer("CreateWorkflow", new).unwrap()["WorkflowId"]).to_owned()
}

impl World {
    pub fn new(steps: Value, on_exception: Value) -> Self {
        let fixture = Fixture::new();
        let workflow = workflow(&fixture, steps, on_exception);
        let role_arn = execution_role(&fixture, "workflows");
        let attached = json!([{ "WorkflowId": workflow, "ExecutionRole": role_arn }]);
        let server = fixture.server(json!({ "WorkflowDetails": { "OnUpload": attached } }));
        fixture.sftp_user(&server, "alice", &role(&fixture, "users"), json!({}));
        let session = session(&fixture, &server);
        Self { fixture, server, workflow, role: role_arn, session }
    }

    /// Commits an event of a file that was opened for writing.
    pub fn tell(&self, event: &FileEvent<'_>, why: &str) {
        let subject = Subject {
            target: b"files/home/alice/a.txt",
            new_target: b"",
            writes: true,
            since_ms: NOW * 1000,
            why,
            is_apart: false,
        };
        self.tell_of(event, &subject);
    }

    pub fn tell_of(&self, event: &FileEvent<'_>, subject: &Subject<'_>) {
        let now_ms = self.now_ms();
        let made = self.fixture.service.sftp_file_event(&self.session, event, subject, now_ms);
        self.fixture.store.commit_and_wait(made.unwrap()).unwrap();
    }

    pub fn upload(&self) {
        let path = b"/files/home/alice/a.txt";
        self.tell(&FileEvent::Close { path, bytes_in: 12, bytes_out: 0 }, "");
    }

    pub fn now_ms(&self) -> i64 {
        self.fixture.now.get() * 1000
    }

    pub fn later(&self, seconds: i64) {
        self.fixture.now.set(self.fixture.now.get() + seconds);
    }

    pub fn jobs(&self) -> Vec<Job> {
        self.fixture.service.workflow_jobs(self.now_ms(), 100, &|_, _| true).unwrap()
    }

    /// The only step that is due.
    #[track_caller]
    pub fn job(&self) -> Job {
        let mut jobs = self.jobs();
        assert_eq!(jobs.len(), 1);
        jobs.remove(0)
    }

    pub fn ends(&self, job: &Job, outcome: Outcome) -> Option<Job> {
        self.fixture.service.workflow_outcome(job, &outcome, self.now_ms()).unwrap()
    }

    /// What a step may do now.
    pub fn rights(&self, job: &Job) -> Result<Rights, StepError> {
        self.fixture.service.workflow_rights(job, self.now_ms()).unwrap()
    }

    pub fn called(&self, job: &Job) {
        self.fixture.service.workflow_called(job, self.now_ms()).unwrap();
    }

    pub fn executions(&self) -> Vec<Value> {
        let body = json!({ "WorkflowId": self.workflow });
        let listed = self.fixture.transfer("ListExecutions", body).unwrap();
        listed["Executions"].as_array().unwrap().clone()
    }

    /// The only execution.
    #[track_caller]
    pub fn execution(&self) -> Value {
        let [listed] = &self.executions()[..] else { panic!("{:?}", self.executions()) };
        let body = json!({ "WorkflowId": self.workflow, "ExecutionId": listed["ExecutionId"] });
        let described = self.fixture.transfer("DescribeExecution", body).unwrap();
        assert_eq!(described["WorkflowId"], self.workflow);
        assert_eq!(described["Execution"]["Status"], listed["Status"]);
        described["Execution"].clone()
    }

    pub fn answer(&self, who: &Who, job: &Job, token: &str, status: &str) -> Result<Value, String> {
        let body = json!({
            "WorkflowId": self.workflow, "ExecutionId": job.execution.id(), "Token": token, "Status": status,
        });
        let answer = self.fixture.transfer_as(who, "SendWorkflowStepState", &body);
        answer.map_err(|refused| refused.code)
    }

    /// The names of the events of executions.
    pub fn events(&self) -> Vec<String> {
        let all = self.fixture.events();
        let told =
            all.iter().filter(|event| event["additionalEventData"]["executionId"].is_string());
        told.map(|event| text(&event["eventName"]).to_owned()).collect()
    }
}

/// Lets a server of alice's name a workflow, and begins an execution.
pub fn attach_and_upload(fixture: &Fixture, server: &str) -> (String, String) {
    let workflow = workflow(fixture, json!([tag()]), json!([]));
    let role = execution_role(fixture, "workflows");
    let attached = json!([{ "WorkflowId": workflow, "ExecutionRole": role }]);
    let update = json!({ "ServerId": server, "WorkflowDetails": { "OnUpload": attached } });
    fixture.transfer("UpdateServer", update).unwrap();
    let target = b"files/home/alice/a.txt";
    let subject = Subject {
        target,
        new_target: b"",
        writes: true,
        since_ms: NOW * 1000,
        why: "",
        is_apart: false,
    };
    let close = FileEvent::Close { path: b"/a.txt", bytes_in: 12, bytes_out: 0 };
    let now_ms = fixture.now.get() * 1000;
    let session = session(fixture, server);
    let made = fixture.service.sftp_file_event(&session, &close, &subject, now_ms).unwrap();
    fixture.store.commit_and_wait(made).unwrap();
    let listed = fixture.transfer("ListExecutions", json!({ "WorkflowId": workflow })).unwrap();
    let execution = text(&listed["Executions"][0]["ExecutionId"]).to_owned();
    (workflow, execution)
}

pub fn session(fixture: &Fixture, server: &str) -> Session {
    match Shown::key(server, "alice", 1).decide(fixture, None) {
        Decision::Account(account) => Session::new(connection(server), &account),
        _ => panic!("alice is not welcome"),
    }
}

pub fn failed() -> Outcome {
    Outcome::Failed(StepError::new(Cause::NotFound, "no such file"))
}

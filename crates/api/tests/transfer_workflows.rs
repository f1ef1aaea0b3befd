//! Workflows: what is refused, which uploads begin one, and how its steps follow one another.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use outlast_api::service::sftp::{Decision, FileEvent, Session, Subject};
use outlast_domain::limits;
use outlast_domain::transfer::{Access, Cause, Job, Outcome, StepError};
use outlast_store::tally::Tally;
use outlast_store::{Store, Transaction};
use serde_json::{Value, json};

use crate::common::{ACCOUNT, Fixture, NOW, OTHER_ACCOUNT, REGION, Who, code, policy, text, with};
use crate::transfer_support::{Shown, connection, role, trust};

const FUNCTION: &str = "arn:aws:lambda:eu-west-1:123456789012:function:scan";

fn copy(key: &str) -> Value {
    json!({ "Type": "COPY", "CopyStepDetails": {
        "Name": "copy", "DestinationFileLocation": { "S3FileLocation": { "Bucket": "archive", "Key": key } },
    } })
}

fn tag() -> Value {
    json!({ "Type": "TAG", "TagStepDetails": { "Tags": [{ "Key": "state", "Value": "seen" }] } })
}

fn delete(source: &str) -> Value {
    json!({ "Type": "DELETE", "DeleteStepDetails": { "SourceFileLocation": source } })
}

fn custom(seconds: u32) -> Value {
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
    session: Session,
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
        };
        self.tell_of(event, &subject);
    }

    fn tell_of(&self, event: &FileEvent<'_>, subject: &Subject<'_>) {
        let now_ms = self.now_ms();
        let made = self.fixture.service.sftp_file_event(&self.session, event, subject, now_ms);
        self.fixture.store.commit_and_wait(made.unwrap()).unwrap();
    }

    pub fn upload(&self) {
        let path = b"/files/home/alice/a.txt";
        self.tell(&FileEvent::Close { path, bytes_in: 12, bytes_out: 0 }, "");
    }

    fn now_ms(&self) -> i64 {
        self.fixture.now.get() * 1000
    }

    fn later(&self, seconds: i64) {
        self.fixture.now.set(self.fixture.now.get() + seconds);
    }

    fn jobs(&self) -> Vec<Job> {
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

    fn called(&self, job: &Job) {
        self.fixture.service.workflow_called(job, self.now_ms()).unwrap();
    }

    fn executions(&self) -> Vec<Value> {
        let body = json!({ "WorkflowId": self.workflow });
        let listed = self.fixture.transfer("ListExecutions", body).unwrap();
        listed["Executions"].as_array().unwrap().clone()
    }

    /// The only execution.
    #[track_caller]
    fn execution(&self) -> Value {
        let [listed] = &self.executions()[..] else { panic!("{:?}", self.executions()) };
        let body = json!({ "WorkflowId": self.workflow, "ExecutionId": listed["ExecutionId"] });
        let described = self.fixture.transfer("DescribeExecution", body).unwrap();
        assert_eq!(described["WorkflowId"], self.workflow);
        assert_eq!(described["Execution"]["Status"], listed["Status"]);
        described["Execution"].clone()
    }

    fn answer(&self, who: &Who, job: &Job, token: &str, status: &str) -> Result<Value, String> {
        let body = json!({
            "WorkflowId": self.workflow, "ExecutionId": job.execution.id(), "Token": token, "Status": status,
        });
        let answer = self.fixture.transfer_as(who, "SendWorkflowStepState", &body);
        answer.map_err(|refused| refused.code)
    }

    /// The names of the events of executions.
    fn events(&self) -> Vec<String> {
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
    let subject = Subject { target, new_target: b"", writes: true, since_ms: NOW * 1000, why: "" };
    let close = FileEvent::Close { path: b"/a.txt", bytes_in: 12, bytes_out: 0 };
    let now_ms = fixture.now.get() * 1000;
    let session = session(fixture, server);
    let made = fixture.service.sftp_file_event(&session, &close, &subject, now_ms).unwrap();
    fixture.store.commit_and_wait(made).unwrap();
    let listed = fixture.transfer("ListExecutions", json!({ "WorkflowId": workflow })).unwrap();
    let execution = text(&listed["Executions"][0]["ExecutionId"]).to_owned();
    (workflow, execution)
}

fn session(fixture: &Fixture, server: &str) -> Session {
    match Shown::key(server, "alice", 1).decide(fixture, None) {
        Decision::Account(account) => Session::new(connection(server), &account),
        _ => panic!("alice is not welcome"),
    }
}

fn failed() -> Outcome {
    Outcome::Failed(StepError::new(Cause::NotFound, "no such file"))
}

#[test]
fn steps_that_make_no_sense_are_refused() {
    let fixture = Fixture::new();
    let details = |step: Value, more: Value| {
        let name = step.as_object().unwrap().keys().find(|name| *name != "Type").unwrap().clone();
        let inner = with(&step[&name], more);
        with(&step, json!({ name: inner }))
    };
    let efs = json!({ "EfsFileLocation": { "FileSystemId": "fs-01234567", "Path": "/x" } });
    let twice = json!([{ "Key": "a", "Value": "1" }, { "Key": "a", "Value": "2" }]);
    let decrypt = json!({ "Type": "PGP", "DestinationFileLocation": efs });
    for (steps, expected) in [
        (json!([]), "at least one step"),
        (json!([{ "CopyStepDetails": {} }]), "needs a Type"),
        (json!([{ "Type": "COPY" }]), "the details of this type"),
        (json!([with(&copy("x"), json!({ "DeleteStepDetails": {} }))]), "and no others"),
        (json!([{ "Type": "COPY", "CopyStepDetails": {} }]), "needs a bucket"),
        (json!([details(copy("x"), json!({ "DestinationFileLocation": efs }))]), "domain is S3"),
        (json!([copy("../x")]), "without empty names"),
        (json!([copy("${transfer:HomeFolder}/")]), "${transfer:UserName}"),
        (json!([{ "Type": "TAG", "TagStepDetails": {} }]), "needs Tags"),
        (json!([details(tag(), json!({ "Tags": twice }))]), "the key a twice"),
        (json!([delete("${other.file}")]), "${original.file}"),
        (json!([{ "Type": "DECRYPT", "DecryptStepDetails": decrypt }]), "there is no PGP"),
        (json!([{ "Type": "CUSTOM", "CustomStepDetails": {} }]), "needs a Target"),
        (
            json!([details(
                custom(1),
                json!({ "Target": FUNCTION.replace("eu-west-1", "us-east-1") })
            )]),
            "in eu-west-1",
        ),
        (
            json!([details(
                custom(1),
                json!({ "Target": FUNCTION.replace(ACCOUNT, OTHER_ACCOUNT) })
            )]),
            ACCOUNT,
        ),
    ] {
        for body in
            [json!({ "Steps": steps }), json!({ "Steps": [tag()], "OnExceptionSteps": steps })]
        {
            if body["OnExceptionSteps"] == json!([]) {
                continue;
            }
            let refused = fixture.transfer("CreateWorkflow", body).unwrap_err();
            assert_eq!(refused.code, "InvalidRequestException", "{steps}");
            assert!(refused.message.contains(expected), "{steps}: {}", refused.message);
        }
    }
    for steps in [json!(vec![tag(); 9]), json!([custom(0)]), json!([custom(1801)])] {
        let answer = fixture.transfer("CreateWorkflow", json!({ "Steps": steps }));
        assert_eq!(code(answer), "ValidationException", "{steps}");
    }
    assert_eq!(fixture.transfer("ListWorkflows", json!({})).unwrap()["Workflows"], json!([]));
    // Where the operator has named functions, there are no others.
    fixture.service.set_settings(outlast_domain::settings::Settings {
        workflow_functions: Some(Default::default()),
        ..Default::default()
    });
    let refused = fixture.transfer("CreateWorkflow", json!({ "Steps": [custom(1)] })).unwrap_err();
    assert!(refused.message.contains("operator has configured"), "{}", refused.message);
}

#[test]
fn a_workflow_is_described_as_it_was_made() {
    let fixture = Fixture::new();
    let steps = json!([
        with(&copy("in/${transfer:UserName}/"), json!({})),
        tag(),
        custom(30),
        delete("${original.file}"),
    ]);
    let new = json!({
        "Description": "all kinds", "Steps": steps, "OnExceptionSteps": [tag()],
        "Tags": [{ "Key": "team", "Value": "files" }],
    });
    let made = fixture.transfer("CreateWorkflow", new).unwrap();
    let id = text(&made["WorkflowId"]).to_owned();
    let named = json!({ "WorkflowId": id });
    let found = fixture.transfer("DescribeWorkflow", named.clone()).unwrap()["Workflow"].clone();
    let arn = format!("arn:aws:transfer:{REGION}:{ACCOUNT}:workflow/{id}");
    assert_eq!((&found["Arn"], &found["Description"]), (&json!(arn), &json!("all kinds")));
    assert_eq!(found["Tags"], json!([{ "Key": "team", "Value": "files" }]));
    let mut expected = steps;
    expected[0]["CopyStepDetails"]["OverwriteExisting"] = json!("FALSE");
    assert_eq!(found["Steps"], expected);
    assert_eq!(found["OnExceptionSteps"], json!([tag()]));
    let listed = fixture.transfer("ListWorkflows", json!({})).unwrap();
    let row = json!({ "WorkflowId": id, "Arn": arn, "Description": "all kinds" });
    assert_eq!(listed["Workflows"], json!([row]));
    // Nobody else sees it.
    for who in [Who::stranger(), Who::admin().at("us-west-2")] {
        let answer = fixture.transfer_as(&who, "DescribeWorkflow", &named);
        assert_eq!(code(answer), "ResourceNotFoundException");
        let listed = fixture.transfer_as(&who, "ListWorkflows", &json!({})).unwrap();
        assert_eq!(listed["Workflows"], json!([]));
        let answer = fixture.transfer_as(&who, "DeleteWorkflow", &named);
        assert_eq!(code(answer), "ResourceNotFoundException");
    }
    fixture.transfer("DeleteWorkflow", named.clone()).unwrap();
    assert_eq!(code(fixture.transfer("DescribeWorkflow", named)), "ResourceNotFoundException");
}

#[test]
fn a_server_names_workflows_that_exist_and_roles_that_its_administrator_may_pass() {
    let fixture = Fixture::new();
    let (one, two) = (
        workflow(&fixture, json!([tag()]), json!([])),
        workflow(&fixture, json!([tag()]), json!([])),
    );
    let role = execution_role(&fixture, "workflows");
    let attached = |id: &str, role: &str| json!([{ "WorkflowId": id, "ExecutionRole": role }]);
    let missing =
        json!({ "WorkflowDetails": { "OnUpload": attached("w-00000000000000000", &role) } });
    let refused = fixture.transfer("CreateServer", missing.clone()).unwrap_err();
    assert!(refused.message.contains("There is no workflow"), "{}", refused.message);
    assert_eq!(refused.code, "InvalidRequestException");
    let foreign = role.replace(ACCOUNT, OTHER_ACCOUNT);
    let foreign = json!({ "WorkflowDetails": { "OnUpload": attached(&one, &foreign) } });
    assert_eq!(code(fixture.transfer("CreateServer", foreign)), "AccessDeniedException");
    let details =
        json!({ "OnUpload": attached(&one, &role), "OnPartialUpload": attached(&two, &role) });
    let server = fixture.server(json!({ "WorkflowDetails": details }));
    let named = json!({ "ServerId": server });
    let shown = || fixture.transfer("DescribeServer", named.clone()).unwrap()["Server"].clone();
    assert_eq!(shown()["WorkflowDetails"], details);
    assert_eq!(
        code(fixture.transfer("UpdateServer", with(&named, missing))),
        "InvalidRequestException"
    );
    // Only who may pass the role may name it.
    let all = json!({ "Effect": "Allow", "Action": "transfer:*", "Resource": "*" });
    let pass = json!({ "Effect": "Allow", "Action": "iam:PassRole", "Resource": role });
    for (name, statements, allowed) in
        [("without", json!([all]), false), ("passer", json!([all, pass]), true)]
    {
        let who = fixture.user(ACCOUNT, name, &[policy(statements)]);
        let update =
            with(&named, json!({ "WorkflowDetails": { "OnUpload": attached(&two, &role) } }));
        let answer = fixture.transfer_as(&who, "UpdateServer", &update);
        assert_eq!(answer.is_ok(), allowed, "{answer:?}");
    }
    assert_eq!(shown()["WorkflowDetails"]["OnUpload"], attached(&two, &role));
    assert_eq!(shown()["WorkflowDetails"]["OnPartialUpload"], attached(&two, &role));
    // One that is named stays.
    fixture.transfer("DeleteWorkflow", json!({ "WorkflowId": one })).unwrap();
    let delete = json!({ "WorkflowId": two });
    let refused = fixture.transfer("DeleteWorkflow", delete.clone()).unwrap_err();
    assert_eq!(refused.code, "InvalidRequestException");
    assert_eq!(refused.message, format!("Workflow is still in use by server {server}"));
    let none = json!({ "OnUpload": [] });
    fixture.transfer("UpdateServer", with(&named, json!({ "WorkflowDetails": none }))).unwrap();
    assert!(shown()["WorkflowDetails"]["OnUpload"].is_null());
    assert_eq!(code(fixture.transfer("DeleteWorkflow", delete.clone())), "InvalidRequestException");
    let none = json!({ "OnPartialUpload": [] });
    fixture.transfer("UpdateServer", with(&named, json!({ "WorkflowDetails": none }))).unwrap();
    assert!(shown()["WorkflowDetails"].is_null());
    fixture.transfer("DeleteWorkflow", delete).unwrap();
}

#[test]
fn uploads_with_content_begin_the_workflow_in_the_transaction_of_their_event() {
    let world = World::new(json!([tag()]), json!([]));
    let path = b"/files/home/alice/a.txt";
    let close = FileEvent::Close { path, bytes_in: 12, bytes_out: 0 };
    let reading = Subject {
        target: b"files/home/alice/a.txt",
        new_target: b"",
        writes: false,
        since_ms: NOW * 1000,
        why: "",
    };
    for event in [
        FileEvent::Close { path, bytes_in: 0, bytes_out: 0 },
        // There is no workflow for those.
        FileEvent::PartialClose { path, bytes_in: 12, bytes_out: 0 },
        FileEvent::Open { path, target: b"files/home/alice/a.txt", mode: "CREATE|TRUNCATE|WRITE" },
        FileEvent::Delete(path),
    ] {
        world.tell(&event, "");
    }
    world.tell_of(&close, &reading);
    assert_eq!((world.executions(), world.jobs().len()), (vec![], 0));
    // Without its event there is no execution, and the other way round.
    let service = &world.fixture.service;
    let subject = Subject { writes: true, ..reading };
    let made = service.sftp_file_event(&world.session, &close, &subject, NOW * 1000).unwrap();
    assert_eq!(made.events.len(), 2);
    assert_eq!(world.executions(), Vec::<Value>::new());
    world.fixture.store.commit_and_wait(made).unwrap();
    let listed = world.executions();
    assert_eq!(listed.len(), 1);
    assert_eq!(
        listed[0]["InitialFileLocation"],
        json!({ "S3FileLocation": { "Bucket": "files", "Key": "home/alice/a.txt" } })
    );
    let user =
        json!({ "UserName": "alice", "ServerId": world.server, "SessionId": "0123456789abcdef" });
    assert_eq!(listed[0]["ServiceMetadata"]["UserDetails"], user);
    assert_eq!(listed[0]["Status"], "IN_PROGRESS");
    let names: Vec<_> =
        world.fixture.events().iter().rev().take(20).map(|e| e["eventName"].clone()).collect();
    let at = names.iter().position(|name| name == "ExecutionStarted").unwrap();
    assert_eq!(names[at + 1], "CLOSE");
    // A workflow that is attached meanwhile makes the event prepare again.
    let made = service.sftp_file_event(&world.session, &close, &subject, NOW * 1000).unwrap();
    let none = json!({ "ServerId": world.server, "WorkflowDetails": { "OnUpload": [] } });
    world.fixture.transfer("UpdateServer", none).unwrap();
    assert!(world.fixture.store.commit_and_wait(made).is_err());
    world.upload();
    assert_eq!(world.executions().len(), 1);
}

#[test]
fn a_lost_connection_begins_the_other_workflow() {
    let world = World::new(json!([tag()]), json!([]));
    let other = workflow(&world.fixture, json!([delete("${original.file}")]), json!([]));
    let attached = json!([{ "WorkflowId": other, "ExecutionRole": world.role }]);
    let update =
        json!({ "ServerId": world.server, "WorkflowDetails": { "OnPartialUpload": attached } });
    world.fixture.transfer("UpdateServer", update).unwrap();
    let path = b"/files/home/alice/a.txt";
    let partial = FileEvent::PartialClose { path, bytes_in: 12, bytes_out: 0 };
    // The client was told that this one was not stored.
    world.tell(&partial, "no space left on the disk");
    assert_eq!(world.jobs().len(), 0);
    world.tell(&partial, "");
    let job = world.job();
    assert_eq!((job.execution.workflow(), job.step.what.name()), (&*other, "DELETE"));
    world.upload();
    assert_eq!(world.job().execution.workflow(), world.workflow);
}

#[test]
fn steps_follow_one_another_and_use_what_the_ones_before_have_made() {
    let steps = json!([
        copy("${transfer:UserName}/${transfer:UploadDate}/"),
        tag(),
        custom(60),
        delete("${original.file}")
    ]);
    let world = World::new(steps, json!([tag()]));
    world.upload();
    let job = world.job();
    assert_eq!((&*job.source.bucket, &*job.source.key), ("files", "home/alice/a.txt"));
    let made = job.copy.clone().unwrap();
    assert_eq!((&*made.bucket, &*made.key), ("archive", "alice/2026-11-21/a.txt"));
    assert!(!job.is_again);
    assert!(job.rights.decide(Access::Put, "archive", b"x", world.now_ms()).is_ok());
    assert_eq!(world.execution()["Results"], json!({}));
    let job = world.ends(&job, Outcome::Done).unwrap();
    assert_eq!((job.step.what.name(), &job.source), ("TAG", &made));
    let job = world.ends(&job, Outcome::Done).unwrap();
    assert_eq!((job.step.what.name(), &*job.source.key), ("CUSTOM", "home/alice/a.txt"));
    world.called(&job);
    assert_eq!(world.execution()["Status"], "IN_PROGRESS");
    world.answer(&Who::admin(), &job, &job.token, "SUCCESS").unwrap();
    let job = world.job();
    assert_eq!((job.step.what.name(), &*job.source.key), ("DELETE", "home/alice/a.txt"));
    assert!(world.ends(&job, Outcome::Done).is_none());
    let found = world.execution();
    assert_eq!(found["Status"], "COMPLETED");
    assert_eq!(found["ExecutionRole"], world.role);
    let outputs = json!({ "state": "seen" }).to_string();
    let expected = json!([
        { "StepType": "COPY" }, { "StepType": "TAG", "Outputs": outputs }, { "StepType": "CUSTOM" }, { "StepType": "DELETE" },
    ]);
    assert_eq!(found["Results"], json!({ "Steps": expected }));
    let step = "StepCompleted";
    assert_eq!(world.events(), ["ExecutionStarted", step, step, step, step, "ExecutionCompleted"]);
    let event =
        world.fixture.events().into_iter().find(|event| event["eventName"] == step).unwrap();
    let told = &event["additionalEventData"];
    assert_eq!(
        (&told["details"]["stepType"], &told["details"]["stepName"]),
        (&json!("COPY"), &json!("copy"))
    );
    assert_eq!(told["details"]["output"]["fileLocation"]["key"], "alice/2026-11-21/a.txt");
    assert_eq!(told["transferDetails"]["username"], "alice");
    assert_eq!(world.jobs().len(), 0);
    // It is shown for a day.
    world.later(86_399);
    world.fixture.service.trust_clock();
    world.fixture.service.run_housekeeping(world.now_ms()).unwrap();
    assert_eq!(world.executions().len(), 1);
    world.later(1);
    world.fixture.service.run_housekeeping(world.now_ms()).unwrap();
    assert_eq!(world.executions().len(), 0);
}

#[test]
fn a_failure_leads_to_the_steps_for_exceptions() {
    let steps = json!([copy("x"), tag()]);
    let world = World::new(steps.clone(), json!([custom(5), delete("${previous.file}")]));
    world.upload();
    let job = world.ends(&world.job(), failed()).unwrap();
    assert_eq!(job.step.what.name(), "CUSTOM");
    assert_eq!(world.execution()["Status"], "HANDLING_EXCEPTION");
    world.called(&job);
    world.answer(&Who::admin(), &job, &job.token, "FAILURE").unwrap();
    assert_eq!(world.jobs().len(), 0, "a failure of these steps ends the execution");
    let found = world.execution();
    assert_eq!(found["Status"], "EXCEPTION");
    let copied = json!([{ "StepType": "COPY", "Error": { "Type": "NOT_FOUND", "Message": "no such file" } }]);
    assert_eq!(found["Results"]["Steps"], copied);
    assert_eq!(found["Results"]["OnExceptionSteps"][0]["Error"]["Type"], "CUSTOM_STEP_FAILED");
    assert_eq!(
        world.events(),
        ["ExecutionStarted", "StepErrored", "StepErrored", "ExecutionErrored"]
    );
    // Without steps for exceptions it ends at once.
    let world = World::new(steps, json!([]));
    world.upload();
    assert!(world.ends(&world.job(), failed()).is_none());
    assert_eq!(world.execution()["Status"], "EXCEPTION");
}

#[test]
fn a_role_that_is_not_trusted_or_may_not_does_nothing() {
    let lambda = policy(json!([{
        "Effect": "Allow", "Principal": { "Service": "lambda.amazonaws.com" }, "Action": "sts:AssumeRole",
    }]));
    let elsewhere = format!("arn:aws:transfer:{REGION}:{ACCOUNT}:workflow/w-00000000000000000");
    let elsewhere = trust(&json!({ "Condition": { "ArnLike": { "aws:SourceArn": elsewhere } } }));
    let here = format!("arn:aws:transfer:{REGION}:{ACCOUNT}:workflow/*");
    let here = trust(&json!({ "Condition": {
        "ArnLike": { "aws:SourceArn": here }, "StringEquals": { "aws:SourceAccount": ACCOUNT },
    } }));
    let all = policy(json!([{ "Effect": "Allow", "Action": "*", "Resource": "*" }]));
    let files = policy(json!([{ "Effect": "Allow", "Action": "s3:*", "Resource": "*" }]));
    for (name, trusted, policies, steps, expected) in [
        ("lambda", &lambda, vec![all.clone()], json!([tag()]), Some("trust policy")),
        ("elsewhere", &elsewhere, vec![all.clone()], json!([tag()]), Some("trust policy")),
        ("here", &here, vec![all], json!([tag()]), None),
        ("files", &here, vec![files], json!([custom(1)]), Some("lambda:InvokeFunction")),
        ("nothing", &here, vec![], json!([tag()]), None),
    ] {
        let world = World::new(steps, json!([tag()]));
        let role = world.fixture.role(ACCOUNT, name, trusted, &policies);
        let attached = json!([{ "WorkflowId": world.workflow, "ExecutionRole": role }]);
        let update =
            json!({ "ServerId": world.server, "WorkflowDetails": { "OnUpload": attached } });
        world.fixture.transfer("UpdateServer", update).unwrap();
        world.upload();
        let Some(expected) = expected else {
            let may = world.job().rights.decide(Access::PutTags, "files", b"x", world.now_ms());
            assert_eq!(may.is_ok(), name == "here", "{name}");
            continue;
        };
        let jobs = world.jobs();
        assert!(jobs.iter().all(|job| job.step.what.name() == "TAG"), "{name}");
        let error = world.execution()["Results"]["Steps"][0]["Error"].clone();
        assert_eq!(error["Type"], "PERMISSION_DENIED", "{name}");
        assert!(text(&error["Message"]).contains(expected), "{name}: {error}");
    }
    // A role that is gone.
    let world = World::new(json!([tag()]), json!([]));
    world.upload();
    world.fixture.directory(|work| {
        use outlast_domain::identity::{Entry, Role};
        Role::find(work, ACCOUNT, "workflows").unwrap().delete(work);
    });
    assert_eq!(world.jobs().len(), 0);
    let error = world.execution()["Results"]["Steps"][0]["Error"].clone();
    assert!(text(&error["Message"]).contains("there is no role"), "{error}");
}

#[test]
fn a_step_whose_server_is_gone_is_carried_out_again_and_counts_once() {
    let world = World::new(json!([copy("x"), tag()]), json!([]));
    world.upload();
    let first = world.job();
    assert_eq!(world.jobs().len(), 0, "the lease keeps others from it");
    world.later(limits::EXECUTION_LEASE_MS / 1000 - 1);
    assert!(world.fixture.service.workflow_renew(&first, world.now_ms()).unwrap());
    world.later(limits::EXECUTION_LEASE_MS / 1000 - 1);
    assert_eq!(world.jobs().len(), 0, "it was prolonged");
    world.later(1);
    let second = world.job();
    assert!(second.is_again && !first.is_again);
    assert_eq!(second.execution.id(), first.execution.id());
    // The first one comes back too late.
    assert!(!world.fixture.service.workflow_renew(&first, world.now_ms()).unwrap());
    assert!(world.ends(&first, failed()).is_none());
    assert_eq!(world.execution()["Results"], json!({}));
    let next = world.ends(&second, Outcome::Done).unwrap();
    assert!(!next.is_again);
    assert!(world.ends(&second, failed()).is_none());
    assert!(world.ends(&next, Outcome::Done).is_none());
    assert_eq!(world.execution()["Status"], "COMPLETED");
    // What could not be written was not done.
    world.upload();
    let job = world.job();
    world.fixture.store.fail_writes(true);
    let outcome = world.fixture.service.workflow_outcome(&job, &Outcome::Done, world.now_ms());
    assert!(outcome.is_err());
    world.fixture.store.fail_writes(false);
    world.fixture.store.conflict_next(2);
    assert!(world.ends(&job, Outcome::Done).is_some());
}

#[test]
fn a_token_counts_once_for_its_step_and_until_the_time_is_over() {
    let world = World::new(json!([custom(60), custom(30)]), json!([]));
    world.upload();
    let admin = Who::admin();
    let job = world.job();
    let invalid = Err("InvalidRequestException".to_owned());
    assert_eq!(world.answer(&admin, &job, &"0".repeat(64), "SUCCESS"), invalid);
    let all = world.fixture.store.scan("transfer/execution/", "", 10).unwrap();
    let token = job.token.as_bytes();
    let has_token = |value: &[u8]| value.windows(token.len()).any(|part| part == token);
    assert!(all.iter().all(|(_, record)| !has_token(&record.value)), "the token is not stored");
    // Others may not, even with the token.
    let other = world.fixture.transfer_as(&Who::stranger(), "SendWorkflowStepState", &json!({
        "WorkflowId": world.workflow, "ExecutionId": job.execution.id(), "Token": job.token, "Status": "SUCCESS",
    }));
    assert_eq!(code(other), "ResourceNotFoundException");
    let nobody = world.fixture.user(ACCOUNT, "nobody", &[]);
    assert_eq!(
        world.answer(&nobody, &job, &job.token, "SUCCESS"),
        Err("AccessDeniedException".to_owned())
    );
    let arn = job.execution.workflow_arn();
    let may = policy(
        json!([{ "Effect": "Allow", "Action": "transfer:SendWorkflowStepState", "Resource": arn }]),
    );
    let function = world.fixture.user(ACCOUNT, "function", &[may]);
    // A function may answer before its call has ended.
    world.answer(&function, &job, &job.token, "SUCCESS").unwrap();
    assert_eq!(world.answer(&function, &job, &job.token, "FAILURE"), invalid);
    world.called(&job);
    assert!(world.ends(&job, failed()).is_none());
    let next = world.job();
    assert_eq!(
        world.answer(&function, &job, &job.token, "FAILURE"),
        invalid,
        "a token of another step"
    );
    world.called(&next);
    assert_eq!(world.jobs().len(), 0, "the answer is awaited");
    world.later(30);
    assert_eq!(world.answer(&function, &next, &next.token, "SUCCESS"), invalid);
    assert_eq!(world.jobs().len(), 0);
    let found = world.execution();
    assert_eq!(found["Status"], "EXCEPTION");
    assert_eq!(found["Results"]["Steps"][1]["Error"]["Type"], "TIMEOUT");
    // A function whose server was killed is called again, and its first token is void.
    world.upload();
    let first = world.job();
    world.later(limits::EXECUTION_LEASE_MS / 1000);
    let second = world.job();
    assert!(second.is_again && second.token != first.token);
    assert_eq!(world.answer(&function, &first, &first.token, "SUCCESS"), invalid);
    world.answer(&function, &second, &second.token, "SUCCESS").unwrap();
}

#[test]
fn executions_go_on_without_their_workflow() {
    let world = World::new(json!([custom(60), tag()]), json!([]));
    world.upload();
    let job = world.job();
    world.called(&job);
    let none = json!({ "ServerId": world.server, "WorkflowDetails": { "OnUpload": [] } });
    world.fixture.transfer("UpdateServer", none).unwrap();
    let named = json!({ "WorkflowId": world.workflow });
    world.fixture.transfer("DeleteWorkflow", named.clone()).unwrap();
    assert_eq!(code(world.fixture.transfer("ListExecutions", named)), "ResourceNotFoundException");
    world.answer(&Who::admin(), &job, &job.token, "SUCCESS").unwrap();
    let next = world.job();
    assert_eq!(next.step.what.name(), "TAG");
    world.ends(&next, Outcome::Done);
    assert_eq!(world.events().last().unwrap(), "ExecutionCompleted");
}

#[test]
fn a_file_whose_name_is_no_text_is_never_taken_for_another() {
    let world = World::new(json!([delete("${original.file}")]), json!([custom(5)]));
    let path = b"/files/home/alice/\xff";
    let subject = Subject {
        target: b"files/home/alice/\xff",
        new_target: b"",
        writes: true,
        since_ms: NOW * 1000,
        why: "",
    };
    world.tell_of(&FileEvent::Close { path, bytes_in: 1, bytes_out: 0 }, &subject);
    assert_eq!(world.job().step.what.name(), "CUSTOM");
    let error = world.execution()["Results"]["Steps"][0]["Error"].clone();
    assert_eq!(error["Type"], "BAD_REQUEST");
}

#[test]
fn one_account_does_not_take_the_place_of_another() {
    let world = World::new(json!([tag()]), json!([]));
    for _ in 0..5 {
        world.upload();
    }
    let service = &world.fixture.service;
    let taken = service.workflow_jobs(world.now_ms(), 100, &|_, taken| taken < 2).unwrap();
    assert_eq!(taken.len(), 2);
    let taken = service.workflow_jobs(world.now_ms(), 1, &|_, _| true).unwrap();
    assert_eq!(taken.len(), 1);
    let taken = service.workflow_jobs(world.now_ms(), 100, &|account, _| account != ACCOUNT);
    assert!(taken.unwrap().is_empty());
}

/// A workflow has so many executions at most; those that have ended make room first.
#[test]
fn a_flood_of_uploads_begins_no_more_executions() {
    let world = World::new(json!([tag()]), json!([]));
    let prefix = format!("transfer/execution/{ACCOUNT}/{REGION}/{}/", world.workflow);
    let fill = |from: u64, to: u64| {
        let writes = (from..to).map(|number| (format!("{prefix}{number}"), Some(b"x".to_vec())));
        let tallies = vec![Tally { prefix: prefix.clone(), at_most: None }];
        let filled = Transaction { writes: writes.collect(), tallies, ..Transaction::default() };
        world.fixture.store.commit_and_wait(filled).unwrap();
    };
    let most = limits::EXECUTIONS_PER_WORKFLOW;
    let count = || world.fixture.store.count(&prefix).unwrap();
    fill(0, most / 2);
    world.upload();
    assert_eq!(count(), most / 2 + 1);
    assert!(world.ends(&world.job(), Outcome::Done).is_none());
    assert_eq!(count(), most / 2, "it is not kept");
    fill(most / 2, most - 1);
    world.upload();
    world.upload();
    assert_eq!(count(), most);
    assert_eq!(world.jobs().len(), 1);
    let events = world.events();
    assert_eq!(events.last().unwrap(), "ExecutionThrottled");
    assert_eq!(events.iter().filter(|name| *name == "ExecutionStarted").count(), 2);
}

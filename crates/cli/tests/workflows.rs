//! Workflows of `outlast server --sftp-listen`: uploads of OpenSSH's client that are copied, tagged, given to programs, and removed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver};

use outlast_api::ops::transfer::{
    create_workflow, delete_workflow, describe_execution, list_executions,
    send_workflow_step_state, update_server,
};
use outlast_testing::s3::S3;
use outlast_testing::until;
use serde_json::{Value, json};

use crate::common::peers::peer;
use crate::common::{Server, stderr};
use crate::sftp::{World, openssh, random};

const ACCOUNT: &str = "123456789012";

fn function(name: &str) -> String {
    format!("arn:aws:lambda:us-east-1:{ACCOUNT}:function:{name}")
}

/// Says by the credentials of the execution role how a step went: "SUCCESS", or "FAILURE" if the file's name has "bad" in it.
/// What it got is written down. A file that is called "slow" takes the first call until the server is gone.
const PROGRAM: &str = r#"
import json, os, sys, time
folder, ca = sys.argv[1], sys.argv[2]
event = json.load(sys.stdin)
key = event["fileLocation"]["key"]
name = key.rsplit("/", 1)[-1]
noted = os.path.join(folder, name + ".json")
is_first = not os.path.exists(noted)
with open(noted + ".new", "w") as out:
    json.dump({"event": event, "environment": sorted(os.environ)}, out)
os.rename(noted + ".new", noted)
if name == "slow" and is_first:
    time.sleep(5)
    sys.exit(0)
if name == "broken":
    sys.exit("what the program says")
import boto3
client = boto3.client("transfer", verify=ca)
details = event["serviceMetadata"]["executionDetails"]
client.send_workflow_step_state(WorkflowId=details["workflowId"], ExecutionId=details["executionId"],
    Token=event["token"], Status="FAILURE" if "bad" in name else "SUCCESS")
"#;

/// A world whose server has the function `scan`, and the folder in which it writes down what it got.
struct Scene {
    world: World,
    noted: tempfile::TempDir,
    arguments: Vec<String>,
}

impl Scene {
    fn new(tools: &Path, python: &Path) -> Self {
        let noted = tempfile::tempdir().unwrap();
        let program = noted.path().join("program.py");
        std::fs::write(&program, PROGRAM).unwrap();
        let functions = noted.path().join("functions.toml");
        // The world's folder is not known yet: the certificate is found by a link.
        let ca = noted.path().join("ca.pem");
        let words = [&python.join("bin/python"), &program, noted.path(), &ca];
        let words = words.map(|word| format!("{word:?}")).join(", ");
        let arn = function("scan");
        std::fs::write(&functions, format!("['{arn}']\nprogram = [{words}]\n")).unwrap();
        let arguments = ["--sftp-workflow-functions".to_owned(), functions.display().to_string()];
        let given: Vec<_> = arguments.iter().map(String::as_str).collect();
        let world = World::new(tools, "2026-11", &given);
        std::os::unix::fs::symlink(world.folder.data.join("client/ca.pem"), &ca).unwrap();
        world.at_home("alice", "all");
        Self { world, noted, arguments: arguments.to_vec() }
    }

    fn noted(&self, name: &str) -> Option<Value> {
        let read = std::fs::read(self.noted.path().join(format!("{name}.json")));
        read.ok().map(|bytes| serde_json::from_slice(&bytes).unwrap())
    }

    fn start_again(&mut self) {
        let mut arguments = vec!["--sftp-listen", "127.0.0.1:0"];
        arguments.extend(self.arguments.iter().map(String::as_str));
        self.world.server.kill();
        self.world.server = Server::start(&self.world.folder.data, &arguments);
    }
}

impl World {
    fn workflow(&self, steps: &Value, on_exception: &Value) -> String {
        let new = json!({ "Steps": steps, "OnExceptionSteps": on_exception });
        self.call(async |session| {
            let made = session.call::<create_workflow::CreateWorkflow>(new).await;
            made.unwrap().unwrap().workflow_id
        })
    }

    fn attach(&self, when: &str, workflow: &str, role: &str) {
        let role = format!("arn:aws:iam::{ACCOUNT}:role/{role}");
        let attached = json!({ when: [{ "WorkflowId": workflow, "ExecutionRole": role }] });
        let update = json!({ "ServerId": self.id, "WorkflowDetails": attached });
        self.call(async |session| {
            session.call::<update_server::UpdateServer>(update).await.unwrap().unwrap();
        });
    }

    /// The executions of a workflow.
    fn executions(&self, workflow: &str) -> Vec<Value> {
        self.call(async |session| {
            let named = json!({ "WorkflowId": workflow });
            let listed = session.call::<list_executions::ListExecutions>(named).await;
            let mut all = Vec::new();
            for one in listed.unwrap().unwrap().executions {
                let named = json!({ "WorkflowId": workflow, "ExecutionId": one.execution_id });
                let found = session.call::<describe_execution::DescribeExecution>(named).await;
                all.push(serde_json::to_value(found.unwrap().unwrap().execution).unwrap());
            }
            all
        })
    }

    /// Waits until the file with this name has an execution that has ended.
    fn ended(&self, workflow: &str, name: &str) -> Value {
        let mut found = Value::Null;
        until(&format!("the execution of {name} has ended"), || {
            let mut all = self.executions(workflow).into_iter();
            let key = |one: &Value| one["InitialFileLocation"]["S3FileLocation"]["Key"].clone();
            let is_over =
                |one: &Value| ["COMPLETED", "EXCEPTION"].contains(&one["Status"].as_str().unwrap());
            found = all
                .find(|one| key(one).as_str().unwrap().ends_with(name) && is_over(one))
                .unwrap_or_default();
            !found.is_null()
        });
        found
    }

    /// The names of the audit events of executions, the oldest first.
    fn told(&self) -> Vec<String> {
        let events = self.folder.events();
        let of_executions =
            |event: &&Value| event["additionalEventData"]["executionId"].is_string();
        let names = events
            .iter()
            .filter(of_executions)
            .map(|event| event["eventName"].as_str().unwrap().to_owned());
        names.collect()
    }
}

fn copy(bucket: &str, key: &str, overwrite: &str) -> Value {
    json!({ "Type": "COPY", "CopyStepDetails": {
        "Name": "copy", "OverwriteExisting": overwrite, "SourceFileLocation": "${original.file}",
        "DestinationFileLocation": { "S3FileLocation": { "Bucket": bucket, "Key": key } },
    } })
}

fn tag() -> Value {
    json!({ "Type": "TAG", "TagStepDetails": {
        "SourceFileLocation": "${previous.file}",
        "Tags": [{ "Key": "state", "Value": "seen" }, { "Key": "by", "Value": "workflow" }],
    } })
}

fn scan() -> Value {
    json!({ "Type": "CUSTOM", "CustomStepDetails": {
        "Name": "scan", "Target": function("scan"), "TimeoutSeconds": 60, "SourceFileLocation": "${original.file}",
    } })
}

fn delete() -> Value {
    json!({ "Type": "DELETE", "DeleteStepDetails": { "SourceFileLocation": "${original.file}" } })
}

fn policy(statements: &[(&str, &str)]) -> Value {
    let statement = |(action, resource): &(&str, &str)| json!({ "Effect": "Allow", "Action": action, "Resource": resource });
    json!({ "Version": "2012-10-17", "Statement": statements.iter().map(statement).collect::<Vec<_>>() })
}

/// What an execution role needs besides files.
const CALLS: [(&str, &str); 2] =
    [("lambda:InvokeFunction", "*"), ("transfer:SendWorkflowStepState", "*")];

/// The tags of a file of a folder.
fn tags(path: &Path) -> String {
    let mut value = vec![0_u8; 4096];
    match rustix::fs::getxattr(path, "user.outlast.tags", value.as_mut_slice()) {
        Ok(len) => String::from_utf8(value[..len].to_vec()).unwrap(),
        Err(_) => String::new(),
    }
}

fn tools() -> Option<(PathBuf, PathBuf)> {
    Some((openssh()?, peer("python")?))
}

#[test]
fn an_upload_is_copied_tagged_scanned_and_removed() {
    let Some((tools, python)) = tools() else { return };
    let scene = Scene::new(&tools, &python);
    let world = &scene.world;
    world.role(
        "workflows",
        &policy(
            &[&CALLS[..], &[("s3:*", "arn:aws:s3:::files/*"), ("s3:*", "arn:aws:s3:::archive/*")]]
                .concat(),
        ),
    );
    let copied = copy("archive", "${transfer:UserName}/in/", "FALSE");
    let workflow = world.workflow(&json!([copied, tag(), scan(), delete()]), &json!([]));
    world.attach("OnUpload", &workflow, "workflows");
    let content = random(3_000_000);
    world.folder.write("a.bin", &content);
    world.folder.write("empty", b"");
    world.works("alice", &["put a.bin", "put empty"]);
    let found = world.ended(&workflow, "a.bin");
    assert_eq!(found["Status"], "COMPLETED", "{found}");
    let types: Vec<_> = found["Results"]["Steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["StepType"].clone())
        .collect();
    assert_eq!(types, ["COPY", "TAG", "CUSTOM", "DELETE"]);
    let copy = world.bucket("archive/alice/in/a.bin");
    assert!(std::fs::read(&copy).unwrap() == content, "another content");
    assert_eq!(tags(&copy), "state\tseen\nby\tworkflow\n");
    assert!(!world.bucket("files/alice/a.bin").exists());
    // AWS's event, and the credentials of the role.
    let noted = scene.noted("a.bin").unwrap();
    let event = &noted["event"];
    let entity_tag = &event["fileLocation"]["eTag"];
    assert!(entity_tag.is_string(), "{event}");
    assert_eq!(
        event["fileLocation"],
        json!({
            "domain": "S3", "bucket": "files", "key": "alice/a.bin", "eTag": entity_tag, "versionId": null,
        })
    );
    let details = &event["serviceMetadata"];
    assert_eq!(
        details["executionDetails"],
        json!({ "workflowId": workflow, "executionId": found["ExecutionId"] })
    );
    assert_eq!(details["transferDetails"]["userName"], "alice");
    assert_eq!(details["transferDetails"]["serverId"], world.id);
    let environment: Vec<String> = serde_json::from_value(noted["environment"].clone()).unwrap();
    let unexpected = environment
        .iter()
        .filter(|name| !name.starts_with("AWS_") && !["PATH", "LC_CTYPE"].contains(&name.as_str()));
    assert_eq!(unexpected.count(), 0, "{environment:?}");
    // Files without content begin none.
    assert!(world.bucket("files/alice/empty").exists());
    assert_eq!(world.executions(&workflow).len(), 1);
    let step = "StepCompleted";
    assert_eq!(world.told(), ["ExecutionStarted", step, step, step, step, "ExecutionCompleted"]);
    // Nothing takes the place of a copy that may not be overwritten, and a tag stays with its content.
    world.folder.write("a.bin", b"another one");
    world.works("alice", &["put a.bin"]);
    until("the second execution has ended", || {
        world.executions(&workflow).iter().filter(|one| one["Status"] == "EXCEPTION").count() == 1
    });
    let all = world.executions(&workflow);
    let failed = all.iter().find(|one| one["Status"] == "EXCEPTION").unwrap();
    assert_eq!(failed["Results"]["Steps"][0]["Error"]["Type"], "ALREADY_EXISTS");
    assert!(std::fs::read(&copy).unwrap() == content, "the copy was replaced");
    assert!(world.bucket("files/alice/a.bin").exists());
    // A workflow in use stays.
    let refused = world.call(async |session| {
        let named = json!({ "WorkflowId": workflow });
        session.call::<delete_workflow::DeleteWorkflow>(named).await.unwrap().err().unwrap()
    });
    assert!(refused.message.contains("still in use"), "{refused}");
}

#[test]
fn what_fails_is_handled_and_a_role_reaches_only_what_it_may() {
    let Some((tools, python)) = tools() else { return };
    let scene = Scene::new(&tools, &python);
    let world = &scene.world;
    // It may not read what is below `secret`, although the user may, and writes to two buckets only.
    let mut allowed = policy(
        &[
            &CALLS[..],
            &[
                ("s3:*", "arn:aws:s3:::files/alice/*"),
                ("s3:*", "arn:aws:s3:::archive/*"),
                ("s3:PutObject", "arn:aws:s3:::quarantine/*"),
            ],
        ]
        .concat(),
    );
    let denied = json!({ "Effect": "Deny", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::files/alice/secret/*" });
    allowed["Statement"].as_array_mut().unwrap().push(denied);
    world.role("workflows", &allowed);
    let handled = json!([copy("quarantine", "", "TRUE"), delete()]);
    let workflow = world.workflow(&json!([scan(), copy("archive", "", "TRUE")]), &handled);
    world.attach("OnUpload", &workflow, "workflows");
    for name in ["good", "bad", "broken", "hidden"] {
        world.folder.write(name, name.as_bytes());
    }
    world.works(
        "alice",
        &["mkdir secret", "put good", "put bad", "put broken", "put hidden secret/hidden"],
    );
    let outcome = |name: &str| {
        let found = world.ended(&workflow, name);
        let error = |list: &str| {
            let steps = found["Results"][list].as_array().cloned().unwrap_or_default();
            steps.iter().find_map(|step| step["Error"]["Type"].as_str().map(str::to_owned))
        };
        (found["Status"].clone(), error("Steps"), error("OnExceptionSteps"))
    };
    let (failed, denied) =
        (Some("CUSTOM_STEP_FAILED".to_owned()), Some("PERMISSION_DENIED".to_owned()));
    assert_eq!(outcome("good"), (json!("COMPLETED"), None, None));
    assert_eq!(outcome("bad"), (json!("EXCEPTION"), failed.clone(), None));
    assert_eq!(outcome("broken"), (json!("EXCEPTION"), failed, None));
    assert_eq!(outcome("hidden"), (json!("EXCEPTION"), denied.clone(), denied));
    let exists = |path: &str| world.bucket(path).exists();
    assert!(exists("archive/good") && exists("files/alice/good"));
    for name in ["bad", "broken"] {
        assert!(exists(&format!("quarantine/{name}")) && !exists(&format!("files/alice/{name}")));
    }
    assert!(exists("files/alice/secret/hidden"));
    assert!(!exists("archive/hidden") && !exists("quarantine/hidden"));
    // What the program has said is nobody's but the operator's.
    let found = world.ended(&workflow, "broken");
    assert!(!found.to_string().contains("what the program says"), "{found}");
    // A copy that leads to a bucket of which the role knows nothing.
    let workflow = world.workflow(&json!([copy("elsewhere", "", "TRUE")]), &json!([]));
    world.attach("OnUpload", &workflow, "workflows");
    world.works("alice", &["put good again"]);
    let found = world.ended(&workflow, "again");
    assert_eq!(found["Results"]["Steps"][0]["Error"]["Type"], "PERMISSION_DENIED");
    assert!(!exists("elsewhere"));
}

#[test]
fn a_lost_connection_begins_a_workflow_of_its_own() {
    let Some((tools, python)) = tools() else { return };
    let scene = Scene::new(&tools, &python);
    let world = &scene.world;
    world.role("workflows", &policy(&[("s3:*", "arn:aws:s3:::*")]));
    let whole = world.workflow(&json!([tag()]), &json!([]));
    let partial = world.workflow(&json!([copy("lost", "", "TRUE"), delete()]), &json!([]));
    world.attach("OnUpload", &whole, "workflows");
    world.attach("OnPartialUpload", &partial, "workflows");
    world.folder.write("big", &random(40_000_000));
    let batch = world.folder.write("lost.batch", b"put big\n");
    let port = world.server.sftp.unwrap().to_string();
    let mut command = world.tool("sftp");
    command.args(world.options("alice")).args(["-l", "8000", "-P", &port, "-b"]).arg(batch);
    command.arg("alice@127.0.0.1").current_dir(world.folder.temporary.path());
    let mut client = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let there = world.bucket("files/alice/big");
    until("some of it is there", || there.metadata().is_ok_and(|found| found.len() > 1_000_000));
    client.kill().unwrap();
    client.wait().unwrap();
    let found = world.ended(&partial, "big");
    assert_eq!(found["Status"], "COMPLETED", "{found}");
    let lost = world.bucket("lost/big").metadata().unwrap().len();
    assert!((1_000_000..40_000_000).contains(&lost), "{lost}");
    assert!(!there.exists());
    assert!(world.executions(&whole).is_empty());
}

/// Where uploads appear when they are closed, one that is not closed never did: the file of its name is the one before.
#[test]
fn a_lost_connection_leaves_the_file_before() {
    let Some(tools) = openssh() else { return };
    let world = World::new(&tools, "2026-11", &["--sftp-atomic-uploads", "true"]);
    world.at_home("alice", "all");
    world.role("workflows", &policy(&[("s3:*", "arn:aws:s3:::*")]));
    let partial = world.workflow(&json!([delete()]), &json!([tag()]));
    world.folder.write("big", b"the one before");
    world.works("alice", &["put big"]);
    world.attach("OnPartialUpload", &partial, "workflows");
    world.folder.write("big", &random(40_000_000));
    let batch = world.folder.write("lost.batch", b"put big\n");
    let port = world.server.sftp.unwrap().to_string();
    let mut command = world.tool("sftp");
    command.args(world.options("alice")).args(["-l", "8000", "-P", &port, "-b"]).arg(batch);
    command.arg("alice@127.0.0.1").current_dir(world.folder.temporary.path());
    let mut client = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The file that is being written has no name.
    let descriptors = format!("/proc/{}/fd", world.server.child.id());
    let has_bytes = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let is_upload = std::fs::read_link(&path).is_ok_and(|at| {
            at.starts_with(world.bucket("files/alice")) && at != world.bucket("files/alice/big")
        });
        is_upload && std::fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() > 0)
    };
    until("bytes arrive", || std::fs::read_dir(&descriptors).unwrap().any(has_bytes));
    client.kill().unwrap();
    client.wait().unwrap();
    let found = world.ended(&partial, "big");
    for steps in ["Steps", "OnExceptionSteps"] {
        assert_eq!(found["Results"][steps][0]["Error"]["Type"], "NOT_FOUND", "{found}");
    }
    let there = world.bucket("files/alice/big");
    assert_eq!(std::fs::read(&there).unwrap(), b"the one before");
    assert_eq!(tags(&there), "");
}

#[test]
fn a_killed_server_loses_no_execution() {
    let Some((tools, python)) = tools() else { return };
    let mut scene = Scene::new(&tools, &python);
    let role = policy(&[&CALLS[..], &[("s3:*", "arn:aws:s3:::*")]].concat());
    scene.world.role("workflows", &role);
    let steps = json!([copy("archive", "", "FALSE"), tag(), scan(), delete()]);
    let workflow = scene.world.workflow(&steps, &json!([]));
    scene.world.attach("OnUpload", &workflow, "workflows");
    let content = random(1_000_000);
    scene.world.folder.write("a", &content);
    scene.world.folder.write("slow", &content);
    // Between the reply to the upload and everything else.
    scene.world.works("alice", &["put a"]);
    scene.start_again();
    assert_eq!(scene.world.ended(&workflow, "/a")["Status"], "COMPLETED");
    // While a program runs: it is called again, with another token.
    scene.world.works("alice", &["put slow"]);
    until("the program runs", || scene.noted("slow").is_some());
    let first = scene.noted("slow").unwrap();
    scene.start_again();
    let found = scene.world.ended(&workflow, "/slow");
    assert_eq!(found["Status"], "COMPLETED", "{found}");
    let second = scene.noted("slow").unwrap();
    assert_ne!(first["event"]["token"], second["event"]["token"]);
    for name in ["a", "slow"] {
        assert!(std::fs::read(scene.world.bucket(&format!("archive/{name}"))).unwrap() == content);
        assert!(!scene.world.bucket(&format!("files/alice/{name}")).exists());
    }
    let told = scene.world.told();
    assert_eq!(told.iter().filter(|name| *name == "ExecutionCompleted").count(), 2, "{told:?}");
    assert!(!told.contains(&"StepErrored".to_owned()), "{told:?}");
}

/// A program that is ended with its server has not failed: it is called again.
#[test]
fn a_server_that_stops_records_nothing_of_the_steps_that_run() {
    let Some((tools, python)) = tools() else { return };
    let mut scene = Scene::new(&tools, &python);
    let role = policy(&[&CALLS[..], &[("s3:*", "arn:aws:s3:::*")]].concat());
    scene.world.role("workflows", &role);
    let workflow = scene.world.workflow(&json!([scan(), delete()]), &json!([]));
    scene.world.attach("OnUpload", &workflow, "workflows");
    scene.world.folder.write("slow", b"content");
    scene.world.works("alice", &["put slow"]);
    until("the program runs", || scene.noted("slow").is_some());
    assert_eq!(scene.world.server.terminate(), Some(0));
    assert!(!scene.world.told().contains(&"StepErrored".to_owned()));
    scene.start_again();
    assert_eq!(scene.world.ended(&workflow, "/slow")["Status"], "COMPLETED");
    let told = scene.world.told();
    let step = "StepCompleted";
    assert_eq!(told, ["ExecutionStarted", step, step, "ExecutionCompleted"]);
}

/// A function at a URL, which answers nothing: the bodies of its calls.
fn endpoint() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url =
        format!("http://{}/2015-03-31/functions/far/invocations", listener.local_addr().unwrap());
    let (calls, called) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let (mut line, mut length) = (String::new(), 0);
            while stream.read_line(&mut line).unwrap() > 2 {
                let lower = line.to_lowercase();
                if let Some(value) = lower.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).unwrap();
            let answer =
                b"HTTP/1.1 202 Accepted\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
            stream.get_mut().write_all(answer).unwrap();
            if calls.send(String::from_utf8(body).unwrap()).is_err() {
                return;
            }
        }
    });
    (url, called)
}

#[test]
fn a_function_at_a_url_answers_when_it_is_ready_or_its_time_ends() {
    let Some(tools) = openssh() else { return };
    let (url, called) = endpoint();
    let place = tempfile::tempdir().unwrap();
    let functions = place.path().join("functions.toml");
    std::fs::write(&functions, format!("['{}']\nurl = '{url}'\n", function("far"))).unwrap();
    let functions = functions.display().to_string();
    let world = World::new(&tools, "2026-11", &["--sftp-workflow-functions", &functions]);
    world.at_home("alice", "all");
    world.role("workflows", &policy(&[("s3:*", "arn:aws:s3:::*"), CALLS[0]]));
    let waits = |seconds: u32| {
        let mut far = scan();
        far["CustomStepDetails"]["Target"] = function("far").into();
        far["CustomStepDetails"]["TimeoutSeconds"] = seconds.into();
        let workflow = world.workflow(&json!([far, delete()]), &json!([tag()]));
        world.attach("OnUpload", &workflow, "workflows");
        workflow
    };
    let workflow = waits(600);
    world.folder.write("a", b"content");
    world.works("alice", &["put a"]);
    let event: Value = serde_json::from_str(&called.recv().unwrap()).unwrap();
    assert_eq!(event["fileLocation"]["key"], "alice/a");
    let details = &event["serviceMetadata"]["executionDetails"];
    let answer = json!({
        "WorkflowId": details["workflowId"], "ExecutionId": details["executionId"],
        "Token": event["token"], "Status": "SUCCESS",
    });
    let send = |answer: Value| {
        world.call(async |session| {
            session
                .call::<send_workflow_step_state::SendWorkflowStepState>(answer)
                .await
                .unwrap()
                .map(drop)
        })
    };
    send(answer.clone()).unwrap();
    assert_eq!(send(answer).unwrap_err().code, "InvalidRequestException");
    assert_eq!(world.ended(&workflow, "/a")["Status"], "COMPLETED");
    assert!(!world.bucket("files/alice/a").exists());
    // Nobody answers.
    let workflow = waits(1);
    world.works("alice", &["put a b"]);
    let _ = called.recv().unwrap();
    let found = world.ended(&workflow, "/b");
    assert_eq!(found["Status"], "EXCEPTION");
    assert_eq!(found["Results"]["Steps"][0]["Error"]["Type"], "TIMEOUT");
    assert_eq!(tags(&world.bucket("files/alice/b")), "state\tseen\nby\tworkflow\n");
}

#[test]
fn files_of_s3_are_copied_and_tagged_there() {
    let Some(tools) = openssh() else { return };
    let Some(moto) = S3::moto(0) else { return };
    let (world, log, _) = World::behind(&moto, &tools);
    let _ = moto.curl(&["-X", "PUT"], "/archive");
    world.at_home("alice", "all");
    world.role("workflows", &policy(&[("s3:*", "arn:aws:s3:::*")]));
    let first =
        json!({ "Type": "TAG", "TagStepDetails": { "Tags": [{ "Key": "a", "Value": "1 + 2" }] } });
    let steps = json!([first, copy("archive", "in/", "FALSE"), delete()]);
    let workflow = world.workflow(&steps, &json!([]));
    world.attach("OnUpload", &workflow, "workflows");
    let content = random(9 << 20);
    world.folder.write("big", &content);
    let output = world.sftp("alice", &[], &["put big"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found = world.ended(&workflow, "big");
    assert_eq!(found["Status"], "COMPLETED", "{found}");
    assert!(moto.curl(&[], "/archive/in/big") == content, "another content");
    // A copy has the tags of its source, as in S3.
    let tagging = String::from_utf8(moto.curl(&[], "/archive/in/big?tagging")).unwrap();
    assert!(tagging.contains("<Key>a</Key>") && tagging.contains("1 + 2"), "{tagging}");
    assert!(!moto.keys("files").contains(&"alice/big".to_owned()));
    assert_eq!(log.count("cannot be used"), 0);
}

//! Executions of workflows: which uploads begin one, and how its steps follow one another.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use outlast_api::service::sftp::{FileEvent, Subject};
use outlast_domain::Fault;
use outlast_domain::limits;
use outlast_domain::transfer::{Access, Cause, Content, Job, Outcome};
use outlast_store::tally::Tally;
use outlast_store::{Store, StoreError, Transaction};
use serde_json::{Value, json};

use crate::common::{ACCOUNT, NOW, REGION, Who, code, policy, text};
use crate::transfer_support::trust;
use crate::workflow_support::{World, copy, custom, delete, failed, tag, workflow};

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
        is_apart: false,
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
    let rights = world.rights(&job).unwrap();
    assert!(rights.decide(Access::Put, "archive", b"x", world.now_ms()).is_ok());
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
            let rights = world.rights(&world.job()).unwrap();
            let may = rights.decide(Access::PutTags, "files", b"x", world.now_ms());
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
fn a_step_that_has_waited_may_do_what_its_role_may_then() {
    use outlast_domain::identity::{Entry, Role};
    let world = World::new(json!([tag()]), json!([]));
    world.upload();
    let job = world.job();
    let may = || -> Result<bool, Cause> {
        let rights = world.rights(&job).map_err(|error| error.cause)?;
        Ok(rights.decide(Access::PutTags, "files", b"x", world.now_ms()).is_ok())
    };
    assert_eq!(may(), Ok(true));
    let none = policy(json!([{ "Effect": "Deny", "Action": "s3:*", "Resource": "*" }])).to_string();
    world.fixture.directory(|work| {
        let role = Role::find(work, ACCOUNT, "workflows").unwrap();
        role.put_policy(work, "none", &none).unwrap();
    });
    assert_eq!(may(), Ok(false));
    world.fixture.directory(|work| Role::find(work, ACCOUNT, "workflows").unwrap().delete(work));
    assert_eq!(may(), Err(Cause::PermissionDenied));
}

/// The lease of a function's step ends with the answer, which its own program gives: that one is not ended.
#[test]
fn a_program_that_has_answered_is_left_alone() {
    let world = World::new(json!([custom(60), tag()]), json!([]));
    let renews = |job: &Job| world.fixture.service.workflow_renew(job, world.now_ms()).unwrap();
    world.upload();
    let job = world.job();
    assert!(renews(&job));
    world.answer(&Who::admin(), &job, &job.token, "SUCCESS").unwrap();
    assert!(renews(&job));
    let next = world.job();
    assert!(renews(&job) && renews(&next));
    world.ends(&next, Outcome::Done);
    assert!(renews(&job) && !renews(&next));
    // One that is called again was too slow.
    world.upload();
    let slow = world.job();
    world.later(limits::EXECUTION_LEASE_MS / 1000);
    let again = world.job();
    assert!(!renews(&slow) && renews(&again));
    assert_eq!((slow.tries, again.tries), (0, 1));
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

/// The server is read first. If the workflow is detached and deleted before that is read, too, the event is prepared again.
#[test]
fn a_workflow_that_is_deleted_while_an_upload_ends_is_a_conflict() {
    let world = World::new(json!([tag()]), json!([]));
    let record_key = |kind: &str, id: &str| format!("transfer/{kind}/{ACCOUNT}/{REGION}/{id}");
    let server = record_key("server", &world.server);
    let workflow = record_key("workflow", &world.workflow);
    let (service, store) = (&world.fixture.service, &world.fixture.store);
    let close = FileEvent::Close { path: b"/files/home/alice/a.txt", bytes_in: 12, bytes_out: 0 };
    let subject = Subject {
        target: b"files/home/alice/a.txt",
        new_target: b"",
        writes: true,
        since_ms: NOW * 1000,
        why: "",
        is_apart: false,
    };
    let event = || service.sftp_file_event(&world.session, &close, &subject, NOW * 1000).map(drop);
    assert_eq!(event(), Ok(()));
    let (deleted, mut is_deleted) = (workflow.clone(), false);
    store.after_reads(Some(Box::new(move |store, read| {
        if read == server && !is_deleted {
            is_deleted = true;
            let value = store.read(&server).unwrap().unwrap().value;
            let writes = vec![(server.clone(), Some(value)), (deleted.clone(), None)];
            store.commit_and_wait(Transaction { writes, ..Transaction::default() }).unwrap();
        }
    })));
    assert_eq!(event(), Err(Fault::Store(StoreError::Conflict)));
    // A server that still names it is damaged.
    assert_eq!(event(), Err(Fault::Damaged(workflow)));
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
        is_apart: false,
    };
    world.tell_of(&FileEvent::Close { path, bytes_in: 1, bytes_out: 0 }, &subject);
    // A function would be told of another key.
    assert!(world.jobs().is_empty());
    let execution = world.execution();
    assert_eq!(execution["Status"], "EXCEPTION");
    for steps in ["Steps", "OnExceptionSteps"] {
        assert_eq!(execution["Results"][steps][0]["Error"]["Type"], "BAD_REQUEST");
    }
}

#[test]
fn a_step_that_is_repeated_concerns_the_content_of_the_first_time() {
    let world = World::new(json!([custom(30), copy("kept"), tag()]), json!([]));
    world.upload();
    let job = world.job();
    assert!(job.content.get().is_none());
    let service = &world.fixture.service;
    let tag = |text: &str| Content::Tag(text.to_owned());
    assert!(service.workflow_pin(&job, &tag("one"), world.now_ms()).unwrap());
    world.later(60);
    // The server was killed; another file has the name now, and this server does not look again.
    let again = world.job();
    assert_eq!(again.content.get(), Some(&tag("one")));
    assert!(!service.workflow_pin(&job, &tag("two"), world.now_ms()).unwrap());
    let next = world.ends(&again, Outcome::Done).unwrap();
    assert_eq!(next.content.get(), Some(&tag("one")));
    // What is tagged is the copy.
    let next = world.ends(&next, Outcome::Copied(tag("copy"))).unwrap();
    assert_eq!((next.source.key.as_str(), next.content.get()), ("kept", Some(&tag("copy"))));
}

#[test]
fn an_upload_that_never_appeared_is_no_file() {
    let world = World::new(json!([tag()]), json!([]));
    let role = world.role.clone();
    let attached = json!([{ "WorkflowId": world.workflow, "ExecutionRole": role }]);
    let update =
        json!({ "ServerId": world.server, "WorkflowDetails": { "OnPartialUpload": attached } });
    world.fixture.transfer("UpdateServer", update).unwrap();
    let event = FileEvent::PartialClose { path: b"/a", bytes_in: 12, bytes_out: 0 };
    for (is_apart, expected) in [(true, Some(Content::Absent)), (false, None)] {
        let target = b"files/a";
        let subject = Subject {
            target,
            new_target: b"",
            writes: true,
            since_ms: NOW * 1000,
            why: "",
            is_apart,
        };
        world.tell_of(&event, &subject);
        let job = world.job();
        assert_eq!(job.content.get(), expected.as_ref());
        world.ends(&job, Outcome::Done);
    }
}

#[test]
fn executions_take_turns() {
    let world = World::new(json!([tag()]), json!([]));
    for _ in 0..3 {
        world.upload();
    }
    let service = &world.fixture.service;
    let mut seen = std::collections::BTreeSet::new();
    // Each server that takes one is killed, so that its step is due again before the next search.
    for _ in 0..3 {
        let taken = service.workflow_jobs(world.now_ms(), 1, &|_, _| true).unwrap();
        seen.extend(taken.iter().map(|job| job.execution.id().to_owned()));
        world.later(60);
    }
    assert_eq!(seen.len(), 3);
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

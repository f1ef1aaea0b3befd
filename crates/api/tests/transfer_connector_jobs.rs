//! Jobs of connectors: leases, results, limits and ends. The runner is this test.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use std::sync::Arc;

use outlast_api::service::{Room, Service};
use outlast_crypto::Secret;
use outlast_domain::identity::{Entry, Role};
use outlast_domain::seal::{RootKey, SoftwareKek};
use outlast_domain::transfer::Access;
use outlast_domain::transfer::connector::{
    Failure, FailureCode, FileOutcome, FileTask, Finish, Job, Refused, Task,
};
use outlast_domain::{audit, identity, limits};
use outlast_store::Store;
use outlast_store::faulty::FaultyStore;
use outlast_store::memory::MemoryStore;
use serde_json::{Value, json};

use crate::common::{
    self, ACCESS_KEY, ACCOUNT, Fixture, NOW, REGION, SECRET, Shared, client, code, with,
};
use crate::transfer_support::{connector_role, key, trust};

const LEASE: i64 = limits::CONNECTOR_LEASE_MS / 1000;
const HOUR: i64 = 3600;
const DAY: i64 = 86_400;

fn now_ms(fixture: &Fixture) -> i64 {
    fixture.now.get() * 1000
}

fn due(fixture: &Fixture) -> Vec<Job> {
    fixture.service.connector_jobs(&|| now_ms(fixture), &Room::of(10)).unwrap()
}

#[track_caller]
fn one(fixture: &Fixture) -> Job {
    let mut jobs = due(fixture);
    assert_eq!(jobs.len(), 1, "{jobs:?}");
    jobs.pop().unwrap()
}

fn file(fixture: &Fixture, job: &Job, index: usize, result: Result<u64, Failure>) -> bool {
    let outcome = FileOutcome { index, began_ms: now_ms(fixture) - 1000, result };
    fixture.service.connector_file(job, &outcome, now_ms(fixture)).unwrap()
}

fn ended(fixture: &Fixture, job: &Job, result: Result<Finish, Failure>) -> bool {
    fixture.service.connector_ended(job, &result, now_ms(fixture)).unwrap()
}

/// What the results of a transfer say: path, status, code.
fn results(fixture: &Fixture, connector: &str, transfer: &str) -> Vec<(String, String, String)> {
    let body = json!({ "ConnectorId": connector, "TransferId": transfer });
    let listed = fixture.transfer("ListFileTransferResults", body).unwrap();
    let told = |one: &Value, name: &str| one[name].as_str().unwrap_or_default().to_owned();
    let all = listed["FileTransferResults"].as_array().unwrap().iter();
    all.map(|one| (told(one, "FilePath"), told(one, "StatusCode"), told(one, "FailureCode")))
        .collect()
}

fn row(path: &str, status: &str, code: &str) -> (String, String, String) {
    (path.to_owned(), status.to_owned(), code.to_owned())
}

/// The events of connectors' work, by name.
fn worked(fixture: &Fixture, name: &str) -> Vec<Value> {
    fixture.events().into_iter().filter(|event| event["eventName"] == name).collect()
}

#[test]
fn files_are_sent_and_each_has_its_result() {
    let fixture = Fixture::new();
    let role = connector_role(&fixture, "files");
    let id = fixture.connector(&role, json!({}));
    let body = json!({
        "ConnectorId": id, "SendFilePaths": ["/files/a.txt", "files/deep/b.txt"], "RemoteDirectoryPath": "in",
    });
    let answer = fixture.transfer("StartFileTransfer", body).unwrap();
    let transfer = common::text(&answer["TransferId"]).to_owned();
    let (a, b) = ("/files/a.txt", "files/deep/b.txt");
    assert_eq!(results(&fixture, &id, &transfer), [row(a, "QUEUED", ""), row(b, "QUEUED", "")]);

    let job = one(&fixture);
    let task = |path: &str| FileTask { path: path.to_owned(), is_done: false };
    assert_eq!((job.id.as_str(), job.connector_id.as_str()), (transfer.as_str(), id.as_str()));
    let expected = Task::Send {
        files: vec![task("/files/a.txt"), task("/files/deep/b.txt")],
        to: Some("in".to_owned()),
    };
    assert_eq!(job.task, expected);
    assert_eq!(due(&fixture), [], "somebody has it");
    assert_eq!(results(&fixture, &id, &transfer)[0], row(a, "IN_PROGRESS", ""));

    let (endpoint, account) = fixture.service.connector_open(&job, now_ms(&fixture)).unwrap();
    assert_eq!((endpoint.host.as_str(), endpoint.port), ("sftp.example.com", 2222));
    assert_eq!((endpoint.user.as_str(), endpoint.max_connections), ("outlast", 1));
    assert_eq!(endpoint.private_key.unwrap().expose(), b"tell-tale-key");
    assert_eq!(endpoint.password.unwrap().expose(), b"tell-tale-password");
    assert_eq!(endpoint.trusted_host_keys, [key(9)]);
    assert_eq!(endpoint.security_policy, "TransferSecurityPolicy-2025-03");
    assert_eq!(
        (account.user_arn.as_str(), account.role_arn.as_str()),
        (job.connector_arn.as_str(), role.as_str())
    );
    let may =
        |bucket, access| account.rights.decide(access, bucket, b"a.txt", now_ms(&fixture)).is_ok();
    assert!(may("files", Access::Get) && may("files", Access::Put) && !may("other", Access::Get));

    assert!(file(&fixture, &job, 0, Ok(17)));
    assert_eq!(
        results(&fixture, &id, &transfer),
        [row(a, "COMPLETED", ""), row(b, "IN_PROGRESS", "")]
    );
    let sent = worked(&fixture, "FileSend");
    assert_eq!(sent.len(), 1);
    let told = &sent[0]["additionalEventData"];
    assert_eq!(
        (&told["bytes"], &told["file-path"], &told["status-code"]),
        (&json!(17), &json!(a), &json!("COMPLETED"))
    );
    assert_eq!((&told["transfer-id"], &told["access-role"]), (&json!(transfer), &json!(role)));
    assert_eq!(sent[0]["resources"][0]["ARN"], json!(job.connector_arn));
    // A second result of a file changes nothing.
    let denied = Failure::new(FailureCode::WriteFile, "no\u{1b}[0m\nspace");
    assert!(file(&fixture, &job, 0, Err(denied.clone())));
    assert_eq!(worked(&fixture, "FileSend").len(), 1);

    assert!(file(&fixture, &job, 1, Err(denied)));
    assert!(ended(&fixture, &job, Ok(Finish::Done)));
    let all = [row(a, "COMPLETED", ""), row(b, "FAILED", "WRITE_FILE_ERROR")];
    assert_eq!(results(&fixture, &id, &transfer), all);
    let page = json!({ "ConnectorId": id, "TransferId": transfer, "MaxResults": 1 });
    let first = fixture.transfer("ListFileTransferResults", page.clone()).unwrap();
    let next = with(&page, json!({ "NextToken": first["NextToken"] }));
    let second = fixture.transfer("ListFileTransferResults", next).unwrap();
    let told = &second["FileTransferResults"][0];
    assert_eq!((&told["FilePath"], &told["FailureMessage"]), (&json!(b), &json!("no [0m space")));
    assert_eq!(second.get("NextToken"), None);
    // It is over.
    assert!(!file(&fixture, &job, 1, Ok(1)) && !ended(&fixture, &job, Ok(Finish::Done)));
    assert!(!fixture.service.connector_renew(&job, now_ms(&fixture)).unwrap());
    fixture.advance(DAY);
    assert_eq!(due(&fixture), []);
    let trail = serde_json::to_string(&fixture.events()).unwrap();
    assert!(!trail.contains("tell-tale"));
}

#[test]
fn other_jobs_have_their_tasks_and_ends() {
    let fixture = Fixture::new();
    let id = fixture.connector(&connector_role(&fixture, "files"), json!({}));
    let of = json!({ "ConnectorId": id });
    let start = |operation: &str, more: Value| {
        fixture.advance(1);
        fixture.transfer(operation, with(&of, more)).unwrap()
    };
    let retrieve =
        json!({ "RetrieveFilePaths": ["/out/x", "y"], "LocalDirectoryPath": "/files/in/" });
    let retrieve = start("StartFileTransfer", retrieve)["TransferId"].clone();
    let list = json!({ "RemoteDirectoryPath": "/out", "OutputDirectoryPath": "files/lists", "MaxItems": 7 });
    let list = start("StartDirectoryListing", list);
    let delete = start("StartRemoteDelete", json!({ "DeletePath": "/out/x" }))["DeleteId"].clone();
    let moved = json!({ "SourcePath": "/out/y", "TargetPath": "/done/y" });
    let moved = start("StartRemoteMove", moved)["MoveId"].clone();
    let name = format!("{id}-{}.json", common::text(&list["ListingId"]));
    assert_eq!(list["OutputFileName"], json!(name));

    // The connector has one connection: one after the other, in the order of the requests.
    let task = |path: &str| FileTask { path: path.to_owned(), is_done: false };
    let job = one(&fixture);
    assert_eq!(json!(job.id), retrieve);
    assert_eq!(
        job.task,
        Task::Retrieve { files: vec![task("/out/x"), task("y")], to: "/files/in".into() }
    );
    file(&fixture, &job, 0, Ok(5));
    file(&fixture, &job, 1, Err(Failure::new(FailureCode::RetrieveFileNotFound, "no such file")));
    assert!(ended(&fixture, &job, Ok(Finish::Done)));
    let told =
        worked(&fixture, "FileRetrieve")[0]["additionalEventData"]["local-file-location"].clone();
    assert_eq!(told, json!({ "domain": "S3", "bucket": "files", "key": "in/x" }));

    let job = one(&fixture);
    let output = format!("/files/lists/{name}");
    assert_eq!(job.task, Task::List { from: "/out".into(), max_items: 7, output });
    assert!(ended(&fixture, &job, Ok(Finish::Listed { items: 7, is_truncated: true })));
    let told = worked(&fixture, "DirectoryListing")[0]["additionalEventData"].clone();
    assert_eq!((&told["item-count"], &told["truncated"]), (&json!(7), &json!(true)));
    assert_eq!(told["output-file-location"]["key"], json!(format!("lists/{name}")));

    let job = one(&fixture);
    assert_eq!((json!(job.id), &job.task), (delete, &Task::Delete { path: "/out/x".into() }));
    let failure = Failure::new(FailureCode::FileNotFound, "no such file");
    assert!(ended(&fixture, &job, Err(failure)));
    let told = worked(&fixture, "RemoteDelete")[0]["additionalEventData"].clone();
    assert_eq!(
        (&told["failure-code"], &told["delete-path"]),
        (&json!("FILE_NOT_FOUND"), &json!("/out/x"))
    );

    let job = one(&fixture);
    let expected = Task::Move { from: "/out/y".into(), to: "/done/y".into() };
    assert_eq!((json!(job.id), &job.task), (moved.clone(), &expected));
    assert!(ended(&fixture, &job, Ok(Finish::Done)));
    let told = worked(&fixture, "RemoteMove")[0]["additionalEventData"].clone();
    assert_eq!(
        (&told["source-path"], &told["status-code"]),
        (&json!("/out/y"), &json!("COMPLETED"))
    );
    // What is no transfer has no results of files.
    let body = with(&of, json!({ "TransferId": moved }));
    assert_eq!(
        code(fixture.transfer("ListFileTransferResults", body)),
        "ResourceNotFoundException"
    );
    assert_eq!(due(&fixture), []);
}

#[test]
fn a_failure_of_a_job_is_that_of_its_open_files() {
    let fixture = Fixture::new();
    let id = fixture.connector(&connector_role(&fixture, "files"), json!({}));
    let transfer = fixture.send_files(&id, &["/files/a", "/files/b"]);
    let job = one(&fixture);
    file(&fixture, &job, 0, Ok(1));
    assert!(ended(&fixture, &job, Err(Failure::new(FailureCode::Connection, "lost"))));
    let all = [row("/files/a", "COMPLETED", ""), row("/files/b", "FAILED", "CONNECTION_ERROR")];
    assert_eq!(results(&fixture, &id, &transfer), all);
    // A runner that forgets a file does not make it a success.
    let transfer = fixture.send_files(&id, &["/files/c"]);
    assert!(ended(&fixture, &one(&fixture), Ok(Finish::Done)));
    assert_eq!(results(&fixture, &id, &transfer), [row("/files/c", "FAILED", "INTERNAL_ERROR")]);
}

#[test]
fn a_lost_lease_is_lost_and_the_job_goes_on_elsewhere() {
    let fixture = Fixture::new();
    let id = fixture.connector(&connector_role(&fixture, "files"), json!({}));
    let transfer = fixture.send_files(&id, &["/files/a", "/files/b"]);
    let first = one(&fixture);
    assert!(file(&fixture, &first, 0, Ok(1)));
    fixture.advance(LEASE - 1);
    assert!(fixture.service.connector_renew(&first, now_ms(&fixture)).unwrap());
    fixture.advance(LEASE - 1);
    assert_eq!(due(&fixture), [], "it was renewed");
    fixture.advance(1);
    let second = one(&fixture);
    let Task::Send { files, .. } = &second.task else { panic!("{second:?}") };
    assert_eq!(files.iter().map(|file| file.is_done).collect::<Vec<_>>(), [true, false]);
    assert!(!fixture.service.connector_renew(&first, now_ms(&fixture)).unwrap());
    assert!(!file(&fixture, &first, 1, Ok(99)), "whose lease is lost records nothing");
    assert!(!ended(&fixture, &first, Ok(Finish::Done)));
    let lost = fixture.service.connector_open(&first, now_ms(&fixture)).err().unwrap();
    assert!(matches!(lost, Refused::Lost), "{lost}");
    assert_eq!(results(&fixture, &id, &transfer)[1], row("/files/b", "IN_PROGRESS", ""));
    assert!(file(&fixture, &second, 1, Ok(2)) && ended(&fixture, &second, Ok(Finish::Done)));
    assert_eq!(worked(&fixture, "FileSend").len(), 2);
}

/// As sessions of users do.
#[test]
fn a_job_is_not_kept_without_its_role() {
    let fixture = Fixture::new();
    let (role, other) = (connector_role(&fixture, "files"), connector_role(&fixture, "others"));
    let id = fixture.connector(&role, json!({}));
    fixture.send_files(&id, &["/files/a"]);
    let renew = |job: &Job| fixture.service.connector_renew(job, now_ms(&fixture)).unwrap();
    let job = one(&fixture);
    for (effect, expected) in [("Allow", true), ("Deny", false), ("Allow", true)] {
        let trust = trust(&json!({ "Effect": effect })).to_string();
        fixture.directory(|work| {
            Role::find(work, ACCOUNT, "files").unwrap().put_trust(work, &trust).unwrap();
        });
        assert_eq!(renew(&job), expected, "{effect}");
    }
    let change = json!({ "ConnectorId": id, "AccessRole": other });
    fixture.transfer("UpdateConnector", change).unwrap();
    assert!(!renew(&job), "it runs with the rights of the other one");
    fixture.advance(LEASE);
    let job = one(&fixture);
    assert!(renew(&job));
    fixture.directory(|work| Role::find(work, ACCOUNT, "others").unwrap().delete(work));
    assert!(!renew(&job));
    // The next holder gives it a result.
    fixture.advance(LEASE);
    let refused = fixture.service.connector_open(&one(&fixture), now_ms(&fixture)).err().unwrap();
    let Refused::Failure(failure) = refused else { panic!("{refused}") };
    assert_eq!(failure.code, FailureCode::AssumeRole);
}

#[test]
fn what_may_have_been_done_is_not_done_again() {
    let fixture = Fixture::new();
    let id = fixture.connector(&connector_role(&fixture, "files"), json!({}));
    for (operation, more) in [
        ("StartRemoteDelete", json!({ "DeletePath": "/x" })),
        ("StartRemoteMove", json!({ "SourcePath": "/x", "TargetPath": "/y" })),
    ] {
        fixture.transfer(operation, with(&json!({ "ConnectorId": id }), more)).unwrap();
        let job = one(&fixture);
        fixture.advance(LEASE);
        assert_eq!(due(&fixture), [], "{operation}");
        assert!(!ended(&fixture, &job, Ok(Finish::Done)));
        let event = fixture.events().pop().unwrap();
        assert_eq!(event["additionalEventData"]["failure-code"], "INTERNAL_ERROR");
        let says = common::text(&event["additionalEventData"]["failure-message"]).to_owned();
        assert!(says.contains("look at the remote server"), "{says}");
    }
}

#[test]
fn a_job_has_its_time_and_its_attempts() {
    let fixture = Fixture::new();
    let id = fixture.connector(&connector_role(&fixture, "files"), json!({}));
    let waited = fixture.send_files(&id, &["/files/a"]);
    fixture.advance(12 * HOUR);
    assert_eq!(due(&fixture), []);
    assert_eq!(results(&fixture, &id, &waited), [row("/files/a", "FAILED", "TIMEOUT_ERROR")]);

    let long = fixture.send_files(&id, &["/files/b"]);
    let job = one(&fixture);
    for _ in 0..12 * HOUR / (LEASE / 2) - 1 {
        fixture.advance(LEASE / 2);
        assert!(fixture.service.connector_renew(&job, now_ms(&fixture)).unwrap());
    }
    fixture.advance(LEASE / 2);
    assert!(!fixture.service.connector_renew(&job, now_ms(&fixture)).unwrap(), "12 hours");
    fixture.advance(LEASE);
    assert_eq!(due(&fixture), []);
    assert_eq!(results(&fixture, &id, &long), [row("/files/b", "FAILED", "TIMEOUT_ERROR")]);

    let fatal = fixture.send_files(&id, &["/files/c"]);
    for attempt in 0..5 {
        assert_eq!(due(&fixture).len(), 1, "{attempt}");
        fixture.advance(LEASE);
    }
    assert_eq!(due(&fixture), []);
    assert_eq!(results(&fixture, &id, &fatal), [row("/files/c", "FAILED", "INTERNAL_ERROR")]);
}

#[test]
fn connections_are_shared_among_jobs() {
    let fixture = Fixture::new();
    let role = connector_role(&fixture, "files");
    let most = json!({ "MaxConcurrentConnections": 5 });
    let id = fixture.connector(&role, json!({}));
    fixture.transfer("UpdateConnector", json!({ "ConnectorId": id, "SftpConfig": most })).unwrap();
    let three = ["/files/a", "/files/b", "/files/c"];
    for _ in 0..3 {
        fixture.send_files(&id, &three);
    }
    let other = fixture.connector(&role, json!({}));
    for _ in 0..20 {
        fixture.send_files(&other, &three);
    }
    let jobs = due(&fixture);
    let mut shares: Vec<_> = jobs
        .iter()
        .map(|job| {
            let (endpoint, _) = fixture.service.connector_open(job, now_ms(&fixture)).unwrap();
            (job.connector_id == id, endpoint.max_connections)
        })
        .collect();
    shares.sort_unstable();
    assert_eq!(shares, [(false, 1), (true, 2), (true, 3)]);
    assert_eq!(due(&fixture), [], "both are full");
    // A busy connector does not keep another one waiting, when the server has room for one job only.
    let mine = jobs.iter().find(|job| job.connector_id == other).unwrap();
    assert!(ended(&fixture, mine, Ok(Finish::Done)));
    for job in jobs.iter().filter(|job| job.connector_id == id) {
        assert!(ended(&fixture, job, Ok(Finish::Done)));
    }
    fixture.send_files(&id, &three);
    let mut turns = Vec::new();
    for _ in 0..3 {
        let taken = fixture.service.connector_jobs(&|| now_ms(&fixture), &Room::of(1)).unwrap();
        assert_eq!(taken.len(), 1);
        turns.push(taken[0].connector_id.clone());
        assert!(ended(&fixture, &taken[0], Ok(Finish::Done)));
    }
    assert!(turns.contains(&id) && turns.contains(&other), "{turns:?}");
    assert_eq!(fixture.service.connector_jobs(&|| now_ms(&fixture), &Room::of(0)).unwrap(), []);
}

#[test]
fn servers_that_search_at_once_do_not_take_the_same_job() {
    let fixture = Fixture::new();
    let role = connector_role(&fixture, "files");
    let most = json!({ "MaxConcurrentConnections": 5 });
    let id = fixture.connector(&role, json!({}));
    fixture.transfer("UpdateConnector", json!({ "ConnectorId": id, "SftpConfig": most })).unwrap();
    for _ in 0..10 {
        fixture.send_files(&id, &["/files/a"]);
    }
    let (service, now_ms) = (&fixture.service, now_ms(&fixture));
    let mut taken: Vec<_> = std::thread::scope(|scope| {
        let one = || scope.spawn(|| service.connector_jobs(&|| now_ms, &Room::of(10)).unwrap());
        let searches: Vec<_> = (0..4).map(|_| one()).collect();
        searches.into_iter().flat_map(|search| search.join().unwrap()).map(|job| job.id).collect()
    });
    // One that was beaten to a job tries again at its next search.
    taken.extend(
        service.connector_jobs(&|| now_ms, &Room::of(10)).unwrap().into_iter().map(|job| job.id),
    );
    assert_eq!(taken.len(), 5, "MaxConcurrentConnections holds");
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), 5, "nobody has the job of another");
}

/// A server on the store, always with the same root key.
fn server(store: &Arc<FaultyStore<MemoryStore>>, now: i64) -> Fixture {
    let kek = SoftwareKek::from_key(Secret::new(vec![7; 32])).unwrap();
    Fixture {
        service: Service::new(Arc::new(Shared(store.clone())), RootKey::new(Box::new(kek))),
        store: store.clone(),
        client: client(ACCESS_KEY, REGION),
        now: std::cell::Cell::new(now),
    }
}

#[test]
fn jobs_outlive_the_server() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let fixture = server(&store, NOW);
    let mut work = fixture.service.work(NOW * 1000);
    audit::establish(&mut work, "log.example/connectors").unwrap();
    let secret = Secret::new(SECRET.to_vec());
    identity::create_administrator(&mut work, ACCOUNT, "admin", Some(ACCESS_KEY.into()), &secret)
        .unwrap();
    store.commit_and_wait(work.into_first_transaction()).unwrap();
    let id = fixture.connector(&connector_role(&fixture, "files"), json!({}));
    let transfer = fixture.send_files(&id, &["/files/a", "/files/b"]);
    let job = one(&fixture);
    assert!(file(&fixture, &job, 0, Ok(1)));
    // Nothing of a job is in memory: another service on the same store has it all.
    let before = fixture.store.scan("transfer/", "", 100).unwrap().len();
    fixture.advance(LEASE);
    let fixture = server(&store, fixture.now.get());
    let again = one(&fixture);
    let Task::Send { files, .. } = &again.task else { panic!("{again:?}") };
    assert!(files[0].is_done && !files[1].is_done);
    assert!(file(&fixture, &again, 1, Ok(1)) && ended(&fixture, &again, Ok(Finish::Done)));
    assert_eq!(results(&fixture, &id, &transfer)[1], row("/files/b", "COMPLETED", ""));
    assert_eq!(
        fixture.store.scan("transfer/", "", 100).unwrap().len(),
        before - 2,
        "lease and note"
    );
}

#[test]
fn a_commit_that_fails_records_nothing() {
    let fixture = Fixture::new();
    let id = fixture.connector(&connector_role(&fixture, "files"), json!({}));
    let transfer = fixture.send_files(&id, &["/files/a"]);
    let job = one(&fixture);
    let outcome = FileOutcome { index: 0, began_ms: 0, result: Ok(1) };
    fixture.store.fail_writes(true);
    assert!(fixture.service.connector_file(&job, &outcome, now_ms(&fixture)).is_err());
    let opened = fixture.service.connector_open(&job, now_ms(&fixture));
    // No value without its event, and no result: the store may be written again soon.
    assert!(matches!(opened.err().unwrap(), Refused::Fault(_)));
    fixture.store.fail_writes(false);
    assert_eq!(worked(&fixture, "FileSend").len(), 0);
    assert!(file(&fixture, &job, 0, Ok(1)));
    assert_eq!(results(&fixture, &id, &transfer)[0], row("/files/a", "COMPLETED", ""));
}

#[test]
fn results_go_after_a_week() {
    let fixture = Fixture::new();
    let id = fixture.connector(&connector_role(&fixture, "files"), json!({}));
    let transfer = fixture.send_files(&id, &["/files/a"]);
    let job = one(&fixture);
    assert!(file(&fixture, &job, 0, Ok(1)) && ended(&fixture, &job, Ok(Finish::Done)));
    let kept = || fixture.store.scan("transfer/connector-job/", "", 10).unwrap().len();
    fixture.advance(7 * DAY - 1);
    fixture.run_housekeeping();
    assert_eq!((results(&fixture, &id, &transfer).len(), kept()), (1, 1));
    fixture.advance(1);
    let body = json!({ "ConnectorId": id, "TransferId": transfer });
    assert_eq!(
        code(fixture.transfer("ListFileTransferResults", body)),
        "ResourceNotFoundException"
    );
    fixture.run_housekeeping();
    assert_eq!(kept(), 0);
}

#[test]
fn a_deleted_connector_takes_its_jobs_along() {
    let fixture = Fixture::new();
    let id = fixture.connector(&connector_role(&fixture, "files"), json!({}));
    // Those of one moment are taken in no order.
    let sent = [(); 2].map(|()| fixture.send_files(&id, &["/files/a", "/files/c"]));
    let job = one(&fixture);
    let (running, others): (Vec<_>, Vec<_>) = sent.iter().partition(|sent| **sent == job.id);
    let (running, waiting) = (running[0], others[0]);
    assert!(file(&fixture, &job, 0, Ok(1)));
    fixture.transfer("DeleteConnector", json!({ "ConnectorId": id })).unwrap();
    // What ran may have been done: that is told. What has not begun was not.
    let mut told = worked(&fixture, "FileSend");
    assert_eq!(told.len(), 2);
    let told = told.pop().unwrap();
    let more = &told["additionalEventData"];
    assert_eq!(more["transfer-id"], running.as_str());
    assert_eq!((&more["file-path"], &more["status-code"]), (&json!("/files/c"), &json!("FAILED")));
    let says = common::text(&more["failure-message"]);
    assert!(says.contains("deleted") && says.contains("may have been done"), "{says}");
    assert!(!fixture.service.connector_renew(&job, now_ms(&fixture)).unwrap());
    assert!(!file(&fixture, &job, 0, Ok(1)) && !ended(&fixture, &job, Ok(Finish::Done)));
    let body = json!({ "ConnectorId": id, "TransferId": waiting });
    assert_eq!(
        code(fixture.transfer("ListFileTransferResults", body)),
        "ResourceNotFoundException"
    );
    assert_eq!(due(&fixture), []);
    let left: Vec<_> = fixture.store.scan("transfer/connector", "", 10).unwrap();
    assert_eq!(
        left.len(),
        0,
        "{:?}",
        left.iter().map(|(record_key, _)| record_key).collect::<Vec<_>>()
    );
}

/// A job whose server has died, and which waits for the next one.
#[test]
fn a_deleted_connector_tells_of_a_job_that_was_interrupted() {
    let fixture = Fixture::new();
    let id = fixture.connector(&connector_role(&fixture, "files"), json!({}));
    let of = json!({ "ConnectorId": id });
    let delete = with(&of, json!({ "DeletePath": "/x" }));
    fixture.transfer("StartRemoteDelete", delete).unwrap();
    let job = one(&fixture);
    fixture.send_files(&id, &["/files/never-begun"]);
    fixture.advance(LEASE);
    fixture.transfer("DeleteConnector", of).unwrap();
    let told = worked(&fixture, "RemoteDelete");
    let [told] = &told[..] else { panic!("{told:?}") };
    let says = common::text(&told["additionalEventData"]["failure-message"]);
    assert!(says.contains("deleted") && says.contains("may have been done"), "{says}");
    assert_eq!(worked(&fixture, "FileSend").len(), 0);
    assert!(!ended(&fixture, &job, Ok(Finish::Done)));
    assert_eq!(due(&fixture), []);
    assert_eq!(fixture.store.scan("transfer/connector", "", 10).unwrap().len(), 0);
}

#[test]
fn a_job_that_cannot_be_read_holds_up_no_other() {
    let fixture = Fixture::new();
    let id = fixture.connector(&connector_role(&fixture, "files"), json!({}));
    let (first, second) =
        (fixture.send_files(&id, &["/files/a"]), fixture.send_files(&id, &["/files/b"]));
    let record_key = format!("transfer/connector-job/{ACCOUNT}/{REGION}/{id}/{first}");
    fixture.put_record(&record_key, &json!({ "x": 1 }));
    assert_eq!(one(&fixture).id, second);
}

/// However many jobs of an account are due, it gets its share; what runs is not taken again; and jobs end that waited too long
/// while there was no room.
#[test]
fn an_account_has_its_share_and_overdue_jobs_end_without_room() {
    let fixture = Fixture::new();
    let role = connector_role(&fixture, "files");
    let ids: Vec<_> = (0..6).map(|_| fixture.connector(&role, json!({}))).collect();
    let transfers: Vec<_> = ids.iter().map(|id| fixture.send_files(id, &["/files/a"])).collect();
    let clock = || now_ms(&fixture);
    let mut room = Room { jobs: 16, per_account: 4, ..Room::default() };
    let taken = fixture.service.connector_jobs(&clock, &room).unwrap();
    assert_eq!(taken.len(), 4);
    room.running = taken.iter().map(|job| (job.scope.account.clone(), job.id.clone())).collect();
    assert_eq!(fixture.service.connector_jobs(&clock, &room).unwrap(), []);
    // Another account has its own share.
    let others: std::collections::BTreeSet<_> =
        (0..4).map(|at| ("999999999999".to_owned(), at.to_string())).collect();
    let mut theirs = room.clone();
    theirs.running = others;
    let more = fixture.service.connector_jobs(&clock, &theirs).unwrap();
    assert_eq!(more.len(), 2, "only those that nobody has");
    assert!(more.iter().all(|job| ended(
        &fixture,
        job,
        Err(Failure::new(FailureCode::Unknown, "x"))
    )));

    // Leases are over, and yet what runs here is neither begun nor ended a second time.
    fixture.advance(LEASE);
    room.per_account = 16;
    assert_eq!(fixture.service.connector_jobs(&clock, &room).unwrap(), []);
    let late = fixture.send_files(&ids[5], &["/files/late"]);
    fixture.advance(12 * HOUR);
    room.jobs = 0;
    assert_eq!(fixture.service.connector_jobs(&clock, &room).unwrap(), []);
    assert_eq!(fixture.service.connector_overdue(&clock, &room).unwrap(), 1);
    let expected = [row("/files/late", "FAILED", "TIMEOUT_ERROR")];
    assert_eq!(results(&fixture, &ids[5], &late), expected);
    let running = taken.iter().map(|job| &job.id).filter(|id| transfers.contains(*id)).count();
    assert_eq!(running, 4);
    room.running.clear();
    assert_eq!(fixture.service.connector_overdue(&clock, &room).unwrap(), 4);
    assert_eq!(fixture.service.connector_overdue(&clock, &room).unwrap(), 0);
}

#[test]
fn results_name_what_was_used() {
    let fixture = Fixture::new();
    let (role, other) = (connector_role(&fixture, "files"), connector_role(&fixture, "others"));
    let id = fixture.connector(&role, json!({}));
    let of = json!({ "ConnectorId": id });
    let shown = fixture.transfer("DescribeConnector", of.clone()).unwrap();
    let url = shown["Connector"]["Url"].clone();
    fixture.send_files(&id, &["/files/a"]);
    let job = one(&fixture);
    let change = json!({ "Url": "sftp://elsewhere.example", "AccessRole": other });
    fixture.transfer("UpdateConnector", with(&of, change)).unwrap();
    assert!(file(&fixture, &job, 0, Ok(1)) && ended(&fixture, &job, Ok(Finish::Done)));
    let event = worked(&fixture, "FileSend").pop().unwrap();
    let more = &event["additionalEventData"];
    assert_eq!((&more["url"], &more["access-role"]), (&url, &json!(role)));
    // A job that is taken after the change, or taken before and opened after it, has the new settings.
    fixture.send_files(&id, &["/files/b"]);
    let job = one(&fixture);
    assert!(file(&fixture, &job, 0, Ok(1)));
    let event = worked(&fixture, "FileSend").pop().unwrap();
    assert_eq!(event["additionalEventData"]["access-role"], other.as_str());
    assert!(ended(&fixture, &job, Ok(Finish::Done)));
    fixture.send_files(&id, &["/files/c"]);
    let job = one(&fixture);
    fixture.transfer("UpdateConnector", with(&of, json!({ "AccessRole": role }))).unwrap();
    fixture.service.connector_open(&job, now_ms(&fixture)).unwrap();
    assert!(file(&fixture, &job, 0, Ok(1)));
    let event = worked(&fixture, "FileSend").pop().unwrap();
    assert_eq!(event["additionalEventData"]["access-role"], role.as_str());
}

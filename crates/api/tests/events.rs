//! Events for programs outside: every kind has a cause, has the members of AWS's sample, and is told when and as often as AWS
//! says.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::certificates;
use crate::common;
use crate::kms_import;
use crate::rolesanywhere_support::{self, Scene};
use crate::transfer_support::{connection, connector_role};

use std::collections::BTreeSet;

use certificates::*;
use common::{ACCOUNT, Fixture, NOW, REGION, b64, text, with};
use outlast_api::service::events::{event_json, sample_event};
use outlast_api::service::sftp::{FileEvent, Session, Subject};
use outlast_api::service::{Room, Sink};
use outlast_domain::events::{By, Detail, KINDS, Kind};
use outlast_domain::secrets::rotation::Outcome;
use outlast_domain::settings::{EventTarget, Events, Settings};
use outlast_domain::transfer::connector::{Failure, FailureCode, FileOutcome, Finish, Task};
use serde_json::{Value, json};

const DAY: i64 = 86_400;
const FUNCTION: &str = "arn:aws:lambda:eu-west-1:123456789012:function:f";

/// `detail` of AWS's samples, by the name of the row. The values are AWS's; only the names and the types count.
fn samples() -> Vec<(&'static str, Value)> {
    let available = json!({
        "Action": "ISSUANCE", "CertificateType": "PRIVATE", "CommonName": "example.com",
        "DomainValidationMethod": "DNS", "CertificateCreatedDate": "2019-12-22T18:43:48Z",
        "CertificateExpirationDate": "2019-12-22T18:43:48Z", "DaysToExpiry": 198, "InUse": true, "Exported": true,
    });
    let ending = json!({
        "certificate-serial-number": "00936EACBE07F201DF", "days-to-expiry": 3,
        "issuer": "L=Seattle,CN=CA Root v1,ST=Washington,C=US",
    });
    let key = json!({ "key-id": "1234abcd-12ab-34cd-56ef-1234567890ab" });
    let result = json!({ "result": "success" });
    let mut all = vec![
        ("CERTIFICATE_EXPIRING", json!({ "DaysToExpiry": 31, "CommonName": "example.com" })),
        (
            "CERTIFICATE_EXPIRED",
            json!({
                "CertificateType": "PRIVATE", "CommonName": "example.com", "DomainValidationMethod": "DNS",
                "CertificateCreatedDate": "2018-12-22T18:43:48Z",
                "CertificateExpirationDate": "2019-12-22T18:43:48Z", "InUse": true, "Exported": true,
            }),
        ),
        ("CERTIFICATE_AVAILABLE", available),
        (
            "RENEWAL_ACTION_REQUIRED",
            json!({
                "CertificateType": "PRIVATE", "CommonName": "example.com", "DomainValidationMethod": "DNS",
                "RenewalStatusReason": "PCA_ACCESS_DENIED", "DaysToExpiry": 30,
                "CertificateExpirationDate": "2019-12-22T18:43:48Z", "InUse": true, "Exported": true,
            }),
        ),
        (
            "CERTIFICATE_REVOKED",
            json!({
                "CertificateType": "PRIVATE", "CommonName": "example.com",
                "CertificateExpirationDate": "2019-12-22T18:43:48Z", "Exportable": true,
            }),
        ),
        ("KEY_ROTATED", key.clone()),
        ("MATERIAL_EXPIRED", key.clone()),
        ("KEY_DELETED", key),
        ("AUTHORITY_CREATED", result.clone()),
        ("CERTIFICATE_ISSUED", result.clone()),
        ("CERTIFICATE_REVOCATION", result.clone()),
        (
            "CRL_GENERATED",
            json!({
                "result": "failure", "reason": "Failed to write CRL to S3. Check your S3 bucket permissions.",
            }),
        ),
        ("REPORT_GENERATED", result),
        ("ANCHOR_EXPIRING", ending.clone()),
        ("WORKLOAD_EXPIRING", ending),
    ];
    all.extend(transfer_samples());
    all
}

/// AWS's samples of Transfer Family, for storage that is not S3: those have no `etag`.
fn transfer_samples() -> Vec<(&'static str, Value)> {
    let completed = json!({
        "status-code": "COMPLETED", "protocol": "SFTP", "client-ip": "IP-address",
        "end-timestamp": "2025-05-15T14:30:27.749749117Z", "server-id": "s-1234abcd5678efghi",
        "username": "test", "session-id": "session-ID",
        "start-timestamp": "2025-05-15T14:30:26.706282454Z",
    });
    let failed = json!({
        "failure-code": "PARTIAL_DOWNLOAD", "failure-message": "File was partially downloaded.",
    });
    let file = json!({ "file-path": "/fs-1234abcd5678efghi/user0/test-file" });
    let bytes = with(&file, json!({ "bytes": 4100 }));
    let renamed = json!({ "original-file-path": "/fs/old", "renamed-file-path": "/fs/new" });
    let directory = json!({ "directory-path": "/fs-1234abcd5678efghi/user0/new-directory" });
    let mut all = Vec::new();
    for (good, bad, more) in [
        ("UPLOAD_COMPLETED", "UPLOAD_FAILED", bytes.clone()),
        ("DOWNLOAD_COMPLETED", "DOWNLOAD_FAILED", bytes),
        ("FILE_DELETE_COMPLETED", "FILE_DELETE_FAILED", file),
        ("FILE_RENAME_COMPLETED", "FILE_RENAME_FAILED", renamed),
        ("DIRECTORY_CREATE_COMPLETED", "DIRECTORY_CREATE_FAILED", directory.clone()),
        ("DIRECTORY_DELETE_COMPLETED", "DIRECTORY_DELETE_FAILED", directory),
    ] {
        let sample = with(&completed, more);
        all.push((good, sample.clone()));
        all.push((bad, with(&sample, failed.clone())));
    }
    all.extend(connector_samples());
    all
}

/// AWS's samples of connectors. Those of moves and deletions have the members that its reference lists.
fn connector_samples() -> Vec<(&'static str, Value)> {
    let object = json!({ "domain": "S3", "bucket": "amzn-s3-demo-bucket", "key": "testfile.txt" });
    let common = json!({
        "connector-id": "c-f1111aaaa2222bbbb3", "status-code": "COMPLETED",
        "url": "sftp://s-21a23456789012a.server.transfer.us-east-1.amazonaws.com",
        "start-timestamp": "2024-01-24T18:29:33.658729Z", "end-timestamp": "2024-01-24T18:29:33.993196Z",
    });
    let failed = json!({ "failure-code": "CONNECTION_ERROR", "failure-message": "Unknown Host" });
    let file = json!({
        "operation": "SEND", "transfer-id": "transfer-ID", "file-transfer-id": "file-transfer-ID",
        "file-path": "/amzn-s3-demo-bucket/testfile.txt", "bytes": 0, "local-file-location": object,
    });
    let send = with(&file, json!({ "remote-directory-path": "" }));
    let retrieve = with(&file, json!({ "local-directory-path": "/amzn-s3-demo-bucket" }));
    let listing = json!({
        "max-items": 10000, "output-directory-path": "/amzn-s3-demo-bucket/example/file-listing-output",
        "listing-id": "123456-23aa-7980-abc1-1a2b3c4d5e", "remote-directory-path": "/home",
    });
    let listed = json!({ "item-count": 10000, "truncated": true, "output-file-location": object });
    let (moved, deleted) = (json!({ "move-id": "m" }), json!({ "delete-id": "d" }));
    let mut all = Vec::new();
    for (good, bad, more, of_good) in [
        ("SEND_COMPLETED", "SEND_FAILED", send, json!({})),
        ("RETRIEVE_COMPLETED", "RETRIEVE_FAILED", retrieve, json!({})),
        ("LISTING_COMPLETED", "LISTING_FAILED", listing, listed),
        ("REMOTE_MOVE_COMPLETED", "REMOTE_MOVE_FAILED", moved, json!({})),
        ("REMOTE_DELETE_COMPLETED", "REMOTE_DELETE_FAILED", deleted, json!({})),
    ] {
        let sample = with(&common, more);
        all.push((good, with(&sample, of_good)));
        all.push((bad, with(&sample, failed.clone())));
    }
    all
}

/// What connectors do.
fn connectors(fixture: &Fixture) {
    let id = fixture.connector(&connector_role(fixture, "connectors"), json!({}));
    let of = json!({ "ConnectorId": id });
    for (operation, more) in [
        ("StartFileTransfer", json!({ "SendFilePaths": ["/files/a"] })),
        (
            "StartFileTransfer",
            json!({ "RetrieveFilePaths": ["a"], "LocalDirectoryPath": "/files" }),
        ),
        (
            "StartDirectoryListing",
            json!({ "RemoteDirectoryPath": "/", "OutputDirectoryPath": "/files" }),
        ),
        ("StartRemoteMove", json!({ "SourcePath": "/a", "TargetPath": "/b" })),
        ("StartRemoteDelete", json!({ "DeletePath": "/a" })),
    ] {
        for fails in [false, true] {
            fixture.transfer(operation, with(&of, more.clone())).unwrap();
            let now_ms = fixture.now.get() * 1000;
            let job =
                fixture.service.connector_jobs(&|| now_ms, &Room::of(1)).unwrap().pop().unwrap();
            let result = match (fails, &job.task) {
                (true, _) => Err(Failure::new(FailureCode::Unknown, "a test")),
                (_, Task::List { .. }) => Ok(Finish::Listed { items: 1, is_truncated: false }),
                _ => Ok(Finish::Done),
            };
            let file = FileOutcome { index: 0, began_ms: now_ms, result: Ok(1) };
            if !fails && matches!(job.task, Task::Send { .. } | Task::Retrieve { .. }) {
                assert!(fixture.service.connector_file(&job, &file, now_ms).unwrap());
            }
            assert!(fixture.service.connector_ended(&job, &result, now_ms).unwrap());
        }
    }
}

/// What a user of SFTP does.
fn files(fixture: &Fixture) {
    let session = Session::of_file(connection("s-0"), "alice", "arn:alice");
    let now_ms = fixture.now.get() * 1000;
    let (path, other, bytes_in, bytes_out, status) = (&b"/x"[..], None, 3, 4, "SSH_FX_FAILURE");
    let denied = |operation| FileEvent::Failed { path, other, operation, status, message: status };
    for (event, writes) in [
        (FileEvent::Close { path, bytes_in, bytes_out }, true),
        (FileEvent::Close { path, bytes_in, bytes_out }, false),
        (FileEvent::PartialClose { path, bytes_in, bytes_out }, true),
        (FileEvent::PartialClose { path, bytes_in, bytes_out }, false),
        (FileEvent::Delete(path), false),
        (FileEvent::Rename { path, new_path: b"/y" }, false),
        (FileEvent::Mkdir(path), false),
        (FileEvent::Rmdir(path), false),
        (denied("REMOVE"), false),
        (denied("POSIX-RENAME"), false),
        (denied("MKDIR"), false),
        (denied("RMDIR"), false),
        // Nobody is told.
        (denied("OPENDIR"), false),
        (FileEvent::SetStat { path, attributes: "setstat" }, false),
    ] {
        let subject = Subject {
            target: b"bucket/x",
            new_target: b"bucket/y",
            writes,
            since_ms: now_ms - 1000,
            why: "",
            is_apart: false,
        };
        let made = fixture.service.sftp_file_event(&session, &event, &subject, now_ms).unwrap();
        fixture.service.store().commit_and_wait(made).unwrap();
    }
}

/// Members of the CloudTrail record in AWS's samples of Secrets Manager's events. `errorMessage` is there if something failed.
const TRAIL: &[&str] = &[
    "additionalEventData",
    "awsRegion",
    "eventCategory",
    "eventID",
    "eventName",
    "eventSource",
    "eventTime",
    "eventType",
    "eventVersion",
    "managementEvent",
    "readOnly",
    "recipientAccountId",
    "requestParameters",
    "responseElements",
    "sourceIPAddress",
    "userAgent",
    "userIdentity",
];

fn names(object: &Value) -> BTreeSet<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "flag",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Object(_) => "object",
        other => panic!("{other}"),
    }
}

/// Keeps events for one target that wants all.
pub fn listen(fixture: &Fixture) {
    let events = Events {
        targets: vec![EventTarget { name: "t".into(), ..EventTarget::default() }],
        ..Events::default()
    };
    let before = Settings::clone(&fixture.service.settings());
    let url = Some("http://pki.example:8080".to_owned());
    fixture.service.set_settings(Settings { events, revocation_url: url, ..before });
}

fn listening() -> Fixture {
    let fixture = Fixture::new();
    listen(&fixture);
    fixture
}

/// What a target gets now: each event, with its row.
pub fn told(fixture: &Fixture) -> Vec<(&'static Kind, Value)> {
    let now_ms = fixture.now.get() * 1000;
    let mut all = Vec::new();
    loop {
        let taken = fixture.service.event_deliveries("t", "", 100, 1000, now_ms).unwrap();
        assert_eq!(taken.given_up, []);
        if taken.now.is_empty() {
            return all;
        }
        all.extend(taken.now.iter().map(|one| (one.event.kind, event_json(&one.event))));
        let outcomes: Vec<_> = taken.now.into_iter().map(|one| (one, true)).collect();
        fixture.service.event_outcomes(&outcomes, now_ms).unwrap();
    }
}

/// The only event of a row that a target gets now.
#[track_caller]
fn one(fixture: &Fixture, name: &str) -> Value {
    let mut found = all(fixture, name);
    assert_eq!(found.len(), 1, "{name}: {found:?}");
    found.remove(0)
}

fn all(fixture: &Fixture, name: &str) -> Vec<Value> {
    let told = told(fixture).into_iter();
    told.filter(|(kind, _)| kind.name == name).map(|(_, event)| event).collect()
}

/// Housekeeping at this time.
fn at(fixture: &Fixture, now: i64) {
    fixture.now.set(now);
    fixture.run_housekeeping();
}

#[test]
fn every_row_has_the_members_of_the_documented_sample() {
    let samples = samples();
    for kind in KINDS {
        let event = event_json(&sample_event(kind, NOW * 1000).unwrap());
        let expected = [
            "account",
            "detail",
            "detail-type",
            "id",
            "region",
            "resources",
            "source",
            "time",
            "version",
        ];
        assert_eq!(names(&event), BTreeSet::from(expected));
        assert_eq!(
            (&event["version"], &event["time"]),
            (&json!("0"), &json!("2026-11-21T00:00:00Z"))
        );
        let sample = samples.iter().find(|(name, _)| *name == kind.name);
        match (kind.detail, kind.by, sample) {
            (Detail::Facts(_), By::Aws, Some((_, sample))) => {
                assert_eq!(names(&event["detail"]), names(sample), "{}", kind.name);
                for (name, value) in sample.as_object().unwrap() {
                    assert_eq!(kind_of(&event["detail"][name]), kind_of(value), "{name}");
                }
            }
            (Detail::Facts(_), By::Outlast, None) => {}
            (Detail::Trail(name), By::Aws, None) => {
                let mut expected = BTreeSet::from_iter(TRAIL.iter().copied());
                expected.insert("errorMessage");
                assert_eq!(names(&event["detail"]), expected);
                assert_eq!(event["detail"]["eventName"], name);
                assert_eq!(event["resources"], json!([]));
            }
            other => panic!("{}: {other:?}", kind.name),
        }
    }
}

/// Buckets that can be written to or not.
struct Buckets(bool);

impl Sink for Buckets {
    fn put(&self, _: &str, _: &str, _: &str, _: &[u8]) -> Result<(), String> {
        if self.0 { Ok(()) } else { Err("no".into()) }
    }
}

/// Everything that causes events, in 13 months of one store: what a target gets.
fn everything() -> Vec<(&'static Kind, Value)> {
    let scene = Scene::on(listening());
    let fixture = &scene.fixture;
    // KMS.
    let key = fixture.key(json!({}));
    fixture.kms("RotateKeyOnDemand", json!({ "KeyId": key })).unwrap();
    fixture.kms("ScheduleKeyDeletion", json!({ "KeyId": key, "PendingWindowInDays": 7 })).unwrap();
    let imported = kms_import::symmetric(fixture);
    kms_import::import(fixture, &imported, &[7; 32], json!({ "ValidTo": NOW + DAY })).unwrap();
    // Private CA.
    let crl = json!({ "CrlConfiguration": { "Enabled": true, "ExpirationInDays": 7, "S3BucketName": "bucket" } });
    let authority = root_ca(fixture, ECDSA, 396, json!({ "RevocationConfiguration": crl }));
    let arn = requested(fixture, &authority, "a.example.com", json!({}));
    let revoked = requested(fixture, &authority, "b.example.com", json!({}));
    let (leaf, _) = got(fixture, &revoked);
    let revoke = json!({
        "CertificateAuthorityArn": authority, "CertificateSerial": hex::encode(leaf.serial()),
        "RevocationReason": "SUPERSEDED",
    });
    pca(fixture, "RevokeCertificate", &revoke).unwrap();
    let report = json!({
        "CertificateAuthorityArn": authority, "S3BucketName": "bucket", "AuditReportResponseFormat": "JSON",
    });
    pca(fixture, "CreateCertificateAuthorityAuditReport", &report).unwrap();
    fixture.service.keep_revocation(NOW * 1000).unwrap();
    fixture.service.publish(&Buckets(false), NOW * 1000, &|| true).unwrap();
    // Secrets Manager.
    fixture.secret("s", "one");
    fixture.secret("gone", "one");
    fixture
        .secrets("DeleteSecret", json!({ "SecretId": "gone", "RecoveryWindowInDays": 7 }))
        .unwrap();
    let rotate = |more: Value| {
        let body = json!({ "SecretId": "s", "RotationLambdaARN": FUNCTION });
        fixture.secrets("RotateSecret", with(&body, more)).unwrap();
    };
    let call = || {
        let now_ms = fixture.now.get() * 1000;
        fixture.service.rotation_calls(now_ms, 1, &|_| 1000).unwrap().pop().unwrap()
    };
    let ended = |outcome: Outcome| {
        let call = call();
        fixture.service.rotation_outcome(&call, &outcome, fixture.now.get() * 1000).unwrap();
    };
    for outcome in [Outcome::Done, Outcome::Failed("a password".into())] {
        rotate(json!({ "RotateImmediately": false }));
        ended(outcome.clone());
        rotate(json!({}));
        match outcome {
            Outcome::Done => (0..4).for_each(|_| whole_step(fixture, &call())),
            Outcome::Failed(_) => (0..5).for_each(|_| {
                ended(outcome.clone());
                fixture.advance(1000);
            }),
        }
    }
    // Roles Anywhere: 30 days are left of the workload's certificate.
    let leaf = scene.root.issue("ECC_NIST_P256", rolesanywhere_support::workload("CN=alice"));
    files(fixture);
    connectors(fixture);
    let mut all = told(fixture);
    fixture.now.set(NOW);
    scene.session(&leaf).unwrap();
    all.extend(told(fixture));
    // Ends.
    let ends = NOW + 3650 * DAY - 40 * DAY;
    for now in [NOW + 7 * DAY, NOW + 380 * DAY, NOW + 396 * DAY + 3600, ends] {
        at(fixture, now);
        all.extend(told(fixture));
    }
    let resources: Vec<_> =
        all.iter().flat_map(|(_, event)| event["resources"].as_array()).collect();
    assert!(resources.iter().any(|found| found.contains(&json!(arn))));
    all
}

fn whole_step(fixture: &Fixture, call: &outlast_domain::secrets::rotation::Call) {
    crate::secrets_rotation::act(fixture, call);
    fixture.service.rotation_outcome(call, &Outcome::Done, fixture.now.get() * 1000).unwrap();
}

#[test]
fn every_row_has_a_cause() {
    let all = everything();
    let fired: BTreeSet<_> = all.iter().map(|(kind, _)| kind.name).collect();
    let missing = KINDS.iter().map(|kind| kind.name).filter(|name| !fired.contains(name));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
    let ids: BTreeSet<_> = all.iter().map(|(_, event)| text(&event["id"])).collect();
    assert_eq!(ids.len(), all.len());
    // A member that AWS documents is left out only if the certificate has no such property.
    for (kind, event) in &all {
        assert_eq!((&event["account"], &event["region"]), (&json!(ACCOUNT), &json!(REGION)));
        if let Detail::Facts(members) = kind.detail {
            let documented = members.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>();
            let missing: Vec<_> =
                documented.difference(&names(&event["detail"])).copied().collect();
            let may_miss = ["DomainValidationMethod", "reason"];
            assert!(
                missing.iter().all(|name| may_miss.contains(name)),
                "{}: {missing:?}",
                kind.name
            );
        }
    }
    let whole =
        serde_json::to_string(&all.iter().map(|(_, event)| event).collect::<Vec<_>>()).unwrap();
    assert!(!whole.contains("a password"), "what a function says may hold a value");
    let failed = all.iter().find(|(kind, _)| kind.name == "ROTATION_FAILED").unwrap();
    let detail = &failed.1["detail"];
    assert_eq!(
        detail["errorMessage"],
        format!("Error when executing {FUNCTION} during createSecret step")
    );
    assert!(text(&detail["additionalEventData"]["SecretId"]).contains(":secret:s-"));
    assert_eq!(failed.1["source"], "aws.secretsmanager");
    let crls: Vec<_> = all.iter().filter(|(kind, _)| kind.name == "CRL_GENERATED").collect();
    assert!(crls.iter().any(|(_, event)| event["detail"] == json!({ "result": "success" })));
    assert!(crls.iter().any(|(_, event)| event["detail"]["result"] == "failure"));
    let report = all.iter().find(|(kind, _)| kind.name == "REPORT_GENERATED").unwrap();
    assert_eq!(report.1["detail"], json!({ "result": "failure" }));
    assert_eq!(report.1["resources"].as_array().unwrap().len(), 2);
}

fn days_before_expiry(fixture: &Fixture, days: i64) {
    let body = json!({ "ExpiryEvents": { "DaysBeforeExpiry": days }, "IdempotencyToken": days.to_string() });
    acm(fixture, "PutAccountConfiguration", &body).unwrap();
}

fn import(fixture: &Fixture, name: &str, end: i64) -> String {
    let (certificate, key) = common::authorities::self_signed(name, end);
    let body =
        json!({ "Certificate": b64(certificate.as_bytes()), "PrivateKey": b64(key.as_bytes()) });
    text(&acm(fixture, "ImportCertificate", &body).unwrap()["CertificateArn"]).to_owned()
}

#[test]
fn an_expiring_certificate_is_told_once_a_day_from_days_before_expiry() {
    let fixture = listening();
    let end = NOW + 100 * DAY;
    let arn = import(&fixture, "imported.example", end);
    assert_eq!(one(&fixture, "CERTIFICATE_AVAILABLE")["detail"]["Action"], "IMPORT");
    at(&fixture, end - 45 * DAY - 1);
    assert_eq!(told(&fixture).len(), 0);
    at(&fixture, end - 45 * DAY);
    let event = one(&fixture, "CERTIFICATE_EXPIRING");
    assert_eq!(event["detail"], json!({ "DaysToExpiry": 45, "CommonName": "imported.example" }));
    assert_eq!(event["resources"], json!([arn]));
    // Every hour of that day, and then the next day.
    for hour in 1..24 {
        at(&fixture, end - 45 * DAY + hour * 3600);
        assert_eq!(told(&fixture).len(), 0, "{hour}");
    }
    at(&fixture, end - 44 * DAY);
    assert_eq!(one(&fixture, "CERTIFICATE_EXPIRING")["detail"]["DaysToExpiry"], 44);
    days_before_expiry(&fixture, 10);
    at(&fixture, end - 43 * DAY);
    assert_eq!(told(&fixture).len(), 0);
    at(&fixture, end - 10 * DAY);
    assert_eq!(one(&fixture, "CERTIFICATE_EXPIRING")["detail"]["DaysToExpiry"], 10);
    at(&fixture, end - 1);
    assert_eq!(one(&fixture, "CERTIFICATE_EXPIRING")["detail"]["DaysToExpiry"], 0);
    // "Certificate Expired events aren't available for imported certificates."
    at(&fixture, end + 3600);
    assert_eq!(told(&fixture).len(), 0);
    // A certificate that was deleted is told no more, and what was noted of it goes.
    acm(&fixture, "DeleteCertificate", &of(&arn)).unwrap();
    at(&fixture, end + 61 * DAY);
    assert_eq!(told(&fixture).len(), 0);
    use outlast_store::Store;
    assert_eq!(fixture.store.scan("events/", "", 10).unwrap().len(), 0);
}

#[test]
fn renewals_and_their_failures_are_told() {
    let fixture = listening();
    let authority = ca(&fixture);
    let arn = requested(&fixture, &authority, "a.example.com", json!({}));
    let event = one(&fixture, "CERTIFICATE_AVAILABLE");
    assert_eq!(
        event["detail"],
        json!({
            "Action": "ISSUANCE", "CertificateType": "PRIVATE", "CommonName": "a.example.com",
            "CertificateCreatedDate": "2026-11-21T00:00:00Z", "CertificateExpirationDate": "2027-12-21T00:00:00Z",
            "DaysToExpiry": 395, "InUse": false, "Exported": false,
        })
    );
    let end = NOW + 395 * DAY;
    // Renewals begin and fail 60 days before the end; customers are told at 45, 30, 15, 3 and 1.
    let mut days = Vec::new();
    for left in (1..=60).rev() {
        at(&fixture, end - left * DAY);
        days.extend(all(&fixture, "RENEWAL_ACTION_REQUIRED").iter().map(|event| {
            assert_eq!(event["detail"]["RenewalStatusReason"], "PCA_ACCESS_DENIED");
            assert_eq!(event["resources"], json!([arn]));
            event["detail"]["DaysToExpiry"].as_i64().unwrap()
        }));
    }
    assert_eq!(days, [45, 30, 15, 3, 1]);
    at(&fixture, end + 3600);
    let event = one(&fixture, "CERTIFICATE_EXPIRED");
    assert_eq!(event["detail"]["CertificateExpirationDate"], "2027-12-21T00:00:00Z");
    at(&fixture, end + 2 * DAY);
    assert_eq!(told(&fixture).len(), 0);
    // Another one is renewed.
    permit(&fixture, &authority);
    let begun = fixture.now.get();
    requested(&fixture, &authority, "b.example.com", json!({}));
    told(&fixture);
    at(&fixture, begun + 335 * DAY);
    assert_eq!(one(&fixture, "CERTIFICATE_AVAILABLE")["detail"]["Action"], "RENEWAL");
}

#[test]
fn a_ca_that_ends_is_told_daily_and_once_at_its_end() {
    let fixture = listening();
    let authority = root_ca(&fixture, ECDSA, 400, json!({}));
    let end = NOW + 400 * DAY;
    told(&fixture);
    at(&fixture, end - 91 * DAY);
    assert_eq!(told(&fixture).len(), 0);
    at(&fixture, end - 90 * DAY);
    let event = one(&fixture, "AUTHORITY_EXPIRING");
    assert_eq!(
        event["detail"],
        json!({
            "DaysToExpiry": 90, "CommonName": "Root", "CertificateExpirationDate": "2027-12-26T00:00:00Z",
        })
    );
    assert_eq!(
        (&event["source"], &event["resources"]),
        (&json!("aws.acm-pca"), &json!([authority]))
    );
    at(&fixture, end - 90 * DAY + 3600);
    assert_eq!(told(&fixture).len(), 0);
    at(&fixture, end + 1);
    one(&fixture, "AUTHORITY_EXPIRED");
    at(&fixture, end + DAY);
    assert_eq!(told(&fixture).len(), 0);
    // Nobody is told what ended long ago, such as a server that gets its first target.
    let late = Fixture::new();
    root_ca(&late, ECDSA, 400, json!({}));
    late.now.set(end + 15 * DAY);
    listen(&late);
    late.run_housekeeping();
    assert_eq!(told(&late).len(), 0);
}

#[test]
fn a_key_that_is_to_be_erased_is_told_daily_until_it_is_kept_or_gone() {
    let fixture = listening();
    let key = fixture.key(json!({}));
    let schedule = json!({ "KeyId": key, "PendingWindowInDays": 7 });
    fixture.kms("ScheduleKeyDeletion", schedule.clone()).unwrap();
    let event = one(&fixture, "KEY_PENDING_DELETION");
    assert_eq!(
        event["detail"],
        json!({ "key-id": key, "deletion-date": "2026-11-28T00:00:00Z", "days-to-deletion": 7 })
    );
    at(&fixture, NOW + 3600);
    assert_eq!(told(&fixture).len(), 0);
    at(&fixture, NOW + DAY);
    assert_eq!(one(&fixture, "KEY_PENDING_DELETION")["detail"]["days-to-deletion"], 6);
    fixture.kms("CancelKeyDeletion", json!({ "KeyId": key })).unwrap();
    at(&fixture, NOW + 2 * DAY);
    assert_eq!(told(&fixture).len(), 0);
    fixture.kms("ScheduleKeyDeletion", schedule).unwrap();
    told(&fixture);
    at(&fixture, NOW + 9 * DAY);
    let event = one(&fixture, "KEY_DELETED");
    assert_eq!(event["detail"], json!({ "key-id": key }));
    at(&fixture, NOW + 10 * DAY);
    assert_eq!(told(&fixture).len(), 0);
}

#[test]
fn trust_anchors_tell_as_their_notification_settings_say() {
    let scene = Scene::on(listening());
    let fixture = &scene.fixture;
    let leaf = scene.root.issue("ECC_NIST_P256", rolesanywhere_support::workload("CN=alice"));
    scene.session(&leaf).unwrap();
    let event = one(fixture, "WORKLOAD_EXPIRING");
    assert_eq!(
        event["detail"],
        json!({
            "certificate-serial-number": hex::encode_upper(leaf.certificate.serial()), "days-to-expiry": 30,
            "issuer": "CN=Root,O=Example",
        })
    );
    assert_eq!(event["resources"], json!([]));
    scene.session(&leaf).unwrap();
    assert_eq!(told(fixture).len(), 0, "once a day");
    fixture.advance(DAY);
    scene.session(&leaf).unwrap();
    assert_eq!(one(fixture, "WORKLOAD_EXPIRING")["detail"]["days-to-expiry"], 29);
    let put = |enabled: bool, threshold: i64, event: &str| {
        let one = json!({ "enabled": enabled, "event": event, "threshold": threshold });
        let id = rolesanywhere_support::id(&scene.anchor);
        let body = json!({ "trustAnchorId": id, "notificationSettings": [one] });
        fixture.ra("PutNotificationSettings", body).unwrap();
    };
    put(true, 10, "END_ENTITY_CERTIFICATE_EXPIRY");
    fixture.advance(DAY);
    scene.session(&leaf).unwrap();
    assert_eq!(told(fixture).len(), 0);
    // The anchor's own certificate.
    let end = NOW + 3650 * DAY;
    at(fixture, end - 45 * DAY);
    assert_eq!(one(fixture, "ANCHOR_EXPIRING")["resources"], json!([scene.anchor]));
    put(true, 100, "CA_CERTIFICATE_EXPIRY");
    at(fixture, end - 44 * DAY);
    assert_eq!(one(fixture, "ANCHOR_EXPIRING")["detail"]["days-to-expiry"], 44);
    at(fixture, end + 14 * DAY);
    assert_eq!(one(fixture, "ANCHOR_EXPIRING")["detail"]["days-to-expiry"], -14);
    at(fixture, end + 15 * DAY);
    assert_eq!(told(fixture).len(), 0);
    put(false, 100, "CA_CERTIFICATE_EXPIRY");
    at(fixture, end - 20 * DAY);
    assert_eq!(told(fixture).len(), 0);
}

#[test]
fn a_refused_call_tells_nothing() {
    let fixture = listening();
    let key = fixture.key(json!({}));
    fixture
        .kms("ScheduleKeyDeletion", json!({ "KeyId": key, "PendingWindowInDays": 6 }))
        .unwrap_err();
    pca(&fixture, "CreateCertificateAuthority", &json!({})).unwrap_err();
    assert_eq!(told(&fixture).len(), 0);
}

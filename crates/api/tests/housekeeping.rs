//! Housekeeping does what is due, whatever is broken elsewhere in the store.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{ACCOUNT, Fixture, OTHER_ACCOUNT, REGION, Who, text, with};
use outlast_domain::Fault;
use outlast_store::{Store, StoreError, Transaction};
use serde_json::{Value, json};

const DAY: i64 = 86_400;

fn key_of(fixture: &Fixture, who: &Who) -> String {
    let made = fixture.kms_as(who, "CreateKey", json!({})).unwrap();
    text(&made["KeyMetadata"]["KeyId"]).to_owned()
}

/// The record of a key.
fn record_key(account: &str, key: &str) -> String {
    format!("kms/key/{account}/{REGION}/{key}")
}

fn run_housekeeping(fixture: &Fixture) -> Result<(), Fault> {
    fixture.service.run_housekeeping(fixture.now.get() * 1000)
}

fn count(fixture: &Fixture, event: &str) -> usize {
    fixture.events().iter().filter(|found| found["eventName"] == event).count()
}

fn left(fixture: &Fixture, prefix: &str) -> Vec<String> {
    let found = fixture.store.scan(prefix, "", 100).unwrap();
    found.into_iter().map(|(record_key, _)| record_key).collect()
}

fn write(fixture: &Fixture, record_key: &str, value: &[u8]) {
    let writes = vec![(record_key.to_owned(), Some(value.to_vec()))];
    fixture.store.commit_and_wait(Transaction { writes, ..Transaction::default() }).unwrap();
}

fn read(fixture: &Fixture, record_key: &str) -> Value {
    fixture.record(record_key)
}

/// Keys of both accounts that `operation` is called on so many days apart: their accounts and ids.
fn keys(fixture: &Fixture, operation: &str, more: &Value) -> Vec<(&'static str, String)> {
    let both = [(ACCOUNT, Who::admin()), (OTHER_ACCOUNT, Who::stranger())];
    let mut keys = Vec::new();
    for (account, who) in both.iter().cycle().take(4) {
        let key = key_of(fixture, who);
        fixture.kms_as(who, operation, with(more, json!({ "KeyId": key }))).unwrap();
        keys.push((*account, key));
    }
    keys
}

#[test]
fn a_key_that_others_keep_changing_holds_up_no_other() {
    let fixture = Fixture::new();
    let keys = keys(&fixture, "ScheduleKeyDeletion", &json!({ "PendingWindowInDays": 7 }));
    fixture.advance(7 * DAY);
    let contested = record_key(keys[0].0, &keys[0].1);
    fixture.store.conflict_on(Some(&contested));
    assert_eq!(run_housekeeping(&fixture), Err(StoreError::Conflict.into()));
    assert_eq!(left(&fixture, "kms/key/"), std::slice::from_ref(&contested));
    assert_eq!((left(&fixture, "kms/material/").len(), count(&fixture, "DeleteKey")), (1, 3));
    fixture.store.conflict_on(None);
    run_housekeeping(&fixture).unwrap();
    assert_eq!((left(&fixture, "kms/").len(), count(&fixture, "DeleteKey")), (0, 4));
}

#[test]
fn a_key_that_others_keep_changing_holds_up_no_rotation() {
    let fixture = Fixture::new();
    let keys = keys(&fixture, "EnableKeyRotation", &json!({ "RotationPeriodInDays": 90 }));
    fixture.advance(90 * DAY);
    fixture.store.conflict_on(Some(&record_key(keys[1].0, &keys[1].1)));
    assert_eq!(run_housekeeping(&fixture), Err(StoreError::Conflict.into()));
    assert_eq!((left(&fixture, "kms/material/").len(), count(&fixture, "RotateKey")), (7, 3));
    fixture.store.conflict_on(None);
    run_housekeeping(&fixture).unwrap();
    run_housekeeping(&fixture).unwrap();
    assert_eq!((left(&fixture, "kms/material/").len(), count(&fixture, "RotateKey")), (8, 4));
}

#[test]
fn a_conflict_now_and_then_does_not_put_anything_off() {
    let fixture = Fixture::new();
    keys(&fixture, "ScheduleKeyDeletion", &json!({ "PendingWindowInDays": 7 }));
    fixture.advance(7 * DAY);
    fixture.store.conflict_next(5);
    run_housekeeping(&fixture).unwrap();
    assert_eq!((left(&fixture, "kms/").len(), count(&fixture, "DeleteKey")), (0, 4));
}

#[test]
fn unreadable_record_is_reported_and_skipped() {
    let fixture = Fixture::new();
    let keys = keys(&fixture, "ScheduleKeyDeletion", &json!({ "PendingWindowInDays": 7 }));
    let user = fixture.user(
        ACCOUNT,
        "eve",
        &[json!({
            "Version": "2012-10-17",
            "Statement": [{ "Effect": "Allow", "Action": "*", "Resource": "*" }],
        })],
    );
    let trust = json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": "sts:AssumeRole",
        }],
    });
    let role = fixture.role(ACCOUNT, "role", &trust, &[]);
    fixture.session(&user, &role, &[]);
    fixture.advance(7 * DAY);
    // One record is no JSON; another is JSON of an unknown type, and is due.
    let first = "kms/key/000000000000/eu-west-1/0".to_owned();
    write(&fixture, &first, b"garbage");
    write(&fixture, "iam/session/0", b"garbage");
    let strange = record_key(keys[0].0, &keys[0].1);
    let record = with(&read(&fixture, &strange), json!({ "spec": "ROT13" }));
    fixture.put_record(&strange, &record);
    assert_eq!(run_housekeeping(&fixture), Err(Fault::Damaged(first.clone())));
    assert_eq!(left(&fixture, "kms/key/"), [first.clone(), strange.clone()]);
    assert_eq!(left(&fixture, "iam/session"), ["iam/session/0"], "later sweeps have their turn");
    assert_eq!(count(&fixture, "DeleteKey"), 3);
    let writes = vec![(first, None)];
    fixture.store.commit_and_wait(Transaction { writes, ..Transaction::default() }).unwrap();
    assert_eq!(run_housekeeping(&fixture), Err(Fault::Damaged(strange)));
}

#[test]
fn a_primary_key_on_its_way_out_does_not_rotate() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({ "MultiRegion": true }));
    let id = json!({ "KeyId": key });
    fixture.kms("EnableKeyRotation", with(&id, json!({ "RotationPeriodInDays": 90 }))).unwrap();
    fixture.kms("ReplicateKey", with(&id, json!({ "ReplicaRegion": "us-east-1" }))).unwrap();
    fixture.kms("ScheduleKeyDeletion", id.clone()).unwrap();
    assert_eq!(fixture.state(&key), "PendingReplicaDeletion");
    fixture.advance(90 * DAY);
    run_housekeeping(&fixture).unwrap();
    assert_eq!(count(&fixture, "RotateKey"), 0);
    fixture.kms("CancelKeyDeletion", id.clone()).unwrap();
    fixture.kms("EnableKey", id).unwrap();
    run_housekeeping(&fixture).unwrap();
    assert_eq!(count(&fixture, "RotateKey"), 1, "it makes up for it");
}

#[test]
fn a_store_that_fails_is_reported_and_nothing_is_lost() {
    let fixture = Fixture::new();
    keys(&fixture, "ScheduleKeyDeletion", &json!({ "PendingWindowInDays": 7 }));
    fixture.advance(7 * DAY);
    fixture.store.fail_writes(true);
    assert_eq!(run_housekeeping(&fixture), Err(StoreError::Full.into()));
    fixture.store.fail_writes(false);
    fixture.store.fail_reads(true);
    assert!(run_housekeeping(&fixture).is_err());
    fixture.store.fail_reads(false);
    run_housekeeping(&fixture).unwrap();
    assert_eq!((left(&fixture, "kms/").len(), count(&fixture, "DeleteKey")), (0, 4));
}

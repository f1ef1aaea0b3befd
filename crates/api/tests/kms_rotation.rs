//! Rotation of key material: by date, on demand, and what stays decryptable.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{Fixture, NOW, Who, code, text, unb64, with};
use outlast_store::Store;
use serde_json::{Value, json};

const DAY: i64 = 86_400;

fn status(fixture: &Fixture, key: &str) -> Value {
    fixture.kms("GetKeyRotationStatus", json!({ "KeyId": key })).unwrap()
}

fn current(fixture: &Fixture, who: &Who, key: &str) -> String {
    let found = fixture.kms_as(who, "DescribeKey", json!({ "KeyId": key })).unwrap();
    text(&found["KeyMetadata"]["CurrentKeyMaterialId"]).to_owned()
}

fn rotations(fixture: &Fixture, key: &str) -> Vec<Value> {
    let found = fixture.kms("ListKeyRotations", json!({ "KeyId": key })).unwrap();
    found["Rotations"].as_array().unwrap().clone()
}

fn rotated(fixture: &Fixture) -> usize {
    fixture.events().iter().filter(|event| event["eventType"] == "AwsServiceEvent").count()
}

#[test]
fn rotation_is_switched_on_for_a_period_and_off() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({}));
    let id = json!({ "KeyId": key });
    let off = status(&fixture, &key);
    assert_eq!(off["KeyRotationEnabled"], false);
    assert!(off.get("RotationPeriodInDays").is_none() && off.get("NextRotationDate").is_none());
    fixture.kms("EnableKeyRotation", id.clone()).unwrap();
    let on = status(&fixture, &key);
    assert_eq!(
        (&on["KeyRotationEnabled"], &on["RotationPeriodInDays"]),
        (&json!(true), &json!(365))
    );
    assert_eq!(on["NextRotationDate"], NOW + 365 * DAY);
    for days in [90, 2560] {
        let body = with(&id, json!({ "RotationPeriodInDays": days }));
        fixture.kms("EnableKeyRotation", body).unwrap();
        assert_eq!(status(&fixture, &key)["NextRotationDate"], NOW + days * DAY);
    }
    for days in [89, 2561, 0, -1, i64::MAX, i64::MIN] {
        let body = with(&id, json!({ "RotationPeriodInDays": days }));
        assert_eq!(code(fixture.kms("EnableKeyRotation", body)), "ValidationException", "{days}");
    }
    fixture.kms("DisableKeyRotation", id.clone()).unwrap();
    assert_eq!(status(&fixture, &key), off);
    let changes = ["EnableKeyRotation", "DisableKeyRotation", "RotateKeyOnDemand"];
    fixture.kms("DisableKey", id.clone()).unwrap();
    for operation in changes {
        assert_eq!(code(fixture.kms(operation, id.clone())), "DisabledException");
    }
    fixture.kms("ScheduleKeyDeletion", id.clone()).unwrap();
    for operation in changes {
        assert_eq!(code(fixture.kms(operation, id.clone())), "KMSInvalidStateException");
    }
    for (spec, usage) in [("ML_DSA_44", "SIGN_VERIFY"), ("HMAC_256", "GENERATE_VERIFY_MAC")] {
        let id = json!({ "KeyId": fixture.key_of(spec, usage) });
        let others = ["GetKeyRotationStatus", "ListKeyRotations"];
        for operation in changes.iter().chain(&others) {
            let refused = code(fixture.kms(operation, id.clone()));
            assert_eq!(refused, "UnsupportedOperationException", "{operation}");
        }
    }
}

#[test]
fn keys_rotate_on_their_date() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({}));
    let id = json!({ "KeyId": key });
    let body = with(&id, json!({ "RotationPeriodInDays": 90 }));
    fixture.kms("EnableKeyRotation", body).unwrap();
    let first = current(&fixture, &Who::admin(), &key);
    let old = fixture.encrypted(&key, b"old");
    fixture.advance(90 * DAY - 1);
    fixture.run_housekeeping();
    assert_eq!((current(&fixture, &Who::admin(), &key), rotated(&fixture)), (first.clone(), 0));
    fixture.advance(1);
    fixture.run_housekeeping();
    let second = current(&fixture, &Who::admin(), &key);
    assert_ne!(second, first);
    let event =
        fixture.events().into_iter().find(|event| event["eventName"] == "RotateKey").unwrap();
    assert_eq!(event["eventSource"], "kms.amazonaws.com");
    assert!(text(&event["resources"][0]["ARN"]).ends_with(&key));
    fixture.run_housekeeping();
    fixture.advance(90 * DAY - 1);
    fixture.run_housekeeping();
    assert_eq!((current(&fixture, &Who::admin(), &key), rotated(&fixture)), (second.clone(), 1));
    let young = fixture.encrypted(&key, b"young");
    for (blob, plaintext, material) in
        [(&old, b"old".to_vec(), &first), (&young, b"young".to_vec(), &second)]
    {
        let opened = fixture.kms("Decrypt", json!({ "CiphertextBlob": blob })).unwrap();
        assert_eq!(
            (unb64(&opened["Plaintext"]), &opened["KeyMaterialId"]),
            (plaintext, &json!(material))
        );
    }
    let listed = rotations(&fixture, &key);
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0]["RotationType"], "AUTOMATIC");
    assert_eq!(listed[0]["RotationDate"], NOW + 90 * DAY);
    assert!(listed[0].get("ImportState").is_none());
    let all = with(&id, json!({ "IncludeKeyMaterial": "ALL_KEY_MATERIAL", "Limit": 1 }));
    let page = fixture.kms("ListKeyRotations", all.clone()).unwrap();
    assert_eq!(
        (&page["Rotations"][0]["KeyMaterialState"], &page["Truncated"]),
        (&json!("CURRENT"), &json!(true))
    );
    let next = with(&all, json!({ "Marker": page["NextMarker"] }));
    let page = fixture.kms("ListKeyRotations", next).unwrap();
    let entry = &page["Rotations"][0];
    assert_eq!(
        (&entry["KeyMaterialState"], &entry["KeyMaterialId"]),
        (&json!("NON_CURRENT"), &json!(first))
    );
    assert!(entry.get("RotationDate").is_none() && entry.get("RotationType").is_none());
    let wrong = with(&id, json!({ "IncludeKeyMaterial": "SOME" }));
    assert_eq!(code(fixture.kms("ListKeyRotations", wrong)), "ValidationException");
}

#[test]
fn keys_that_are_off_or_on_their_way_out_do_not_rotate() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({}));
    let id = json!({ "KeyId": key });
    fixture.kms("EnableKeyRotation", with(&id, json!({ "RotationPeriodInDays": 90 }))).unwrap();
    let first = current(&fixture, &Who::admin(), &key);
    fixture.kms("DisableKey", id.clone()).unwrap();
    assert_eq!(status(&fixture, &key)["KeyRotationEnabled"], true);
    fixture.advance(100 * DAY);
    fixture.run_housekeeping();
    assert_eq!(current(&fixture, &Who::admin(), &key), first);
    fixture.kms("ScheduleKeyDeletion", id.clone()).unwrap();
    assert_eq!(status(&fixture, &key)["KeyRotationEnabled"], false, "while it is pending deletion");
    fixture.run_housekeeping();
    assert_eq!(current(&fixture, &Who::admin(), &key), first);
    fixture.kms("CancelKeyDeletion", id.clone()).unwrap();
    assert_eq!(status(&fixture, &key)["KeyRotationEnabled"], true);
    fixture.kms("EnableKey", id).unwrap();
    fixture.run_housekeeping();
    assert_ne!(current(&fixture, &Who::admin(), &key), first, "it makes up for it at once");
}

#[test]
fn rotation_on_demand_is_limited_and_changes_no_schedule() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({}));
    let id = json!({ "KeyId": key });
    fixture.kms("EnableKeyRotation", with(&id, json!({ "RotationPeriodInDays": 90 }))).unwrap();
    let mut blobs = vec![fixture.encrypted(&key, b"x")];
    let mut seen = vec![current(&fixture, &Who::admin(), &key)];
    for _ in 0..25 {
        fixture.advance(1);
        let answer = fixture.kms("RotateKeyOnDemand", id.clone()).unwrap();
        assert!(text(&answer["KeyId"]).ends_with(&key));
        blobs.push(fixture.encrypted(&key, b"x"));
        seen.push(current(&fixture, &Who::admin(), &key));
    }
    assert_eq!(code(fixture.kms("RotateKeyOnDemand", id)), "LimitExceededException");
    assert_eq!(status(&fixture, &key)["NextRotationDate"], NOW + 90 * DAY);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 26);
    for blob in &blobs {
        assert_eq!(fixture.decrypted(blob), b"x");
    }
    let dates: Vec<_> =
        rotations(&fixture, &key).iter().map(|one| one["RotationDate"].as_i64().unwrap()).collect();
    assert_eq!(dates.len(), 25);
    assert!(dates.is_sorted_by(|a, b| a > b), "the newest first");
    fixture.advance(90 * DAY);
    fixture.run_housekeeping();
    assert_eq!(rotations(&fixture, &key).len(), 26, "rotations by date have no such limit");
    // All materials are erased with the key.
    let secrets = || fixture.store.scan("kms/material/", "", 100).unwrap().len();
    assert_eq!(secrets(), 27);
    fixture.kms("ScheduleKeyDeletion", json!({ "KeyId": key, "PendingWindowInDays": 7 })).unwrap();
    fixture.advance(7 * DAY);
    fixture.run_housekeeping();
    assert_eq!(secrets(), 0);
}

#[test]
fn replicas_follow_their_primary() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({ "MultiRegion": true }));
    let id = json!({ "KeyId": key });
    let there = Who::admin().at("us-east-1");
    fixture.kms("EnableKeyRotation", with(&id, json!({ "RotationPeriodInDays": 90 }))).unwrap();
    fixture.kms("ReplicateKey", with(&id, json!({ "ReplicaRegion": "us-east-1" }))).unwrap();
    let here = status(&fixture, &key);
    let shared = fixture.kms_as(&there, "GetKeyRotationStatus", id.clone()).unwrap();
    assert_eq!(shared["NextRotationDate"], here["NextRotationDate"]);
    assert_ne!(shared["KeyId"], here["KeyId"]);
    for operation in ["EnableKeyRotation", "DisableKeyRotation", "RotateKeyOnDemand"] {
        let refused = fixture.kms_as(&there, operation, id.clone());
        assert_eq!(code(refused), "UnsupportedOperationException");
    }
    let open = |who: &Who, blob: &str| {
        unb64(
            &fixture.kms_as(who, "Decrypt", json!({ "CiphertextBlob": blob })).unwrap()["Plaintext"],
        )
    };
    let mut blobs = vec![fixture.encrypted(&key, b"x")];
    fixture.kms("RotateKeyOnDemand", id.clone()).unwrap();
    blobs.push(fixture.encrypted(&key, b"x"));
    fixture.advance(90 * DAY);
    fixture.run_housekeeping();
    blobs.push(fixture.encrypted(&key, b"x"));
    for who in [&Who::admin(), &there] {
        assert_eq!(current(&fixture, who, &key), current(&fixture, &Who::admin(), &key));
        for blob in &blobs {
            assert_eq!(open(who, blob), b"x");
        }
    }
    assert_eq!(rotated(&fixture), 1, "the set rotates once, not in each region");
    // The rotation schedule moves with the primary key.
    let body = with(&id, json!({ "PrimaryRegion": "us-east-1" }));
    fixture.kms("UpdatePrimaryRegion", body).unwrap();
    fixture.advance(90 * DAY);
    fixture.run_housekeeping();
    assert_eq!(rotated(&fixture), 2);
    assert_eq!(current(&fixture, &there, &key), current(&fixture, &Who::admin(), &key));
    let made =
        fixture.kms_as(&there, "Encrypt", with(&id, json!({ "Plaintext": "eA==" }))).unwrap();
    assert_eq!(open(&Who::admin(), text(&made["CiphertextBlob"])), b"x");
    let late = Who::admin().at("ap-south-1");
    fixture
        .kms_as(&there, "ReplicateKey", with(&id, json!({ "ReplicaRegion": "ap-south-1" })))
        .unwrap();
    for blob in &blobs {
        assert_eq!(open(&late, blob), b"x", "a late replica has the old material, too");
    }
}

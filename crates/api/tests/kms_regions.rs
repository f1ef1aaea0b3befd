//! Multi-Region keys: replicas, the primary region, and the order in which they go.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{
    ACCOUNT, Answer, Fixture, REGION, Who, b64, code, key_arn, key_policy, text, unb64, with,
};
use outlast_crypto::keys::KEY_SPECS;
use outlast_store::Store;
use serde_json::{Value, json};

const DAY: i64 = 86_400;
const THERE: &str = "us-east-1";

fn there() -> Who {
    Who::admin().at(THERE)
}

fn metadata(fixture: &Fixture, who: &Who, key: &str) -> Value {
    fixture.kms_as(who, "DescribeKey", json!({ "KeyId": key })).unwrap()["KeyMetadata"].clone()
}

fn replicate(fixture: &Fixture, key: &str, region: &str) -> Answer {
    fixture.kms("ReplicateKey", json!({ "KeyId": key, "ReplicaRegion": region }))
}

fn schedule(fixture: &Fixture, who: &Who, key: &str) -> Value {
    let body = json!({ "KeyId": key, "PendingWindowInDays": 7 });
    fixture.kms_as(who, "ScheduleKeyDeletion", body).unwrap()
}

#[test]
fn a_replica_is_the_same_key_elsewhere() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({
        "MultiRegion": true, "Description": "here", "Tags": [{ "TagKey": "a", "TagValue": "b" }],
    }));
    assert!(key.starts_with("mrk-"));
    let before = metadata(&fixture, &Who::admin(), &key);
    assert_eq!(before["MultiRegionConfiguration"]["MultiRegionKeyType"], "PRIMARY");
    assert_eq!(before["MultiRegionConfiguration"]["ReplicaKeys"], json!([]));
    let policy = key_policy(json!([]));
    let body = json!({
        "KeyId": key, "ReplicaRegion": THERE, "Description": "there", "Policy": policy,
        "Tags": [{ "TagKey": "c", "TagValue": "d" }],
    });
    let made = fixture.kms("ReplicateKey", body).unwrap();
    assert_eq!(made["ReplicaKeyMetadata"]["KeyState"], "Creating");
    assert_eq!(made["ReplicaKeyMetadata"]["Arn"], key_arn(ACCOUNT, THERE, &key));
    assert_eq!(
        (&made["ReplicaPolicy"], &made["ReplicaTags"][0]["TagKey"]),
        (&json!(policy), &json!("c"))
    );
    let (here, replica) =
        (metadata(&fixture, &Who::admin(), &key), metadata(&fixture, &there(), &key));
    assert_eq!(replica["KeyState"], "Enabled");
    assert_eq!(replica["MultiRegionConfiguration"]["MultiRegionKeyType"], "REPLICA");
    for member in ["PrimaryKey", "ReplicaKeys"] {
        assert_eq!(
            replica["MultiRegionConfiguration"][member],
            here["MultiRegionConfiguration"][member]
        );
    }
    assert_eq!(here["MultiRegionConfiguration"]["ReplicaKeys"][0]["Region"], THERE);
    assert_eq!((&here["Description"], &replica["Description"]), (&json!("here"), &json!("there")));
    for member in ["KeyId", "KeySpec", "KeyUsage", "Origin", "CurrentKeyMaterialId"] {
        assert_eq!(replica[member], here[member], "{member}");
    }
    let tags = fixture.kms_as(&there(), "ListResourceTags", json!({ "KeyId": key })).unwrap();
    assert_eq!(tags["Tags"], json!([{ "TagKey": "c", "TagValue": "d" }]));
    // Use and state belong to each Region.
    let blob = json!({ "CiphertextBlob": fixture.encrypted(&key, b"x") });
    assert_eq!(
        unb64(&fixture.kms_as(&there(), "Decrypt", blob.clone()).unwrap()["Plaintext"]),
        b"x"
    );
    fixture.kms("DisableKey", json!({ "KeyId": key })).unwrap();
    fixture.kms_as(&there(), "Decrypt", blob.clone()).unwrap();
    assert_eq!(code(fixture.kms("Decrypt", blob.clone())), "DisabledException");
    let nowhere = fixture.kms_as(&Who::admin().at("eu-west-3"), "Decrypt", blob);
    assert_eq!(code(nowhere), "AccessDeniedException");
    // A single-Region key does not exist in other Regions.
    let local = fixture.key(json!({}));
    let blob = json!({ "CiphertextBlob": fixture.encrypted(&local, b"x") });
    assert_eq!(code(fixture.kms_as(&there(), "Decrypt", blob)), "AccessDeniedException");
}

#[test]
fn every_key_type_has_replicas() {
    let fixture = Fixture::new();
    for spec in KEY_SPECS.iter().filter(|spec| !matches!(spec.name, "RSA_3072" | "RSA_4096")) {
        let usage = spec.usages[0].name();
        let key =
            fixture.key(json!({ "KeySpec": spec.name, "KeyUsage": usage, "MultiRegion": true }));
        replicate(&fixture, &key, THERE).unwrap();
        if spec.is_symmetric() {
            continue;
        }
        let public = |who: &Who| {
            let found = fixture.kms_as(who, "GetPublicKey", json!({ "KeyId": key })).unwrap();
            unb64(&found["PublicKey"])
        };
        assert_eq!(public(&Who::admin()), public(&there()), "{}", spec.name);
        if let Some(row) = spec.signing.first() {
            let body = json!({
                "KeyId": key, "Message": b64(b"m"), "SigningAlgorithm": row.kms_name,
            });
            let made = fixture.kms("Sign", body.clone()).unwrap();
            let check = with(&body, json!({ "Signature": made["Signature"] }));
            fixture.kms_as(&there(), "Verify", check).unwrap();
        }
    }
}

#[test]
fn what_cannot_be_replicated_is_refused() {
    let fixture = Fixture::new();
    let local = fixture.key(json!({}));
    assert_eq!(code(replicate(&fixture, &local, THERE)), "UnsupportedOperationException");
    let key = fixture.key(json!({ "MultiRegion": true }));
    for wrong in ["", "Not-A-Region", "../x", &"x".repeat(33), "a/b", "eu--west"] {
        assert_eq!(code(replicate(&fixture, &key, wrong)), "ValidationException", "{wrong}");
    }
    assert_eq!(code(replicate(&fixture, &key, REGION)), "AlreadyExistsException");
    replicate(&fixture, &key, THERE).unwrap();
    assert_eq!(code(replicate(&fixture, &key, THERE)), "AlreadyExistsException");
    let id = json!({ "KeyId": key });
    let of_replica = with(&id, json!({ "ReplicaRegion": "eu-west-2" }));
    let refused = fixture.kms_as(&there(), "ReplicateKey", of_replica.clone());
    assert_eq!(code(refused), "UnsupportedOperationException");
    let malformed = with(&of_replica, json!({ "Policy": "{}" }));
    assert_eq!(code(fixture.kms("ReplicateKey", malformed)), "MalformedPolicyDocumentException");
    let twice = json!([{ "TagKey": "a", "TagValue": "" }, { "TagKey": "a", "TagValue": "" }]);
    let tags = with(&of_replica, json!({ "Tags": twice }));
    assert_eq!(code(fixture.kms("ReplicateKey", tags)), "TagException");
    fixture.kms("DisableKey", id.clone()).unwrap();
    assert_eq!(code(fixture.kms("ReplicateKey", of_replica.clone())), "DisabledException");
    schedule(&fixture, &Who::admin(), &key);
    assert_eq!(code(fixture.kms("ReplicateKey", of_replica)), "KMSInvalidStateException");
}

#[test]
fn the_primary_region_moves_there_and_back() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({ "MultiRegion": true }));
    replicate(&fixture, &key, THERE).unwrap();
    replicate(&fixture, &key, "eu-west-2").unwrap();
    let id = json!({ "KeyId": key });
    let to = |region: &str| with(&id, json!({ "PrimaryRegion": region }));
    let is_primary = |who: &Who| {
        metadata(&fixture, who, &key)["MultiRegionConfiguration"]["MultiRegionKeyType"] == "PRIMARY"
    };
    assert_eq!(code(fixture.kms("UpdatePrimaryRegion", to("ap-south-1"))), "NotFoundException");
    assert_eq!(
        code(fixture.kms_as(&there(), "UpdatePrimaryRegion", to(THERE))),
        "UnsupportedOperationException"
    );
    fixture.kms("UpdatePrimaryRegion", to(THERE)).unwrap();
    assert!(is_primary(&there()) && !is_primary(&Who::admin()));
    let third = Who::admin().at("eu-west-2");
    for who in [&Who::admin(), &there(), &third] {
        let found = metadata(&fixture, who, &key);
        let configuration = &found["MultiRegionConfiguration"];
        assert_eq!(configuration["PrimaryKey"]["Region"], THERE);
        let replicas = configuration["ReplicaKeys"].as_array().unwrap();
        let regions: Vec<_> = replicas.iter().map(|one| text(&one["Region"])).collect();
        assert_eq!(regions, [REGION, "eu-west-2"]);
    }
    fixture.kms_as(&there(), "UpdatePrimaryRegion", to(REGION)).unwrap();
    assert!(is_primary(&Who::admin()) && !is_primary(&there()));
    fixture.kms_as(&there(), "DisableKey", id.clone()).unwrap();
    assert_eq!(code(fixture.kms("UpdatePrimaryRegion", to(THERE))), "DisabledException");
    fixture.kms("DisableKey", id.clone()).unwrap();
    assert_eq!(code(fixture.kms("UpdatePrimaryRegion", to("eu-west-2"))), "DisabledException");
    let local = json!({ "KeyId": fixture.key(json!({})), "PrimaryRegion": THERE });
    assert_eq!(code(fixture.kms("UpdatePrimaryRegion", local)), "UnsupportedOperationException");
}

#[test]
fn replicas_go_first() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({ "MultiRegion": true }));
    let (admin, third) = (Who::admin(), Who::admin().at("eu-west-2"));
    replicate(&fixture, &key, THERE).unwrap();
    replicate(&fixture, &key, "eu-west-2").unwrap();
    let blob = json!({ "CiphertextBlob": fixture.encrypted(&key, b"x") });
    let answer = schedule(&fixture, &admin, &key);
    assert_eq!(answer["KeyState"], "PendingReplicaDeletion");
    assert_eq!((&answer["PendingWindowInDays"], answer.get("DeletionDate")), (&json!(7), None));
    let waiting = metadata(&fixture, &admin, &key);
    assert_eq!(waiting["PendingDeletionWindowInDays"], 7);
    assert!(waiting.get("DeletionDate").is_none());
    assert_eq!(code(fixture.kms("Decrypt", blob.clone())), "KMSInvalidStateException");
    fixture.kms_as(&there(), "Decrypt", blob.clone()).unwrap();
    fixture.advance(30 * DAY);
    fixture.run_housekeeping();
    assert_eq!(fixture.state(&key), "PendingReplicaDeletion", "however long it waits");
    // One of the two is deleted, and the set forgets it.
    assert_eq!(schedule(&fixture, &third, &key)["KeyState"], "PendingDeletion");
    fixture.advance(7 * DAY);
    fixture.run_housekeeping();
    assert_eq!(
        code(fixture.kms_as(&third, "DescribeKey", json!({ "KeyId": key }))),
        "NotFoundException"
    );
    let left = &metadata(&fixture, &there(), &key)["MultiRegionConfiguration"]["ReplicaKeys"];
    assert_eq!(left.as_array().unwrap().len(), 1);
    assert_eq!(fixture.state(&key), "PendingReplicaDeletion");
    fixture.kms_as(&there(), "Decrypt", blob.clone()).unwrap();
    schedule(&fixture, &there(), &key);
    fixture.advance(7 * DAY);
    fixture.run_housekeeping();
    let due = metadata(&fixture, &admin, &key);
    assert_eq!(due["KeyState"], "PendingDeletion");
    assert_eq!(due["DeletionDate"], fixture.now.get() + 7 * DAY);
    assert!(due.get("PendingDeletionWindowInDays").is_none());
    // The deletion can still be cancelled, and the key replicated again.
    fixture.kms("CancelKeyDeletion", json!({ "KeyId": key })).unwrap();
    fixture.kms("EnableKey", json!({ "KeyId": key })).unwrap();
    replicate(&fixture, &key, THERE).unwrap();
    fixture.kms_as(&there(), "Decrypt", blob).unwrap();
}

/// All replicas of a set are erased in one step of the sweep: each must see that the others were.
#[test]
fn replicas_that_go_together_are_all_forgotten() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({ "MultiRegion": true }));
    let regions = [THERE, "ap-south-1", "eu-west-2", "sa-east-1"];
    for region in regions {
        replicate(&fixture, &key, region).unwrap();
    }
    schedule(&fixture, &Who::admin(), &key);
    for region in regions {
        schedule(&fixture, &Who::admin().at(region), &key);
    }
    fixture.advance(7 * DAY);
    fixture.run_housekeeping();
    let left = metadata(&fixture, &Who::admin(), &key);
    assert_eq!(left["MultiRegionConfiguration"]["ReplicaKeys"], json!([]));
    assert_eq!(left["KeyState"], "PendingDeletion");
    fixture.advance(7 * DAY);
    fixture.run_housekeeping();
    assert!(fixture.store.scan("kms/", "", 10).unwrap().is_empty());
    let deleted = fixture.events().iter().filter(|event| event["eventName"] == "DeleteKey").count();
    assert_eq!(deleted, 5);
}

#[test]
fn primary_key_deletion_can_be_cancelled_with_replicas() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({ "MultiRegion": true }));
    replicate(&fixture, &key, THERE).unwrap();
    schedule(&fixture, &Who::admin(), &key);
    for operation in ["EnableKey", "DisableKey", "ScheduleKeyDeletion"] {
        let refused = code(fixture.kms(operation, json!({ "KeyId": key })));
        assert_eq!(refused, "KMSInvalidStateException");
    }
    fixture.kms("CancelKeyDeletion", json!({ "KeyId": key })).unwrap();
    assert_eq!(fixture.state(&key), "Disabled");
    // Nothing waits any more: the key stays when the replica is deleted.
    schedule(&fixture, &there(), &key);
    fixture.advance(8 * DAY);
    fixture.run_housekeeping();
    assert_eq!(fixture.state(&key), "Disabled");
}

#[test]
fn the_new_primary_region_is_what_policies_ask_about() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({ "MultiRegion": true }));
    replicate(&fixture, &key, THERE).unwrap();
    let deny = json!({
        "Effect": "Deny", "Principal": "*", "Action": "kms:UpdatePrimaryRegion", "Resource": "*",
        "Condition": { "StringEquals": { "kms:PrimaryRegion": THERE } },
    });
    let body = json!({ "KeyId": key, "Policy": key_policy(json!([deny])) });
    fixture.kms("PutKeyPolicy", body).unwrap();
    let body = json!({ "KeyId": key, "PrimaryRegion": THERE });
    assert_eq!(code(fixture.kms("UpdatePrimaryRegion", body)), "AccessDeniedException");
}

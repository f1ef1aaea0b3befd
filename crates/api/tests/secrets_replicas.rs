//! Replicas of secrets in other Regions.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common;

use common::{Fixture, REGION, Who, code, text, with};
use serde_json::{Value, json};

#[test]
fn replicas_follow_their_primary_secret() {
    let fixture = Fixture::new();
    let there = Who::admin().at("eu-central-1");
    let body = json!({ "Name": "s", "SecretString": "one", "Tags": [{ "Key": "a", "Value": "b" }],
        "AddReplicaRegions": [{ "Region": "eu-central-1" }] });
    let made = fixture.secrets("CreateSecret", body).unwrap();
    assert_eq!(made["ReplicationStatus"][0]["Status"], "InSync");
    let arn = text(&made["ARN"]).to_owned();
    let replica = arn.replace(REGION, "eu-central-1");
    let get = json!({ "SecretId": replica });
    let got = fixture.secrets_as(&there, "GetSecretValue", &get).unwrap();
    assert_eq!(text(&got["SecretString"]), "one");
    let version = fixture.put("s", "two", json!({}));
    let got = fixture.secrets_as(&there, "GetSecretValue", &get).unwrap();
    assert_eq!((text(&got["SecretString"]), text(&got["VersionId"])), ("two", &*version));
    let described = fixture.secrets_as(&there, "DescribeSecret", &get).unwrap();
    assert_eq!(text(&described["PrimaryRegion"]), REGION);
    assert_eq!(described["Tags"], json!([{ "Key": "a", "Value": "b" }]));
    assert_eq!(described["VersionIdsToStages"], fixture.staged("s"));

    // Changes are made at the primary secret only.
    for (operation, body) in [
        ("PutSecretValue", json!({ "SecretId": replica, "SecretString": "x" })),
        ("DeleteSecret", json!({ "SecretId": replica })),
        ("DeleteSecret", json!({ "SecretId": replica, "ForceDeleteWithoutRecovery": true })),
        ("TagResource", json!({ "SecretId": replica, "Tags": [{ "Key": "c", "Value": "d" }] })),
    ] {
        let refused = fixture.secrets_as(&there, operation, &body);
        assert_eq!(code(refused), "InvalidRequestException", "{operation}");
    }
    assert_eq!(
        code(fixture.secrets("DeleteSecret", json!({ "SecretId": "s" }))),
        "InvalidRequestException"
    );

    // A name that is taken, a Region that is the own one, a key that does not work.
    let elsewhere = Who::admin().at("us-east-1");
    fixture
        .secrets_as(&elsewhere, "CreateSecret", &json!({ "Name": "s", "SecretString": "other" }))
        .unwrap();
    let add = |region: &str, more: Value| {
        let replica = with(&json!({ "Region": region }), more);
        fixture.secrets(
            "ReplicateSecretToRegions",
            json!({ "SecretId": "s", "AddReplicaRegions": [replica] }),
        )
    };
    assert_eq!(code(add(REGION, json!({}))), "InvalidParameterException");
    let status = add("us-east-1", json!({})).unwrap()["ReplicationStatus"].clone();
    assert_eq!((text(&status[1]["Region"]), text(&status[1]["Status"])), ("us-east-1", "Failed"));
    let message = text(&status[1]["StatusMessage"]);
    assert_eq!(message, "Replication failed: Secret name s already exists in region us-east-1.");
    // What was there stays.
    let got =
        fixture.secrets_as(&elsewhere, "GetSecretValue", &json!({ "SecretId": "s" })).unwrap();
    assert_eq!(text(&got["SecretString"]), "other");
    let again = json!({ "SecretId": "s", "AddReplicaRegions": [{ "Region": "us-east-1" }],
        "ForceOverwriteReplicaSecret": true });
    let status = fixture.secrets("ReplicateSecretToRegions", again).unwrap();
    assert_eq!(status["ReplicationStatus"][1]["Status"], "InSync");
    let got =
        fixture.secrets_as(&elsewhere, "GetSecretValue", &json!({ "SecretId": "s" })).unwrap();
    assert_eq!(text(&got["SecretString"]), "two");
    let status = add("us-west-2", json!({ "KmsKeyId": "alias/none" })).unwrap();
    assert_eq!(status["ReplicationStatus"][2]["Status"], "Failed");

    // Only what a request names is overwritten, not what an earlier one could not.
    fixture
        .secrets_as(
            &Who::admin().at("ap-south-1"),
            "CreateSecret",
            &json!({ "Name": "s", "SecretString": "mine" }),
        )
        .unwrap();
    let failed = json!({ "SecretId": "s", "AddReplicaRegions": [{ "Region": "ap-south-1" }] });
    fixture.secrets("ReplicateSecretToRegions", failed).unwrap();
    let named = json!({ "SecretId": "s", "AddReplicaRegions": [{ "Region": "eu-north-1" }],
        "ForceOverwriteReplicaSecret": true });
    fixture.secrets("ReplicateSecretToRegions", named).unwrap();
    let got = fixture
        .secrets_as(&Who::admin().at("ap-south-1"), "GetSecretValue", &json!({ "SecretId": "s" }))
        .unwrap();
    assert_eq!(text(&got["SecretString"]), "mine");
    let remove = json!({ "SecretId": "s", "RemoveReplicaRegions": ["ap-south-1", "eu-north-1"] });
    fixture.secrets("RemoveRegionsFromReplication", remove).unwrap();

    let promote = json!({ "SecretId": replica });
    fixture.secrets_as(&there, "StopReplicationToReplica", &promote).unwrap();
    fixture.put("s", "three", json!({}));
    let got = fixture.secrets_as(&there, "GetSecretValue", &get).unwrap();
    assert_eq!(text(&got["SecretString"]), "two");
    let put = json!({ "SecretId": replica, "SecretString": "of its own" });
    fixture.secrets_as(&there, "PutSecretValue", &put).unwrap();
    let remove = json!({ "SecretId": "s", "RemoveReplicaRegions": ["us-east-1", "us-west-2"] });
    let left = fixture.secrets("RemoveRegionsFromReplication", remove).unwrap();
    assert_eq!(left["ReplicationStatus"], json!([]));
    let gone = fixture.secrets_as(&elsewhere, "GetSecretValue", &json!({ "SecretId": "s" }));
    assert_eq!(code(gone), "ResourceNotFoundException");
    fixture.secrets("DeleteSecret", json!({ "SecretId": "s" })).unwrap();
}

/// The replica's key is disabled, so that no value reaches it: what protects it and needs no key still does.
#[test]
fn a_replica_without_its_key_still_follows_the_policy() {
    let fixture = Fixture::new();
    let there = Who::admin().at("eu-central-1");
    let made = fixture.kms_as(&there, "CreateKey", json!({})).unwrap();
    let key = json!({ "KeyId": made["KeyMetadata"]["KeyId"] });
    let body = json!({ "Name": "s", "SecretString": "one", "AddReplicaRegions": [
        { "Region": "eu-central-1", "KmsKeyId": key["KeyId"] }] });
    fixture.secrets("CreateSecret", body).unwrap();
    let id = json!({ "SecretId": "s" });
    fixture.secrets_as(&there, "GetSecretValue", &id).unwrap();
    fixture.kms_as(&there, "DisableKey", key.clone()).unwrap();
    fixture.put("s", "two", json!({}));
    let deny = common::policy(json!([{ "Effect": "Deny", "Principal": "*", "Resource": "*",
        "Action": "secretsmanager:GetSecretValue" }]));
    let put = with(&id, json!({ "ResourcePolicy": deny.to_string() }));
    fixture.secrets("PutResourcePolicy", put).unwrap();
    let tag = with(&id, json!({ "Tags": [{ "Key": "a", "Value": "b" }] }));
    fixture.secrets("TagResource", tag).unwrap();
    fixture.secrets("UpdateSecret", with(&id, json!({ "Description": "new" }))).unwrap();

    // The failure stays visible.
    let status = fixture.secrets("DescribeSecret", id.clone()).unwrap();
    let status = &status["ReplicationStatus"][0];
    assert_eq!(text(&status["Status"]), "Failed");
    assert!(text(&status["StatusMessage"]).contains("disabled"), "{status}");
    fixture.kms_as(&there, "EnableKey", key).unwrap();
    let refused = fixture.secrets_as(&there, "GetSecretValue", &id);
    assert_eq!(code(refused), "AccessDeniedException");
    let described = fixture.secrets_as(&there, "DescribeSecret", &id).unwrap();
    assert_eq!(described["Tags"], json!([{ "Key": "a", "Value": "b" }]));
    assert_eq!(text(&described["Description"]), "new");

    // The next change brings the values along.
    fixture.secrets("DeleteResourcePolicy", id.clone()).unwrap();
    let got = fixture.secrets_as(&there, "GetSecretValue", &id).unwrap();
    assert_eq!(text(&got["SecretString"]), "two");
    let status = fixture.secrets("DescribeSecret", id).unwrap();
    assert_eq!(status["ReplicationStatus"][0]["Status"], "InSync");
}

#[test]
fn a_secret_is_overwritten_only_by_a_replica_that_is_made() {
    let fixture = Fixture::new();
    let there = Who::admin().at("eu-central-1");
    let id = json!({ "SecretId": "s" });
    fixture.secret("s", "mine");
    let body = json!({ "Name": "s", "SecretString": "theirs" });
    fixture.secrets_as(&there, "CreateSecret", &body).unwrap();
    let add = |key: &str| {
        let replica = json!({ "Region": "eu-central-1", "KmsKeyId": key });
        let body = json!({ "AddReplicaRegions": [replica], "ForceOverwriteReplicaSecret": true });
        let made = fixture.secrets("ReplicateSecretToRegions", with(&id, body)).unwrap();
        text(&made["ReplicationStatus"][0]["Status"]).to_owned()
    };
    let value = || {
        let got = fixture.secrets_as(&there, "GetSecretValue", &id).unwrap();
        text(&got["SecretString"]).to_owned()
    };
    assert_eq!((add("alias/none").as_str(), value().as_str()), ("Failed", "theirs"));
    // What is there is no replica: it gets nothing of the primary secret.
    let tag = with(&id, json!({ "Tags": [{ "Key": "a", "Value": "b" }] }));
    fixture.secrets("TagResource", tag).unwrap();
    let described = fixture.secrets_as(&there, "DescribeSecret", &id).unwrap();
    assert_eq!(described["Tags"], json!([]));
    assert_eq!((add("").as_str(), value().as_str()), ("InSync", "mine"));
}

#[test]
fn replicas_are_in_other_regions() {
    let fixture = Fixture::new();
    fixture.secret("s", "one");
    let refusal = |operation: &str, body: Value, regions: &[&str]| {
        let regions: Vec<_> = regions.iter().map(|region| json!({ "Region": region })).collect();
        let refused =
            fixture.secrets(operation, with(&body, json!({ "AddReplicaRegions": regions })));
        let refused = refused.unwrap_err();
        (refused.code, refused.message)
    };
    for (operation, body) in [
        ("ReplicateSecretToRegions", json!({ "SecretId": "s" })),
        ("CreateSecret", json!({ "Name": "new", "SecretString": "x" })),
    ] {
        // AWS's model has the form of a Region.
        for region in ["x", "mars", "eu-west", "eu-west-1a", "eu2-west-1"] {
            let (code, message) = refusal(operation, body.clone(), &["us-east-1", region]);
            assert_eq!(code, "ValidationException", "{region}");
            assert!(message.contains(r"regular expression pattern: ^([a-z]+-)+\d+$"), "{message}");
        }
        let own = refusal(operation, body.clone(), &["us-east-1", REGION]);
        assert_eq!(own, ("InvalidParameterException".into(), "Invalid replica region.".into()));
        let (code, message) = refusal(operation, body, &["us-east-1", "us-east-1"]);
        assert_eq!(code, "InvalidParameterException");
        assert!(message.contains("us-east-1 more than once"), "{message}");
    }
    let there = Who::admin().at("us-east-1");
    for name in ["s", "new"] {
        let absent = fixture.secrets_as(&there, "DescribeSecret", &json!({ "SecretId": name }));
        assert_eq!(code(absent), "ResourceNotFoundException");
    }
    let body = json!({ "SecretId": "s", "AddReplicaRegions": [{ "Region": "us-gov-west-1" }] });
    let made = fixture.secrets("ReplicateSecretToRegions", body).unwrap();
    assert_eq!(made["ReplicationStatus"][0]["Status"], "InSync");
}

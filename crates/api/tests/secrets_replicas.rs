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

//! BatchGetSecretValue: what it returns, what it needs, and its events.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common;

use common::{ACCOUNT, Fixture, allow, code, policy, text};
use serde_json::{Value, json};

#[test]
fn batches_say_what_could_not_be_read() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.secret("one", "1"), fixture.secret("two", "2"));
    let body = json!({ "SecretIdList": [one, "missing", two] });
    let got = fixture.secrets("BatchGetSecretValue", body).unwrap();
    let values: Vec<_> = got["SecretValues"]
        .as_array()
        .unwrap()
        .iter()
        .map(|value| text(&value["SecretString"]))
        .collect();
    assert_eq!(values, ["1", "2"]);
    assert_eq!(got["Errors"][0]["SecretId"], "missing");
    assert_eq!(got["Errors"][0]["ErrorCode"], "ResourceNotFoundException");
    let body = json!({ "Filters": [{ "Key": "name", "Values": ["t"] }], "MaxResults": 1 });
    let got = fixture.secrets("BatchGetSecretValue", body).unwrap();
    assert_eq!(got["SecretValues"].as_array().unwrap().len(), 1);
    // The permission for the batch is none for a secret.
    let batch = json!({ "Effect": "Allow", "Action": "secretsmanager:BatchGetSecretValue", "Resource": "*" });
    let only =
        json!({ "Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": one });
    let user = fixture.user(ACCOUNT, "batch", &[policy(json!([batch, only]))]);
    let body = json!({ "SecretIdList": [one, two] });
    let got = fixture.secrets_as(&user, "BatchGetSecretValue", &body).unwrap();
    assert_eq!(got["SecretValues"].as_array().unwrap().len(), 1);
    assert_eq!(got["Errors"][0]["ErrorCode"], "AccessDeniedException");
}

#[test]
fn filters_need_the_right_to_list() {
    let fixture = Fixture::new();
    fixture.secret("one", "1");
    let right = |name: &str| format!("secretsmanager:{name}");
    let (batch, get, list) =
        (right("BatchGetSecretValue"), right("GetSecretValue"), right("ListSecrets"));
    let kms = "kms:Decrypt";
    let without = fixture.user(ACCOUNT, "without", &[allow(&[&batch, &get, kms])]);
    let whole = fixture.user(ACCOUNT, "whole", &[allow(&[&batch, &get, &list, kms])]);
    let filters = json!({ "Filters": [{ "Key": "name", "Values": ["one"] }] });
    let refused = fixture.secrets_as(&without, "BatchGetSecretValue", &filters).unwrap_err();
    assert_eq!(refused.code, "AccessDeniedException");
    assert!(refused.message.contains("secretsmanager:ListSecrets"), "{}", refused.message);
    let named = json!({ "SecretIdList": ["one"] });
    for (who, body) in [(&without, &named), (&whole, &named), (&whole, &filters)] {
        let got = fixture.secrets_as(who, "BatchGetSecretValue", body).unwrap();
        assert_eq!(got["SecretValues"][0]["SecretString"], "1", "{body}");
    }
}

/// As CloudTrail has them: the batch, and GetSecretValue for each secret.
#[test]
fn each_value_of_a_batch_has_an_event() {
    let fixture = Fixture::new();
    let (one, two) = (fixture.secret("one", "first value"), fixture.secret("two", "second value"));
    let deny = json!([
        { "Effect": "Allow", "Action": "*", "Resource": "*" },
        { "Effect": "Deny", "Action": "secretsmanager:GetSecretValue", "Resource": two },
    ]);
    let user = fixture.user(ACCOUNT, "user", &[policy(deny)]);
    let events_of = |body: Value| {
        let before = fixture.events().len();
        fixture.secrets_as(&user, "BatchGetSecretValue", &body).unwrap();
        fixture.events().split_off(before)
    };
    let ids = json!(["one", two, "missing"]);
    let events = events_of(json!({ "SecretIdList": ids }));
    let names: Vec<_> = events.iter().map(|event| text(&event["eventName"])).collect();
    let expected =
        ["BatchGetSecretValue", "GetSecretValue", "Decrypt", "GetSecretValue", "GetSecretValue"];
    assert_eq!(names, expected);
    assert_eq!(events[0]["requestParameters"]["secretIdList"], ids);
    assert!(events[0].get("errorCode").is_none());
    assert_eq!(events[0]["resources"], json!([]));
    for (event, id, resource, error) in [
        (&events[1], "one", Some(&one), None),
        (&events[3], &two, Some(&two), Some("AccessDeniedException")),
        (&events[4], "missing", None, Some("ResourceNotFoundException")),
    ] {
        assert_eq!(event["eventSource"], "secretsmanager.amazonaws.com");
        assert_eq!(text(&event["requestParameters"]["secretId"]), id);
        assert_eq!(event["resources"][0]["ARN"].as_str(), resource.map(String::as_str), "{id}");
        assert_eq!(event["errorCode"].as_str(), error, "{id}");
        // The caller's own, not a service's.
        for same in ["sourceIPAddress", "userIdentity", "awsRegion", "requestID", "readOnly"] {
            assert_eq!(event[same], events[0][same], "{same}");
        }
        assert!(event["userIdentity"].get("invokedBy").is_none());
        assert_ne!(event["eventID"], events[0]["eventID"]);
    }
    assert!(!events.iter().any(|event| event.to_string().contains("first value")));

    let filters = json!({ "Filters": [{ "Key": "name", "Values": ["one"] }] });
    let names = events_of(filters);
    let names: Vec<_> = names.iter().map(|event| text(&event["eventName"])).collect();
    assert_eq!(names, ["BatchGetSecretValue", "GetSecretValue", "Decrypt"]);
    // A batch that is refused as a whole reads nothing.
    let before = fixture.events().len();
    assert_eq!(
        code(fixture.secrets_as(&user, "BatchGetSecretValue", &json!({}))),
        "InvalidParameterException"
    );
    assert_eq!(fixture.events().len(), before + 1);
}

//! Secrets Manager, whole: versions and labels, idempotency, deletion, lists, policies, keys, audit.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{
    ACCOUNT, Answer, Fixture, NOW, OTHER_ACCOUNT, REGION, Who, allow, b64, code, policy, text, with,
};
use http::HeaderMap;
use serde_json::{Value, json};

const DAY: i64 = 86_400;

impl Fixture {
    pub fn secrets_as(&self, who: &Who, operation: &str, body: &Value) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", "application/x-amz-json-1.1".parse().unwrap());
        headers.insert("x-amz-target", format!("secretsmanager.{operation}").parse().unwrap());
        common::answer(&self.request(who, "secretsmanager", headers, body.to_string().as_bytes()))
    }

    pub fn secrets(&self, operation: &str, body: Value) -> Answer {
        self.secrets_as(&Who::admin(), operation, &body)
    }

    /// A secret with a value; returns its ARN.
    pub fn secret(&self, name: &str, value: &str) -> String {
        let body = json!({ "Name": name, "SecretString": value });
        text(&self.secrets("CreateSecret", body).unwrap()["ARN"]).to_owned()
    }

    fn value(&self, id: &str) -> String {
        let got = self.secrets("GetSecretValue", json!({ "SecretId": id })).unwrap();
        text(&got["SecretString"]).to_owned()
    }

    pub fn put(&self, id: &str, value: &str, more: Value) -> String {
        let body = with(&json!({ "SecretId": id, "SecretString": value }), more);
        text(&self.secrets("PutSecretValue", body).unwrap()["VersionId"]).to_owned()
    }

    pub fn staged(&self, id: &str) -> Value {
        let found = self.secrets("DescribeSecret", json!({ "SecretId": id })).unwrap();
        found["VersionIdsToStages"].clone()
    }
}

fn token(number: u8) -> String {
    format!("{number:02}").repeat(16)
}

#[test]
fn a_secret_has_versions_and_labels() {
    let fixture = Fixture::new();
    let body = json!({
        "Name": "app/db", "SecretString": "one", "ClientRequestToken": token(1),
        "Description": "d", "Tags": [{ "Key": "team", "Value": "red" }],
    });
    let made = fixture.secrets("CreateSecret", body).unwrap();
    let arn = text(&made["ARN"]).to_owned();
    let prefix = format!("arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:app/db-");
    assert_eq!(arn.strip_prefix(&prefix).unwrap().len(), 6);
    assert_eq!((text(&made["Name"]), text(&made["VersionId"])), ("app/db", &*token(1)));

    // By name, by ARN, and by an ARN without the suffix.
    for id in ["app/db", &arn, prefix.trim_end_matches('-')] {
        let got = fixture.secrets("GetSecretValue", json!({ "SecretId": id })).unwrap();
        assert_eq!(text(&got["SecretString"]), "one");
        assert_eq!(got["VersionStages"], json!(["AWSCURRENT"]));
        assert_eq!(text(&got["ARN"]), arn);
        assert!(got.get("SecretBinary").is_none());
    }
    fixture.put(&arn, "two", json!({ "ClientRequestToken": token(2) }));
    assert_eq!(fixture.value(&arn), "two");
    assert_eq!(
        fixture.staged(&arn),
        json!({ token(1): ["AWSPREVIOUS"], token(2): ["AWSCURRENT"] })
    );
    let stage = json!({ "SecretId": arn, "VersionStage": "AWSPREVIOUS" });
    let got = fixture.secrets("GetSecretValue", stage).unwrap();
    assert_eq!(text(&got["SecretString"]), "one");

    // Pending, then current.
    let pending = json!({ "ClientRequestToken": token(3), "VersionStages": ["AWSPENDING"] });
    fixture.put(&arn, "three", pending);
    assert_eq!(fixture.value(&arn), "two");
    let moved = json!({
        "SecretId": arn, "VersionStage": "AWSCURRENT", "RemoveFromVersionId": token(2),
        "MoveToVersionId": token(3),
    });
    fixture.secrets("UpdateSecretVersionStage", moved).unwrap();
    assert_eq!(fixture.value(&arn), "three");
    assert_eq!(
        fixture.staged(&arn),
        json!({ token(2): ["AWSPREVIOUS"], token(3): ["AWSCURRENT", "AWSPENDING"] })
    );
    let list = json!({ "SecretId": arn, "IncludeDeprecated": true });
    let listed = fixture.secrets("ListSecretVersionIds", list).unwrap();
    assert_eq!(listed["Versions"].as_array().unwrap().len(), 3);
    let listed = fixture.secrets("ListSecretVersionIds", json!({ "SecretId": arn })).unwrap();
    assert_eq!(listed["Versions"].as_array().unwrap().len(), 2);

    let described = fixture.secrets("DescribeSecret", json!({ "SecretId": arn })).unwrap();
    assert_eq!(described["Tags"], json!([{ "Key": "team", "Value": "red" }]));
    assert_eq!(text(&described["Description"]), "d");
    assert!(described.get("KmsKeyId").is_none(), "{described}");
    assert_eq!(described["LastAccessedDate"], json!(NOW));
}

#[test]
fn a_binary_value_stays_binary() {
    let fixture = Fixture::new();
    let bytes: Vec<u8> = (0..=255).collect();
    let body = json!({ "Name": "b", "SecretBinary": b64(&bytes) });
    fixture.secrets("CreateSecret", body).unwrap();
    let got = fixture.secrets("GetSecretValue", json!({ "SecretId": "b" })).unwrap();
    assert_eq!(common::unb64(&got["SecretBinary"]), bytes);
    assert!(got.get("SecretString").is_none());
    let largest = "x".repeat(65_536);
    fixture.put("b", &largest, json!({}));
    assert_eq!(fixture.value("b"), largest);
    // The model counts characters; the limit is on bytes.
    let body = json!({ "SecretId": "b", "SecretString": "\u{e9}".repeat(40_000) });
    assert_eq!(code(fixture.secrets("PutSecretValue", body)), "ValidationException");
}

#[test]
fn repeated_requests_change_nothing() {
    let fixture = Fixture::new();
    let create = json!({ "Name": "s", "SecretString": "one", "ClientRequestToken": token(1) });
    let first = fixture.secrets("CreateSecret", create.clone()).unwrap();
    let again = fixture.secrets("CreateSecret", create.clone()).unwrap();
    assert_eq!(first, again);
    let other = with(&create, json!({ "SecretString": "two" }));
    assert_eq!(code(fixture.secrets("CreateSecret", other)), "ResourceExistsException");
    let other = with(&create, json!({ "ClientRequestToken": token(2) }));
    assert_eq!(code(fixture.secrets("CreateSecret", other)), "ResourceExistsException");

    let put = json!({ "SecretId": "s", "SecretString": "two", "ClientRequestToken": token(3) });
    let first = fixture.secrets("PutSecretValue", put.clone()).unwrap();
    fixture.put("s", "three", json!({ "ClientRequestToken": token(4) }));
    // The version that was put meanwhile stays the current one.
    let again = fixture.secrets("PutSecretValue", put.clone()).unwrap();
    assert_eq!(first["VersionId"], again["VersionId"]);
    assert_eq!(fixture.value("s"), "three");
    let other = with(&put, json!({ "SecretString": "x" }));
    assert_eq!(code(fixture.secrets("PutSecretValue", other)), "ResourceExistsException");
    // The same bytes as binary are another value.
    let binary =
        json!({ "SecretId": "s", "SecretBinary": b64(b"two"), "ClientRequestToken": token(3) });
    assert_eq!(code(fixture.secrets("PutSecretValue", binary)), "ResourceExistsException");
}

#[test]
fn a_value_is_under_a_data_key_of_its_own() {
    let fixture = Fixture::new();
    // So long that it is in no ciphertext by chance.
    const VALUE: &[u8] = b"correct horse battery staple";
    let arn = fixture.secret("s", str::from_utf8(VALUE).unwrap());
    let alias = json!({ "KeyId": "alias/aws/secretsmanager" });
    let key = fixture.kms("DescribeKey", alias).unwrap()["KeyMetadata"].clone();
    assert_eq!(text(&key["KeyManager"]), "AWS");
    let rotation = fixture.kms("GetKeyRotationStatus", json!({ "KeyId": key["KeyId"] })).unwrap();
    assert_eq!(rotation["KeyRotationEnabled"], true);
    // Nobody uses it past the service, nor changes it.
    for (operation, body) in [
        ("Encrypt", json!({ "KeyId": key["KeyId"], "Plaintext": "YQ==" })),
        ("GenerateDataKey", json!({ "KeyId": key["KeyId"], "KeySpec": "AES_256" })),
        ("DisableKey", json!({ "KeyId": key["KeyId"] })),
        ("ScheduleKeyDeletion", json!({ "KeyId": key["KeyId"] })),
        ("PutKeyPolicy", json!({ "KeyId": key["KeyId"], "Policy": common::key_policy(json!([])) })),
        ("CreateAlias", json!({ "TargetKeyId": key["KeyId"], "AliasName": "alias/mine" })),
        ("DeleteAlias", json!({ "AliasName": "alias/aws/secretsmanager" })),
    ] {
        assert_eq!(code(fixture.kms(operation, body)), "AccessDeniedException", "{operation}");
    }
    // The stored value does not contain the plaintext, and its data key opens with AWS's context only.
    let stored = fixture.store_without_uses();
    let holds = |value: &[u8]| value.windows(VALUE.len()).any(|bytes| bytes == VALUE);
    assert!(!stored.iter().any(|(_, value)| holds(value)));
    let calls: Vec<_> = fixture
        .events()
        .into_iter()
        .filter(|event| event["eventName"] == "GenerateDataKey")
        .collect();
    let generated = calls.first().unwrap();
    assert_eq!(generated["eventSource"], "kms.amazonaws.com");
    assert_eq!(generated["userIdentity"]["invokedBy"], "secretsmanager.amazonaws.com");
    assert_eq!(generated["requestParameters"]["encryptionContext"]["SecretARN"], json!(arn));
    fixture.value(&arn);
    let events = fixture.events();
    let names: Vec<_> =
        events.iter().rev().take(3).map(|event| text(&event["eventName"])).collect();
    assert!(names.contains(&"GetSecretValue") && names.contains(&"Decrypt"), "{names:?}");
    assert!(!events.iter().any(|event| holds(event.to_string().as_bytes())));
}

#[test]
fn the_caller_needs_the_key() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({}));
    let body = json!({ "Name": "s", "SecretString": "one", "KmsKeyId": key });
    let arn = text(&fixture.secrets("CreateSecret", body).unwrap()["ARN"]).to_owned();
    let reads = json!({ "Effect": "Allow", "Action": "secretsmanager:*", "Resource": "*" });
    let without = fixture.user(ACCOUNT, "without", &[policy(json!([reads]))]);
    let get = json!({ "SecretId": arn });
    let refused = fixture.secrets_as(&without, "GetSecretValue", &get).unwrap_err();
    assert_eq!(
        (refused.code.as_str(), refused.message.as_str()),
        ("AccessDeniedException", "Access to KMS is not allowed")
    );
    // Through this service only.
    let via = json!({ "Effect": "Allow", "Action": "kms:*", "Resource": "*", "Condition": {
        "StringEquals": { "kms:ViaService": format!("secretsmanager.{REGION}.amazonaws.com") } } });
    let with_key = fixture.user(ACCOUNT, "via", &[policy(json!([reads, via]))]);
    fixture.secrets_as(&with_key, "GetSecretValue", &get).unwrap();
    let direct = json!({ "KeyId": key, "Plaintext": "YQ==" });
    assert_eq!(code(fixture.kms_as(&with_key, "Encrypt", direct)), "AccessDeniedException");
    // A refusal of KMS is in the trail, too.
    let events = fixture.events();
    let denied = events.iter().find(|event| {
        event["eventName"] == "Decrypt" && event["userIdentity"]["userName"] == "without"
    });
    assert_eq!(denied.unwrap()["errorCode"], "AccessDeniedException");

    fixture.kms("DisableKey", json!({ "KeyId": key })).unwrap();
    assert_eq!(code(fixture.secrets("GetSecretValue", get.clone())), "DecryptionFailure");
    let put = json!({ "SecretId": arn, "SecretString": "two" });
    assert_eq!(code(fixture.secrets("PutSecretValue", put)), "EncryptionFailure");
    fixture.kms("EnableKey", json!({ "KeyId": key })).unwrap();
    assert_eq!(fixture.value(&arn), "one");
}

#[test]
fn another_key_takes_over_the_versions_with_labels() {
    let fixture = Fixture::new();
    let (first, second) = (fixture.key(json!({})), fixture.key(json!({})));
    let body = json!({ "Name": "s", "SecretString": "one", "KmsKeyId": first });
    fixture.secrets("CreateSecret", body).unwrap();
    fixture.put("s", "two", json!({}));
    fixture.put("s", "three", json!({}));
    let update = json!({ "SecretId": "s", "KmsKeyId": second, "Description": "new" });
    fixture.secrets("UpdateSecret", update).unwrap();
    let list = json!({ "SecretId": "s", "IncludeDeprecated": true });
    let listed = fixture.secrets("ListSecretVersionIds", list).unwrap();
    let keys: Vec<_> = listed["Versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| {
            (version.get("VersionStages").is_some(), text(&version["KmsKeyIds"][0]).to_owned())
        })
        .collect();
    let arn = |id: &str| common::key_arn(ACCOUNT, REGION, id);
    assert_eq!(keys, [(true, arn(&second)), (true, arn(&second)), (false, arn(&first))]);
    fixture.kms("DisableKey", json!({ "KeyId": first })).unwrap();
    assert_eq!(fixture.value("s"), "three");
    let update = json!({ "SecretId": "s", "SecretString": "four" });
    let made = fixture.secrets("UpdateSecret", update).unwrap();
    assert!(made.get("VersionId").is_some());
    assert_eq!(fixture.value("s"), "four");
}

/// AWS names the default key instead of showing its ARN.
#[test]
fn versions_under_the_default_key_say_so() {
    let fixture = Fixture::new();
    fixture.secret("s", "one");
    let keys = || {
        let list = json!({ "SecretId": "s", "IncludeDeprecated": true });
        let listed = fixture.secrets("ListSecretVersionIds", list).unwrap();
        listed["Versions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|version| version["KmsKeyIds"].clone())
            .collect::<Value>()
    };
    let default = json!([["DefaultEncryptionKey"]]);
    assert_eq!(keys(), default);
    let key = fixture.key(json!({}));
    fixture.secrets("UpdateSecret", json!({ "SecretId": "s", "KmsKeyId": key })).unwrap();
    assert_eq!(keys(), json!([[common::key_arn(ACCOUNT, REGION, &key)]]));
    fixture.secrets("UpdateSecret", json!({ "SecretId": "s", "KmsKeyId": "" })).unwrap();
    assert_eq!(keys(), default);
    // Somebody else's key stays an ARN where there is no default key.
    let there = Who::admin().at("us-east-1");
    let key = fixture.kms_as(&there, "CreateKey", json!({})).unwrap()["KeyMetadata"]["Arn"].clone();
    let body = json!({ "Name": "s", "SecretString": "one", "KmsKeyId": key });
    fixture.secrets_as(&there, "CreateSecret", &body).unwrap();
    let listed = json!({ "SecretId": "s" });
    let listed = fixture.secrets_as(&there, "ListSecretVersionIds", &listed).unwrap();
    assert_eq!(listed["Versions"][0]["KmsKeyIds"], json!([key]));
}

#[test]
fn deleted_secrets_can_be_restored_for_a_while() {
    let fixture = Fixture::new();
    let arn = fixture.secret("s", "one");
    let delete = json!({ "SecretId": "s", "RecoveryWindowInDays": 7 });
    let deleted = fixture.secrets("DeleteSecret", delete).unwrap();
    assert_eq!(deleted["DeletionDate"], json!(NOW + 7 * DAY));
    for (operation, body) in [
        ("GetSecretValue", json!({ "SecretId": "s" })),
        ("PutSecretValue", json!({ "SecretId": "s", "SecretString": "x" })),
        ("TagResource", json!({ "SecretId": "s", "Tags": [{ "Key": "a", "Value": "b" }] })),
        ("CreateSecret", json!({ "Name": "s", "SecretString": "x" })),
        ("DeleteSecret", json!({ "SecretId": "s" })),
    ] {
        assert_eq!(
            code(fixture.secrets(operation, body)),
            "InvalidRequestException",
            "{operation}"
        );
    }
    let names = |body: Value| {
        let list = fixture.secrets("ListSecrets", body).unwrap();
        list["SecretList"].as_array().unwrap().len()
    };
    assert_eq!(names(json!({})), 0);
    assert_eq!(names(json!({ "IncludePlannedDeletion": true })), 1);
    fixture.secrets("RestoreSecret", json!({ "SecretId": "s" })).unwrap();
    assert_eq!(fixture.value("s"), "one");
    fixture.secrets("DeleteSecret", json!({ "SecretId": "s", "RecoveryWindowInDays": 7 })).unwrap();
    fixture.advance(7 * DAY);
    // Gone at its date, even before a sweep.
    assert_eq!(
        code(fixture.secrets("DescribeSecret", json!({ "SecretId": "s" }))),
        "ResourceNotFoundException"
    );
    fixture.run_housekeeping();
    let left = fixture.store_without_uses();
    let left: Vec<_> = left.iter().filter(|(key, _)| key.starts_with("secrets/")).collect();
    assert!(left.is_empty(), "{left:?}");
    let again = fixture.secret("s", "two");
    assert_ne!(again, arn);
    assert_eq!(
        code(fixture.secrets("GetSecretValue", json!({ "SecretId": arn }))),
        "ResourceNotFoundException"
    );
    let force = json!({ "SecretId": "s", "ForceDeleteWithoutRecovery": true });
    fixture.secrets("DeleteSecret", force.clone()).unwrap();
    fixture.secrets("DeleteSecret", force).unwrap();
    fixture.secret("s", "three");
}

#[test]
fn lists_are_filtered_and_sorted() {
    let fixture = Fixture::new();
    for (index, name) in ["prod/db", "prod/api", "dev/db", "Dev/Zed"].into_iter().enumerate() {
        let body = json!({ "Name": name, "SecretString": "x", "Description": format!("number {index} of all"),
            "Tags": [{ "Key": if index == 0 { "team" } else { "other" }, "Value": "red" }] });
        fixture.secrets("CreateSecret", body).unwrap();
        fixture.advance(1);
    }
    fixture
        .secrets(
            "UpdateSecret",
            json!({ "SecretId": "prod/api", "Description": "number 1, changed" }),
        )
        .unwrap();
    let names = |body: Value| -> Vec<String> {
        let mut names = Vec::new();
        let mut token = None::<String>;
        loop {
            let page = with(&body, json!({ "MaxResults": 2 }));
            let page = token
                .take()
                .map_or(page.clone(), |token| with(&page, json!({ "NextToken": token })));
            let list = fixture.secrets("ListSecrets", page).unwrap();
            let items = list["SecretList"].as_array().unwrap();
            assert!(items.len() <= 2);
            names.extend(items.iter().map(|item| text(&item["Name"]).to_owned()));
            match list.get("NextToken") {
                Some(next) => token = Some(text(next).to_owned()),
                None => return names,
            }
        }
    };
    let filter =
        |key: &str, values: &[&str]| json!({ "Filters": [{ "Key": key, "Values": values }] });
    for (body, expected) in [
        (json!({}), &["prod/db", "prod/api", "dev/db", "Dev/Zed"][..]),
        (json!({ "SortOrder": "desc" }), &["Dev/Zed", "dev/db", "prod/api", "prod/db"]),
        (json!({ "SortBy": "name" }), &["Dev/Zed", "dev/db", "prod/api", "prod/db"]),
        (
            json!({ "SortBy": "name", "SortOrder": "desc" }),
            &["prod/db", "prod/api", "dev/db", "Dev/Zed"],
        ),
        (
            json!({ "SortBy": "last-changed-date", "SortOrder": "desc" }),
            &["prod/api", "Dev/Zed", "dev/db", "prod/db"],
        ),
        (filter("name", &["prod"]), &["prod/db", "prod/api"]),
        (filter("name", &["!prod"]), &["dev/db", "Dev/Zed"]),
        (filter("name", &["dev"]), &["dev/db"]),
        (filter("name", &["prod/api", "dev/"]), &["prod/api", "dev/db"]),
        (filter("description", &["chang"]), &["prod/api"]),
        (filter("tag-key", &["te"]), &["prod/db"]),
        (filter("tag-value", &["red"]), &["prod/db", "prod/api", "dev/db", "Dev/Zed"]),
        (filter("all", &["zed"]), &["Dev/Zed"]),
        (filter("all", &["db red"]), &["prod/db", "dev/db"]),
        (filter("owning-service", &["rds"]), &[]),
    ] {
        assert_eq!(names(body.clone()), expected, "{body}");
    }
    let wrong = json!({ "NextToken": "!" });
    assert_eq!(code(fixture.secrets("ListSecrets", wrong)), "InvalidNextTokenException");
}

#[test]
fn versions_are_pruned_but_not_the_young_ones() {
    let fixture = Fixture::new();
    fixture.secret("s", "0");
    for number in 1..100 {
        fixture.put("s", &number.to_string(), json!({}));
    }
    let put = json!({ "SecretId": "s", "SecretString": "too many" });
    assert_eq!(code(fixture.secrets("PutSecretValue", put)), "LimitExceededException");
    fixture.advance(DAY);
    fixture.put("s", "100", json!({}));
    let values = || {
        fixture
            .store_without_uses()
            .iter()
            .filter(|(key, _)| key.starts_with("secrets/value/"))
            .count()
    };
    assert_eq!(values(), 100);
    // Labels keep a version.
    let listed = fixture
        .secrets("ListSecretVersionIds", json!({ "SecretId": "s", "IncludeDeprecated": true }))
        .unwrap();
    let oldest =
        text(&listed["Versions"].as_array().unwrap().last().unwrap()["VersionId"]).to_owned();
    let keep = json!({ "SecretId": "s", "VersionStage": "keep", "MoveToVersionId": oldest });
    fixture.secrets("UpdateSecretVersionStage", keep).unwrap();
    fixture.put("s", "101", json!({}));
    let got = fixture
        .secrets("GetSecretValue", json!({ "SecretId": "s", "VersionStage": "keep" }))
        .unwrap();
    assert_eq!(text(&got["VersionId"]), oldest);
    assert_eq!(values(), 100);
    let many: Vec<_> = (0..19).map(|number| format!("label-{number}")).collect();
    let put = json!({ "SecretId": "s", "SecretString": "x", "VersionStages": many });
    assert_eq!(code(fixture.secrets("PutSecretValue", put)), "LimitExceededException");
}

#[test]
fn policies_share_and_restrict() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({ "Policy": common::key_policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": format!("arn:aws:iam::{OTHER_ACCOUNT}:root") },
        "Action": "kms:Decrypt", "Resource": "*",
    }])) }));
    let body = json!({ "Name": "shared", "SecretString": "one", "KmsKeyId": key });
    let arn = text(&fixture.secrets("CreateSecret", body).unwrap()["ARN"]).to_owned();
    let get = json!({ "SecretId": arn });
    assert_eq!(
        code(fixture.secrets_as(&Who::stranger(), "GetSecretValue", &get)),
        "AccessDeniedException"
    );
    let put = |statement: Value, more: Value| {
        let body = with(
            &json!({ "SecretId": arn, "ResourcePolicy": policy(json!([statement])).to_string() }),
            more,
        );
        fixture.secrets("PutResourcePolicy", body)
    };
    let share = json!({ "Effect": "Allow", "Principal": { "AWS": OTHER_ACCOUNT },
        "Action": "secretsmanager:GetSecretValue", "Resource": "*" });
    put(share.clone(), json!({})).unwrap();
    let got = fixture.secrets_as(&Who::stranger(), "GetSecretValue", &get).unwrap();
    assert_eq!(text(&got["SecretString"]), "one");
    // Only what is shared, and the default key is of its account alone.
    assert_eq!(
        code(fixture.secrets_as(&Who::stranger(), "DescribeSecret", &get)),
        "AccessDeniedException"
    );
    let other = fixture.secret("by-default", "two");
    let body = json!({ "SecretId": other, "ResourcePolicy": policy(json!([share])).to_string() });
    fixture.secrets("PutResourcePolicy", body).unwrap();
    let refused =
        fixture.secrets_as(&Who::stranger(), "GetSecretValue", &json!({ "SecretId": other }));
    assert_eq!(refused.unwrap_err().message, "Access to KMS is not allowed");

    let public = json!({ "Effect": "Allow", "Principal": "*", "Action": "secretsmanager:*", "Resource": "*" });
    assert_eq!(
        code(put(public.clone(), json!({ "BlockPublicPolicy": true }))),
        "PublicPolicyException"
    );
    let body = json!({ "SecretId": arn, "ResourcePolicy": policy(json!([public])).to_string() });
    let checked = fixture.secrets("ValidateResourcePolicy", body).unwrap();
    assert_eq!(checked["PolicyValidationPassed"], false);
    let deny = json!({ "Effect": "Deny", "Principal": "*", "Action": "secretsmanager:*", "Resource": "*" });
    assert_eq!(code(put(deny, json!({}))), "MalformedPolicyDocumentException");
    let names = fixture.secrets("ListResourcePolicies", json!({ "SecretId": arn })).unwrap();
    assert_eq!(names["ResourcePolicies"], json!([{ "PolicyName": "default" }]));
    let restrict = json!({ "Effect": "Deny", "Principal": "*", "Action": "secretsmanager:GetSecretValue",
        "Resource": "*", "Condition": { "StringEquals": { "secretsmanager:VersionStage": "AWSPREVIOUS" } } });
    put(restrict, json!({})).unwrap();
    fixture.put(&arn, "two", json!({}));
    assert_eq!(fixture.value(&arn), "two");
    let previous = json!({ "SecretId": arn, "VersionStage": "AWSPREVIOUS" });
    assert_eq!(code(fixture.secrets("GetSecretValue", previous)), "AccessDeniedException");
    fixture.secrets("DeleteResourcePolicy", json!({ "SecretId": arn })).unwrap();
    let got = fixture.secrets("GetResourcePolicy", json!({ "SecretId": arn })).unwrap();
    assert!(got.get("ResourcePolicy").is_none());
}

#[test]
fn strangers_do_not_learn_what_exists() {
    let fixture = Fixture::new();
    fixture.secret("s", "one");
    let reader = fixture.user(
        ACCOUNT,
        "reader",
        &[policy(json!([{
            "Effect": "Allow", "Action": "secretsmanager:GetSecretValue",
            "Resource": format!("arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:mine/*"),
        }]))],
    );
    let refusal = |id: &str| {
        fixture.secrets_as(&reader, "GetSecretValue", &json!({ "SecretId": id })).unwrap_err()
    };
    assert_eq!(refusal("s").code, "AccessDeniedException");
    assert_eq!(refusal("absent").code, "AccessDeniedException");
    assert_eq!(refusal("mine/absent").code, "ResourceNotFoundException");
    let nobody = fixture.user(ACCOUNT, "nobody", &[allow(&["kms:*"])]);
    for operation in ["ListSecrets", "GetRandomPassword"] {
        assert_eq!(
            code(fixture.secrets_as(&nobody, operation, &json!({}))),
            "AccessDeniedException"
        );
    }
}

#[test]
fn passwords_are_random() {
    let fixture = Fixture::new();
    let made = |body: Value| {
        text(&fixture.secrets("GetRandomPassword", body).unwrap()["RandomPassword"]).to_owned()
    };
    let (one, other) = (made(json!({})), made(json!({})));
    assert_eq!((one.len(), other.len()), (32, 32));
    assert_ne!(one, other);
    let digits =
        made(json!({ "PasswordLength": 64, "ExcludePunctuation": true, "ExcludeUppercase": true,
        "ExcludeLowercase": true, "ExcludeCharacters": "0" }));
    assert!(digits.bytes().all(|byte| (b'1'..=b'9').contains(&byte)), "{digits}");
    let short = json!({ "PasswordLength": 3 });
    assert_eq!(code(fixture.secrets("GetRandomPassword", short)), "InvalidParameterException");
    assert!(!fixture.events().iter().any(|event| event.to_string().contains(&one)));
}

#[test]
fn labels_move_as_aws_moves_them() {
    let fixture = Fixture::new();
    let body = json!({ "Name": "s", "SecretString": "one", "ClientRequestToken": token(1) });
    fixture.secrets("CreateSecret", body).unwrap();
    fixture.put("s", "two", json!({ "ClientRequestToken": token(2) }));
    let update = |stage: &str, from: Option<u8>, to: Option<u8>| {
        let mut body = json!({ "SecretId": "s", "VersionStage": stage });
        for (name, version) in [("RemoveFromVersionId", from), ("MoveToVersionId", to)] {
            if let Some(version) = version {
                body[name] = token(version).into();
            }
        }
        fixture.secrets("UpdateSecretVersionStage", body)
    };
    let refused = update("AWSCURRENT", None, Some(1)).unwrap_err();
    assert_eq!(refused.code, "InvalidParameterException");
    assert!(refused.message.contains(&format!("currently attached to version {}", token(2))));
    assert_eq!(code(update("AWSCURRENT", Some(2), None)), "InvalidParameterException");
    assert_eq!(code(update("AWSCURRENT", Some(1), Some(2))), "InvalidParameterException");
    assert_eq!(code(update("AWSCURRENT", Some(2), Some(9))), "ResourceNotFoundException");
    assert_eq!(code(update("x", None, None)), "InvalidParameterException");
    update("AWSCURRENT", Some(2), Some(1)).unwrap();
    assert_eq!(fixture.staged("s"), json!({ token(1): ["AWSCURRENT"], token(2): ["AWSPREVIOUS"] }));
    update("mine", None, Some(2)).unwrap();
    update("AWSPREVIOUS", Some(2), None).unwrap();
    assert_eq!(fixture.staged("s"), json!({ token(1): ["AWSCURRENT"], token(2): ["mine"] }));
    let both = json!({ "SecretId": "s", "VersionId": token(1), "VersionStage": "mine" });
    assert_eq!(code(fixture.secrets("GetSecretValue", both)), "InvalidRequestException");
}

/// A writer of the database moves values between secrets and versions, puts an old one back, and edits labels.
#[test]
fn values_cannot_be_moved_in_the_database() {
    use outlast_store::{Store, Transaction};
    let fixture = Fixture::new();
    fixture.secret("one", "a value");
    fixture.secret("two", "another value");
    let raw = |kind: &str, name: &str| {
        let found = fixture.store.scan(kind, "", 1000).unwrap();
        let found = found.into_iter().find(|(key, _)| key.ends_with(&format!("/{name}"))).unwrap();
        (found.0, found.1.value)
    };
    let write = |key: &str, value: Vec<u8>| {
        let writes = vec![(key.to_owned(), Some(value))];
        fixture.store.commit_and_wait(Transaction { writes, ..Transaction::default() }).unwrap();
    };
    let get = |name: &str| fixture.secrets("GetSecretValue", json!({ "SecretId": name }));
    get("one").unwrap();
    for kind in ["secrets/value/", "secrets/secret/"] {
        let (mine, theirs) = (raw(kind, "one"), raw(kind, "two"));
        write(&mine.0, theirs.1);
        assert_eq!(get("one").unwrap_err().status, 500, "{kind}");
        write(&mine.0, mine.1);
        get("one").unwrap();
    }
    let old = raw("secrets/secret/", "one");
    fixture.put("one", "a newer value", json!({}));
    assert_eq!(fixture.value("one"), "a newer value");
    let new = raw("secrets/secret/", "one");
    write(&old.0, old.1);
    assert_eq!(get("one").unwrap_err().status, 500);
    let mut edited = new.1.clone();
    let at = edited.windows(10).position(|bytes| bytes == b"AWSCURRENT").unwrap();
    edited[at..at + 10].copy_from_slice(b"MYCURRENT1");
    write(&new.0, edited);
    assert_eq!(get("one").unwrap_err().status, 500);
    write(&new.0, new.1);
    assert_eq!(fixture.value("one"), "a newer value");
}

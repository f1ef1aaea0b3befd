//! A service keeps what it has read in memory; changes by others take effect at once nevertheless.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{ACCOUNT, Fixture, REGION, b64, code, policy};
use outlast_domain::identity::{Entry, User};
use serde_json::json;

const ALLOW: &str =
    r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"kms:*","Resource":"*"}]}"#;

#[test]
fn policies_that_change_behind_the_service_count_at_once() {
    let fixture = Fixture::new();
    let user = fixture.user(ACCOUNT, "user", &[]);
    let random = || fixture.kms_as(&user, "GenerateRandom", json!({ "NumberOfBytes": 8 }));
    for _ in 0..3 {
        assert_eq!(code(random()), "AccessDeniedException");
        fixture.directory(|work| {
            let found = User::find(work, ACCOUNT, "user").unwrap();
            found.put_policy(work, "all", ALLOW).unwrap();
        });
        random().unwrap();
        random().unwrap();
        fixture.directory(|work| {
            let found = User::find(work, ACCOUNT, "user").unwrap();
            found.delete_policy(work, "all").unwrap();
        });
    }
    let deny = policy(json!([{ "Effect": "Deny", "Action": "*", "Resource": "*" }])).to_string();
    fixture.directory(|work| {
        let found = User::find(work, ACCOUNT, "user").unwrap();
        found.put_policy(work, "all", ALLOW).unwrap().put_policy(work, "no", &deny).unwrap();
    });
    assert_eq!(code(random()), "AccessDeniedException");
}

#[test]
fn keys_that_change_behind_the_service_count_at_once() {
    let fixture = Fixture::new();
    let key = fixture.key(json!({}));
    let record_key = format!("kms/key/{ACCOUNT}/{REGION}/{key}");
    let encrypt = || fixture.kms("Encrypt", json!({ "KeyId": key, "Plaintext": b64(b"x") }));
    let set = |enabled: bool| {
        let mut value = fixture.record(&record_key);
        value["enabled"] = enabled.into();
        fixture.put_record(&record_key, &value);
    };
    for _ in 0..3 {
        encrypt().unwrap();
        set(false);
        assert_eq!(code(encrypt()), "DisabledException");
        set(true);
    }
    encrypt().unwrap();
    let events = fixture.events();
    let used = events.iter().filter(|event| event["eventName"] == "Encrypt").count();
    assert_eq!(used, 7, "one event for each answer, however often it was run");
}

#[test]
fn a_policy_that_was_absent_counts_at_once() {
    let fixture = Fixture::new();
    let arn = fixture.secret("denied", "value");
    let get = || fixture.secrets("GetSecretValue", json!({ "SecretId": arn }));
    let deny = policy(json!([{ "Effect": "Deny", "Principal": "*",
        "Action": "secretsmanager:GetSecretValue", "Resource": "*" }]));
    let put = json!({ "SecretId": arn, "ResourcePolicy": deny.to_string() });
    fixture.secrets("PutResourcePolicy", put).unwrap();
    let record_key = format!("secrets/policy/{ACCOUNT}/{REGION}/denied");
    let record = fixture.record(&record_key);
    for _ in 0..3 {
        assert_eq!(code(get()), "AccessDeniedException");
        fixture.secrets("DeleteResourcePolicy", json!({ "SecretId": arn })).unwrap();
        // From the second on, the service remembers that there is none.
        get().unwrap();
        get().unwrap();
        fixture.put_record(&record_key, &record);
    }
    assert_eq!(code(get()), "AccessDeniedException");
}

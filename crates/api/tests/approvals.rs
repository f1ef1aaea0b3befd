//! Approvals of signatures: what can be asked for, and what is refused.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::approvals_support::file;
use crate::common::{self, ACCOUNT, Fixture, Who, allow, b64, text, with};
use serde_json::json;

const ECDSA: &str = "ECDSA_SHA_256";

fn signing_key(fixture: &Fixture) -> String {
    fixture.key_of("ECC_NIST_P256", "SIGN_VERIFY")
}

#[test]
fn requests_are_recorded() {
    let fixture = Fixture::new();
    let key = signing_key(&fixture);
    let body = json!({
        "KeyId": key, "Files": [file("a.txt", b"some text", ECDSA)], "Reason": "release 1.0",
    });
    let made = fixture.outlast("RequestSigningApproval", &body).unwrap();
    assert_eq!(made["KeyId"], common::key_arn(ACCOUNT, common::REGION, &key));
    assert_eq!(text(&made["RequestDigest"]).len(), 64);
    let event = fixture.events().pop().unwrap();
    assert_eq!(
        (event["eventSource"].as_str(), event["readOnly"].as_bool()),
        (Some("outlast"), Some(false))
    );
    assert_eq!(event["requestParameters"]["files"][0]["name"], "a.txt");
    assert_eq!(event["responseElements"]["requestDigest"], made["RequestDigest"]);
    let id = text(&made["RequestId"]);
    let arn = format!("arn:aws:outlast:{}:{ACCOUNT}:signing-request/{id}", common::REGION);
    assert!(event["resources"].as_array().unwrap().iter().any(|one| one["ARN"] == arn), "{event}");
    let again = fixture.outlast("RequestSigningApproval", &body).unwrap_err();
    assert_eq!(again.code, "AlreadyExistsException");
    assert!(again.message.contains(id), "{}", again.message);
}

#[test]
fn a_message_must_stand_for_its_file() {
    let fixture = Fixture::new();
    let key = signing_key(&fixture);
    let good = file("a.txt", b"some text", ECDSA);
    for (change, code, words) in [
        (json!({ "Message": b64(b"another text") }), "ValidationException", "neither the file"),
        (json!({ "Message": b64(b"\x31\x00") }), "ValidationException", "contentType"),
        (json!({ "Digest": b64(&[7; 32]) }), "ValidationException", "length"),
        (json!({ "Name": "a\nb" }), "ValidationException", "control character"),
        (
            json!({ "SigningAlgorithm": "ML_DSA_SHAKE_256" }),
            "InvalidKeyUsageException",
            "incompatible",
        ),
    ] {
        let body = json!({ "KeyId": key, "Files": [with(&good, change)] });
        let refused = fixture.outlast("RequestSigningApproval", &body).unwrap_err();
        assert_eq!(refused.code, code, "{}", refused.message);
        assert!(refused.message.contains(words), "{}", refused.message);
    }
    let twice = json!({ "KeyId": key, "Files": [good, good] });
    let refused = fixture.outlast("RequestSigningApproval", &twice).unwrap_err();
    assert_eq!(refused.code, "ValidationException");
}

#[test]
fn whoever_may_not_sign_may_not_ask() {
    let fixture = Fixture::new();
    let key = signing_key(&fixture);
    let body = json!({ "KeyId": key, "Files": [file("a", b"text", ECDSA)] });
    let asks = fixture.user(ACCOUNT, "asks", &[allow(&["outlast:*"])]);
    let signs = fixture.user(ACCOUNT, "signs", &[allow(&["kms:*"])]);
    let both =
        fixture.user(ACCOUNT, "both", &[allow(&["kms:Sign", "outlast:RequestSigningApproval"])]);
    for who in [&asks, &signs] {
        let refused = fixture.outlast_as(who, "RequestSigningApproval", &body);
        assert_eq!(common::code(refused), "AccessDeniedException");
    }
    fixture.outlast_as(&both, "RequestSigningApproval", &body).unwrap();
    // Another account's caller, although the key's policy lets the account in.
    let root = "arn:aws:iam::210987654321:root";
    let policy = common::key_policy(json!([{
        "Effect": "Allow", "Principal": { "AWS": root }, "Action": "kms:*", "Resource": "*",
    }]));
    fixture.kms("PutKeyPolicy", json!({ "KeyId": key, "Policy": policy })).unwrap();
    let arn = common::key_arn(ACCOUNT, common::REGION, &key);
    let refused = fixture.outlast_as(
        &Who::stranger(),
        "RequestSigningApproval",
        &with(&body, json!({ "KeyId": arn })),
    );
    assert_eq!(common::code(refused), "AccessDeniedException");
}

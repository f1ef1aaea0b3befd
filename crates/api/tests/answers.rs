//! Errors as callers receive them: code, status and text, compared with AWS's.
//!
//! Every constraint of every member of every operation comes from the models. `causes.rs` has the errors that no
//! model describes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::certificates;
use crate::common;

use common::{ACCOUNT, Fixture, b64};
use outlast_api::aws::acm_pca::IssueCertificate;
use outlast_api::aws::schema::{Kind, Shape};
use outlast_api::ops::SERVICES;
use outlast_api::wire::Protocol;
use outlast_api::wire::validate::member_name;
use serde_json::{Value, json};

/// Values that each break one constraint, and the message for each.
fn broken(shape: &Shape) -> Vec<(Value, String, String)> {
    let mut out = Vec::new();
    let text = |len: i64| "a".repeat(usize::try_from(len).unwrap());
    let greatest =
        |what: &str, max: i64| format!("Member must have {what} less than or equal to {max}");
    let least =
        |what: &str, min: i64| format!("Member must have {what} greater than or equal to {min}");
    match shape.kind {
        Kind::String => {
            if let Some(max) = shape.max.filter(|max| *max <= 10_000) {
                let value = text(max + 1);
                // Errors repeat 256 characters at most.
                let shown: String = value.chars().take(256).collect();
                out.push((json!(value), shown, greatest("length", max)));
            }
            if let Some(min) = shape.min.filter(|min| *min > 0) {
                out.push((
                    json!(text(min - 1)),
                    text(min - 1).chars().take(256).collect(),
                    least("length", min),
                ));
            }
            if !shape.values.is_empty() {
                let set =
                    format!("Member must satisfy enum value set: [{}]", shape.values.join(", "));
                out.push((json!("NOTHING"), "NOTHING".into(), set));
            }
            if let Some(pattern) = shape.pattern.filter(|pattern| !pattern.matches("\u{2028}")) {
                let like =
                    format!("Member must satisfy regular expression pattern: {}", pattern.text);
                out.push((json!("\u{2028}"), "\u{2028}".into(), like));
            }
        }
        Kind::Integer => {
            if let Some(max) = shape.max.filter(|max| *max < i64::MAX) {
                out.push((json!(max + 1), (max + 1).to_string(), greatest("value", max)));
            }
            if let Some(min) = shape.min.filter(|min| *min > i64::MIN) {
                out.push((json!(min - 1), (min - 1).to_string(), least("value", min)));
            }
        }
        Kind::Blob => {
            let buffer = |len: i64| format!("java.nio.HeapByteBuffer[pos=0 lim={len} cap={len}]");
            if let Some(max) = shape.max.filter(|max| *max <= 70_000) {
                out.push((
                    json!(b64(text(max + 1).as_bytes())),
                    buffer(max + 1),
                    greatest("length", max),
                ));
            }
            if let Some(min) = shape.min.filter(|min| *min > 0) {
                out.push((
                    json!(b64(text(min - 1).as_bytes())),
                    buffer(min - 1),
                    least("length", min),
                ));
            }
        }
        Kind::List(_) => {
            if let Some(min) = shape.min.filter(|min| *min == 1) {
                out.push((json!([]), "[]".into(), least("length", min)));
            }
        }
        Kind::Structure(..) | Kind::Map(..) | Kind::Boolean | Kind::Timestamp | Kind::DateTime => {}
    }
    out
}

#[test]
fn every_constraint_of_every_member_is_told_as_aws_tells_it() {
    let fixture = Fixture::new();
    let (mut constraints, mut missing) = (0, 0);
    for service in SERVICES.iter().filter(|row| row.model.protocols.contains(&Protocol::Json11)) {
        for row in service.operations {
            let target = format!("{}.{}", service.model.target_prefix, row.name);
            let told = |body: &Value| {
                let body = body.to_string();
                let response = fixture.send(&fixture.raw(
                    service.model.signing_name,
                    &target,
                    body.as_bytes(),
                ));
                assert_eq!(response.status, 400, "{target} {body}");
                let answer: Value = serde_json::from_slice(&response.body).unwrap();
                assert_eq!(answer["__type"], "ValidationException", "{target} {body}: {answer}");
                answer[service.model.message].as_str().unwrap().to_owned()
            };
            for member in row.input.members() {
                let Some(shape) = member.shape else { continue };
                let name = member_name(member.name);
                if member.is_required {
                    let null = if shape.is_sensitive { "" } else { "null " };
                    let sentence = format!(
                        "Value {null}at '{name}' failed to satisfy constraint: Member must not be null"
                    );
                    let text = told(&json!({}));
                    assert!(text.contains(&sentence), "{target}: {text}");
                    missing += 1;
                }
                for (value, shown, constraint) in broken(shape) {
                    let hidden = shape.is_sensitive;
                    let shown = if hidden { String::new() } else { format!("'{shown}' ") };
                    let sentence = format!(
                        "Value {shown}at '{name}' failed to satisfy constraint: {constraint}"
                    );
                    let text = told(&json!({ member.name: value }));
                    assert!(text.contains(&sentence), "{target} {sentence}: {text}");
                    let count = text.matches("failed to satisfy constraint").count();
                    let plural = if count == 1 { "" } else { "s" };
                    assert!(
                        text.starts_with(&format!("{count} validation error{plural} detected: ")),
                        "{text}"
                    );
                    constraints += 1;
                }
            }
        }
    }
    assert!(constraints > 300 && missing > 100, "{constraints} {missing}");
    println!("{constraints} constraints and {missing} missing members told");
}

#[test]
fn what_is_wrong_inside_is_told_with_its_path() {
    let fixture = Fixture::new();
    for (target, body, expected) in [
        (
            "TrentService.TagResource",
            json!({ "KeyId": "k", "Tags": [{ "TagKey": "a", "TagValue": "b" }, { "TagKey": "", "TagValue": "b" }] }),
            "1 validation error detected: Value '' at 'tags.2.member.tagKey' failed to satisfy constraint: Member must have \
             length greater than or equal to 1",
        ),
        (
            "TrentService.TagResource",
            json!({ "KeyId": "", "Tags": [{ "TagKey": "a" }] }),
            "2 validation errors detected: Value '' at 'keyId' failed to satisfy constraint: Member must have length greater \
             than or equal to 1; Value null at 'tags.1.member.tagValue' failed to satisfy constraint: Member must not be null",
        ),
        (
            "TrentService.ListKeys",
            json!({ "ResourceOwners": ["SELF", "x"] }),
            "1 validation error detected: Value '[SELF, x]' at 'resourceOwners' failed to satisfy constraint: Member must \
             satisfy constraint: [Member must satisfy enum value set: [SELF, OTHER_ACCOUNTS_VIA_RAM]]",
        ),
        (
            "TrentService.Encrypt",
            json!({ "KeyId": "k", "Plaintext": b64(&[7; 4097]) }),
            "1 validation error detected: Value at 'plaintext' failed to satisfy constraint: Member must have length less than \
             or equal to 4096",
        ),
    ] {
        let response = fixture.send(&fixture.raw("kms", target, body.to_string().as_bytes()));
        let answer: Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(answer["message"], expected, "{target}");
    }
}

/// Secrets Manager's errors have `Message`, those of the others `message`, as their models say.
#[test]
fn errors_have_their_text_where_the_service_has_it() {
    let fixture = Fixture::new();
    let expected = [
        ("kms", "message"),
        ("acm-pca", "message"),
        ("acm", "message"),
        ("secretsmanager", "Message"),
        ("sts", "message"),
        ("rolesanywhere", "message"),
        ("transfer", "Message"),
        ("outlast", "message"),
    ];
    assert_eq!(SERVICES.len(), expected.len());
    for (service, (name, member)) in SERVICES.iter().zip(expected) {
        assert_eq!((service.model.signing_name, service.model.message), (name, member));
        let target = format!("{}.{}", service.model.target_prefix, service.operations[0].name);
        let request = |protocol: Protocol| match protocol {
            Protocol::Json11 => Some(fixture.raw(name, &target, b"[")),
            Protocol::RestJson1 => {
                let mut headers = http::HeaderMap::new();
                headers.insert("content-type", "application/json".parse().unwrap());
                Some(fixture.signed(name, "/profiles", headers, b"["))
            }
            Protocol::RpcV2Cbor | Protocol::Query => None,
        };
        for request in service.model.protocols.iter().filter_map(|protocol| request(*protocol)) {
            let response = fixture.send(&request);
            let answer: Value = serde_json::from_slice(&response.body).unwrap();
            assert!(response.status >= 400, "{name}: {answer}");
            let text = answer[member].as_str().unwrap_or_else(|| panic!("{name}: {answer}"));
            assert!(!text.is_empty());
            let members = answer.as_object().unwrap().keys().filter(|key| *key != "__type");
            assert_eq!(members.collect::<Vec<_>>(), [member], "{name}");
        }
    }
}

/// Reading is strict at every depth: values that a lenient reader would convert are refused.
#[test]
fn nothing_is_read_as_something_else() {
    let fixture = Fixture::new();
    for (target, body) in [
        // A structure written as the list of its members' values, which serde would accept.
        ("TrentService.TagResource", r#"{"KeyId":"k","Tags":[["a","b"]]}"#),
        (
            "TrentService.CreateGrant",
            r#"{"KeyId":"k","Operations":["Decrypt"],"Constraints":[null,null]}"#,
        ),
        ("TrentService.ScheduleKeyDeletion", r#"{"KeyId":"k","PendingWindowInDays":"7"}"#),
        ("TrentService.ScheduleKeyDeletion", r#"{"KeyId":"k","PendingWindowInDays":7.5}"#),
        ("TrentService.ScheduleKeyDeletion", r#"{"KeyId":"k","KeyId":"k"}"#),
        ("TrentService.ScheduleKeyDeletion", r#"{"KeyId":"k","keyId":"k"}"#),
        (
            "TrentService.TagResource",
            r#"{"KeyId":"k","Tags":[{"TagKey":"a","TagKey":"a","TagValue":"b"}]}"#,
        ),
        (
            "TrentService.TagResource",
            r#"{"KeyId":"k","Tags":[{"TagKey":"a","TagValue":"b","Other":1}]}"#,
        ),
        ("TrentService.TagResource", r#"{"KeyId":"k","Tags":[null]}"#),
        (
            "TrentService.Encrypt",
            r#"{"KeyId":"k","Plaintext":"YQ==","EncryptionContext":{"a":"1","a":"2"}}"#,
        ),
        ("TrentService.Encrypt", r#"{"KeyId":"k","Plaintext":"YQ==","EncryptionContext":{"a":1}}"#),
        ("TrentService.Encrypt", r#"{"KeyId":"k","Plaintext":"not base64"}"#),
        ("TrentService.Encrypt", r#"{"KeyId":"k","Plaintext":"YQ==","DryRun":"true"}"#),
        ("TrentService.DescribeKey", "[\"k\"]"),
        ("TrentService.DescribeKey", "{\"KeyId\":\"k\"} {}"),
        ("TrentService.DescribeKey", "null"),
    ] {
        let response = fixture.send(&fixture.raw("kms", target, body.as_bytes()));
        assert_eq!(response.status, 400, "{target} {body}");
        assert_eq!(common::error_code(&response), "SerializationException", "{target} {body}");
    }
    // CBOR has byte strings; a text is refused even where base64 would do.
    let request = |csr: ciborium::Value| {
        let text = |text: &str| ciborium::Value::Text(text.into());
        let validity = vec![(text("Value"), 1.into()), (text("Type"), text("YEARS"))];
        let arn = format!("arn:aws:acm-pca:eu-west-1:{ACCOUNT}:certificate-authority/x");
        let members = vec![
            (text("CertificateAuthorityArn"), text(&arn)),
            (text("Csr"), csr),
            (text("SigningAlgorithm"), text("SHA256WITHECDSA")),
            (text("Validity"), ciborium::Value::Map(validity)),
        ];
        let mut body = Vec::new();
        ciborium::into_writer(&ciborium::Value::Map(members), &mut body).unwrap();
        Protocol::RpcV2Cbor.decode::<IssueCertificate>(body.as_slice().into())
    };
    assert_eq!(request(ciborium::Value::Bytes(b"abc".to_vec())).unwrap().csr.0, b"abc");
    let refused = request(ciborium::Value::Text("YWJj".into())).unwrap_err();
    assert_eq!(refused.code, "SerializationException");
    // An error repeats nothing of a plaintext.
    let body = br#"{"KeyId":"k","Plaintext":"a secret that is not base64!"}"#;
    let response = fixture.send(&fixture.raw("kms", "TrentService.Encrypt", body));
    assert!(!String::from_utf8_lossy(&response.body).contains("secret"));
}

/// The PEM of answers ends with its last dash, and a renewal does not wait.
#[test]
fn pem_has_no_final_newline_and_renewal_works_at_once() {
    let fixture = Fixture::new();
    let authority = certificates::ca(&fixture);
    certificates::permit(&fixture, &authority);
    let arn = certificates::requested(&fixture, &authority, "a.example.com", json!({}));
    let of = json!({ "CertificateAuthorityArn": authority });
    let mut export = certificates::of(&arn);
    export["Passphrase"] = json!(b64(b"passphrase"));
    let answers = [
        certificates::pca(&fixture, "GetCertificateAuthorityCsr", &of).unwrap(),
        certificates::pca(&fixture, "GetCertificateAuthorityCertificate", &of).unwrap(),
        certificates::acm(&fixture, "GetCertificate", &certificates::of(&arn)).unwrap(),
        certificates::acm(&fixture, "ExportCertificate", &export).unwrap(),
    ];
    let mut count = 0;
    for value in answers.iter().flat_map(|answer| answer.as_object().unwrap().values()) {
        let text = value.as_str().unwrap();
        assert!(text.starts_with("-----BEGIN ") && text.ends_with('-'), "{text}");
        count += 1;
    }
    assert_eq!(count, 7);
    let serial = |arn: &str| certificates::described(&fixture, arn)["Serial"].clone();
    let before = serial(&arn);
    fixture.advance(1);
    certificates::acm(&fixture, "RenewCertificate", &certificates::of(&arn)).unwrap();
    assert_ne!(serial(&arn), before);
}

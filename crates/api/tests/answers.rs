//! What callers are told: code, status and text of errors, as AWS has them.
//!
//! The first test takes every constraint of every member of every operation from the models. The second is a table of causes that no model
//! has: operation, cause, code, status, text, and where it is known from.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;

use common::{ACCOUNT, Fixture, b64};
use outlast_api::aws::acm_pca::IssueCertificate;
use outlast_api::aws::schema::{Kind, Shape};
use outlast_api::ops::SERVICES;
use outlast_api::wire::Protocol;
use outlast_api::wire::validate::member_name;
use serde_json::{Value, json};

/// A value that does not keep one constraint, and what is said of it.
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
        Kind::Structure(..) | Kind::Map(..) | Kind::Boolean | Kind::Timestamp => {}
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
                answer["message"].as_str().unwrap().to_owned()
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

/// Reading is strict at every depth: what a lenient reader would take for something else is refused.
#[test]
fn nothing_is_read_as_something_else() {
    let fixture = Fixture::new();
    for (target, body) in [
        // A structure as the list of its members' values, which serde would take.
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
    // In CBOR bytes are bytes, also where a text would be base64.
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
        Protocol::RpcV2Cbor.decode::<IssueCertificate>(&body)
    };
    assert_eq!(request(ciborium::Value::Bytes(b"abc".to_vec())).unwrap().csr.0, b"abc");
    let refused = request(ciborium::Value::Text("YWJj".into())).unwrap_err();
    assert_eq!(refused.code, "SerializationException");
    // Of plaintexts nothing is repeated.
    let body = br#"{"KeyId":"k","Plaintext":"a secret that is not base64!"}"#;
    let response = fixture.send(&fixture.raw("kms", "TrentService.Encrypt", body));
    assert!(!String::from_utf8_lossy(&response.body).contains("secret"));
}

const API: &str = "https://docs.aws.amazon.com/kms/latest/APIReference/";
const SEEN: &str = "answers of AWS KMS";

/// Keys that the causes are about, by the names that stand in bodies.
fn keys(fixture: &Fixture) -> Vec<(&'static str, String)> {
    let create = |body: Value| {
        let made = fixture.kms("CreateKey", body).unwrap();
        made["KeyMetadata"]["Arn"].as_str().unwrap().to_owned()
    };
    let disabled = create(json!({ "KeySpec": "HMAC_256", "KeyUsage": "GENERATE_VERIFY_MAC" }));
    fixture.kms("DisableKey", json!({ "KeyId": disabled })).unwrap();
    let going = create(json!({}));
    fixture.kms("ScheduleKeyDeletion", json!({ "KeyId": going })).unwrap();
    let plain = create(json!({}));
    let other = create(json!({}));
    let sealed = fixture.kms("Encrypt", json!({ "KeyId": plain, "Plaintext": "YQ==" })).unwrap();
    vec![
        ("{disabled}", disabled),
        ("{going}", going),
        ("{plain}", plain),
        ("{other}", other),
        ("{sealed}", sealed["CiphertextBlob"].as_str().unwrap().to_owned()),
        ("{rsa}", create(json!({ "KeySpec": "RSA_2048", "KeyUsage": "ENCRYPT_DECRYPT" }))),
        ("{ec}", create(json!({ "KeySpec": "ECC_NIST_P256", "KeyUsage": "SIGN_VERIFY" }))),
        ("{mac}", create(json!({ "KeySpec": "HMAC_256", "KeyUsage": "GENERATE_VERIFY_MAC" }))),
        ("{large}", b64(&[7; 191])),
        (
            "{many}",
            (0..51)
                .map(|n| format!(r#"{{"TagKey":"k{n}","TagValue":""}}"#))
                .collect::<Vec<_>>()
                .join(","),
        ),
        (
            "{missing}",
            format!("arn:aws:kms:eu-west-1:{ACCOUNT}:key/00000000-0000-0000-0000-000000000000"),
        ),
    ]
}

/// Operation, request, code, status, text (none: AWS sends none), source.
type Cause = (&'static str, &'static str, &'static str, u16, Option<&'static str>, &'static str);

static CAUSES: &[Cause] = &[
    ("Decrypt", r#"{"CiphertextBlob":"YWJj"}"#, "InvalidCiphertextException", 400, None, SEEN),
    (
        "Verify",
        r#"{"KeyId":"{ec}","Message":"YQ==","Signature":"YQ==","SigningAlgorithm":"ECDSA_SHA_256"}"#,
        "KMSInvalidSignatureException",
        400,
        None,
        SEEN,
    ),
    (
        "VerifyMac",
        r#"{"KeyId":"{mac}","Message":"YQ==","Mac":"YQ==","MacAlgorithm":"HMAC_SHA_256"}"#,
        "KMSInvalidMacException",
        400,
        None,
        SEEN,
    ),
    (
        "Encrypt",
        r#"{"KeyId":"{plain}","Plaintext":"YQ==","DryRun":true}"#,
        "DryRunOperationException",
        400,
        Some("The request would have succeeded, but the DryRun option is set."),
        API,
    ),
    // A disabled key gives DisabledException, whatever its type.
    (
        "Sign",
        r#"{"KeyId":"{disabled}","Message":"YQ==","SigningAlgorithm":"ECDSA_SHA_256"}"#,
        "DisabledException",
        400,
        Some("{disabled} is disabled."),
        SEEN,
    ),
    (
        "Encrypt",
        r#"{"KeyId":"{disabled}","Plaintext":"YQ=="}"#,
        "DisabledException",
        400,
        Some("{disabled} is disabled."),
        SEEN,
    ),
    (
        "GetPublicKey",
        r#"{"KeyId":"{disabled}"}"#,
        "DisabledException",
        400,
        Some("{disabled} is disabled."),
        SEEN,
    ),
    (
        "Encrypt",
        r#"{"KeyId":"{going}","Plaintext":"YQ=="}"#,
        "KMSInvalidStateException",
        400,
        Some("{going} is pending deletion."),
        SEEN,
    ),
    (
        "Decrypt",
        r#"{"KeyId":"{other}","CiphertextBlob":"{sealed}"}"#,
        "IncorrectKeyException",
        400,
        Some("The key ID in the request does not identify a CMK that can perform this operation."),
        SEEN,
    ),
    (
        "ReEncrypt",
        r#"{"SourceKeyId":"{other}","DestinationKeyId":"{plain}","CiphertextBlob":"{sealed}"}"#,
        "IncorrectKeyException",
        400,
        Some("The key ID in the request does not identify a CMK that can perform this operation."),
        SEEN,
    ),
    (
        "Encrypt",
        r#"{"KeyId":"{rsa}","Plaintext":"{large}","EncryptionAlgorithm":"RSAES_OAEP_SHA_256"}"#,
        "ValidationException",
        400,
        Some(
            "Algorithm RSAES_OAEP_SHA_256 and key spec RSA_2048 cannot encrypt data larger than 190 bytes.",
        ),
        SEEN,
    ),
    (
        "GenerateDataKey",
        r#"{"KeyId":"{plain}","NumberOfBytes":1025}"#,
        "ValidationException",
        400,
        Some(
            "1 validation error detected: Value '1025' at 'numberOfBytes' failed to satisfy constraint: Member must have value less than or equal to 1024",
        ),
        SEEN,
    ),
    (
        "GenerateDataKey",
        r#"{"KeyId":"{plain}","NumberOfBytes":16,"KeySpec":"AES_128"}"#,
        "ValidationException",
        400,
        Some("Please specify either number of bytes or key spec, and not both."),
        SEEN,
    ),
    (
        "TagResource",
        r#"{"KeyId":"{plain}","Tags":[{"TagKey":"a","TagValue":""},{"TagKey":"a","TagValue":""}]}"#,
        "TagException",
        400,
        Some("Duplicate tag keys"),
        SEEN,
    ),
    (
        "TagResource",
        r#"{"KeyId":"{plain}","Tags":[{many}]}"#,
        "TagException",
        400,
        Some("Too many tags"),
        SEEN,
    ),
    (
        "TagResource",
        r#"{"KeyId":"{plain}","Tags":[{"TagKey":"aws:a","TagValue":""}]}"#,
        "TagException",
        400,
        Some("Tags beginning with aws: are reserved"),
        SEEN,
    ),
    (
        "DescribeKey",
        r#"{"KeyId":"{missing}"}"#,
        "NotFoundException",
        400,
        Some("Key '{missing}' does not exist"),
        SEEN,
    ),
    (
        "ScheduleKeyDeletion",
        r#"{"KeyId":"{plain}","PendingWindowInDays":0}"#,
        "ValidationException",
        400,
        Some(
            "1 validation error detected: Value '0' at 'pendingWindowInDays' failed to satisfy constraint: Member must have value greater than or equal to 1",
        ),
        SEEN,
    ),
    (
        "GenerateRandom",
        r#"{"NumberOfBytes":8,"Recipient":{}}"#,
        "UnsupportedOperationException",
        400,
        Some(
            "Recipient is not supported: attestation documents are those of AWS Nitro Enclaves, which run on AWS only",
        ),
        "docs/aws-parity.md",
    ),
];

#[test]
fn causes_have_the_code_the_status_and_the_text_of_aws() {
    let fixture = Fixture::new();
    let keys = keys(&fixture);
    let filled = |text: &str| {
        keys.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    };
    for (operation, body, code, status, text, source) in CAUSES {
        let body = filled(body);
        let target = format!("TrentService.{operation}");
        let response = fixture.send(&fixture.raw("kms", &target, body.as_bytes()));
        let answer: Value = serde_json::from_slice(&response.body).unwrap();
        assert_eq!(
            (response.status, answer["__type"].as_str()),
            (*status, Some(*code)),
            "{operation} {body}: {answer}"
        );
        match text {
            Some(text) => {
                assert_eq!(answer["message"], filled(text), "{operation} {body} ({source})");
            }
            None => {
                assert!(answer.get("message").is_none(), "{operation} {body} ({source}): {answer}");
            }
        }
    }
    // A policy can be set on a key that is pending deletion; what AWS reserves is not authorized.
    let policy = json!({ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow",
        "Principal": { "AWS": format!("arn:aws:iam::{ACCOUNT}:root") }, "Action": "kms:*", "Resource": "*" }] });
    fixture
        .kms("PutKeyPolicy", json!({ "KeyId": filled("{going}"), "Policy": policy.to_string() }))
        .unwrap();
    // A statement without Resource is stored, and is for nothing: neither does it allow, nor deny.
    let user = fixture.user(ACCOUNT, "reader", &[]);
    let may = |principal: &str, effect: &str| {
        let mut policy = policy.clone();
        let more =
            json!({ "Effect": effect, "Principal": { "AWS": principal }, "Action": "kms:*" });
        policy["Statement"].as_array_mut().unwrap().push(more);
        let body = json!({ "KeyId": filled("{plain}"), "Policy": policy.to_string() });
        fixture.kms("PutKeyPolicy", body).unwrap();
        let body = json!({ "KeyId": filled("{plain}"), "PolicyName": "default" });
        let stored = fixture.kms("GetKeyPolicy", body).unwrap();
        assert!(stored["Policy"].as_str().unwrap().contains(principal));
    };
    let encrypt = json!({ "KeyId": filled("{plain}"), "Plaintext": "YQ==" });
    may(&format!("arn:aws:iam::{ACCOUNT}:user/reader"), "Allow");
    assert_eq!(
        fixture.kms_as(&user, "Encrypt", encrypt.clone()).unwrap_err().code,
        "AccessDeniedException"
    );
    may("*", "Deny");
    fixture.kms("Encrypt", encrypt).unwrap();
    let alias = json!({ "AliasName": "alias/aws/x", "TargetKeyId": filled("{plain}") });
    assert_eq!(fixture.kms("CreateAlias", alias).unwrap_err().code, "NotAuthorizedException");
    println!("{} causes", CAUSES.len());
}

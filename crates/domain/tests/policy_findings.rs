//! Findings on policies whose conditions do not do what they seem to do.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may fail and print"
)]

use outlast_domain::policy::{KEYS, Kind, Policy, Set};
use serde_json::{Value, json};

fn findings(effect: &str, action: Value, condition: &Value) -> Vec<String> {
    let document = json!({ "Version": "2012-10-17", "Statement": [
        { "Effect": effect, "Action": action, "Resource": "*", "Condition": condition },
    ] });
    Policy::parse(&document.to_string(), Kind::Identity).unwrap().findings()
}

fn of(effect: &str, condition: &Value) -> String {
    findings(effect, json!("*"), condition).join("\n")
}

const DENY: &str = "this Deny never applies";
const ALLOW: &str = "this Allow never applies";
const EVERY: &str = "the condition holds for every request";
const NOTHING: &str = "the condition restricts nothing";

#[test]
fn operators_on_keys_that_no_request_has() {
    let key = "aws:PrincipalOrgID";
    for (operator, value, holds) in [
        ("StringEquals", "o-1", false),
        ("StringNotEquals", "o-1", true),
        ("StringEqualsIfExists", "o-1", true),
        ("StringNotEqualsIfExists", "o-1", true),
        ("ForAnyValue:StringEquals", "o-1", false),
        ("ForAnyValue:StringNotEquals", "o-1", false),
        ("ForAllValues:StringEquals", "o-1", true),
        ("ForAnyValue:StringEqualsIfExists", "o-1", true),
        ("StringLike", "*", false),
        ("Null", "true", true),
        ("Null", "false", false),
    ] {
        let condition = json!({ operator: { key: value } });
        for (effect, expected) in [
            ("Deny", if holds { EVERY } else { DENY }),
            ("Allow", if holds { NOTHING } else { ALLOW }),
        ] {
            let found = of(effect, &condition);
            let record_key = format!("Statement[0].Condition.{operator}: {expected}");
            assert!(found.starts_with(&record_key), "{effect} {operator}: {found}");
            assert!(found.contains(key) && found.contains("there are no organizations"), "{found}");
        }
    }
    assert!(of("Deny", &json!({ "Null": { key: ["true", "false"] } })).contains(EVERY));
}

#[test]
fn every_key_that_is_never_set_is_told() {
    let mut told = 0;
    for row in KEYS {
        let key = row.name.replace("${", "").replace('}', "");
        let condition = json!({ "Null": { key: "false" } });
        let found = of("Deny", &condition);
        let expected = match row.set {
            Set::Never(_) => DENY,
            Set::Always => EVERY,
            Set::When(_) => "",
        };
        assert!(
            found.contains(expected) && found.is_empty() == expected.is_empty(),
            "{}: {found}",
            row.name
        );
        told += usize::from(!found.is_empty());
    }
    println!("{told} of {} keys are told", KEYS.len());
}

#[test]
fn values_keys_and_actions_that_do_not_go_together() {
    let kms = json!("kms:*");
    let not = |more: &str| json!({ "Bool": { more: "false" } });
    #[rustfmt::skip]
    let table = [
        // Spelling, and other services.
        (kms.clone(), not("aws:ViaAwsServices"), "there is no such key"),
        (kms.clone(), json!({ "StringEquals": { "kms:KeySpecs": "x" } }), "there is no such key"),
        (kms.clone(), json!({ "StringEquals": { "dynamodb:Select": "x" } }), "a key of a service that outlast does not have"),
        (kms.clone(), json!({ "StringEquals": { "s3:prefix": "x" } }), "does not apply to these actions"),
        (kms.clone(), json!({ "StringEquals": { "acm-pca:TemplateArn": "x" } }), "does not apply to these actions"),
        (json!(["acm:*", "sts:AssumeRole"]), json!({ "StringEquals": { "kms:KeySpec": "x" } }), "does not apply to these actions"),
        // Types.
        (kms.clone(), json!({ "StringEquals": { "aws:SourceIp": "192.0.2.0/24" } }), "whose type is IP address"),
        (kms.clone(), json!({ "StringEquals": { "aws:SecureTransport": "True" } }), "whose type is Bool"),
        (kms.clone(), json!({ "NumericEquals": { "kms:MultiRegion": "1" } }), "whose type is Bool"),
        (kms.clone(), json!({ "DateLessThan": { "aws:SourceIp": "2030-01-01" } }), "whose type is IP address"),
        (kms.clone(), json!({ "IpAddress": { "aws:CurrentTime": "192.0.2.1" } }), "whose type is Date"),
        (kms.clone(), json!({ "Bool": { "aws:PrincipalArn": "true" } }), "whose type is ARN"),
        (kms.clone(), json!({ "Null": { "aws:SecureTransport": "false", "aws:ViaAWSService": "true" } }), "every request has aws:ViaAWSService"),
        // Variables.
        (kms.clone(), json!({ "StringEquals": { "aws:username": "${aws:PrincipalOrgID}" } }), "the variable ${aws:PrincipalOrgID} never has a value"),
    ];
    let mut said = 0;
    for (action, condition, expected) in table {
        let found = findings("Deny", action, &condition).join("\n");
        assert!(found.contains(expected), "{condition}: {found}");
        said += 1;
    }
    #[rustfmt::skip]
    let good = [
        (kms.clone(), not("aws:ViaAWSService")),
        (kms.clone(), json!({ "NotIpAddress": { "aws:SourceIp": "192.0.2.0/24" } })),
        (kms.clone(), json!({ "StringEquals": { "aws:SourceIp": "192.0.2.1" } })),
        (kms.clone(), json!({ "StringEquals": { "aws:SecureTransport": ["True", "true"] } })),
        (kms.clone(), json!({ "StringEqualsIgnoreCase": { "aws:SecureTransport": "True" } })),
        (kms.clone(), json!({ "NumericLessThan": { "aws:EpochTime": "5" } })),
        (kms.clone(), json!({ "DateLessThan": { "aws:EpochTime": "2030-01-01" } })),
        (kms.clone(), json!({ "ArnLike": { "kms:GranteePrincipal": "arn:aws:iam::111122223333:role/*" } })),
        (kms.clone(), json!({ "Bool": { "kms:EncryptionContext:final": "true" } })),
        (kms.clone(), json!({ "Null": { "aws:TokenIssueTime": "true" } })),
        (json!("*"), json!({ "StringEquals": { "kms:KeySpec": "x", "acm:Export": "ENABLED" } })),
        (json!(["acm:*", "kms:Encrypt"]), json!({ "StringEquals": { "kms:KeySpec": "x" } })),
        (json!("KMS:Encrypt"), json!({ "StringEquals": { "KMS:KEYSPEC": "x" } })),
        (kms.clone(), json!({ "StringEquals": { "aws:username": "${aws:PrincipalOrgID, 'x'}" } })),
        (kms, json!({ "StringEquals": { "aws:ResourceTag/team": "${aws:PrincipalTag/team}" } })),
    ];
    let count = good.len();
    for (action, condition) in good {
        assert_eq!(findings("Deny", action, &condition), [""; 0], "{condition}");
    }
    println!("{said} conditions are told, {count} are not");
}

#[test]
fn a_policy_full_of_them_is_not_repeated_at_length() {
    let long = "x".repeat(200);
    let keys: serde_json::Map<_, _> =
        (0..150).map(|number| (format!("aws:{long}{number}"), json!("x"))).collect();
    let found = findings("Deny", json!("*"), &json!({ "StringEquals": keys }));
    assert_eq!(found.len(), 50);
    assert!(found.iter().all(|finding| finding.len() < 300));
}

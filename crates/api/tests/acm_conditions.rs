//! Certificate Manager: what policies can ask about certificates, requests for them and their tags.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::certificates;
use crate::common;

use certificates::*;
use common::{ACCOUNT, Fixture, Who, allow, b64, code, policy, text, with};
use serde_json::{Value, json};

/// A user who may do everything with CAs, and `action` where `condition` holds.
fn user(fixture: &Fixture, name: &str, action: &Value, condition: &Value) -> Who {
    fixture.user(
        ACCOUNT,
        name,
        &[
            allow(&["acm-pca:*"]),
            policy(json!([
                { "Effect": "Allow", "Action": action, "Resource": "*", "Condition": condition },
            ])),
        ],
    )
}

#[test]
fn condition_keys_have_the_effective_values() {
    let fixture = Fixture::new();
    let (classical, quantum) = (ca(&fixture), root_ca(&fixture, ML_DSA, 3650, json!({})));
    let body = |authority: &str, more: Value| {
        let body = json!({ "DomainName": "A.Example.com", "CertificateAuthorityArn": authority });
        with(&body, more)
    };
    let ec = json!({ "KeyAlgorithm": "EC_prime256v1" });
    let of = |more: Value| body(&classical, with(&ec, more));
    for (number, (key, value, request)) in [
        ("acm:Export", "ENABLED", of(json!({}))),
        ("acm:Export", "DISABLED", of(json!({ "Options": { "Export": "DISABLED" } }))),
        ("acm:ValidationMethod", "EMAIL", of(json!({}))),
        ("acm:ValidationMethod", "DNS", of(json!({ "ValidationMethod": "DNS" }))),
        ("acm:CertificateTransparencyLogging", "ENABLED", of(json!({}))),
        (
            "acm:CertificateTransparencyLogging",
            "DISABLED",
            of(json!({ "Options": { "CertificateTransparencyLoggingPreference": "DISABLED" } })),
        ),
        ("acm:CertificateKeyPairOrigin", "AWS_MANAGED", of(json!({}))),
        ("acm:KeyAlgorithm", "EC_prime256v1", of(json!({}))),
        ("acm:KeyAlgorithm", "ML_DSA_65", body(&quantum, json!({}))),
        ("acm:CertificateAuthority", classical.as_str(), of(json!({}))),
        ("acm:DomainNames", "a.example.com", of(json!({}))),
    ]
    .into_iter()
    .enumerate()
    {
        let action = json!("acm:RequestCertificate");
        let only = json!({ "StringEquals": { key: value } });
        let only = if key == "acm:DomainNames" {
            json!({ "ForAnyValue:StringEquals": { key: value } })
        } else {
            only
        };
        let one = user(&fixture, &format!("one{number}"), &action, &only);
        acm_as(&fixture, &one, "RequestCertificate", &request).unwrap();
        // An absent key would match, too.
        let other = json!({ "ForAllValues:StringEquals": { key: "other" } });
        let other = user(&fixture, &format!("other{number}"), &action, &other);
        let refused = acm_as(&fixture, &other, "RequestCertificate", &request);
        assert_eq!(code(refused), "AccessDeniedException", "{key}");
    }
    // A user who may not request certificates does not learn which CAs exist.
    let nobody = fixture.user(ACCOUNT, "nobody", &[]);
    let gone = body(&classical.replace(ACCOUNT, "000000000000"), ec.clone());
    assert_eq!(
        code(acm_as(&fixture, &nobody, "RequestCertificate", &gone)),
        "AccessDeniedException"
    );
}

#[test]
fn policies_see_the_certificates_properties() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    let arn = requested(&fixture, &authority, "A.Example.com", json!({}));
    let operations = [
        ("DescribeCertificate", of(&arn)),
        ("ExportCertificate", json!({ "CertificateArn": arn, "Passphrase": b64(PASSPHRASE) })),
        ("AddTagsToCertificate", json!({ "CertificateArn": arn, "Tags": [{ "Key": "a" }] })),
        ("TagResource", json!({ "ResourceArn": arn, "Tags": [{ "Key": "a" }] })),
        ("RevokeCertificate", json!({ "CertificateArn": arn, "RevocationReason": "UNSPECIFIED" })),
        ("DeleteCertificate", of(&arn)),
    ];
    let keys = [
        ("acm:DomainNames", "a.example.com"),
        ("acm:CertificateKeyPairOrigin", "AWS_MANAGED"),
        ("acm:KeyAlgorithm", "EC_prime256v1"),
        ("acm:CertificateAuthority", authority.as_str()),
        ("acm:Export", "ENABLED"),
        ("acm:CertificateTransparencyLogging", "ENABLED"),
    ];
    for (number, (key, _)) in keys.iter().enumerate() {
        let other = json!({ "ForAllValues:StringEquals": { *key: "other" } });
        let other = user(&fixture, &format!("other{number}"), &json!("acm:*"), &other);
        for (operation, body) in &operations {
            let refused = acm_as(&fixture, &other, operation, body);
            assert_eq!(code(refused), "AccessDeniedException", "{operation} {key}");
        }
    }
    let all: serde_json::Map<_, _> =
        keys.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let one = user(&fixture, "one", &json!("acm:*"), &json!({ "ForAnyValue:StringEquals": all }));
    for (operation, body) in &operations {
        acm_as(&fixture, &one, operation, body).unwrap();
    }
}

#[test]
fn tags_take_the_right_to_tag_however_they_come_about() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    let plain = json!({
        "DomainName": "a.example.com", "CertificateAuthorityArn": authority, "KeyAlgorithm": "EC_prime256v1",
    });
    let tagged = |value: &str| with(&plain, json!({ "Tags": [{ "Key": "team", "Value": value }] }));
    let requester = [allow(&["acm:RequestCertificate", "acm:ImportCertificate", "acm-pca:*"])];
    let without = fixture.user(ACCOUNT, "without", &requester);
    acm_as(&fixture, &without, "RequestCertificate", &plain).unwrap();
    let refusal = acm_as(&fixture, &without, "RequestCertificate", &tagged("x")).unwrap_err();
    assert_eq!(refusal.code, "AccessDeniedException");
    assert!(refusal.message.contains("acm:AddTagsToCertificate"), "{}", refusal.message);
    let only = policy(json!([{
        "Effect": "Allow", "Action": ["acm:AddTagsToCertificate", "acm:TagResource"], "Resource": "*",
        "Condition": { "StringEquals": { "aws:RequestTag/team": "x" } },
    }]));
    let some = fixture.user(ACCOUNT, "some", &[requester[0].clone(), only]);
    let made = acm_as(&fixture, &some, "RequestCertificate", &tagged("x")).unwrap();
    let arn = text(&made["CertificateArn"]);
    let refused = |answer| assert_eq!(code(answer), "AccessDeniedException");
    refused(acm_as(&fixture, &some, "RequestCertificate", &tagged("y")));
    // Importing.
    let import = |value: &str| {
        json!({
            "Certificate": b64(b"x"), "PrivateKey": b64(b"x"), "Tags": [{ "Key": "team", "Value": value }],
        })
    };
    refused(acm_as(&fixture, &without, "ImportCertificate", &import("x")));
    refused(acm_as(&fixture, &some, "ImportCertificate", &import("y")));
    let passed = acm_as(&fixture, &some, "ImportCertificate", &import("x"));
    assert_eq!(code(passed), "ValidationException");
    // The operations on any resource also take permission for the action on certificates.
    let tag =
        |value: &str| json!({ "ResourceArn": arn, "Tags": [{ "Key": "team", "Value": value }] });
    acm_as(&fixture, &some, "TagResource", &tag("x")).unwrap();
    refused(acm_as(&fixture, &some, "TagResource", &tag("y")));
    for (number, (operation, own, body)) in [
        ("TagResource", "AddTagsToCertificate", tag("x")),
        (
            "UntagResource",
            "RemoveTagsFromCertificate",
            json!({ "ResourceArn": arn, "TagKeys": ["team"] }),
        ),
        ("ListTagsForResource", "ListTagsForCertificate", json!({ "ResourceArn": arn })),
    ]
    .into_iter()
    .enumerate()
    {
        let action = format!("acm:{operation}");
        let half = fixture.user(ACCOUNT, &format!("half{number}"), &[allow(&[&action])]);
        let refusal = acm_as(&fixture, &half, operation, &body).unwrap_err();
        assert!(refusal.message.contains(&format!("acm:{own}")), "{}", refusal.message);
        let both = [allow(&[&action, &format!("acm:{own}")])];
        let whole = fixture.user(ACCOUNT, &format!("whole{number}"), &both);
        acm_as(&fixture, &whole, operation, &body).unwrap();
    }
}

//! Certificate Manager: who may do what with certificates, and what the audit log records of it.
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
use serde_json::json;

#[test]
fn policies_decide_by_certificate_by_ca_and_by_what_is_asked() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    let arn = requested(
        &fixture,
        &authority,
        "a.example.com",
        json!({ "Tags": [{ "Key": "team", "Value": "x" }] }),
    );
    let body = json!({
        "DomainName": "a.example.com", "CertificateAuthorityArn": authority, "KeyAlgorithm": "EC_prime256v1",
    });
    // Requesting takes permission at both, Certificate Manager and the CA.
    let half = fixture.user(ACCOUNT, "half", &[allow(&["acm:RequestCertificate"])]);
    let refusal = acm_as(&fixture, &half, "RequestCertificate", &body).unwrap_err();
    assert_eq!(refusal.code, "AccessDeniedException");
    assert!(
        refusal.message.contains("acm-pca:IssueCertificate on resource: arn:aws:acm-pca:"),
        "{}",
        refusal.message
    );
    let other = fixture.user(ACCOUNT, "other", &[allow(&["acm-pca:IssueCertificate"])]);
    assert_eq!(
        code(acm_as(&fixture, &other, "RequestCertificate", &body)),
        "AccessDeniedException"
    );
    let limited = fixture.user(ACCOUNT, "limited", &[
        allow(&["acm-pca:IssueCertificate"]),
        policy(json!([
            {
                "Effect": "Allow", "Action": "acm:RequestCertificate", "Resource": "*",
                "Condition": { "ForAllValues:StringLike": { "acm:DomainNames": ["*.example.com"] } },
            },
            {
                "Effect": "Allow", "Action": "acm:DescribeCertificate",
                "Resource": format!("arn:aws:acm:eu-west-1:{ACCOUNT}:certificate/*"),
                "Condition": { "StringEquals": { "aws:ResourceTag/team": "x" } },
            },
        ])),
    ]);
    let made = acm_as(&fixture, &limited, "RequestCertificate", &body).unwrap();
    let own = text(&made["CertificateArn"]).to_owned();
    let wide = with(&body, json!({ "SubjectAlternativeNames": ["b.example.org"] }));
    assert_eq!(
        code(acm_as(&fixture, &limited, "RequestCertificate", &wide)),
        "AccessDeniedException"
    );
    acm_as(&fixture, &limited, "DescribeCertificate", &of(&arn)).unwrap();
    assert_eq!(
        code(acm_as(&fixture, &limited, "DescribeCertificate", &of(&own))),
        "AccessDeniedException"
    );
    // Revoking takes permission at the CA, too.
    let revoker = fixture.user(ACCOUNT, "revoker", &[allow(&["acm:RevokeCertificate"])]);
    let revoke = json!({ "CertificateArn": arn, "RevocationReason": "UNSPECIFIED" });
    assert_eq!(
        code(acm_as(&fixture, &revoker, "RevokeCertificate", &revoke)),
        "AccessDeniedException"
    );
    assert_eq!(described(&fixture, &arn)["Status"], "ISSUED");
    // A stranger does not learn that the certificate exists.
    let stranger = Who::stranger();
    assert_eq!(
        code(acm_as(&fixture, &stranger, "DescribeCertificate", &of(&arn))),
        "ResourceNotFoundException"
    );
    // A user without permissions is refused everything.
    let nobody = fixture.user(ACCOUNT, "nobody", &[]);
    for (operation, body) in [
        ("DescribeCertificate", of(&arn)),
        ("GetCertificate", of(&arn)),
        ("DeleteCertificate", of(&arn)),
        ("RenewCertificate", of(&arn)),
        ("ExportCertificate", json!({ "CertificateArn": arn, "Passphrase": b64(PASSPHRASE) })),
        ("RevokeCertificate", revoke),
        ("RequestCertificate", body),
        ("ListCertificates", json!({})),
        ("SearchCertificates", json!({})),
        ("ListTagsForCertificate", of(&arn)),
        ("ListTagsForResource", json!({ "ResourceArn": arn })),
        ("AddTagsToCertificate", json!({ "CertificateArn": arn, "Tags": [{ "Key": "a" }] })),
        ("RemoveTagsFromCertificate", json!({ "CertificateArn": arn, "Tags": [{ "Key": "a" }] })),
        ("TagResource", json!({ "ResourceArn": arn, "Tags": [{ "Key": "a" }] })),
        ("UntagResource", json!({ "ResourceArn": arn, "TagKeys": ["a"] })),
        ("UpdateCertificateOptions", json!({ "CertificateArn": arn, "Options": {} })),
        ("ListCertificateDomainValidations", of(&arn)),
        ("ImportCertificate", json!({ "Certificate": b64(b"x"), "PrivateKey": b64(b"x") })),
        ("GetAccountConfiguration", json!({})),
        ("PutAccountConfiguration", json!({ "IdempotencyToken": "x" })),
        (
            "ResendValidationEmail",
            json!({ "CertificateArn": arn, "Domain": "a.example.com", "ValidationDomain": "example.com" }),
        ),
    ] {
        let refusal = acm_as(&fixture, &nobody, operation, &body).unwrap_err();
        assert_eq!(refusal.code, "AccessDeniedException", "{operation}: {}", refusal.message);
        assert!(
            refusal.message.contains(&format!("acm:{operation} on resource: arn:aws:acm:")),
            "{operation}"
        );
    }
}

#[test]
fn every_call_leaves_its_record() {
    let fixture = Fixture::new();
    let arn = requested(&fixture, &ca(&fixture), "a.example.com", json!({}));
    acm(&fixture, "GetCertificate", &of(&arn)).unwrap();
    let events = fixture.events();
    let find = |name: &str, source: &str| {
        let found = events.iter().find(|e| e["eventName"] == name && e["eventSource"] == source);
        found.unwrap_or_else(|| panic!("no {name}")).clone()
    };
    let request = find("RequestCertificate", "acm.amazonaws.com");
    assert_eq!(request["requestParameters"]["domainName"], "a.example.com");
    assert_eq!(request["responseElements"]["certificateArn"], arn);
    assert_eq!(request["resources"][0]["type"], "AWS::ACM::Certificate");
    let get = find("GetCertificate", "acm.amazonaws.com");
    assert_eq!(
        (&get["readOnly"], &get["requestParameters"]["certificateArn"]),
        (&json!(true), &json!(arn))
    );
}

#[test]
fn what_may_take_long_does_not_hold_up_a_network_thread() {
    let slow: Vec<_> = outlast_api::ops::ACM
        .operations
        .iter()
        .filter(|row| row.slow)
        .map(|row| row.name)
        .collect();
    let looks_at_all = ["ListCertificates", "SearchCertificates"];
    let derives_keys = ["ExportCertificate"];
    for name in looks_at_all.iter().chain(&derives_keys) {
        assert!(slow.contains(name), "{name}");
    }
}

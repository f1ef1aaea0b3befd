//! Managed renewal: how many in a round, in which order, and from CAs that are shared or not active.
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
use common::{Fixture, NOW, OTHER_ACCOUNT, Who, policy, text};
use outlast_domain::limits::RENEWALS_PER_ROUND;
use serde_json::{Value, json};

const DAY: i64 = 86_400;
const TEMPLATE: &str = "arn:aws:acm-pca:::template/EndEntityCertificate/V1";

fn share(fixture: &Fixture, authority: &str, actions: &[&str], template: &str) {
    let mut statements = vec![json!({
        "Effect": "Allow", "Principal": { "AWS": OTHER_ACCOUNT }, "Resource": authority,
        "Action": "acm-pca:DescribeCertificateAuthority",
    })];
    for action in actions {
        let mut statement = json!({
            "Effect": "Allow", "Principal": { "AWS": OTHER_ACCOUNT }, "Resource": authority,
            "Action": action,
        });
        if *action == "acm-pca:IssueCertificate" {
            statement["Condition"] = json!({ "StringEquals": { "acm-pca:TemplateArn": template } });
        }
        statements.push(statement);
    }
    let document = policy(json!(statements));
    let body = json!({ "ResourceArn": authority, "Policy": document.to_string() });
    pca(fixture, "PutPolicy", &body).unwrap();
}

/// A certificate of the other account, from a CA that is shared with it.
fn of_stranger(fixture: &Fixture, authority: &str, name: &str) -> String {
    let body = json!({
        "DomainName": name, "CertificateAuthorityArn": authority, "KeyAlgorithm": "EC_prime256v1",
    });
    let made = acm_as(fixture, &Who::stranger(), "RequestCertificate", &body).unwrap();
    text(&made["CertificateArn"]).to_owned()
}

fn summary_of_stranger(fixture: &Fixture, arn: &str) -> Value {
    let found = acm_as(fixture, &Who::stranger(), "DescribeCertificate", &of(arn)).unwrap();
    found["Certificate"]["RenewalSummary"].clone()
}

#[test]
fn from_a_ca_of_another_account_its_policy_decides() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    let both = ["acm-pca:IssueCertificate", "acm-pca:GetCertificate"];
    share(&fixture, &authority, &both, TEMPLATE);
    let arn = of_stranger(&fixture, &authority, "a.example.com");
    // The CA's permission for Certificate Manager covers its own account only.
    permit(&fixture, &authority);
    let mut now = NOW + 335 * DAY;
    let other = TEMPLATE.replace("EndEntityCertificate", "EndEntityClientAuthCertificate");
    for (actions, template, expected) in [
        ([].as_slice(), TEMPLATE, "FAILED"),
        (&both[..1], TEMPLATE, "FAILED"),
        (&both[1..], TEMPLATE, "FAILED"),
        (&both, &other, "FAILED"),
        (&both, TEMPLATE, "SUCCESS"),
    ] {
        share(&fixture, &authority, actions, template);
        fixture.now.set(now);
        fixture.run_housekeeping();
        let summary = summary_of_stranger(&fixture, &arn);
        assert_eq!(summary["RenewalStatus"], expected, "{actions:?} {template}");
        if expected == "FAILED" {
            assert_eq!(summary["RenewalStatusReason"], "PCA_ACCESS_DENIED");
        }
        now += 3600;
    }
    // Renewal stops once the CA is no longer shared.
    pca(&fixture, "DeletePolicy", &json!({ "ResourceArn": authority })).unwrap();
    fixture.now.set(now + 335 * DAY);
    fixture.run_housekeeping();
    assert_eq!(summary_of_stranger(&fixture, &arn)["RenewalStatus"], "FAILED");
}

#[test]
fn renewal_rounds_are_bounded_and_fair() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    permit(&fixture, &authority);
    share(&fixture, &authority, &["acm-pca:IssueCertificate", "acm-pca:GetCertificate"], TEMPLATE);
    let arns: Vec<_> = (0..RENEWALS_PER_ROUND + 8)
        .map(|number| requested(&fixture, &authority, &format!("n{number}.example.com"), json!({})))
        .collect();
    // The other account comes last, both by its number and by its time.
    fixture.advance(60);
    let other: Vec<_> =
        (0..3).map(|n| of_stranger(&fixture, &authority, &format!("s{n}.example.com"))).collect();
    fixture.now.set(NOW + 336 * DAY);
    let renewed = || {
        let own = arns
            .iter()
            .filter(|arn| described(&fixture, arn)["RenewalSummary"]["RenewalStatus"] == "SUCCESS");
        let others = other
            .iter()
            .filter(|arn| summary_of_stranger(&fixture, arn)["RenewalStatus"] == "SUCCESS");
        (own.count(), others.count())
    };
    fixture.run_housekeeping();
    assert_eq!(renewed(), (RENEWALS_PER_ROUND - 3, 3));
    fixture.run_housekeeping();
    assert_eq!(renewed(), (arns.len(), 3));
}

#[test]
fn a_ca_that_is_not_active_is_seen_before_anything_is_made() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    permit(&fixture, &authority);
    let arn = requested(&fixture, &authority, "a.example.com", json!({}));
    // No key can be made for this record.
    let at = record_key("certificate", &arn);
    let mut record = fixture.record(&at);
    record["details"]["key_algorithm"] = json!("RSA_1024");
    fixture.put_record(&at, &record);
    fixture.advance(DAY);
    let refusal = acm(&fixture, "RenewCertificate", &of(&arn)).unwrap_err();
    assert_eq!(refusal.code, "InternalFailure");
    let off = json!({ "CertificateAuthorityArn": authority, "Status": "DISABLED" });
    pca(&fixture, "UpdateCertificateAuthority", &off).unwrap();
    let refusal = acm(&fixture, "RenewCertificate", &of(&arn)).unwrap_err();
    assert!(refusal.message.contains("PCA_INVALID_STATE"), "{}", refusal.message);
}

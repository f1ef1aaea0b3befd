//! Lists and searches of certificates: every filter, every order, pages.
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

use std::collections::BTreeMap;

use certificates::*;
use common::authorities::self_signed;
use common::{Fixture, NOW, b64, code, text, with};
use outlast_api::model::acm_search::ORDERS;
use serde_json::{Value, json};

const DAY: i64 = 86_400;

/// Certificates of several kinds, by a short name, made a second apart.
struct Setting {
    fixture: Fixture,
    arns: BTreeMap<&'static str, String>,
}

impl Setting {
    fn new() -> Self {
        let fixture = Fixture::new();
        let authority = ca(&fixture);
        let mut arns = BTreeMap::new();
        let mut add = |name: &'static str, domain: &str, more: Value| {
            fixture.advance(1);
            arns.insert(name, requested(&fixture, &authority, domain, more));
        };
        add("ec", "ec.example.com", json!({ "SubjectAlternativeNames": ["also.example.org"] }));
        add("rsa", "rsa.example.com", json!({ "KeyAlgorithm": "RSA_2048" }));
        add("ml-dsa", "ml-dsa.example.com", json!({ "KeyAlgorithm": "ML_DSA_65" }));
        add("closed", "closed.example.com", json!({ "Options": { "Export": "DISABLED" } }));
        add("revoked", "revoked.example.com", json!({}));
        let body = json!({ "CertificateArn": arns["revoked"], "RevocationReason": "UNSPECIFIED" });
        acm(&fixture, "RevokeCertificate", &body).unwrap();
        let body = json!({ "CertificateArn": arns["ec"], "Passphrase": b64(PASSPHRASE) });
        acm(&fixture, "ExportCertificate", &body).unwrap();
        // A CA's own certificate, which has neither names nor extended key usages, without a CA's key usage.
        fixture.advance(1);
        let (certificate, key) = self_signed("imported.example.com", NOW + 30 * DAY);
        let body = json!({ "Certificate": b64(certificate.as_bytes()), "PrivateKey": b64(key.as_bytes()) });
        let made = acm(&fixture, "ImportCertificate", &body).unwrap();
        arns.insert("imported", text(&made["CertificateArn"]).to_owned());
        Self { fixture, arns }
    }

    /// The short names of what was found, in order.
    fn names(&self, list: &Value) -> Vec<&'static str> {
        let name = |item: &Value| {
            let arn = text(&item["CertificateArn"]);
            *self.arns.iter().find(|(_, known)| *known == arn).unwrap().0
        };
        list.as_array().unwrap().iter().map(name).collect()
    }

    #[track_caller]
    fn listed(&self, body: Value) -> Vec<&'static str> {
        let sorted = json!({ "SortBy": "CREATED_AT", "SortOrder": "ASCENDING" });
        let found = acm(&self.fixture, "ListCertificates", &with(&body, sorted)).unwrap();
        self.names(&found["CertificateSummaryList"])
    }

    #[track_caller]
    fn found(&self, filter: Value) -> Vec<&'static str> {
        let body = json!({
            "FilterStatement": filter, "SortBy": "CREATED_AT", "SortOrder": "ASCENDING",
        });
        let found = acm(&self.fixture, "SearchCertificates", &body).unwrap();
        self.names(&found["Results"])
    }
}

const ALL_TYPES: &[&str] = &["EC_prime256v1", "RSA_2048", "ML_DSA_65"];

#[test]
fn lists_are_filtered_as_awss_are() {
    let setting = Setting::new();
    let all = ["ec", "rsa", "ml-dsa", "closed", "revoked", "imported"];
    let types = |more: Value| json!({ "Includes": with(&json!({ "keyTypes": ALL_TYPES }), more) });
    // AWS leaves out all key types but RSA unless the request asks for them; programs for AWS do not know ML-DSA.
    assert_eq!(setting.listed(json!({})), ["rsa", "ml-dsa"]);
    assert_eq!(setting.listed(types(json!({}))), all);
    for (body, expected) in [
        (
            json!({ "Includes": { "keyTypes": ["EC_prime256v1"] } }),
            &["ec", "closed", "revoked", "imported"][..],
        ),
        (json!({ "Includes": { "keyTypes": [] } }), &["rsa", "ml-dsa"]),
        (types(json!({ "exportOption": "DISABLED" })), &["closed", "imported"]),
        (types(json!({ "exportOption": "ENABLED" })), &["ec", "rsa", "ml-dsa", "revoked"]),
        (types(json!({ "keyUsage": ["KEY_ENCIPHERMENT", "CRL_SIGNING"] })), &["rsa"]),
        (types(json!({ "keyUsage": ["ANY"] })), &["imported"]),
        (types(json!({ "extendedKeyUsage": ["TLS_WEB_CLIENT_AUTHENTICATION"] })), &all[..5]),
        (types(json!({ "extendedKeyUsage": ["NONE", "CODE_SIGNING"] })), &["imported"]),
        (types(json!({ "managedBy": "CLOUDFRONT" })), &[]),
        (
            with(&types(json!({})), json!({ "CertificateStatuses": ["REVOKED", "FAILED"] })),
            &["revoked"],
        ),
        (
            with(&types(json!({})), json!({ "CertificateStatuses": ["ISSUED"] })),
            &["ec", "rsa", "ml-dsa", "closed", "imported"],
        ),
        (
            with(&types(json!({})), json!({ "CertificateKeyPairOrigins": ["CUSTOMER_PROVIDED"] })),
            &["imported"],
        ),
        (
            with(
                &types(json!({})),
                json!({ "CertificateKeyPairOrigins": ["ACME", "AWS_MANAGED"] }),
            ),
            &all[..5],
        ),
    ] {
        assert_eq!(setting.listed(body.clone()), expected, "{body}");
    }
    setting.fixture.advance(31 * DAY);
    let expired = with(&types(json!({})), json!({ "CertificateStatuses": ["EXPIRED"] }));
    assert_eq!(setting.listed(expired), ["imported"]);
    for body in [
        json!({ "CertificateStatuses": ["GOOD"] }),
        json!({ "CertificateKeyPairOrigins": [] }),
        json!({ "CertificateKeyPairOrigins": ["x"] }),
        json!({ "Includes": { "keyTypes": ["DSA"] } }),
        json!({ "Includes": { "keyUsage": ["DSA"] } }),
        json!({ "Includes": { "extendedKeyUsage": ["DSA"] } }),
        json!({ "Includes": { "exportOption": "DSA" } }),
        json!({ "Includes": { "managedBy": "DSA" } }),
        json!({ "SortBy": "CREATED_AT" }),
        json!({ "SortOrder": "ASCENDING" }),
        json!({ "SortBy": "NAME", "SortOrder": "ASCENDING" }),
        json!({ "SortBy": "CREATED_AT", "SortOrder": "UP" }),
        json!({ "MaxItems": 0 }),
        json!({ "MaxItems": 1001 }),
        json!({ "NextToken": "???" }),
        json!({ "NextToken": "bm90IG91cnM" }),
    ] {
        assert_eq!(
            code(acm(&setting.fixture, "ListCertificates", &body)),
            "ValidationException",
            "{body}"
        );
    }
    let unknown = json!({ "Includes": { "KeyTypes": [] } });
    assert_eq!(code(acm(&setting.fixture, "ListCertificates", &unknown)), "SerializationException");
}

#[test]
fn a_summary_says_what_is_known() {
    let setting = Setting::new();
    let body = json!({ "Includes": { "keyTypes": ["EC_prime256v1"] } });
    let found = acm(&setting.fixture, "ListCertificates", &body).unwrap();
    let find = |name: &str| {
        let list = found["CertificateSummaryList"].as_array().unwrap().iter();
        list.clone().find(|item| item["CertificateArn"] == setting.arns[name]).unwrap()
    };
    let (certificate, _) = got(&setting.fixture, &setting.arns["ec"]);
    assert_eq!(
        find("ec"),
        &json!({
            "CertificateArn": setting.arns["ec"],
            "DomainName": "ec.example.com",
            "SubjectAlternativeNameSummaries": ["ec.example.com", "also.example.org"],
            "HasAdditionalSubjectAlternativeNames": false,
            "Status": "ISSUED",
            "Type": "PRIVATE",
            "KeyAlgorithm": "EC_prime256v1",
            "KeyUsages": ["DIGITAL_SIGNATURE"],
            "ExtendedKeyUsages": ["TLS_WEB_SERVER_AUTHENTICATION", "TLS_WEB_CLIENT_AUTHENTICATION"],
            "ExportOption": "ENABLED",
            "InUse": false,
            "Exported": true,
            "RenewalEligibility": "ELIGIBLE",
            "NotBefore": certificate.not_before(),
            "NotAfter": certificate.not_after(),
            "CreatedAt": NOW + 1,
            "IssuedAt": NOW + 1,
            "CertificateKeyPairOrigin": "AWS_MANAGED",
        })
    );
    let imported = find("imported");
    assert_eq!((&imported["Type"], &imported["ImportedAt"]), (&json!("IMPORTED"), &json!(NOW + 6)));
    assert_eq!(
        (imported.get("IssuedAt"), &imported["RenewalEligibility"]),
        (None, &json!("INELIGIBLE"))
    );
    assert_eq!(find("revoked")["RevokedAt"], NOW + 5);
}

#[test]
fn searches_take_every_filter() {
    let setting = Setting::new();
    let all = ["ec", "rsa", "ml-dsa", "closed", "revoked", "imported"];
    let x509 = |filter: Value| json!({ "Filter": { "X509AttributeFilter": filter } });
    let metadata = |filter: Value| json!({ "Filter": { "AcmCertificateMetadataFilter": filter } });
    let name = |kind: &str, member: &str, value: &str, operator: &str| {
        let comparison = json!({ "Value": value, "ComparisonOperator": operator });
        x509(json!({ kind: { member: comparison } }))
    };
    let serial = text(&described(&setting.fixture, &setting.arns["rsa"])["Serial"]).to_owned();
    let ec = metadata(json!({ "Exported": true }));
    let cases = [
        (json!({ "Filter": { "CertificateArn": setting.arns["rsa"] } }), &["rsa"][..]),
        (name("Subject", "CommonName", "RSA.example.com", "EQUALS"), &["rsa"]),
        (name("Subject", "CommonName", "rsa", "EQUALS"), &[]),
        (name("Subject", "CommonName", "r", "CONTAINS"), &["rsa", "revoked", "imported"]),
        (name("SubjectAlternativeName", "DnsName", "also.example.org", "EQUALS"), &["ec"]),
        (name("SubjectAlternativeName", "DnsName", ".example.", "CONTAINS"), &all[..5]),
        (x509(json!({ "ExtendedKeyUsage": "TLS_WEB_SERVER_AUTHENTICATION" })), &all[..5]),
        (x509(json!({ "ExtendedKeyUsage": "NONE" })), &["imported"]),
        (x509(json!({ "KeyUsage": "KEY_ENCIPHERMENT" })), &["rsa"]),
        (x509(json!({ "KeyAlgorithm": "ML_DSA_65" })), &["ml-dsa"]),
        (x509(json!({ "SerialNumber": serial })), &["rsa"]),
        (x509(json!({ "NotAfter": { "End": NOW + 30 * DAY } })), &["imported"]),
        (x509(json!({ "NotAfter": { "Start": NOW + 30 * DAY + 1 } })), &all[..5]),
        (
            x509(json!({ "NotBefore": { "Start": NOW - 3598, "End": NOW - 3597 } })),
            &["rsa", "ml-dsa"],
        ),
        (x509(json!({ "NotBefore": {} })), &all),
        (metadata(json!({ "Status": "REVOKED" })), &["revoked"]),
        (metadata(json!({ "RenewalStatus": "SUCCESS" })), &[]),
        (metadata(json!({ "Type": "IMPORTED" })), &["imported"]),
        (metadata(json!({ "InUse": false })), &all),
        (metadata(json!({ "InUse": true })), &[]),
        (ec.clone(), &["ec"]),
        (metadata(json!({ "ExportOption": "DISABLED" })), &["closed", "imported"]),
        (metadata(json!({ "ManagedBy": "CLOUDFRONT" })), &[]),
        (metadata(json!({ "ValidationMethod": "DNS" })), &[]),
        (metadata(json!({ "CertificateKeyPairOrigin": "CUSTOMER_PROVIDED" })), &["imported"]),
        (metadata(json!({ "AcmeEndpointArn": "arn:aws:acm:eu-west-1:123456789012:x" })), &[]),
        (metadata(json!({ "AcmeAccountId": "00000000-0000-0000-0000-000000000000" })), &[]),
        (json!({ "Not": ec }), &all[1..]),
        (json!({ "Or": [ec, x509(json!({ "KeyAlgorithm": "RSA_2048" }))] }), &["ec", "rsa"]),
        (json!({ "And": [metadata(json!({ "Type": "PRIVATE" })), { "Not": ec }] }), &all[1..5]),
    ];
    for (filter, expected) in &cases {
        assert_eq!(setting.found(filter.clone()), *expected, "{filter}");
    }
}

#[test]
fn searches_refuse_what_is_no_filter() {
    let fixture = Fixture::new();
    let search = |body: Value| code(acm(&fixture, "SearchCertificates", &body));
    let filter = |filter: Value| search(json!({ "FilterStatement": filter }));
    let exported = json!({ "Filter": { "AcmCertificateMetadataFilter": { "Exported": true } } });
    let x509 = |attributes: Value| json!({ "Filter": { "X509AttributeFilter": attributes } });
    let common_name = |comparison: Value| x509(json!({ "Subject": { "CommonName": comparison } }));
    let mut deep = exported.clone();
    for _ in 0..8 {
        deep = json!({ "Not": deep });
    }
    let wide = json!({ "Or": vec![exported.clone(); 15] });
    let wider = json!({ "Or": vec![wide; 15] });
    for statement in [
        json!({}),
        json!({ "Not": {} }),
        json!({ "Filter": {} }),
        x509(json!({})),
        with(&exported, json!({ "Not": exported })),
        json!({ "And": [] }),
        json!({ "And": vec![exported.clone(); 16] }),
        x509(json!({ "KeyUsage": "X" })),
        x509(json!({ "ExtendedKeyUsage": "X" })),
        x509(json!({ "KeyAlgorithm": "X" })),
        x509(json!({ "KeyAlgorithm": "RSA_2048", "KeyUsage": "ANY" })),
        common_name(json!({ "Value": "", "ComparisonOperator": "EQUALS" })),
        common_name(json!({ "Value": "x".repeat(257), "ComparisonOperator": "EQUALS" })),
        common_name(json!({ "Value": "x", "ComparisonOperator": "IS" })),
        common_name(json!({ "Value": "x" })),
        json!({ "Filter": { "AcmCertificateMetadataFilter": { "Status": "X" } } }),
        deep,
        wider,
    ] {
        assert_eq!(filter(statement.clone()), "ValidationException", "{statement}");
    }
    assert_eq!(filter(x509(json!({ "Issuer": {} }))), "SerializationException");
    for body in [
        json!({ "MaxResults": 501 }),
        json!({ "MaxResults": 0 }),
        json!({ "SortBy": "NAME" }),
        json!({ "SortOrder": "UP" }),
        json!({ "NextToken": "!" }),
    ] {
        assert_eq!(search(body), "ValidationException");
    }
    // The deepest nesting that is allowed.
    let mut deep = exported;
    for _ in 0..7 {
        deep = json!({ "Not": deep });
    }
    acm(&fixture, "SearchCertificates", &json!({ "FilterStatement": deep })).unwrap();
}

#[test]
fn every_order_is_whole_in_pages_of_any_size_both_ways() {
    let setting = Setting::new();
    for order in ORDERS {
        let mut ways = Vec::new();
        for direction in ["ASCENDING", "DESCENDING"] {
            let whole = json!({ "SortBy": order.name, "SortOrder": direction });
            let found = acm(&setting.fixture, "SearchCertificates", &whole).unwrap();
            let whole = setting.names(&found["Results"]);
            assert_eq!((whole.len(), found.get("NextToken")), (6, None), "{}", order.name);
            for size in [1, 2, 5, 6] {
                let mut all = Vec::new();
                let mut token = Value::Null;
                loop {
                    let body = json!({
                        "SortBy": order.name, "SortOrder": direction, "MaxResults": size, "NextToken": token,
                    });
                    let page = acm(&setting.fixture, "SearchCertificates", &body).unwrap();
                    all.extend(setting.names(&page["Results"]));
                    match page.get("NextToken") {
                        Some(next) => token = next.clone(),
                        None => break,
                    }
                }
                assert_eq!(all, whole, "{} {direction} by {size}", order.name);
            }
            ways.push(whole);
        }
        ways[1].reverse();
        assert_eq!(ways[0], ways[1], "{}", order.name);
    }
    let by = |order: &str| {
        let body = json!({ "SortBy": order, "SortOrder": "ASCENDING" });
        let found = acm(&setting.fixture, "SearchCertificates", &body).unwrap();
        setting.names(&found["Results"])
    };
    assert_eq!(by("COMMON_NAME"), ["closed", "ec", "imported", "ml-dsa", "revoked", "rsa"]);
    assert_eq!(by("CREATED_AT"), ["ec", "rsa", "ml-dsa", "closed", "revoked", "imported"]);
    assert_eq!(by("NOT_AFTER")[0], "imported");
    assert_eq!(by("EXPORTED")[5], "ec");
    assert_eq!((by("REVOKED_AT")[5], by("STATUS")[5]), ("revoked", "revoked"));
    assert_eq!(by("IMPORTED_AT")[5], "imported");
    assert_eq!(by("KEY_ALGORITHM")[4..], ["ml-dsa", "rsa"]);
}

#[test]
fn a_list_without_an_order_is_whole_in_pages() {
    let setting = Setting::new();
    let mut all = Vec::new();
    let mut token = Value::Null;
    for _ in 0..3 {
        let body = json!({
            "Includes": { "keyTypes": ALL_TYPES }, "MaxItems": 2, "NextToken": token,
        });
        let page = acm(&setting.fixture, "ListCertificates", &body).unwrap();
        all.extend(setting.names(&page["CertificateSummaryList"]));
        token = page.get("NextToken").cloned().unwrap_or_default();
    }
    assert_eq!(token, Value::Null);
    all.sort_unstable();
    assert_eq!(all, ["closed", "ec", "imported", "ml-dsa", "revoked", "rsa"]);
}

#[test]
fn a_result_says_what_the_certificate_says() {
    let setting = Setting::new();
    let body = json!({
        "FilterStatement": { "Filter": { "CertificateArn": setting.arns["imported"] } },
    });
    let found = acm(&setting.fixture, "SearchCertificates", &body).unwrap();
    let name = json!({ "CommonName": "imported.example.com", "Country": "DE", "Title": "Mx" });
    assert_eq!(
        found["Results"],
        json!([{
            "CertificateArn": setting.arns["imported"],
            "X509Attributes": {
                "Issuer": name,
                "Subject": name,
                "SubjectAlternativeNames": [],
                "ExtendedKeyUsages": [],
                "KeyAlgorithm": "EC_prime256v1",
                "KeyUsages": [],
                "SerialNumber": "47:07:07:07:07:07:07:07:07:07:07:07:07:07:07:07",
                "NotAfter": NOW + 30 * DAY,
                "NotBefore": NOW - 3600,
            },
            "CertificateMetadata": { "AcmCertificateMetadata": {
                "CreatedAt": NOW + 6,
                "Exported": false,
                "ImportedAt": NOW + 6,
                "InUse": false,
                "RenewalEligibility": "INELIGIBLE",
                "Status": "ISSUED",
                "Type": "IMPORTED",
                "ExportOption": "DISABLED",
                "CertificateKeyPairOrigin": "CUSTOMER_PROVIDED",
            } },
        }])
    );
    let body = json!({
        "FilterStatement": { "Filter": { "CertificateArn": setting.arns["ec"] } },
    });
    let found = acm(&setting.fixture, "SearchCertificates", &body).unwrap();
    assert_eq!(
        found["Results"][0]["X509Attributes"]["SubjectAlternativeNames"],
        json!([{ "DnsName": "ec.example.com" }, { "DnsName": "also.example.org" }])
    );
}

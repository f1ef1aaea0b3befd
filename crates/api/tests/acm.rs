//! Certificate Manager: requesting, describing, exporting, revoking, deleting, options, and what is refused.
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
use common::{ACCOUNT, Fixture, NOW, b64, code, text, with};
use outlast_store::Store;
use serde_json::{Value, json};

const DAY: i64 = 86_400;

/// All records, except those that every call writes.
fn records(fixture: &Fixture) -> Vec<(String, Vec<u8>)> {
    fixture.store_without_uses()
}

/// Checks that a call is refused with this error, and changes nothing.
#[track_caller]
fn refused(fixture: &Fixture, operation: &str, body: &Value, error: &str) -> String {
    let before = records(fixture);
    let refused = acm(fixture, operation, body).unwrap_err();
    assert_eq!(refused.code, error, "{operation} {body}: {}", refused.message);
    assert!(records(fixture) == before, "{operation} changed something");
    refused.message
}

#[test]
fn certificates_of_every_key_type_can_be_exported() {
    let fixture = Fixture::new();
    let authorities =
        [root_ca(&fixture, ECDSA, 3650, json!({})), root_ca(&fixture, ML_DSA, 3650, json!({}))];
    for authority in &authorities {
        for algorithm in [
            "RSA_2048",
            "EC_prime256v1",
            "EC_secp384r1",
            "EC_secp521r1",
            "ML_DSA_44",
            "ML_DSA_65",
            "ML_DSA_87",
        ] {
            let arn = requested(
                &fixture,
                authority,
                "www.example.com",
                json!({
                    "KeyAlgorithm": algorithm,
                    "SubjectAlternativeNames": ["WWW.example.com", "*.example.org", "api.example.com"],
                }),
            );
            let (certificate, chain) = got(&fixture, &arn);
            let names: Vec<_> = outlast_domain::acm::details::Details::of(&certificate).dns_names;
            assert_eq!(names, ["www.example.com", "*.example.org", "api.example.com"]);
            assert_eq!(certificate.subject().to_string(), "CN=www.example.com");
            assert_eq!(certificate.not_after(), NOW + 395 * DAY);
            assert_eq!(chain.len(), 1);
            assert!(certificate.signed_by(&chain[0]));
            let found = described(&fixture, &arn);
            for (member, expected) in [
                ("CertificateArn", json!(arn)),
                ("DomainName", json!("www.example.com")),
                (
                    "SubjectAlternativeNames",
                    json!(["www.example.com", "*.example.org", "api.example.com"]),
                ),
                ("Subject", json!("CN=www.example.com")),
                ("Issuer", json!("Outlast")),
                ("Status", json!("ISSUED")),
                ("Type", json!("PRIVATE")),
                // Answers spell RSA's types with a hyphen, as AWS's do.
                ("KeyAlgorithm", json!(algorithm.replace("RSA_", "RSA-"))),
                ("CreatedAt", json!(NOW)),
                ("IssuedAt", json!(NOW)),
                ("NotAfter", json!(NOW + 395 * DAY)),
                ("InUseBy", json!([])),
                ("CertificateAuthorityArn", json!(authority)),
                ("RenewalEligibility", json!("ELIGIBLE")),
                ("CertificateKeyPairOrigin", json!("AWS_MANAGED")),
                (
                    "Options",
                    json!({
                        "CertificateTransparencyLoggingPreference": "ENABLED", "Export": "ENABLED",
                    }),
                ),
                (
                    "ExtendedKeyUsages",
                    json!([
                        { "Name": "TLS_WEB_SERVER_AUTHENTICATION", "OID": "1.3.6.1.5.5.7.3.1" },
                        { "Name": "TLS_WEB_CLIENT_AUTHENTICATION", "OID": "1.3.6.1.5.5.7.3.2" },
                    ]),
                ),
            ] {
                assert_eq!(found[member], expected, "{algorithm} {member}");
            }
            let usages = match algorithm {
                "RSA_2048" => {
                    json!([{ "Name": "DIGITAL_SIGNATURE" }, { "Name": "KEY_ENCIPHERMENT" }])
                }
                _ => json!([{ "Name": "DIGITAL_SIGNATURE" }]),
            };
            assert_eq!(found["KeyUsages"], usages);
            let signed_with = if authority == &authorities[0] { ECDSA.1 } else { ML_DSA.1 };
            assert_eq!(found["SignatureAlgorithm"], signed_with);
            let serial = text(&found["Serial"]).replace(':', "");
            assert_eq!(serial, hex::encode(certificate.serial()));
            let body = json!({ "CertificateArn": arn, "Passphrase": b64(PASSPHRASE) });
            let exported = acm(&fixture, "ExportCertificate", &body).unwrap();
            let public_key = exported_key(&exported, algorithm);
            assert_eq!(public_key, certificate.public_key().unwrap(), "{algorithm}");
            assert!(
                exported["CertificateChain"].is_string() && exported["Certificate"].is_string()
            );
        }
    }
}

#[test]
fn without_a_key_type_the_certificate_follows_the_ca() {
    let fixture = Fixture::new();
    for (algorithms, expected) in [
        (ECDSA, "RSA_2048"),
        (("RSA_2048", "SHA256WITHRSA"), "RSA_2048"),
        (("ML_DSA_44", "ML_DSA_44"), "ML_DSA_44"),
        (ML_DSA, "ML_DSA_65"),
    ] {
        let authority = root_ca(&fixture, algorithms, 3650, json!({}));
        let body = json!({ "DomainName": "a.example.com", "CertificateAuthorityArn": authority });
        let made = acm(&fixture, "RequestCertificate", &body).unwrap();
        let found = described(&fixture, text(&made["CertificateArn"]));
        assert_eq!(found["KeyAlgorithm"], expected.replace("RSA_", "RSA-"), "{algorithms:?}");
    }
}

#[test]
fn certificates_end_before_their_ca() {
    let fixture = Fixture::new();
    let soon = root_ca(&fixture, ECDSA, 100, json!({}));
    let arn = requested(&fixture, &soon, "a.example.com", json!({}));
    assert_eq!(described(&fixture, &arn)["NotAfter"], NOW + 100 * DAY);
    let more = json!({ "UsageMode": "SHORT_LIVED_CERTIFICATE" });
    let short = root_ca(&fixture, ECDSA, 3650, more);
    let arn = requested(&fixture, &short, "a.example.com", json!({}));
    assert_eq!(described(&fixture, &arn)["NotAfter"], NOW + 7 * DAY);
}

#[test]
fn a_token_makes_one_certificate_within_the_hour() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    let token = json!({ "IdempotencyToken": "token_1" });
    let arn = requested(&fixture, &authority, "a.example.com", token.clone());
    fixture.advance(3500);
    assert_eq!(requested(&fixture, &authority, "a.example.com", token.clone()), arn);
    let other = json!({
        "DomainName": "b.example.com", "CertificateAuthorityArn": authority, "IdempotencyToken": "token_1",
    });
    refused(&fixture, "RequestCertificate", &other, "InvalidParameterException");
    fixture.run_housekeeping();
    assert_eq!(requested(&fixture, &authority, "a.example.com", token.clone()), arn);
    fixture.advance(200);
    let later = requested(&fixture, &authority, "a.example.com", token);
    assert_ne!(later, arn);
    fixture.advance(4000);
    fixture.run_housekeeping();
    assert!(fixture.store.scan("acm/token/", "", 10).unwrap().is_empty());
}

#[test]
fn what_cannot_be_requested_is_refused_by_name() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    let body = json!({ "DomainName": "a.example.com", "CertificateAuthorityArn": authority });
    let long = format!("{}.example.com", "a".repeat(60));
    let many: Vec<_> = (0..100).map(|number| format!("n{number}.example.com")).collect();
    let over: Vec<_> = (0..101).map(|number| format!("n{number}.example.com")).collect();
    for (more, error) in [
        (json!({ "CertificateAuthorityArn": null }), "InvalidParameterException"),
        (
            json!({ "CertificateAuthorityArn": "arn:aws:acm-pca:eu-west-1:123456789012:nothing/x" }),
            "InvalidArnException",
        ),
        (
            json!({ "CertificateAuthorityArn": authority.replace("eu-west-1", "eu-west-2") }),
            "InvalidArnException",
        ),
        (json!({ "DomainName": long }), "InvalidParameterException"),
        (json!({ "DomainName": "localhost" }), "ValidationException"),
        (json!({ "DomainName": "-a.example.com" }), "ValidationException"),
        (json!({ "DomainName": "a.*.example.com" }), "ValidationException"),
        (json!({ "DomainName": "a_b.example.com" }), "ValidationException"),
        (json!({ "DomainName": "" }), "ValidationException"),
        (json!({ "SubjectAlternativeNames": [] }), "ValidationException"),
        (json!({ "SubjectAlternativeNames": ["b.example.com", "nothing"] }), "ValidationException"),
        (json!({ "SubjectAlternativeNames": over }), "ValidationException"),
        (json!({ "SubjectAlternativeNames": many }), "LimitExceededException"),
        (json!({ "IdempotencyToken": "with-hyphen" }), "ValidationException"),
        (json!({ "IdempotencyToken": "x".repeat(33) }), "ValidationException"),
        (json!({ "KeyAlgorithm": "DSA" }), "ValidationException"),
        (json!({ "KeyAlgorithm": "RSA_1024" }), "InvalidParameterException"),
        (json!({ "ValidationMethod": "FAX" }), "ValidationException"),
        (json!({ "ManagedBy": "CLOUDFRONT" }), "InvalidParameterException"),
        (json!({ "Options": { "Export": "PERHAPS" } }), "ValidationException"),
        (json!({ "Options": { "Exports": "ENABLED" } }), "SerializationException"),
        (json!({ "Tags": [{ "Key": "aws:x" }] }), "InvalidTagException"),
        (json!({ "Tags": [{ "Key": "x" }, { "Key": "x" }] }), "InvalidTagException"),
        (
            json!({ "DomainValidationOptions": [{ "DomainName": "b.example.com", "ValidationDomain": "example.com" }] }),
            "InvalidDomainValidationOptionsException",
        ),
        (
            json!({ "DomainValidationOptions": [{ "DomainName": "a.example.com", "ValidationDomain": "ample.com" }] }),
            "InvalidDomainValidationOptionsException",
        ),
    ] {
        let message = refused(&fixture, "RequestCertificate", &with(&body, more), error);
        assert!(message.len() < 1200, "{message}");
    }
    // Members about domain validation have no effect.
    let arn = requested(
        &fixture,
        &authority,
        "a.example.com",
        json!({
            "ValidationMethod": "DNS",
            "DomainValidationOptions": [{ "DomainName": "A.example.com", "ValidationDomain": "example.com" }],
        }),
    );
    assert_eq!(described(&fixture, &arn)["Status"], "ISSUED");
}

#[test]
fn a_ca_that_cannot_issue_gives_awss_reason() {
    let fixture = Fixture::new();
    let body = |authority: &str| json!({ "DomainName": "a.example.com", "CertificateAuthorityArn": authority, "KeyAlgorithm": "EC_prime256v1" });
    let pending = pca(
        &fixture,
        "CreateCertificateAuthority",
        &json!({
            "CertificateAuthorityConfiguration": {
                "KeyAlgorithm": ECDSA.0, "SigningAlgorithm": ECDSA.1, "Subject": { "CommonName": "Root" },
            },
            "CertificateAuthorityType": "ROOT",
        }),
    );
    let pending = text(&pending.unwrap()["CertificateAuthorityArn"]).to_owned();
    let state = |authority: &str| {
        refused(&fixture, "RequestCertificate", &body(authority), "InvalidParameterException")
    };
    assert!(state(&pending).starts_with("PCA_INVALID_STATE: "));
    let authority = root_ca(&fixture, ECDSA, 10, json!({}));
    let switch = |status: &str| {
        let body = json!({ "CertificateAuthorityArn": authority, "Status": status });
        pca(&fixture, "UpdateCertificateAuthority", &body).unwrap()
    };
    switch("DISABLED");
    assert!(state(&authority).starts_with("PCA_INVALID_STATE: "));
    switch("ACTIVE");
    fixture.advance(11 * DAY);
    assert!(state(&authority).starts_with("PCA_INVALID_STATE: "));
    let (prefix, _) = authority.rsplit_once('/').unwrap();
    let missing = format!("{prefix}/00000000-0000-4000-8000-000000000000");
    refused(&fixture, "RequestCertificate", &body(&missing), "InvalidArnException");
}

#[test]
fn exporting_is_refused_where_it_must_be() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    let arn = requested(&fixture, &authority, "a.example.com", json!({}));
    for passphrase in
        [&b"abc"[..], &[b'a'; 129], b"", b"abc#", b"abc$", b"ab%cd", "geheimö".as_bytes()]
    {
        let body = json!({ "CertificateArn": arn, "Passphrase": b64(passphrase) });
        refused(&fixture, "ExportCertificate", &body, "ValidationException");
    }
    assert_eq!(found_in_list(&fixture, &arn)["Exported"], false);
    for passphrase in [&b"abcd"[..], &[b'a'; 128], b" !\"&'()*+,-./:;<=>?@[]^_`{|}~"] {
        let body = json!({ "CertificateArn": arn, "Passphrase": b64(passphrase) });
        acm(&fixture, "ExportCertificate", &body).unwrap();
    }
    assert_eq!(found_in_list(&fixture, &arn)["Exported"], true);
    let closed = json!({ "Options": { "Export": "DISABLED" } });
    let closed = requested(&fixture, &authority, "a.example.com", closed);
    assert_eq!(described(&fixture, &closed)["Options"]["Export"], "DISABLED");
    let body = json!({ "CertificateArn": closed, "Passphrase": b64(PASSPHRASE) });
    refused(&fixture, "ExportCertificate", &body, "ValidationException");
    // The audit trail has neither the passphrase nor any key.
    let trail = format!("{:?}", fixture.events());
    assert!(!trail.contains(&b64(PASSPHRASE)) && !trail.contains("PRIVATE KEY"));
    assert!(trail.contains("ExportCertificate"));
}

fn found_in_list(fixture: &Fixture, arn: &str) -> Value {
    let body = json!({ "Includes": { "keyTypes": ["EC_prime256v1", "RSA_2048", "ML_DSA_65"] } });
    let found = acm(fixture, "ListCertificates", &body).unwrap();
    let list = found["CertificateSummaryList"].as_array().unwrap().clone();
    list.into_iter().find(|summary| summary["CertificateArn"] == arn).unwrap()
}

#[test]
fn a_revoked_certificate_is_revoked_at_its_ca() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    let reasons = [
        ("UNSPECIFIED", "UNSPECIFIED"),
        ("KEY_COMPROMISE", "KEY_COMPROMISE"),
        ("CA_COMPROMISE", "CERTIFICATE_AUTHORITY_COMPROMISE"),
        ("AFFILIATION_CHANGED", "AFFILIATION_CHANGED"),
        ("SUPERCEDED", "SUPERSEDED"),
        ("SUPERSEDED", "SUPERSEDED"),
        ("CESSATION_OF_OPERATION", "CESSATION_OF_OPERATION"),
        ("PRIVILEGE_WITHDRAWN", "PRIVILEGE_WITHDRAWN"),
        ("A_A_COMPROMISE", "A_A_COMPROMISE"),
    ];
    for (reason, at_ca) in reasons {
        let arn = requested(&fixture, &authority, "a.example.com", json!({}));
        for wrong in ["CERTIFICATE_HOLD", "REMOVE_FROM_CRL", "WHY"] {
            let body = json!({ "CertificateArn": arn, "RevocationReason": wrong });
            refused(&fixture, "RevokeCertificate", &body, "ValidationException");
        }
        fixture.advance(10);
        let body = json!({ "CertificateArn": arn, "RevocationReason": reason });
        let answer = acm(&fixture, "RevokeCertificate", &body).unwrap();
        assert_eq!(answer["CertificateArn"], arn);
        let found = described(&fixture, &arn);
        assert_eq!(found["Status"], "REVOKED");
        assert_eq!(found["RevocationReason"], reason);
        assert_eq!(found["RevokedAt"], fixture.now.get());
        assert_eq!(found["RenewalEligibility"], "INELIGIBLE");
        let serial = text(&found["Serial"]).replace(':', "");
        let id = authority.rsplit('/').next().unwrap();
        let record_key = format!("ca/revoked/{ACCOUNT}/eu-west-1/{id}/{serial}");
        let stored = fixture.record(&record_key);
        assert_eq!(stored["reason"], at_ca);
        refused(&fixture, "RevokeCertificate", &body, "ConflictException");
        refused(&fixture, "RenewCertificate", &of(&arn), "ValidationException");
    }
}

#[test]
fn what_is_deleted_is_gone_with_its_key() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    let arn = requested(&fixture, &authority, "a.example.com", json!({}));
    assert_eq!(fixture.store.scan("acm/", "", 100).unwrap().len(), 5);
    acm(&fixture, "DeleteCertificate", &of(&arn)).unwrap();
    assert!(fixture.store.scan("acm/", "", 100).unwrap().is_empty());
    for operation in
        ["DescribeCertificate", "GetCertificate", "DeleteCertificate", "RenewCertificate"]
    {
        let message = refused(&fixture, operation, &of(&arn), "ResourceNotFoundException");
        assert_eq!(message, format!("Could not find certificate {arn}."));
    }
}

#[test]
fn every_operation_on_a_certificate_refuses_what_is_none() {
    let fixture = Fixture::new();
    let missing =
        format!("arn:aws:acm:eu-west-1:{ACCOUNT}:certificate/00000000-0000-0000-0000-000000000000");
    for (operation, more) in [
        ("AddTagsToCertificate", json!({ "Tags": [{ "Key": "a" }] })),
        ("DeleteCertificate", json!({})),
        ("DescribeCertificate", json!({})),
        ("ExportCertificate", json!({ "Passphrase": b64(PASSPHRASE) })),
        ("GetCertificate", json!({})),
        ("ImportCertificate", json!({ "Certificate": b64(b"x"), "PrivateKey": b64(b"x") })),
        ("ListCertificateDomainValidations", json!({})),
        ("ListTagsForCertificate", json!({})),
        ("RemoveTagsFromCertificate", json!({ "Tags": [{ "Key": "a" }] })),
        ("RenewCertificate", json!({})),
        (
            "ResendValidationEmail",
            json!({ "Domain": "a.example.com", "ValidationDomain": "example.com" }),
        ),
        ("RevokeCertificate", json!({ "RevocationReason": "UNSPECIFIED" })),
        ("UpdateCertificateOptions", json!({ "Options": {} })),
    ] {
        for (arn, error) in [
            (missing.as_str(), "ResourceNotFoundException"),
            (&missing.replace("eu-west-1", "eu-west-2"), "ResourceNotFoundException"),
            (&missing.replace(ACCOUNT, "210987654321"), "ResourceNotFoundException"),
            (&missing.replace("-0000-", "+0000+"), "InvalidArnException"),
            (&missing.replace(":acm:", ":kms:"), "ValidationException"),
            ("arn:aws:acm", "ValidationException"),
            (&format!("{missing}{}", "0".repeat(2048)), "ValidationException"),
        ] {
            let body = with(&more, of(arn));
            // One operation has no InvalidArnException.
            let error = match operation {
                "ListCertificateDomainValidations" if error == "InvalidArnException" => {
                    "InvalidArgsException"
                }
                _ => error,
            };
            refused(&fixture, operation, &body, error);
        }
        refused(&fixture, operation, &with(&more, json!({})), "ValidationException");
        refused(
            &fixture,
            operation,
            &with(&more, json!({ "CertificateArn": 1 })),
            "SerializationException",
        );
        let unknown = with(&more, json!({ "CertificateArn": missing, "Unknown": 1 }));
        refused(&fixture, operation, &unknown, "SerializationException");
    }
}

#[test]
fn private_certificates_have_few_options() {
    let fixture = Fixture::new();
    let arn = requested(&fixture, &ca(&fixture), "a.example.com", json!({}));
    let found = acm(&fixture, "ListCertificateDomainValidations", &of(&arn)).unwrap();
    assert_eq!(found, json!({ "DomainValidationSummaryList": [] }));
    let wrong = with(&of(&arn), json!({ "NextToken": "?" }));
    refused(&fixture, "ListCertificateDomainValidations", &wrong, "InvalidArgsException");
    let body = json!({ "CertificateArn": arn, "Domain": "a.example.com", "ValidationDomain": "example.com" });
    refused(&fixture, "ResendValidationEmail", &body, "InvalidStateException");
    refused(
        &fixture,
        "ResendValidationEmail",
        &with(&body, json!({ "Domain": "?" })),
        "ValidationException",
    );
    let set = |options: Value| json!({ "CertificateArn": arn, "Options": options });
    let off =
        set(json!({ "CertificateTransparencyLoggingPreference": "DISABLED", "Export": "ENABLED" }));
    acm(&fixture, "UpdateCertificateOptions", &off).unwrap();
    let found = described(&fixture, &arn);
    assert_eq!(found["Options"]["CertificateTransparencyLoggingPreference"], "DISABLED");
    let closed = set(json!({ "Export": "DISABLED" }));
    refused(&fixture, "UpdateCertificateOptions", &closed, "InvalidStateException");
    let method = set(json!({ "ValidationMethod": "DNS" }));
    refused(&fixture, "UpdateCertificateOptions", &method, "InvalidStateException");
    let wrong = set(json!({ "ValidationMethod": "FAX" }));
    refused(&fixture, "UpdateCertificateOptions", &wrong, "ValidationException");
}

#[test]
fn tags_come_and_go() {
    let fixture = Fixture::new();
    let tags = json!({ "Tags": [{ "Key": "a", "Value": "1" }, { "Key": "b" }] });
    let arn = requested(&fixture, &ca(&fixture), "a.example.com", tags);
    let listed = |operation: &str, member: &str| {
        acm(&fixture, operation, &json!({ member: arn })).unwrap()["Tags"].clone()
    };
    let both = |expected: &Value| {
        assert_eq!(&listed("ListTagsForCertificate", "CertificateArn"), expected);
        assert_eq!(&listed("ListTagsForResource", "ResourceArn"), expected);
    };
    both(&json!([{ "Key": "a", "Value": "1" }, { "Key": "b", "Value": "" }]));
    let body = json!({ "CertificateArn": arn, "Tags": [{ "Key": "c", "Value": "3" }, { "Key": "a", "Value": "2" }] });
    acm(&fixture, "AddTagsToCertificate", &body).unwrap();
    let body = json!({ "ResourceArn": arn, "Tags": [{ "Key": "d", "Value": "4" }] });
    acm(&fixture, "TagResource", &body).unwrap();
    // A tag is removed if the value matches, or if none is given.
    let body = json!({ "CertificateArn": arn, "Tags": [{ "Key": "c", "Value": "other" }, { "Key": "b" }] });
    acm(&fixture, "RemoveTagsFromCertificate", &body).unwrap();
    both(
        &json!([{ "Key": "a", "Value": "2" }, { "Key": "c", "Value": "3" }, { "Key": "d", "Value": "4" }]),
    );
    acm(&fixture, "UntagResource", &json!({ "ResourceArn": arn, "TagKeys": ["a", "nothing"] }))
        .unwrap();
    both(&json!([{ "Key": "c", "Value": "3" }, { "Key": "d", "Value": "4" }]));
    let many: Vec<_> = (0..49).map(|number| json!({ "Key": format!("k{number}") })).collect();
    let body = json!({ "CertificateArn": arn, "Tags": many });
    refused(&fixture, "AddTagsToCertificate", &body, "TooManyTagsException");
    let body = json!({ "ResourceArn": arn, "Tags": many });
    refused(&fixture, "TagResource", &body, "ServiceQuotaExceededException");
    for (operation, member, tags, error) in [
        ("AddTagsToCertificate", "CertificateArn", json!([]), "ValidationException"),
        (
            "AddTagsToCertificate",
            "CertificateArn",
            json!([{ "Key": "AWS:x" }]),
            "InvalidTagException",
        ),
        (
            "RemoveTagsFromCertificate",
            "CertificateArn",
            json!([{ "Key": "" }]),
            "ValidationException",
        ),
        ("TagResource", "ResourceArn", json!([{ "Key": "aws:x" }]), "ValidationException"),
    ] {
        refused(&fixture, operation, &json!({ member: arn, "Tags": tags }), error);
    }
    for (wrong, error) in [
        (arn.replace("certificate/", "nothing/"), "ValidationException"),
        (arn.replace(":acm:", ":kms:"), "ValidationException"),
        (format!("arn:aws:acm:eu-west-1:{ACCOUNT}:certificate/x"), "ValidationException"),
        (arn.replace("eu-west-1", "eu-west-2"), "ResourceNotFoundException"),
    ] {
        refused(&fixture, "ListTagsForResource", &json!({ "ResourceArn": wrong }), error);
        let untag = json!({ "ResourceArn": wrong, "TagKeys": ["a"] });
        refused(&fixture, "UntagResource", &untag, error);
        let tag = json!({ "ResourceArn": wrong, "Tags": [{ "Key": "a" }] });
        refused(&fixture, "TagResource", &tag, error);
    }
}

#[test]
fn account_settings_are_put_once_for_each_token() {
    let fixture = Fixture::new();
    let days = || {
        let found = acm(&fixture, "GetAccountConfiguration", &json!({})).unwrap();
        found["ExpiryEvents"]["DaysBeforeExpiry"].as_i64().unwrap()
    };
    assert_eq!(days(), 45);
    let put = |days: i64, token: &str| {
        let body =
            json!({ "ExpiryEvents": { "DaysBeforeExpiry": days }, "IdempotencyToken": token });
        acm(&fixture, "PutAccountConfiguration", &body)
    };
    put(10, "one").unwrap();
    put(20, "two").unwrap();
    // The same request as before changes nothing; it took effect then.
    put(10, "one").unwrap();
    assert_eq!(days(), 20);
    assert_eq!(code(put(11, "one")), "ConflictException");
    assert_eq!(code(put(46, "three")), "ValidationException");
    assert_eq!(code(put(0, "three")), "ValidationException");
    assert_eq!(code(put(1, "no token")), "ValidationException");
    assert_eq!(days(), 20);
}

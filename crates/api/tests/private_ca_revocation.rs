//! Private CA: values of RevocationConfiguration, revocation, audit reports, restoration, pairs of certificates.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;

use common::authorities::*;
use common::{Fixture, OTHER_ACCOUNT, b64, code, policy, text, with};
use outlast_domain::ca::{PARTNER_TAG, report};
use outlast_domain::settings::Settings;
use outlast_pki::certificate::Certificate;
use outlast_pki::pem;
use outlast_store::Store;
use serde_json::{Value, json};

fn listening() -> Fixture {
    let fixture = Fixture::new();
    fixture.service.set_settings(Settings {
        revocation_url: Some("http://pki.example:8080".into()),
        service_url: "https://pki.example:8443".into(),
        service_url_is_given: true,
        ..Settings::default()
    });
    fixture
}

fn new_root(revocation: Value) -> Value {
    json!({
        "CertificateAuthorityConfiguration": {
            "KeyAlgorithm": EC.0, "SigningAlgorithm": EC.1, "Subject": { "CommonName": "x" },
        },
        "CertificateAuthorityType": "ROOT", "RevocationConfiguration": revocation,
    })
}

fn crl(more: Value) -> Value {
    json!({ "CrlConfiguration": with(&json!({ "Enabled": true }), more) })
}

fn ocsp(more: Value) -> Value {
    json!({ "OcspConfiguration": with(&json!({ "Enabled": true }), more) })
}

#[test]
fn revocation_configurations_are_kept_and_shown() {
    let fixture = listening();
    let all = json!({
        "CrlConfiguration": {
            "Enabled": true, "ExpirationInDays": 3, "CustomCname": "crl.example.com",
            "S3BucketName": "my-bucket", "S3ObjectAcl": "BUCKET_OWNER_FULL_CONTROL",
            "CrlDistributionPointExtensionConfiguration": { "OmitExtension": false },
            "CrlType": "PARTITIONED", "CustomPath": "a/b",
        },
        "OcspConfiguration": { "Enabled": true, "OcspCustomCname": "ocsp.example.com" },
    });
    let made = fixture.pca("CreateCertificateAuthority", new_root(all.clone())).unwrap();
    let shown =
        &describe(&fixture, text(&made["CertificateAuthorityArn"]))["RevocationConfiguration"];
    assert_eq!(*shown, all);
    // Members that are left out get AWS's defaults; disabled parts are shown as disabled.
    let made = fixture.pca("CreateCertificateAuthority", new_root(crl(json!({})))).unwrap();
    let shown =
        &describe(&fixture, text(&made["CertificateAuthorityArn"]))["RevocationConfiguration"];
    assert_eq!(
        *shown,
        json!({
            "CrlConfiguration": {
                "Enabled": true, "ExpirationInDays": 7, "CrlType": "COMPLETE",
                "CrlDistributionPointExtensionConfiguration": { "OmitExtension": false },
            },
            "OcspConfiguration": { "Enabled": false },
        })
    );
    // An update changes the parts that it names.
    let arn = root(&fixture, EC);
    let update = |configuration: Value| {
        let body =
            json!({ "CertificateAuthorityArn": arn, "RevocationConfiguration": configuration });
        fixture.pca("UpdateCertificateAuthority", body).unwrap();
        describe(&fixture, &arn)["RevocationConfiguration"].clone()
    };
    assert_eq!(update(ocsp(json!({})))["OcspConfiguration"]["Enabled"], true);
    let both = update(crl(json!({ "CrlType": "PARTITIONED" })));
    assert_eq!(both["OcspConfiguration"]["Enabled"], true);
    assert_eq!(both["CrlConfiguration"]["CrlType"], "PARTITIONED");
    let off = update(json!({ "CrlConfiguration": { "Enabled": false } }));
    assert_eq!(off["CrlConfiguration"], json!({ "Enabled": false }));
    assert_eq!(off["OcspConfiguration"]["Enabled"], true);
}

#[test]
fn invalid_revocation_configuration_changes_nothing() {
    let fixture = listening();
    let arn = root(&fixture, EC);
    let before = fixture.store_without_uses();
    for (configuration, expected) in [
        (
            json!({ "CrlConfiguration": { "Enabled": false, "ExpirationInDays": 7 } }),
            "InvalidArgsException",
        ),
        (
            json!({ "CrlConfiguration": { "Enabled": false, "CustomCname": "x" } }),
            "InvalidArgsException",
        ),
        (
            json!({ "OcspConfiguration": { "Enabled": false, "OcspCustomCname": "x" } }),
            "InvalidArgsException",
        ),
        (json!({ "CrlConfiguration": {} }), "ValidationException"),
        (json!({ "Crl": {} }), "SerializationException"),
        (crl(json!({ "Unknown": 1 })), "SerializationException"),
        (crl(json!({ "ExpirationInDays": 0 })), "ValidationException"),
        (crl(json!({ "ExpirationInDays": 5001 })), "ValidationException"),
        (crl(json!({ "CustomCname": "http://crl.example.com" })), "InvalidArgsException"),
        (crl(json!({ "CustomCname": "crl example" })), "ValidationException"),
        (crl(json!({ "CustomCname": "crl.example/../x" })), "InvalidArgsException"),
        (crl(json!({ "CustomCname": "crl.example/./x" })), "InvalidArgsException"),
        (crl(json!({ "CustomCname": "crl.example/.." })), "InvalidArgsException"),
        (crl(json!({ "CustomCname": "crl.example/%zz" })), "InvalidArgsException"),
        (crl(json!({ "CustomCname": "?crl.example" })), "InvalidArgsException"),
        (ocsp(json!({ "OcspCustomCname": "a.example/../b" })), "InvalidArgsException"),
        (crl(json!({ "CustomCname": "" })), "InvalidArgsException"),
        (crl(json!({ "CustomCname": "x".repeat(254) })), "ValidationException"),
        (crl(json!({ "S3BucketName": "Bad_Bucket" })), "InvalidArgsException"),
        (crl(json!({ "S3BucketName": "192.0.2.1" })), "InvalidArgsException"),
        (crl(json!({ "S3BucketName": "../x" })), "InvalidArgsException"),
        (crl(json!({ "S3ObjectAcl": "PRIVATE" })), "ValidationException"),
        (crl(json!({ "CrlType": "DELTA" })), "ValidationException"),
        (crl(json!({ "CustomPath": "a//b" })), "ValidationException"),
        (crl(json!({ "CustomPath": "../b" })), "InvalidArgsException"),
        (
            crl(json!({ "CustomCname": "crl.example.com",
                "CrlDistributionPointExtensionConfiguration": { "OmitExtension": true } })),
            "InvalidArgsException",
        ),
        (ocsp(json!({ "OcspCustomCname": "https://x" })), "InvalidArgsException"),
    ] {
        let made = fixture.pca("CreateCertificateAuthority", new_root(configuration.clone()));
        assert_eq!(code(made), expected, "{configuration}");
        let body =
            json!({ "CertificateAuthorityArn": arn, "RevocationConfiguration": configuration });
        assert_eq!(code(fixture.pca("UpdateCertificateAuthority", body)), expected);
    }
    assert_eq!(fixture.store_without_uses(), before);
    // Without a listener there is no address for OCSP, unless a custom name gives one.
    let deaf = Fixture::new();
    for configuration in [crl(json!({})), ocsp(json!({}))] {
        let refused = deaf.pca("CreateCertificateAuthority", new_root(configuration)).unwrap_err();
        assert_eq!(refused.code, "InvalidArgsException");
        assert!(refused.message.contains("--revocation-listen"), "{}", refused.message);
    }
    for named in [
        crl(json!({ "CustomCname": "a.example" })),
        ocsp(json!({ "OcspCustomCname": "a.example" })),
    ] {
        deaf.pca("CreateCertificateAuthority", new_root(named)).unwrap();
    }
}

fn leaf(fixture: &Fixture, authority: &str) -> (String, Certificate) {
    let (_, request) = leaf_request("ECC_NIST_P256", "leaf");
    let body = leaf_body(authority, &request, EC.1, "EndEntityCertificate");
    let arn = text(&fixture.pca("IssueCertificate", body).unwrap()["CertificateArn"]).to_owned();
    let certificate = get(fixture, authority, &arn).0;
    (arn, certificate)
}

fn extension(certificate: &Certificate, id: &str) -> Option<String> {
    let found = certificate.extensions().iter().find(|found| found.extn_id.to_string() == id)?;
    Some(String::from_utf8_lossy(found.extn_value.as_bytes()).into_owned())
}

#[test]
fn certificates_say_where_they_are_revoked() {
    let fixture = listening();
    let arn = root(&fixture, EC);
    let update = |configuration: Value| {
        let body =
            json!({ "CertificateAuthorityArn": arn, "RevocationConfiguration": configuration });
        fixture.pca("UpdateCertificateAuthority", body).unwrap();
        let (_, certificate) = leaf(&fixture, &arn);
        (extension(&certificate, "2.5.29.31"), extension(&certificate, "1.3.6.1.5.5.7.1.1"))
    };
    let id = arn.rsplit('/').next().unwrap();
    let (_, plain) = leaf(&fixture, &arn);
    assert!(extension(&plain, "2.5.29.31").is_none());
    let (point, access) = update(crl(json!({})));
    assert!(point.unwrap().contains(&format!("http://pki.example:8080/crl/{id}.crl")));
    assert!(access.is_none());
    let (point, access) = update(ocsp(json!({})));
    assert!(point.is_some());
    assert!(access.unwrap().contains("http://pki.example:8080/ocsp"));
    let (point, _) = update(crl(json!({ "CustomCname": "crl.example.com", "CustomPath": "x" })));
    assert!(point.unwrap().contains("http://crl.example.com/x/"));
    let omit = json!({ "CrlDistributionPointExtensionConfiguration": { "OmitExtension": true } });
    assert!(update(crl(omit)).0.is_none());
}

#[test]
fn certificates_are_revoked_once() {
    let fixture = listening();
    let arn = root(&fixture, EC);
    let other = create(&fixture, "ROOT", "Pending", EC);
    let reasons = [
        "UNSPECIFIED",
        "KEY_COMPROMISE",
        "CERTIFICATE_AUTHORITY_COMPROMISE",
        "AFFILIATION_CHANGED",
        "SUPERSEDED",
        "CESSATION_OF_OPERATION",
        "PRIVILEGE_WITHDRAWN",
        "A_A_COMPROMISE",
    ];
    let revoke = |authority: &str, serial: &str, reason: &str| {
        fixture.pca(
            "RevokeCertificate",
            json!({
                "CertificateAuthorityArn": authority, "CertificateSerial": serial,
                "RevocationReason": reason,
            }),
        )
    };
    for (number, reason) in reasons.iter().enumerate() {
        let (leaf_arn, _) = leaf(&fixture, &arn);
        let serial = leaf_arn.rsplit('/').next().unwrap().to_owned();
        // In OpenSSL's notation, and as in the ARN.
        let colons: Vec<_> =
            serial.as_bytes().chunks(2).map(|c| std::str::from_utf8(c).unwrap()).collect();
        let given = if number % 2 == 0 { colons.join(":").to_uppercase() } else { serial.clone() };
        revoke(&arn, &given, reason).unwrap();
        let again = revoke(&arn, &serial, reason);
        assert_eq!(code(again), "RequestAlreadyProcessedException");
    }
    let (_, certificate) = leaf(&fixture, &arn);
    let serial = hex::encode(certificate.serial());
    let own = {
        let found = fixture
            .pca("GetCertificateAuthorityCertificate", json!({ "CertificateAuthorityArn": arn }));
        let found = found.unwrap();
        hex::encode(
            Certificate::parse_one(text(&found["Certificate"]).as_bytes()).unwrap().serial(),
        )
    };
    let before = fixture.store_without_uses();
    for (authority, serial, reason, expected) in [
        (arn.as_str(), serial.as_str(), "BORED", "ValidationException"),
        (arn.as_str(), "not hexadecimal", "UNSPECIFIED", "InvalidRequestException"),
        (arn.as_str(), "", "UNSPECIFIED", "InvalidRequestException"),
        (arn.as_str(), "00:11", "UNSPECIFIED", "ResourceNotFoundException"),
        (arn.as_str(), own.as_str(), "UNSPECIFIED", "InvalidRequestException"),
        (other.as_str(), serial.as_str(), "UNSPECIFIED", "InvalidStateException"),
        (
            "arn:aws:acm-pca:eu-west-1:123456789012:certificate-authority/11111111-2222-3333-4444-555555555555",
            serial.as_str(),
            "UNSPECIFIED",
            "ResourceNotFoundException",
        ),
    ] {
        assert_eq!(code(revoke(authority, serial, reason)), expected, "{serial} {reason}");
    }
    assert_eq!(code(revoke(&arn, &"0".repeat(129), "UNSPECIFIED")), "ValidationException");
    assert_eq!(fixture.store_without_uses(), before);
    // A disabled CA can still revoke; a deleted one cannot.
    let status = json!({ "CertificateAuthorityArn": arn, "Status": "DISABLED" });
    fixture.pca("UpdateCertificateAuthority", status).unwrap();
    revoke(&arn, &serial, "UNSPECIFIED").unwrap();
    let delete = json!({ "CertificateAuthorityArn": arn });
    fixture.pca("DeleteCertificateAuthority", delete).unwrap();
    assert_eq!(code(revoke(&arn, &serial, "UNSPECIFIED")), "InvalidStateException");
}

#[test]
fn a_deleted_ca_comes_back_as_it_was_and_not_after_its_time() {
    let fixture = Fixture::new();
    let pending = create(&fixture, "ROOT", "Pending", EC);
    let active = root(&fixture, EC);
    let restore = |arn: &str| {
        fixture.pca("RestoreCertificateAuthority", json!({ "CertificateAuthorityArn": arn }))
    };
    let delete = |arn: &str| {
        let body = json!({ "CertificateAuthorityArn": arn, "PermanentDeletionTimeInDays": 7 });
        fixture.pca("DeleteCertificateAuthority", body).unwrap();
    };
    assert_eq!(code(restore(&active)), "InvalidStateException");
    let disable = json!({ "CertificateAuthorityArn": active, "Status": "DISABLED" });
    fixture.pca("UpdateCertificateAuthority", disable).unwrap();
    for (arn, before) in [(&pending, "PENDING_CERTIFICATE"), (&active, "DISABLED")] {
        delete(arn);
        let body = json!({ "CertificateAuthorityArn": arn });
        assert_eq!(code(fixture.pca("GetCertificateAuthorityCsr", body)), "InvalidStateException");
        restore(arn).unwrap();
        let found = describe(&fixture, arn);
        assert_eq!(found["Status"], before);
        assert!(found["RestorableUntil"].is_null());
    }
    let enable = json!({ "CertificateAuthorityArn": active, "Status": "ACTIVE" });
    fixture.pca("UpdateCertificateAuthority", enable).unwrap();
    leaf(&fixture, &active);
    delete(&pending);
    fixture.advance(7 * 86_400);
    let before = fixture.store_without_uses();
    assert_eq!(code(restore(&pending)), "ResourceNotFoundException", "past its window");
    assert_eq!(fixture.store_without_uses(), before);
    fixture.run_housekeeping();
    assert_eq!(code(restore(&pending)), "ResourceNotFoundException", "erased");
}

#[test]
fn audit_reports_list_every_certificate() {
    let fixture = listening();
    let arn = root(&fixture, EC);
    let (first, certificate) = leaf(&fixture, &arn);
    leaf(&fixture, &arn);
    let serial = first.rsplit('/').next().unwrap();
    fixture
        .pca(
            "RevokeCertificate",
            json!({
                "CertificateAuthorityArn": arn, "CertificateSerial": serial,
                "RevocationReason": "SUPERSEDED",
            }),
        )
        .unwrap();
    let want = |format: &str| {
        fixture.pca(
            "CreateCertificateAuthorityAuditReport",
            json!({
                "CertificateAuthorityArn": arn, "S3BucketName": "reports",
                "AuditReportResponseFormat": format,
            }),
        )
    };
    let status = |id: &Value| {
        fixture.pca(
            "DescribeCertificateAuthorityAuditReport",
            json!({
                "CertificateAuthorityArn": arn, "AuditReportId": id,
            }),
        )
    };
    let made = want("JSON").unwrap();
    let id = &made["AuditReportId"];
    let ca = arn.rsplit('/').next().unwrap();
    assert_eq!(made["S3Key"], format!("audit-report/{ca}/{}.json", text(id)));
    let found = status(id).unwrap();
    assert_eq!(
        (&found["AuditReportStatus"], &found["S3BucketName"]),
        (&json!("CREATING"), &json!("reports"))
    );
    assert_eq!(code(want("CSV")), "RequestInProgressException");
    let nothing = json!("11111111-2222-3333-4444-555555555555");
    assert_eq!(code(status(&nothing)), "ResourceNotFoundException");
    assert_eq!(code(status(&json!("short"))), "ValidationException");
    for (format, finished, expected) in [("JSON", true, "SUCCESS"), ("CSV", false, "FAILED")] {
        let waiting = fixture.directory(|work| report::pending(work, "", 10).unwrap());
        let [(record_key, pending)] = waiting.as_slice() else { panic!("{waiting:?}") };
        assert_eq!(pending.bucket, "reports");
        let bytes = fixture
            .directory(|work| report::render(work, &pending.authority, pending.format).unwrap());
        let written = String::from_utf8(bytes).unwrap();
        if format == "JSON" {
            let rows: Value = serde_json::from_str(&written).unwrap();
            // The root itself, and two leaves.
            assert_eq!(rows.as_array().unwrap().len(), 3);
            let row =
                rows.as_array().unwrap().iter().find(|row| row["certificateArn"] == first).unwrap();
            assert_eq!(row["awsAccountId"], common::ACCOUNT);
            assert_eq!(row["serial"].as_str().unwrap().replace(':', ""), serial);
            assert_eq!(row["subject"], "CN=leaf");
            assert_eq!(row["issuedAt"], "2026-11-21T00:00:00+0000");
            assert_eq!(row["notBefore"], "2026-11-20T23:00:00+0000");
            assert_eq!(row["revokedAt"], "2026-11-21T00:00:00+0000");
            assert_eq!(row["revocationReason"], "SUPERSEDED");
            assert_eq!(row["templateArn"], "arn:aws:acm-pca:::template/EndEntityCertificate/V1");
            assert!(row.get("requestedByServicePrincipal").is_none());
        } else {
            let lines: Vec<_> = written.lines().collect();
            assert_eq!(lines.len(), 4, "{written}");
            assert!(
                lines[0]
                    .starts_with("awsAccountId,requestedByServicePrincipal,certificateArn,serial,")
            );
            assert!(lines.iter().any(|line| line.contains(",SUPERSEDED,")));
        }
        fixture.directory(|work| report::finish(work, record_key, finished).unwrap());
        let id = pending.key.rsplit('/').next().unwrap().split('.').next().unwrap();
        assert_eq!(status(&json!(id)).unwrap()["AuditReportStatus"], expected);
        if format == "JSON" {
            want("CSV").unwrap();
        }
    }
    assert!(fixture.store.scan(report::PENDING_PREFIX, "", 10).unwrap().is_empty());
    assert_eq!(code(want("XML")), "ValidationException");
    let pending = create(&fixture, "ROOT", "Pending", EC);
    let body = json!({ "CertificateAuthorityArn": pending, "S3BucketName": "reports", "AuditReportResponseFormat": "CSV" });
    assert_eq!(
        code(fixture.pca("CreateCertificateAuthorityAuditReport", body)),
        "InvalidStateException"
    );
    assert_eq!(certificate.subject().to_string(), "CN=leaf");
}

fn partners(fixture: &Fixture) -> (String, String) {
    let (classical, quantum) = (root(fixture, EC), root(fixture, ML_DSA));
    for (one, other) in [(&classical, &quantum), (&quantum, &classical)] {
        let body = json!({ "CertificateAuthorityArn": one, "Tags": [{ "Key": PARTNER_TAG, "Value": other }] });
        fixture.pca("TagCertificateAuthority", body).unwrap();
    }
    (classical, quantum)
}

#[test]
fn a_pair_is_issued_and_revoked_in_one() {
    let fixture = listening();
    let (classical, quantum) = partners(&fixture);
    let (_, one) = leaf_request("ECC_NIST_P256", "service");
    let (_, two) = leaf_request("ML_DSA_65", "service");
    let body = with(
        &leaf_body(&classical, &one, EC.1, "EndEntityCertificate"),
        json!({ "PairedCsr": b64(&two), "IdempotencyToken": "t" }),
    );
    let made = fixture.pca("IssueCertificate", body.clone()).unwrap();
    assert_eq!(fixture.pca("IssueCertificate", body.clone()).unwrap(), made, "the same token");
    let (arn, paired) = (text(&made["CertificateArn"]), text(&made["PairedCertificateArn"]));
    assert!(arn.starts_with(&classical) && paired.starts_with(&quantum));
    let read = |authority: &str, arn: &str| {
        let body = json!({ "CertificateAuthorityArn": authority, "CertificateArn": arn });
        fixture.pca("GetCertificate", body).unwrap()
    };
    let parse = |text: &Value| Certificate::parse_one(common::text(text).as_bytes()).unwrap();
    let (first, second) = (read(&classical, arn), read(&quantum, paired));
    assert_eq!(
        (&first["PairedCertificate"], &first["PairedCertificateArn"]),
        (&second["Certificate"], &json!(paired))
    );
    assert_eq!(
        (&second["PairedCertificate"], &second["PairedCertificateArn"]),
        (&first["Certificate"], &json!(arn))
    );
    assert_eq!(first["PairedCertificateChain"], second["CertificateChain"]);
    let (first, second) = (parse(&first["Certificate"]), parse(&second["Certificate"]));
    assert_eq!(first.subject(), second.subject());
    assert_eq!((first.not_before(), first.not_after()), (second.not_before(), second.not_after()));
    let events = fixture.events().len();
    let revoke = |authority: &str, arn: &str| {
        fixture.pca(
            "RevokeCertificate",
            json!({
                "CertificateAuthorityArn": authority, "RevocationReason": "SUPERSEDED",
                "CertificateSerial": arn.rsplit('/').next().unwrap(),
            }),
        )
    };
    revoke(&quantum, paired).unwrap();
    assert_eq!(fixture.store.scan("ca/revoked/", "", 10).unwrap().len(), 2);
    assert_eq!(fixture.events().len(), events + 1, "in one transaction");
    assert_eq!(code(revoke(&classical, arn)), "RequestAlreadyProcessedException");
}

#[test]
fn a_pair_that_cannot_be_is_refused_whole() {
    let fixture = listening();
    let (classical, quantum) = partners(&fixture);
    let lonely = {
        let arn = create(&fixture, "ROOT", "Lonely", EC);
        let request = ca_request(&fixture, &arn);
        let what = Issue {
            authority: &arn,
            request: request.as_bytes(),
            algorithm: EC.1,
            template: "RootCACertificate",
            validity: years(1),
        };
        let (certificate, _) = get(&fixture, &arn, &issue(&fixture, &what).unwrap());
        import(&fixture, &arn, pem::certificate(certificate.der()).as_bytes(), None).unwrap();
        arn
    };
    let (_, one) = leaf_request("ECC_NIST_P256", "service");
    let (_, two) = leaf_request("ML_DSA_65", "service");
    let (_, elsewhere) = leaf_request("ML_DSA_65", "elsewhere");
    let names = |host: &str| {
        let name = outlast_pki::general_name::GeneralName::DnsName(host.into());
        let names = outlast_pki::extensions::subject_alternative_names(&[name], false).unwrap();
        request_with("ML_DSA_65", "service", vec![names]).1
    };
    let mut forged = two.clone();
    *forged.last_mut().unwrap() ^= 1;
    let ask = |authority: &str, one: &[u8], two: &[u8], template: &str| {
        let body =
            with(&leaf_body(authority, one, EC.1, template), json!({ "PairedCsr": b64(two) }));
        fixture.pca("IssueCertificate", body)
    };
    let leaf = "EndEntityCertificate";
    let before = fixture.store_without_uses();
    for (what, outcome, expected) in [
        ("other names", ask(&classical, &one, &elsewhere, leaf), "MalformedCSRException"),
        ("more names", ask(&classical, &one, &names("a.example"), leaf), "MalformedCSRException"),
        ("a forged one", ask(&classical, &one, &forged, leaf), "MalformedCSRException"),
        ("both classical", ask(&classical, &one, &one, leaf), "MalformedCSRException"),
        ("both post-quantum", ask(&classical, &two, &two, leaf), "MalformedCSRException"),
        ("the wrong way round", ask(&classical, &two, &one, leaf), "MalformedCSRException"),
        ("no partner", ask(&lonely, &one, &two, leaf), "InvalidArgsException"),
        ("nothing", ask(&classical, &one, &[], leaf), "ValidationException"),
        (
            "CAs",
            ask(&classical, &one, &two, "SubordinateCACertificate_PathLen0"),
            "InvalidArgsException",
        ),
    ] {
        assert_eq!(code(outcome), expected, "{what}");
    }
    assert_eq!(fixture.store_without_uses(), before);
    // Permission for one of the two does not suffice, neither to issue nor to revoke.
    let only =
        |arn: &str| policy(json!([{ "Effect": "Allow", "Action": "acm-pca:*", "Resource": arn }]));
    let half = fixture.user(common::ACCOUNT, "half", &[only(&classical)]);
    let both = with(&leaf_body(&classical, &one, EC.1, leaf), json!({ "PairedCsr": b64(&two) }));
    assert_eq!(
        code(fixture.pca_as(&half, "IssueCertificate", both.clone())),
        "AccessDeniedException"
    );
    let made = fixture.pca("IssueCertificate", both.clone()).unwrap();
    let arn = text(&made["CertificateArn"]);
    let revoke = json!({ "CertificateAuthorityArn": classical, "RevocationReason": "SUPERSEDED",
        "CertificateSerial": arn.rsplit('/').next().unwrap() });
    assert_eq!(code(fixture.pca_as(&half, "RevokeCertificate", revoke)), "AccessDeniedException");
    let read = json!({ "CertificateAuthorityArn": classical, "CertificateArn": arn });
    let found = fixture.pca_as(&half, "GetCertificate", read).unwrap();
    assert!(found.get("PairedCertificate").is_none());
    // A partner that is not active does not issue either.
    let disable = json!({ "CertificateAuthorityArn": quantum, "Status": "DISABLED" });
    fixture.pca("UpdateCertificateAuthority", disable).unwrap();
    let before = fixture.store_without_uses();
    assert_eq!(code(fixture.pca("IssueCertificate", both)), "InvalidStateException");
    assert_eq!(fixture.store_without_uses(), before);
    // A partner of another account, or of the same kind, is refused.
    for partner in [lonely.clone(), quantum.replace(common::ACCOUNT, OTHER_ACCOUNT)] {
        let tag = json!({ "CertificateAuthorityArn": classical, "Tags": [{ "Key": PARTNER_TAG, "Value": partner }] });
        fixture.pca("TagCertificateAuthority", tag).unwrap();
        let refused = code(ask(&classical, &one, &two, leaf));
        assert!(
            matches!(refused.as_str(), "InvalidArgsException" | "ResourceNotFoundException"),
            "{refused}"
        );
    }
}

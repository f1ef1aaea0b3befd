//! The check of the whole store: records of authorities and certificates match, or the report names them.
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
use common::{Fixture, OTHER_ACCOUNT, b64, policy, text, with};
use outlast_domain::ca::PARTNER_TAG;
use outlast_domain::check::{self, Problem};
use outlast_store::{Store, Transaction};
use serde_json::json;

fn problems(fixture: &Fixture) -> Vec<Problem> {
    let report = check::check(&*fixture.store, fixture.service.root(), &mut |_| {}).unwrap();
    // The test's own records leave no audit keys; all records of authorities are below ca/.
    report.problems.into_iter().filter(|problem| problem.record_key.starts_with("ca/")).collect()
}

fn write(fixture: &Fixture, record_key: &str, value: Option<Vec<u8>>) {
    let writes = vec![(record_key.to_owned(), value)];
    let transaction = Transaction { writes, ..Transaction::default() };
    fixture.store.commit_and_wait(transaction).unwrap();
}

#[test]
fn every_record_of_private_ca_is_looked_at() {
    let fixture = Fixture::new();
    let (classical, quantum) = (root(&fixture, EC), root(&fixture, ML_DSA));
    let tag = json!({ "CertificateAuthorityArn": classical, "Tags": [{ "Key": PARTNER_TAG, "Value": quantum }] });
    fixture.pca("TagCertificateAuthority", tag).unwrap();
    let (_, one) = leaf_request("ECC_NIST_P256", "leaf");
    let (_, two) = leaf_request("ML_DSA_65", "leaf");
    let pair = json!({ "PairedCsr": b64(&two), "IdempotencyToken": "t" });
    let body = with(&leaf_body(&classical, &one, EC.1, "EndEntityCertificate"), pair);
    let made = fixture.pca("IssueCertificate", body).unwrap();
    let serial = text(&made["CertificateArn"]).rsplit('/').next().unwrap();
    let of = json!({ "CertificateAuthorityArn": classical });
    let revoke = json!({ "CertificateSerial": serial, "RevocationReason": "SUPERSEDED" });
    fixture.pca("RevokeCertificate", with(&of, revoke)).unwrap();
    let permission = json!({ "Principal": "acm.amazonaws.com", "Actions": ["IssueCertificate"] });
    fixture.pca("CreatePermission", with(&of, permission)).unwrap();
    let share = policy(json!([{ "Effect": "Allow", "Principal": { "AWS": OTHER_ACCOUNT },
        "Action": "acm-pca:GetCertificate", "Resource": classical }]));
    let share = json!({ "ResourceArn": classical, "Policy": share.to_string() });
    fixture.pca("PutPolicy", share).unwrap();
    let report = json!({ "S3BucketName": "reports", "AuditReportResponseFormat": "CSV" });
    fixture.pca("CreateCertificateAuthorityAuditReport", with(&of, report)).unwrap();
    assert_eq!(problems(&fixture), []);
    let records = fixture.store.scan("ca/", "", 1000).unwrap();
    let kinds = |prefix: &str| {
        records.iter().filter(|(record_key, _)| record_key.starts_with(prefix)).count()
    };
    // Both roots' own certificates, and the pair.
    assert_eq!(kinds("ca/certificate/"), 4);
    for (gone, place_of, what) in [
        ("ca/authority/", "ca/permission/", "its CA is missing"),
        ("ca/authority/", "ca/policy/", "its CA is missing"),
        ("ca/chain/", "ca/chain/", "the chain of issued certificates is missing"),
        ("ca/certificate/", "ca/revoked/", "the revoked certificate is missing"),
        ("ca/certificate/", "ca/certificate/", "the certificate that it is paired with is missing"),
        (
            "ca/certificate/",
            "ca/token/",
            "the certificate that was issued with this token is missing",
        ),
        ("ca/policy/", "ca/shared/", "no policy shares this CA with the account"),
        (
            "ca/shared/",
            "ca/shared/",
            "a policy shares a CA with this account, but this record is missing",
        ),
        ("ca/report/", "ca/report-pending/", "the report that has to be written is missing"),
    ] {
        let taken: Vec<_> =
            records.iter().filter(|(record_key, _)| record_key.starts_with(gone)).collect();
        assert!(!taken.is_empty(), "{gone}");
        for (record_key, _) in &taken {
            write(&fixture, record_key, None);
            // Two certificates are paired: the report names each as missing from the other.
            if what.contains("paired") && !problems(&fixture).is_empty() {
                break;
            }
        }
        let found = problems(&fixture);
        let named =
            |problem: &Problem| problem.record_key.starts_with(place_of) && problem.what == what;
        assert!(found.iter().any(named), "{gone} {what}: {found:#?}");
        for (record_key, record) in &taken {
            write(&fixture, record_key, Some(record.value.clone()));
        }
        assert_eq!(problems(&fixture), [], "{gone}");
    }
    for (prefix, value, what) in [
        ("ca/certificate/", json!({ "certificate": "x" }), "its certificate cannot be read"),
        ("ca/revoked/", json!({ "reason": "BORED" }), "its reason is unknown"),
        ("ca/policy/", json!({ "text": "{}" }), "the policy cannot be read"),
        ("ca/report/", json!({}), "the report cannot be read"),
        ("ca/token/", json!({}), "the token does not name the resource that was created"),
    ] {
        let (record_key, record) =
            records.iter().find(|(record_key, _)| record_key.starts_with(prefix)).unwrap();
        write(&fixture, record_key, Some(value.to_string().into_bytes()));
        let found = problems(&fixture);
        assert!(
            found.iter().any(|problem| problem.record_key == *record_key && problem.what == what),
            "{found:#?}"
        );
        write(&fixture, record_key, Some(record.value.clone()));
    }
    assert_eq!(problems(&fixture), []);
}

//! Paired certificates, and how the check of the whole store finds certificates that do not belong together.
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
use common::{ACCOUNT, Fixture, NOW, allow, b64, code, policy, says, text, with};
use outlast_pki::certificate::Certificate;
use outlast_pki::pem;
use outlast_store::{Store, Transaction};
use serde_json::{Value, json};

const DAY: i64 = 86_400;
const TAG: &str = "outlast:paired-certificate-authority";

/// A CA with ECDSA, and its partner with ML-DSA.
fn partners(fixture: &Fixture) -> (String, String) {
    let partner = root_ca(fixture, ML_DSA, 3650, json!({}));
    let tags = json!({ "Tags": [{ "Key": TAG, "Value": partner }] });
    (root_ca(fixture, ECDSA, 3650, tags), partner)
}

#[track_caller]
fn parsed(value: &Value) -> Certificate {
    let list = pem::read_certificates(text(value).as_bytes()).unwrap();
    Certificate::parse(&list[0]).unwrap()
}

#[track_caller]
fn both(fixture: &Fixture, arn: &str) -> (Certificate, Certificate) {
    let found = acm(fixture, "GetCertificate", &of(arn)).unwrap();
    let (own, paired) = (parsed(&found["Certificate"]), parsed(&found["PairedCertificate"]));
    assert!(own.signed_by(&parsed(&found["CertificateChain"])));
    assert!(paired.signed_by(&parsed(&found["PairedCertificateChain"])));
    (own, paired)
}

fn clean(fixture: &Fixture) {
    let report =
        outlast_domain::check::check(fixture.store.as_ref(), fixture.service.root(), &mut |_| {})
            .unwrap();
    assert_eq!(report.problems, []);
}

#[test]
fn certificate_pairs_have_one_life_cycle() {
    let fixture = Fixture::new();
    let (authority, partner) = partners(&fixture);
    let arn = requested(
        &fixture,
        &authority,
        "a.example.com",
        json!({
            "KeyAlgorithm": "EC_secp384r1", "SubjectAlternativeNames": ["b.example.com"],
        }),
    );
    let (own, paired) = both(&fixture, &arn);
    let names = |certificate: &Certificate| {
        outlast_domain::acm::details::Details::of(certificate).dns_names
    };
    assert_eq!(names(&own), names(&paired));
    assert_eq!(own.subject(), paired.subject());
    assert_eq!(own.not_after(), paired.not_after());
    assert_eq!(described(&fixture, &arn)["KeyAlgorithm"], "EC_secp384r1");
    let export = json!({ "CertificateArn": arn, "Passphrase": b64(PASSPHRASE) });
    let check_export = |own: &Certificate, paired: &Certificate| {
        let exported = acm(&fixture, "ExportCertificate", &export).unwrap();
        assert_eq!(exported_key(&exported, "EC_secp384r1"), own.public_key().unwrap());
        let other = json!({ "PrivateKey": exported["PairedPrivateKey"] });
        assert_eq!(exported_key(&other, "ML_DSA_65"), paired.public_key().unwrap());
        assert_eq!(parsed(&exported["PairedCertificate"]).der(), paired.der());
    };
    check_export(&own, &paired);
    clean(&fixture);
    // Both CAs must permit the renewal.
    permit(&fixture, &authority);
    fixture.now.set(NOW + 335 * DAY);
    fixture.run_housekeeping();
    let summary = || described(&fixture, &arn)["RenewalSummary"].clone();
    assert_eq!(summary()["RenewalStatusReason"], "PCA_ACCESS_DENIED");
    permit(&fixture, &partner);
    fixture.advance(3600);
    fixture.run_housekeeping();
    assert_eq!(summary()["RenewalStatus"], "SUCCESS");
    let (new_own, new_paired) = both(&fixture, &arn);
    assert!(new_own.der() != own.der() && new_paired.der() != paired.der());
    check_export(&new_own, &new_paired);
    clean(&fixture);
    // One revocation revokes both.
    let body = json!({ "CertificateArn": arn, "RevocationReason": "KEY_COMPROMISE" });
    acm(&fixture, "RevokeCertificate", &body).unwrap();
    for (ca, certificate) in [(&authority, &new_own), (&partner, &new_paired)] {
        let id = ca.rsplit('/').next().unwrap();
        let serial = hex::encode(certificate.serial());
        let record_key = format!("ca/revoked/{ACCOUNT}/eu-west-1/{id}/{serial}");
        assert!(fixture.store.read(&record_key).unwrap().is_some(), "{record_key}");
    }
    acm(&fixture, "DeleteCertificate", &of(&arn)).unwrap();
    assert!(fixture.store.scan("acm/", "", 10).unwrap().is_empty());
    clean(&fixture);
}

#[test]
fn the_partner_revoking_is_noted_too() {
    let fixture = Fixture::new();
    let (authority, partner) = partners(&fixture);
    let arn = requested(&fixture, &authority, "a.example.com", json!({}));
    let (_, paired) = both(&fixture, &arn);
    let body = json!({
        "CertificateAuthorityArn": partner, "CertificateSerial": hex::encode(paired.serial()),
        "RevocationReason": "SUPERSEDED",
    });
    pca(&fixture, "RevokeCertificate", &body).unwrap();
    assert_eq!(described(&fixture, &arn)["Status"], "REVOKED");
}

#[test]
fn revoking_a_pair_takes_the_right_at_both_authorities() {
    let fixture = Fixture::new();
    let (authority, _) = partners(&fixture);
    let arn = requested(&fixture, &authority, "a.example.com", json!({}));
    let body = json!({ "CertificateArn": arn, "RevocationReason": "SUPERSEDED" });
    let half = policy(json!([
        { "Effect": "Allow", "Action": "acm:*", "Resource": "*" },
        { "Effect": "Allow", "Action": "acm-pca:RevokeCertificate", "Resource": authority },
    ]));
    let half = fixture.user(ACCOUNT, "half", &[half]);
    assert_eq!(code(acm_as(&fixture, &half, "RevokeCertificate", &body)), "AccessDeniedException");
    assert_eq!(described(&fixture, &arn)["Status"], "ISSUED");
    let whole = fixture.user(ACCOUNT, "whole", &[allow(&["acm:*", "acm-pca:*"])]);
    acm_as(&fixture, &whole, "RevokeCertificate", &body).unwrap();
    assert_eq!(described(&fixture, &arn)["Status"], "REVOKED");
}

#[test]
fn a_pair_is_made_whole_or_not_at_all() {
    let fixture = Fixture::new();
    let (authority, partner) = partners(&fixture);
    let body = json!({ "DomainName": "a.example.com", "CertificateAuthorityArn": authority });
    let before = fixture.store_without_uses();
    let refused = |body: &Value, expected: &str| {
        let refusal = acm(&fixture, "RequestCertificate", body).unwrap_err();
        assert_eq!(refusal.code, expected, "{}", refusal.message);
    };
    // A classical CA of a pair certifies classical keys.
    refused(&with(&body, json!({ "KeyAlgorithm": "ML_DSA_65" })), "InvalidParameterException");
    // The caller needs permission at both CAs.
    let half = policy(json!([
        { "Effect": "Allow", "Action": "acm:*", "Resource": "*" },
        { "Effect": "Allow", "Action": "acm-pca:IssueCertificate", "Resource": authority },
    ]));
    let half = fixture.user(ACCOUNT, "half", &[half]);
    assert_eq!(code(acm_as(&fixture, &half, "RequestCertificate", &body)), "AccessDeniedException");
    assert!(fixture.store_without_uses() == before);
    let whole = fixture.user(ACCOUNT, "whole", &[allow(&["acm:*", "acm-pca:*"])]);
    acm_as(&fixture, &whole, "RequestCertificate", &body).unwrap();
    let off = json!({ "CertificateAuthorityArn": partner, "Status": "DISABLED" });
    pca(&fixture, "UpdateCertificateAuthority", &off).unwrap();
    let before = fixture.store_without_uses();
    refused(&body, "InvalidParameterException");
    assert!(fixture.store_without_uses() == before);
}

#[test]
fn a_look_at_the_store_names_what_does_not_belong_together() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    let (paired_ca, _) = partners(&fixture);
    let arn = requested(&fixture, &authority, "a.example.com", json!({}));
    let other = requested(&fixture, &authority, "b.example.com", json!({}));
    let paired = requested(&fixture, &paired_ca, "c.example.com", json!({}));
    clean(&fixture);
    let read = |record_key: &str| fixture.store.read(record_key).unwrap().unwrap().value;
    let first = |prefix: &str| fixture.store.scan(prefix, "", 1).unwrap().remove(0).0;
    let material = first(&format!("{}/", record_key("material", &arn)));
    let serial = text(&described(&fixture, &arn)["Serial"]).replace(':', "");
    let serial = format!(
        "acm/serial/{ACCOUNT}/eu-west-1/{}/{serial}",
        authority.rsplit('/').next().unwrap()
    );
    let none = record_key("certificate", "x/00000000-0000-4000-8000-000000000000");
    let text_of = |arn: &str| read(&record_key("text", arn));
    let mut lonely: Value = says(&text_of(&paired));
    lonely.as_object_mut().unwrap().remove("paired");
    let paired_record = says(&read(&record_key("certificate", &paired)));
    let paired_key = text(&paired_record["paired"]["material"]);
    let paired_key = format!("{}/{paired_key}", record_key("material", &paired));
    let gone = |record_key: &str| (record_key.to_owned(), None);
    let put = |record_key: &str, value: Vec<u8>| (record_key.to_owned(), Some(value));
    for (write, what) in [
        (gone(&material), "its private key is missing"),
        (gone(&paired_key), "its private key is missing"),
        (
            put(&material, read(&first(&format!("{}/", record_key("material", &other))))),
            "does not open: it is damaged",
        ),
        (put(&material, b"{}".to_vec()), "is not sealed"),
        (gone(&record_key("text", &arn)), "its text is missing"),
        (put(&record_key("text", &arn), text_of(&other)), "its text is another certificate's"),
        (put(&record_key("text", &arn), b"{}".to_vec()), "the certificate cannot be read"),
        (
            put(&record_key("text", &paired), lonely.to_string().into_bytes()),
            "the text of its paired certificate is missing",
        ),
        (
            gone(&record_key("certificate", &arn)),
            "the certificate that this key belongs to is missing",
        ),
        (gone(&record_key("certificate", &arn)), "the certificate with this text is missing"),
        (
            gone(&record_key("certificate", &arn)),
            "the certificate with this serial number is missing",
        ),
        (gone(&record_key("certificate", &arn)), "its certificate is missing"),
        (
            put(&record_key("certificate", &arn), b"{}".to_vec()),
            "the certificate's record cannot be read",
        ),
        (gone(&serial), "the index of serial numbers does not lead to it"),
        (put(&serial, b"{}".to_vec()), "it does not say which certificate it is for"),
        (
            put(&none.replace("/certificate/", "/ended/"), b"{}".to_vec()),
            "its certificate is missing",
        ),
        (put(&format!("{material}x"), b"{}".to_vec()), "is not sealed"),
    ] {
        let record_key = write.0.clone();
        let before = fixture.store.read(&record_key).unwrap().map(|record| record.value);
        let commit = |write| {
            let transaction = Transaction { writes: vec![write], ..Transaction::default() };
            fixture.store.commit_and_wait(transaction).unwrap();
        };
        commit(write);
        let report = outlast_domain::check::check(
            fixture.store.as_ref(),
            fixture.service.root(),
            &mut |_| {},
        )
        .unwrap();
        let said = report.problems.iter().any(|problem| problem.what.contains(what));
        assert!(said, "{record_key}: {what}: {:?}", report.problems);
        commit((record_key, before));
        clean(&fixture);
    }
}

//! Managed renewal: when, with whose permission, what becomes of the old certificate, and what happens when it fails.
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
use common::{Fixture, NOW, b64, code, text};
use outlast_crypto::keys::KeySpec;
use outlast_crypto::signatures::Message;
use outlast_domain::acm::certificate;
use outlast_domain::acm::renew::renewal_time;
use outlast_domain::arn::Scope;
use outlast_domain::ca::RevokeAt;
use outlast_domain::identity::{Permit, PolicyCache, action, authorize, find_credential};
use outlast_domain::keyring::KeyRing;
use outlast_domain::kms::Access;
use outlast_domain::policy::ConditionKeys;
use outlast_domain::work::Work;
use outlast_pki::csr;
use outlast_pki::extensions::subject_alternative_names;
use outlast_pki::general_name::GeneralName;
use outlast_store::{Store, StoreError};
use serde_json::{Value, json};

const DAY: i64 = 86_400;

fn at(fixture: &Fixture, now: i64) {
    fixture.now.set(now);
    fixture.run_housekeeping();
}

fn renewals(fixture: &Fixture) -> usize {
    let events = fixture.events();
    events.iter().filter(|event| event["eventName"] == "RenewCertificate").count()
}

/// All records of a certificate, by kind.
fn left(fixture: &Fixture, kind: &str) -> Vec<(String, Vec<u8>)> {
    let found = fixture.store.scan(&format!("acm/{kind}/"), "", 100).unwrap();
    found.into_iter().map(|(record_key, record)| (record_key, record.value)).collect()
}

#[test]
fn renewal_is_due_60_days_ahead_or_at_two_thirds() {
    for (days, due) in [(395, 335), (365, 305), (180, 120), (179, 119), (90, 60), (30, 20), (7, 4)]
    {
        let time = renewal_time(0, days * DAY);
        assert_eq!(time / DAY, due, "{days} days");
    }
}

#[test]
fn renewal_keeps_the_arn_and_changes_the_key() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    permit(&fixture, &authority);
    for (name, algorithm) in [
        ("a.example.com", "EC_prime256v1"),
        ("b.example.com", "ML_DSA_65"),
        ("c.example.com", "RSA_2048"),
    ] {
        let more = json!({ "KeyAlgorithm": algorithm, "SubjectAlternativeNames": ["*.example.org"], "Tags": [{ "Key": "a" }] });
        let begin = fixture.now.get();
        let arn = requested(&fixture, &authority, name, more);
        let export = json!({ "CertificateArn": arn, "Passphrase": b64(PASSPHRASE) });
        acm(&fixture, "ExportCertificate", &export).unwrap();
        let (old, _) = got(&fixture, &arn);
        let materials = left(&fixture, "material");
        let so_far = renewals(&fixture);
        at(&fixture, begin + 334 * DAY);
        assert_eq!(got(&fixture, &arn).0.der(), old.der());
        assert!(described(&fixture, &arn).get("RenewalSummary").is_none());
        let now = begin + 335 * DAY;
        at(&fixture, now);
        assert_eq!(renewals(&fixture), so_far + 1);
        let (new, chain) = got(&fixture, &arn);
        assert_ne!(new.public_key().unwrap(), old.public_key().unwrap());
        assert_ne!(new.serial(), old.serial());
        assert_eq!(new.subject(), old.subject());
        assert!(new.signed_by(&chain[0]));
        assert_eq!(new.not_after(), now + 395 * DAY);
        let found = described(&fixture, &arn);
        assert_eq!(
            found["RenewalSummary"],
            json!({
                "RenewalStatus": "SUCCESS", "DomainValidationOptions": [], "UpdatedAt": now,
            })
        );
        assert_eq!(found["SubjectAlternativeNames"], json!([name, "*.example.org"]));
        assert_eq!((&found["CreatedAt"], &found["IssuedAt"]), (&json!(begin), &json!(now)));
        assert_eq!(found["KeyAlgorithm"], algorithm.replace("RSA_", "RSA-"));
        let tags = acm(&fixture, "ListTagsForCertificate", &of(&arn)).unwrap();
        assert_eq!(tags["Tags"][0]["Key"], "a");
        // The old key is gone, and the new one is exported.
        let after = left(&fixture, "material");
        assert_eq!(after.len(), materials.len());
        assert!(after.iter().filter(|found| !materials.contains(found)).count() == 1);
        let exported = acm(&fixture, "ExportCertificate", &export).unwrap();
        assert_eq!(exported_key(&exported, algorithm), new.public_key().unwrap());
        // And again.
        at(&fixture, now + 335 * DAY);
        assert_eq!(renewals(&fixture), so_far + 2);
        assert_ne!(got(&fixture, &arn).0.der(), new.der());
        acm(&fixture, "DeleteCertificate", &of(&arn)).unwrap();
        assert!(
            left(&fixture, "").iter().all(|(record_key, _)| record_key.starts_with("acm/token/"))
        );
    }
    // The audit log names the service as the one that renewed.
    let events = fixture.events();
    let event = events.iter().find(|event| event["eventName"] == "RenewCertificate").unwrap();
    assert_eq!(event["eventType"], "AwsServiceEvent");
    assert_eq!(event["eventSource"], "acm.amazonaws.com");
}

#[test]
fn a_renewal_that_fails_says_why_and_is_tried_again() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    let arn = requested(&fixture, &authority, "a.example.com", json!({}));
    let (old, _) = got(&fixture, &arn);
    let summary = || described(&fixture, &arn)["RenewalSummary"].clone();
    let mut now = NOW + 335 * DAY;
    at(&fixture, now);
    assert_eq!(
        summary(),
        json!({
            "RenewalStatus": "FAILED", "DomainValidationOptions": [], "RenewalStatusReason": "PCA_ACCESS_DENIED",
            "UpdatedAt": now,
        })
    );
    assert_eq!((renewals(&fixture), got(&fixture, &arn).0.der()), (0, old.der()));
    // Not again before an hour has passed.
    let failed_at = now;
    at(&fixture, now + 3599);
    assert_eq!(summary()["UpdatedAt"], failed_at);
    now += 3600;
    at(&fixture, now);
    assert_eq!(summary()["UpdatedAt"], now);
    permit(&fixture, &authority);
    let switch = |status: &str| {
        let body = json!({ "CertificateAuthorityArn": authority, "Status": status });
        pca(&fixture, "UpdateCertificateAuthority", &body).unwrap()
    };
    switch("DISABLED");
    now += 3600;
    at(&fixture, now);
    assert_eq!(summary()["RenewalStatusReason"], "PCA_INVALID_STATE");
    assert_eq!(got(&fixture, &arn).0.der(), old.der());
    switch("ACTIVE");
    now += 3600;
    at(&fixture, now);
    assert_eq!(
        summary(),
        json!({ "RenewalStatus": "SUCCESS", "DomainValidationOptions": [], "UpdatedAt": now })
    );
    assert_ne!(got(&fixture, &arn).0.der(), old.der());
}

#[test]
fn what_has_ended_is_expired_and_renewed_no_more() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    let arn = requested(&fixture, &authority, "a.example.com", json!({}));
    at(&fixture, NOW + 395 * DAY);
    assert_eq!(described(&fixture, &arn)["Status"], "ISSUED");
    permit(&fixture, &authority);
    at(&fixture, NOW + 395 * DAY + 3601);
    assert_eq!(described(&fixture, &arn)["Status"], "EXPIRED");
    assert_eq!((renewals(&fixture), left(&fixture, "renewal").len()), (0, 0));
    assert_eq!(code(acm(&fixture, "RenewCertificate", &of(&arn))), "ValidationException");
    // It can still be read and deleted.
    got(&fixture, &arn);
    acm(&fixture, "DeleteCertificate", &of(&arn)).unwrap();
}

#[test]
fn a_ca_that_ends_too_soon_or_is_gone_renews_nothing() {
    let fixture = Fixture::new();
    let authority = root_ca(&fixture, ECDSA, 300, json!({}));
    permit(&fixture, &authority);
    let arn = requested(&fixture, &authority, "a.example.com", json!({}));
    at(&fixture, NOW + 250 * DAY);
    let summary = || described(&fixture, &arn)["RenewalSummary"]["RenewalStatusReason"].clone();
    assert_eq!(summary(), "PCA_INVALID_DURATION");
    let body = json!({ "CertificateAuthorityArn": authority, "Status": "DISABLED" });
    pca(&fixture, "UpdateCertificateAuthority", &body).unwrap();
    let body = json!({ "CertificateAuthorityArn": authority, "PermanentDeletionTimeInDays": 7 });
    pca(&fixture, "DeleteCertificateAuthority", &body).unwrap();
    at(&fixture, NOW + 251 * DAY);
    assert_eq!(summary(), "PCA_INVALID_STATE");
    at(&fixture, NOW + 260 * DAY);
    assert_eq!(summary(), "PCA_RESOURCE_NOT_FOUND");
}

#[test]
fn renewing_on_demand_takes_the_same_permission() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    let arn = requested(&fixture, &authority, "a.example.com", json!({}));
    let (old, _) = got(&fixture, &arn);
    let refusal = acm(&fixture, "RenewCertificate", &of(&arn)).unwrap_err();
    assert_eq!(refusal.code, "ValidationException");
    assert!(refusal.message.contains("PCA_ACCESS_DENIED"), "{}", refusal.message);
    assert_eq!(got(&fixture, &arn).0.der(), old.der());
    permit(&fixture, &authority);
    // Right away a new certificate would end no later than the old one.
    let refusal = acm(&fixture, "RenewCertificate", &of(&arn)).unwrap_err();
    assert!(refusal.message.contains("PCA_INVALID_DURATION"), "{}", refusal.message);
    fixture.advance(DAY);
    acm(&fixture, "RenewCertificate", &of(&arn)).unwrap();
    let (new, _) = got(&fixture, &arn);
    assert_ne!(new.der(), old.der());
    assert_eq!(described(&fixture, &arn)["RenewalSummary"]["RenewalStatus"], "SUCCESS");
    // From its new end on it is due again.
    at(&fixture, NOW + 335 * DAY);
    assert_eq!(got(&fixture, &arn).0.der(), new.der());
    at(&fixture, NOW + 336 * DAY);
    assert_ne!(got(&fixture, &arn).0.der(), new.der());
}

#[test]
fn what_private_ca_revokes_is_revoked_and_renewed_no_more() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    permit(&fixture, &authority);
    let arn = requested(&fixture, &authority, "a.example.com", json!({}));
    let serial = text(&described(&fixture, &arn)["Serial"]).to_owned();
    let body = json!({
        "CertificateAuthorityArn": authority, "CertificateSerial": serial,
        "RevocationReason": "CERTIFICATE_AUTHORITY_COMPROMISE",
    });
    pca(&fixture, "RevokeCertificate", &body).unwrap();
    let found = described(&fixture, &arn);
    assert_eq!(
        (&found["Status"], &found["RevocationReason"]),
        (&json!("REVOKED"), &json!("CA_COMPROMISE"))
    );
    at(&fixture, NOW + 340 * DAY);
    assert_eq!(renewals(&fixture), 0);
}

#[test]
fn damaged_certificate_does_not_block_renewals() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    permit(&fixture, &authority);
    let arns: Vec<_> = (0..20)
        .map(|number| requested(&fixture, &authority, &format!("n{number}.example.com"), json!({})))
        .collect();
    let damaged = outlast_store::Transaction {
        writes: vec![(record_key("renewal", &arns[3]), Some(b"{}".to_vec()))],
        ..outlast_store::Transaction::default()
    };
    fixture.store.commit_and_wait(damaged).unwrap();
    fixture.now.set(NOW + 335 * DAY);
    assert!(fixture.service.run_housekeeping(fixture.now.get() * 1000).is_err());
    for (number, arn) in arns.iter().enumerate() {
        let summary = described(&fixture, arn)["RenewalSummary"]["RenewalStatus"].clone();
        let expected = if number == 3 { Value::Null } else { json!("SUCCESS") };
        assert_eq!(summary, expected, "{number}");
    }
    assert_eq!(renewals(&fixture), 19);
}

#[test]
fn two_servers_renew_once() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    permit(&fixture, &authority);
    let arn = requested(&fixture, &authority, "a.example.com", json!({}));
    fixture.now.set(NOW + 335 * DAY);
    let sweep = outlast_domain::acm::renew::RENEW_DUE;
    let due = record_key("renewal", &arn);
    let mut works: Vec<Work<'_>> = (0..2)
        .map(|_| {
            let mut work = fixture.service.work(fixture.now.get() * 1000);
            let mut swept = outlast_domain::work::Swept::default();
            (sweep.handle)(&mut work, &due, &mut swept).unwrap();
            assert_eq!(swept.done.len(), 1);
            work
        })
        .collect();
    let commit = |work: Work<'_>| fixture.store.commit_and_wait(work.into_transaction(Vec::new()));
    commit(works.remove(0)).unwrap();
    let (new, _) = got(&fixture, &arn);
    assert_eq!(commit(works.remove(0)), Err(StoreError::Conflict));
    assert_eq!(got(&fixture, &arn).0.der(), new.der());
    assert_eq!(left(&fixture, "material").len(), 1);
    // The second server checks again and finds nothing to do.
    let mut work = fixture.service.work(fixture.now.get() * 1000);
    (sweep.handle)(&mut work, &due, &mut outlast_domain::work::Swept::default()).unwrap();
    assert!(!work.writes_anything());
}

#[test]
fn a_write_that_fails_leaves_the_old_certificate() {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    permit(&fixture, &authority);
    let arn = requested(&fixture, &authority, "a.example.com", json!({}));
    let (old, _) = got(&fixture, &arn);
    let before = fixture.store_without_uses();
    fixture.store.fail_writes(true);
    fixture.now.set(NOW + 335 * DAY);
    assert!(fixture.service.run_housekeeping(fixture.now.get() * 1000).is_err());
    assert!(fixture.store_without_uses() == before);
    fixture.store.fail_writes(false);
    fixture.run_housekeeping();
    assert_ne!(got(&fixture, &arn).0.der(), old.der());
}

/// Permits of an administrator, as operations receive them.
struct Permits {
    issue: Permit<action::acm_pca::IssueCertificate>,
    revoke: Permit<action::acm_pca::RevokeCertificate>,
}

/// Permits of an administrator that include revoking this certificate.
fn permits(
    fixture: &Fixture,
    authority: &str,
    certificate: &str,
) -> (Permits, Permit<action::acm::RevokeCertificate>) {
    let mut work = fixture.service.work(fixture.now.get() * 1000);
    let policies = PolicyCache::default();
    let found = find_credential(&mut work, &policies, common::ACCESS_KEY);
    let (caller, conditions) = (&found.unwrap().unwrap().caller, &ConditionKeys::new());
    let scope = Scope { account: common::ACCOUNT.into(), region: common::REGION.into() };
    let authority = outlast_domain::ca::find(&mut work, &scope, authority).unwrap();
    let access = Access { caller, conditions, policies: &policies, tokens: &[], context: None };
    let (issue, revoke) = (action::acm_pca::IssueCertificate, action::acm_pca::RevokeCertificate);
    let at_authority = Permits {
        issue: outlast_domain::ca::authorize(&mut work, access, issue, &authority).unwrap(),
        revoke: outlast_domain::ca::authorize(&mut work, access, revoke, &authority).unwrap(),
    };
    let revoke = action::acm::RevokeCertificate;
    (at_authority, authorize(caller, conditions, revoke, certificate).unwrap())
}

fn acme_request(names: &[String]) -> (Vec<u8>, Vec<u8>) {
    let spec = KeySpec::by_name("ML_DSA_44").unwrap();
    let key = spec.load(&spec.generate().unwrap()).unwrap();
    let public_key = key.public_key().unwrap().to_vec();
    let alternatives: Vec<_> = names.iter().cloned().map(GeneralName::DnsName).collect();
    let extension = subject_alternative_names(&alternatives, false).unwrap();
    let subject = outlast_pki::name::common_name(&names[0]).unwrap();
    let unsigned = csr::Unsigned::new(subject, &public_key, vec![extension]).unwrap();
    let signature = key.sign(spec.signing[0], Message::Raw(&unsigned.to_be_signed)).unwrap();
    (unsigned.assemble(spec.signing[0], &signature).unwrap(), public_key)
}

#[test]
fn acme_certificates_are_kept_for_a_year() {
    let fixture = Fixture::new();
    let authority_arn = ca(&fixture);
    let scope = Scope { account: common::ACCOUNT.into(), region: common::REGION.into() };
    let (may, _) = permits(&fixture, &authority_arn, &scope.arn("acm", "certificate/*"));
    let names = ["a.example.com".to_owned(), "b.example.com".to_owned()];
    let (csr, public_key) = acme_request(&names);
    let endpoint = "arn:aws:acm:eu-west-1:123456789012:acme-endpoint/x";
    let account = "00000000-0000-4000-8000-000000000000";
    let order = |more: Option<i64>| {
        fixture.directory(|work| {
            let authority = outlast_domain::ca::find(work, &scope, &authority_arn).unwrap();
            let order = outlast_domain::acm::AcmeOrder {
                authority: &authority,
                csr: &csr,
                subject: outlast_pki::name::common_name(&names[0]).unwrap(),
                names: &names,
                not_before: more.map(|end| end - 10 * DAY),
                not_after: more,
                endpoint_arn: endpoint,
                account_id: account,
                tags: [("a".to_owned(), "b".to_owned())].into(),
            };
            outlast_domain::acm::issue_for_acme(
                work,
                &KeyRing::default(),
                &scope,
                order,
                &may.issue,
            )
            .unwrap()
        })
    };
    let end = NOW + 30 * DAY;
    let handed = order(Some(end));
    let arn = handed.certificate.arn();
    let (certificate, chain) = got(&fixture, &arn);
    assert_eq!(certificate.public_key().unwrap(), public_key);
    assert_eq!((certificate.not_before(), certificate.not_after()), (NOW + 20 * DAY, end));
    assert!(certificate.signed_by(&chain[0]));
    let found = described(&fixture, &arn);
    for (member, expected) in [
        ("CertificateKeyPairOrigin", "ACME"),
        ("AcmeEndpointArn", endpoint),
        ("AcmeAccountId", account),
        ("KeyAlgorithm", "ML_DSA_44"),
        ("DomainName", "a.example.com"),
        ("Type", "PRIVATE"),
        ("RenewalEligibility", "INELIGIBLE"),
    ] {
        assert_eq!(found[member], expected, "{member}");
    }
    // Lists leave it out, unless the request asks for such certificates.
    let listed = |body: Value| {
        acm(&fixture, "ListCertificates", &body).unwrap()["CertificateSummaryList"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(
        (listed(json!({})), listed(json!({ "CertificateKeyPairOrigins": ["ACME"] }))),
        (0, 1)
    );
    for (operation, body, error) in [
        ("DeleteCertificate", of(&arn), "ConflictException"),
        ("RenewCertificate", of(&arn), "ValidationException"),
        (
            "ExportCertificate",
            json!({ "CertificateArn": arn, "Passphrase": b64(PASSPHRASE) }),
            "ValidationException",
        ),
        (
            "UpdateCertificateOptions",
            json!({ "CertificateArn": arn, "Options": {} }),
            "InvalidStateException",
        ),
    ] {
        assert_eq!(code(acm(&fixture, operation, &body)), error, "{operation}");
    }
    let second = order(None);
    assert_eq!(second.certificate.record().details.not_after, NOW + 395 * DAY);
    let serial = second.certificate.record().details.serial.clone();
    let (_, permit) = permits(&fixture, &authority_arn, &second.certificate.arn());
    fixture.directory(|work| {
        let authority = outlast_domain::ca::find(work, &scope, &authority_arn).unwrap();
        let found = certificate::by_serial(work, &authority, &serial).unwrap().unwrap();
        assert_eq!(found.arn(), second.certificate.arn());
        assert!(certificate::by_serial(work, &authority, "00").unwrap().is_none());
        let at = RevokeAt { authority: &may.revoke, partner: None };
        outlast_domain::acm::revoke_for_acme(work, found, &authority, "SUPERSEDED", &permit, at)
            .unwrap();
    });
    let found = described(&fixture, &second.certificate.arn());
    assert_eq!(
        (&found["Status"], &found["RevocationReason"]),
        (&json!("REVOKED"), &json!("SUPERSEDED"))
    );
    // It is kept for a year after its end.
    at(&fixture, end + 365 * DAY - 1);
    assert_eq!(described(&fixture, &arn)["Status"], "EXPIRED");
    at(&fixture, end + 365 * DAY);
    assert_eq!(code(acm(&fixture, "DescribeCertificate", &of(&arn))), "ResourceNotFoundException");
    assert_eq!(left(&fixture, "serial").len(), 1);
    let events = fixture.events();
    assert!(
        events
            .iter()
            .any(|e| e["eventName"] == "DeleteCertificate" && e["eventType"] == "AwsServiceEvent")
    );
}

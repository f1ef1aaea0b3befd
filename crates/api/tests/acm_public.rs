//! Certificates whose requests name no CA: validation by DNS, time limits, approved domains, renewal, and who may ask.
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

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use certificates::*;
use common::{ACCOUNT, Fixture, NOW, REGION, Who, allow, b64, code, text, with};
use outlast_api::acme::jobs::Lane;
use outlast_domain::acme::{Job, Kind, Outcome, Queue, Target};
use outlast_domain::check;
use outlast_domain::settings::{PublicCertificates, Settings};
use outlast_pki::certificate::Certificate;
use outlast_pki::extensions::{CLIENT_AUTH, SERVER_AUTH};
use outlast_pki::pem;
use outlast_store::Store;
use serde_json::{Value, json};

const DAY: i64 = 86_400;

/// A server whose default authority is a CA that permits Certificate Manager to issue.
fn world() -> (Fixture, String) {
    let fixture = Fixture::new();
    let authority = ca(&fixture);
    permit(&fixture, &authority);
    set(&fixture, &authority, &[]);
    (fixture, authority)
}

/// Sets the default authority and the approved domains.
fn set(fixture: &Fixture, authority: &str, approved: &[&str]) {
    let of_account = BTreeMap::from([(REGION.to_owned(), authority.to_owned())]);
    let approved: BTreeSet<String> = approved.iter().map(|name| (*name).to_owned()).collect();
    fixture.service.set_settings(Settings {
        public_certificates: PublicCertificates {
            authorities: BTreeMap::from([(ACCOUNT.to_owned(), of_account)]),
            approved: BTreeMap::from([(ACCOUNT.to_owned(), approved)]),
        },
        ..Settings::default()
    });
}

fn body(name: &str, more: Value) -> Value {
    with(&json!({ "DomainName": name, "KeyAlgorithm": "EC_prime256v1" }), more)
}

#[track_caller]
fn request(fixture: &Fixture, name: &str, more: Value) -> String {
    let made = acm(fixture, "RequestCertificate", &body(name, more)).unwrap();
    text(&made["CertificateArn"]).to_owned()
}

fn name_of(job: &Job) -> &str {
    match &job.target {
        Target::Cname { name, .. } => name,
        other => panic!("{other:?}"),
    }
}

fn outcome(is_there: bool) -> Outcome {
    if is_there {
        return Outcome::Found;
    }
    Outcome::Missing { kind: Kind::DNS, detail: "there is none".into(), again: true }
}

fn jobs(fixture: &Fixture) -> Vec<Job> {
    let lane = Mutex::new(Lane::new(8000));
    fixture.service.acme_jobs(Queue::Certificates, fixture.now.get() * 1000, &lane).unwrap()
}

/// Looks up the records that are due, as `net` does; how many they were.
fn look(fixture: &Fixture, is_there: impl Fn(&str) -> bool) -> usize {
    let jobs = jobs(fixture);
    for job in &jobs {
        let now_ms = fixture.now.get() * 1000;
        fixture.service.acme_outcome(job, &outcome(is_there(name_of(job))), now_ms).unwrap();
    }
    jobs.len()
}

fn status(fixture: &Fixture, arn: &str) -> String {
    text(&described(fixture, arn)["Status"]).to_owned()
}

/// `ValidationStatus` of each name.
fn validations(value: &Value) -> Vec<&str> {
    let list = value["DomainValidationOptions"].as_array().unwrap();
    list.iter().map(|one| text(&one["ValidationStatus"])).collect()
}

/// How many events of the service itself have this name.
fn events(fixture: &Fixture, name: &str) -> usize {
    let is_one =
        |event: &&Value| event["eventName"] == name && event["eventType"] == "AwsServiceEvent";
    fixture.events().iter().filter(is_one).count()
}

/// Whether it is for servers alone, as those of Amazon's public CA are.
fn is_for_servers(certificate: &Certificate) -> bool {
    certificate.extended_key_usage().unwrap().1 == [SERVER_AUTH]
}

/// Record keys of Certificate Manager, apart from the key of the validation records and tokens.
fn left(fixture: &Fixture) -> Vec<String> {
    let found = fixture.store.scan("acm/", "", 1000).unwrap().into_iter();
    let found = found.map(|(record_key, _)| record_key);
    found.filter(|key| key != "acm/validation-key" && !key.starts_with("acm/token/")).collect()
}

#[test]
fn issued_once_every_record_is_found() {
    let (fixture, authority) = world();
    let names = json!({ "SubjectAlternativeNames": ["*.example.com", "api.example.org"] });
    let arn = request(&fixture, "example.com", with(&names, json!({ "ValidationMethod": "DNS" })));
    let pending = described(&fixture, &arn);
    assert_eq!(pending["Status"], "PENDING_VALIDATION");
    assert_eq!(pending["Type"], "AMAZON_ISSUED");
    assert_eq!(pending["RenewalEligibility"], "INELIGIBLE");
    for absent in
        ["Serial", "NotBefore", "NotAfter", "IssuedAt", "Issuer", "CertificateAuthorityArn"]
    {
        assert!(pending.get(absent).is_none(), "{absent}");
    }
    let list = pending["DomainValidationOptions"].as_array().unwrap();
    let domains: Vec<_> = list.iter().map(|one| text(&one["DomainName"])).collect();
    assert_eq!(domains, ["example.com", "*.example.com", "api.example.org"]);
    assert_eq!(validations(&pending), ["PENDING_VALIDATION"; 3]);
    // The wildcard shares the record of its domain.
    assert_eq!(list[0]["ResourceRecord"], list[1]["ResourceRecord"]);
    assert_ne!(list[0]["ResourceRecord"], list[2]["ResourceRecord"]);
    let record = &list[0]["ResourceRecord"];
    assert_eq!((&list[0]["ValidationMethod"], &record["Type"]), (&json!("DNS"), &json!("CNAME")));
    let is_token = |label: &str| {
        let digits = label.strip_prefix('_').unwrap_or_default();
        digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let (token, domain) = text(&record["Name"]).split_once('.').unwrap();
    assert!(is_token(token) && domain == "example.com.", "{record}");
    let value: Vec<_> = text(&record["Value"]).split('.').collect();
    assert!(is_token(value[0]) && value[1].len() == 10, "{record}");
    assert_eq!(value[2..], ["acm-validations", "aws", ""]);
    // Nothing can be done with it yet.
    let export = with(&of(&arn), json!({ "Passphrase": b64(PASSPHRASE) }));
    for (operation, body, error) in [
        ("GetCertificate", of(&arn), "RequestInProgressException"),
        ("RenewCertificate", of(&arn), "RequestInProgressException"),
        ("ExportCertificate", export.clone(), "RequestInProgressException"),
        (
            "RevokeCertificate",
            with(&of(&arn), json!({ "RevocationReason": "SUPERSEDED" })),
            "ConflictException",
        ),
        (
            "ResendValidationEmail",
            with(&of(&arn), json!({ "Domain": "example.com", "ValidationDomain": "example.com" })),
            "InvalidStateException",
        ),
    ] {
        assert_eq!(code(acm(&fixture, operation, &body)), error, "{operation}");
    }
    // One look-up for each record.
    assert_eq!(look(&fixture, |name| name.ends_with(".example.com")), 2);
    let halfway = described(&fixture, &arn);
    assert_eq!(validations(&halfway), ["SUCCESS", "SUCCESS", "PENDING_VALIDATION"]);
    assert_eq!(halfway["Status"], "PENDING_VALIDATION");
    assert_eq!(look(&fixture, |_| true), 0, "it is not due yet");
    fixture.advance(6);
    assert_eq!(look(&fixture, |name| name.ends_with(".api.example.org")), 1);
    let issued = described(&fixture, &arn);
    assert_eq!(issued["Status"], "ISSUED");
    assert_eq!(validations(&issued), ["SUCCESS"; 3]);
    assert_eq!(issued["SubjectAlternativeNames"], pending["SubjectAlternativeNames"]);
    assert_eq!(issued["Options"]["Export"], "DISABLED");
    assert_eq!(issued["Options"]["CertificateTransparencyLoggingPreference"], "ENABLED");
    assert!(issued.get("CertificateAuthorityArn").is_none());
    let (certificate, chain) = got(&fixture, &arn);
    assert!(certificate.signed_by(&chain[0]));
    assert!(is_for_servers(&certificate));
    let private = got(&fixture, &requested(&fixture, &authority, "example.com", json!({}))).0;
    assert_eq!(private.extended_key_usage().unwrap().1, [SERVER_AUTH, CLIENT_AUTH]);
    assert_eq!(events(&fixture, "CertificateIssued"), 1);
    assert_eq!(code(acm(&fixture, "ExportCertificate", &export)), "ValidationException");
    // It is found by its kind and its method, and the validations are listed a page at a time.
    let filter = json!({ "FilterStatement": { "And": [
        { "Filter": { "AcmCertificateMetadataFilter": { "Type": "AMAZON_ISSUED" } } },
        { "Filter": { "AcmCertificateMetadataFilter": { "ValidationMethod": "DNS" } } },
    ] } });
    let found = acm(&fixture, "SearchCertificates", &filter).unwrap();
    assert_eq!(found["Results"].as_array().unwrap().len(), 1);
    let mut listed = Vec::new();
    let mut page = with(&of(&arn), json!({ "MaxItems": 2 }));
    loop {
        let found = acm(&fixture, "ListCertificateDomainValidations", &page).unwrap();
        let list = found["DomainValidationSummaryList"].as_array().unwrap();
        listed.extend(list.iter().map(|one| one["DomainName"].clone()));
        let active = &list[0]["ActiveValidationConfiguration"];
        assert_eq!(active["ValidationStatus"], "SUCCESS");
        assert!(
            active["ValidationChallenge"]["DnsValidationChallenge"]["ResourceRecord"].is_object()
        );
        let Some(next) = found.get("NextToken") else { break };
        page["NextToken"] = next.clone();
    }
    assert_eq!(listed, ["example.com", "*.example.com", "api.example.org"]);
    // The record is the same for every request of the account.
    let again = request(&fixture, "api.example.org", json!({ "Options": { "Export": "ENABLED" } }));
    let record =
        described(&fixture, &again)["DomainValidationOptions"][0]["ResourceRecord"].clone();
    assert_eq!(record, list[2]["ResourceRecord"]);
    look(&fixture, |_| true);
    let export = with(&of(&again), json!({ "Passphrase": b64(PASSPHRASE) }));
    let exported = acm(&fixture, "ExportCertificate", &export).unwrap();
    exported_key(&exported, "EC_prime256v1");
    // The CA knows both, and revoking one is noted as for any other.
    let revoke = with(&of(&again), json!({ "RevocationReason": "SUPERSEDED" }));
    acm(&fixture, "RevokeCertificate", &revoke).unwrap();
    assert_eq!(status(&fixture, &again), "REVOKED");
    assert!(check_store(&fixture).is_empty(), "{:?}", check_store(&fixture));
}

/// Problems of the store.
fn check_store(fixture: &Fixture) -> Vec<check::Problem> {
    check::check(fixture.store.as_ref(), fixture.service.root(), &mut |_| {}).unwrap().problems
}

#[test]
fn validation_times_out_after_72_hours() {
    let (fixture, _) = world();
    let arn = request(&fixture, "a.example.com", json!({}));
    for _ in 0..12 {
        assert_eq!(look(&fixture, |_| false), 1);
        assert_eq!(status(&fixture, &arn), "PENDING_VALIDATION");
        fixture.advance(6 * 3600);
    }
    // It shows even if nobody has looked.
    assert_eq!(status(&fixture, &arn), "VALIDATION_TIMED_OUT");
    assert_eq!(validations(&described(&fixture, &arn)), ["FAILED"]);
    // A record that comes too late changes nothing.
    assert_eq!(look(&fixture, |_| true), 1);
    assert_eq!(events(&fixture, "CertificateValidationTimedOut"), 1);
    assert_eq!(status(&fixture, &arn), "VALIDATION_TIMED_OUT");
    fixture.advance(DAY);
    assert_eq!(look(&fixture, |_| true), 0);
    for operation in ["GetCertificate", "RenewCertificate"] {
        assert_eq!(code(acm(&fixture, operation, &of(&arn))), "ValidationException", "{operation}");
    }
    acm(&fixture, "DeleteCertificate", &of(&arn)).unwrap();
    assert!(left(&fixture).is_empty(), "{:?}", left(&fixture));
}

#[test]
fn deleting_ends_the_validation() {
    let (fixture, _) = world();
    let names = json!({ "SubjectAlternativeNames": ["b.example.com", "*.a.example.com"] });
    let arn = request(&fixture, "a.example.com", names);
    let under_way = jobs(&fixture);
    assert_eq!(under_way.len(), 2);
    acm(&fixture, "DeleteCertificate", &of(&arn)).unwrap();
    assert!(left(&fixture).is_empty(), "{:?}", left(&fixture));
    for job in &under_way {
        fixture.service.acme_outcome(job, &Outcome::Found, fixture.now.get() * 1000).unwrap();
    }
    assert!(left(&fixture).is_empty());
    assert_eq!(code(acm(&fixture, "DescribeCertificate", &of(&arn))), "ResourceNotFoundException");
    assert_eq!(events(&fixture, "CertificateIssued"), 0);
}

#[test]
fn a_token_makes_one_request_within_the_hour() {
    let (fixture, _) = world();
    let token = json!({ "IdempotencyToken": "t" });
    let first = request(&fixture, "a.example.com", token.clone());
    assert_eq!(request(&fixture, "a.example.com", token.clone()), first);
    look(&fixture, |_| true);
    assert_eq!(request(&fixture, "a.example.com", token.clone()), first);
    let other = acm(&fixture, "RequestCertificate", &body("b.example.com", token.clone()));
    assert_eq!(code(other), "InvalidParameterException");
    fixture.advance(3601);
    assert_ne!(request(&fixture, "a.example.com", token), first);
}

#[test]
fn approved_domains_need_no_proof() {
    let (fixture, authority) = world();
    set(&fixture, &authority, &["corp.example"]);
    let names = json!({ "SubjectAlternativeNames": ["*.corp.example", "a.b.corp.example"] });
    let arn = request(&fixture, "corp.example", names.clone());
    assert_eq!(status(&fixture, &arn), "ISSUED");
    assert_eq!(validations(&described(&fixture, &arn)), ["SUCCESS"; 3]);
    assert_eq!(look(&fixture, |_| false), 0);
    // E-mail is not sent, so it can be asked for only where it is not needed.
    let email = json!({ "ValidationMethod": "EMAIL" });
    let by_email = request(&fixture, "corp.example", email.clone());
    let found = described(&fixture, &by_email);
    assert_eq!(found["Status"], "ISSUED");
    assert_eq!(found["DomainValidationOptions"][0]["ValidationMethod"], "EMAIL");
    assert!(found["DomainValidationOptions"][0].get("ResourceRecord").is_none());
    for (name, more, part) in [
        ("a.example.com", email.clone(), "by e-mail is not offered"),
        (
            "corp.example",
            with(&email, json!({ "SubjectAlternativeNames": ["a.example.com"] })),
            "by e-mail is not offered",
        ),
        ("a.example.com", json!({ "ValidationMethod": "HTTP" }), "CloudFront"),
        ("notcorp.example", json!({ "Options": { "ValidationMethod": "EMAIL" } }), "by e-mail"),
    ] {
        let refused = acm(&fixture, "RequestCertificate", &body(name, more)).unwrap_err();
        assert_eq!(refused.code, "InvalidParameterException");
        assert!(refused.message.contains(part), "{}", refused.message);
    }
    // Only the other names are looked up; what the operator approves later counts, too.
    let mixed = json!({ "SubjectAlternativeNames": ["a.example.com", "b.example.net"] });
    let arn = request(&fixture, "corp.example", mixed);
    assert_eq!(
        validations(&described(&fixture, &arn)),
        ["SUCCESS", "PENDING_VALIDATION", "PENDING_VALIDATION"]
    );
    set(&fixture, &authority, &["corp.example", "example.net"]);
    assert_eq!(look(&fixture, |name| name.ends_with(".a.example.com")), 2);
    assert_eq!(status(&fixture, &arn), "ISSUED");
}

#[test]
fn the_caller_needs_no_right_at_the_authority_and_the_service_does() {
    let (fixture, authority) = world();
    let requests = fixture.user(ACCOUNT, "requests", &[allow(&["acm:RequestCertificate"])]);
    let issues = fixture.user(ACCOUNT, "issues", &[allow(&["acm-pca:*"])]);
    let ask =
        |who: &Who| acm_as(&fixture, who, "RequestCertificate", &body("a.example.com", json!({})));
    assert!(ask(&requests).is_ok());
    assert_eq!(code(ask(&issues)), "AccessDeniedException");
    let named = body("a.example.com", json!({ "CertificateAuthorityArn": authority }));
    let named = acm_as(&fixture, &requests, "RequestCertificate", &named);
    assert_eq!(code(named), "AccessDeniedException");
    // Policies see the authority that will issue, and the method that will be used.
    for (number, (key, value, is_allowed)) in [
        ("acm:CertificateAuthority", authority.as_str(), true),
        ("acm:CertificateAuthority", "arn:aws:acm-pca:*:*:none", false),
        ("acm:ValidationMethod", "DNS", true),
        ("acm:ValidationMethod", "EMAIL", false),
        ("acm:Export", "DISABLED", true),
    ]
    .into_iter()
    .enumerate()
    {
        let statement = common::policy(json!([{
            "Effect": "Allow", "Action": "acm:RequestCertificate", "Resource": "*",
            "Condition": { "StringLike": { key: value } },
        }]));
        let who = fixture.user(ACCOUNT, &format!("u{number}"), &[statement]);
        assert_eq!(ask(&who).is_ok(), is_allowed, "{key} {value}");
    }
    // Other accounts and Regions have no default.
    for who in [Who::stranger(), Who::admin().at("eu-west-2")] {
        let refused = ask(&who).unwrap_err();
        assert_eq!(refused.code, "InvalidParameterException");
        assert!(refused.message.contains("CertificateAuthorityArn is required"));
    }
    // Without a permission of the CA nothing is begun, and what was begun fails.
    let arn = request(&fixture, "b.example.com", json!({}));
    let permission =
        json!({ "CertificateAuthorityArn": authority, "Principal": "acm.amazonaws.com" });
    pca(&fixture, "DeletePermission", &permission).unwrap();
    let before = fixture.store_without_uses();
    let refused = ask(&Who::admin()).unwrap_err();
    assert_eq!(refused.code, "InvalidParameterException");
    assert!(refused.message.starts_with("PCA_ACCESS_DENIED: "), "{}", refused.message);
    assert!(fixture.store_without_uses() == before);
    look(&fixture, |name| name.ends_with(".b.example.com"));
    let failed = described(&fixture, &arn);
    assert_eq!(
        (&failed["Status"], &failed["FailureReason"]),
        (&json!("FAILED"), &json!("PCA_ACCESS_DENIED"))
    );
    assert_eq!(events(&fixture, "CertificateRequestFailed"), 1);
    assert_eq!(code(acm(&fixture, "GetCertificate", &of(&arn))), "ValidationException");
    acm(&fixture, "DeleteCertificate", &of(&arn)).unwrap();
    // The same for an authority that is not active, or not there.
    permit(&fixture, &authority);
    let disabled = json!({ "CertificateAuthorityArn": authority, "Status": "DISABLED" });
    pca(&fixture, "UpdateCertificateAuthority", &disabled).unwrap();
    assert!(ask(&Who::admin()).unwrap_err().message.starts_with("PCA_INVALID_STATE: "));
    let missing = format!("{}000000000000", &authority[..authority.len() - 12]);
    set(&fixture, &missing, &[]);
    assert!(ask(&Who::admin()).unwrap_err().message.starts_with("PCA_RESOURCE_NOT_FOUND: "));
}

#[test]
fn renewals_prove_the_names_again() {
    let (fixture, _) = world();
    let arn = request(&fixture, "a.example.com", json!({}));
    let lost = request(&fixture, "b.example.com", json!({}));
    look(&fixture, |_| true);
    let old = got(&fixture, &arn).0;
    let due = NOW + 335 * DAY;
    fixture.now.set(due);
    fixture.run_housekeeping();
    let summary = described(&fixture, &arn)["RenewalSummary"].clone();
    assert_eq!(summary["RenewalStatus"], "PENDING_VALIDATION");
    assert_eq!(validations(&summary), ["PENDING_VALIDATION"]);
    // The certificate stays in force, and its first validation stays as it was.
    assert_eq!(status(&fixture, &arn), "ISSUED");
    assert_eq!(validations(&described(&fixture, &arn)), ["SUCCESS"]);
    assert_eq!(got(&fixture, &arn).0.der(), old.der());
    assert_eq!(code(acm(&fixture, "RenewCertificate", &of(&arn))), "RequestInProgressException");
    // The operator has replaced the authority: renewals move to the new one.
    let next = ca(&fixture);
    permit(&fixture, &next);
    set(&fixture, &next, &[]);
    assert_eq!(look(&fixture, |name| name.ends_with(".a.example.com")), 2);
    let renewed = described(&fixture, &arn);
    assert_eq!(renewed["RenewalSummary"]["RenewalStatus"], "SUCCESS");
    assert_eq!(validations(&renewed["RenewalSummary"]), ["SUCCESS"]);
    assert_eq!(events(&fixture, "RenewCertificate"), 1);
    let (new, chain) = got(&fixture, &arn);
    assert_ne!(new.public_key().unwrap(), old.public_key().unwrap());
    assert_eq!(new.not_after(), due + 395 * DAY);
    assert!(new.signed_by(&chain[0]) && !old.signed_by(&chain[0]));
    assert!(is_for_servers(&new));
    assert!(check_store(&fixture).is_empty(), "{:?}", check_store(&fixture));
    // The other record is looked up until the certificate ends.
    for _ in 0..3 {
        fixture.advance(3700);
        fixture.run_housekeeping();
        assert_eq!(look(&fixture, |_| false), 1);
    }
    let summary = described(&fixture, &lost)["RenewalSummary"].clone();
    assert_eq!(summary["RenewalStatus"], "PENDING_VALIDATION");
    assert_eq!(summary["UpdatedAt"], due);
    fixture.now.set(NOW + 396 * DAY);
    fixture.run_housekeeping();
    let ended = described(&fixture, &lost);
    assert_eq!(
        (&ended["Status"], &ended["RenewalSummary"]["RenewalStatus"]),
        (&json!("EXPIRED"), &json!("FAILED"))
    );
    assert_eq!(look(&fixture, |_| true), 0);
    assert_eq!(events(&fixture, "RenewCertificate"), 1);
    // On demand: approved names are renewed at once.
    set(&fixture, &next, &["example.com"]);
    acm(&fixture, "RenewCertificate", &of(&arn)).unwrap();
    assert_ne!(got(&fixture, &arn).0.der(), new.der());
    // A name that was approved once, and is proved by nothing else, is not renewed.
    let email = request(&fixture, "c.example.com", json!({ "ValidationMethod": "EMAIL" }));
    set(&fixture, &next, &[]);
    let refused = acm(&fixture, "RenewCertificate", &of(&email)).unwrap_err();
    assert!(refused.message.contains("DOMAIN_VALIDATION_DENIED"), "{}", refused.message);
    fixture.advance(335 * DAY);
    fixture.run_housekeeping();
    let summary = described(&fixture, &email)["RenewalSummary"].clone();
    assert_eq!(
        (&summary["RenewalStatus"], &summary["RenewalStatusReason"]),
        (&json!("FAILED"), &json!("DOMAIN_VALIDATION_DENIED"))
    );
}

#[test]
fn proofs_of_a_renewal_are_good_for_72_hours() {
    let (fixture, _) = world();
    let names = json!({ "SubjectAlternativeNames": ["b.example.com"] });
    let arn = request(&fixture, "a.example.com", names);
    look(&fixture, |_| true);
    let old = got(&fixture, &arn).0;
    let is_a = |name: &str| name.ends_with(".a.example.com");
    let is_b = |name: &str| name.ends_with(".b.example.com");
    let proved = || {
        assert_eq!(got(&fixture, &arn).0.der(), old.der());
        let summary = described(&fixture, &arn)["RenewalSummary"].clone();
        assert_eq!(summary["RenewalStatus"], "PENDING_VALIDATION");
        validations(&summary).into_iter().map(|status| status == "SUCCESS").collect::<Vec<_>>()
    };
    fixture.now.set(NOW + 335 * DAY);
    fixture.run_housekeeping();
    assert_eq!(look(&fixture, is_a), 2);
    assert_eq!(proved(), [true, false]);
    fixture.advance(72 * 3600 - 1);
    fixture.run_housekeeping();
    assert_eq!(look(&fixture, |_| false), 1);
    assert_eq!(proved(), [true, false]);
    // By the second proof the first is older than 72 hours: its record is looked up again.
    fixture.advance(600);
    assert_eq!(look(&fixture, is_b), 1);
    assert_eq!(proved(), [false, true]);
    assert_eq!(look(&fixture, is_b), 1);
    assert_eq!(proved(), [false, true]);
    // The same if the look-up comes later than the next attempt to renew.
    fixture.advance(72 * 3600);
    fixture.run_housekeeping();
    assert_eq!(proved(), [false, false]);
    // Both are found in time.
    assert_eq!(look(&fixture, is_b), 2);
    assert_eq!(proved(), [false, true]);
    fixture.advance(71 * 3600);
    assert_eq!(look(&fixture, is_a), 1);
    assert_eq!(described(&fixture, &arn)["RenewalSummary"]["RenewalStatus"], "SUCCESS");
    assert_ne!(got(&fixture, &arn).0.der(), old.der());
    assert!(check_store(&fixture).is_empty(), "{:?}", check_store(&fixture));
}

#[test]
fn default_authority_with_a_partner_issues_pairs() {
    let fixture = Fixture::new();
    let partner = root_ca(&fixture, ML_DSA, 3650, json!({}));
    let tag = json!({ "Key": "outlast:paired-certificate-authority", "Value": partner });
    let authority = root_ca(&fixture, ECDSA, 3650, json!({ "Tags": [tag] }));
    permit(&fixture, &authority);
    set(&fixture, &authority, &[]);
    // Both must permit it.
    let before = fixture.store_without_uses();
    let refused = acm(&fixture, "RequestCertificate", &body("a.example.com", json!({})));
    let refused = refused.unwrap_err();
    assert!(refused.message.starts_with("PCA_ACCESS_DENIED: "), "{}", refused.message);
    assert!(fixture.store_without_uses() == before);
    permit(&fixture, &partner);
    let options = json!({ "Options": { "Export": "ENABLED" } });
    let arn = request(&fixture, "a.example.com", options);
    look(&fixture, |_| true);
    let both = || {
        let found = acm(&fixture, "GetCertificate", &of(&arn)).unwrap();
        let parsed = |member: &str| {
            let list = pem::read_certificates(text(&found[member]).as_bytes()).unwrap();
            Certificate::parse(&list[0]).unwrap()
        };
        let pair = [parsed("Certificate"), parsed("PairedCertificate")];
        assert!(pair[0].signed_by(&parsed("CertificateChain")));
        assert!(pair[1].signed_by(&parsed("PairedCertificateChain")));
        assert!(pair.iter().all(is_for_servers));
        assert_eq!(pair[0].subject(), pair[1].subject());
        assert_eq!(pair[0].not_after(), pair[1].not_after());
        pair
    };
    let first = both();
    let export = with(&of(&arn), json!({ "Passphrase": b64(PASSPHRASE) }));
    let exported = acm(&fixture, "ExportCertificate", &export).unwrap();
    assert_eq!(exported_key(&exported, "EC_prime256v1"), first[0].public_key().unwrap());
    let other = json!({ "PrivateKey": exported["PairedPrivateKey"] });
    assert_eq!(exported_key(&other, "ML_DSA_65"), first[1].public_key().unwrap());
    // The renewal replaces both when the name is proved again, and neither before.
    fixture.now.set(NOW + 335 * DAY);
    fixture.run_housekeeping();
    assert!(both().iter().zip(&first).all(|(now, first)| now.der() == first.der()));
    look(&fixture, |_| true);
    let renewed = both();
    assert!(renewed.iter().zip(&first).all(|(now, first)| now.der() != first.der()));
    let revoke = with(&of(&arn), json!({ "RevocationReason": "SUPERSEDED" }));
    acm(&fixture, "RevokeCertificate", &revoke).unwrap();
    for (ca, certificate) in [(&authority, &renewed[0]), (&partner, &renewed[1])] {
        let id = ca.rsplit('/').next().unwrap();
        let serial = hex::encode(certificate.serial());
        let record_key = format!("ca/revoked/{ACCOUNT}/{REGION}/{id}/{serial}");
        assert!(fixture.store.read(&record_key).unwrap().is_some(), "{record_key}");
    }
    assert!(check_store(&fixture).is_empty(), "{:?}", check_store(&fixture));
}

#[test]
fn issued_once_although_servers_die_and_writes_fail() {
    let (fixture, _) = world();
    let arn = request(&fixture, "a.example.com", json!({}));
    // This server dies.
    let lost = jobs(&fixture);
    assert_eq!(lost.len(), 1);
    assert!(jobs(&fixture).is_empty(), "it is taken");
    fixture.advance(62);
    // The next cannot write: nothing is issued without its event.
    let taken = jobs(&fixture);
    let before = fixture.store_without_uses();
    fixture.store.fail_writes(true);
    let now_ms = fixture.now.get() * 1000;
    assert!(fixture.service.acme_outcome(&taken[0], &Outcome::Found, now_ms).is_err());
    fixture.store.fail_writes(false);
    assert!(fixture.store_without_uses() == before);
    assert_eq!(status(&fixture, &arn), "PENDING_VALIDATION");
    fixture.advance(62);
    assert_eq!(look(&fixture, |_| true), 1);
    assert_eq!(status(&fixture, &arn), "ISSUED");
    let first = got(&fixture, &arn).0;
    // What the first ones found comes too late.
    for job in lost.iter().chain(&taken) {
        let now_ms = fixture.now.get() * 1000;
        fixture.service.acme_outcome(job, &Outcome::Found, now_ms).unwrap();
    }
    assert_eq!(got(&fixture, &arn).0.der(), first.der());
    assert_eq!(events(&fixture, "CertificateIssued"), 1);
}

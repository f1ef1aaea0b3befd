//! CRLs and objects in buckets: what is served, when it changes, and what can fail.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::common;
use crate::pki;

use std::sync::atomic::Ordering;

use common::Who;
use http::{HeaderMap, Method};
use outlast_api::service::Sink;
use outlast_domain::Fault;
use outlast_pki::ocsp::{Failure, OcspError, Request, Response as Ocsp, Status};
use outlast_store::{Store, StoreError, Transaction};
use pki::{
    DAY, EC, ML_DSA, URL, World, both, count, crl_at, crl_of, crl_only, get, keep, left, plain,
    post, status,
};
use serde_json::{Value, json};

#[test]
fn a_crl_follows_revocations() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let (one, two) = (world.leaf(&ca, 365), world.leaf(&ca, 365));
    assert_eq!(get(&world, &format!("/crl/{}.crl", ca.id())).status(), 404);
    keep(&world);
    let first = crl_of(&world, &ca);
    let now = world.now.get();
    assert!(first.is_empty());
    assert_eq!((first.this_update(), first.next_update()), (now, Some(now + 8 * DAY)));
    assert_eq!(one.cdp(), [format!("{URL}/crl/{}.crl", ca.id())]);
    assert_eq!(one.ocsp(), [format!("{URL}/ocsp")]);
    assert_eq!((count(&world, "GenerateCRL"), left(&world, "ca/crl-mark/")), (1, 0));

    world.revoke(&ca, &one, "KEY_COMPROMISE").unwrap();
    world.advance(3);
    keep(&world);
    let second = crl_of(&world, &ca);
    let entry = second.entry(one.serial()).unwrap();
    assert_eq!((entry.reason.rfc_name, entry.revoked_at), ("keyCompromise", now));
    assert!(second.entry(two.serial()).is_none() && second.len() == 1);
    assert!(second.number() > first.number() && second.this_update() == now + 3);
    let event = world.events().pop().unwrap();
    assert_eq!(
        (&event["eventName"], &event["resources"][0]["ARN"], &event["eventType"]),
        (&json!("GenerateCRL"), &json!(ca.arn), &json!("AwsServiceEvent"))
    );

    // When nothing is due, nothing is written.
    let before = world.store.last_event().unwrap();
    world.advance(60);
    keep(&world);
    assert_eq!(world.store.last_event().unwrap(), before);
    assert_eq!(crl_of(&world, &ca).der(), second.der());
}

#[test]
fn http_says_whether_a_crl_is_another() {
    let world = World::new(URL);
    let ca = world.root(ML_DSA, both());
    keep(&world);
    let path = format!("/crl/{}.crl", ca.id());
    let response = get(&world, &path);
    let etag = response.headers()["etag"].clone();
    let modified = response.headers()["last-modified"].to_str().unwrap();
    assert_eq!(modified, "Sat, 21 Nov 2026 00:00:00 GMT");
    assert_eq!(response.headers()["cache-control"], "public, no-cache");
    let headers = HeaderMap::from_iter([(http::header::IF_NONE_MATCH, etag)]);
    let again = plain(&world, &Method::GET, &path, &headers, b"");
    assert_eq!((again.status().as_u16(), again.body().len()), (304, 0));
    let leaf = world.leaf(&ca, 365);
    world.revoke(&ca, &leaf, "SUPERSEDED").unwrap();
    keep(&world);
    assert_eq!(plain(&world, &Method::GET, &path, &headers, b"").status(), 200);
    // Whatever precedes it: a proxy for a custom name may add a path of its own.
    assert_eq!(get(&world, &format!("/any/path/{}.crl", ca.id())).status(), 200);
}

#[test]
fn crls_are_renewed_and_drop_expired_certificates() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let (short, long) = (world.leaf(&ca, 5), world.leaf(&ca, 365));
    world.revoke(&ca, &short, "UNSPECIFIED").unwrap();
    world.revoke(&ca, &long, "UNSPECIFIED").unwrap();
    keep(&world);
    assert_eq!(crl_of(&world, &ca).len(), 2);
    let numbers: Vec<_> = [(4 * DAY, 2), (4 * DAY, 2), (4 * DAY, 1)]
        .into_iter()
        .map(|(later, listed)| {
            world.advance(later);
            keep(&world);
            keep(&world);
            let crl = crl_of(&world, &ca);
            assert_eq!((crl.this_update(), crl.len()), (world.now.get(), listed));
            crl.number().unwrap()
        })
        .collect();
    assert!(numbers.is_sorted());
    assert_eq!(count(&world, "GenerateCRL"), 4);
    // A CRL that a revocation caused in between is not served any more.
    let (short, other) = (world.leaf(&ca, 1), world.leaf(&ca, 365));
    world.revoke(&ca, &short, "UNSPECIFIED").unwrap();
    keep(&world);
    world.advance(2 * DAY);
    world.revoke(&ca, &other, "UNSPECIFIED").unwrap();
    keep(&world);
    world.advance(DAY);
    let third = world.leaf(&ca, 365);
    world.revoke(&ca, &third, "UNSPECIFIED").unwrap();
    keep(&world);
    assert!(crl_of(&world, &ca).entry(short.serial()).is_some());
}

#[test]
fn crl_partitions_are_renewed_separately() {
    let world = World::new(URL);
    let ca = world.root(
        EC,
        crl_only(json!({
            "CrlType": "PARTITIONED", "CustomCname": "crl.example", "CustomPath": "a/b",
        })),
    );
    keep(&world);
    assert_eq!(count(&world, "GenerateCRL"), 64);
    let leaf = world.leaf(&ca, 365);
    let url = leaf.cdp().pop().unwrap();
    let path = url.strip_prefix("http://crl.example").unwrap().to_owned();
    assert!(path.starts_with("/a/b/") && path.len() == 5 + 36 + 4, "{path}");
    let before = crl_at(&world, &ca, &path);
    assert_eq!(before.distribution_urls(), std::slice::from_ref(&url));
    let point = before.extensions().iter().find(|one| one.extn_id.to_string() == "2.5.29.28");
    assert!(point.unwrap().critical);
    world.revoke(&ca, &leaf, "CESSATION_OF_OPERATION").unwrap();
    keep(&world);
    assert_eq!(count(&world, "GenerateCRL"), 65);
    let after = crl_at(&world, &ca, &path);
    assert!(after.entry(leaf.serial()).is_some() && after.len() == 1);
    // It is in no other partition, and no partition is complete.
    assert_eq!(get(&world, &format!("/crl/{}.crl", ca.id())).status(), 404);

    // A new name: certificates that contain the old one still match.
    world.update(&ca, crl_only(json!({ "CrlType": "PARTITIONED", "CustomCname": "new.example" })));
    keep(&world);
    let urls = crl_at(&world, &ca, &path).distribution_urls();
    let file = path.rsplit('/').next().unwrap();
    assert_eq!(urls, [url, format!("http://new.example/crl/{}/{file}", ca.id())]);
    let many: Vec<_> = (0..20).map(|_| world.leaf(&ca, 365)).collect();
    for leaf in &many {
        let path = leaf.cdp()[0].strip_prefix("http://new.example").unwrap().to_owned();
        assert_eq!(crl_at(&world, &ca, &path).distribution_urls().last(), leaf.cdp().first());
    }
}

#[test]
fn crl_of_the_previous_type_is_still_published() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let old = world.leaf(&ca, 365);
    keep(&world);
    world.update(&ca, crl_only(json!({ "CrlType": "PARTITIONED" })));
    keep(&world);
    assert_eq!(count(&world, "GenerateCRL"), 1 + 65);
    let new = world.leaf(&ca, 365);
    assert_ne!(old.cdp(), new.cdp());
    world.revoke(&ca, &old, "SUPERSEDED").unwrap();
    world.revoke(&ca, &new, "SUPERSEDED").unwrap();
    keep(&world);
    let complete = crl_of(&world, &ca);
    assert!(complete.entry(old.serial()).is_some() && complete.entry(new.serial()).is_some());
    let path = new.cdp()[0].strip_prefix(URL).unwrap().to_owned();
    assert!(crl_at(&world, &ca, &path).entry(new.serial()).is_some());
}

#[test]
fn crls_go_on_while_disabled_and_end_with_the_authority() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let (one, two) = (world.leaf(&ca, 365), world.leaf(&ca, 365));
    keep(&world);
    world.set_status(&ca, "DISABLED");
    world.revoke(&ca, &one, "SUPERSEDED").unwrap();
    keep(&world);
    assert_eq!(crl_of(&world, &ca).len(), 1);
    assert!(matches!(status(&world, &ca, &one), Status::Revoked { .. }));
    assert_eq!(status(&world, &ca, &two), Status::Good);
    world.advance(4 * DAY);
    keep(&world);
    assert_eq!(crl_of(&world, &ca).this_update(), world.now.get());

    world.delete(&ca);
    let made = count(&world, "GenerateCRL");
    world.advance(5 * DAY);
    keep(&world);
    assert_eq!(count(&world, "GenerateCRL"), made);
    let request = Request::new(&ca.certificate, &two, None).unwrap();
    let unauthorized = |outcome: Result<Ocsp, OcspError>| {
        assert!(matches!(outcome, Err(OcspError::Failure(Failure::Unauthorized))));
    };
    unauthorized(post(&world, &request));
    assert_eq!(left(&world, "ca/responder-key/"), 0, "its key is gone");
    world.restore(&ca);
    keep(&world);
    assert_eq!(crl_of(&world, &ca).this_update(), world.now.get());
    assert_eq!(status(&world, &ca, &two), Status::Good);

    world.delete(&ca);
    world.advance(31 * DAY);
    world.run_housekeeping();
    keep(&world);
    assert_eq!(get(&world, &format!("/crl/{}.crl", ca.id())).status(), 404);
    assert_eq!(get(&world, &format!("/ca/{}.cer", ca.id())).status(), 404);
    // What stays is the entry by which Roles Anywhere recognises the key.
    for (prefix, expected) in
        [("ca/crl", 0), ("ca/ocsp", 1), ("ca/responder", 0), ("ca/served/", 0)]
    {
        assert_eq!(left(&world, prefix), expected, "{prefix}");
    }
    assert_eq!(left(&world, "ca/ocsp-issuer/"), 1);
    unauthorized(post(&world, &request));
}

#[test]
fn an_authority_that_has_expired_makes_no_more() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let leaf = world.leaf(&ca, 365);
    keep(&world);
    world.advance(3651 * DAY);
    keep(&world);
    let made = (count(&world, "GenerateCRL"), count(&world, "IssueOCSPResponderCertificate"));
    assert_eq!(made, (1, 1));
    assert_eq!((left(&world, "ca/crl-mark/"), left(&world, "ca/responder-")), (0, 0));
    let request = Request::new(&ca.certificate, &leaf, None).unwrap();
    assert!(matches!(post(&world, &request), Err(OcspError::Failure(Failure::Unauthorized))));
}

#[test]
fn a_crl_that_could_not_be_made_is_made_at_the_next_round() {
    let world = World::new(URL);
    let (ca, other) = (world.root(EC, both()), world.root(EC, both()));
    let leaf = world.leaf(&ca, 365);
    keep(&world);
    world.revoke(&ca, &leaf, "SUPERSEDED").unwrap();
    world.store.fail_writes(true);
    let now_ms = world.now.get() * 1000;
    assert_eq!(world.service.keep_revocation(now_ms), Err(Fault::from(StoreError::Full)));
    world.store.fail_writes(false);
    assert!(crl_of(&world, &ca).is_empty());
    keep(&world);
    assert_eq!(crl_of(&world, &ca).len(), 1);

    // Somebody revokes all the time: the CRL is made nevertheless, repeatedly.
    let leaf = world.leaf(&ca, 365);
    world.revoke(&ca, &leaf, "SUPERSEDED").unwrap();
    let marks = world.store.scan("ca/crl-mark/", "", 10).unwrap();
    let mark =
        marks.into_iter().find(|(record_key, _)| record_key.ends_with("/complete")).unwrap().0;
    world.store.conflict_on(Some(&mark));
    keep(&world);
    assert_eq!((crl_of(&world, &ca).len(), left(&world, "ca/crl-mark/")), (2, 1));
    world.store.conflict_on(None);
    keep(&world);
    assert_eq!(left(&world, "ca/crl-mark/"), 0);

    // One that cannot be made does not delay the others.
    let record_key = format!("ca/crl/{}", ca.id());
    world.write(&record_key, b"garbage");
    let (one, two) = (world.leaf(&ca, 365), world.leaf(&other, 365));
    world.revoke(&ca, &one, "SUPERSEDED").unwrap();
    world.revoke(&other, &two, "SUPERSEDED").unwrap();
    assert_eq!(world.service.keep_revocation(now_ms), Err(Fault::Forged(record_key)));
    assert_eq!(crl_of(&world, &other).len(), 1);
}

#[test]
fn only_its_own_account_revokes() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let leaf = world.leaf(&ca, 365);
    keep(&world);
    let refused = world.revoke_as(&Who::stranger(), &ca, &leaf, "SUPERSEDED").unwrap_err();
    assert!(matches!(refused.as_str(), "ResourceNotFoundException" | "AccessDeniedException"));
    keep(&world);
    assert!(crl_of(&world, &ca).is_empty());
    assert_eq!(status(&world, &ca, &leaf), Status::Good);
}

#[test]
fn ten_thousand_revocations_are_listed_in_order() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let leaf = world.leaf(&ca, 365);
    world.revoke_unissued(&ca, 10_000);
    world.revoke(&ca, &leaf, "SUPERSEDED").unwrap();
    keep(&world);
    let crl = crl_of(&world, &ca);
    assert_eq!(crl.len(), 10_001);
    assert!(crl.entry(leaf.serial()).is_some());
}

/// Buckets in memory.
#[derive(Default)]
struct Buckets {
    objects: std::sync::Mutex<std::collections::BTreeMap<String, Vec<u8>>>,
    full: std::sync::atomic::AtomicBool,
    tries: std::sync::atomic::AtomicUsize,
}

impl Sink for Buckets {
    fn put(&self, bucket: &str, key: &str, kind: &str, bytes: &[u8]) -> Result<(), String> {
        self.tries.fetch_add(1, Ordering::SeqCst);
        if self.full.load(Ordering::SeqCst) {
            return Err("there is no room".into());
        }
        assert!(matches!(kind, "application/json" | "text/csv" | "application/pkix-crl"));
        self.objects.lock().unwrap().insert(format!("{bucket}/{key}"), bytes.to_vec());
        Ok(())
    }
}

fn publish(world: &World, buckets: &Buckets) {
    world.service.publish(buckets, world.now.get() * 1000, &|| true).unwrap();
}

#[test]
fn crl_upload_is_retried_until_it_succeeds() {
    let world = World::new(URL);
    let buckets = Buckets::default();
    let ca = world.root(EC, crl_only(json!({ "S3BucketName": "crls", "CustomPath": "x/y" })));
    keep(&world);
    publish(&world, &buckets);
    let object = format!("crls/x/y/{}.crl", ca.id());
    let written = || buckets.objects.lock().unwrap().get(&object).cloned();
    assert_eq!(written().as_deref(), Some(crl_of(&world, &ca).der()));
    world.service.publish(&buckets, world.now.get() * 1000, &|| false).unwrap();
    publish(&world, &buckets);
    let tries = || buckets.tries.load(Ordering::SeqCst);
    assert_eq!((tries(), left(&world, "ca/crl-publish/")), (1, 0));

    buckets.full.store(true, Ordering::SeqCst);
    let leaf = world.leaf(&ca, 365);
    world.revoke(&ca, &leaf, "SUPERSEDED").unwrap();
    keep(&world);
    let mut after = Vec::new();
    for second in 0..100 {
        let before = tries();
        publish(&world, &buckets);
        if tries() > before {
            after.push(second);
        }
        world.advance(1);
    }
    assert_eq!(after, [0, 2, 6, 14, 30, 62]);
    buckets.full.store(false, Ordering::SeqCst);
    world.advance(30);
    publish(&world, &buckets);
    assert_eq!(written().as_deref(), Some(crl_of(&world, &ca).der()));
    assert_eq!(left(&world, "ca/crl-publish/"), 0);
}

/// Buckets where something happens while the first object is written.
struct Meanwhile<'a> {
    inner: Buckets,
    happens: &'a (dyn Fn() + Sync),
}

impl Sink for Meanwhile<'_> {
    fn put(&self, bucket: &str, key: &str, kind: &str, bytes: &[u8]) -> Result<(), String> {
        if self.inner.tries.load(Ordering::SeqCst) == 0 {
            (self.happens)();
        }
        self.inner.put(bucket, key, kind, bytes)
    }

    fn may_use(&self, account: &str, bucket: &str) -> bool {
        account == common::ACCOUNT && bucket == "crls"
    }
}

#[test]
fn a_crl_that_may_have_been_overtaken_is_written_again() {
    let world = World::new(URL);
    let ca = world.root(EC, crl_only(json!({ "S3BucketName": "crls" })));
    keep(&world);
    let record_key = format!("ca/crl-publish/{}", ca.id());
    let store = world.store.clone();
    // Another server writes one and notes it.
    let noted = || {
        let writes = vec![(record_key.clone(), None)];
        store.commit_and_wait(Transaction { writes, ..Transaction::default() }).unwrap();
    };
    let buckets = Meanwhile { inner: Buckets::default(), happens: &noted };
    let publish = || world.service.publish(&buckets, world.now.get() * 1000, &|| true).unwrap();
    publish();
    publish();
    let tries = || buckets.inner.tries.load(Ordering::SeqCst);
    assert_eq!((tries(), left(&world, "ca/crl-publish/")), (2, 0));
    publish();
    assert_eq!(tries(), 2);
}

#[test]
fn buckets_that_an_account_may_not_use_are_not_written_to() {
    let world = World::new(URL);
    let ca = world.root(EC, crl_only(json!({ "S3BucketName": "crls-of-others" })));
    keep(&world);
    let create = json!({
        "CertificateAuthorityArn": ca.arn, "S3BucketName": "reports",
        "AuditReportResponseFormat": "CSV",
    });
    let made = world.pca("CreateCertificateAuthorityAuditReport", &create).unwrap();
    let buckets = Meanwhile { inner: Buckets::default(), happens: &|| {} };
    world.service.publish(&buckets, world.now.get() * 1000, &|| true).unwrap();
    assert_eq!(buckets.inner.tries.load(Ordering::SeqCst), 0);
    assert_eq!(left(&world, "ca/crl-publish/"), 1, "it waits for the operator");
    let describe =
        json!({ "CertificateAuthorityArn": ca.arn, "AuditReportId": made["AuditReportId"] });
    let found = world.pca("DescribeCertificateAuthorityAuditReport", &describe).unwrap();
    assert_eq!(found["AuditReportStatus"], "FAILED");
}

#[test]
fn audit_reports_are_written_or_have_failed() {
    let world = World::new(URL);
    let buckets = Buckets::default();
    let ca = world.root(EC, both());
    let leaf = world.leaf(&ca, 365);
    world.revoke(&ca, &leaf, "KEY_COMPROMISE").unwrap();
    let report = |format: &str| {
        let create = json!({
            "CertificateAuthorityArn": ca.arn, "S3BucketName": "reports",
            "AuditReportResponseFormat": format,
        });
        let made = world.pca("CreateCertificateAuthorityAuditReport", &create).unwrap();
        let describe = json!({
            "CertificateAuthorityArn": ca.arn, "AuditReportId": made["AuditReportId"],
        });
        let status = || {
            let found = world.pca("DescribeCertificateAuthorityAuditReport", &describe).unwrap();
            common::text(&found["AuditReportStatus"]).to_owned()
        };
        let before = status();
        publish(&world, &buckets);
        let key = common::text(&made["S3Key"]);
        let object = buckets.objects.lock().unwrap().get(&format!("reports/{key}")).cloned();
        (before, status(), object.map(|bytes| String::from_utf8(bytes).unwrap()))
    };
    let (before, after, written) = report("JSON");
    assert_eq!((before.as_str(), after.as_str()), ("CREATING", "SUCCESS"));
    let written: Value = serde_json::from_str(&written.unwrap()).unwrap();
    let revoked = written.as_array().unwrap().iter().filter(|row| row["revokedAt"].is_string());
    assert_eq!((written.as_array().unwrap().len(), revoked.count()), (2, 1));
    let (_, after, written) = report("CSV");
    assert_eq!((after.as_str(), written.unwrap().lines().count()), ("SUCCESS", 3));
    buckets.full.store(true, Ordering::SeqCst);
    let (_, after, written) = report("CSV");
    assert_eq!((after.as_str(), written), ("FAILED", None));
}

//! CRLs, OCSP and what goes to buckets: what is served, when it changes, and what stands in the way.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use std::sync::atomic::Ordering;

mod common;
#[path = "common/pki.rs"]
mod pki;

use common::{Fixture, Who};
use http::{HeaderMap, Method, Response};
use outlast_api::service::{Plain, Sink};
use outlast_domain::Fault;
use outlast_pki::crl::Crl;
use outlast_pki::ocsp::{CertId, Failure, OcspError, Request, Response as Ocsp, Status};
use outlast_store::{Store, StoreError};
use pki::{Authority, EC, ML_DSA, World};
use proptest::prelude::*;
use serde_json::{Value, json};

const DAY: i64 = 86_400;
const URL: &str = "http://pki.example:8444";

fn both() -> Value {
    json!({
        "CrlConfiguration": { "Enabled": true, "ExpirationInDays": 8 },
        "OcspConfiguration": { "Enabled": true },
    })
}

fn crl_only(more: Value) -> Value {
    let crl = json!({ "Enabled": true, "ExpirationInDays": 8 });
    json!({ "CrlConfiguration": common::with(&crl, more) })
}

fn get(fixture: &Fixture, path: &str) -> Response<bytes::Bytes> {
    plain(fixture, &Method::GET, path, &HeaderMap::new(), b"")
}

fn plain(
    fixture: &Fixture,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    body: &[u8],
) -> Response<bytes::Bytes> {
    let now_ms = fixture.now.get() * 1000;
    fixture.service.call_plain(&Plain { method, path, headers, body, now_ms })
}

fn post(fixture: &Fixture, request: &Request) -> Result<Ocsp, OcspError> {
    let der = request.to_der().unwrap();
    let response = plain(fixture, &Method::POST, "/ocsp", &HeaderMap::new(), &der);
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "application/ocsp-response");
    Ocsp::parse(response.body())
}

/// What OCSP says of a certificate, by somebody who checks it.
#[track_caller]
fn status(fixture: &Fixture, authority: &Authority, leaf: &pki::Leaf) -> Status {
    let request = Request::new(&authority.certificate, leaf, None).unwrap();
    let response = post(fixture, &request).unwrap();
    let now = fixture.now.get();
    response.verify(&authority.certificate, leaf, None, now).unwrap().status
}

fn keep(fixture: &Fixture) {
    fixture.service.keep_revocation(fixture.now.get() * 1000).unwrap();
}

#[track_caller]
fn crl_at(fixture: &Fixture, authority: &Authority, path: &str) -> Crl {
    let response = get(fixture, path);
    assert_eq!(response.status(), 200, "{path}");
    assert_eq!(response.headers()["content-type"], "application/pkix-crl");
    let crl = Crl::parse(response.body()).unwrap();
    assert!(crl.signed_by(&authority.certificate), "{path}");
    assert_eq!(crl.unusable(), None);
    crl
}

#[track_caller]
fn crl_of(fixture: &Fixture, authority: &Authority) -> Crl {
    crl_at(fixture, authority, &format!("/crl/{}.crl", authority.id()))
}

fn count(fixture: &Fixture, event: &str) -> usize {
    fixture.events().iter().filter(|found| found["eventName"] == event).count()
}

fn left(fixture: &Fixture, prefix: &str) -> usize {
    fixture.store.scan(prefix, "", 1000).unwrap().len()
}

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
    // Whatever stands before it: a proxy for a name of its own may have a path of its own.
    assert_eq!(get(&world, &format!("/any/path/{}.crl", ca.id())).status(), 200);
}

#[test]
fn crls_are_made_before_they_end_and_what_has_expired_leaves_after_one_more() {
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
    // One that was made in between because of a revocation is not that one more.
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
fn partitions_are_made_anew_one_by_one_and_say_which_they_are() {
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
    // No other partition has it, and none is complete.
    assert_eq!(get(&world, &format!("/crl/{}.crl", ca.id())).status(), 404);

    // A new name: certificates that name the old one still match.
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
fn a_crl_of_the_other_type_goes_on_for_those_who_were_told_of_it() {
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
    world.keep_house();
    keep(&world);
    assert_eq!(get(&world, &format!("/crl/{}.crl", ca.id())).status(), 404);
    assert_eq!(get(&world, &format!("/ca/{}.cer", ca.id())).status(), 404);
    for prefix in ["ca/crl", "ca/ocsp", "ca/responder", "ca/served/"] {
        assert_eq!(left(&world, prefix), 0, "{prefix}");
    }
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
fn ocsp_tells_good_from_revoked_from_unknown_for_every_kind_of_authority() {
    for algorithms in [
        EC,
        ML_DSA,
        ("ML_DSA_87", "ML_DSA_87"),
        ("RSA_2048", "SHA256WITHRSA"),
        ("EC_secp384r1", "SHA384WITHECDSA"),
        ("SLH_DSA_SHA2_128S", "SLH_DSA_SHA2_128S"),
    ] {
        let world = World::new(URL);
        let ca = world.root(algorithms, both());
        let (good, bad) = (world.leaf(&ca, 365), world.leaf(&ca, 365));
        let request = Request::new(&ca.certificate, &good, None).unwrap();
        let early = post(&world, &request);
        assert!(matches!(early, Err(OcspError::Failure(Failure::TryLater))), "no responder yet");
        keep(&world);
        assert_eq!(status(&world, &ca, &good), Status::Good, "{algorithms:?}");
        world.revoke(&ca, &bad, "AFFILIATION_CHANGED").unwrap();
        let Status::Revoked { at, reason } = status(&world, &ca, &bad) else { panic!() };
        assert_eq!((at, reason.rfc_name), (world.now.get(), "affiliationChanged"));
        let other = world.other_serial(&ca);
        let response = post(&world, &Request { ids: vec![other], nonce: None }).unwrap();
        assert_eq!(response.responses[0].status, Status::Unknown);
        // The delegate has a certificate for that alone.
        let delegate = &response.certificates[0];
        assert!(delegate.signed_by(&ca.certificate));
        assert!(delegate.not_after() - world.now.get() <= 30 * DAY);
    }
}

#[test]
fn an_answer_is_kept_until_something_changes() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let other = world.root(EC, both());
    let (one, two) = (world.leaf(&ca, 365), world.leaf(&ca, 365));
    keep(&world);
    let signed = || count(&world, "GenerateOCSPResponse");
    for _ in 0..3 {
        assert_eq!(status(&world, &ca, &one), Status::Good);
        assert_eq!(status(&world, &ca, &two), Status::Good);
    }
    assert_eq!(signed(), 2);
    // What happens to another authority does not matter.
    let third = world.leaf(&other, 365);
    world.revoke(&other, &third, "SUPERSEDED").unwrap();
    assert_eq!((status(&world, &ca, &one), signed()), (Status::Good, 2));
    world.revoke(&ca, &one, "SUPERSEDED").unwrap();
    assert!(matches!(status(&world, &ca, &one), Status::Revoked { .. }));
    assert_eq!(signed(), 3);
    // The other one was looked at again, and not signed again.
    assert_eq!((status(&world, &ca, &two), signed()), (Status::Good, 3));
    // At the end of its time it is signed again.
    world.advance(3600);
    assert_eq!((status(&world, &ca, &two), signed()), (Status::Good, 4));
    world.update(&ca, json!({ "OcspConfiguration": { "Enabled": false } }));
    let request = Request::new(&ca.certificate, &two, None).unwrap();
    assert!(matches!(post(&world, &request), Err(OcspError::Failure(Failure::Unauthorized))));
}

#[test]
fn answers_that_are_asked_for_are_renewed_in_good_time() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let (asked, forgotten) = (world.leaf(&ca, 365), world.leaf(&ca, 365));
    keep(&world);
    status(&world, &ca, &forgotten);
    status(&world, &ca, &asked);
    world.advance(1000);
    status(&world, &ca, &asked);
    keep(&world);
    assert_eq!(count(&world, "GenerateOCSPResponse"), 2);
    world.advance(1000);
    keep(&world);
    let renewed = count(&world, "GenerateOCSPResponse");
    assert_eq!(renewed, 4, "both were asked for since they were signed");
    world.advance(1900);
    keep(&world);
    assert_eq!(count(&world, "GenerateOCSPResponse"), renewed, "and nobody asked again");
    status(&world, &ca, &asked);
    keep(&world);
    assert_eq!(count(&world, "GenerateOCSPResponse"), renewed + 1);
    let request = Request::new(&ca.certificate, &asked, None).unwrap();
    assert_eq!(post(&world, &request).unwrap().produced_at, world.now.get());
}

#[test]
fn a_nonce_comes_back_in_an_answer_of_its_own() {
    let world = World::new(URL);
    let ca = world.root(ML_DSA, both());
    let leaf = world.leaf(&ca, 365);
    keep(&world);
    status(&world, &ca, &leaf);
    for nonce in [b"0123456789abcdef".as_slice(), b"another one"] {
        let request = Request::new(&ca.certificate, &leaf, Some(nonce)).unwrap();
        let response = post(&world, &request).unwrap();
        let now = world.now.get();
        let verified = response.verify(&ca.certificate, &leaf, Some(nonce), now).unwrap();
        assert!(verified.nonce_echoed);
        let event = world.events().pop().unwrap();
        assert_eq!(event["eventName"], "GenerateOCSPResponse");
    }
    assert_eq!(count(&world, "GenerateOCSPResponse"), 3);
    let encoded =
        common::b64(&Request::new(&ca.certificate, &leaf, Some(b"n")).unwrap().to_der().unwrap());
    let response = get(&world, &format!("/ocsp/{encoded}"));
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert!(!response.headers().contains_key("etag"));
}

#[test]
fn a_get_says_how_long_it_may_be_kept() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let leaf = world.leaf(&ca, 365);
    keep(&world);
    let der = Request::new(&ca.certificate, &leaf, None).unwrap().to_der().unwrap();
    let encoded = common::b64(&der);
    let escaped = encoded.replace('/', "%2F").replace('+', "%2B").replace('=', "%3d");
    let mut bodies = Vec::new();
    // The path of a name of its own has no prefix.
    for path in [format!("/ocsp/{encoded}"), format!("/ocsp/{escaped}"), format!("/{encoded}")] {
        for later in [0, 100] {
            world.advance(later);
            let response = get(&world, &path);
            assert_eq!(response.status(), 200);
            let ocsp = Ocsp::parse(response.body()).unwrap();
            let left = ocsp.responses[0].next_update.unwrap() - world.now.get();
            let control = format!("max-age={left}, public, no-transform, must-revalidate");
            assert_eq!(response.headers()["cache-control"], control);
            assert_eq!(response.headers()["expires"], "Sat, 21 Nov 2026 01:00:00 GMT");
            assert_eq!(response.headers()["last-modified"], "Sat, 21 Nov 2026 00:00:00 GMT");
            let etag = response.headers()["etag"].clone();
            let headers = HeaderMap::from_iter([(http::header::IF_NONE_MATCH, etag)]);
            let again = plain(&world, &Method::GET, &path, &headers, b"");
            assert_eq!((again.status().as_u16(), again.body().len()), (304, 0));
            bodies.push(response.into_body());
        }
    }
    assert!(bodies.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(count(&world, "GenerateOCSPResponse"), 1);
    world.revoke(&ca, &leaf, "SUPERSEDED").unwrap();
    let response = Ocsp::parse(get(&world, &format!("/ocsp/{encoded}")).body()).unwrap();
    assert!(matches!(response.responses[0].status, Status::Revoked { .. }));
}

#[test]
fn several_certificates_of_one_authority_are_answered_together() {
    let world = World::new(URL);
    let (ca, other) = (world.root(EC, both()), world.root(EC, both()));
    let leaves: Vec<_> = (0..3).map(|_| world.leaf(&ca, 365)).collect();
    keep(&world);
    world.revoke(&ca, &leaves[1], "SUPERSEDED").unwrap();
    let id = |leaf| Request::new(&ca.certificate, leaf, None).unwrap().ids.remove(0);
    let ids: Vec<CertId> = leaves.iter().map(|leaf| id(leaf)).collect();
    let response = post(&world, &Request { ids: ids.clone(), nonce: None }).unwrap();
    let revoked = |status: &Status| matches!(status, Status::Revoked { .. });
    let statuses: Vec<_> = response.responses.iter().map(|one| revoked(&one.status)).collect();
    assert_eq!(statuses, [false, true, false]);
    let stranger = world.leaf(&other, 365);
    let stranger = Request::new(&other.certificate, &stranger, None).unwrap().ids.remove(0);
    let mixed = Request { ids: vec![ids[0].clone(), stranger], nonce: None };
    assert!(matches!(post(&world, &mixed), Err(OcspError::Failure(Failure::Unauthorized))));
}

#[test]
fn nothing_is_said_of_authorities_that_do_not_answer() {
    let world = World::new(URL);
    let ca = world.root(EC, crl_only(json!({})));
    let silent = world.root(EC, json!({}));
    let leaf = world.leaf(&ca, 365);
    keep(&world);
    let request = Request::new(&ca.certificate, &leaf, None).unwrap();
    assert!(matches!(post(&world, &request), Err(OcspError::Failure(Failure::Unauthorized))));
    assert_eq!(get(&world, &format!("/ca/{}.cer", ca.id())).body(), ca.certificate.der());
    assert_eq!(get(&world, &format!("/ca/{}.cer", silent.id())).status(), 404);
    assert_eq!(get(&world, &format!("/crl/{}.crl", silent.id())).status(), 404);
    assert!(leaf.ocsp().is_empty());
    let before = world.store.last_event().unwrap();
    for path in [
        "/",
        "/crl",
        "/crl/",
        "/ca/",
        "/ca/x.cer",
        "/crl/../x.crl",
        "/favicon.ico",
        "/Makefile",
        "//",
    ] {
        assert_eq!(get(&world, path).status(), 404, "{path}");
    }
    for method in [Method::PUT, Method::DELETE, Method::OPTIONS, Method::CONNECT] {
        assert_eq!(plain(&world, &method, "/", &HeaderMap::new(), b"").status(), 405);
    }
    assert_eq!(plain(&world, &Method::POST, "/x", &HeaderMap::new(), b"").status(), 404);
    assert_eq!(world.store.last_event().unwrap(), before, "and nothing is written");
}

#[test]
fn what_is_no_request_is_malformed() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let leaf = world.leaf(&ca, 365);
    keep(&world);
    let der = Request::new(&ca.certificate, &leaf, None).unwrap().to_der().unwrap();
    let malformed = |body: &[u8]| {
        let response = plain(&world, &Method::POST, "/", &HeaderMap::new(), body);
        assert_eq!(response.status(), 200);
        let outcome = Ocsp::parse(response.body());
        assert!(matches!(outcome, Err(OcspError::Failure(Failure::MalformedRequest))), "{body:?}");
    };
    malformed(b"");
    malformed(b"0");
    malformed(&der[..der.len() - 1]);
    malformed(&[der.as_slice(), b"0"].concat());
    malformed(&vec![0x30; 40_000]);
    let response = get(&world, "/ocsp/MEI=");
    assert!(matches!(
        Ocsp::parse(response.body()),
        Err(OcspError::Failure(Failure::MalformedRequest))
    ));
    let mut many = Request::new(&ca.certificate, &leaf, None).unwrap();
    many.ids = vec![many.ids[0].clone(); 33];
    malformed(&many.to_der().unwrap());
}

#[test]
fn responders_are_replaced_in_good_time() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let leaf = world.leaf(&ca, 3650);
    keep(&world);
    let delegate = |world: &World| {
        let request = Request::new(&ca.certificate, &leaf, None).unwrap();
        post(world, &request).unwrap().certificates.remove(0)
    };
    let first = delegate(&world);
    let key = world.store.scan("ca/responder-key/", "", 10).unwrap();
    world.advance(19 * DAY);
    keep(&world);
    assert_eq!(delegate(&world).der(), first.der());
    world.advance(DAY);
    keep(&world);
    let second = delegate(&world);
    assert_ne!(second.der(), first.der());
    assert!(second.not_after() > first.not_after());
    let new = world.store.scan("ca/responder-key/", "", 10).unwrap();
    assert!(new.len() == 1 && new[0].0 != key[0].0);
    assert_eq!(count(&world, "IssueOCSPResponderCertificate"), 2);
    assert_eq!(status(&world, &ca, &leaf), Status::Good);
}

#[test]
fn what_cannot_be_committed_is_not_answered() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let leaf = world.leaf(&ca, 365);
    keep(&world);
    let request = Request::new(&ca.certificate, &leaf, None).unwrap();
    world.store.fail_writes(true);
    assert!(matches!(post(&world, &request), Err(OcspError::Failure(Failure::InternalError))));
    world.store.fail_writes(false);
    world.store.fail_reads(true);
    assert!(matches!(post(&world, &request), Err(OcspError::Failure(Failure::InternalError))));
    assert_eq!(get(&world, &format!("/crl/{}.crl", ca.id())).status(), 503);
    world.store.fail_reads(false);
    assert_eq!(count(&world, "GenerateOCSPResponse"), 0);
    world.store.conflict_next(3);
    assert_eq!(status(&world, &ca, &leaf), Status::Good);
    assert_eq!(count(&world, "GenerateOCSPResponse"), 1);
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

    // Somebody revokes all the time: it is made all the same, and again.
    let leaf = world.leaf(&ca, 365);
    world.revoke(&ca, &leaf, "SUPERSEDED").unwrap();
    let marks = world.store.scan("ca/crl-mark/", "", 10).unwrap();
    let mark = marks.into_iter().find(|(place, _)| place.ends_with("/complete")).unwrap().0;
    world.store.conflict_on(Some(&mark));
    keep(&world);
    assert_eq!((crl_of(&world, &ca).len(), left(&world, "ca/crl-mark/")), (2, 1));
    world.store.conflict_on(None);
    keep(&world);
    assert_eq!(left(&world, "ca/crl-mark/"), 0);

    // One that cannot be made holds up no other.
    let place = format!("ca/crl/{}", ca.id());
    world.write(&place, b"garbage");
    let (one, two) = (world.leaf(&ca, 365), world.leaf(&other, 365));
    world.revoke(&ca, &one, "SUPERSEDED").unwrap();
    world.revoke(&other, &two, "SUPERSEDED").unwrap();
    assert_eq!(world.service.keep_revocation(now_ms), Err(Fault::Damaged(place)));
    assert_eq!(crl_of(&world, &other).len(), 1);
}

#[test]
fn another_server_on_the_same_database_sees_a_revocation_within_seconds() {
    let (here, there) = World::pair(URL);
    let ca = here.root(EC, both());
    let (leaf, other) = (here.leaf(&ca, 365), here.leaf(&ca, 365));
    keep(&here);
    keep(&there);
    assert_eq!(status(&there, &ca, &leaf), Status::Good);
    assert_eq!(status(&there, &ca, &other), Status::Good);
    assert_eq!(status(&there, &ca, &leaf), Status::Good);
    assert_eq!(count(&there, "GenerateOCSPResponse"), 2);
    here.revoke(&ca, &leaf, "KEY_COMPROMISE").unwrap();
    keep(&there);
    assert!(matches!(status(&there, &ca, &leaf), Status::Revoked { .. }));
    assert_eq!(status(&there, &ca, &other), Status::Good);
    assert_eq!(count(&there, "GenerateOCSPResponse"), 3);
    // Even if nothing looks for a while: what was seen long ago does not count.
    here.revoke(&ca, &other, "KEY_COMPROMISE").unwrap();
    there.advance(11);
    assert!(matches!(status(&there, &ca, &other), Status::Revoked { .. }));
    assert_eq!(crl_of(&there, &ca).len(), 1);
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
fn crls_are_written_to_their_bucket_again_and_again_until_it_takes_them() {
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_path_and_no_body_does_harm(
        path in "(/|/ocsp/|/crl/|/ca/|)[A-Za-z0-9+/=%.~_-]{0,60}(\\.crl|\\.cer|)",
        body in proptest::collection::vec(any::<u8>(), 0..200),
        post in any::<bool>(),
    ) {
        thread_local! { static WORLD: World = World::new(URL); }
        WORLD.with(|world| {
            let method = if post { Method::POST } else { Method::GET };
            let path = if post && path.len() % 2 == 0 { "/" } else { path.as_str() };
            let response = plain(world, &method, path, &HeaderMap::new(), &body);
            assert!(matches!(response.status().as_u16(), 200 | 404), "{path}");
        });
    }
}

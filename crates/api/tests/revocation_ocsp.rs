//! OCSP: what is answered, for how long, and what stands in the way.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

mod common;
#[path = "common/pki.rs"]
mod pki;

use http::{HeaderMap, Method};
use outlast_pki::ocsp::{CertId, Failure, OcspError, Request, Response as Ocsp, Status};
use outlast_store::Store;
use pki::{
    DAY, EC, ML_DSA, URL, World, both, count, crl_of, crl_only, get, keep, plain, post, status,
};
use proptest::prelude::*;
use serde_json::json;

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

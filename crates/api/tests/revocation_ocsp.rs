//! OCSP: responses, how long they are valid, and what can fail.
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

use common::authorities::{External, create};
use der::Encode;
use http::{HeaderMap, Method};
use outlast_domain::limits;
use outlast_pki::certificate::Certificate;
use outlast_pki::ocsp::{CertId, Failure, OcspError, Request, Response as Ocsp, Status};
use outlast_store::Store;
use pki::{
    DAY, EC, ML_DSA, URL, World, both, count, crl_of, crl_only, get, keep, left, plain, post,
    post_from, status,
};
use proptest::prelude::*;
use serde_json::json;

#[test]
fn ocsp_status_for_every_kind_of_authority() {
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
        // The delegate's certificate is for OCSP signing only.
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
    // Changes of another authority do not matter.
    let third = world.leaf(&other, 365);
    world.revoke(&other, &third, "SUPERSEDED").unwrap();
    assert_eq!((status(&world, &ca, &one), signed()), (Status::Good, 2));
    world.revoke(&ca, &one, "SUPERSEDED").unwrap();
    assert!(matches!(status(&world, &ca, &one), Status::Revoked { .. }));
    assert_eq!(signed(), 3);
    // The other response was checked again, and not signed again.
    assert_eq!((status(&world, &ca, &two), signed()), (Status::Good, 3));
    // At the end of its validity it is signed again.
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
        assert_eq!(event["eventName"], "AnnounceOCSPResponses");
    }
    assert_eq!(count(&world, "GenerateOCSPResponse"), 1);
    assert_eq!(count(&world, "AnnounceOCSPResponses"), 1);
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
    // The path of a custom name has no prefix.
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
fn one_ocsp_request_may_name_several_certificates() {
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
fn other_servers_see_a_revocation_within_seconds() {
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
    // Even if nothing is checked for a while: an old reading of the epoch does not count.
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

#[test]
fn what_the_memory_cannot_absorb_is_signed_so_often_only() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let (kept, fresh, other) = (world.leaf(&ca, 365), world.leaf(&ca, 365), world.leaf(&ca, 365));
    keep(&world);
    status(&world, &ca, &kept);
    let ask = |leaf: &pki::Leaf, nonce: Option<&[u8]>| {
        post(&world, &Request::new(&ca.certificate, leaf, nonce).unwrap())
    };
    let now = world.now.get();
    let signed = |nonces: std::ops::Range<i64>| {
        let echoed = |number: &i64| {
            let nonce = number.to_be_bytes();
            let request = Request::new(&ca.certificate, &kept, Some(&nonce)).unwrap();
            // Each peer has a smaller share than all together.
            let peer = [198, 51, 100, u8::try_from(number % 64).unwrap()];
            let response = post_from(&world, peer.into(), &request).unwrap();
            let verified = response.verify(&ca.certificate, &kept, Some(&nonce), world.now.get());
            verified.is_ok_and(|verified| verified.nonce_echoed)
        };
        i64::try_from(nonces.filter(echoed).count()).unwrap()
    };
    let at_once = limits::OCSP_SIGNINGS.at_once;
    assert_eq!(signed(0..at_once + 50), at_once);
    let events = world.events().len();
    // RFC 9654, section 2.1: cached responses are sent without a nonce. A peer that asks that often must not make the
    // store work.
    let read = world.store.records_read();
    let response = ask(&kept, Some(b"one too many")).unwrap();
    assert_eq!(world.store.records_read(), read, "records were read");
    assert_eq!(response.verify(&ca.certificate, &kept, None, now).unwrap().status, Status::Good);
    let key = ca.certificate.public_key().unwrap();
    let hash = outlast_pki::ocsp::cert_id::hashes().last().unwrap();
    let id = |leaf: &pki::Leaf| CertId::new(hash, ca.certificate.subject(), &key, leaf.serial());
    let both = Request { ids: vec![id(&kept).unwrap(), id(&fresh).unwrap()], nonce: None };
    let unknown = Request { ids: vec![world.other_serial(&ca)], nonce: None };
    for (outcome, expected) in
        [(post(&world, &both), Failure::TryLater), (post(&world, &unknown), Failure::Unauthorized)]
    {
        assert!(matches!(outcome, Err(OcspError::Failure(found)) if found == expected));
    }
    assert_eq!(world.events().len(), events, "nothing is added to the audit trail");
    // Each certificate's response is signed once and cached: nobody is locked out, with or without a nonce.
    assert_eq!(status(&world, &ca, &fresh), Status::Good);
    let response = ask(&other, Some(b"nothing is kept")).unwrap();
    assert_eq!(response.verify(&ca.certificate, &other, None, now).unwrap().status, Status::Good);
    world.advance(1);
    let each = limits::OCSP_SIGNINGS.per_second;
    assert_eq!(signed(1000..1000 + each + 50), each);
    // A GET with a nonce is not answered from the cache later.
    let request = Request::new(&ca.certificate, &kept, Some(b"by GET")).unwrap();
    let path = format!("/ocsp/{}", common::b64(&request.to_der().unwrap()));
    let response = get(&world, &path);
    assert_eq!(response.headers()["cache-control"], "no-store");
    world.advance(1);
    let response = Ocsp::parse(get(&world, &path).body()).unwrap();
    let verified = response.verify(&ca.certificate, &kept, Some(b"by GET"), world.now.get());
    assert!(verified.unwrap().nonce_echoed);
}

#[test]
fn failing_authority_does_not_block_renewal_for_others() {
    let world = World::new(URL);
    let (broken, sound) = (world.root(EC, both()), world.root(EC, both()));
    let leaves = [world.leaf(&broken, 365), world.leaf(&sound, 365)];
    keep(&world);
    status(&world, &broken, &leaves[0]);
    status(&world, &sound, &leaves[1]);
    let record_key =
        format!("ca/responder-certificate/{}/{}/{}", common::ACCOUNT, common::REGION, broken.id());
    world.write(&record_key, b"damaged");
    world.advance(2000);
    keep(&world);
    assert_eq!(count(&world, "GenerateOCSPResponse"), 3);
    let request = Request::new(&sound.certificate, &leaves[1], None).unwrap();
    assert_eq!(post(&world, &request).unwrap().produced_at, world.now.get());
}

#[test]
fn responder_name_must_satisfy_name_constraints() {
    let world = World::new(URL);
    let tlv =
        |tag: u8, content: &[u8]| [&[tag, u8::try_from(content.len()).unwrap()], content].concat();
    let constrained = |permitted: &str| {
        let fields = [("CommonName", permitted), ("Country", "DE"), ("Organization", "Outlast")];
        let base = outlast_pki::name::name(&fields, &[]).unwrap().to_der().unwrap();
        let subtrees = tlv(0xa0, &tlv(0x30, &tlv(0xa4, &base)));
        let id = "2.5.29.30".parse().unwrap();
        let constraints = outlast_pki::extensions::custom(id, true, &tlv(0x30, &subtrees)).unwrap();
        let external = External::root(None, world.now.get() - DAY);
        let arn = create(&world, "SUBORDINATE", "Sub", EC);
        external.certify(&world, &arn, vec![constraints], world.now.get() - DAY);
        let get = json!({ "CertificateAuthorityArn": arn });
        let found = world.0.pca("GetCertificateAuthorityCertificate", get).unwrap();
        let certificate = Certificate::parse_one(common::text(&found["Certificate"]).as_bytes());
        let ca = pki::Authority { arn, signing: EC.1.into(), certificate: certificate.unwrap() };
        world.update(&ca, json!({ "OcspConfiguration": { "Enabled": true } }));
        ca
    };
    let (within, outside) = (constrained("Sub"), constrained("Something else"));
    keep(&world);
    let ask = |ca| post(&world, &Request { ids: vec![world.other_serial(ca)], nonce: None });
    let response = ask(&within).unwrap();
    let delegate = &response.certificates[0];
    let name = |name| outlast_pki::validate::names::Comparable::new(name);
    assert!(name(delegate.subject()).is_within(&name(within.certificate.subject())));
    assert!(delegate.subject() != within.certificate.subject());
    assert!(matches!(ask(&outside), Err(OcspError::Failure(Failure::TryLater))));
    assert_eq!(left(&world, "ca/responder-certificate/"), 1);
    // It is not tried again immediately.
    let events = world.events().len();
    world.advance(3600);
    keep(&world);
    assert_eq!(count(&world, "SumUpOCSPResponses"), 1, "of what was answered above");
    assert_eq!((world.events().len() - 1, left(&world, "ca/responder-due/")), (events, 2));
}

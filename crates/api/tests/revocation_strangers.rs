//! What strangers have signed: announced before it is sent, summed up by the minute, and never uncovered by an event.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::type_complexity,
    reason = "a test may fail and print"
)]

use crate::pki;

use std::net::IpAddr;

use outlast_domain::limits;
use outlast_pki::ocsp::{Failure, OcspError, Request};
use pki::{Authority, EC, Leaf, URL, World, both, count, keep, post_from, status};
use serde_json::Value;

const ANNOUNCEMENT: &str = "AnnounceOCSPResponses";
const SUM: &str = "SumUpOCSPResponses";

fn peer(number: u64) -> IpAddr {
    let [.., a, b] = number.to_be_bytes();
    [198, 51, a, b].into()
}

/// Asks with a nonce; returns whether the response has it, that is, was signed for this question.
fn is_signed_for(world: &World, (ca, leaf): (&Authority, &Leaf), peer: IpAddr, nonce: u64) -> bool {
    let nonce = nonce.to_be_bytes();
    let request = Request::new(&ca.certificate, leaf, Some(&nonce)).unwrap();
    let response = post_from(world, peer, &request).unwrap();
    let now = world.now.get();
    response.verify(&ca.certificate, leaf, Some(&nonce), now).is_ok_and(|found| found.nonce_echoed)
}

fn named(world: &World, name: &str) -> Vec<Value> {
    world.events().into_iter().filter(|event| event["eventName"] == name).collect()
}

fn sum_of(events: &[Value], member: &str) -> u64 {
    events.iter().map(|event| event["additionalEventData"][member].as_u64().unwrap()).sum()
}

#[test]
fn ten_thousand_questions_leave_a_few_events() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let leaf = world.leaf(&ca, 365);
    keep(&world);
    status(&world, &ca, &leaf);
    let before = world.events().len();
    let mut signed = 0;
    for nonce in 0..10_000 {
        if nonce % 100 == 0 {
            world.advance(1);
            keep(&world);
            // Never more than the announcements on disk cover.
            let announced = sum_of(&named(&world, ANNOUNCEMENT), "upTo");
            assert!(signed <= announced, "{signed} of {announced}");
        }
        signed += u64::from(is_signed_for(&world, (&ca, &leaf), peer(nonce % 50), nonce));
    }
    world.service.sum_up_strangers(world.now.get() * 1000, true).unwrap();
    let (announcements, sums) = (named(&world, ANNOUNCEMENT), named(&world, SUM));
    let written = world.events().len() - before;
    println!(
        "10000 questions: {signed} signed, {written} events ({} announcements, {} sums)",
        announcements.len(),
        sums.len()
    );
    assert!(signed > 9_000, "{signed}");
    assert!(written <= 20, "{written}");
    assert_eq!(written, announcements.len() + sums.len());
    assert_eq!(sum_of(&sums, "count"), signed);
    let mut ids: Vec<_> = announcements.iter().map(|event| event["eventID"].clone()).collect();
    for sum in &sums {
        let about = &sum["additionalEventData"];
        assert_eq!(sum["resources"][0]["ARN"], ca.arn.as_str());
        let peers = about["peers"].as_array().unwrap().len();
        assert!(peers <= limits::OCSP_PEERS_NAMED && about["morePeers"] == true, "{about}");
        assert!(about["firstTime"].as_str() <= about["lastTime"].as_str(), "{about}");
        for id in about["announcements"].as_array().unwrap() {
            ids.retain(|known| known != id);
        }
    }
    assert!(ids.is_empty(), "each announcement is summed up once: {ids:?}");
    assert!(named(&world, SUM).len() == sums.len());
}

#[test]
fn a_server_that_dies_leaves_no_signature_uncovered() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let leaf = world.leaf(&ca, 365);
    keep(&world);
    status(&world, &ca, &leaf);
    // However many responses were sent: at any moment the announcements on disk cover them without a sum.
    let mut signed = 0;
    for nonce in 0..450 {
        signed += u64::from(is_signed_for(&world, (&ca, &leaf), peer(nonce), nonce));
        let announced = sum_of(&named(&world, ANNOUNCEMENT), "upTo");
        assert!(signed <= announced, "{signed} of {announced}");
    }
    assert_eq!((signed, count(&world, SUM)), (450, 0));
    assert_eq!(count(&world, ANNOUNCEMENT), 1);
}

#[test]
fn what_cannot_be_announced_is_not_sent() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let (leaf, other) = (world.leaf(&ca, 365), world.leaf(&ca, 365));
    keep(&world);
    let ask = |leaf: &Leaf, nonce: &[u8]| {
        let request = Request::new(&ca.certificate, leaf, Some(nonce)).unwrap();
        post_from(&world, peer(1), &request)
    };
    world.store.fail_writes(true);
    assert!(matches!(ask(&leaf, b"1"), Err(OcspError::Failure(Failure::InternalError))));
    assert_eq!(count(&world, ANNOUNCEMENT), 0);
    world.store.fail_writes(false);
    ask(&leaf, b"2").unwrap();
    // Announced responses may be sent while the disk is full, and none after that minute.
    world.store.fail_writes(true);
    ask(&other, b"3").unwrap();
    world.advance(limits::OCSP_WINDOW_MS / 1000);
    assert!(matches!(ask(&leaf, b"4"), Err(OcspError::Failure(Failure::InternalError))));
    assert!(world.service.sum_up_strangers(world.now.get() * 1000, false).is_err());
    world.store.fail_writes(false);
    keep(&world);
    let sums = named(&world, SUM);
    assert_eq!(sum_of(&sums, "count"), 2, "{sums:?}");
    assert_eq!(sums.len(), 1);
    // A revocation takes effect at once.
    world.revoke(&ca, &leaf, "SUPERSEDED").unwrap();
    let response = ask(&leaf, b"5").unwrap();
    let now = world.now.get();
    let verified = response.verify(&ca.certificate, &leaf, Some(b"5"), now).unwrap();
    assert!(matches!(verified.status, outlast_pki::ocsp::Status::Revoked { .. }));
    world.service.raise_alarm("a test");
    assert!(matches!(ask(&leaf, b"6"), Err(OcspError::Failure(Failure::InternalError))));
}

#[test]
fn one_peer_does_not_use_up_what_all_have() {
    let world = World::new(URL);
    let ca = world.root(EC, both());
    let leaf = world.leaf(&ca, 365);
    keep(&world);
    status(&world, &ca, &leaf);
    let own = u64::try_from(limits::OCSP_SIGNINGS_OF_PEER.at_once).unwrap();
    let of_peer = |peer: IpAddr, from: u64| {
        let nonces = (from..from + own + 30)
            .filter(|nonce| is_signed_for(&world, (&ca, &leaf), peer, *nonce));
        nonces.count() as u64
    };
    assert_eq!(of_peer(peer(1), 0), own);
    assert_eq!(of_peer(peer(2), 1000), own);
    // Addresses of one network of IPv6 are one peer.
    let mut left = own;
    for number in 0..own + 30 {
        let peer: IpAddr = format!("2001:db8::{number:x}").parse().unwrap();
        left -= u64::from(is_signed_for(&world, (&ca, &leaf), peer, 2000 + number));
    }
    assert_eq!(left, 0);
    assert!(is_signed_for(&world, (&ca, &leaf), "2001:db8:0:1::1".parse().unwrap(), 3000));
}

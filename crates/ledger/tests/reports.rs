//! Verdicts, laggards and dry runs for known clients.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common;

use common::{NOW, begun, end, handshake, offer, old_offer, open, served};
use outlast_crypto::groups::Group;
use outlast_ledger::dry_run::{
    ClientChange, Future, Reason, certificate, certificate_kinds, dry_run,
};
use outlast_ledger::known::{Ability, ability};
use outlast_ledger::report::{laggards, summary};
use outlast_ledger::tally::{Filter, Tally};
use outlast_ledger::verdict::{Cause, Verdict};
use outlast_ledger::{Handshake, Line, Outcome, plot};
use outlast_negotiate::{Mode, Offer, Refusal, Rules};

const HYBRID: u16 = 0x11ec;
const X25519: u16 = 0x001d;

fn tally(lines: Vec<Line>) -> Tally {
    let mut tally = Tally::new(Filter::default());
    lines.into_iter().for_each(|line| tally.add(line));
    tally.finish()
}

fn modern() -> Offer {
    offer(&[HYBRID, X25519], &[HYBRID, X25519])
}

/// One of each kind.
fn crowd() -> Vec<Line> {
    let retry = offer(&[X25519, HYBRID], &[X25519]);
    let classical = offer(&[X25519, 0x0017], &[X25519]);
    let draft = offer(&[0x6399, X25519], &[0x6399, X25519]);
    vec![
        open("p1"),
        begun(handshake(1, Some(modern()), served("X25519MLKEM768", false))),
        begun(handshake(2, Some(retry), served("X25519MLKEM768", true))),
        begun(handshake(3, Some(classical), served("x25519", false))),
        begun(handshake(4, Some(draft), served("x25519", false))),
        begun(handshake(5, Some(old_offer()), served("secp256r1", false))),
        begun(handshake(6, Some(modern()), Outcome::Failed("the client went away".into()))),
        begun(handshake(7, Some(old_offer()), Outcome::Refused(Refusal::Classical))),
        begun(handshake(8, None, Outcome::Failed("no ClientHello that can be read".into()))),
        Line::End(end(1, Some("arn:aws:iam::1:user/new"))),
        Line::End(end(2, Some("arn:aws:iam::1:user/new"))),
        Line::End(end(3, Some("arn:aws:iam::1:user/old"))),
        Line::End(end(4, None)),
        // The fifth is still open.
        Line::Dropped { time_ms: NOW, count: 7 },
    ]
}

#[test]
fn every_connection_has_its_verdict() {
    let tally = tally(crowd());
    let verdict = |verdict| tally.total.verdicts.get(&verdict).copied().unwrap_or_default();
    assert_eq!(verdict(Verdict::Hybrid), 1);
    assert_eq!(verdict(Verdict::HybridAfterRetry), 1);
    assert_eq!(verdict(Verdict::NeverOffers), 1);
    assert_eq!(verdict(Verdict::OldDraft), 1);
    assert_eq!(verdict(Verdict::Tls12), 1);
    assert_eq!(verdict(Verdict::Refused), 1);
    assert_eq!(verdict(Verdict::Failed), 2);
    assert_eq!(verdict(Verdict::Missed), 0);
    assert_eq!((tally.total.connections, tally.total.served(), tally.total.hybrid), (8, 5, 2));
    assert_eq!((tally.unseen.lost, tally.unseen.open, tally.unseen.beyond_limits), (7, 1, 0));
    assert_eq!(tally.total.received, 4 * 3000);
    let summary = summary(&tally);
    assert_eq!(summary.missed, 0);
    let principal =
        |name: &str| summary.principals.iter().find(|(found, _)| found == name).unwrap().1.clone();
    assert_eq!(principal("arn:aws:iam::1:user/new").hybrid, 2);
    assert_eq!(principal("arn:aws:iam::1:user/old").hybrid, 0);
    assert_eq!(principal("-").connections, 5);
    let reasons: Vec<_> = summary.reasons.iter().map(|(reason, _)| reason.as_str()).collect();
    assert!(reasons.contains(&"the client went away"), "{reasons:?}");
    serde_json::to_string(&summary).unwrap();
}

#[test]
fn downgraded_clients_are_found_with_the_cause() {
    let missed = |policy: &str, mode: &str, offer: Offer| {
        let handshake = Handshake {
            policy: policy.into(),
            mode: mode.into(),
            ..handshake(1, Some(offer), served("x25519", false))
        };
        let tally = tally(vec![
            open("p"),
            begun(handshake),
            begun(common::handshake(2, Some(modern()), served("X25519MLKEM768", false))),
            begun(common::handshake(3, Some(modern()), served("X25519MLKEM768", false))),
        ]);
        let summary = summary(&tally);
        assert_eq!(summary.missed, 1);
        // It comes first, however many others there are.
        assert_eq!(summary.clients[0].verdict, Verdict::Missed);
        summary.clients[0].causes.keys().copied().next().unwrap()
    };
    assert_eq!(missed("2026-11", "prefer", modern()), Cause::Defect);
    assert_eq!(missed("2026-11", "off", modern()), Cause::Mode);
    assert_eq!(missed("2026-11", "allow", modern()), Cause::Mode);
    assert_eq!(missed("classical-2026-11", "prefer", modern()), Cause::Policy);
    assert_eq!(missed("bsi-2026-11", "prefer", modern()), Cause::Policy);
}

#[test]
fn what_the_operator_has_chosen_is_counted_and_is_no_defect() {
    let counted = |policy: &str, mode: &str| {
        let one = handshake(1, Some(modern()), served("x25519", false));
        let one = Handshake { policy: policy.into(), mode: mode.into(), ..one };
        let summary = summary(&tally(vec![open("p"), begun(one)]));
        (summary.missed, summary.defects, summary.causes)
    };
    assert_eq!(counted("2026-11", "prefer"), (1, 1, [(Cause::Defect, 1)].into()));
    assert_eq!(counted("2026-11", "off"), (1, 0, [(Cause::Mode, 1)].into()));
    assert_eq!(counted("bsi-2026-11", "prefer"), (1, 0, [(Cause::Policy, 1)].into()));
}

#[test]
fn groups_that_are_not_served_are_laggards_and_not_missed() {
    for code in [0x0200, 0x11ee] {
        let one = handshake(1, Some(offer(&[code, X25519], &[X25519])), served("x25519", false));
        let tally = tally(vec![open("p"), begun(one)]);
        assert_eq!(summary(&tally).missed, 0);
        let laggards = laggards(&tally);
        assert_eq!(laggards[0].client.fingerprint.ability, Ability::Unserved);
        assert_eq!(laggards[0].client.verdict, Verdict::Unserved);
        assert!(!laggards[0].hint.is_empty());
    }
}

#[test]
fn strangers_whose_handshakes_fail_take_no_room_from_clients() {
    let made_up = |number: u16| {
        let mut offer = offer(&[X25519, 0x0017], &[X25519]);
        offer.suites.push(number);
        offer
    };
    let mut lines = vec![open("p")];
    for number in 0..3000 {
        let failed = Outcome::Failed("the client went away".into());
        lines.push(begun(handshake(u64::from(number), Some(made_up(number)), failed)));
    }
    lines.push(begun(handshake(9000, Some(modern()), served("X25519MLKEM768", false))));
    lines.push(begun(handshake(9001, Some(made_up(2999)), served("x25519", false))));
    let tally = tally(lines);
    assert_eq!(tally.unseen.beyond_limits, 0);
    assert_eq!(tally.clients.len(), 1000 + 1 + 2);
    let others = tally.clients.iter().map(|client| client.counts.failed).max();
    assert_eq!(others, Some(2000));
    // Only clients that were served are laggards.
    assert_eq!(laggards(&tally).len(), 1);
    let outcome = dry_run(&tally, &Rules::default(), &[]);
    assert_eq!((outcome.not_replayed, outcome.unknown, outcome.breaks), (2000, 0, 0));
}

#[test]
fn every_post_quantum_group_makes_a_client_able() {
    for row in outlast_crypto::groups::GROUPS {
        let expected =
            if row.strength.is_post_quantum() { Ability::PostQuantum } else { Ability::Classical };
        assert_eq!(ability(&offer(&[X25519, row.code_point], &[X25519])), expected, "{}", row.name);
    }
    // Without TLS 1.3 such a group does not count.
    assert_eq!(ability(&Offer { groups: vec![HYBRID], ..old_offer() }), Ability::Tls12);
}

#[test]
fn laggards_are_those_who_never_offer_it_each_with_a_hint() {
    let tally = tally(crowd());
    let laggards = laggards(&tally);
    let best: Vec<_> = laggards.iter().map(|one| one.client.fingerprint.ability).collect();
    assert_eq!(best.len(), 3);
    for ability in [Ability::Classical, Ability::OldDraft, Ability::Tls12] {
        assert!(best.contains(&ability), "{best:?}");
    }
    assert!(laggards.iter().all(|one| !one.hint.is_empty()));
    assert!(laggards.iter().all(|one| one.client.networks == ["192.0.2.0/24"]));
}

#[test]
fn software_is_one_client_whatever_grease_order_and_session() {
    let chromium = |grease: u16, extensions: &[u16], resumes| {
        let mut offer = offer(&[grease, HYBRID, X25519, 0x0017, 0x0018], &[grease, HYBRID, X25519]);
        offer.extensions = extensions.to_vec();
        offer.resumes = resumes;
        offer
    };
    let lines = [
        chromium(0x0a0a, &[0xdada, 10, 43, 51, 0], false),
        chromium(0xfafa, &[51, 43, 10, 0, 0x1a1a], false),
        chromium(0x3a3a, &[51, 43, 10, 41], true),
    ];
    let lines = lines.into_iter().zip(1..).map(|(offer, connection)| {
        begun(handshake(connection, Some(offer), served("X25519MLKEM768", false)))
    });
    let tally = tally(lines.collect());
    assert_eq!(tally.clients.len(), 1);
    assert_eq!(tally.offers[0].software.unwrap().name, "Chromium 131 or newer");
}

#[test]
fn filters_go_by_time_and_listener() {
    let at = |connection, time_ms, listener: &str| {
        begun(Handshake {
            time_ms,
            listener: listener.into(),
            ..handshake(connection, Some(modern()), served("X25519MLKEM768", false))
        })
    };
    let count = |filter: Filter| {
        let mut tally = Tally::new(filter);
        for (connection, time) in [NOW - 10, NOW, NOW + 10].into_iter().enumerate() {
            tally.add(at(connection as u64, time, "api"));
            tally.add(at(100 + connection as u64, time, "proxy"));
        }
        tally.finish().total.connections
    };
    assert_eq!(count(Filter::default()), 6);
    assert_eq!(count(Filter { since_ms: Some(NOW), ..Filter::default() }), 4);
    assert_eq!(count(Filter { until_ms: Some(NOW), ..Filter::default() }), 2);
    assert_eq!(count(Filter { listener: Some("api".into()), ..Filter::default() }), 3);
}

#[test]
fn connections_of_different_processes_are_not_mixed_up() {
    let one = || begun(handshake(1, Some(modern()), served("X25519MLKEM768", false)));
    let tally = tally(vec![
        open("p1"),
        one(),
        open("p2"),
        one(),
        Line::End(end(1, Some("second"))),
        open("p2"),
        begun(handshake(2, Some(modern()), served("X25519MLKEM768", false))),
        open("p2"),
        Line::End(end(2, Some("second"))),
    ]);
    let who: Vec<_> = tally.clients.iter().map(|client| client.who.as_deref()).collect();
    assert_eq!(who.len(), 2);
    assert_eq!(tally.unseen.open, 1);
    let second = tally.clients.iter().find(|client| client.who.is_some()).unwrap();
    assert_eq!(second.counts.connections, 2);
}

#[test]
fn a_dry_run_says_who_breaks_and_why() {
    let tally = tally(crowd());
    let rules = Rules { mode: Mode::Require, ..Rules::default() };
    let outcome = dry_run(&tally, &rules, &[]);
    // The third, the fourth and the fifth; the seventh was refused anyway.
    assert_eq!((outcome.breaks, outcome.mends), (3, 0));
    assert_eq!(outcome.not_replayed, 1);
    assert_eq!(outcome.certificates["api"], ["ecdsa-p256"]);
    let reason = |ability: Ability| {
        let found = outcome
            .clients
            .iter()
            .find(|change| change.client.fingerprint.ability == ability && change.breaks > 0);
        let Future::Refused { reason, .. } = &found.unwrap().future else { panic!("served") };
        *reason
    };
    assert_eq!(reason(Ability::Classical), Reason::Tls(Refusal::Classical));
    assert_eq!(reason(Ability::OldDraft), Reason::Tls(Refusal::Classical));
    assert_eq!(reason(Ability::Tls12), Reason::Tls(Refusal::Version));
    assert!(outcome.clients[0].breaks > 0, "who breaks comes first");
    serde_json::to_string(&outcome).unwrap();
}

#[test]
fn a_dry_run_counts_groups_and_round_trips() {
    let tally = tally(crowd());
    let same = dry_run(&tally, &Rules::default(), &[]);
    // Under the recorded policy nothing changes, except that TLS 1.2 clients that were refused would be served.
    assert_eq!((same.breaks, same.more_round_trips, same.fewer_round_trips), (0, 0, 0));
    assert_eq!(same.mends, 1);
    let rules = Rules::named("classical-2026-11").unwrap();
    let classical = dry_run(&tally, &rules, &[]);
    assert_eq!(classical.hybrid, 0);
    assert_eq!(classical.changes_group, same.changes_group + 2);
    assert_eq!(classical.fewer_round_trips, 1, "nobody is asked for a share any more");
    // A certificate that old clients cannot verify.
    let ml_dsa = certificate("ml-dsa-65").unwrap();
    let outcome = dry_run(&tally, &Rules::default(), &[ml_dsa]);
    assert_eq!(outcome.breaks, 1, "TLS 1.2 has no ML-DSA");
}

#[test]
fn a_dry_run_counts_what_it_replays_and_names_useless_certificates() {
    let tally = tally(crowd());
    let outcome = dry_run(&tally, &Rules::default(), &[]);
    assert_eq!(outcome.replayed + outcome.not_replayed, tally.total.connections);
    let of_clients =
        |count: fn(&ClientChange) -> u64| outcome.clients.iter().map(count).sum::<u64>();
    assert_eq!(outcome.replayed, of_clients(|one| one.client.counts.connections));
    assert_eq!(outcome.replayed_served, of_clients(|one| one.client.counts.served()));
    assert!(outcome.useless_certificates.is_empty());
    let cnsa = Rules::named("cnsa2-2026-11").unwrap();
    assert_eq!(dry_run(&tally, &cnsa, &[]).useless_certificates, ["api"]);
    let right = certificate("ml-dsa-87").unwrap();
    assert!(dry_run(&tally, &cnsa, &[right]).useless_certificates.is_empty());
}

#[test]
fn a_group_that_is_not_supported_here_is_not_called_classical() {
    let one = handshake(1, Some(offer(&[0x0200], &[0x0200])), Outcome::Refused(Refusal::Group));
    let tally = tally(vec![open("p"), begun(one)]);
    let rules = Rules { mode: Mode::Require, ..Rules::default() };
    let outcome = dry_run(&tally, &rules, &[]);
    let Future::Refused { reason, explanation } = &outcome.clients[0].future else {
        panic!("served")
    };
    assert_eq!(*reason, Reason::Tls(Refusal::Group));
    assert!(explanation.contains("not supported here"), "{explanation}");
    assert_eq!(laggards(&tally)[0].client.fingerprint.ability, Ability::Unserved);
}

#[test]
fn a_hello_without_groups_is_readable() {
    let plain = Offer { groups: Vec::new(), ..old_offer() };
    let lines = vec![
        open("p"),
        begun(handshake(1, Some(plain), Outcome::Refused(Refusal::Group))),
        begun(handshake(2, None, Outcome::Failed("no ClientHello".into()))),
    ];
    let summary = summary(&tally(lines));
    let mut labels: Vec<_> =
        summary.fingerprints.iter().map(|(fingerprint, _)| fingerprint.label()).collect();
    labels.sort();
    assert_eq!(labels, ["a ClientHello that names no groups", "no readable ClientHello"]);
}

#[test]
fn the_summary_names_the_newest_policy() {
    let at = |connection, time_ms, policy: &str| {
        let one = handshake(connection, Some(modern()), served("X25519MLKEM768", false));
        begun(Handshake { time_ms, policy: policy.into(), ..one })
    };
    let lines = vec![open("p"), at(1, NOW + 5, "bsi-2026-11"), at(2, NOW, "2026-11")];
    assert_eq!(summary(&tally(lines)).newest.unwrap().policy, "bsi-2026-11");
}

#[test]
fn every_kind_of_certificate_can_sign() {
    for kind in certificate_kinds() {
        assert!(!certificate(kind).unwrap().schemes.is_empty(), "{kind}");
    }
    assert!(certificate("dsa").is_none());
    assert!(certificate("rsa-2048").is_some());
}

#[test]
fn chain_signatures_follow_the_key_kind() {
    for kind in certificate_kinds().filter(|kind| *kind != "rsa") {
        let facts = certificate(kind).unwrap();
        assert_eq!(facts.chain, facts.schemes, "{kind}");
    }
    let shown = |connection, kind: &str| {
        let Outcome::Served(mut served) = served("X25519MLKEM768", false) else { panic!() };
        served.certificate = Some(kind.into());
        begun(handshake(connection, Some(modern()), Outcome::Served(served)))
    };
    let lines = vec![open("p"), shown(1, "ecdsa-p256"), shown(2, "ml-dsa-65"), shown(3, "sm2")];
    let outcome = dry_run(&tally(lines), &Rules::default(), &[]);
    assert_eq!(outcome.certificates["api"], ["ml-dsa-65", "ecdsa-p256"]);
    assert_eq!(outcome.unknown_certificates["api"], ["sm2"]);
}

#[test]
fn the_picture_has_each_hour_and_needs_a_connection() {
    assert!(plot::svg(&tally(Vec::new())).is_none());
    let mut lines = crowd();
    for (connection, hour) in (100..).zip(0..400) {
        lines.push(begun(Handshake {
            time_ms: NOW - hour * 3_600_000,
            ..handshake(connection, Some(modern()), served("X25519MLKEM768", false))
        }));
    }
    let picture = plot::svg(&tally(lines)).unwrap();
    assert!(picture.contains("by day") && picture.contains("2026-11-21"));
    assert!(picture.ends_with("</svg>\n"));
    let picture = plot::svg(&tally(crowd())).unwrap();
    assert!(picture.contains("by hour") && picture.contains("11-21 12:00"));
}

#[test]
fn groups_have_names() {
    for (code, name) in [(0x11ec, "X25519MLKEM768"), (0x6399, "X25519Kyber768Draft00")] {
        assert_eq!(outlast_ledger::known::group_name(code), name);
    }
    assert_eq!(outlast_ledger::known::group_name(0x7777), "0x7777");
    assert!(Group::by_code_point(0x11ec).is_some());
}

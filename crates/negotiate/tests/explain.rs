//! Explanations and differences of every policy, and that they are true.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use outlast_crypto::groups::GROUPS;
use outlast_negotiate::catalogue::POLICIES;
use outlast_negotiate::crowd::CROWD;
use outlast_negotiate::diff::diff;
use outlast_negotiate::explain::{every_certificate, explain, outcome};
use outlast_negotiate::offer::{Collected, collect};
use outlast_negotiate::{Mode, Offer, Rules, SecurityPolicy, Transport};

fn captured(hex: &str) -> Offer {
    let records = hex::decode(hex.split_whitespace().collect::<String>()).unwrap();
    let Collected::Complete(hello) = collect(&records) else { panic!("no ClientHello") };
    Offer::parse(&hello, Transport::Tcp).unwrap()
}

fn client(name: &str) -> Offer {
    CROWD.iter().find(|row| row.name.starts_with(name)).unwrap().offer()
}

#[test]
fn usual_clients_offer_what_was_captured_of_them() {
    for (name, hex) in [
        ("OpenSSL 3.5 or newer", include_str!("data/openssl-3.5.hex")),
        ("OpenSSL 3.0", include_str!("data/openssl-3.0.hex")),
        ("client of TLS 1.2", include_str!("data/openssl-3.0-tls12.hex")),
    ] {
        let (row, captured) = (client(name), captured(hex));
        assert_eq!(row.groups, captured.groups, "{name}");
        assert_eq!(row.shares, captured.shares, "{name}");
        // SHA-1 and SHA-224 do not matter for any policy.
        assert!(row.schemes.iter().all(|code| captured.schemes.contains(code)), "{name}");
        let tls12_only = captured.versions == [0x0303];
        let speaks = |code: &&u16| !tls12_only || **code < 0x1300 || **code > 0x13ff;
        assert!(
            row.suites.iter().filter(speaks).all(|code| captured.suites.contains(code)),
            "{name}"
        );
    }
    for (index, row) in CROWD.iter().enumerate() {
        assert!(!CROWD[..index].iter().any(|other| other.name == row.name), "{}", row.name);
    }
}

#[test]
fn every_group_has_its_own_reason() {
    let everything = SecurityPolicy::by_name("legacy-2026-11").unwrap();
    let found = explain(&Rules { policy: everything, mode: Mode::Prefer });
    assert_eq!(found.groups.len(), GROUPS.len());
    for reason in &found.groups {
        assert!(!reason.why.starts_with("a further group"), "{}", reason.group);
        let same = |other: &&_| {
            let other: &&outlast_negotiate::explain::Reason = other;
            other.why.split(';').next() == reason.why.split(';').next()
        };
        assert_eq!(found.groups.iter().filter(same).count(), 1, "{}", reason.group);
    }
}

#[test]
fn what_is_explained_of_clients_is_what_becomes_of_them() {
    for policy in POLICIES {
        for mode in Mode::ALL {
            let rules = Rules { policy, mode };
            let found = explain(&rules);
            assert_eq!(found.clients.len(), if policy.has_tls() { CROWD.len() } else { 0 });
            for (fare, row) in found.clients.iter().zip(CROWD) {
                let outcome = outcome(&rules, &row.offer(), &every_certificate());
                assert_eq!(fare.served, outcome.served, "{} {mode} {}", policy.name, row.name);
                assert_eq!(fare.post_quantum, outcome.post_quantum);
                assert_eq!(outcome.alert.is_some(), !outcome.served);
                assert!(
                    outcome.steps.iter().all(|step| step.ends_with('.')),
                    "{:?}",
                    outcome.steps
                );
                assert!(outcome.steps.len() >= 3);
                if fare.served {
                    assert!(fare.outcome.contains(outcome.group.unwrap()));
                    assert!(outcome.steps.iter().any(|step| step.contains(outcome.suite.unwrap())));
                } else {
                    assert!(fare.outcome.starts_with("refused: "));
                }
            }
            assert!(!found.meaning.is_empty());
            assert!(found.meaning.iter().all(|sentence| sentence.ends_with('.')));
        }
    }
}

#[test]
fn a_policy_differs_from_all_others_but_not_from_itself() {
    for from in POLICIES {
        for to in POLICIES {
            let there = diff(from, to);
            let back = diff(to, from);
            if from.name == to.name {
                assert!(there.is_empty() && there.clients.is_empty());
                continue;
            }
            // Rows that only CBC or SHA-1 told apart are the same here.
            let same = from.lists() == to.lists() && from.mode == to.mode;
            assert_eq!(there.is_empty(), same, "{} {}", from.name, to.name);
            for (list, other) in there.lists.iter().zip(&back.lists) {
                assert_eq!(list.removed, other.added);
                assert_eq!(list.added, other.removed);
                assert_eq!(list.reordered.is_some(), other.reordered.is_some());
            }
            for (change, other) in there.clients.iter().zip(&back.clients) {
                assert_eq!((&change.before, &change.after), (&other.after, &other.before));
                assert!(!(change.lost && other.lost));
            }
        }
    }
}

#[test]
fn a_refusal_names_the_modes_that_would_serve() {
    let offer = client("OpenSSL 3.0");
    let policy = SecurityPolicy::by_name("2026-11").unwrap();
    let refused = outcome(&Rules { policy, mode: Mode::Require }, &offer, &every_certificate());
    assert!(!refused.served);
    let last = refused.steps.last().unwrap();
    assert_eq!(last, "It would be served in the mode prefer or allow or off.");
    let policy = SecurityPolicy::by_name("2026-11-require-pq").unwrap();
    let refused = outcome(&Rules { policy, mode: Mode::Prefer }, &offer, &every_certificate());
    assert!(!refused.served && !refused.steps.iter().any(|step| step.contains("would be served")));
}

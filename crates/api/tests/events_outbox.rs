//! The outbox: leases, repeats, limits, filters; and a store that fails.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;
use crate::events::{listen, told};

use std::collections::BTreeSet;

use common::{Fixture, NOW};
use outlast_api::service::Reading;
use outlast_api::service::events::Deliveries;
use outlast_domain::limits;
use outlast_domain::settings::{EventTarget, Events, Settings};
use outlast_store::Store;
use serde_json::json;

const LEASE_MS: i64 = 40_000;
const DAY: i64 = 86_400;

fn schedule(fixture: &Fixture) -> String {
    let key = fixture.key(json!({}));
    fixture.kms("ScheduleKeyDeletion", json!({ "KeyId": key })).unwrap();
    key
}

fn take(fixture: &Fixture, target: &str) -> Deliveries {
    let now_ms = fixture.now.get() * 1000;
    fixture.service.event_deliveries(target, "", 10, LEASE_MS, now_ms).unwrap()
}

fn note(fixture: &Fixture, taken: Deliveries, is_delivered: bool) {
    let outcomes: Vec<_> = taken.now.into_iter().map(|one| (one, is_delivered)).collect();
    fixture.service.event_outcomes(&outcomes, fixture.now.get() * 1000).unwrap();
}

fn left(fixture: &Fixture) -> usize {
    fixture.store.scan("events/outbox/", "", 100_000).unwrap().len()
}

fn target(name: &str, sources: &[&str]) -> EventTarget {
    let sources = sources.iter().map(|source| (*source).to_owned()).collect::<BTreeSet<_>>();
    EventTarget { name: name.to_owned(), sources, ..EventTarget::default() }
}

fn targets(fixture: &Fixture, targets: Vec<EventTarget>) {
    let events = Events { targets, ..Events::default() };
    let before = Settings::clone(&fixture.service.settings());
    fixture.service.set_settings(Settings { events, ..before });
}

#[test]
fn a_delivery_is_made_again_with_the_same_id_until_it_succeeds() {
    let fixture = Fixture::new();
    listen(&fixture);
    schedule(&fixture);
    let first = take(&fixture, "t");
    let id = first.now[0].event.id.clone();
    assert!(take(&fixture, "t").now.is_empty(), "a lease holds it");
    // The server that held the lease died.
    fixture.advance(LEASE_MS / 1000);
    let second = take(&fixture, "t");
    assert_eq!((&second.now[0].event.id, second.now[0].failures), (&id, 0));
    // The first one comes back too late: what it says counts no more.
    note(&fixture, first, true);
    assert_eq!(left(&fixture), 1);
    note(&fixture, second, false);
    assert!(take(&fixture, "t").now.is_empty(), "not at once");
    for failures in 1..5 {
        fixture.advance(1 << (failures - 1));
        let again = take(&fixture, "t");
        assert_eq!((&again.now[0].event.id, again.now[0].failures), (&id, failures));
        note(&fixture, again, false);
    }
    fixture.advance(16);
    note(&fixture, take(&fixture, "t"), true);
    assert_eq!(left(&fixture), 0);
}

#[test]
fn what_is_a_day_old_is_given_up_unless_the_clock_is_wrong() {
    let fixture = Fixture::new();
    listen(&fixture);
    schedule(&fixture);
    note(&fixture, take(&fixture, "t"), false);
    fixture.advance(DAY - 1);
    let taken = take(&fixture, "t");
    assert_eq!((taken.now.len(), taken.given_up.len()), (1, 0));
    note(&fixture, taken, false);
    fixture.advance(1000);
    // A clock that has jumped gives nothing up.
    let reading =
        |ahead_ms| Reading { wall_ms: fixture.now.get() * 1000 + ahead_ms, monotonic_ms: 0 };
    fixture.service.trust_clock();
    fixture.service.hold_clock(reading(0)).unwrap();
    fixture.service.hold_clock(reading(3_600_000)).unwrap_err();
    let taken = take(&fixture, "t");
    assert_eq!((taken.now.len(), taken.given_up.len()), (1, 0));
    note(&fixture, taken, false);
    fixture.service.hold_clock(reading(0)).unwrap();
    fixture.advance(100);
    let taken = take(&fixture, "t");
    assert_eq!((taken.now.len(), taken.given_up.len(), left(&fixture)), (0, 1, 0));
}

#[test]
fn targets_get_what_they_want_and_do_not_wait_for_each_other() {
    let fixture = Fixture::new();
    targets(
        &fixture,
        vec![target("all", &[]), target("kms", &["aws.kms"]), target("acm", &["aws.acm"])],
    );
    schedule(&fixture);
    let (all, kms) = (take(&fixture, "all"), take(&fixture, "kms"));
    assert!(take(&fixture, "acm").now.is_empty());
    assert_eq!(all.now[0].event, kms.now[0].event, "one id for all targets");
    note(&fixture, kms, true);
    assert_eq!(left(&fixture), 1);
    note(&fixture, all, true);
    // Without targets nothing is kept, and nothing is noted.
    targets(&fixture, Vec::new());
    schedule(&fixture);
    fixture.advance(DAY);
    fixture.run_housekeeping();
    assert_eq!(left(&fixture), 0);
}

#[test]
fn events_for_a_target_that_is_gone_are_forgotten() {
    let fixture = Fixture::new();
    targets(&fixture, vec![target("gone", &[])]);
    schedule(&fixture);
    targets(&fixture, Vec::new());
    fixture.advance(DAY);
    fixture.run_housekeeping();
    assert_eq!(left(&fixture), 1);
    fixture.advance(4000);
    fixture.run_housekeeping();
    assert_eq!(left(&fixture), 0);
}

/// The store is written to directly: this many requests would take minutes.
#[test]
fn the_oldest_of_too_many_are_given_up() {
    let fixture = Fixture::new();
    listen(&fixture);
    schedule(&fixture);
    let (record_key, _) = fixture.store.scan("events/outbox/t/", "", 1).unwrap().remove(0);
    let record = fixture.record(&record_key);
    let excess = 600;
    let most = usize::try_from(limits::MAX_WAITING_EVENTS).unwrap();
    for chunk in (1..most + excess).collect::<Vec<_>>().chunks(1000) {
        let mut work = fixture.service.work(NOW * 1000);
        for number in chunk {
            work.create(&format!("events/outbox/t/ffffffff-0000-7000-8000-{number:012}"), &record)
                .unwrap();
        }
        fixture.store.commit_and_wait(work.into_transaction(Vec::new())).unwrap();
    }
    let now_ms = NOW * 1000;
    assert_eq!(fixture.service.waiting_events("t", now_ms).unwrap(), (most + excess) as u64);
    // Those that are being delivered stay.
    let held = take(&fixture, "t");
    assert_eq!(held.now.len(), 10);
    assert_eq!(fixture.service.trim_events("t", now_ms).unwrap(), excess - 10);
    assert_eq!(fixture.service.trim_events("t", now_ms).unwrap(), 0);
    assert_eq!(fixture.service.waiting_events("t", now_ms).unwrap(), (most + 10) as u64);
}

#[test]
fn an_event_is_written_with_its_cause_or_not_at_all() {
    let fixture = Fixture::new();
    listen(&fixture);
    let key = fixture.key(json!({}));
    fixture.store.fail_writes_after(Some(0));
    fixture.kms("ScheduleKeyDeletion", json!({ "KeyId": key })).unwrap_err();
    fixture.store.fail_writes_after(None);
    assert_eq!((left(&fixture), fixture.state(&key)), (0, "Enabled".to_owned()));
    fixture.kms("ScheduleKeyDeletion", json!({ "KeyId": key })).unwrap();
    assert_eq!(told(&fixture).len(), 1);
    // A round of housekeeping that dies tells again, and what was told is not told twice.
    fixture.advance(DAY);
    fixture.store.fail_writes_after(Some(0));
    fixture.service.run_housekeeping(fixture.now.get() * 1000).unwrap_err();
    fixture.store.fail_writes_after(None);
    assert_eq!(left(&fixture), 0);
    fixture.run_housekeeping();
    fixture.run_housekeeping();
    assert_eq!(told(&fixture).len(), 1);
}

#[test]
fn a_damaged_event_does_not_hold_up_the_others() {
    let fixture = Fixture::new();
    listen(&fixture);
    schedule(&fixture);
    fixture.put_record("events/outbox/t/00000000", &json!({ "event": "garbage" }));
    assert_eq!(take(&fixture, "t").now.len(), 1);
}

//! A wrong clock erases nothing: neither one that is wrong from the start nor one that jumps, with a database's clock
//! or without.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test may fail and print"
)]

use crate::common;

use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use common::{ACCESS_KEY, ACCOUNT, Fixture, HOST, SECRET, Who, b64, code, text};
use outlast_api::aws::Operation;
use outlast_api::ops::kms::{cancel_key_deletion, create_key, schedule_key_deletion};
use outlast_api::service::{Reading, Request, Service};
use outlast_crypto::Secret;
use outlast_crypto::wrap::WrappingAlgorithm;
use outlast_domain::seal::{RootKey, SoftwareKek};
use outlast_domain::{Fault, audit, identity, limits};
use outlast_store::postgres::PostgresStore;
use outlast_store::sqlite::SqliteStore;
use outlast_store::testing::Postgres;
use outlast_store::{Item, Store};
use serde_json::{Value, json};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 86_400_000;

fn system_ms() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

/// All records of a store.
fn items(store: &dyn Store) -> Vec<Item> {
    let mut items = Vec::new();
    let taken = store.snapshot(&mut |item| {
        items.push(item);
        Ok(())
    });
    taken.unwrap();
    items
}

/// A server on a store, with the root key of the test.
fn server(store: Arc<dyn Store>, key: &[u8]) -> Service {
    let kek = SoftwareKek::from_key(Secret::new(key.to_vec())).unwrap();
    Service::new(store, RootKey::new(Box::new(kek)))
}

fn establish(service: &Service, now_ms: i64) {
    let mut work = service.work(now_ms);
    audit::establish(&mut work, "log.example/clock-tests").unwrap();
    let secret = Secret::new(SECRET.to_vec());
    let id = Some(ACCESS_KEY.to_owned());
    identity::create_administrator(&mut work, ACCOUNT, "admin", id, &secret).unwrap();
    service.store().commit_and_wait(work.into_first_transaction()).unwrap();
}

fn call<O: Operation>(service: &Service, now_ms: i64, input: Value) -> O::Output {
    let client = common::client(ACCESS_KEY, "eu-west-1");
    let input = serde_json::from_value(input).unwrap();
    let request = client.request::<O>(&input, now_ms / 1000).unwrap();
    let response = service.call(&Request {
        method: request.method(),
        path: request.uri().path(),
        query: "",
        host: HOST,
        headers: request.headers(),
        body: request.body(),
        source_ip: "127.0.0.1",
        tls: None,
        now_ms,
        request_id: "00000000-0000-0000-0000-000000000000",
    });
    outlast_api::client::Client::response::<O>(response.status, &response.body).unwrap()
}

/// Schedules a key's deletion in seven days, and returns its id.
fn scheduled(service: &Service, now_ms: i64) -> String {
    let key = call::<create_key::CreateKey>(service, now_ms, json!({})).key_metadata.key_id;
    let request = json!({ "KeyId": key, "PendingWindowInDays": 7 });
    call::<schedule_key_deletion::ScheduleKeyDeletion>(service, now_ms, request);
    key
}

fn names(service: &Service, reading: Reading) -> Vec<&'static str> {
    service.look(reading).iter().map(|problem| problem.reason.name).collect()
}

#[test]
fn second_server_with_fast_clock_erases_nothing() {
    let Some(postgres) = Postgres::shared() else { return };
    let url = postgres.new_database();
    let open = || server(Arc::new(PostgresStore::open(&url).unwrap()), &[7; 32]);
    let (first, second) = (open(), open());
    establish(&first, system_ms());
    let key = scheduled(&first, system_ms());
    let store = PostgresStore::open(&url).unwrap();
    let before = items(&store);
    for (ahead_ms, what) in [
        (8 * DAY_MS + MINUTE_MS, "it is 8 d 0 h ahead of the database's"),
        (-8 * DAY_MS, "it is 8 d 0 h behind the database's"),
        (40 * DAY_MS + MINUTE_MS, "it is 40 d 0 h ahead of the database's"),
    ] {
        for _ in 0..3 {
            let reading = Reading { wall_ms: system_ms() + ahead_ms, monotonic_ms: 0 };
            let refused = second.sweep(reading);
            assert_eq!(refused, Err(Fault::Clock(what.to_owned())));
            assert_eq!(names(&second, reading), ["clock"]);
            assert!(second.run_housekeeping(reading.wall_ms).is_err());
            second.keep_revocation(reading.wall_ms).unwrap();
        }
    }
    assert!(items(&store) == before, "something was written");
    // The first server goes on, and the key is still there.
    first.sweep(Reading { wall_ms: system_ms(), monotonic_ms: 0 }).unwrap();
    let cancel = json!({ "KeyId": key });
    call::<cancel_key_deletion::CancelKeyDeletion>(&first, system_ms(), cancel);
    // With its clock corrected, the second server recovers without a restart.
    let right = Reading { wall_ms: system_ms(), monotonic_ms: 0 };
    second.sweep(right).unwrap();
    assert_eq!(names(&second, right), [""; 0]);
}

#[test]
fn clock_ahead_or_jumping_erases_nothing_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let start_ms = 1_795_219_200_000;
    let open = || server(Arc::new(SqliteStore::open(&path).unwrap()), &[7; 32]);
    let first = open();
    establish(&first, start_ms);
    scheduled(&first, start_ms);
    let look = SqliteStore::open_read_only(&path).unwrap();
    let before = items(&look);
    let at = |wall_ms: i64, monotonic_ms: i64| Reading {
        wall_ms: start_ms + wall_ms,
        monotonic_ms: 1_000_000 + monotonic_ms,
    };
    // The clock jumps while the server runs, forwards or back, in one step or after an hour.
    first.sweep(at(0, 0)).unwrap();
    for (wall_ms, monotonic_ms) in [
        (8 * DAY_MS, MINUTE_MS),
        (8 * DAY_MS + 60 * MINUTE_MS, 60 * MINUTE_MS),
        (-DAY_MS, 60 * MINUTE_MS),
    ] {
        let refused = first.sweep(at(wall_ms, monotonic_ms));
        assert!(matches!(&refused, Err(Fault::Clock(_))), "{refused:?}");
        assert_eq!(names(&first, at(wall_ms, monotonic_ms)), ["clock"]);
        assert!(first.run_housekeeping(start_ms + wall_ms).is_err());
    }
    // Small steps, passing time and a machine that was asleep do not count as jumps.
    for minutes in [61, 65, 8 * 60, 8 * 60 + 4] {
        first.sweep(at(minutes * MINUTE_MS, (minutes - minutes % 3) * MINUTE_MS)).unwrap();
    }
    drop(first);
    // At the start the clock is behind the last event.
    let second = open();
    let refused = second.sweep(at(-DAY_MS, 0));
    assert_eq!(refused, Err(Fault::Clock("it is 1 d 0 h behind the last audit event's".into())));
    // With its clock corrected, the server goes on at once.
    second.sweep(at(MINUTE_MS, 1)).unwrap();
    drop(second);
    // At the start the clock is ahead, which may be right. Nothing is erased before somebody could check.
    let third = open();
    let wait = limits::MAX_CLOCK_WAIT_MS;
    for monotonic_ms in [0, 60 * MINUTE_MS, wait - 1] {
        third.sweep(at(8 * DAY_MS + monotonic_ms, monotonic_ms)).unwrap();
        third.run_housekeeping(at(8 * DAY_MS + monotonic_ms, 0).wall_ms).unwrap();
    }
    assert!(items(&look) == before, "something was written");
    third.sweep(at(8 * DAY_MS + wait, wait)).unwrap();
    assert!(look.scan("kms/key/", "", 9).unwrap().is_empty(), "its time was over at last");
    drop(third);
    // The deletion's event has that time. An operator says that the clock is right nevertheless.
    let fourth = open();
    assert!(fourth.sweep(at(0, 0)).is_err());
    fourth.trust_clock();
    fourth.sweep(at(0, 1)).unwrap();
    assert!(fourth.sweep(at(DAY_MS, 2)).is_err(), "a jump is one for everybody");
}

#[test]
fn nothing_of_any_kind_is_swept_by_a_wrong_clock() {
    let fixture = Fixture::new();
    let start_ms = fixture.now.get() * 1000;
    fixture.store.set_clock(start_ms);
    // A key, imported material and a session whose time will run out.
    let key = fixture.key(json!({}));
    let request = json!({ "KeyId": key, "PendingWindowInDays": 7 });
    fixture.kms("ScheduleKeyDeletion", request).unwrap();
    let rotating = fixture.key(json!({}));
    let request = json!({ "KeyId": rotating, "RotationPeriodInDays": 90 });
    fixture.kms("EnableKeyRotation", request).unwrap();
    let trust = json!({
        "Version": "2012-10-17",
        "Statement": [{
            "Effect": "Allow", "Principal": { "AWS": ACCOUNT }, "Action": "sts:AssumeRole",
        }],
    });
    let allow = json!({
        "Version": "2012-10-17",
        "Statement": [{ "Effect": "Allow", "Action": "*", "Resource": "*" }],
    });
    let user = fixture.user(ACCOUNT, "eve", std::slice::from_ref(&allow));
    let role = fixture.role(ACCOUNT, "role", &trust, &[allow]);
    let session = fixture.session(&user, &role, &[]);
    fixture.kms_as(&session, "ListKeys", json!({})).unwrap();
    let before = items(fixture.store.as_ref());
    fixture.advance(400 * 86_400);
    let wrong = Reading { wall_ms: fixture.now.get() * 1000, monotonic_ms: 0 };
    assert!(matches!(fixture.service.sweep(wrong), Err(Fault::Clock(_))));
    assert!(items(fixture.store.as_ref()) == before, "something was swept");
    // Requests are refused what has expired, but nothing is erased.
    assert_eq!(code(fixture.kms_as(&session, "ListKeys", json!({}))), "ExpiredTokenException");
    let records =
        |items: &[Item]| items.iter().filter(|item| matches!(item, Item::Record(..))).count();
    assert_eq!(records(&items(fixture.store.as_ref())), records(&before));
    // Right again, nothing is due, and the session is good.
    fixture.now.set(start_ms / 1000);
    fixture.service.sweep(Reading { wall_ms: start_ms, monotonic_ms: 1 }).unwrap();
    fixture.kms_as(&session, "ListKeys", json!({})).unwrap();
    assert_eq!(fixture.state(&key), "PendingDeletion");
    // Once both clocks have reached the time, the sweep runs.
    fixture.advance(8 * 86_400);
    let now_ms = fixture.now.get() * 1000;
    fixture.store.set_clock(now_ms);
    fixture.service.sweep(Reading { wall_ms: now_ms, monotonic_ms: 2 }).unwrap();
    let gone = fixture.kms("DescribeKey", json!({ "KeyId": key }));
    assert_eq!(code(gone), "NotFoundException");
}

#[test]
fn expired_material_is_refused_and_kept_by_requests() {
    let fixture = Fixture::new();
    fixture.store.set_clock(fixture.now.get() * 1000);
    let key = fixture.key(json!({ "Origin": "EXTERNAL" }));
    let valid_to = fixture.now.get() + 3600;
    import(&fixture, &key, valid_to);
    let made = fixture.encrypted(&key, b"x");
    let material = || fixture.store.scan("kms/material/", "", 9).unwrap().len();
    assert_eq!(material(), 1);
    let right = fixture.now.get();
    fixture.advance(8 * 86_400);
    for _ in 0..3 {
        let refused = fixture.kms("Decrypt", json!({ "CiphertextBlob": made }));
        assert_eq!(code(refused), "KMSInvalidStateException");
        assert_eq!(fixture.state(&key), "PendingImport");
    }
    let wrong = Reading { wall_ms: fixture.now.get() * 1000, monotonic_ms: 0 };
    assert!(fixture.service.sweep(wrong).is_err());
    assert_eq!(material(), 1);
    fixture.now.set(right);
    assert_eq!(fixture.decrypted(&made), b"x");
}

/// Imports material that expires at this time.
fn import(fixture: &Fixture, key: &str, valid_to: i64) {
    let algorithm = WrappingAlgorithm::by_name("RSA_AES_KEY_WRAP_SHA_256").unwrap();
    let request = json!({
        "KeyId": key, "WrappingAlgorithm": algorithm.name, "WrappingKeySpec": "RSA_2048",
    });
    let given = fixture.kms("GetParametersForImport", request).unwrap();
    let wrapped = algorithm.wrap(&common::unb64(&given["PublicKey"]), &[1; 32]).unwrap();
    let body = json!({
        "KeyId": key,
        "ImportToken": given["ImportToken"],
        "EncryptedKeyMaterial": b64(&wrapped),
        "ExpirationModel": "KEY_MATERIAL_EXPIRES",
        "ValidTo": valid_to,
    });
    fixture.kms("ImportKeyMaterial", body).unwrap();
}

/// The fields of what is logged in the meantime, a line for each event.
fn logged(work: impl FnOnce()) -> Vec<String> {
    struct Lines(Arc<Mutex<Vec<String>>>);
    struct Fields<'a>(&'a mut String);
    impl tracing::field::Visit for Fields<'_> {
        fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
            let _ = write!(self.0, " {}={value:?}", field.name());
        }
    }
    impl tracing::Subscriber for Lines {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            *metadata.level() <= tracing::Level::INFO
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, event: &tracing::Event<'_>) {
            let mut line = event.metadata().level().to_string();
            event.record(&mut Fields(&mut line));
            self.0.lock().unwrap().push(line);
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }
    let lines = Arc::new(Mutex::new(Vec::new()));
    tracing::subscriber::with_default(Lines(lines.clone()), work);
    let lines = lines.lock().unwrap();
    lines.clone()
}

#[test]
fn what_a_sweep_deletes_is_in_the_log() {
    let fixture = Fixture::new();
    let keys: Vec<_> = (0..3).map(|_| fixture.key(json!({}))).collect();
    for key in &keys {
        let request = json!({ "KeyId": key, "PendingWindowInDays": 7 });
        fixture.kms("ScheduleKeyDeletion", request).unwrap();
    }
    let parameters = fixture.key(json!({ "Origin": "EXTERNAL" }));
    let request = json!({
        "KeyId": parameters, "WrappingAlgorithm": "RSAES_OAEP_SHA_256", "WrappingKeySpec": "RSA_2048",
    });
    fixture.kms("GetParametersForImport", request).unwrap();
    fixture.advance(8 * 86_400);
    let lines = logged(|| fixture.run_housekeeping());
    println!("{lines:#?}");
    for key in &keys {
        let is_told = |line: &&String| line.contains("DeleteKey") && line.contains(key.as_str());
        assert_eq!(lines.iter().filter(is_told).count(), 1, "{key}");
    }
    assert!(lines.iter().any(|line| line.contains("kms/import") && line.contains("deleted=2")));
    let deleted: Vec<Value> =
        fixture.events().into_iter().filter(|event| event["eventName"] == "DeleteKey").collect();
    assert_eq!(deleted.len(), keys.len());
    assert!(
        logged(|| fixture.run_housekeeping()).is_empty(),
        "nothing is told where nothing was done"
    );
}

#[test]
fn wrong_clock_is_logged_and_not_all_the_time() {
    let fixture = Fixture::new();
    let now_ms = fixture.now.get() * 1000;
    fixture.store.set_clock(now_ms);
    let count = |from_s: i64, to_s: i64| {
        let lines = logged(|| {
            for second in (from_s..to_s).step_by(2) {
                let reading = Reading { wall_ms: now_ms + DAY_MS, monotonic_ms: second * 1000 };
                assert!(fixture.service.hold_clock(reading).is_err());
            }
        });
        assert!(lines.iter().all(|line| line.starts_with("ERROR")), "{lines:?}");
        lines.len()
    };
    let interval = limits::CLOCK_LOG_INTERVAL_MS / 1000;
    assert_eq!(count(0, interval), 1);
    assert_eq!(count(interval, 3 * interval), 2);
}

#[test]
fn store_that_does_not_tell_the_time_is_no_wrong_clock() {
    let fixture = Fixture::new();
    fixture.store.fail_reads(true);
    let reading = Reading { wall_ms: fixture.now.get() * 1000, monotonic_ms: 0 };
    assert!(matches!(fixture.service.sweep(reading), Err(Fault::Store(_))));
    assert_eq!(names(&fixture.service, reading), ["store"]);
    assert_eq!(fixture.service.clock_problem(), None);
    let who = Who::admin();
    let refused = fixture.kms_as(&who, "ListKeys", json!({})).unwrap_err();
    assert!(refused.message.contains("Nothing was changed"), "{}", refused.message);
    assert!(!refused.message.contains("not certain"), "{}", refused.message);
    fixture.store.fail_reads(false);
    assert_eq!(names(&fixture.service, reading), [""; 0]);
}

#[test]
fn outcome_is_said_to_be_uncertain_only_where_it_is() {
    let fixture = Fixture::new();
    let said = || fixture.kms("CreateKey", json!({})).unwrap_err();
    fixture.store.fail_writes(true);
    assert!(said().message.contains("Nothing was changed"));
    fixture.store.fail_writes(false);
    let count = || fixture.store.scan("kms/key/", "", 99).unwrap().len();
    assert_eq!(count(), 0);
    fixture.store.lose_outcomes(true);
    let refused = said();
    assert_eq!((refused.code.as_str(), refused.status), ("KMSInternalException", 500));
    assert!(refused.message.contains("not certain"), "{}", refused.message);
    assert!(!refused.message.contains("Nothing was changed"), "{}", refused.message);
    // It was tried once: nothing repeats it.
    assert_eq!(count(), 1);
    fixture.store.lose_outcomes(false);
    let made = fixture.kms("CreateKey", json!({})).unwrap();
    assert!(!text(&made["KeyMetadata"]["KeyId"]).is_empty());
}

//! What the clock can do to existing backups, and which files are not backups.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use outlast_api::service::Reading;

use outlast_store::Transaction;

use super::*;
use crate::data::{self, NewData};
use crate::location::StoreLocation;
use crate::root_key::Provider;

const NAMES: [&str; 1] = ["localhost"];

#[test]
fn names_are_read_back() {
    assert_eq!(name_of(1_795_368_660), "2026-11-22T17-31-00Z");
    assert_eq!(seconds_of("2026-11-22T17-31-00Z"), Some(1_795_368_660));
    for other in ["", "T", "2026-11-22T17:31:00Z", "2026-11-22T17-31-00", "2026-11-22T17-31-00Z "] {
        assert_eq!(seconds_of(other), None, "{other}");
    }
}

/// A data folder, a folder for backups that are kept for a day, and a schedule of one backup a day.
struct Setting {
    folder: tempfile::TempDir,
    schedule: Schedule,
    has_new: bool,
}

impl Setting {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let new = NewData {
            account: "123456789012".into(),
            access_key_id: None,
            secret: None,
            region: "us-east-1".into(),
            port: 8443,
            names: NAMES.map(str::to_owned).to_vec(),
            root_key: None,
            database: None,
            audit_origin: None,
        };
        data::create(&folder.path().join("data"), new).unwrap();
        std::fs::create_dir(folder.path().join("backups")).unwrap();
        let backups = Some(folder.path().join("backups"));
        let settings = Backup { folder: backups, keep_days: Some(1), ..Backup::default() };
        let schedule = choose(settings).unwrap().unwrap();
        Self { folder, schedule, has_new: false }
    }

    /// A server that has just started.
    fn start(&self) -> Data {
        let data = self.folder.path().join("data");
        Data::open(&StoreLocation::in_folder(&data), &Provider::default_in(&data)).unwrap()
    }

    /// Runs the check at this time; returns the number of backups afterwards.
    fn round(&mut self, data: &Data, now_ms: i64) -> usize {
        self.schedule.round(data, now_ms, &mut self.has_new).unwrap();
        std::fs::read_dir(self.folder.path().join("backups")).unwrap().count()
    }
}

#[test]
fn a_wrong_clock_removes_no_backup() {
    let mut setting = Setting::new();
    let data = setting.start();
    let begin_ms = system_clock();
    let hold = |wall_ms: i64, monotonic_ms: i64| {
        data.service.hold_clock(Reading { wall_ms, monotonic_ms })
    };
    hold(begin_ms, 0).unwrap();
    assert_eq!(setting.round(&data, begin_ms), 1);
    // The clock jumps by three days: by it a backup is due, and the first one is too old.
    let ahead_ms = begin_ms + 3 * DAY_MS;
    assert!(hold(ahead_ms, 1000).is_err());
    assert_eq!(setting.round(&data, ahead_ms), 2);
    assert_eq!(setting.round(&data, ahead_ms + 1000), 2);
    // The clock is right again, and then three days pass: what was kept before is removed now.
    hold(begin_ms + 2000, 2000).unwrap();
    hold(ahead_ms + 2000, 3 * DAY_MS + 2000).unwrap();
    assert_eq!(setting.round(&data, ahead_ms + 2000), 1);
}

#[test]
fn a_clock_that_is_not_judged_yet_removes_no_backup() {
    let mut setting = Setting::new();
    let begin_ms = system_clock();
    let data = setting.start();
    data.service.hold_clock(Reading { wall_ms: begin_ms, monotonic_ms: 0 }).unwrap();
    assert_eq!(setting.round(&data, begin_ms), 1);
    // At that time the store was in use.
    let event = data::store_event(begin_ms, "Sample", &serde_json::json!({})).unwrap();
    let transaction = Transaction { events: vec![event.into()], ..Transaction::default() };
    data.store().commit_and_wait(transaction).unwrap();
    drop(data);
    // Started after eight days, or with a clock that is eight days ahead: nobody can tell.
    let data = setting.start();
    let now_ms = begin_ms + 8 * DAY_MS;
    let hold = |passed_ms: i64| {
        let wall_ms = now_ms + passed_ms;
        data.service.hold_clock(Reading { wall_ms, monotonic_ms: passed_ms }).unwrap();
    };
    hold(0);
    assert_eq!(setting.round(&data, now_ms), 2);
    hold(HOUR_MS);
    assert_eq!(setting.round(&data, now_ms + HOUR_MS), 2);
    // After an eighth of the gap, or a day, the clock is trusted.
    hold(DAY_MS - HOUR_MS);
    assert_eq!(setting.round(&data, now_ms + DAY_MS - HOUR_MS), 2);
    hold(DAY_MS + HOUR_MS);
    assert_eq!(setting.round(&data, now_ms + DAY_MS + HOUR_MS), 1);
}

#[test]
fn what_does_not_read_back_is_no_backup() {
    let mut setting = Setting::new();
    let data = setting.start();
    let now_ms = system_clock();
    data.service.hold_clock(Reading { wall_ms: now_ms, monotonic_ms: 0 }).unwrap();
    assert_eq!(setting.round(&data, now_ms), 1);
    let key = LogKey::read(&mut data.service.work(now_ms)).unwrap();
    let [first, _] = key.verifiers();
    let prefix = format!("outlast-{}-", hex::encode(first.id()));
    let (_, path) = setting.schedule.backups(&prefix).unwrap().remove(0);
    let good = std::fs::read(&path).unwrap();
    let kek = data.service.root().kek();
    let counts = |bytes: &[u8]| {
        let mut input = bytes;
        let (header, head) = backup::header(&mut input).unwrap();
        backup::read_through(&header, &head, kek, &mut input)
    };
    let written = counts(&good).unwrap();
    assert!(written.records > 0);
    read_back(&path, kek, written).unwrap();
    assert!(read_back(&path, kek, Counts { events: written.events + 1, ..written }).is_err());
    let end = good.len();
    let mut flipped = good.clone();
    flipped[end / 2] ^= 1;
    for damaged in [&flipped, &good[..end - 1].to_vec(), &[&good[..], b"x"].concat(), &Vec::new()] {
        std::fs::write(&path, damaged).unwrap();
        assert!(read_back(&path, kek, written).is_err(), "{} bytes", damaged.len());
    }
}

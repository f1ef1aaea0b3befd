//! A ledger on disk: segments, retention, several writers, torn lines.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

use crate::common;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};

use common::{DAY, NOW, end, handshake, offer, served};
use outlast_ledger::read::{Reader, Skipped};
use outlast_ledger::segments::list;
use outlast_ledger::{Ledger, Line, Observe, Options};

fn now() -> i64 {
    NOW
}

fn read(folder: &Path) -> (Vec<Line>, Skipped) {
    let mut reader = Reader::open(folder, None, None).unwrap();
    let lines: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(reader.read, reader.total);
    (lines, reader.skipped)
}

fn ends(lines: &[Line]) -> usize {
    lines.iter().filter(|line| matches!(line, Line::End(_))).count()
}

#[test]
fn what_is_reported_is_read_again_and_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let ledger = Ledger::open(&path, Options::new(now)).unwrap();
    let begun = handshake(1, Some(offer(&[0x11ec], &[0x11ec])), served("X25519MLKEM768", false));
    ledger.handshake(&begun);
    ledger.end(&end(1, Some("arn:aws:iam::1:user/a")));
    ledger.flush();
    let (lines, skipped) = read(&path);
    assert_eq!(skipped, Skipped::default());
    assert!(matches!(lines[0], Line::Open { time_ms: NOW, .. }));
    assert_eq!(lines[1], Line::Handshake(Box::new(begun)));
    assert_eq!(lines[2], Line::End(end(1, Some("arn:aws:iam::1:user/a"))));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let segment = list(&path).unwrap().remove(0);
    assert_eq!((mode(&path), mode(&segment.path)), (0o700, 0o600));
    assert!(segment.path.to_str().unwrap().contains("2026-11-21_"));
}

#[test]
fn lines_are_on_disk_before_long_without_a_flush() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path(), Options::new(now)).unwrap();
    ledger.end(&end(1, None));
    outlast_testing::until("the line is on disk", || ends(&read(folder.path()).0) == 1);
}

#[test]
fn segments_end_by_size_and_the_oldest_go() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes: 2000, total_bytes: 20_000, ..Options::new(now) };
    let ledger = Ledger::open(folder.path(), options).unwrap();
    for connection in 0..2000 {
        ledger.end(&end(connection, None));
        if connection % 10 == 0 {
            ledger.flush();
        }
    }
    drop(ledger);
    let segments = list(folder.path()).unwrap();
    let total: u64 = segments.iter().map(|segment| segment.len).sum();
    assert!(total < 24_000, "{total} bytes are kept");
    assert!(segments.len() > 5 && segments.iter().all(|segment| segment.len < 4000));
    let (lines, _) = read(folder.path());
    // The newest are there, without a gap.
    let kept: Vec<_> = lines
        .iter()
        .filter_map(|line| if let Line::End(end) = line { Some(end.connection) } else { None })
        .collect();
    let first = kept[0];
    assert_eq!(kept, (first..2000).collect::<Vec<_>>());
}

#[test]
fn a_new_day_begins_a_segment_and_old_days_go() {
    static TODAY: AtomicI64 = AtomicI64::new(NOW);
    let folder = tempfile::tempdir().unwrap();
    let clock = || TODAY.load(Ordering::Relaxed);
    let options = Options { keep_days: 3, ..Options::new(clock) };
    let ledger = Ledger::open(folder.path(), options).unwrap();
    for day in 0..10 {
        TODAY.store(NOW + day * DAY, Ordering::Relaxed);
        ledger.end(&end(1, None));
        ledger.flush();
    }
    let days: Vec<_> = list(folder.path()).unwrap().iter().map(|segment| segment.day).collect();
    let last = (NOW + 9 * DAY) / DAY;
    assert_eq!(days, (last - 3..=last).collect::<Vec<_>>());
}

#[test]
fn what_another_process_is_writing_is_not_removed() {
    static TODAY: AtomicI64 = AtomicI64::new(NOW);
    let folder = tempfile::tempdir().unwrap();
    let clock = || TODAY.load(Ordering::Relaxed);
    let options = Options { keep_days: 1, ..Options::new(clock) };
    let first = Ledger::open(folder.path(), options.clone()).unwrap();
    first.end(&end(1, None));
    first.flush();
    TODAY.store(NOW + 10 * DAY, Ordering::Relaxed);
    let second = Ledger::open(folder.path(), options.clone()).unwrap();
    second.end(&end(1, None));
    second.flush();
    assert_eq!(list(folder.path()).unwrap().len(), 2, "a segment in use was removed");
    drop(first);
    // A single day may come from a clock that has jumped: the next one confirms it.
    drop(second);
    drop(Ledger::open(folder.path(), options.clone()).unwrap());
    assert_eq!(list(folder.path()).unwrap().len(), 2, "a clock that jumped has removed a segment");
    TODAY.store(NOW + 11 * DAY, Ordering::Relaxed);
    let third = Ledger::open(folder.path(), options.clone()).unwrap();
    third.end(&end(1, None));
    drop(third);
    drop(Ledger::open(folder.path(), options).unwrap());
    assert_eq!(list(folder.path()).unwrap().len(), 2, "a segment that nobody uses was kept");
}

#[test]
fn several_ledgers_write_to_one_folder() {
    let folder = tempfile::tempdir().unwrap();
    let ledgers: Vec<_> =
        (0..4).map(|_| Ledger::open(folder.path(), Options::new(now)).unwrap()).collect();
    std::thread::scope(|scope| {
        for ledger in &ledgers {
            scope.spawn(move || {
                for connection in 0..500 {
                    ledger.end(&end(connection, None));
                }
            });
        }
    });
    drop(ledgers);
    let (lines, skipped) = read(folder.path());
    assert_eq!((ends(&lines), skipped), (2000, Skipped::default()));
    assert_eq!(list(folder.path()).unwrap().len(), 4);
}

#[test]
fn torn_long_and_foreign_lines_are_passed_over_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path(), Options::new(now)).unwrap();
    ledger.end(&end(1, None));
    drop(ledger);
    let path = list(folder.path()).unwrap().remove(0).path;
    let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
    writeln!(file, "no JSON").unwrap();
    writeln!(file, "{}", "x".repeat(1 << 20)).unwrap();
    writeln!(file, "{{\"v\":9,\"k\":\"e\"}}").unwrap();
    file.write_all(&[0xff, 0xfe, b'\n', b'\n']).unwrap();
    let mut line = Vec::new();
    Line::End(end(2, None)).encode(&mut line);
    file.write_all(&line).unwrap();
    file.write_all(&line[..line.len() - 1]).unwrap();
    fs::write(folder.path().join("notes.txt"), "not a segment").unwrap();
    let (lines, skipped) = read(folder.path());
    assert_eq!(ends(&lines), 2);
    assert_eq!(skipped, Skipped { torn: 1, malformed: 4, newer: 1 });
}

#[test]
fn a_folder_that_is_removed_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ledger");
    let ledger = Ledger::open(&path, Options::new(now)).unwrap();
    ledger.end(&end(1, None));
    ledger.flush();
    fs::remove_dir_all(&path).unwrap();
    ledger.end(&end(2, None));
    ledger.flush();
    assert_eq!(ends(&read(&path).0), 1);
    assert_eq!(ledger.lost(), 0);
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "").unwrap();
    assert!(Ledger::open(&path, Options::new(now)).is_err());
    assert!(Ledger::open(&path.join("below"), Options::new(now)).is_err());
}

//! The files of a ledger: `2026-11-21_4f3a9c21d0e7_0001.ndjson` is the first one of a process on a day.
//!
//! Several processes can write to one folder, each to its own segments. A segment that is being written is locked,
//! and the lock ends with the process; so a segment without a lock may be removed.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use time::OffsetDateTime;

/// One segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Path.
    pub path: PathBuf,
    /// The day it was begun, days since 1970.
    pub day: i64,
    /// Name of the process that wrote it.
    pub process: String,
    /// Its number among the segments of the process and day.
    pub sequence: u32,
    /// Length in bytes.
    pub len: u64,
}

const DAY_MS: i64 = 86_400_000;

/// Days since 1970.
pub fn day_of(time_ms: i64) -> i64 {
    time_ms.div_euclid(DAY_MS)
}

/// The name of a segment.
pub(crate) fn name(day: i64, process: &str, sequence: u32) -> String {
    let date = OffsetDateTime::from_unix_timestamp(day.saturating_mul(86_400))
        .map_or(time::Date::MIN, OffsetDateTime::date);
    let (year, month, day) = (date.year(), u8::from(date.month()), date.day());
    format!("{year:04}-{month:02}-{day:02}_{process}_{sequence:04}.ndjson")
}

/// Parses a name; `None` if it is not a segment's.
fn parse(text: &str) -> Option<(i64, String, u32)> {
    let parsed = parts(text)?;
    let (day, process, sequence) = &parsed;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let is_ours = process.len() == 12
        && process.bytes().all(is_digit)
        && name(*day, process, *sequence) == text;
    is_ours.then_some(parsed)
}

fn parts(name: &str) -> Option<(i64, String, u32)> {
    let (date, rest) = name.strip_suffix(".ndjson")?.split_once('_')?;
    let (process, sequence) = rest.split_once('_')?;
    let mut parts = date.splitn(3, '-');
    let year = parts.next()?.parse().ok()?;
    let month: u8 = parts.next()?.parse().ok()?;
    let day = parts.next()?.parse().ok()?;
    let date = time::Date::from_calendar_date(year, month.try_into().ok()?, day).ok()?;
    let seconds = date.midnight().assume_utc().unix_timestamp();
    Some((seconds / 86_400, process.to_owned(), sequence.parse().ok()?))
}

/// The segments of a folder: process by process, and each process's in the order of writing. Ignores other files.
pub fn list(folder: &Path) -> io::Result<Vec<Segment>> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let Some((day, process, sequence)) = entry.file_name().to_str().and_then(parse) else {
            continue;
        };
        // It may have been removed in the meantime.
        let Ok(metadata) = entry.metadata() else { continue };
        if metadata.is_file() {
            out.push(Segment { path: entry.path(), day, process, sequence, len: metadata.len() });
        }
    }
    out.sort_by(|a, b| {
        (&a.process, a.day, a.sequence, &a.path).cmp(&(&b.process, b.day, b.sequence, &b.path))
    });
    Ok(out)
}

/// Creates a segment that only its owner can read, and locks it.
pub(crate) fn create(
    folder: &Path,
    day: i64,
    process: &str,
    sequence: u32,
) -> io::Result<(PathBuf, File)> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let path = folder.join(name(day, process, sequence));
    let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path)?;
    // Some network file systems have no locks: there a segment that is being written may be removed when it is old.
    let _ = flock(&file, FlockOperation::NonBlockingLockExclusive);
    Ok((path, file))
}

/// How many segments were removed, and why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Removed {
    /// Because of their age.
    pub(crate) old: usize,
    /// Because all of them together were too large.
    pub(crate) excess: usize,
}

/// Removes segments older than `keep_days` or beyond `total_bytes`, the oldest first, but none that is being written.
///
/// Age is counted from today, but not from later than a day after the last day but one with segments: a clock that
/// jumps ahead must not remove everything.
pub(crate) fn prune(
    folder: &Path,
    today: i64,
    keep_days: u32,
    total_bytes: u64,
) -> io::Result<Removed> {
    let mut segments = list(folder)?;
    segments.sort_by(|a, b| (a.day, a.sequence, &a.process).cmp(&(b.day, b.sequence, &b.process)));
    let mut days: Vec<_> = segments.iter().map(|segment| segment.day).collect();
    days.dedup();
    let known = days.iter().rev().nth(1).or(days.last()).map_or(today, |day| day.saturating_add(1));
    let today = today.min(known);
    let newest: HashMap<String, (i64, u32)> = segments
        .iter()
        .map(|segment| (segment.process.clone(), (segment.day, segment.sequence)))
        .collect();
    let mut total: u64 = segments.iter().map(|segment| segment.len).sum();
    let mut removed = Removed::default();
    for segment in segments {
        let is_old = segment.day < today - i64::from(keep_days);
        if !is_old && total <= total_bytes {
            continue;
        }
        // Network file systems only lock files that are open for writing.
        let Ok(file) = OpenOptions::new().append(true).open(&segment.path) else { continue };
        let is_free = match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => true,
            // Without locks the last segment of each process may be in use, unless it is old.
            Err(Errno::OPNOTSUPP | Errno::NOLCK | Errno::BADF) => {
                is_old || newest.get(&segment.process) != Some(&(segment.day, segment.sequence))
            }
            Err(_) => false,
        };
        if is_free && fs::remove_file(&segment.path).is_ok() {
            total -= segment.len;
            *(if is_old { &mut removed.old } else { &mut removed.excess }) += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for day in [0, 19_000, 20_778, 40_000] {
            let name = name(day, "4f3a9c21d0e7", 12);
            assert_eq!(parse(&name), Some((day, "4f3a9c21d0e7".to_owned(), 12)), "{name}");
        }
        assert_eq!(name(20_778, "4f3a9c21d0e7", 1), "2026-11-21_4f3a9c21d0e7_0001.ndjson");
        for other in [
            "2026-11-21.ndjson",
            "x_y_z.ndjson",
            "2026-13-01_a_1.ndjson",
            ".lock",
            "2026-11-21_export_0001.ndjson",
            "2026-11-21_4f3a9c21d0e7_1.ndjson",
            "2026-11-21_4F3A9C21D0E7_0001.ndjson",
            "+2026-11-21_4f3a9c21d0e7_0001.ndjson",
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}

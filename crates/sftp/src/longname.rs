//! The line of `ls -l` for a file, which clients show as it is (the draft's section 7 recommends its form).

use time::OffsetDateTime;

use crate::attributes::{FOLDER, LINK, REGULAR, TYPE};
use crate::owners::Owners;
use crate::volume::Entry;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Half a year: `ls` shows the year of what is older, and the time of what is younger.
const RECENT_SECONDS: i64 = 182 * 24 * 3600;

/// The line; times are in UTC. `now` is in seconds since 1970.
#[must_use]
pub fn long_name(entry: &Entry, owners: &Owners, now: i64) -> Vec<u8> {
    let attributes = &entry.attributes;
    let (user, group) = match attributes.owner {
        Some((user, group)) => (owners.user(user), owners.group(group)),
        None => ("?".to_owned(), "?".to_owned()),
    };
    let time = attributes.times.map_or_else(|| "?".repeat(12), |(_, at)| when(at.into(), now));
    let (mode, links) = (permissions(attributes.mode), entry.links);
    let size = attributes.size.unwrap_or(0);
    let mut line = format!("{mode} {links:>4} {user:<8} {group:<8} {size:>8} {time} ").into_bytes();
    line.extend_from_slice(&entry.name);
    line
}

fn when(at: i64, now: i64) -> String {
    let Ok(time) = OffsetDateTime::from_unix_timestamp(at) else { return "?".repeat(12) };
    let month = MONTHS[usize::from(u8::from(time.month())) - 1];
    let day = time.day();
    if (now - RECENT_SECONDS..=now).contains(&at) {
        format!("{month} {day:>2} {:02}:{:02}", time.hour(), time.minute())
    } else {
        format!("{month} {day:>2}  {:>4}", time.year())
    }
}

fn permissions(mode: Option<u32>) -> String {
    let Some(mode) = mode else { return "?".repeat(10) };
    let kind = match mode & TYPE {
        FOLDER => 'd',
        LINK => 'l',
        REGULAR => '-',
        0o010_000 => 'p',
        0o140_000 => 's',
        0o020_000 => 'c',
        0o060_000 => 'b',
        _ => '?',
    };
    let mut text = String::from(kind);
    // Set-user-ID, set-group-ID and sticky take the place of the x of their three letters.
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & 1 != 0, mode & special != 0) {
            (true, true) => letter,
            (false, true) => letter.to_ascii_uppercase(),
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    text
}

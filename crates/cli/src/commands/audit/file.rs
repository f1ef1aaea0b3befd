//! Exports of the audit log: one JSON object per line.
//!
//! First the log's keys, then the range with the hashes of its surroundings, then the events of the range, then the
//! signed head, then the number of events. The events and those hashes give the head's root: with the
//! log's key or a policy anybody can check that these are all events with these numbers, as they were written.

use std::io::{BufRead, Read, Write};

use outlast_tlog::{CompactRange, Hash, SignedCheckpoint, VerifierKey, hash};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Longest line.
const MAX_LINE: u64 = 1 << 20;

/// A line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The log's name and keys, as in C2SP's signed-note.
    Log { origin: String, verifier_keys: Vec<String> },
    /// Indexes of the entries, from 0, and the compact ranges before and after them, in hexadecimal.
    Range { begin: u64, end: u64, before: Vec<String>, after: Vec<String> },
    /// An entry.
    Event { index: u64, event: Box<RawValue> },
    /// The signed head of the log, with its cosignatures: a signed note.
    Head(String),
    /// The last line: without it the file is incomplete.
    End { events: u64 },
}

impl Line {
    /// Writes the line.
    pub(super) fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        out.write_all(&text)
    }
}

/// A parsed export whose parts match. Whether the head can be trusted is a separate question.
pub(super) struct Verified {
    /// The log's keys, according to the export.
    pub(super) keys: Vec<VerifierKey>,
    /// The signed head.
    pub(super) head: SignedCheckpoint,
    /// Index of the first entry.
    pub(super) begin: u64,
    /// Index after the last entry.
    pub(super) end: u64,
}

/// Reads an export; the error says what is wrong with it.
pub(super) fn read(input: &mut dyn BufRead) -> Result<Verified, String> {
    let mut lines = Lines { input, number: 0 };
    let Line::Log { verifier_keys, .. } = lines.next()? else {
        return Err("the first line does not name the log".into());
    };
    let keys = verifier_keys
        .iter()
        .map(|key| key.parse().map_err(|error| format!("line 1: {error}")))
        .collect::<Result<Vec<VerifierKey>, _>>()?;
    let Line::Range { begin, end, before, after } = lines.next()? else {
        return Err("the second line does not say which events follow".into());
    };
    let mut range = ranges(0, begin, &before)?;
    let mut count = 0_u64;
    let note = loop {
        match lines.next()? {
            Line::Event { index, event } => {
                if index != range.end() || index >= end {
                    return Err(format!(
                        "line {}: event {} is not the next one",
                        lines.number,
                        index + 1
                    ));
                }
                let leaf = hash::leaf(event.get().as_bytes());
                range.append(&leaf).map_err(|error| error.to_string())?;
                count += 1;
            }
            Line::Head(note) => break note,
            _ => return Err(format!("line {} is out of place", lines.number)),
        }
    };
    if range.end() != end {
        return Err(format!("events from {} to {end} are missing", range.end() + 1));
    }
    let head = SignedCheckpoint::parse(note.as_bytes()).map_err(|error| error.to_string())?;
    range
        .extend(&ranges(end, head.checkpoint().size(), &after)?)
        .map_err(|error| error.to_string())?;
    if range.root() != Some(*head.checkpoint().root()) {
        return Err(
            "the events are not those of the log: some were changed, added or removed".into()
        );
    }
    match lines.next()? {
        Line::End { events } if events == count => {}
        _ => return Err("the end of the export does not match its events".into()),
    }
    if !lines.is_at_end()? {
        return Err("there is data after the end of the export".into());
    }
    Ok(Verified { keys, head, begin, end })
}

fn ranges(begin: u64, end: u64, hashes: &[String]) -> Result<CompactRange, String> {
    let hashes: Vec<Hash> = hashes
        .iter()
        .map(|text| hex::decode(text).ok()?.try_into().ok())
        .collect::<Option<_>>()
        .ok_or("a hash of the range cannot be read")?;
    CompactRange::from_parts(begin, end, hashes).map_err(|error| error.to_string())
}

struct Lines<'a> {
    input: &'a mut dyn BufRead,
    number: u64,
}

impl Lines<'_> {
    fn next(&mut self) -> Result<Line, String> {
        let mut line = Vec::new();
        let mut limited = Read::take(&mut self.input, MAX_LINE);
        limited.read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
        self.number += 1;
        if line.is_empty() {
            return Err("the end of the export is missing: it was cut off".into());
        }
        serde_json::from_slice(&line)
            .map_err(|_| format!("line {} is not a line of an audit export", self.number))
    }

    fn is_at_end(&mut self) -> Result<bool, String> {
        self.input.fill_buf().map(<[u8]>::is_empty).map_err(|error| error.to_string())
    }
}

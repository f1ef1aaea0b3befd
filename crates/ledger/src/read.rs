//! Reads a ledger's segments line by line. Unusable lines are skipped and counted.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Serialize;

use crate::limits::MAX_LINE;
use crate::line::{Line, LineError};
use crate::segments::{self, Segment};

/// Numbers of skipped lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Last lines of segments without a line end: the process died while it wrote, or is writing.
    pub torn: u64,
    /// Lines that are malformed or too long.
    pub malformed: u64,
    /// Lines of a newer version of the format.
    pub newer: u64,
}

/// The lines of a ledger, one after the other.
pub struct Reader {
    segments: std::vec::IntoIter<Segment>,
    current: Option<BufReader<File>>,
    buffer: Vec<u8>,
    /// Lines skipped so far.
    pub skipped: Skipped,
    /// Bytes read so far.
    pub read: u64,
    /// Bytes of all segments.
    pub total: u64,
}

impl Reader {
    /// Reads the segments of a folder that may contain events between these times, milliseconds since 1970.
    pub fn open(folder: &Path, since_ms: Option<i64>, until_ms: Option<i64>) -> io::Result<Self> {
        let mut segments = segments::list(folder)?;
        // A line is written a moment after its event, and a clock may be adjusted.
        let first = since_ms.map_or(i64::MIN, |since| segments::day_of(since) - 1);
        segments.retain(|segment| segment.day >= first);
        // A connection may end long after its handshake, so later segments of the same processes are read, too.
        if let Some(until) = until_ms {
            let last = segments::day_of(until) + 1;
            let mut began = std::collections::HashSet::new();
            for segment in segments.iter().filter(|segment| segment.day <= last) {
                began.insert(segment.process.clone());
            }
            segments.retain(|segment| began.contains(&segment.process));
        }
        let total = segments.iter().map(|segment| segment.len).sum();
        Ok(Self {
            segments: segments.into_iter(),
            current: None,
            buffer: Vec::new(),
            skipped: Skipped::default(),
            read: 0,
            total,
        })
    }

    fn next_line(&mut self) -> io::Result<Option<Line>> {
        loop {
            let Some(current) = &mut self.current else {
                let Some(segment) = self.segments.next() else { return Ok(None) };
                // It may have been removed in the meantime.
                self.current = match File::open(&segment.path) {
                    Ok(file) => Some(BufReader::with_capacity(1 << 16, file)),
                    Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                    Err(error) => return Err(error),
                };
                continue;
            };
            let (taken, ended) = take_line(current, &mut self.buffer)?;
            self.read += taken;
            if taken == 0 {
                self.current = None;
                continue;
            }
            if !ended {
                self.skipped.torn += 1;
                // Its writer may go on: the rest of this line would be taken for a line.
                self.current = None;
                continue;
            }
            match Line::parse(&self.buffer) {
                Ok(line) => return Ok(Some(line)),
                Err(LineError::Newer(_)) => self.skipped.newer += 1,
                Err(LineError::TooLong | LineError::Malformed(_)) => self.skipped.malformed += 1,
            }
        }
    }
}

impl Iterator for Reader {
    type Item = io::Result<Line>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_line().transpose()
    }
}

/// Reads up to the end of a line; keeps only the beginning of one that is too long. Returns the number of bytes read,
/// and whether the line has an end.
fn take_line(reader: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<(u64, bool)> {
    line.clear();
    let mut taken = 0;
    loop {
        let bytes = match reader.fill_buf() {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if bytes.is_empty() {
            return Ok((taken, false));
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let len = end.map_or(bytes.len(), |end| end + 1);
        // One byte more than a line may have shows that it is too long.
        let room = (MAX_LINE + 1).saturating_sub(line.len());
        line.extend_from_slice(bytes.get(..end.unwrap_or(len).min(room)).unwrap_or_default());
        reader.consume(len);
        taken += len as u64;
        if end.is_some() {
            return Ok((taken, true));
        }
    }
}

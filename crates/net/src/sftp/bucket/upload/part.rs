//! A part of an upload while it is collected.

use std::ops::Range;

use bytes::Bytes;
use outlast_sftp::error::{Error, Result};

use super::super::memory::{Full, Memory, Share};
use crate::limits;

/// Least number of bytes that are reserved at a time.
const STEP: usize = 256 * 1024;

#[derive(Debug, Default)]
pub(super) struct Part {
    /// Offset of its first byte in the object.
    begin: u64,
    /// Bytes that it may have.
    max: usize,
    bytes: Vec<u8>,
    /// What is written, in order and apart from each other.
    written: Vec<Range<usize>>,
    share: Share,
}

impl Part {
    pub(super) fn new(range: &Range<u64>) -> Self {
        let max = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        Self { begin: range.start, max, ..Self::default() }
    }

    /// Writes bytes at an offset of the object, within the part. Returns why there is no memory for them; then nothing is
    /// written.
    pub(super) fn write(
        &mut self,
        offset: u64,
        bytes: &[u8],
        memory: &Memory,
    ) -> Result<Option<Full>> {
        let at = usize::try_from(offset.saturating_sub(self.begin)).unwrap_or(usize::MAX);
        let end = at.saturating_add(bytes.len());
        // What is missing takes memory, too.
        if at > self.bytes.len().saturating_add(limits::S3_MAX_GAP) {
            return Err(Error::failure(
                "S3 takes no file that is written with such gaps: send it in order",
            ));
        }
        if end > self.bytes.capacity() {
            let room = (2 * self.bytes.capacity()).max(STEP).min(self.max).max(end);
            if let Err(full) = memory.grow(&mut self.share, room) {
                return Ok(Some(full));
            }
            self.bytes.reserve_exact(room - self.bytes.len());
        }
        if end > self.bytes.len() {
            self.bytes.resize(end, 0);
        }
        self.bytes[at..end].copy_from_slice(bytes);
        self.add(at..end);
        Ok(None)
    }

    fn add(&mut self, mut range: Range<usize>) {
        let first = self.written.partition_point(|one| one.end < range.start);
        let last = self.written.partition_point(|one| one.start <= range.end);
        if let (Some(one), Some(other)) = (self.written.get(first), self.written[..last].last())
            && first < last
        {
            range = range.start.min(one.start)..range.end.max(other.end);
        }
        self.written.splice(first..last, [range]);
    }

    /// Ranges of the object that are not written, from the part's begin to `end`.
    pub(super) fn gaps(&self, end: u64) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut at = self.begin;
        for range in &self.written {
            let start = (self.begin + range.start as u64).min(end);
            if at < start {
                gaps.push(at..start);
            }
            at = at.max(self.begin + range.end as u64);
        }
        if at < end {
            gaps.push(at..end);
        }
        gaps
    }

    pub(super) fn is_complete_to(&self, end: u64) -> bool {
        self.written
            .first()
            .is_some_and(|range| range.start == 0 && self.begin + range.end as u64 >= end)
    }

    /// Forgets what is written from an offset on. False if nothing is left.
    pub(super) fn truncate(&mut self, size: u64) -> bool {
        let len = usize::try_from(size.saturating_sub(self.begin)).unwrap_or(usize::MAX);
        self.bytes.truncate(len);
        self.written.retain_mut(|range| {
            range.end = range.end.min(len);
            range.start < range.end
        });
        !self.written.is_empty()
    }

    /// The bytes, and their memory.
    pub(super) fn into_bytes(self) -> (Bytes, Share) {
        (self.bytes.into(), self.share)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BEGIN: u64 = 1000;
    const MAX: usize = 64;

    proptest! {
        /// The same bytes and gaps as a plain list of optional bytes.
        #[test]
        fn parts_know_what_is_written(
            writes in proptest::collection::vec((0..MAX, 0..20_usize, any::<u8>()), 0..20),
            cut in 0..=MAX,
        ) {
            let memory = Memory::default();
            let mut part = Part::new(&(BEGIN..BEGIN + MAX as u64));
            let mut plain = [None; MAX];
            for (at, len, byte) in writes {
                let end = (at + len).min(MAX);
                if at == end {
                    continue;
                }
                let full = part.write(BEGIN + at as u64, &vec![byte; end - at], &memory).unwrap();
                prop_assert_eq!(full, None);
                plain[at..end].fill(Some(byte));
                let full = plain.iter().all(Option::is_some);
                prop_assert_eq!(part.is_complete_to(BEGIN + MAX as u64), full);
            }
            part.truncate(BEGIN + cut as u64);
            plain[cut..].fill(None);
            let gaps = part.gaps(BEGIN + MAX as u64);
            let in_gap = |at: usize| gaps.iter().any(|gap| gap.contains(&(BEGIN + at as u64)));
            for (at, byte) in plain.iter().enumerate() {
                prop_assert_eq!(in_gap(at), byte.is_none());
                if let Some(byte) = byte {
                    prop_assert_eq!(part.bytes[at], *byte);
                }
            }
            prop_assert!(part.written.windows(2).all(|two| two[0].end < two[1].start));
        }
    }

    /// A byte at the end of a part takes the memory of all of it.
    #[test]
    fn a_user_whose_memory_is_used_up_begins_no_part() {
        let range = 0..8 << 20;
        let memory = Memory::default();
        let (greedy, other) = (memory.of_user("greedy"), memory.of_user("other"));
        let mut held = Share::default();
        assert_eq!(greedy.grow(&mut held, limits::S3_MEMORY / 2), Ok(()));
        let write = |part: &mut Part, memory| part.write(range.end - 1, b"x", memory).unwrap();
        let mut part = Part::new(&range);
        assert_eq!(write(&mut part, &greedy), Some(Full::User));
        assert_eq!((part.bytes.capacity(), part.written.len()), (0, 0));
        assert_eq!(write(&mut Part::new(&range), &other), None);
        drop(held);
        assert_eq!(write(&mut part, &greedy), None);
        let gap = range.start..range.end - 1;
        assert_eq!(part.gaps(range.end), vec![gap]);
    }
}

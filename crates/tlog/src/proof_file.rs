//! `.tlog-proof` files (c2sp.org/tlog-proof): an entry's index, its inclusion proof and the signed checkpoint.

use std::fmt;

use crate::checkpoint::{CheckpointError, SignedCheckpoint};
use crate::note::MAX_NOTE;
use crate::proof::{self, ProofError};
use crate::{Hash, text};

const FIRST_LINE: &str = "c2sp.org/tlog-proof@v1";
/// The most hashes: one for each bit of the index.
const MAX_HASHES: usize = 63;
/// The longest extra data, in bytes: an entry and its context.
pub const MAX_EXTRA: usize = 1 << 17;
/// The longest file, in bytes.
pub const MAX_FILE: usize = MAX_NOTE + 2 * MAX_EXTRA;

/// Why a file was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProofFileError {
    /// It is longer than [`MAX_FILE`], or its extra data than [`MAX_EXTRA`].
    #[error("the proof is longer than a proof can be")]
    TooLong,
    /// It does not begin like one.
    #[error("the file does not begin with \"{FIRST_LINE}\"")]
    FirstLine,
    /// A line before the checkpoint is malformed.
    #[error("line {0} of the proof cannot be read")]
    Line(usize),
    /// The part after the empty line.
    #[error("the proof's checkpoint: {0}")]
    Checkpoint(#[from] CheckpointError),
}

/// A proof that an entry is in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProofFile {
    /// Data that is not authenticated.
    pub extra: Option<Vec<u8>>,
    /// Index of the entry, from 0.
    pub index: u64,
    /// The siblings' hashes, from the leaf upwards.
    pub hashes: Vec<Hash>,
    /// The checkpoint with the signatures of its log and its witnesses.
    pub checkpoint: SignedCheckpoint,
}

impl ProofFile {
    /// Parses a file. Its proof and its signatures need not be valid: see [`crate::policy::verify_proof`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ProofFileError> {
        if bytes.len() > MAX_FILE {
            return Err(ProofFileError::TooLong);
        }
        let not_text = |error: std::str::Utf8Error| {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            ProofFileError::Line(before.iter().filter(|byte| **byte == b'\n').count() + 1)
        };
        let whole = std::str::from_utf8(bytes).map_err(not_text)?;
        let mut lines = Lines { rest: whole, number: 0 };
        if lines.next() != Some(FIRST_LINE) {
            return Err(ProofFileError::FirstLine);
        }
        let mut line = lines.need()?;
        let mut extra = None;
        if let Some(data) = line.strip_prefix("extra ") {
            let data = text::base64(data).ok_or(ProofFileError::Line(lines.number))?;
            if data.len() > MAX_EXTRA {
                return Err(ProofFileError::TooLong);
            }
            extra = Some(data);
            line = lines.need()?;
        }
        let index = line.strip_prefix("index ").and_then(text::decimal);
        let index = index.ok_or(ProofFileError::Line(lines.number))?;
        let mut hashes = Vec::new();
        loop {
            let line = lines.need()?;
            if line.is_empty() {
                break;
            }
            match text::hash(line) {
                Some(hash) if hashes.len() < MAX_HASHES => hashes.push(hash),
                _ => return Err(ProofFileError::Line(lines.number)),
            }
        }
        let checkpoint = SignedCheckpoint::parse(lines.rest.as_bytes())?;
        Ok(Self { extra, index, hashes, checkpoint })
    }

    /// Verifies that the entry is at the index in the checkpoint's tree. Does not verify the checkpoint's signatures.
    pub fn verify_inclusion(&self, entry: &[u8]) -> Result<(), ProofError> {
        let head = self.checkpoint.checkpoint();
        let leaf = crate::hash::leaf(entry);
        proof::verify_inclusion(&leaf, self.index, head.size(), &self.hashes, head.root())
    }
}

impl fmt::Display for ProofFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{FIRST_LINE}")?;
        if let Some(extra) = &self.extra {
            writeln!(f, "extra {}", text::to_base64(extra))?;
        }
        writeln!(f, "index {}", self.index)?;
        self.hashes.iter().try_for_each(|hash| writeln!(f, "{}", text::to_base64(hash)))?;
        write!(f, "\n{}", self.checkpoint)
    }
}

/// Lines that end in newlines, counted from 1.
struct Lines<'t> {
    rest: &'t str,
    number: usize,
}

impl<'t> Lines<'t> {
    fn next(&mut self) -> Option<&'t str> {
        let (line, rest) = self.rest.split_once('\n')?;
        self.rest = rest;
        self.number += 1;
        Some(line)
    }

    fn need(&mut self) -> Result<&'t str, ProofFileError> {
        self.next().ok_or(ProofFileError::Line(self.number + 1))
    }
}

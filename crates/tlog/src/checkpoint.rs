//! Checkpoints (c2sp.org/tlog-checkpoint): origin, size and root of a log as the text of a signed note.

use std::fmt;

use crate::note::{NoteError, SignedNote, Verified};
use crate::{Hash, KeyError, Signer, VerifierKey, hash, text};

/// Why a checkpoint was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// The note around it.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// The first line is not an origin of 1 to 255 bytes.
    #[error("the checkpoint's origin is empty, too long or has control characters")]
    Origin,
    /// The second line is not a size.
    #[error("the checkpoint's size is not a decimal number without leading zeroes")]
    Size,
    /// The third line is not a hash, or the hash of an empty tree is wrong.
    #[error("the checkpoint's root is not base64 of a hash that its size can have")]
    Root,
    /// A line after these is empty, or the last one lacks its newline.
    #[error("the checkpoint has an empty line or an incomplete one")]
    Lines,
}

/// The head of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    origin: String,
    size: u64,
    root: Hash,
    extensions: Vec<String>,
}

impl Checkpoint {
    /// The head of the log `origin`, without extension lines.
    pub fn new(origin: &str, size: u64, root: Hash) -> Result<Self, CheckpointError> {
        if !(1..=255).contains(&origin.len()) || origin.chars().any(|c| c < ' ') {
            return Err(CheckpointError::Origin);
        }
        if size > crate::MAX_SIZE {
            return Err(CheckpointError::Size);
        }
        if size == 0 && root != hash::EMPTY_ROOT {
            return Err(CheckpointError::Root);
        }
        Ok(Self { origin: origin.to_owned(), size, root, extensions: Vec::new() })
    }

    /// Parses the text of a note.
    pub fn parse(text: &str) -> Result<Self, CheckpointError> {
        let text = text.strip_suffix('\n').ok_or(CheckpointError::Lines)?;
        let mut lines = text.split('\n');
        let origin = lines.next().ok_or(CheckpointError::Origin)?;
        let size = lines.next().and_then(text::decimal).ok_or(CheckpointError::Size)?;
        let root = lines.next().and_then(text::hash).ok_or(CheckpointError::Root)?;
        let extensions: Vec<String> = lines.map(str::to_owned).collect();
        if extensions.iter().any(|line| line.is_empty() || text::has_control_characters(line)) {
            return Err(CheckpointError::Lines);
        }
        Ok(Self { extensions, ..Self::new(origin, size, root)? })
    }

    /// Origin of the log.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Number of entries.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The tree's root.
    pub fn root(&self) -> &Hash {
        &self.root
    }

    /// Lines after the root, which ML-DSA-44 signatures do not allow.
    pub fn extensions(&self) -> &[String] {
        &self.extensions
    }
}

/// The text of its note.
impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}\n{}", self.origin, self.size, text::to_base64(&self.root))?;
        self.extensions.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// A checkpoint with its note; the signatures need not be valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedCheckpoint {
    checkpoint: Checkpoint,
    note: SignedNote,
}

impl SignedCheckpoint {
    /// Signs a checkpoint at `time`, in seconds since 1970, with each of the signers.
    pub fn sign(checkpoint: Checkpoint, signers: &[&Signer], time: u64) -> Result<Self, KeyError> {
        let mut note = SignedNote::new(&checkpoint.to_string()).map_err(|_| KeyError::Message)?;
        for signer in signers {
            let signature = signer.sign(note.text(), time)?;
            note.add(signature).map_err(|_| KeyError::Message)?;
        }
        Ok(Self { checkpoint, note })
    }

    /// Parses a note whose text is a checkpoint.
    pub fn parse(bytes: &[u8]) -> Result<Self, CheckpointError> {
        SignedNote::parse(bytes)?.try_into()
    }

    /// The head.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The note with all signatures.
    pub fn note(&self) -> &SignedNote {
        &self.note
    }

    /// Adds a cosignature, which must have been verified.
    pub fn add(&mut self, signature: crate::NoteSignature) -> Result<(), NoteError> {
        self.note.add(signature)
    }

    /// The valid signatures of the log itself, at least one: by the known keys whose name is the origin.
    pub fn verify_log<'k>(&self, known: &'k [VerifierKey]) -> Result<Vec<Verified<'k>>, NoteError> {
        let mut verified = self.note.verify(known)?;
        verified.retain(|by| by.key.name() == self.checkpoint.origin && by.key.algorithm().of_logs);
        if verified.is_empty() { Err(NoteError::Unsigned) } else { Ok(verified) }
    }
}

impl TryFrom<SignedNote> for SignedCheckpoint {
    type Error = CheckpointError;

    fn try_from(note: SignedNote) -> Result<Self, CheckpointError> {
        Ok(Self { checkpoint: Checkpoint::parse(note.text())?, note })
    }
}

impl fmt::Display for SignedCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.note.fmt(f)
    }
}

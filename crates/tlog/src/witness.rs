//! Requests to a witness and its answers (c2sp.org/tlog-witness), without sockets and stores.
//!
//! [`decide`] makes the whole decision of a witness. Its caller must hold the record of the origin from before it is
//! read until the new one is durable, and may only sign then.

use std::fmt;

use crate::checkpoint::{CheckpointError, SignedCheckpoint};
use crate::note::{MAX_NOTE, NoteError};
use crate::proof::{self, ProofError};
use crate::{Hash, NoteSignature, VerifierKey, hash, text};

/// The most hashes of a consistency proof.
pub const MAX_PROOF: usize = 63;
/// The longest request, in bytes.
pub const MAX_REQUEST: usize = MAX_NOTE + MAX_PROOF * 45 + 64;
/// Content type of the answer 409.
pub const SIZE_TYPE: &str = "text/x.tlog.size";

/// Why a request's body was refused: answer 400.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It is longer than [`MAX_REQUEST`].
    #[error("the request is too long")]
    TooLong,
    /// The first line is not `old <size>`.
    #[error("the request does not begin with \"old\" and a size")]
    Old,
    /// A line before the empty one is not a hash, or there are more than [`MAX_PROOF`].
    #[error("the consistency proof is not at most {MAX_PROOF} lines of base64")]
    Proof,
    /// The part after the empty line.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

/// The body of `add-checkpoint`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddCheckpoint {
    /// The size that the log believes the witness has.
    pub old: u64,
    /// The consistency proof from there.
    pub proof: Vec<Hash>,
    /// The new head.
    pub checkpoint: SignedCheckpoint,
}

impl AddCheckpoint {
    /// Parses a body.
    pub fn parse(body: &[u8]) -> Result<Self, RequestError> {
        if body.len() > MAX_REQUEST {
            return Err(RequestError::TooLong);
        }
        let split = body.windows(2).position(|pair| pair == b"\n\n").ok_or(RequestError::Proof)?;
        let (head, checkpoint) = body.split_at(split);
        let checkpoint = checkpoint.get(2..).unwrap_or_default();
        let mut lines = std::str::from_utf8(head).map_err(|_| RequestError::Old)?.split('\n');
        let old = lines.next().and_then(|line| text::decimal(line.strip_prefix("old ")?));
        let old = old.ok_or(RequestError::Old)?;
        let mut proof = Vec::new();
        for line in lines {
            match text::hash(line) {
                Some(hash) if proof.len() < MAX_PROOF => proof.push(hash),
                _ => return Err(RequestError::Proof),
            }
        }
        Ok(Self { old, proof, checkpoint: SignedCheckpoint::parse(checkpoint)? })
    }
}

impl fmt::Display for AddCheckpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "old {}", self.old)?;
        self.proof.iter().try_for_each(|hash| writeln!(f, "{}", text::to_base64(hash)))?;
        write!(f, "\n{}", self.checkpoint)
    }
}

/// The record of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The log's keys, any of which may sign.
    pub keys: Vec<VerifierKey>,
    /// Size and root that were last cosigned.
    pub head: Head,
}

/// A size and its root; by default the empty tree's, for a log that was never cosigned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Number of entries.
    pub size: u64,
    /// Root.
    pub root: Hash,
}

impl Default for Head {
    fn default() -> Self {
        Self { size: 0, root: hash::EMPTY_ROOT }
    }
}

/// The decision on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// 200: record this head, then sign.
    Cosign(Head),
    /// 400: the old size is larger than the checkpoint's.
    OldIsLarger,
    /// 403: not signed by a key of the log.
    NotSigned(NoteError),
    /// 404: the log is not known.
    UnknownOrigin,
    /// 409: the witness has this size. If the request has the same, the log has shown two roots for one size.
    Conflict(Head),
    /// 422: the consistency proof is wrong.
    Inconsistent(ProofError),
}

impl Decision {
    /// Status code of the answer.
    pub fn status(&self) -> u16 {
        match self {
            Self::Cosign(_) => 200,
            Self::OldIsLarger => 400,
            Self::NotSigned(_) => 403,
            Self::UnknownOrigin => 404,
            Self::Conflict(_) => 409,
            Self::Inconsistent(_) => 422,
        }
    }
}

/// Decides on a request by the record of its origin, with the checks in the specification's order.
pub fn decide(request: &AddCheckpoint, known: Option<&Known>) -> Decision {
    let Some(known) = known else { return Decision::UnknownOrigin };
    if let Err(error) = request.checkpoint.verify_log(&known.keys) {
        return Decision::NotSigned(error);
    }
    let head = request.checkpoint.checkpoint();
    let (size, root) = (head.size(), head.root());
    if request.old > size {
        return Decision::OldIsLarger;
    }
    if request.old != known.head.size {
        return Decision::Conflict(known.head);
    }
    if size == known.head.size && *root != known.head.root {
        return Decision::Conflict(known.head);
    }
    let Head { size: old_size, root: old_root } = known.head;
    match proof::verify_consistency(old_size, &old_root, size, root, &request.proof) {
        Ok(()) => Decision::Cosign(Head { size, root: *root }),
        Err(error) => Decision::Inconsistent(error),
    }
}

/// Parses the body of the answer 409.
pub fn parse_size(body: &[u8]) -> Option<u64> {
    text::decimal(std::str::from_utf8(body).ok()?.strip_suffix('\n')?)
}

/// Parses the body of the answer 200: the cosignatures of `checkpoint` by the known keys, each verified. Ignores
/// others'; an invalid one refuses the answer.
pub fn parse_cosignatures(
    body: &[u8],
    checkpoint: &SignedCheckpoint,
    known: &[VerifierKey],
) -> Result<Vec<NoteSignature>, NoteError> {
    let lines = std::str::from_utf8(body).map_err(|_| NoteError::Characters)?;
    let mut answered = crate::SignedNote::new(checkpoint.note().text())?;
    for signature in NoteSignature::parse_lines(lines)? {
        if known.iter().any(|key| key.is_named_by(&signature)) {
            answered.add(signature)?;
        }
    }
    let cosigns = |key: &VerifierKey| key.algorithm().of_witnesses;
    if answered.verify(known)?.iter().any(|by| !cosigns(by.key)) {
        return Err(NoteError::Unsigned);
    }
    Ok(answered.signatures().to_vec())
}

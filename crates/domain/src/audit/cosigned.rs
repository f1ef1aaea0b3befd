//! Heads with the signatures of witnesses.
//!
//! A witness signs a head only if it continues every head that the witness signed before. So no witness cosigns a
//! database that was set back to an older backup, and verifiers that require cosignatures refuse it.

use outlast_tlog::{NoteSignature, SignedCheckpoint, VerifierKey};
use serde::{Deserialize, Serialize};

use super::key::LogKey;
use super::signed_head;
use crate::Fault;
use crate::work::Work;

/// Record with the last head that has cosignatures: a [`Cosigned`].
pub const COSIGNED: &str = "audit/cosigned-head";

/// A head with its cosignatures.
#[derive(Debug, Serialize, Deserialize)]
struct Cosigned {
    /// The signed note.
    head: String,
    /// Number of cosignatures.
    count: usize,
}

/// Adds cosignatures of `witnesses` to the head `signed` and stores it, unless a head with more of them, or a later
/// one with as many, is stored already. Ignores invalid signatures. Returns the number of valid ones.
pub fn keep(
    work: &mut Work<'_>,
    signed: &SignedCheckpoint,
    signatures: &[NoteSignature],
    witnesses: &[VerifierKey],
) -> Result<usize, Fault> {
    keep_in(work, COSIGNED, signed, signatures, witnesses)
}

/// The same for a log whose cosigned head is the record `record_key`.
pub(crate) fn keep_in(
    work: &mut Work<'_>,
    record_key: &str,
    signed: &SignedCheckpoint,
    signatures: &[NoteSignature],
    witnesses: &[VerifierKey],
) -> Result<usize, Fault> {
    let mut head = signed.clone();
    let text = signed.note().text();
    let mut count = 0;
    for signature in signatures {
        let by = witnesses.iter().find(|key| key.is_named_by(signature));
        if by.is_some_and(|key| key.verify(text, signature).is_ok())
            && head.add(signature.clone()).is_ok()
        {
            count += 1;
        }
    }
    let before = work.get::<Cosigned>(record_key)?;
    let size_before = before.as_ref().and_then(|found| {
        Some(SignedCheckpoint::parse(found.head.as_bytes()).ok()?.checkpoint().size())
    });
    let is_better = before.is_none_or(|found| {
        count > found.count
            || (count == found.count
                && size_before.is_none_or(|size| size <= head.checkpoint().size()))
    });
    if count > 0 && is_better {
        work.put(record_key, &Cosigned { head: head.to_string(), count })?;
    }
    Ok(count)
}

/// The head for proofs: the last cosigned one if it covers `size` entries, else the last one that the log signed. If
/// neither covers that many, returns the number of covered entries.
pub fn best_head(
    work: &mut Work<'_>,
    key: &LogKey,
    size: u64,
) -> Result<Result<SignedCheckpoint, u64>, Fault> {
    let signed = signed_head(work, key)?;
    best_of(work, COSIGNED, key, signed, size)
}

/// The same for a log whose cosigned head is the record `record_key`, and whose last head is `signed`.
pub(crate) fn best_of(
    work: &mut Work<'_>,
    record_key: &str,
    key: &LogKey,
    signed: SignedCheckpoint,
    size: u64,
) -> Result<Result<SignedCheckpoint, u64>, Fault> {
    let cosigned = work
        .get::<Cosigned>(record_key)?
        .and_then(|found| SignedCheckpoint::parse(found.head.as_bytes()).ok())
        .filter(|head| {
            head.checkpoint().size() >= size && head.verify_log(&key.verifiers()).is_ok()
        });
    Ok(match cosigned {
        Some(head) => Ok(head),
        None if signed.checkpoint().size() >= size => Ok(signed),
        None => Err(signed.checkpoint().size()),
    })
}

//! Proofs that entries are in the log.

use outlast_tlog::SignedCheckpoint;
use outlast_tlog::proof_file::ProofFile;
use outlast_tlog::tile::Tree;

use super::{ENTRIES, Log, Stored, TILES, entry_key};
use crate::Fault;
use crate::audit::prove::fault;
use crate::audit::tiles::RecordTiles;
use crate::work::Work;

impl Log {
    /// Proves that the entry `index` is in the log with the head `signed`; the entry itself is included as `extra`.
    /// `None` if the head does not cover it.
    ///
    /// # Errors
    /// [`Fault::Damaged`] if the log's records are not those that were signed, so that the proof would be invalid.
    pub fn prove(
        &self,
        work: &mut Work<'_>,
        signed: &SignedCheckpoint,
        index: u64,
    ) -> Result<Option<ProofFile>, Fault> {
        if index >= signed.checkpoint().size() {
            return Ok(None);
        }
        let record_key = entry_key(index);
        let damaged = || Fault::Damaged(record_key.clone());
        let entry = work.get::<Stored>(&record_key)?.ok_or_else(damaged)?.entry.into_bytes();
        let tree = Tree::new(RecordTiles::new(work, TILES), signed.checkpoint().size());
        let hashes = tree.and_then(|tree| tree.inclusion(index)).map_err(fault)?;
        let found =
            ProofFile { extra: Some(entry.clone()), index, hashes, checkpoint: signed.clone() };
        found.verify_inclusion(&entry).map_err(|_| damaged())?;
        Ok(Some(found))
    }

    /// Proves that the head `signed` continues an earlier head, for witnesses.
    pub fn consistency(
        work: &mut Work<'_>,
        old_size: u64,
        signed: &SignedCheckpoint,
    ) -> Result<Vec<outlast_tlog::Hash>, Fault> {
        let tree = Tree::new(RecordTiles::new(work, TILES), signed.checkpoint().size());
        tree.and_then(|tree| tree.consistency(old_size)).map_err(fault)
    }

    /// Up to `limit` entries from `first` on, as bytes. Takes no part in conflict detection.
    ///
    /// # Errors
    /// [`Fault::Damaged`] if one is missing.
    pub fn entries(
        &self,
        work: &Work<'_>,
        first: u64,
        limit: usize,
    ) -> Result<Vec<Vec<u8>>, Fault> {
        let left = usize::try_from(self.head.size.saturating_sub(first)).unwrap_or(limit);
        let limit = limit.min(left);
        if limit == 0 {
            return Ok(Vec::new());
        }
        let after = first.checked_sub(1).map(entry_key).unwrap_or_default();
        let found = work.scan::<Stored>(ENTRIES, &after, limit)?;
        let in_order = (first..).zip(&found).all(|(index, (key, _))| *key == entry_key(index));
        if found.len() != limit || !in_order {
            let there =
                (first..).zip(&found).take_while(|(index, (key, _))| *key == entry_key(*index));
            return Err(Fault::Damaged(entry_key(first + there.count() as u64)));
        }
        Ok(found.into_iter().map(|(_, stored)| stored.entry.into_bytes()).collect())
    }
}

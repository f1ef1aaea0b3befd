//! The last signed head, sealed: a store without it has been tampered with.

use outlast_crypto::Secret;
use outlast_tlog::{CompactRange, Hash};
use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::work::Work;

/// Key of the sealed record with the [`Head`]; every store has one from the beginning.
pub const HEAD: &str = "audit/head";

/// The log's state when it was last signed. The next head is computed from this one and the events after it, never
/// from what the database contains of the events before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Number of entries.
    pub size: u64,
    /// When it was signed, milliseconds since 1970.
    pub at_ms: i64,
    /// Index of the first entry that was not pruned.
    #[serde(default)]
    pub pruned: u64,
    /// Hashes of the largest perfect subtrees, in hexadecimal: see [`CompactRange`].
    subtrees: Vec<String>,
}

impl Head {
    /// The head of a log that consists of `range`.
    pub(crate) fn new(range: &CompactRange, at_ms: i64, pruned: u64) -> Self {
        let subtrees = range.hashes().iter().map(hex::encode).collect();
        Self { size: range.end(), at_ms, pruned, subtrees }
    }

    /// The compact range of the log up to this head.
    pub fn range(&self) -> Result<CompactRange, Fault> {
        let damaged = || Fault::Damaged(HEAD.to_owned());
        let hashes: Vec<Hash> = self
            .subtrees
            .iter()
            .map(|text| hex::decode(text).ok()?.try_into().ok())
            .collect::<Option<_>>()
            .ok_or_else(damaged)?;
        CompactRange::from_parts(0, self.size, hashes).map_err(|_| damaged())
    }

    /// The root of its tree.
    pub fn root(&self) -> Result<Hash, Fault> {
        self.range()?.root().ok_or_else(|| Fault::Damaged(HEAD.to_owned()))
    }

    /// Reads the head of a store.
    ///
    /// # Errors
    /// [`Fault::Audit`] if there is none, or it cannot be unsealed: every store has one, so it was removed
    /// or replaced. If the current root key is not available, nothing can be said of the head, and the error is the
    /// root key's.
    pub fn read(work: &mut Work<'_>) -> Result<Self, Fault> {
        let missing = || Fault::Audit("the record of the last signed head is missing".into());
        let damaged = || Fault::Audit("the record of the last signed head was changed".into());
        let sealed = match work.secret(HEAD) {
            Err(Fault::Damaged(_)) => {
                work.root().check_current(work.store())?;
                return Err(damaged());
            }
            other => other?.ok_or_else(missing)?,
        };
        Self::parse(&sealed).ok_or_else(damaged)
    }

    /// Parses the contents of the record.
    pub(crate) fn parse(sealed: &Secret) -> Option<Self> {
        serde_json::from_slice(sealed.expose()).ok()
    }

    pub(super) fn write(&self, work: &mut Work<'_>) -> Result<(), Fault> {
        let bytes = serde_json::to_vec(self).map_err(|error| Fault::Encoding(error.to_string()))?;
        work.put_secret(HEAD, &Secret::new(bytes))
    }
}

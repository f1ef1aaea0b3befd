//! The last signed head, sealed: a store without it was tampered with.

use outlast_crypto::Secret;
use outlast_tlog::{CompactRange, Hash};
use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::work::Work;

/// Sealed record with the [`Head`]; every store has one from the beginning.
pub const HEAD: &str = "audit/head";

/// Where the log was when it was signed last. The next head is made from this one and the events after it, never from
/// what the database says of the events before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Number of entries.
    pub size: u64,
    /// When it was signed, milliseconds since 1970.
    pub at_ms: i64,
    /// Entries before this one were pruned.
    #[serde(default)]
    pub pruned: u64,
    /// Hashes of the largest perfect subtrees, in hexadecimal: see [`CompactRange`].
    subtrees: Vec<String>,
}

impl Head {
    /// The head of a log that consists of `range`.
    pub(super) fn new(range: &CompactRange, at_ms: i64, pruned: u64) -> Self {
        let subtrees = range.hashes().iter().map(hex::encode).collect();
        Self { size: range.end(), at_ms, pruned, subtrees }
    }

    /// The log up to here.
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

    /// The head of a store.
    ///
    /// # Errors
    /// [`Fault::Audit`] if there is none, or it does not open: it exists in every store, so it was taken away. But where
    /// the current root key cannot be had, nothing can be said of it: the error is then that of the root key.
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

    /// Reads what the record holds.
    pub(crate) fn parse(sealed: &Secret) -> Option<Self> {
        serde_json::from_slice(sealed.expose()).ok()
    }

    pub(super) fn write(&self, work: &mut Work<'_>) -> Result<(), Fault> {
        let bytes = serde_json::to_vec(self).map_err(|error| Fault::Encoding(error.to_string()))?;
        work.put_secret(HEAD, &Secret::new(bytes))
    }
}

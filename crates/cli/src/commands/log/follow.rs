//! Follows the log from a head that was seen before, and refuses one that does not continue it.
//!
//! What is kept of the log is its compact range (at most 63 hashes): with the new entries it gives the root that the new
//! head must have. So no entry can be left out, and none before it can have changed.

use outlast_api::ops::outlast::get_log_entries;
use outlast_tlog::{CompactRange, Hash, SignedCheckpoint, VerifierKey, hash};
use serde::{Deserialize, Serialize};

use super::checkpoint::fetch;
use crate::artifact_log::explained;
use crate::endpoint::Endpoint;
use crate::failure::{Failure, REFUSED};

/// Entries that one call returns, at most.
const PAGE: u64 = 256;

/// The log as it was seen last.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Seen {
    /// Origin of the log; empty before the first entry.
    pub(super) origin: String,
    /// The keys that sign its heads.
    keys: Vec<String>,
    size: u64,
    /// The compact range, in hexadecimal.
    subtrees: Vec<String>,
    /// The last head.
    checkpoint: String,
}

/// An entry and its index.
pub(super) type Indexed = (u64, String);

impl Seen {
    /// Reads what was appended since, and remembers the new head. `keys` are those that the caller trusts; without any,
    /// the first head that is seen says which keys sign the log.
    pub(super) async fn advance(
        &mut self,
        endpoint: &mut Endpoint,
        keys: &[VerifierKey],
    ) -> Result<Vec<Indexed>, Failure> {
        let refused = |reason: String| {
            Failure::new(format!("the artifact log is not the one that was seen before: {reason}"))
                .hint("keep the state file: it has the head that the log signed before; ask the operator of the service")
                .code(REFUSED)
        };
        let Some(answer) = fetch(endpoint).await? else {
            return match self.size {
                0 => Ok(Vec::new()),
                size => Err(refused(format!("it had {size} entries, and has none"))),
            };
        };
        let head = SignedCheckpoint::parse(answer.checkpoint.as_bytes())
            .map_err(|error| refused(error.to_string()))?;
        let known = match (keys, self.keys.as_slice()) {
            ([], []) => answer.verifier_keys,
            ([], known) => known.to_vec(),
            (keys, _) => keys.iter().map(ToString::to_string).collect(),
        };
        let parsed = known.iter().map(|key| key.parse()).collect::<Result<Vec<VerifierKey>, _>>();
        let parsed = parsed.map_err(|error| refused(error.to_string()))?;
        head.verify_log(&parsed).map_err(|error| {
            refused(format!("its newest head has not the log's signature ({error})"))
        })?;
        let (origin, size) = (head.checkpoint().origin(), head.checkpoint().size());
        if !self.origin.is_empty() && self.origin != origin {
            return Err(refused(format!("it was {}, and is {origin}", self.origin)));
        }
        if size < self.size {
            return Err(refused(format!("it had {} entries, and has {size}", self.size)));
        }
        let mut range = self.range()?;
        let mut new = Vec::new();
        while range.end() < size {
            let (page, _) = entries(endpoint, range.end(), size - range.end()).await?;
            if page.is_empty() {
                return Err(refused(format!("entry {} is missing", range.end())));
            }
            for entry in page {
                let index = range.end();
                range
                    .append(&hash::leaf(entry.as_bytes()))
                    .map_err(|error| refused(error.to_string()))?;
                new.push((index, entry));
            }
        }
        if range.root() != Some(*head.checkpoint().root()) {
            return Err(refused(format!(
                "its head of {size} entries does not continue the one of {} entries",
                self.size
            )));
        }
        *self = Self {
            origin: origin.to_owned(),
            keys: known,
            size,
            subtrees: range.hashes().iter().map(hex::encode).collect(),
            checkpoint: answer.checkpoint,
        };
        Ok(new)
    }

    /// Number of entries that were seen.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    fn range(&self) -> Result<CompactRange, Failure> {
        let hash = |text: &String| -> Option<Hash> { hex::decode(text).ok()?.try_into().ok() };
        let hashes = self.subtrees.iter().map(hash).collect::<Option<Vec<_>>>();
        hashes
            .and_then(|hashes| CompactRange::from_parts(0, self.size, hashes).ok())
            .ok_or_else(|| Failure::new("the state file is damaged").hint("begin with a new one"))
    }
}

/// Some entries from `first` on, as text, and the size of the log.
pub(super) async fn entries(
    endpoint: &mut Endpoint,
    first: u64,
    most: u64,
) -> Result<(Vec<String>, u64), Failure> {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let input = get_log_entries::Input {
        start_index: Some(number(first)),
        max_results: Some(number(most.clamp(1, PAGE))),
    };
    let outcome = endpoint.call::<get_log_entries::GetLogEntries>(&input).await;
    let answer = outcome.map_err(|error| explained(error, "outlast:GetLogEntries"))?;
    Ok((answer.entries, answer.log_size.unsigned_abs()))
}

//! Checks the artifact log: its entries, its tiles and its signed head belong together.

use std::collections::BTreeMap;

use outlast_crypto::Secret;
use outlast_tlog::{Hash, SignedCheckpoint, hash};
use serde_json::Value;

use crate::artifacts::{ENTRIES, HEAD, KEY, LogEntry, State, Stored, TILES, entry_key};
use crate::audit::LogKey;
use crate::audit::tiles::{self, Edge};

/// A record key and the problem.
type Problem = (String, String);

/// What was read of the log. The entries come before the rest, in order.
pub(super) struct Artifacts {
    state: Option<State>,
    key: Option<LogKey>,
    tiles: BTreeMap<(u8, u64), Vec<Hash>>,
    /// The log as computed from the entries, as far as none is missing.
    computed: Edge,
    is_broken: bool,
    found: Vec<Problem>,
}

impl Default for Artifacts {
    fn default() -> Self {
        Self {
            state: None,
            key: None,
            tiles: BTreeMap::new(),
            computed: Edge::of_records(),
            is_broken: false,
            found: Vec::new(),
        }
    }
}

impl Artifacts {
    /// Takes a plain record, if it belongs to the log.
    pub(super) fn record(&mut self, record_key: &str, value: &Value) -> bool {
        if record_key.starts_with(ENTRIES) {
            self.entry(record_key, value);
        } else if record_key.starts_with(TILES) {
            match (tiles::at(TILES, record_key), tiles::hashes(value)) {
                (Some(at), Some(hashes)) => {
                    self.tiles.insert(at, hashes);
                }
                _ => self.problem(record_key, "the tile cannot be read"),
            }
        } else if record_key == HEAD {
            self.state = serde_json::from_value(value.clone()).ok();
            if self.state.is_none() {
                self.problem(record_key, "it cannot be read");
            }
        } else {
            return false;
        }
        true
    }

    fn entry(&mut self, record_key: &str, value: &Value) {
        let Ok(Stored { entry }) = serde_json::from_value(value.clone()) else {
            self.is_broken = true;
            return self.problem(record_key, "the entry cannot be read");
        };
        if LogEntry::parse(entry.as_bytes()).is_err() {
            self.problem(record_key, "it is not an entry of an artifact log");
        }
        if self.is_broken {
            return;
        }
        let expected = entry_key(self.computed.size());
        if record_key == expected {
            self.computed.append(&hash::leaf(entry.as_bytes()));
        } else {
            self.is_broken = true;
            self.problem(&expected, "the entry is missing");
        }
    }

    /// Takes a secret, if it belongs to the log.
    pub(super) fn secret(&mut self, record_key: &str, secret: &Secret) -> bool {
        if record_key != KEY {
            return false;
        }
        self.key = LogKey::parse(Secret::new(secret.expose().to_vec())).ok();
        if self.key.is_none() {
            self.problem(record_key, "it holds no keys that sign the log");
        }
        true
    }

    fn problem(&mut self, record_key: &str, what: &str) {
        self.found.push((record_key.to_owned(), what.to_owned()));
    }

    /// What is wrong with the records together.
    pub(super) fn end(&mut self) -> Vec<Problem> {
        let problem = match (&self.state, &self.key) {
            (None, None) if self.computed.size() == 0 && self.tiles.is_empty() => None,
            (None, _) => {
                Some((HEAD, "it is missing, and other records of the log are there".into()))
            }
            (Some(_), None) => Some((KEY, "it is missing, or does not open".to_owned())),
            (Some(state), Some(key)) => self.compare(state, key).map(|what| (HEAD, what)),
        };
        if let Some((record_key, what)) = problem {
            self.problem(record_key, &what);
        }
        self.compare_tiles();
        std::mem::take(&mut self.found)
    }

    /// The problem of the head, if it has one.
    fn compare(&self, state: &State, key: &LogKey) -> Option<String> {
        let Ok(signed) = SignedCheckpoint::parse(state.signed.as_bytes()) else {
            return Some("its signed form cannot be read".into());
        };
        if signed.verify_log(&key.verifiers()).is_err() {
            return Some("it is not signed with the log's keys".into());
        }
        let sealed = (state.head.size, state.head.root().ok());
        if sealed != (signed.checkpoint().size(), Some(*signed.checkpoint().root())) {
            return Some("its signed form is another head".into());
        }
        let (found, size) = (self.computed.size(), state.head.size);
        if self.is_broken {
            // The entry that is missing is named already.
            return None;
        }
        if found != size {
            return Some(format!("{size} entries were signed, and there are {found}"));
        }
        let is_same = self.computed.range().ok() == state.head.range().ok();
        (!is_same).then(|| "the entries are not those that were signed".into())
    }

    fn compare_tiles(&mut self) {
        if self.is_broken {
            return;
        }
        let mut wrong = Vec::new();
        for ((level, index), computed) in self.computed.grown() {
            if self.tiles.remove(&(*level, *index)).as_ref() != Some(computed) {
                wrong.push((*level, *index));
            }
        }
        wrong.extend(self.tiles.keys());
        for (level, index) in wrong {
            let record_key = tiles::record_key(TILES, level, index);
            self.problem(&record_key, "it is missing, or not the tile of the entries");
        }
    }
}

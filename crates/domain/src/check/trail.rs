//! Checks the audit events with their log: sealed head, signed head, and tiles.

use std::collections::BTreeMap;

use outlast_crypto::Secret;
use outlast_store::Event;
use outlast_tlog::{CompactRange, Hash, SignedCheckpoint};
use serde_json::Value;

use crate::Fault;
use crate::audit::alarm::ALARM;
use crate::audit::head::HEAD;
use crate::audit::key::LOG_KEY;
use crate::audit::tiles::{self, Edge, TILES};
use crate::audit::{Head, LogKey, SIGNED};

/// A record key and the problem.
type Problem = (String, String);

/// What was read of the events and the log. The records come before the events.
#[derive(Default)]
pub(super) struct Trail {
    head: Option<Head>,
    key: Option<LogKey>,
    signed: Option<String>,
    tiles: BTreeMap<(u8, u64), Vec<Hash>>,
    /// The log as computed from the events, unless some are missing.
    computed: Option<Edge>,
    has_begun: bool,
    /// Sequence of the last event.
    sequence: u64,
    /// The compact range at the size of the sealed head.
    at_head: Option<CompactRange>,
    found: Vec<Problem>,
}

impl Trail {
    /// Takes a plain record, if it belongs to the log.
    pub(super) fn record(&mut self, record_key: &str, value: &Value) -> bool {
        if record_key.starts_with(TILES) {
            match (tiles::at(TILES, record_key), tiles::hashes(value)) {
                (Some(at), Some(hashes)) => {
                    self.tiles.insert(at, hashes);
                }
                _ => self.problem(record_key, "the tile cannot be read"),
            }
        } else if record_key == SIGNED {
            self.signed = value.as_str().map(str::to_owned);
        } else {
            return false;
        }
        true
    }

    /// Takes a secret, if it belongs to the log.
    pub(super) fn secret(&mut self, record_key: &str, secret: &Secret) -> bool {
        if record_key == HEAD {
            self.head = Head::parse(secret);
            if self.head.is_none() {
                self.problem(record_key, "it cannot be read");
            }
        } else if record_key == LOG_KEY {
            match LogKey::parse(Secret::new(secret.expose().to_vec())) {
                Ok(key) => self.key = Some(key),
                Err(_) => self.problem(record_key, "it holds no keys that sign the log"),
            }
        } else if record_key == ALARM {
            let reason = String::from_utf8_lossy(secret.expose()).into_owned();
            self.problem(record_key, &format!("a server has raised an alarm: {reason}"));
        } else {
            return false;
        }
        true
    }

    /// The sealed head.
    pub(super) fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    fn problem(&mut self, record_key: &str, what: &str) {
        self.found.push((record_key.to_owned(), what.to_owned()));
    }

    /// Takes the next event; returns its problem, if it has one.
    pub(super) fn event(&mut self, event: &Event) -> Vec<Problem> {
        let mut found = Vec::new();
        let record_key = format!("event/{}", event.sequence);
        self.begin();
        if event.sequence != self.sequence + 1 {
            let what = match self.sequence {
                0 => "the events before it are missing".to_owned(),
                last => format!("the events after {last} are missing"),
            };
            found.push((record_key.clone(), what));
            // From here on nothing can be compared with the head.
            self.computed = None;
            self.at_head = None;
        } else if outlast_tlog::hash::leaf(&event.body) != event.leaf {
            found.push((record_key.clone(), "its leaf hash is not that of its bytes".to_owned()));
        }
        if serde_json::from_slice::<serde::de::IgnoredAny>(&event.body).is_err() {
            found.push((record_key, "the event is not JSON".to_owned()));
        }
        self.sequence = event.sequence;
        if let Some(edge) = &mut self.computed {
            edge.append(&outlast_tlog::hash::leaf(&event.body));
        }
        self.note_head();
        found
    }

    /// Starts after the pruned events, whose hashes are in the tiles.
    fn begin(&mut self) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let pruned = self.head.as_ref().map_or(0, |head| head.pruned);
        let tiles = &self.tiles;
        let edge = Edge::of_tiles(pruned, |level, index, width| {
            let hashes = tiles.get(&(level, index)).and_then(|hashes| hashes.get(..width));
            hashes.map(<[Hash]>::to_vec).ok_or_else(|| Fault::Audit("a tile is missing".into()))
        });
        self.computed = edge.ok();
        self.sequence = pruned;
        self.note_head();
    }

    fn note_head(&mut self) {
        if let (Some(edge), Some(head)) = (&self.computed, &self.head)
            && edge.size() == head.size
        {
            self.at_head = edge.range().ok();
        }
    }

    /// Problems that show after the last event.
    pub(super) fn end(&mut self) -> Vec<Problem> {
        self.begin();
        let head_problem = match &self.head {
            None => Some("it is missing, or does not open: every store has one".to_owned()),
            Some(head) if self.sequence.max(head.pruned) < head.size => Some(format!(
                "the events from {} to {} were signed and are missing",
                self.sequence + 1,
                head.size
            )),
            Some(head) if self.at_head.is_none() || head.range().ok() != self.at_head => {
                Some(format!("the events up to {} are not those that were signed", head.size))
            }
            Some(_) => None,
        };
        if let Some(what) = head_problem {
            self.problem(HEAD, &what);
        }
        if let Some(what) = self.signed_head() {
            self.problem(SIGNED, what);
        }
        self.compare_tiles();
        std::mem::take(&mut self.found)
    }

    /// The problem of the signed head, if it has one.
    fn signed_head(&self) -> Option<&'static str> {
        let Some(key) = &self.key else { return Some("the key that signs the log is missing") };
        let Some(text) = &self.signed else { return Some("it is missing") };
        let Ok(signed) = SignedCheckpoint::parse(text.as_bytes()) else {
            return Some("it cannot be read");
        };
        if signed.verify_log(&key.verifiers()).is_err() {
            return Some("it is not signed with the log's keys");
        }
        let found = (signed.checkpoint().size(), *signed.checkpoint().root());
        let sealed = self.head.as_ref().and_then(|head| Some((head.size, head.root().ok()?)));
        (sealed != Some(found)).then_some("it is not the sealed head")
    }

    /// Compares the tiles above the leaves, as far as the head covers them.
    fn compare_tiles(&mut self) {
        let (Some(edge), Some(head)) = (&self.computed, &self.head) else { return };
        let mut wrong = Vec::new();
        for ((level, index), computed) in edge.grown() {
            let count = head.size >> (8 * u32::from(*level));
            let width = count.saturating_sub(index * tiles::WIDTH).min(tiles::WIDTH);
            let width = usize::try_from(width).unwrap_or(0).min(computed.len());
            let stored = self.tiles.get(&(*level, *index)).and_then(|hashes| hashes.get(..width));
            if width > 0 && stored != computed.get(..width) {
                wrong.push((
                    tiles::record_key(TILES, *level, *index),
                    "it is missing, or not the tile of the events",
                ));
            }
        }
        for (record_key, what) in wrong {
            self.problem(&record_key, what);
        }
    }
}

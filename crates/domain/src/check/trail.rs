//! The audit events with their chain, and the checkpoints over them.

use std::collections::BTreeMap;

use outlast_crypto::Secret;
use outlast_store::{Event, chain};
use serde_json::Value;

use crate::audit::{self, CHECKPOINTS, Checkpoint, Last, PUBLIC_KEYS, PublicKey};

/// A place and what is wrong there.
type Problem = (String, String);

/// What was seen of the events and what goes with them. The records come first.
pub(super) struct Trail {
    link: [u8; 32],
    sequence: u64,
    /// By sequence; absent where the record cannot be read.
    checkpoints: BTreeMap<u64, Checkpoint>,
    /// Public halves of the sealed keys.
    own: Vec<PublicKey>,
    /// What the records say.
    public: BTreeMap<String, Option<PublicKey>>,
    last: Option<Last>,
    covered: u64,
    unreadable: Vec<Problem>,
}

impl Default for Trail {
    fn default() -> Self {
        Self {
            link: chain::START,
            sequence: 0,
            checkpoints: BTreeMap::new(),
            own: Vec::new(),
            public: BTreeMap::new(),
            last: None,
            covered: 0,
            unreadable: Vec::new(),
        }
    }
}

impl Trail {
    /// Takes a plain record, if it is one of these.
    pub(super) fn record(&mut self, place: &str, value: &Value) -> bool {
        if place.starts_with(CHECKPOINTS) {
            match serde_json::from_value::<Checkpoint>(value.clone()) {
                Ok(checkpoint) => {
                    self.checkpoints.insert(checkpoint.sequence, checkpoint);
                }
                Err(_) => self.unreadable(place, "the checkpoint cannot be read"),
            }
        } else if place.starts_with(PUBLIC_KEYS) {
            self.public.insert(place.to_owned(), serde_json::from_value(value.clone()).ok());
        } else {
            return false;
        }
        true
    }

    /// Takes a secret, if it is one of these.
    pub(super) fn secret(&mut self, place: &str, secret: &Secret) -> bool {
        if place == audit::LAST {
            match serde_json::from_slice(secret.expose()) {
                Ok(last) => self.last = Some(last),
                Err(_) => self.unreadable(place, "it cannot be read"),
            }
        } else if place.starts_with("audit/key/") {
            match audit::public_of(secret) {
                Ok(key) => self.own.push(key),
                Err(_) => self.unreadable(place, "it is no key that signs checkpoints"),
            }
        } else {
            return false;
        }
        true
    }

    fn unreadable(&mut self, place: &str, what: &str) {
        self.unreadable.push((place.to_owned(), what.to_owned()));
    }

    /// The next event; gives what is wrong with it and with the checkpoint over it.
    pub(super) fn event(&mut self, event: &Event) -> Vec<Problem> {
        let mut found = Vec::new();
        let place = format!("event/{}", event.sequence);
        if event.sequence != self.sequence + 1 {
            let what = format!("the events after {} are missing", self.sequence);
            found.push((place.clone(), what));
        } else if chain::next(&self.link, event.sequence, &event.body) != event.chain {
            let what = "the audit chain is broken: this event or one before it was changed";
            found.push((place, what.to_owned()));
        } else if serde_json::from_slice::<serde::de::IgnoredAny>(&event.body).is_err() {
            found.push((place, "the event is not JSON".to_owned()));
        }
        // From what is written, so that one break is one problem.
        (self.sequence, self.link) = (event.sequence, event.chain);
        if let Some(checkpoint) = self.checkpoints.remove(&event.sequence) {
            match self.verify(&checkpoint) {
                Ok(()) => self.covered = event.sequence,
                Err(what) => found.push((place_of(event.sequence), what.to_owned())),
            }
        }
        found
    }

    fn verify(&self, checkpoint: &Checkpoint) -> Result<(), &'static str> {
        let Some(key) = self.own.iter().find(|key| key.id == checkpoint.key_id) else {
            return Err("the store has no key that it is signed with");
        };
        if !checkpoint.is_signed_by(key) {
            return Err("its signature is not valid");
        }
        if checkpoint.chain != hex::encode(self.link) {
            return Err("the events up to it are not those that were signed");
        }
        Ok(())
    }

    /// What is wrong after the last event.
    pub(super) fn end(&mut self) -> Vec<Problem> {
        let mut found = std::mem::take(&mut self.unreadable);
        for sequence in std::mem::take(&mut self.checkpoints).into_keys() {
            found.push((place_of(sequence), "it covers an event that is not there".to_owned()));
        }
        for (place, key) in &self.public {
            let own = key.as_ref().is_some_and(|key| {
                self.own.contains(key) && place.strip_prefix(PUBLIC_KEYS) == Some(&key.id)
            });
            if !own {
                found.push((place.clone(), "it is not the public half of a key here".to_owned()));
            }
        }
        match self.last {
            Some(last) if last.sequence > self.covered => {
                let what = format!("no valid checkpoint at event {}, where one was", last.sequence);
                found.push((audit::LAST.to_owned(), what));
            }
            None if self.covered > 0 => {
                found.push((audit::LAST.to_owned(), "it is missing".to_owned()));
            }
            _ => {}
        }
        found
    }
}

fn place_of(sequence: u64) -> String {
    format!("{CHECKPOINTS}{sequence:020}")
}
